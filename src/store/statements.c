/*-------------------------------------------------------------------------
 *
 * statements.c
 *	  See statements.h.
 *
 * When the table is full the least used entries are removed, and their
 * counters added to one that has no key, so that the sums stay true.
 *
 * An entry is found, made, evicted and read under the lock of its partition.  To
 * add to it takes the entry's own lock, and no other if its key is still there:
 * who makes an entry or evicts one changes the key under that lock.  Sessions that
 * use many statements add to these one by one; with the partitions' locks they
 * would meet each other, and these cost more than the additions.
 *
 * Windows begin with snapshots, as those over client groups do (clients.c).  A
 * statement that was not there then had counted nothing: its snapshot is zero.  What was
 * restored is older than any window.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "clock.h"
#include "port/atomics.h"
#include "settings.h"
#include "statements.h"
#include "storage/s_lock.h"
#include "table.h"
#include "utils/timestamp.h"

StaticAssertDecl(sizeof(StatementKey) == 2 * sizeof(Oid) + sizeof(uint64),
				 "StatementKey must not have padding: it is compared as bytes");

StaticAssertDecl(sizeof(SharedStatement) == MAXALIGN(sizeof(SharedStatement)),
				 "a table has its entries one behind the other, aligned");

/* What each partition has besides, under its lock. */
typedef struct StatementsPartition
{
	StatementEntry evicted;		/* must be first; its key stays zero */
	SnapshotTimes times;		/* of its statements' snapshots */
} StatementsPartition;

/*
 * Its lock is held for so short a time that waiting for it rarely takes more than
 * a few tries.
 */
static void
lock_entry(SharedStatement *shared)
{
	SpinDelayStatus delay;

	if (likely(pg_atomic_test_set_flag(&shared->busy)))
		return;
	init_local_spin_delay(&delay);
	while (!pg_atomic_test_set_flag(&shared->busy))
		perform_spin_delay(&delay);
	finish_spin_delay(&delay);
}

static inline void
unlock_entry(SharedStatement *shared)
{
	pg_atomic_clear_flag(&shared->busy);
}

/* How often to make room for an entry that others have taken then. */
#define MAX_TRIES		3

/* "own" begins with the row of what was evicted of a partition. */
static void
add_up_evicted(void *own, const void *evicted)
{
	StatementEntry *sum = own;
	const StatementEntry *entry = evicted;

	statements_totals_add(&sum->counters.totals, &entry->counters.totals);
	exec_split_add(&sum->counters.split, &entry->counters.split);
	if (entry->since != 0 && (sum->since == 0 || entry->since < sum->since))
		sum->since = entry->since;
}

/* The entry's lock is held. */
static void
count_usage(SharedStatement *shared)
{
	int64		calls = shared->entry.counters.totals.calls;

	shared->entry.usage += calls - shared->calls_in_usage;
	shared->calls_in_usage = calls;
}

static void
refresh_usage(void *entry)
{
	lock_entry(entry);
	count_usage(entry);
	unlock_entry(entry);
}

static void
init_entry(void *entry)
{
	pg_atomic_init_flag(&((SharedStatement *) entry)->busy);
}

static void
make_entry(void *entry, const void *key)
{
	SharedStatement *shared = entry;

	lock_entry(shared);
	memset(&shared->entry, 0, sizeof(shared->entry));
	memset(shared->kept, 0, sizeof(shared->kept));
	shared->calls_in_usage = 0;
	shared->entry.key = *(const StatementKey *) key;
	unlock_entry(shared);
}

static void
evict_entry(void *own, const void *entry)
{
	SharedStatement *shared = (SharedStatement *) entry;

	lock_entry(shared);
	add_up_evicted(own, &shared->entry);
	memset(&shared->entry.key, 0, sizeof(shared->entry.key));
	unlock_entry(shared);
}

static const TableSpec spec = {
	.name = "pgnetlat statements",
	.lock = LOCK_STATEMENTS,
	.key_size = sizeof(StatementKey),
	.entry_size = sizeof(SharedStatement),
	.usage_offset = offsetof(StatementEntry, usage),
	.since_offset = offsetof(StatementEntry, since),
	.own_size = sizeof(StatementsPartition),
	.evict = evict_entry,
	.refresh = refresh_usage,
	.init = init_entry,
	.make = make_entry,
};

static Table table;

SharedStatement *statements_entries = NULL;

Size
statements_shmem_size(void)
{
	return table_shmem_size(&spec, pgnetlat_max_statements);
}

void
statements_shmem_init(void)
{
	table_shmem_init(&table, &spec, pgnetlat_max_statements);
	statements_entries = (SharedStatement *) table.entries;
}

static inline bool
is_zero(const StatementTotals *totals)
{
	static const StatementTotals zero;

	return totals->calls == 0 && memcmp(totals, &zero, sizeof(zero)) == 0;
}

/* ---------------------------------------------------------------------------
 * Adding a batch
 * ---------------------------------------------------------------------------
 */

typedef struct Batch
{
	const CountedStatement *counted;
	int			count;
	Oid			dbid;
	int32	   *where;			/* as in known.h */
	TimestampTz now;
	uint32		hash[STATEMENTS_BATCH]; /* of those that are left */
} Batch;

static inline uint64
bit(int number)
{
	return UINT64CONST(1) << number;
}

static inline StatementKey
key_of(const Batch *batch, int number)
{
	StatementKey key;

	key.userid = batch->counted[number].userid;
	key.dbid = batch->dbid;
	key.queryid = batch->counted[number].queryid;
	return key;
}

/*
 * Add what is in entries that are known.  Returns which are left.
 */
static uint64
add_to_known(const Batch *batch)
{
	uint64		left = 0;

	for (int i = 0; i < batch->count; i++)
	{
		int32		where = batch->where[i];

		if (is_zero(&batch->counted[i].totals))
			continue;
		if (!known_is_in_table(where) ||
			unlikely(!statements_add_in_place(&batch->counted[i], &batch->dbid, where, NULL)))
			left |= bit(i);
	}
	return left;
}

/* Add to an entry that has been looked up, and note its place. */
static inline void
add_to_found(const Batch *batch, int number, SharedStatement *shared)
{
	const StatementTotals *totals = &batch->counted[number].totals;

	lock_entry(shared);
	statements_totals_add(&shared->entry.counters.totals, totals);
	/* what is never called to its end is in use, too */
	if (totals->calls == 0)
		shared->entry.usage += 1;
	unlock_entry(shared);
	batch->where[number] = statements_where(shared);
}

static inline bool
same_partition(const Batch *batch, int a, int b)
{
	return table_partition_of(&table, batch->hash[a]) == table_partition_of(&table, batch->hash[b]);
}

/*
 * Of the statements from the first on whose bits are set in "left", add those of
 * the first one's partition, whose lock is held.  Returns what is left then,
 * with those for which there was no room among them, unless "anyway": then
 * they are added to what was evicted.
 */
static uint64
add_to_partition(const Batch *batch, int first, uint64 left, bool anyway)
{
	for (int i = first; i < batch->count; i++)
	{
		StatementKey key;
		SharedStatement *shared;

		if (!(left & bit(i)) || !same_partition(batch, i, first))
			continue;
		key = key_of(batch, i);
		shared = table_find_or_add(&table, batch->hash[i], &key, batch->now);
		if (likely(shared != NULL))
			add_to_found(batch, i, shared);
		else if (anyway)
		{
			StatementEntry *own = table_own(&table, batch->hash[i]);

			statements_totals_add(&own->counters.totals, &batch->counted[i].totals);
			if (own->since == 0)
				own->since = batch->now;
			table_count_evicted(&table, batch->hash[i]);
		}
		else
			continue;
		left &= ~bit(i);
	}
	return left;
}

/*
 * Look up those that are left, and add to their entries.  Returns which are left
 * after that, if the caller does not want to wait for locks.
 */
static uint64
look_up_and_add(const Batch *batch, uint64 left, bool if_free)
{
	for (int first = 0; first < batch->count; first++)
	{
		uint32		hash = batch->hash[first];

		/* others may be quicker to take what was made free: do not insist */
		for (int try = 0; left & bit(first); try++)
		{
			bool		last_try = try == MAX_TRIES ||
				(try > 0 && !if_free && !table_make_room(&table, true));

			/* without waiting, there is room or there is not */
			if (try > 0 && if_free)
				break;
			if (!if_free)
				table_lock(&table, hash);
			else if (!table_lock_if_free(&table, hash))
				break;
			left = add_to_partition(batch, first, left, last_try);
			table_unlock(&table, hash);
		}
	}
	return left;
}

/*
 * Add what was counted of some statements, at most STATEMENTS_BATCH of them, in a
 * database.  "where" has where their entries were before, as far as that is known,
 * and afterwards where they are.  "if_free": only as far as that takes no waiting for
 * locks.  Returns which are left, as bits.  No lock is held while
 * another one is waited for.
 */
uint64
statements_accumulate(const CountedStatement *counted, int count, Oid dbid, int32 *where,
					  bool if_free)
{
	Batch		batch;
	uint64		left;

	Assert(count <= STATEMENTS_BATCH);
	batch.counted = counted;
	batch.count = count;
	batch.dbid = dbid;
	batch.where = where;
	left = add_to_known(&batch);
	if (left == 0)
		return 0;

	batch.now = GetCurrentTimestamp();
	for (int i = 0; i < count; i++)
	{
		StatementKey key = key_of(&batch, i);

		batch.hash[i] = statements_hash(&key);
	}
	return look_up_and_add(&batch, left, if_free);
}

/*
 * Make room for so many statements, as far as that takes no waiting, while no lock
 * is held.  False if there is that much already, or there is none to be made.
 */
bool
statements_make_room(int count)
{
	bool		made = false;

	while (pgnetlat_max_statements - table_entries(&table) < count &&
		   table_make_room(&table, false))
		made = true;
	return made;
}

/*
 * Statements are about to be accumulated, which may make room, by a process that
 * holds the locks of sessions meanwhile.
 */
void
statements_prepare(int count)
{
	if (pgnetlat_max_statements - table_entries(&table) < count)
		table_map(&table);
}

/*
 * Add what was sampled of a statement, as far as it fits into its execution.
 */
void
statements_add_samples(const StatementKey *key, const int64 *part)
{
	uint32		hash = statements_hash(key);
	SharedStatement *shared;

	table_lock(&table, hash);
	shared = table_find(&table, hash, key);
	if (shared)
	{
		StatementCounters *counters = &shared->entry.counters;

		lock_entry(shared);
		for (int i = 0; i < NUM_EXEC_PARTS; i++)
			exec_split_book(&counters->split, counters->totals.exec, i, part[i]);
		unlock_entry(shared);
	}
	table_unlock(&table, hash);
}

/* ---------------------------------------------------------------------------
 * Snapshots
 * ---------------------------------------------------------------------------
 */

static void
take_snapshot_of_entry(void *entry, void *own, void *arg)
{
	SharedStatement *shared = entry;
	const SnapshotTimes *times = &((StatementsPartition *) own)->times;
	SnapshotLevels levels = *(SnapshotLevels *) arg;

	lock_entry(shared);
	for (int level = 0; level < SNAPSHOT_LEVELS; level++)
	{
		if (levels & (1u << level))
			shared->kept[snapshots_place(times, level)] = shared->entry.counters.totals;
	}
	unlock_entry(shared);
}

/* The partition's snapshots are as of now. */
static void
date_snapshots(void *own, void *arg)
{
	SnapshotTimes *times = &((StatementsPartition *) own)->times;
	SnapshotLevels levels = *(SnapshotLevels *) arg;
	int64		now = clock_now();

	for (int level = 0; level < SNAPSHOT_LEVELS; level++)
	{
		if (levels & (1u << level))
			times->at[snapshots_place(times, level)] = now;
	}
}

/*
 * Keep a snapshot of all statements, into which all sessions have just been
 * accumulated.
 */
void
statements_take_snapshots(SnapshotLevels levels)
{
	static const TableVisitor visitor = {
		.entry = take_snapshot_of_entry,
		.own = date_snapshots,
	};

	table_visit(&table, LW_EXCLUSIVE, &visitor, &levels);
}

/* What to copy of each statement. */
typedef struct WindowReading
{
	int64		length;
	int64		now;			/* monotonic, and ... */
	TimestampTz timestamp;		/* ... the same moment */
} WindowReading;

static void
copy_window(void *copy, const void *entry, const void *own, void *arg)
{
	StatementWindow *window = copy;
	SharedStatement *shared = (SharedStatement *) entry;
	const WindowReading *reading = arg;
	const SnapshotTimes *times = &((const StatementsPartition *) own)->times;
	int			found = snapshots_find(times, reading->now - reading->length);

	/* where there is none as old as that, the oldest, or all that was counted */
	if (found < 0)
		found = snapshots_oldest(times);
	lock_entry(shared);
	window->key = shared->entry.key;
	window->totals = shared->entry.counters.totals;
	statements_totals_subtract(&window->totals, &shared->kept[found]);
	window->since = shared->entry.since;
	unlock_entry(shared);
	if (times->at[found] != 0)
		window->since = Max(window->since, reading->timestamp -
							(reading->now - times->at[found]) / NS_PER_US);
}

/*
 * A palloc'd copy of all statements, without those that were evicted, over the
 * window that clients_copy_window() has for that length.
 */
StatementWindow *
statements_copy_window(int64 length, int *count)
{
	static const TableReader window_reader = {
		.copy_size = sizeof(StatementWindow),
		.copy = copy_window,
	};
	WindowReading reading = {length, clock_now(), GetCurrentTimestamp()};

	return table_copy(&table, &window_reader, &reading, count);
}

/*
 * Put back a saved entry.  Where there is no room it goes to the evicted.
 */
void
statements_restore(const StatementEntry *saved)
{
	static const StatementKey none;
	uint32		hash = statements_hash(&saved->key);
	SharedStatement *shared = NULL;

	table_lock(&table, hash);
	if (memcmp(&saved->key, &none, sizeof(none)) != 0)
		shared = table_find_or_add(&table, hash, &saved->key, saved->since);
	if (shared)
	{
		lock_entry(shared);
		shared->entry = *saved;
		shared->calls_in_usage = saved->counters.totals.calls;
		for (int i = 0; i < SNAPSHOTS_KEPT; i++)
			shared->kept[i] = saved->counters.totals;
		unlock_entry(shared);
	}
	else
		add_up_evicted(table_own(&table, hash), saved);
	table_unlock(&table, hash);
}

void
statements_reset(void)
{
	table_clear(&table);
}

void
statements_counts(int64 *entries, int64 *evicted)
{
	*entries = table_entries(&table);
	*evicted = table_evicted(&table);
}

/*
 * All that was executed is about to be shown, and what is not sampled by now
 * stays so.  The entry's lock is held; but what was evicted others may be reading,
 * in shared mode, too: they all write the same.
 */
static void
show(const StatementEntry *entry)
{
	exec_split_show((ExecSplit *) &entry->counters.split, entry->counters.totals.exec);
}

static void
copy_entry(void *copy, const void *entry, const void *own, void *arg)
{
	SharedStatement *shared = (SharedStatement *) entry;

	lock_entry(shared);
	show(&shared->entry);
	count_usage(shared);
	memcpy(copy, &shared->entry, sizeof(StatementEntry));
	unlock_entry(shared);
}

static void
read_evicted(const void *own, void *sum)
{
	show(own);
	add_up_evicted(sum, own);
}

static void
forget_evicted(void *sum)
{
	memset(sum, 0, sizeof(StatementEntry));
}

static const TableReader reader = {
	.copy_size = sizeof(StatementEntry),
	.copy = copy_entry,
	.own = read_evicted,
	.restart = forget_evicted,
	.extra = 1,
};

/*
 * A palloc'd copy of all entries; the one of evicted entries (all zero key), if
 * there is any, is the last.
 */
StatementEntry *
statements_copy(int *count)
{
	StatementEntry evicted;
	StatementEntry *copies = table_copy(&table, &reader, &evicted, count);

	if (evicted.since != 0)
		copies[(*count)++] = evicted;
	return copies;
}
