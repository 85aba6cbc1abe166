/*-------------------------------------------------------------------------
 *
 * pools.c
 *	  See pools.h.
 *
 * The pools are an array under one lock, which a session takes when it begins and
 * when it ends, and the sampler at a tick at which somebody became busy or idle.
 * A pool that has sessions stays where it is, so each slot keeps its number.  When
 * the array is full, the pool without sessions that was busy for the least time
 * is evicted: what it has counted goes to a row for all of them, which also counts
 * the sessions of pools for which there is no room.
 *
 * What the sampler sees at a tick is so since the tick before.  A level is booked
 * when it changes, with the time for which it has lasted; so levels that sessions
 * pass through at one tick leave no trace, not even a maximum.  Readers add to
 * their copy the level in progress, up to the latest tick: while the sampler is
 * down, no time is added.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <float.h>

#include "clock.h"
#include "locks.h"
#include "pools.h"
#include "port/atomics.h"
#include "session_slot.h"
#include "settings.h"
#include "storage/shmem.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#define USAGE_AGING			0.99	/* at each eviction */

typedef struct Pool
{
	PoolCopy	counted;		/* the times: before the server's start */
	int64		began;			/* monotonic: its time counts from here, too */
	int64		booked_to;		/* since then the level is counted.busy */
	pg_atomic_uint64 busy_time; /* from accounts */

	/*
	 * Snapshots; in each, sessions_max is the most that there were since
	 * then.
	 */
	PoolCopy	kept[SNAPSHOTS_KEPT];
} Pool;

/* The first two are always there; in a free place behind them since is zero. */
#define ALL			0
#define EVICTED		1
#define FIRST		2

/* A slot's session. */
typedef struct PoolMember
{
	uint64		session;		/* 0: none */
	PoolKey		key;
	int			pool;			/* EVICTED if there was no room */
	bool		busy;			/* at the latest tick */
} PoolMember;

/* All under the lock, unless stated otherwise. */
typedef struct PoolsShared
{
	pg_atomic_uint64 known;		/* the latest tick; written by the sampler */
	volatile bool sampled;		/* there is a sampler */
	SnapshotTimes times;		/* of all pools' snapshots */
	PoolMember	members[FLEXIBLE_ARRAY_MEMBER]; /* the sampler reads them
												 * without the lock: a hint */
} PoolsShared;

/* What the sampler has found at a tick. */
typedef struct PoolChange
{
	uint64		session;
	int			slot;
	bool		busy;
} PoolChange;

static PoolsShared *shared = NULL;
static Pool *pools = NULL;

/* the sampler's own */
static PoolChange *changes = NULL;
static int	change_count = 0;

static inline int
pool_count(void)
{
	return FIRST + pgnetlat_max_pools;
}

static inline bool
is_used(const Pool *pool)
{
	return pool->counted.since != 0;
}

static void
lock_pools(LWLockMode mode)
{
	locks_acquire(LOCK_POOLS, 0, mode);
}

static void
unlock_pools(void)
{
	locks_release(LOCK_POOLS, 0);
}

/* Behind that, the pools. */
static Size
shared_size(void)
{
	return MAXALIGN(add_size(offsetof(PoolsShared, members),
							 mul_size(slot_count(), sizeof(PoolMember))));
}

Size
pools_shmem_size(void)
{
	return add_size(shared_size(), mul_size(pool_count(), sizeof(Pool)));
}

/* A pool begins, in a place that may have been used before. */
static void
begin(Pool *pool, PoolKind kind, const PoolKey *key, TimestampTz now)
{
	memset(pool, 0, sizeof(*pool));
	pool->counted.kind = kind;
	pool->counted.key = *key;
	pool->counted.since = now;
	pool->began = pool->booked_to = clock_now();
	pg_atomic_init_u64(&pool->busy_time, 0);
}

static void
begin_all(TimestampTz now)
{
	static const PoolKey none = {InvalidOid, InvalidOid};

	memset(pools, 0, pool_count() * sizeof(Pool));
	memset(&shared->times, 0, sizeof(shared->times));
	begin(&pools[ALL], POOL_OF_ALL, &none, now);
	begin(&pools[EVICTED], POOL_EVICTED, &none, now);
}

void
pools_shmem_init(void)
{
	bool		found;

	shared = ShmemInitStruct("pgnetlat pools", pools_shmem_size(), &found);
	pools = (Pool *) ((char *) shared + shared_size());
	if (found)
		return;
	memset(shared, 0, shared_size());
	pg_atomic_init_u64(&shared->known, 0);
	begin_all(GetCurrentTimestamp());
}

/* ---------------------------------------------------------------------------
 * Sessions
 * ---------------------------------------------------------------------------
 */

/* The level has lasted up to then. */
static void
book(Pool *pool, int64 to)
{
	PoolCopy   *counted = &pool->counted;
	int64		time = to - pool->booked_to;

	if (time <= 0)
		return;
	concurrency_add(&counted->distribution, (int) counted->busy, time);
	counted->usage += counted->busy * (time / (double) NS_PER_S);
	counted->busy_max = Max(counted->busy_max, counted->busy);
	pool->booked_to = to;
}

static void
change_pool(Pool *pool, int sessions, int busy, int64 since)
{
	PoolCopy   *counted = &pool->counted;

	if (busy != 0)
		book(pool, since);
	counted->busy += busy;
	counted->sessions += sessions;
	counted->sessions_max = Max(counted->sessions_max, counted->sessions);
	for (int i = 0; sessions > 0 && i < SNAPSHOTS_KEPT; i++)
		pool->kept[i].sessions_max = Max(pool->kept[i].sessions_max, counted->sessions);
}

/* So many more sessions, of which so many more are busy, since then. */
static void
change_pools(const PoolMember *member, int sessions, int busy, int64 since)
{
	change_pool(&pools[ALL], sessions, busy, since);
	change_pool(&pools[member->pool], sessions, busy, since);
}

/* What a pool has counted up to now. */
static void
copy_pool(PoolCopy *copy, Pool *pool, int64 now)
{
	int64		in_progress = (int64) pg_atomic_read_u64(&shared->known) - pool->booked_to;

	*copy = pool->counted;
	copy->time += now - pool->began;
	copy->busy_time += pg_atomic_read_u64(&pool->busy_time);
	if (in_progress <= 0)
		return;
	concurrency_add(&copy->distribution, (int) copy->busy, in_progress);
	copy->busy_max = Max(copy->busy_max, copy->busy);
}

static void
add_up(PoolCopy *sum, const PoolCopy *term)
{
	sum->busy_time += term->busy_time;
	sum->sessions_max = Max(sum->sessions_max, term->sessions_max);
	sum->busy_max = Max(sum->busy_max, term->busy_max);
	concurrency_sum(&sum->distribution, &term->distribution);
}

static void
evict(Pool *pool)
{
	Pool	   *evicted = &pools[EVICTED];
	PoolCopy	copy;

	copy_pool(&copy, pool, clock_now());
	add_up(&evicted->counted, &copy);
	for (int i = 0; i < SNAPSHOTS_KEPT; i++)
		add_up(&evicted->kept[i], &pool->kept[i]);
	/* what was busy long ago goes eventually */
	for (int i = FIRST; i < pool_count(); i++)
		pools[i].counted.usage *= USAGE_AGING;
}

/*
 * The number of the pool of a key, which may begin by that: in a free place, or in
 * that of the pool without sessions that was busy least.
 */
static int
find_pool(const PoolKey *key, TimestampTz now)
{
	int			place = EVICTED;
	double		least = DBL_MAX;

	for (int i = FIRST; i < pool_count(); i++)
	{
		PoolCopy   *counted = &pools[i].counted;
		double		usage = is_used(&pools[i]) ? counted->usage : -1;

		if (is_used(&pools[i]) && memcmp(&counted->key, key, sizeof(*key)) == 0)
			return i;
		if (usage < least && counted->sessions == 0)
		{
			place = i;
			least = usage;
		}
	}
	if (place == EVICTED)
		return place;
	if (is_used(&pools[place]))
		evict(&pools[place]);
	begin(&pools[place], POOL_OF_ROLE, key, now);
	return place;
}

void
pools_join(int slot, uint64 session, Oid datid, Oid userid)
{
	PoolMember *member = &shared->members[slot];
	PoolKey		key = {datid, userid};

	lock_pools(LW_EXCLUSIVE);
	member->key = key;
	member->pool = find_pool(&key, GetCurrentTimestamp());
	member->busy = false;
	member->session = session;
	change_pools(member, 1, 0, 0);
	unlock_pools();
}

/*
 * If it was busy, it is not since the latest tick.
 */
void
pools_leave(int slot)
{
	PoolMember *member = &shared->members[slot];

	lock_pools(LW_EXCLUSIVE);
	if (member->session != 0)
		change_pools(member, -1, -(int) member->busy, pg_atomic_read_u64(&shared->known));
	member->session = 0;
	member->busy = false;
	unlock_pools();
}

/*
 * The session in a slot was busy for so many nanoseconds more.
 */
void
pools_add_busy_time(int slot, int64 time)
{
	PoolMember *member = &shared->members[slot];

	if (time == 0 || member->session == 0)
		return;
	pg_atomic_fetch_add_u64(&pools[member->pool].busy_time, time);
	pg_atomic_fetch_add_u64(&pools[ALL].busy_time, time);
}

/*
 * Forget what was counted; sessions stay, and what they were last seen doing.
 */
void
pools_reset(TimestampTz now)
{
	lock_pools(LW_EXCLUSIVE);
	begin_all(now);
	for (int i = 0; i < slot_count(); i++)
	{
		PoolMember *member = &shared->members[i];

		if (member->session == 0)
			continue;
		member->pool = find_pool(&member->key, now);
		change_pools(member, 1, member->busy, 0);
	}
	unlock_pools();
}

/* ---------------------------------------------------------------------------
 * Sampling
 * ---------------------------------------------------------------------------
 */

/*
 * What was busy while there was no sampler, is not known; nor, before it looks,
 * what is.
 */
void
pools_sampler_starts(void)
{
	int64		now = clock_now();

	changes = MemoryContextAlloc(TopMemoryContext, slot_count() * sizeof(PoolChange));
	change_count = 0;
	lock_pools(LW_EXCLUSIVE);
	for (int i = 0; i < pool_count(); i++)
	{
		book(&pools[i], pg_atomic_read_u64(&shared->known));
		pools[i].booked_to = now;
		pools[i].counted.busy = 0;
	}
	for (int i = 0; i < slot_count(); i++)
		shared->members[i].busy = false;
	pg_atomic_write_u64(&shared->known, now);
	shared->sampled = true;
	unlock_pools();
}

void
pools_sampler_ends(void)
{
	shared->sampled = false;
}

/*
 * A session was looked at in this tick: is it busy?
 */
void
pools_see(int slot, uint64 session, bool busy)
{
	if (likely(shared->members[slot].busy == busy) || change_count == slot_count())
		return;
	changes[change_count].slot = slot;
	changes[change_count].session = session;
	changes[change_count].busy = busy;
	change_count++;
}

/*
 * All sessions that were to be looked at have been: what was seen is so since
 * the tick before.
 */
void
pools_end_tick(int64 before, int64 now)
{
	if (change_count > 0)
	{
		lock_pools(LW_EXCLUSIVE);
		for (int i = 0; i < change_count; i++)
		{
			PoolMember *member = &shared->members[changes[i].slot];

			/* unless it has ended since, or has not yet joined */
			if (member->session != changes[i].session || member->busy == changes[i].busy)
				continue;
			member->busy = changes[i].busy;
			change_pools(member, 0, member->busy ? 1 : -1, before);
		}
		unlock_pools();
		change_count = 0;
	}
	pg_atomic_write_u64(&shared->known, now);
}

/*
 * Keep a snapshot of all pools, whose sessions have just been accumulated.
 */
void
pools_take_snapshots(SnapshotLevels levels)
{
	int64		now = clock_now();

	lock_pools(LW_EXCLUSIVE);
	for (int level = 0; level < SNAPSHOT_LEVELS; level++)
	{
		int			place = snapshots_place(&shared->times, level);

		for (int i = 0; (levels & (1u << level)) && i < pool_count(); i++)
		{
			if (!is_used(&pools[i]))
				continue;
			copy_pool(&pools[i].kept[place], &pools[i], now);
			pools[i].kept[place].sessions_max = pools[i].counted.sessions;
		}
	}
	snapshots_date(&shared->times, levels, now);
	unlock_pools();
}

/* ---------------------------------------------------------------------------
 * Reading
 * ---------------------------------------------------------------------------
 */

/* Is anybody there to see who is busy? */
bool
pools_are_sampled(void)
{
	return shared->sampled;
}

/* What a pool has counted since a snapshot, instead of all it has. */
static void
subtract(PoolCopy *copy, const PoolCopy *before)
{
	copy->time -= before->time;
	/* unless it began in the window */
	if (before->time > 0)
		copy->since = GetCurrentTimestamp() - copy->time / NS_PER_US;
	copy->busy_time -= before->busy_time;
	copy->sessions_max = before->sessions_max;
	concurrency_subtract(&copy->distribution, &before->distribution);
	copy->busy_max = Min(copy->busy_max, concurrency_highest(&copy->distribution));
}

/*
 * A palloc'd copy of all pools, over a window that contains the last "length"
 * nanoseconds if there is one, or else the longest there is; or, with POOLS_WHOLE,
 * over all their time.
 */
PoolCopy *
pools_copy(int64 length, int *count)
{
	PoolCopy   *copies = palloc_extended(pool_count() * sizeof(PoolCopy), MCXT_ALLOC_HUGE);
	int64		now;
	int			place;

	*count = 0;
	lock_pools(LW_SHARED);
	now = clock_now();
	place = snapshots_begin_window(&shared->times, now - length);
	for (int i = 0; i < pool_count(); i++)
	{
		PoolCopy   *copy = &copies[*count];

		if (!is_used(&pools[i]))
			continue;
		copy_pool(copy, &pools[i], now);
		if (i == EVICTED && copy->sessions_max == 0)
			continue;
		if (length != POOLS_WHOLE)
			subtract(copy, &pools[i].kept[place]);
		(*count)++;
	}
	unlock_pools();
	return copies;
}

/*
 * Put back a saved pool, which has no sessions.  What was counted before is older
 * than any window.
 */
void
pools_restore(const PoolCopy *saved)
{
	Pool	   *pool;

	lock_pools(LW_EXCLUSIVE);
	pool = &pools[saved->kind == POOL_OF_ALL ? ALL :
				  saved->kind == POOL_EVICTED ? EVICTED : find_pool(&saved->key, saved->since)];
	if (saved->kind == POOL_EVICTED)
		add_up(&pool->counted, saved);
	else
		pool->counted = *saved;
	for (int i = 0; i < SNAPSHOTS_KEPT; i++)
	{
		pool->kept[i] = pool->counted;
		pool->kept[i].sessions_max = 0;
	}
	unlock_pools();
}
