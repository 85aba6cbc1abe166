/*-------------------------------------------------------------------------
 *
 * statements.c
 *	  See statements.h.
 *
 * When the table is full the least used entries are removed, and their
 * counters added to one that has no key, so that the sums stay true.
 *
 * Windows begin with snapshots, as those over client groups do (clients.c), but
 * these are of what tells repeated statements only, in few bits.  A statement
 * that was not there then had counted nothing: its snapshot is zero.  What was
 * restored is older than any window.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "clock.h"
#include "settings.h"
#include "statements.h"
#include "table.h"

StaticAssertDecl(sizeof(StatementKey) == 2 * sizeof(Oid) + sizeof(uint64),
				 "StatementKey must not have padding: it is compared as bytes");

/* What of a batch is added in one go: the bits of a word. */
#define BATCH_STEP		64

/* How often to make room for an entry that others have taken then. */
#define MAX_TRIES		3

/*
 * A snapshot keeps the last 32 bits of counts, and of times in units: enough
 * for some weeks of a statement that a thousand sessions execute all the time.
 */
#define SNAPSHOT_UNIT_NS	(INT64CONST(1) << 20)

typedef struct StatementSnapshot
{
	uint32		calls;
	uint32		repeats;
	uint32		repeat_network; /* units, as what follows */
	uint32		client;
	uint32		in_xact_wait;
	uint32		time;
} StatementSnapshot;

/* An entry of the table. */
typedef struct StatementPlace
{
	StatementEntry entry;		/* must be first, as its key is in it */
	StatementSnapshot kept[SNAPSHOTS_KEPT];
} StatementPlace;

/* What each partition has besides, under its lock. */
typedef struct StatementsPartition
{
	StatementEntry evicted;		/* must be first; its key stays zero */
	SnapshotTimes times;		/* of its statements' snapshots */
} StatementsPartition;

static void
totals_add(StatementTotals *sum, const StatementTotals *term)
{
	sum->calls += term->calls;
	sum->rows += term->rows;
	sum->exec += term->exec;
	sum->send += term->send;
	sum->recv += term->recv;
	sum->network += term->network;
	sum->client += term->client;
	sum->in_xact_wait += term->in_xact_wait;
	sum->bytes += term->bytes;
	sum->repeats += term->repeats;
	sum->repeat_network += term->repeat_network;
}

/* "own" begins with the row of what was evicted of a partition. */
static void
add_up_evicted(void *own, const void *evicted)
{
	StatementEntry *sum = own;
	const StatementEntry *entry = evicted;

	totals_add(&sum->counters.totals, &entry->counters.totals);
	exec_split_add(&sum->counters.split, &entry->counters.split);
	if (entry->since != 0 && (sum->since == 0 || entry->since < sum->since))
		sum->since = entry->since;
}

static const TableSpec spec = {
	.name = "pgnetlat statements",
	.lock = LOCK_STATEMENTS,
	.key_size = sizeof(StatementKey),
	.entry_size = sizeof(StatementPlace),
	.usage_offset = offsetof(StatementEntry, usage),
	.since_offset = offsetof(StatementEntry, since),
	.own_size = sizeof(StatementsPartition),
	.evict = add_up_evicted,
};

static Table table;

Size
statements_shmem_size(void)
{
	return table_shmem_size(&spec, pgnetlat_max_statements);
}

void
statements_shmem_init(void)
{
	table_shmem_init(&table, &spec, pgnetlat_max_statements);
}

static void
add_to_entry(StatementEntry *entry, const StatementTotals *delta, TimestampTz now)
{
	totals_add(&entry->counters.totals, delta);
	entry->usage += Max(delta->calls, 1);
	if (entry->since == 0)
		entry->since = now;
}

static inline bool
same_partition(const StatementBatchItem *a, const StatementBatchItem *b)
{
	return table_partition_of(&table, a->hash) == table_partition_of(&table, b->hash);
}

/*
 * Of the items from the first on whose bits are set in "left", add those of
 * the first one's partition, whose lock is held.  Returns what is left then,
 * with those for which there was no room among them, unless "anyway": then
 * they are added to what was evicted.
 */
static uint64
add_to_partition(const StatementBatchItem *items, int first, int count, uint64 left,
				 bool anyway, TimestampTz now)
{
	uint32		hash = items[first].hash;

	for (int i = first; i < count; i++)
	{
		const StatementBatchItem *item = &items[i];
		StatementEntry *entry;

		if (!(left & UINT64CONST(1) << i) || !same_partition(item, &items[first]))
			continue;
		entry = table_find_or_add(&table, item->hash, &item->key, now);
		if (unlikely(entry == NULL && anyway))
		{
			entry = table_own(&table, hash);
			table_count_evicted(&table, hash);
		}
		if (likely(entry != NULL))
		{
			add_to_entry(entry, &item->delta, now);
			left &= ~(UINT64CONST(1) << i);
		}
	}
	return left;
}

static inline uint64
all_of(int count)
{
	return count == BATCH_STEP ? ~UINT64CONST(0) : (UINT64CONST(1) << count) - 1;
}

/*
 * Add items, at most BATCH_STEP of them.  Returns which are left, if the caller
 * does not want to wait for locks.
 */
static uint64
add_step(const StatementBatchItem *items, int count, TimestampTz now, bool wait)
{
	uint64		left = all_of(count);

	for (int first = 0; first < count; first++)
	{
		uint32		hash = items[first].hash;

		/* others may be quicker to take what was made free: do not insist */
		for (int try = 0; left & UINT64CONST(1) << first; try++)
		{
			bool		last_try = try == MAX_TRIES ||
				(try > 0 && !table_make_room(&table, wait));

			if (last_try && !wait)
				break;
			if (wait)
				table_lock(&table, hash);
			else if (!table_lock_if_free(&table, hash))
				break;
			left = add_to_partition(items, first, count, left, last_try, now);
			table_unlock(&table, hash);
		}
	}
	return left;
}

/*
 * Add to the counters of some statements.  No lock is held while another one
 * is waited for.
 */
void
statements_accumulate(const StatementBatchItem *items, int count, TimestampTz now)
{
	for (int i = 0; i < count; i += BATCH_STEP)
		(void) add_step(items + i, Min(count - i, BATCH_STEP), now, true);
}

/*
 * The same, but only as far as that takes no waiting.  What is left is moved to
 * the front; returns how many items that is.
 */
int
statements_accumulate_if_free(StatementBatchItem *items, int count, TimestampTz now)
{
	int			kept = 0;

	for (int i = 0; i < count; i += BATCH_STEP)
	{
		int			step = Min(count - i, BATCH_STEP);
		uint64		left = add_step(items + i, step, now, false);

		for (int j = 0; left != 0; j++, left >>= 1)
		{
			if (left & 1)
				items[kept++] = items[i + j];
		}
	}
	return kept;
}

/*
 * Add what was sampled of a statement, as far as it fits into its execution.
 */
void
statements_add_samples(const StatementKey *key, const int64 *part)
{
	uint32		hash = statements_hash(key);
	StatementEntry *entry;

	table_lock(&table, hash);
	entry = table_find(&table, hash, key);
	for (int i = 0; entry && i < NUM_EXEC_PARTS; i++)
		exec_split_book(&entry->counters.split, entry->counters.totals.exec, i, part[i]);
	table_unlock(&table, hash);
}

/* ---------------------------------------------------------------------------
 * Snapshots
 * ---------------------------------------------------------------------------
 */

static inline uint32
units(int64 time)
{
	return (uint32) (time / SNAPSHOT_UNIT_NS);
}

/* All that a statement cost: its executions, and the waits after them. */
static inline int64
time_of(const StatementTotals *totals)
{
	return totals->exec + totals->send + totals->recv + totals->network + totals->client;
}

static void
take_snapshot(StatementSnapshot *snapshot, const StatementTotals *totals)
{
	snapshot->calls = (uint32) totals->calls;
	snapshot->repeats = (uint32) totals->repeats;
	snapshot->repeat_network = units(totals->repeat_network);
	snapshot->client = units(totals->client);
	snapshot->in_xact_wait = units(totals->in_xact_wait);
	snapshot->time = units(time_of(totals));
}

static void
take_snapshot_of_entry(void *entry, void *own, void *arg)
{
	StatementPlace *place = entry;
	const SnapshotTimes *times = &((StatementsPartition *) own)->times;
	SnapshotLevels levels = *(SnapshotLevels *) arg;

	for (int level = 0; level < SNAPSHOT_LEVELS; level++)
	{
		if (levels & (1u << level))
			take_snapshot(&place->kept[snapshots_place(times, level)],
						  &place->entry.counters.totals);
	}
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

static inline int64
time_since(int64 now, uint32 before)
{
	return (int64) (uint32) (units(now) - before) * SNAPSHOT_UNIT_NS;
}

/* "arg" is the moment that the window must contain all since. */
static void
copy_window(void *copy, const void *entry, const void *own, void *arg)
{
	StatementWindow *window = copy;
	const StatementPlace *place = entry;
	const StatementTotals *totals = &place->entry.counters.totals;
	const SnapshotTimes *times = &((const StatementsPartition *) own)->times;
	int			found = snapshots_find(times, *(int64 *) arg);
	const StatementSnapshot *before;

	/* where there is none as old as that, the oldest, or all that was counted */
	if (found < 0)
		found = snapshots_oldest(times);
	before = &place->kept[found];
	window->key = place->entry.key;
	window->calls = (uint32) ((uint32) totals->calls - before->calls);
	window->repeats = (uint32) ((uint32) totals->repeats - before->repeats);
	window->repeat_network = time_since(totals->repeat_network, before->repeat_network);
	window->client = time_since(totals->client, before->client);
	window->in_xact_wait = time_since(totals->in_xact_wait, before->in_xact_wait);
	window->time = time_since(time_of(totals), before->time);
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
	int64		since = clock_now() - length;

	return table_copy(&table, &window_reader, &since, count);
}

/*
 * Put back a saved entry.  Where there is no room it goes to the evicted.
 */
void
statements_restore(const StatementEntry *saved)
{
	static const StatementKey none;
	uint32		hash = statements_hash(&saved->key);
	StatementPlace *place = NULL;

	table_lock(&table, hash);
	if (memcmp(&saved->key, &none, sizeof(none)) != 0)
		place = table_find_or_add(&table, hash, &saved->key, saved->since);
	if (place)
	{
		place->entry = *saved;
		for (int i = 0; i < SNAPSHOTS_KEPT; i++)
			take_snapshot(&place->kept[i], &saved->counters.totals);
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
 * stays so.  Of a row that others may be reading, in shared mode, too: they
 * all write the same.
 */
static void
show(const StatementEntry *entry)
{
	exec_split_show((ExecSplit *) &entry->counters.split, entry->counters.totals.exec);
}

static void
copy_entry(void *copy, const void *entry, const void *own, void *arg)
{
	show(entry);
	memcpy(copy, entry, sizeof(StatementEntry));
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
