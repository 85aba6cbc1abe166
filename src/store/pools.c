/*-------------------------------------------------------------------------
 *
 * pools.c
 *	  See pools.h.
 *
 * Sessions join their pool, and that of all sessions, when they begin, and
 * leave them when they end: these two know how many are connected, to the
 * session.  A pool that has sessions stays where it is, so each slot remembers
 * its place.  When the table is full, pools without sessions that were busy for
 * the least time are evicted.  What they have counted goes to a row for all of
 * them, as far as it can be added up: distributions of different sessions
 * cannot.  Where all pools have sessions, those of further ones are counted in
 * that row, too.
 *
 * The sampler writes the distributions, under the partition's lock, which it
 * takes once for all changes of a tick.  What changes at a tick is dated to the
 * tick before it, and a level is booked when it ends; so levels between the
 * changes of one tick last for no time, and leave no trace, not even a maximum.
 * Readers add to their copy the level that lasts, up to the latest tick: while
 * the sampler is down, no time is added.
 *
 * Windows begin with snapshots, as those over client groups do: all that can be
 * subtracted is kept, and for the maxima what they have been since then.  In a
 * snapshot a distribution has the last 32 bits of each weight, in units.  A
 * window is so much shorter than what these last for that it does not matter
 * how old the snapshot is: weights only grow while the sampler takes new ones.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "clock.h"
#include "pools.h"
#include "port/atomics.h"
#include "session_slot.h"
#include "settings.h"
#include "storage/shmem.h"
#include "table.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

StaticAssertDecl(sizeof(PoolKey) == 2 * sizeof(Oid), "PoolKey is hashed as bytes");

/* Of weights in snapshots. */
#define SNAPSHOT_UNIT_NS	4096

/* How often to make room for a pool that others have taken then. */
#define MAX_TRIES			3

/* What pools and evicted ones have, zero at first.  Moments are monotonic. */
typedef struct PoolCounters
{
	TimestampTz since;			/* 0: there is none */
	int64		began;			/* the server's start, if it was before that */
	int64		time_before;	/* ns in which the server was up before that */
	pg_atomic_uint64 busy_time; /* ns, from accounts */
	int32		sessions;
	int32		sessions_max;
	int32		busy;			/* at the latest tick */
	int32		busy_max;

	/* what snapshots keep, and the greatest since then */
	int64		kept_busy_time[SNAPSHOTS_KEPT];
	int32		kept_sessions_max[SNAPSHOTS_KEPT];
	int32		kept_busy_max[SNAPSHOTS_KEPT];
} PoolCounters;

typedef struct PoolEntry
{
	PoolKey		key;			/* must be first */
	double		usage;
	PoolCounters counters;
	int64		booked_to;		/* since then the level is counters.busy */
	Concurrency distribution;
	uint32		kept[SNAPSHOTS_KEPT][CONCURRENCY_BUCKETS];	/* units */
} PoolEntry;

/* What each partition has besides, under its lock. */
typedef struct PoolsPartition
{
	SnapshotTimes times;		/* of its pools' snapshots */
	PoolCounters evicted;		/* pools that were, and sessions without one */
} PoolsPartition;

/* A slot's session; written under the lock of its pool's partition. */
typedef struct PoolMember
{
	uint64		session;		/* 0: none */
	PoolKey		key;
	uint32		hash;			/* of that */
	PoolEntry  *pool;			/* NULL: there was no room */
	PoolCounters *counters;		/* of the pool, or else of evicted ones */
} PoolMember;

typedef struct PoolsShared
{
	pg_atomic_uint64 known;		/* what is busy is known up to this tick */
	volatile bool sampled;		/* there is a sampler */
	PoolEntry  *all;			/* the pool of all sessions; stays */
	PoolMember	members[FLEXIBLE_ARRAY_MEMBER];
} PoolsShared;

/* What the sampler has found at a tick: a session is or is not busy any more. */
typedef struct PoolChange
{
	int			slot;
	bool		busy;
	uint64		session;
} PoolChange;

static PoolsShared *shared = NULL;
static uint8 *seen = NULL;
static Table table;

const volatile uint8 *pools_seen = NULL;

/* the sampler's own */
static PoolChange *changes = NULL;
static int	change_count = 0;

static const PoolKey all_key = {0};

/* ---------------------------------------------------------------------------
 * Time at a level
 * ---------------------------------------------------------------------------
 */

static void
raise_to(int32 *maximum, int32 *kept, int32 value)
{
	*maximum = Max(*maximum, value);
	for (int i = 0; i < SNAPSHOTS_KEPT; i++)
		kept[i] = Max(kept[i], value);
}

/* The level has lasted up to then. */
static void
book(PoolEntry *pool, int64 to)
{
	int64		time = to - pool->booked_to;
	int32		level = Max(pool->counters.busy, 0);

	if (time <= 0)
		return;
	concurrency_add(&pool->distribution, level, time);
	pool->usage += level * (time / (double) NS_PER_S);
	pool->booked_to = to;
	raise_to(&pool->counters.busy_max, pool->counters.kept_busy_max, level);
}

/* There are so many more or fewer busy since then; "pool" is as in PoolMember. */
static void
change_level(PoolEntry *pool, PoolCounters *counters, int by, int64 since)
{
	if (pool)
		book(pool, since);
	counters->busy += by;
	if (pool == NULL)
		raise_to(&counters->busy_max, counters->kept_busy_max, counters->busy);
}

/* ---------------------------------------------------------------------------
 * The table
 * ---------------------------------------------------------------------------
 */

/* Sums only; see above. */
static void
add_up_evicted(void *own, const void *evicted)
{
	PoolCounters *sum = &((PoolsPartition *) own)->evicted;
	const PoolCounters *term = &((const PoolEntry *) evicted)->counters;

	if (sum->since == 0 || term->since < sum->since)
	{
		sum->since = term->since;
		sum->began = term->began;
		sum->time_before = term->time_before;
	}
	pg_atomic_fetch_add_u64(&sum->busy_time,
							pg_atomic_read_u64(unconstify(pg_atomic_uint64 *, &term->busy_time)));
	sum->sessions_max = Max(sum->sessions_max, term->sessions_max);
	sum->busy_max = Max(sum->busy_max, term->busy_max);
	for (int i = 0; i < SNAPSHOTS_KEPT; i++)
	{
		sum->kept_busy_time[i] += term->kept_busy_time[i];
		sum->kept_sessions_max[i] = Max(sum->kept_sessions_max[i], term->kept_sessions_max[i]);
		sum->kept_busy_max[i] = Max(sum->kept_busy_max[i], term->kept_busy_max[i]);
	}
}

static bool
may_be_evicted(const void *entry)
{
	const PoolEntry *pool = entry;

	return pool->counters.sessions == 0 && OidIsValid(pool->key.datid);
}

static const TableSpec spec = {
	.name = "pgnetlat pools",
	.lock = LOCK_POOLS,
	.key_size = sizeof(PoolKey),
	.entry_size = sizeof(PoolEntry),
	.usage_offset = offsetof(PoolEntry, usage),
	.since_offset = offsetof(PoolEntry, counters.since),
	.own_size = sizeof(PoolsPartition),
	.may_go = may_be_evicted,
	.evict = add_up_evicted,
};

/* One more for all sessions. */
static int
capacity(void)
{
	return pgnetlat_max_pools + 1;
}

static Size
shared_size(void)
{
	return add_size(offsetof(PoolsShared, members),
					mul_size(slot_count(), sizeof(PoolMember)));
}

Size
pools_shmem_size(void)
{
	return add_size(add_size(MAXALIGN(shared_size()), MAXALIGN(slot_count())),
					table_shmem_size(&spec, capacity()));
}

int
pools_partitions(void)
{
	return table_partitions(capacity());
}

void
pools_shmem_init(void)
{
	bool		found;

	shared = ShmemInitStruct("pgnetlat pools control", shared_size(), &found);
	if (!found)
	{
		memset(shared, 0, shared_size());
		pg_atomic_init_u64(&shared->known, 0);
	}
	pools_seen = seen = ShmemInitStruct("pgnetlat pools seen", slot_count(), &found);
	if (!found)
		memset(seen, 0, slot_count());
	table_shmem_init(&table, &spec, capacity());
}

static uint32
hash_of(const PoolKey *key)
{
	return chains_hash(key->datid, key->userid);
}

/* Counting begins, if it has not yet; the partition is locked. */
static void
begin(PoolCounters *counters, TimestampTz since)
{
	if (counters->began != 0)
		return;
	counters->since = since;
	counters->began = clock_now();
	pg_atomic_init_u64(&counters->busy_time, 0);
}

/*
 * The pool of a key, its partition locked; NULL if there is no room for it.
 */
static PoolEntry *
lock_pool(const PoolKey *key, uint32 hash, TimestampTz since)
{
	for (int try = 0;; try++)
	{
		PoolEntry  *pool;

		table_lock(&table, hash);
		pool = table_find_or_add(&table, hash, key, since);
		if (pool && pool->booked_to == 0)
		{
			begin(&pool->counters, since);
			pool->booked_to = pool->counters.began;
		}
		if (pool || try == MAX_TRIES)
			return pool;
		table_unlock(&table, hash);
		if (!table_make_room(&table, true))
			try = MAX_TRIES - 1;
	}
}

/* That of all sessions, of which there must be one before any session joins. */
static PoolEntry *
lock_all(TimestampTz since)
{
	return shared->all = lock_pool(&all_key, hash_of(&all_key), since);
}

static void
unlock_all(void)
{
	table_unlock(&table, hash_of(&all_key));
}

/* ---------------------------------------------------------------------------
 * Sessions
 * ---------------------------------------------------------------------------
 */

static void
count_session(PoolCounters *counters)
{
	counters->sessions++;
	raise_to(&counters->sessions_max, counters->kept_sessions_max, counters->sessions);
}

/* The session of a slot that has a key joins that pool. */
static void
join(int slot, TimestampTz now)
{
	PoolMember *member = &shared->members[slot];

	count_session(&lock_all(now)->counters);
	if (seen[slot])
		shared->all->counters.busy++;
	unlock_all();
	member->pool = lock_pool(&member->key, member->hash, now);
	if (member->pool)
		member->counters = &member->pool->counters;
	else
	{
		member->counters = &((PoolsPartition *) table_own(&table, member->hash))->evicted;
		table_count_evicted(&table, member->hash);
		begin(member->counters, now);
	}
	count_session(member->counters);
	if (seen[slot])
		member->counters->busy++;
	table_unlock(&table, member->hash);
}

void
pools_join(int slot, uint64 session, Oid datid, Oid userid)
{
	PoolMember *member = &shared->members[slot];

	seen[slot] = false;
	member->key.datid = datid;
	member->key.userid = userid;
	member->hash = hash_of(&member->key);
	join(slot, GetCurrentTimestamp());
	/* for the sampler, behind the barrier of a lock */
	member->session = session;
}

/*
 * If it was busy, it is not since the latest tick.
 */
void
pools_leave(int slot)
{
	PoolMember *member = &shared->members[slot];
	int64		known = pg_atomic_read_u64(&shared->known);
	bool		was_busy;

	if (member->session == 0)
		return;
	table_lock(&table, member->hash);
	member->session = 0;
	was_busy = seen[slot];
	seen[slot] = false;
	change_level(member->pool, member->counters, -was_busy, known);
	member->counters->sessions--;
	table_unlock(&table, member->hash);

	change_level(lock_all(0), &shared->all->counters, -was_busy, known);
	shared->all->counters.sessions--;
	unlock_all();
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
	pg_atomic_fetch_add_u64(&member->counters->busy_time, time);
	pg_atomic_fetch_add_u64(&shared->all->counters.busy_time, time);
}

/*
 * Forget what was counted; sessions stay, and what they were last seen doing.
 * Nobody joins, leaves or changes a level meanwhile.
 */
void
pools_reset(TimestampTz now)
{
	table_clear(&table);
	for (int i = 0; i < slot_count(); i++)
	{
		if (shared->members[i].session != 0)
			join(i, now);
	}
	(void) lock_all(now);
	unlock_all();
}

/* ---------------------------------------------------------------------------
 * Sampling
 * ---------------------------------------------------------------------------
 */

static void
begin_sampling(void *entry, void *own, void *arg)
{
	PoolEntry  *pool = entry;

	book(pool, pg_atomic_read_u64(&shared->known));
	pool->booked_to = *(int64 *) arg;
	pool->counters.busy = 0;
}

static void
begin_sampling_evicted(void *own, void *arg)
{
	((PoolsPartition *) own)->evicted.busy = 0;
}

/*
 * What was busy while there was no sampler, is not known; nor, before it looks,
 * what is.
 */
void
pools_sampler_starts(void)
{
	static const TableVisitor visitor = {
		.entry = begin_sampling,
		.own = begin_sampling_evicted,
	};
	int64		now = clock_now();

	changes = MemoryContextAlloc(TopMemoryContext, slot_count() * sizeof(PoolChange));
	change_count = 0;
	locks_acquire(LOCK_RESET, 0, LW_EXCLUSIVE);
	(void) lock_all(GetCurrentTimestamp());
	unlock_all();
	table_visit(&table, LW_EXCLUSIVE, &visitor, &now);
	memset(seen, false, slot_count());
	pg_atomic_write_u64(&shared->known, now);
	locks_release(LOCK_RESET, 0);
	shared->sampled = true;
}

void
pools_sampler_ends(void)
{
	shared->sampled = false;
}

/* A session, which was looked at in this tick, has become busy or is not any more. */
void
pools_change(int slot, uint64 session, bool busy)
{
	PoolChange *change;

	if (change_count == slot_count())
		return;
	change = &changes[change_count++];
	change->slot = slot;
	change->session = session;
	change->busy = busy;
}

/*
 * In the pool of that hash, which is locked; by how much it changes the number of
 * all.
 */
static int
make_change(const PoolChange *change, uint32 hash, int64 since)
{
	PoolMember *member = &shared->members[change->slot];
	int			by = change->busy ? 1 : -1;

	/* it has ended since it was looked at, or has not yet joined; ... */
	if (*(volatile uint64 *) &member->session != change->session)
		return 0;
	/* ... or it joined another pool after the hash was read */
	pg_read_barrier();
	if (member->hash != hash || seen[change->slot] == change->busy)
		return 0;
	seen[change->slot] = change->busy;
	change_level(member->pool, member->counters, by, since);
	return by;
}

/*
 * Make the changes of a tick.  Returns by how much that changes the number of
 * all.
 */
static int
make_changes(int64 since)
{
	int			locked = -1;	/* a partition */
	int			by = 0;

	for (int i = 0; i < change_count; i++)
	{
		uint32		hash = shared->members[changes[i].slot].hash;
		int			partition = table_partition_of(&table, hash);

		if (partition != locked)
		{
			if (locked >= 0)
				locks_release(LOCK_POOLS, locked);
			locks_acquire(LOCK_POOLS, partition, LW_EXCLUSIVE);
			locked = partition;
		}
		by += make_change(&changes[i], hash, since);
	}
	locks_release(LOCK_POOLS, locked);
	return by;
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
		int			by;

		locks_acquire(LOCK_RESET, 0, LW_SHARED);
		by = make_changes(before);
		change_level(lock_all(0), &shared->all->counters, by, before);
		unlock_all();
		locks_release(LOCK_RESET, 0);
		change_count = 0;
	}
	pg_atomic_write_u64(&shared->known, now);
}

/* ---------------------------------------------------------------------------
 * Snapshots
 * ---------------------------------------------------------------------------
 */

static void
take_snapshot_of_counters(PoolCounters *counters, int place)
{
	counters->kept_busy_time[place] = pg_atomic_read_u64(&counters->busy_time);
	counters->kept_sessions_max[place] = counters->sessions;
	counters->kept_busy_max[place] = counters->busy;
}

static void
take_snapshot(void *entry, void *own, void *arg)
{
	PoolEntry  *pool = entry;
	const SnapshotTimes *times = &((PoolsPartition *) own)->times;
	SnapshotLevels levels = *(SnapshotLevels *) arg;

	book(pool, pg_atomic_read_u64(&shared->known));
	for (int level = 0; level < SNAPSHOT_LEVELS; level++)
	{
		int			place = snapshots_place(times, level);

		if (!(levels & (1u << level)))
			continue;
		take_snapshot_of_counters(&pool->counters, place);
		for (int i = 0; i < CONCURRENCY_BUCKETS; i++)
			pool->kept[place][i] = (uint32) (pool->distribution.weight[i] / SNAPSHOT_UNIT_NS);
	}
}

/* The last one of a partition, whose snapshots then are as of now. */
static void
take_snapshot_of_evicted(void *own, void *arg)
{
	PoolsPartition *partition = own;
	SnapshotLevels levels = *(SnapshotLevels *) arg;

	for (int level = 0; level < SNAPSHOT_LEVELS; level++)
	{
		int			place = snapshots_place(&partition->times, level);

		if (!(levels & (1u << level)))
			continue;
		take_snapshot_of_counters(&partition->evicted, place);
		partition->times.at[place] = clock_now();
	}
}

/*
 * Keep a snapshot of all pools, whose sessions have just been accumulated.
 */
void
pools_take_snapshots(SnapshotLevels levels)
{
	static const TableVisitor visitor = {
		.entry = take_snapshot,
		.own = take_snapshot_of_evicted,
	};

	table_visit(&table, LW_EXCLUSIVE, &visitor, &levels);
}

/* ---------------------------------------------------------------------------
 * Reading
 * ---------------------------------------------------------------------------
 */

typedef struct PoolsReading
{
	bool		windowed;
	int64		length;			/* of the window, ns */
	int64		now;			/* monotonic, and ... */
	TimestampTz timestamp;		/* ... the same moment */
	PoolCopy	evicted;		/* of all partitions */
} PoolsReading;

/* The snapshot with which the window begins; -1: there is no window. */
static int
place_of_start(const PoolsPartition *partition, const PoolsReading *reading)
{
	int			place;

	if (!reading->windowed)
		return -1;
	place = snapshots_find(&partition->times, reading->now - reading->length);
	/* where there is none as old as that, the oldest, or all since the start */
	return place >= 0 ? place : snapshots_oldest(&partition->times);
}

static void
copy_counters(PoolCopy *copy, const PoolCounters *counters, const PoolsPartition *partition,
			  const PoolsReading *reading)
{
	int			place = place_of_start(partition, reading);

	copy->since = counters->since;
	copy->time = counters->time_before + reading->now - counters->began;
	copy->busy_time =
		pg_atomic_read_u64(unconstify(pg_atomic_uint64 *, &counters->busy_time));
	copy->sessions = counters->sessions;
	copy->sessions_max = counters->sessions_max;
	copy->busy = Max(counters->busy, 0);
	copy->busy_max = counters->busy_max;
	if (place < 0)
		return;
	copy->time = reading->now - Max(partition->times.at[place], counters->began);
	/* unless the pool came in the window */
	if (partition->times.at[place] > counters->began || counters->time_before > 0)
		copy->since = reading->timestamp - copy->time / NS_PER_US;
	copy->busy_time -= counters->kept_busy_time[place];
	copy->sessions_max = counters->kept_sessions_max[place];
	copy->busy_max = counters->kept_busy_max[place];
}

/* The level that lasts is in the copy up to the latest tick. */
static void
copy_distribution(PoolCopy *copy, const PoolEntry *pool, int place)
{
	int64		time = (int64) pg_atomic_read_u64(&shared->known) - pool->booked_to;

	copy->distribution = pool->distribution;
	for (int i = 0; place >= 0 && i < CONCURRENCY_BUCKETS; i++)
	{
		uint32		units = (uint32) (pool->distribution.weight[i] / SNAPSHOT_UNIT_NS);

		copy->distribution.weight[i] = (int64) (uint32) (units - pool->kept[place][i]) *
			SNAPSHOT_UNIT_NS;
	}
	if (time <= 0)
		return;
	concurrency_add(&copy->distribution, (int) copy->busy, time);
	copy->busy_max = Max(copy->busy_max, copy->busy);
}

static void
copy_entry(void *target, const void *entry, const void *own, void *arg)
{
	PoolCopy   *copy = target;
	const PoolEntry *pool = entry;

	memset(copy, 0, sizeof(*copy));
	copy->key = pool->key;
	copy->kind = OidIsValid(pool->key.datid) ? POOL_OF_ROLE : POOL_OF_ALL;
	copy->usage = pool->usage;
	copy_counters(copy, &pool->counters, own, arg);
	copy_distribution(copy, pool, place_of_start(own, arg));
}

static void
copy_evicted(const void *own, void *arg)
{
	PoolsReading *reading = arg;
	PoolCopy   *sum = &reading->evicted;
	const PoolsPartition *partition = own;
	PoolCopy	copy;

	if (partition->evicted.since == 0)
		return;
	copy_counters(&copy, &partition->evicted, partition, reading);
	sum->kind = POOL_EVICTED;
	sum->since = sum->since == 0 ? copy.since : Min(sum->since, copy.since);
	sum->time = Max(sum->time, copy.time);
	sum->busy_time += copy.busy_time;
	sum->sessions += copy.sessions;
	sum->sessions_max = Max(sum->sessions_max, copy.sessions_max);
	sum->busy += copy.busy;
	sum->busy_max = Max(sum->busy_max, copy.busy_max);
}

static void
restart(void *arg)
{
	PoolsReading *reading = arg;

	memset(&reading->evicted, 0, sizeof(reading->evicted));
	reading->now = clock_now();
	reading->timestamp = GetCurrentTimestamp();
}

static PoolCopy *
copy_pools(PoolsReading *reading, int *count)
{
	static const TableReader reader = {
		.copy_size = sizeof(PoolCopy),
		.copy = copy_entry,
		.own = copy_evicted,
		.restart = restart,
		.extra = 1,
	};
	PoolCopy   *copies = table_copy(&table, &reader, reading, count);

	if (reading->evicted.kind == POOL_EVICTED)
		copies[(*count)++] = reading->evicted;
	return copies;
}

/* Is anybody there to see who is busy? */
bool
pools_are_sampled(void)
{
	return shared->sampled;
}

/* A palloc'd copy of all pools; that of evicted ones, if there is one, last. */
PoolCopy *
pools_copy(int *count)
{
	PoolsReading reading = {.windowed = false};

	return copy_pools(&reading, count);
}

/*
 * The same over a window that contains the last "length" nanoseconds, if there
 * is one, or else the longest there is.
 */
PoolCopy *
pools_copy_window(int64 length, int *count)
{
	PoolsReading reading = {.windowed = true,.length = length};

	return copy_pools(&reading, count);
}

/* ---------------------------------------------------------------------------
 * Restoring
 * ---------------------------------------------------------------------------
 */

/* What was counted before is older than any window. */
static void
restore_counters(PoolCounters *counters, const PoolCopy *saved)
{
	counters->since = saved->since;
	counters->time_before = saved->time;
	pg_atomic_fetch_add_u64(&counters->busy_time, saved->busy_time);
	counters->sessions_max = Max(counters->sessions_max, (int32) saved->sessions_max);
	counters->busy_max = Max(counters->busy_max, (int32) saved->busy_max);
	for (int i = 0; i < SNAPSHOTS_KEPT; i++)
		counters->kept_busy_time[i] += saved->busy_time;
}

static void
restore_pool(PoolEntry *pool, const PoolCopy *saved)
{
	restore_counters(&pool->counters, saved);
	pool->usage = saved->usage;
	pool->distribution = saved->distribution;
	for (int place = 0; place < SNAPSHOTS_KEPT; place++)
	{
		for (int i = 0; i < CONCURRENCY_BUCKETS; i++)
			pool->kept[place][i] = (uint32) (saved->distribution.weight[i] / SNAPSHOT_UNIT_NS);
	}
}

/*
 * Put back a saved pool.  Where there is no room it goes to the evicted.
 */
void
pools_restore(const PoolCopy *saved)
{
	uint32		hash = hash_of(&saved->key);
	PoolEntry  *pool = NULL;

	if (saved->kind == POOL_OF_ALL)
		pool = lock_all(saved->since);
	else if (saved->kind == POOL_OF_ROLE)
		pool = lock_pool(&saved->key, hash, saved->since);
	else
		table_lock(&table, hash);
	if (pool)
		restore_pool(pool, saved);
	else
	{
		PoolCounters *evicted = &((PoolsPartition *) table_own(&table, hash))->evicted;

		begin(evicted, saved->since);
		restore_counters(evicted, saved);
	}
	table_unlock(&table, hash);
}
