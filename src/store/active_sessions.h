/*-------------------------------------------------------------------------
 *
 * active_sessions.h
 *	  Which sessions the sampler looks at in each tick, and how it is woken.
 *
 * Most sessions of most servers wait for their clients, and most of those
 * have done so for a while.  They are quiet: the sampler leaves them alone, and
 * if all are, it sleeps.  The others are active.
 *
 * A session is made quiet by the sampler alone, when it has waited for longer
 * than any wait after which an exchange begins on the plain path.  So the
 * plain path has nothing to do with this: an exchange that ends a quiet wait
 * always begins in exchange_begin(), which makes the session active again.  It
 * writes only if the session is quiet, and wakes the sampler only if that is
 * asleep; one session does this for all.
 *
 * Neither side misses the other.  The session publishes that its exchange has
 * begun and then checks whether it is marked quiet; the sampler marks the
 * session quiet and then checks whether it is still waiting.  Likewise the
 * session becomes active and then checks whether the sampler is asleep; the
 * sampler announces that it will sleep and then checks whether a session is
 * active.  Each time there is a full barrier between the two steps.
 *
 * Nobody announces what a session does before the extension hears of its
 * request: it may be blocked by a lock while a query is analyzed.  That is why
 * the sampler also looks at quiet sessions, a few times a second.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_ACTIVE_SESSIONS_H
#define PGNETLAT_ACTIVE_SESSIONS_H

#include "clock.h"
#include "port/atomics.h"

/*
 * A session that has waited for longer than this and a round trip is quiet.
 * The plain path ends at LONG_WAIT_NS (settings.h); the rest is for clocks that
 * do not quite agree.  Until then the session is looked at in each tick, which
 * is most of what a query costs the sampler where sessions seldom have one.
 */
#define QUIET_AFTER_NS		(20 * NS_PER_MS)

/* a bit for each slot; read when a long wait ends */
#pragma GCC visibility push(hidden)
extern pg_atomic_uint64 *active_words;
#pragma GCC visibility pop

static inline bool
active_is(int slot)
{
	return (pg_atomic_read_u64(&active_words[slot / 64]) & UINT64CONST(1) << slot % 64) != 0;
}

extern Size active_shmem_size(void);
extern void active_shmem_init(void);
extern void active_enter(int slot);
extern void active_leave(int slot);

/*
 * The session in a slot, this process's, has published something behind what
 * may have been a quiet wait.
 */
static inline void
active_announce(int slot)
{
	pg_memory_barrier();
	if (unlikely(!active_is(slot)))
		active_enter(slot);
}

/* Functions for the sampler */
extern void active_sampler_starts(void);
extern void active_sampler_ends(void);
extern int	active_list(int *slots);
extern bool active_fall_asleep(void);
extern void active_wake_up(void);

#endif							/* PGNETLAT_ACTIVE_SESSIONS_H */
