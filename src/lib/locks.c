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

#include "compat.h"
#include "locks.h"
#include "storage/shmem.h"

/* As in pg_stat_activity.wait_event. */
static const char *const names[LOCK_KINDS] = {
	[LOCK_MEMORY] = "pgnetlat_memory",
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

/* Get the kinds' numbers, and say what their names are. */
void
locks_register(int tranches[LOCK_KINDS])
{
	for (int i = 0; i < LOCK_KINDS; i++)
		tranches[i] = compat_lock_tranche(tranches[i], names[i]);
}

Size
locks_shmem_size(const int counts[LOCK_KINDS])
{
	Size		size = 0;

	for (int i = 0; i < LOCK_KINDS; i++)
		size = add_size(size, mul_size(counts[i], sizeof(LWLockPadded)));
	return size;
}

void
locks_shmem_attach(void *memory, const int counts[LOCK_KINDS],
				   const int tranches[LOCK_KINDS], bool is_new)
{
	LWLockPadded *lock = memory;

	for (int i = 0; i < LOCK_KINDS; i++)
	{
		locks_of_kind[i] = lock;
		for (int j = 0; is_new && j < counts[i]; j++)
			LWLockInitialize(&lock[j].lock, tranches[i]);
		lock += counts[i];
	}
}
