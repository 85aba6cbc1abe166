/*-------------------------------------------------------------------------
 *
 * pools.c
 *	  See pools.h.
 *
 * The pools are an array under one lock.  A pool that has sessions stays where it
 * is, so each slot keeps its number.  When the array is full, the pool that has
 * been without sessions for longest is evicted: what it has counted goes to a row
 * for all of them, which also counts the sessions of pools for which there is no
 * room.
 *
 * At each tick the time between the two ticks before is added to the level of
 * each pool.  A tick that follows a sleep first adds the time asleep, at the
 * levels of before.  While there is no sampler, no time is added.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "clock.h"
#include "locks.h"
#include "pools.h"
#include "session_slot.h"
#include "settings.h"
#include "storage/shmem.h"
#include "utils/timestamp.h"

typedef struct Pool
{
	PoolCounts	counted;		/* its time: before the server's start */
	int64		began;			/* monotonic: its time counts from here, too */

	/*
	 * Snapshots; in each, sessions_max is the most that there were since
	 * then.
	 */
	PoolCounts	kept[SNAPSHOTS_KEPT];
} Pool;

/* The first two are always there. */
#define ALL			0
#define EVICTED		1
#define FIRST		2

/* A slot's session. */
typedef struct PoolMember
{
	uint64		session;		/* 0: none */
	Oid			datid;
	Oid			userid;
	int			pool;			/* EVICTED if there was no room */
	bool		busy;			/* at the latest tick */
} PoolMember;

/* All under the lock; the sampler reads members without it: a hint. */
typedef struct PoolsShared
{
	volatile int64 sampled_to;	/* monotonic; 0: there is no sampler */
	SnapshotTimes times;		/* of all pools' snapshots */
	int			count;			/* pools that there are */
	PoolMember	members[FLEXIBLE_ARRAY_MEMBER];
} PoolsShared;

static PoolsShared *shared = NULL;
static Pool *pools = NULL;		/* in shared memory, behind that */

static Size
shared_size(void)
{
	return MAXALIGN(add_size(offsetof(PoolsShared, members),
							 mul_size(slot_count(), sizeof(PoolMember))));
}

Size
pools_shmem_size(void)
{
	return add_size(shared_size(), mul_size(FIRST + pgnetlat_max_pools, sizeof(Pool)));
}

/* A pool begins, in a place that may have been used before. */
static void
begin(int number, PoolKind kind, Oid datid, Oid userid, TimestampTz now)
{
	Pool	   *pool = &pools[number];

	memset(pool, 0, sizeof(*pool));
	pool->counted.kind = kind;
	pool->counted.datid = datid;
	pool->counted.userid = userid;
	pool->counted.since = pool->counted.left = now;
	pool->began = clock_now();
}

static void
begin_all(TimestampTz now)
{
	memset(&shared->times, 0, sizeof(shared->times));
	begin(ALL, POOL_OF_ALL, InvalidOid, InvalidOid, now);
	begin(EVICTED, POOL_EVICTED, InvalidOid, InvalidOid, now);
	shared->count = FIRST;
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
	begin_all(GetCurrentTimestamp());
}

/* ---------------------------------------------------------------------------
 * Sessions
 * ---------------------------------------------------------------------------
 */

/* Change how many sessions there are, and how many are busy, in a session's pools. */
static void
change_pools(const PoolMember *member, int sessions, int busy)
{
	Pool	   *changed[] = {&pools[ALL], &pools[member->pool]};

	for (size_t i = 0; i < lengthof(changed); i++)
	{
		PoolCounts *counted = &changed[i]->counted;

		counted->busy += busy;
		counted->sessions += sessions;
		counted->sessions_max = Max(counted->sessions_max, counted->sessions);
		for (int j = 0; sessions > 0 && j < SNAPSHOTS_KEPT; j++)
			changed[i]->kept[j].sessions_max = Max(changed[i]->kept[j].sessions_max,
												   counted->sessions);
	}
}

static void
add_up(PoolCounts *sum, const PoolCounts *term)
{
	sum->busy_time += term->busy_time;
	sum->sessions_max = Max(sum->sessions_max, term->sessions_max);
	sum->busy_max = Max(sum->busy_max, term->busy_max);
	concurrency_sum(&sum->distribution, &term->distribution, 1);
}

/*
 * The number of the pool of a database and a role.  A new one takes a free place, or
 * that of the pool that has been without sessions for longest.
 */
static int
find_pool(Oid datid, Oid userid, TimestampTz now)
{
	int			place = EVICTED;

	for (int i = FIRST; i < shared->count; i++)
	{
		PoolCounts *counted = &pools[i].counted;

		if (counted->datid == datid && counted->userid == userid)
			return i;
		if (counted->sessions == 0 &&
			(place == EVICTED || counted->left < pools[place].counted.left))
			place = i;
	}
	if (shared->count < FIRST + pgnetlat_max_pools)
		place = shared->count++;
	else if (place == EVICTED)
		return place;
	else
	{
		add_up(&pools[EVICTED].counted, &pools[place].counted);
		for (int i = 0; i < SNAPSHOTS_KEPT; i++)
			add_up(&pools[EVICTED].kept[i], &pools[place].kept[i]);
	}
	begin(place, POOL_OF_ROLE, datid, userid, now);
	return place;
}

void
pools_join(int slot, uint64 session, Oid datid, Oid userid)
{
	PoolMember *member = &shared->members[slot];

	locks_acquire(LOCK_POOLS, 0, LW_EXCLUSIVE);
	member->datid = datid;
	member->userid = userid;
	member->pool = find_pool(datid, userid, GetCurrentTimestamp());
	member->busy = false;
	member->session = session;
	change_pools(member, 1, 0);
	locks_release(LOCK_POOLS, 0);
}

void
pools_leave(int slot)
{
	PoolMember *member = &shared->members[slot];

	locks_acquire(LOCK_POOLS, 0, LW_EXCLUSIVE);
	if (member->session != 0)
	{
		change_pools(member, -1, -(int) member->busy);
		pools[member->pool].counted.left = GetCurrentTimestamp();
	}
	member->session = 0;
	member->busy = false;
	locks_release(LOCK_POOLS, 0);
}

/*
 * The session in a slot was busy for so many nanoseconds more.
 */
void
pools_add_busy_time(int slot, int64 time)
{
	PoolMember *member = &shared->members[slot];

	if (time == 0)
		return;
	locks_acquire(LOCK_POOLS, 0, LW_EXCLUSIVE);
	if (member->session != 0)
	{
		pools[ALL].counted.busy_time += time;
		pools[member->pool].counted.busy_time += time;
	}
	locks_release(LOCK_POOLS, 0);
}

/*
 * Forget what was counted; sessions stay, and what they were last seen doing.
 */
void
pools_reset(TimestampTz now)
{
	locks_acquire(LOCK_POOLS, 0, LW_EXCLUSIVE);
	begin_all(now);
	for (int i = 0; i < slot_count(); i++)
	{
		PoolMember *member = &shared->members[i];

		if (member->session == 0)
			continue;
		member->pool = find_pool(member->datid, member->userid, now);
		change_pools(member, 1, member->busy);
	}
	locks_release(LOCK_POOLS, 0);
}

/* ---------------------------------------------------------------------------
 * Sampling
 * ---------------------------------------------------------------------------
 */

/*
 * Before the sampler has looked, it is not known who is busy.
 */
void
pools_sampler_starts(void)
{
	locks_acquire(LOCK_POOLS, 0, LW_EXCLUSIVE);
	for (int i = 0; i < shared->count; i++)
		pools[i].counted.busy = 0;
	for (int i = 0; i < slot_count(); i++)
		shared->members[i].busy = false;
	shared->sampled_to = clock_now();
	locks_release(LOCK_POOLS, 0);
}

void
pools_sampler_ends(void)
{
	shared->sampled_to = 0;
}

/*
 * A tick begins: what was seen at the one before held until "before", and what is
 * seen now has held since then.
 */
void
pools_tick(int64 before)
{
	int64		time = before - shared->sampled_to;

	if (time <= 0)
		return;
	locks_acquire(LOCK_POOLS, 0, LW_EXCLUSIVE);
	for (int i = 0; i < shared->count; i++)
	{
		PoolCounts *counted = &pools[i].counted;

		counted->distribution.weight[concurrency_bucket((int) counted->busy)] += time;
		counted->busy_max = Max(counted->busy_max, counted->busy);
	}
	shared->sampled_to = before;
	locks_release(LOCK_POOLS, 0);
}

/*
 * A session was looked at in this tick: is it busy?
 */
void
pools_see(int slot, uint64 session, bool busy)
{
	PoolMember *member = &shared->members[slot];

	if (likely(member->busy == busy))
		return;
	locks_acquire(LOCK_POOLS, 0, LW_EXCLUSIVE);
	/* unless it has ended since, or has not yet joined */
	if (member->session == session)
	{
		member->busy = busy;
		change_pools(member, 0, busy ? 1 : -1);
	}
	locks_release(LOCK_POOLS, 0);
}

/* What a pool has counted up to now. */
static void
copy_pool(PoolCounts *copy, const Pool *pool, int64 now)
{
	*copy = pool->counted;
	copy->time += now - pool->began;
}

/*
 * Keep a snapshot of all pools, whose sessions have just been accumulated.
 */
void
pools_take_snapshots(SnapshotLevels levels)
{
	int64		now = clock_now();

	locks_acquire(LOCK_POOLS, 0, LW_EXCLUSIVE);
	for (int level = 0; level < SNAPSHOT_LEVELS; level++)
	{
		int			place = snapshots_place(&shared->times, level);

		for (int i = 0; (levels & (1u << level)) && i < shared->count; i++)
		{
			copy_pool(&pools[i].kept[place], &pools[i], now);
			pools[i].kept[place].sessions_max = pools[i].counted.sessions;
		}
	}
	snapshots_date(&shared->times, levels, now);
	locks_release(LOCK_POOLS, 0);
}

/* ---------------------------------------------------------------------------
 * Reading
 * ---------------------------------------------------------------------------
 */

/* Is anybody there to see who is busy? */
bool
pools_are_sampled(void)
{
	return shared->sampled_to != 0;
}

/* What a pool has counted since a snapshot, instead of all it has. */
static void
subtract(PoolCounts *copy, const PoolCounts *before)
{
	copy->time -= before->time;
	/* unless it began in the window */
	if (before->time > 0)
		copy->since = GetCurrentTimestamp() - copy->time / NS_PER_US;
	copy->busy_time -= before->busy_time;
	copy->sessions_max = before->sessions_max;
	concurrency_sum(&copy->distribution, &before->distribution, -1);
	copy->busy_max = Max(concurrency_quantile(&copy->distribution, 1000, copy->busy_max), 0);
}

/*
 * A palloc'd copy of all pools, over a window that contains the last "length"
 * nanoseconds if there is one, or else the longest there is; or, with POOLS_WHOLE,
 * over all their time.
 */
PoolCounts *
pools_copy(int64 length, int *count)
{
	PoolCounts *copies = palloc((FIRST + pgnetlat_max_pools) * sizeof(PoolCounts));
	int64		now;
	int			place;

	*count = 0;
	locks_acquire(LOCK_POOLS, 0, LW_SHARED);
	now = clock_now();
	place = snapshots_begin_window(&shared->times, now - length);
	for (int i = 0; i < shared->count; i++)
	{
		PoolCounts *copy = &copies[*count];

		copy_pool(copy, &pools[i], now);
		if (i == EVICTED && copy->sessions_max == 0)
			continue;
		if (length != POOLS_WHOLE)
			subtract(copy, &pools[i].kept[place]);
		(*count)++;
	}
	locks_release(LOCK_POOLS, 0);
	return copies;
}

/*
 * Put back a saved pool, in which nobody is connected any more.  What was counted
 * before is older than any window.
 */
void
pools_restore(const PoolCounts *saved)
{
	int			number = saved->kind == POOL_OF_ALL ? ALL : EVICTED;
	Pool	   *pool;

	locks_acquire(LOCK_POOLS, 0, LW_EXCLUSIVE);
	if (saved->kind == POOL_OF_ROLE)
		number = find_pool(saved->datid, saved->userid, saved->since);
	pool = &pools[number];
	if (number == EVICTED)
		add_up(&pool->counted, saved);
	else
		pool->counted = *saved;
	pool->counted.sessions = pool->counted.busy = 0;
	for (int i = 0; i < SNAPSHOTS_KEPT; i++)
	{
		pool->kept[i] = pool->counted;
		pool->kept[i].sessions_max = 0;
	}
	locks_release(LOCK_POOLS, 0);
}
