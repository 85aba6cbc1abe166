/*-------------------------------------------------------------------------
 *
 * pools.h
 *	  How many sessions are busy at once, by database and role: how large a
 *	  pool of server connections would have to be.
 *
 * A session is busy while it is in an exchange or in a transaction: in these
 * times it would need a server connection of its own if it came through a
 * pooler that lends one for each transaction.  A pool is all sessions with the
 * same database and role, which is what poolers keep their connections by; one
 * more is all sessions of the server.
 *
 * Samples show how many sessions were busy at once, and for how long.  At each tick
 * the sampler sees which of the active sessions are busy, and what it sees stands
 * for the time since the tick before.  Quiet sessions stay what they were: idle, or
 * waiting in a transaction.  The time at each level makes up a distribution
 * (concurrency.h).
 *
 * Accounts show exactly for how long sessions were busy, including exchanges that
 * are shorter than a tick: what is accumulated of a session is added here, too.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_POOLS_H
#define PGNETLAT_POOLS_H

#include "concurrency.h"
#include "datatype/timestamp.h"
#include "snapshots.h"

typedef enum PoolKind
{
	POOL_OF_ROLE = 0,			/* sessions of a role in a database */
	POOL_OF_ALL,				/* all sessions */
	POOL_EVICTED				/* what has no room; levels of different pools
								 * make up no distribution, only a maximum */
} PoolKind;

/* What a pool has counted, in all or over a window; shown, saved and kept. */
typedef struct PoolCounts
{
	PoolKind	kind;
	Oid			datid;
	Oid			userid;
	TimestampTz since;			/* when counting began, or the window */
	TimestampTz left;			/* when the latest session has left */
	int64		time;			/* ns of it in which the server was up */
	int64		busy_time;		/* ns that sessions were busy in it, exactly */
	int64		sessions;		/* now */
	int64		sessions_max;
	int64		busy;			/* at the latest tick */
	int64		busy_max;		/* as what follows, at ticks */
	Concurrency distribution;
} PoolCounts;

extern Size pools_shmem_size(void);
extern void pools_shmem_init(void);

/* Functions for whoever has begun to accumulate the session in a slot */
extern void pools_join(int slot, uint64 session, Oid datid, Oid userid);
extern void pools_leave(int slot);
extern void pools_add_busy_time(int slot, int64 time);

/* Function for resets, under the reset lock */
extern void pools_reset(TimestampTz now);

/* Functions for the sampler */
extern void pools_sampler_starts(void);
extern void pools_sampler_ends(void);
extern void pools_tick(int64 before);
extern void pools_see(int slot, uint64 session, bool busy);
extern void pools_take_snapshots(SnapshotLevels levels);

/* Functions for readers */
#define POOLS_WHOLE		INT64CONST(0)	/* no window */

extern bool pools_are_sampled(void);
extern PoolCounts *pools_copy(int64 length, int *count);
extern void pools_restore(const PoolCounts *saved);

#endif							/* PGNETLAT_POOLS_H */
