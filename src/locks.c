/*-------------------------------------------------------------------------
 *
 * locks.c
 *	  See locks.h.
 *
 * Each kind is a tranche of its own, so that the wait event of a process that
 * waits for one says for which.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "locks.h"

static const struct
{
	const char *name;			/* as in pg_stat_activity.wait_event */
	int			count;
}			tranches[LOCK_KINDS] = {
	[LOCK_RESET] = {"pgnetlat_reset", 1},
	[LOCK_ACCUMULATE] = {"pgnetlat_accumulate", LOCK_ACCUMULATE_PARTITIONS},
	[LOCK_CLIENTS] = {"pgnetlat_clients", 1},
	[LOCK_STATEMENTS] = {"pgnetlat_statements", 1},
	[LOCK_HISTORY] = {"pgnetlat_history", 1},
};

static LWLockPadded *locks[LOCK_KINDS];

void
locks_request(void)
{
	for (int i = 0; i < LOCK_KINDS; i++)
		RequestNamedLWLockTranche(tranches[i].name, tranches[i].count);
}

void
locks_init(void)
{
	for (int i = 0; i < LOCK_KINDS; i++)
		locks[i] = GetNamedLWLockTranche(tranches[i].name);
}

/* A lock of which there is one. */
LWLock *
locks_get(PgnetlatLock lock)
{
	Assert(lock != LOCK_ACCUMULATE);
	return &locks[lock]->lock;
}

/* The one for the session in a slot. */
LWLock *
locks_get_accumulate(int slot)
{
	return &locks[LOCK_ACCUMULATE][slot % LOCK_ACCUMULATE_PARTITIONS].lock;
}
