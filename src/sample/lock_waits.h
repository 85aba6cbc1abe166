/*-------------------------------------------------------------------------
 *
 * lock_waits.h
 *	  Which sessions wait for a lock, for how long, and for whom.
 *
 * The sampler tells which sessions it has seen waiting in the lock manager.
 * (How long they wait in total is a part of their execution: see
 * exec_samples.h.)
 *
 * A wait that lasts is booked to somebody.  The sampler follows the chain of
 * lock waits to its root, the holder, and the time is booked to the holder, in
 * pgnetlat_blockers and in its session, split by what the holder's own account
 * gained in the same time.  It is booked from the moment that core has
 * recorded (PGPROC.waitStart) up to the latest look at which the session was
 * still waiting: by the sampler at each tick, and by readers before they show
 * anything, so that a wait in progress is exact.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_LOCK_WAITS_H
#define PGNETLAT_LOCK_WAITS_H

#include "lock_graph.h"

/* A holder is looked for when somebody has waited for longer than this. */
#define LOCK_WAIT_BLAMED_NS		(100 * NS_PER_MS)

extern Size lock_waits_shmem_size(void);
extern void lock_waits_shmem_init(void);

/* Functions for the sampler */
extern void lock_waits_note(int slot);
extern void lock_waits_tick(int64 tick);

/* Functions for readers */
extern BlockerEntry *lock_waits_copy_blockers(int *count);
extern bool lock_waits_holder(int slot, uint64 session, LockHolder *holder);

/* Forget everything, for a reset.  The caller holds the reset lock. */
extern void lock_waits_reset(void);

#endif							/* PGNETLAT_LOCK_WAITS_H */
