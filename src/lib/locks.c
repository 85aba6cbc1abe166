/*-------------------------------------------------------------------------
 *
 * locks.c
 *	  See locks.h.
 *
 * Each kind is a tranche of its own, so that the wait event of a process that
 * waits for a lock names its kind.
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
};

LWLockPadded *locks_of_kind[LOCK_KINDS];
static int	count_of_kind[LOCK_KINDS];

void
locks_request(const int counts[LOCK_KINDS])
{
	for (int i = 0; i < LOCK_KINDS; i++)
	{
		count_of_kind[i] = counts[i];
		RequestNamedLWLockTranche(names[i], counts[i]);
	}
}

#ifndef PGNETLAT_LOCK_STATS

Size
locks_shmem_size(void)
{
	return 0;
}

void
locks_shmem_init(void)
{
	for (int i = 0; i < LOCK_KINDS; i++)
		locks_of_kind[i] = GetNamedLWLockTranche(names[i]);
}

#else

/* ---------------------------------------------------------------------------
 * Counting
 *
 * A process that has to give up its processor while it holds a lock, as happens
 * all the time where 256 of them share two, seems to hold it for milliseconds.
 * So a lock is held for the time between two readings of the clock, but for no
 * more than the processor time that the process has taken from before it had
 * the lock until it had released it.  That clock takes a system call, and is
 * read where the lock is not held; but another one may be, whose time it is not:
 * what counting takes is subtracted there, with the few nanoseconds that taking
 * and releasing the inner lock takes.
 * ---------------------------------------------------------------------------
 */

#include <time.h>

#include "compat.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/shmem.h"
#include "utils/builtins.h"

typedef struct LockStats
{
	pg_atomic_uint64 taken;
	pg_atomic_uint64 refused;	/* by who did not want to wait */
	pg_atomic_uint64 waited;	/* times that it was not free, and waited for */
	pg_atomic_uint64 held;		/* ns */
	pg_atomic_uint64 longest;	/* ns */
} LockStats;

static LockStats *stats_of_kind[LOCK_KINDS];

/* When this process took the lock of each kind that it holds, by two clocks. */
static int64 taken_at[LOCK_KINDS];
static int64 processor_before[LOCK_KINDS];

/* What counting has taken of this process's time, in all and before it. */
static int64 counting = 0;
static int64 counting_before[LOCK_KINDS];

static int
lock_count(void)
{
	int			count = 0;

	for (int i = 0; i < LOCK_KINDS; i++)
		count += count_of_kind[i];
	return count;
}

Size
locks_shmem_size(void)
{
	return mul_size(lock_count(), sizeof(LockStats));
}

void
locks_shmem_init(void)
{
	bool		found;
	LockStats  *stats = ShmemInitStruct("pgnetlat lock stats", locks_shmem_size(), &found);

	if (!found)
	{
		memset(stats, 0, locks_shmem_size());
		for (int i = 0; i < lock_count(); i++)
		{
			pg_atomic_init_u64(&stats[i].taken, 0);
			pg_atomic_init_u64(&stats[i].refused, 0);
			pg_atomic_init_u64(&stats[i].waited, 0);
			pg_atomic_init_u64(&stats[i].held, 0);
			pg_atomic_init_u64(&stats[i].longest, 0);
		}
	}
	for (int i = 0; i < LOCK_KINDS; i++)
	{
		locks_of_kind[i] = GetNamedLWLockTranche(names[i]);
		stats_of_kind[i] = stats;
		stats += count_of_kind[i];
	}
}

static int64
read_clock(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * INT64CONST(1000000000) + now.tv_nsec;
}

/* "since" is when we began to count, if there was no waiting; else 0. */
static void
note_taken(PgnetlatLock kind, int number, int64 since)
{
	pg_atomic_fetch_add_u64(&stats_of_kind[kind][number].taken, 1);
	taken_at[kind] = read_clock(CLOCK_MONOTONIC);
	if (since != 0)
		counting += taken_at[kind] - since;
	counting_before[kind] = counting;
}

void
locks_acquire(PgnetlatLock kind, int number, LWLockMode mode)
{
	LWLock	   *lock = &locks_of_kind[kind][number].lock;
	int64		since = read_clock(CLOCK_MONOTONIC);

	processor_before[kind] = read_clock(CLOCK_THREAD_CPUTIME_ID);
	if (!LWLockConditionalAcquire(lock, mode))
	{
		pg_atomic_fetch_add_u64(&stats_of_kind[kind][number].waited, 1);
		LWLockAcquire(lock, mode);
		since = 0;
	}
	note_taken(kind, number, since);
}

bool
locks_acquire_if_free(PgnetlatLock kind, int number, LWLockMode mode)
{
	int64		since = read_clock(CLOCK_MONOTONIC);

	processor_before[kind] = read_clock(CLOCK_THREAD_CPUTIME_ID);
	if (!LWLockConditionalAcquire(&locks_of_kind[kind][number].lock, mode))
	{
		pg_atomic_fetch_add_u64(&stats_of_kind[kind][number].refused, 1);
		return false;
	}
	note_taken(kind, number, since);
	return true;
}

void
locks_release(PgnetlatLock kind, int number)
{
	LockStats  *stats = &stats_of_kind[kind][number];
	int64		until = read_clock(CLOCK_MONOTONIC);
	uint64		longest = pg_atomic_read_u64(&stats->longest);
	uint64		held;

	LWLockRelease(&locks_of_kind[kind][number].lock);
	held = Max(Min(until - taken_at[kind],
				   read_clock(CLOCK_THREAD_CPUTIME_ID) - processor_before[kind]) -
			   (counting - counting_before[kind]), 0);
	pg_atomic_fetch_add_u64(&stats->held, held);
	while (held > longest &&
		   !pg_atomic_compare_exchange_u64(&stats->longest, &longest, held))
		;
	counting += read_clock(CLOCK_MONOTONIC) - until;
}

/*
 * One row per lock that was ever taken: its name and number, how often it was
 * taken, refused and waited for, for how long it was held in all and at
 * most, in ns.  With true, counting begins anew after that.
 */
PG_FUNCTION_INFO_V1(pgnetlat_lock_stats);
Datum
pgnetlat_lock_stats(PG_FUNCTION_ARGS)
{
	bool		reset = PG_GETARG_BOOL(0);
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;

	InitMaterializedSRF(fcinfo, 0);
	for (int kind = 0; kind < LOCK_KINDS; kind++)
	{
		for (int number = 0; number < count_of_kind[kind]; number++)
		{
			LockStats  *stats = &stats_of_kind[kind][number];
			pg_atomic_uint64 *counters[] = {&stats->taken, &stats->refused, &stats->waited,
			&stats->held, &stats->longest};
			Datum		values[2 + lengthof(counters)];
			bool		nulls[lengthof(values)] = {0};

			if (pg_atomic_read_u64(&stats->taken) == 0)
				continue;
			values[0] = CStringGetTextDatum(names[kind]);
			values[1] = Int32GetDatum(number);
			for (size_t i = 0; i < lengthof(counters); i++)
				values[2 + i] = Int64GetDatum(reset ? pg_atomic_exchange_u64(counters[i], 0) :
											  pg_atomic_read_u64(counters[i]));
			tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
		}
	}
	return (Datum) 0;
}

#endif
