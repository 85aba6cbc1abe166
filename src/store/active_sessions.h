/*-------------------------------------------------------------------------
 *
 * active_sessions.h
 *	  The set of sessions that the sampler looks at in each tick, and how a
 *	  session wakes it.
 *
 * Most sessions of most servers have been waiting for their clients for a
 * while.  They are quiet: the sampler leaves them alone, and sleeps if all
 * sessions are quiet.  The others are active.
 *
 * Only the sampler makes a session quiet, when it has waited for longer than
 * any wait that the plain path can end.  So an exchange that ends a quiet wait
 * always begins in exchange_begin(), which makes the session active again.  It
 * writes only if the session is quiet, and only one session wakes a sampler
 * that is asleep.
 *
 * Neither side misses the other.  The session publishes that its exchange has
 * begun and then checks whether it is marked quiet; the sampler marks the
 * session quiet and then checks whether it is still waiting.  Likewise, the
 * session becomes active and then checks whether the sampler is asleep; the
 * sampler announces that it will sleep and then checks whether a session is
 * active.  Each side has a full barrier between its two steps.
 *
 * A session does not announce what it does before a hook is called for its
 * request: it may be waiting for a lock in parse analysis.  So the sampler
 * also looks at quiet sessions, a few times a second.
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
 * A session is quiet after it has waited for longer than this and a round
 * trip.  The plain path ends at LONG_WAIT_NS (settings.h); the rest allows for
 * clocks that differ.  Until a session is quiet it is looked at in each tick,
 * which is most of the sampler's cost where queries are rare.
 */
#define QUIET_AFTER_NS		(20 * NS_PER_MS)

/* a bit for each slot; read in each exchange that is not plain */
#pragma GCC visibility push(hidden)
extern pg_atomic_uint64 *active_words;
#pragma GCC visibility pop

static inline bool
active_is(int index)
{
	return (pg_atomic_read_u64(&active_words[index / 64]) & UINT64CONST(1) << index % 64) != 0;
}

extern Size active_shmem_size(void);
extern void active_shmem_attach(void *memory, bool is_new);
extern void active_enter(int index);
extern void active_leave(int index);

/*
 * This process's session has published something after what may have been a
 * quiet wait.
 */
static inline void
active_announce(int index)
{
	pg_memory_barrier();
	if (unlikely(!active_is(index)))
		active_enter(index);
}

/* Functions for the sampler */
extern void active_sampler_starts(void);
extern void active_sampler_ends(void);
extern int	active_list(int *slots);
extern bool active_fall_asleep(void);
extern void active_wake_up(void);

#endif							/* PGNETLAT_ACTIVE_SESSIONS_H */
