/*-------------------------------------------------------------------------
 *
 * pools.h
 *	  How many sessions are busy at once, by database and role: the size
 *	  that a pool of server connections would need.
 *
 * A session is busy while it is in an exchange or in a transaction: behind a
 * pooler that assigns server connections by transaction, it would need one at
 * these times.  A pool is all sessions with the same database and role, as in
 * poolers.  One more pool has all sessions of the server.
 *
 * Each tick of the sampler sees which of the active sessions are busy, which
 * stands for the time since the previous tick.  Quiet sessions stay what they
 * were: idle, or waiting in a transaction.  The times at all levels make up a
 * distribution (concurrency.h).
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_POOLS_H
#define PGNETLAT_POOLS_H

#include "concurrency.h"
#include "datatype/timestamp.h"

/* What a pool has counted, in all or over a window: only int64 fields. */
typedef struct PoolCounters
{
	int64		busy_time;		/* us for which sessions were busy */
	Concurrency distribution;
} PoolCounters;

/* An entry of the table of pools (table.h). */
typedef struct Pool
{
	Oid			datid;			/* the key, with userid; zero: all sessions
								 * ... */
	Oid			userid;
	uint8		is_evicted;		/* ... or the evicted row */
	double		usage;			/* when its latest session left, for eviction */
	TimestampTz since;
	int64		sessions;		/* now */
	int64		sessions_max;	/* since then */
	int64		busy;			/* at the latest tick */
	int64		busy_max;		/* since then, at ticks */
	PoolCounters counters;
} Pool;

extern Size pools_shmem_size(void);
extern void pools_shmem_attach(void *memory, bool is_new);

/* Functions for the holder of the session's accumulation lock */
extern void pools_join(int index, uint64 session, Oid datid, Oid userid);
extern void pools_leave(int index);
extern void pools_see(int index, uint64 session, bool busy);

/* Function for resets, under the exclusive reset lock */
extern void pools_reset(void);

/* Functions for the sampler */
extern void pools_tick(int64 before);
extern bool pools_saw_busy(int index);

/* Functions for readers */
extern void *pools_copy(int64 length, int *count);
extern bool pools_restore(const void *content, double *sum);

#endif							/* PGNETLAT_POOLS_H */
