/*-------------------------------------------------------------------------
 *
 * locks.c
 *	  See locks.h.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "locks.h"

/* As in pg_stat_activity.wait_event. */
static const char *const names[LOCK_KINDS] = {
	[LOCK_RESET] = "pgnetlat_reset",
	[LOCK_ACCUMULATE] = "pgnetlat_accumulate",
	[LOCK_CLIENTS] = "pgnetlat_clients",
	[LOCK_STATEMENTS] = "pgnetlat_statements",
	[LOCK_HISTORY] = "pgnetlat_history",
	[LOCK_BLOCKERS] = "pgnetlat_blockers",
	[LOCK_POOLS] = "pgnetlat_pools",
	[LOCK_FAILED_CONNECTIONS] = "pgnetlat_failed_connections",
	[LOCK_WINDOWS] = "pgnetlat_windows",
};

LWLockPadded *locks_of_kind[LOCK_KINDS];

void
locks_request(const int counts[LOCK_KINDS])
{
	for (int i = 0; i < LOCK_KINDS; i++)
		RequestNamedLWLockTranche(names[i], counts[i]);
}

void
locks_shmem_init(void)
{
	for (int i = 0; i < LOCK_KINDS; i++)
		locks_of_kind[i] = GetNamedLWLockTranche(names[i]);
}
