/*-------------------------------------------------------------------------
 *
 * locks.h
 *	  The lightweight locks, in the order in which they may be nested.
 *
 * A process may take a lock only if every lock it holds is of a kind listed
 * before it here; so it holds at most one of each kind.
 *
 * Each kind is a tranche of its own, so that wait events name the kind.
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
	LOCK_MEMORY,				/* see late_memory.c, which has the lock */
	LOCK_RESET,					/* exclusive: a reset is under way */
	LOCK_ACCUMULATE,			/* what has been accumulated of a session */
	LOCK_CLIENTS,				/* partitions of tables */
	LOCK_STATEMENTS,
	LOCK_HISTORY,
	LOCK_BLOCKERS,				/* partitions of the table of holders */
	LOCK_POOLS,					/* partitions of the table of pools */
	LOCK_FAILED_CONNECTIONS,
	LOCK_WINDOWS,				/* where windows over sessions begin */
	LOCK_KINDS
} PgnetlatLock;

/* Sessions share the locks for accumulating them. */
#define LOCK_ACCUMULATE_PARTITIONS	64

/*
 * "tranches" has core's numbers of the kinds, which are set if they are zero.
 * "counts" has the number of locks of each kind.
 */
extern void locks_register(int tranches[LOCK_KINDS]);
extern Size locks_shmem_size(const int counts[LOCK_KINDS]);
extern void locks_shmem_attach(void *memory, const int counts[LOCK_KINDS],
							   const int tranches[LOCK_KINDS], bool is_new);

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
