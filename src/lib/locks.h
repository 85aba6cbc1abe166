/*-------------------------------------------------------------------------
 *
 * locks.h
 *	  The lightweight locks, in the order in which they may be nested.
 *
 * A process may take a lock only while it holds none, or only ones of kinds
 * that come before it here; so it holds at most one of each kind.
 *
 * Each kind is a tranche of its own, so that the wait event of a process that
 * waits for a lock names its kind.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_LOCKS_H
#define PGNETLAT_LOCKS_H

#include "storage/lwlock.h"

typedef enum PgnetlatLock
{
	LOCK_RESET,					/* exclusive: a reset is under way */
	LOCK_ACCUMULATE,			/* what of a session has been accumulated */
	LOCK_CLIENTS,				/* partitions of tables */
	LOCK_STATEMENTS,
	LOCK_HISTORY,
	LOCK_BLOCKERS,				/* who held up others */
	LOCK_POOLS,					/* who is busy, and how many at once */
	LOCK_FAILED_CONNECTIONS,
	LOCK_WINDOWS,				/* where windows over sessions begin */
	LOCK_KINDS
} PgnetlatLock;

/* Sessions share the locks under which they are accumulated. */
#define LOCK_ACCUMULATE_PARTITIONS	64

/* How many of each kind there are; fixed when the server starts. */
extern void locks_request(const int counts[LOCK_KINDS]);
extern void locks_shmem_init(void);

#pragma GCC visibility push(hidden)
extern LWLockPadded *locks_of_kind[LOCK_KINDS];
#pragma GCC visibility pop

static inline void
locks_acquire(PgnetlatLock kind, int number, LWLockMode mode)
{
	LWLockAcquire(&locks_of_kind[kind][number].lock, mode);
}

static inline void
locks_release(PgnetlatLock kind, int number)
{
	LWLockRelease(&locks_of_kind[kind][number].lock);
}

#endif							/* PGNETLAT_LOCKS_H */
