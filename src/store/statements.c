/*-------------------------------------------------------------------------
 *
 * statements.c
 *	  See statements.h.
 *
 * What was counted of statements that were evicted is in one row per partition,
 * which has no key; readers add these up.
 *
 * A window is what was counted since a snapshot of the totals, as in clients.c.
 * A statement that was not there when the snapshots were taken had counted
 * nothing: its snapshots are zero.  What was saved by an earlier server is in all
 * snapshots: it is older than any window.
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
#include "utils/timestamp.h"

StaticAssertDecl(sizeof(StatementKey) == 2 * sizeof(Oid) + sizeof(uint64),
				 "StatementKey must not have padding: it is compared as bytes");

/* An entry in shared memory. */
typedef struct SharedStatement
{
	StatementEntry entry;		/* must be first */
	StatementTotals kept[SNAPSHOTS_KEPT];
} SharedStatement;

/* What each partition has besides, under its lock. */
typedef struct StatementsPartition
{
	StatementEntry evicted;		/* must be first; its key stays zero */
	SnapshotTimes times;		/* of its statements' snapshots */
} StatementsPartition;

static void
add_entry(StatementEntry *sum, const StatementEntry *term)
{
	statements_totals_add(&sum->counters.totals, &term->counters.totals);
	for (int i = 0; i < NUM_EXEC_PARTS; i++)
		sum->counters.exec_part[i] += term->counters.exec_part[i];
	if (term->since != 0 && (sum->since == 0 || term->since < sum->since))
		sum->since = term->since;
}

/* "own" begins with the row of what was evicted of a partition. */
static void
evict_entry(void *own, const void *entry)
{
	add_entry(own, entry);
}

/* Query identifiers are hashes already, but those of others than core may not be. */
static inline uint32
hash_key(const StatementKey *key)
{
	uint64		hash = (key->queryid ^ ((uint64) key->dbid << 32 | key->userid)) *
		UINT64CONST(0x9E3779B97F4A7C15);

	return (uint32) ((hash ^ (hash >> 29)) * UINT64CONST(0xBF58476D1CE4E5B9) >> 32);
}

static uint32
hash_statement(const void *key, Size size)
{
	return hash_key(key);
}

/* Nothing has been counted: snapshots of that are as of now. */
static void
begin_snapshots(void *own)
{
	for (int i = 0; i < SNAPSHOTS_KEPT; i++)
		((StatementsPartition *) own)->times.at[i] = clock_now();
}

static const TableSpec spec = {
	.name = "pgnetlat statements",
	.lock = LOCK_STATEMENTS,
	.key_size = sizeof(StatementKey),
	.entry_size = sizeof(SharedStatement),
	.usage_offset = offsetof(StatementEntry, usage),
	.since_offset = offsetof(StatementEntry, since),
	.own_size = sizeof(StatementsPartition),
	.hash = hash_statement,
	.evict = evict_entry,
	.begin = begin_snapshots,
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

/* ---------------------------------------------------------------------------
 * Adding
 * ---------------------------------------------------------------------------
 */

static bool
is_zero(const StatementTotals *totals)
{
	static const StatementTotals zero;

	return totals->calls == 0 && memcmp(totals, &zero, sizeof(zero)) == 0;
}

/* The entry of a key, made if need be, or that of evicted statements. */
static StatementEntry *
find_entry(const StatementKey *key, uint32 hash, TimestampTz now)
{
	StatementEntry *entry = table_find_or_add(&table, hash, key, now);

	if (likely(entry != NULL))
		return entry;
	table_count_evicted(&table, hash);
	entry = table_own(&table, hash);
	if (entry->since == 0)
		entry->since = now;
	return entry;
}

/* Samples may come before the execution that they are of: it may be there by now. */
static void
book_early(StatementEntry *entry)
{
	int64		early = 0;

	for (int i = 0; i < NUM_EXEC_PARTS; i++)
		early |= entry->early[i];
	if (likely(early == 0))
		return;
	for (int i = 0; i < NUM_EXEC_PARTS; i++)
		entry->early[i] -= exec_parts_book(entry->counters.exec_part,
										   entry->counters.totals.exec, i, entry->early[i]);
}

/* The lists into which a batch is sorted, by partition. */
#define BATCH_LISTS		16

/*
 * Add what a session has counted of some statements in a database, at most
 * STATEMENTS_BATCH of them; those of a partition, mostly, under its lock once.
 */
void
statements_accumulate(const CountedStatement *counted, int count, Oid dbid)
{
	StatementKey keys[STATEMENTS_BATCH];
	uint32		hashes[STATEMENTS_BATCH];
	int			next[STATEMENTS_BATCH];
	int			first[BATCH_LISTS];
	TimestampTz now = GetCurrentTimestamp();

	Assert(count <= STATEMENTS_BATCH);
	memset(first, -1, sizeof(first));
	for (int i = 0; i < count; i++)
	{
		int		   *list;

		if (is_zero(&counted[i].totals))
			continue;
		keys[i].userid = counted[i].userid;
		keys[i].dbid = dbid;
		keys[i].queryid = counted[i].queryid;
		hashes[i] = hash_key(&keys[i]);
		list = &first[table_partition_of(&table, hashes[i]) % BATCH_LISTS];
		next[i] = *list;
		*list = i;
	}
	for (int list = 0; list < BATCH_LISTS; list++)
	{
		int			locked = -1;

		for (int i = first[list]; i >= 0; i = next[i])
		{
			StatementEntry *entry;

			if (locked < 0 || table_partition_of(&table, hashes[i]) !=
				table_partition_of(&table, hashes[locked]))
			{
				if (locked >= 0)
					table_unlock(&table, hashes[locked]);
				table_lock(&table, hashes[i]);
				locked = i;
			}
			entry = find_entry(&keys[i], hashes[i], now);
			/* what is never called to its end is in use, too */
			entry->usage += Max(counted[i].totals.calls, 1);
			statements_totals_add(&entry->counters.totals, &counted[i].totals);
			book_early(entry);
		}
		if (locked >= 0)
			table_unlock(&table, hashes[locked]);
	}
}

/*
 * Add what was sampled of a statement, and so much of its execution in progress.
 */
void
statements_add_sampled(const StatementKey *key, int64 exec, const int64 *part)
{
	uint32		hash = hash_key(key);
	StatementEntry *entry;

	locks_acquire(LOCK_RESET, 0, LW_SHARED);
	table_lock(&table, hash);
	entry = find_entry(key, hash, GetCurrentTimestamp());
	entry->counters.totals.exec += exec;
	for (int i = 0; i < NUM_EXEC_PARTS; i++)
		entry->early[i] += part[i];
	book_early(entry);
	table_unlock(&table, hash);
	locks_release(LOCK_RESET, 0);
}

/*
 * Put back a saved entry.  Where there is no room it goes to the evicted.
 */
void
statements_restore(const StatementEntry *saved)
{
	static const StatementKey none;
	uint32		hash = hash_key(&saved->key);
	SharedStatement *shared = NULL;

	table_lock(&table, hash);
	if (memcmp(&saved->key, &none, sizeof(none)) != 0)
		shared = table_find_or_add(&table, hash, &saved->key, saved->since);
	if (shared)
	{
		shared->entry = *saved;
		for (int i = 0; i < SNAPSHOTS_KEPT; i++)
			shared->kept[i] = saved->counters.totals;
	}
	else
		add_entry(table_own(&table, hash), saved);
	table_unlock(&table, hash);
}

/* ---------------------------------------------------------------------------
 * Reading
 * ---------------------------------------------------------------------------
 */

static void
take_snapshot(void *entry, void *own, void *arg)
{
	SharedStatement *shared = entry;
	const SnapshotTimes *times = &((StatementsPartition *) own)->times;
	SnapshotLevels levels = *(SnapshotLevels *) arg;

	for (int level = 0; level < SNAPSHOT_LEVELS; level++)
	{
		if (levels & (1u << level))
			shared->kept[snapshots_place(times, level)] = shared->entry.counters.totals;
	}
}

static void
date_snapshots(void *own, void *arg)
{
	snapshots_date(&((StatementsPartition *) own)->times, *(SnapshotLevels *) arg, clock_now());
}

/*
 * Keep a snapshot of all statements, into which all sessions have just been
 * accumulated.
 */
void
statements_take_snapshots(SnapshotLevels levels)
{
	static const TableVisitor visitor = {.entry = take_snapshot,.own = date_snapshots};

	table_visit(&table, LW_EXCLUSIVE, &visitor, &levels);
}

typedef struct StatementsReading
{
	int64		length;			/* of the window, ns; 0: all that was counted */
	int64		now;			/* monotonic, and ... */
	TimestampTz timestamp;		/* ... the same moment */
	StatementEntry evicted;		/* of all partitions */
} StatementsReading;

static void
copy_statement(void *copy, const void *entry, const void *own, void *arg)
{
	StatementEntry *result = copy;
	const SharedStatement *shared = entry;
	const StatementsReading *reading = arg;
	const SnapshotTimes *times = &((const StatementsPartition *) own)->times;
	int			place;

	*result = shared->entry;
	if (reading->length == 0)
		return;
	place = snapshots_begin_window(times, reading->now - reading->length);
	result->since = Max(result->since, reading->timestamp -
						(reading->now - times->at[place]) / NS_PER_US);
	for (size_t i = 0; i < sizeof(StatementTotals) / sizeof(int64); i++)
		((int64 *) &result->counters.totals)[i] -= ((const int64 *) &shared->kept[place])[i];
}

static void
read_evicted(const void *own, void *arg)
{
	add_entry(&((StatementsReading *) arg)->evicted, own);
}

/*
 * A palloc'd copy of all entries with the totals over the window that
 * clients_copy_window() has for that length; of evicted entries there is none.
 */
StatementEntry *
statements_copy_window(int64 length, int *count)
{
	static const TableReader reader = {
		.copy_size = sizeof(StatementEntry),
		.copy = copy_statement,
		.own = read_evicted,
		.extra = 1,
	};
	StatementsReading reading = {
		.length = length,
		.now = clock_now(),
		.timestamp = GetCurrentTimestamp()
	};
	StatementEntry *copies = table_copy(&table, &reader, &reading, count);

	if (length == 0 && reading.evicted.since != 0)
		copies[(*count)++] = reading.evicted;
	return copies;
}

/* The same of all that was counted, evicted entries (all zero key) as the last one. */
StatementEntry *
statements_copy(int *count)
{
	return statements_copy_window(0, count);
}
