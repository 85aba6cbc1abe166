/*-------------------------------------------------------------------------
 *
 * table.c
 *	  Bounded hash tables in shared memory.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "clock.h"
#include "compat.h"
#include "segment.h"
#include "table.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/* Few enough to scan in some ten microseconds. */
#define PARTITION_ENTRIES	512

/* Entries evicted at a time: a twentieth, but no more than EVICTED_AT_ONCE. */
#define EVICTED_FRACTION	20
#define EVICTED_AT_ONCE		32
#define EVICTION_AGING		0.99	/* factor of usage at each eviction */

/* Room in a copy for entries that are added while it is made. */
#define ROOM_TO_SPARE		16

/* Size of a partition's entry in ShmemIndex, which must have room for all. */
#define SHMEM_INDEX_ENTRY	128

static Table *all_tables = NULL;

/* The number of partitions, and so of locks, of a table. */
int
table_partitions(int capacity)
{
	return Max((capacity + PARTITION_ENTRIES / 2) / PARTITION_ENTRIES, 1);
}

static int
partition_capacity(int capacity)
{
	return capacity / table_partitions(capacity);
}

/* The size of an entry with the snapshots of its counters. */
static Size
whole_size(const TableSpec *spec)
{
	return MAXALIGN(spec->entry_size) + (Size) SNAPSHOTS_KEPT * spec->counters_size;
}

static int64 *
snapshot_of(const TableSpec *spec, const void *entry, int place)
{
	return (int64 *) ((char *) entry + MAXALIGN(spec->entry_size) + place * spec->counters_size);
}

static int64 *
counters_of(const TableSpec *spec, const void *entry)
{
	return (int64 *) ((char *) entry + spec->counters_offset);
}

static TimestampTz *
since_of(const TableSpec *spec, const void *entry)
{
	return (TimestampTz *) ((char *) entry + spec->since_offset);
}

static Size
own_size(const TableSpec *spec)
{
	return CACHELINEALIGN(MAXALIGN(sizeof(TablePartition)) +
						  spec->evicted_rows * whole_size(spec));
}

Size
table_shmem_size(const TableSpec *spec, int capacity)
{
	Size		size = hash_estimate_size(partition_capacity(capacity), whole_size(spec));

	size = add_size(size, own_size(spec) + SHMEM_INDEX_ENTRY);
	return mul_size(table_partitions(capacity), size);
}

static TablePartition *
partition_get(const Table *table, int number)
{
	return (TablePartition *) (table->own + number * own_size(table->spec));
}

/* One of a partition's evicted rows. */
static void *
row_get(const Table *table, int number, int row)
{
	return (char *) partition_get(table, number) + MAXALIGN(sizeof(TablePartition)) +
		row * whole_size(table->spec);
}

/* Nothing has been counted, and all snapshots are as of now. */
static void
begin_own(const Table *table, int number)
{
	TablePartition *partition = partition_get(table, number);

	memset(partition, 0, own_size(table->spec));
	for (int i = 0; i < SNAPSHOTS_KEPT; i++)
		partition->times.at[i] = clock_now();
}

static HTAB *
init_partition(const TableSpec *spec, int number, int capacity)
{
	char		name[NAMEDATALEN];
	HASHCTL		info = {
		.keysize = spec->key_size,
		.entrysize = whole_size(spec),
		.hash = spec->hash
	};

	snprintf(name, sizeof(name), "%s %d", spec->name, number);
	return compat_shmem_hash(name, capacity, &info, HASH_ELEM | HASH_FIXED_SIZE |
							 (spec->hash ? HASH_FUNCTION : HASH_BLOBS));
}

void
table_shmem_init(Table *table, const TableSpec *spec, int capacity)
{
	/* after a crash, shared memory is set up anew, but the list has the table */
	if (table->spec == NULL)
	{
		table->next = all_tables;
		all_tables = table;
	}
	table->spec = spec;
	table->partitions = table_partitions(capacity);
	table->partition_capacity = partition_capacity(capacity);
	table->own = segment_create(spec->name, mul_size(table->partitions, own_size(spec)));
	table->entries = MemoryContextAlloc(TopMemoryContext, table->partitions * sizeof(HTAB *));
	for (int i = 0; i < table->partitions; i++)
	{
		table->entries[i] = init_partition(spec, i, table->partition_capacity);
		begin_own(table, i);
	}
}

/* ---------------------------------------------------------------------------
 * Entries
 * ---------------------------------------------------------------------------
 */

/*
 * Choose the evicted row for an entry, among rows that are "distance" bytes
 * apart, and begin to use it.
 */
static void *
choose_row(const TableSpec *spec, char *rows, Size distance, const void *entry)
{
	char	   *row = rows;
	char	   *last = rows + (spec->evicted_rows - 1) * distance;

	while (row < last && !spec->belongs(row, entry))
		row += distance;
	if (*since_of(spec, row) == 0 && spec->begin_row)
		spec->begin_row(row, row < last ? entry : NULL);
	return row;
}

static void
add_counters(int64 *sum, const int64 *term, Size size)
{
	for (Size i = 0; i < size / sizeof(int64); i++)
		sum[i] += term[i];
}

/*
 * Evict the least used entries of a partition, and age the others' usage.
 * Returns false if none may be evicted.
 */
static bool
evict_some(Table *table, int number)
{
	const TableSpec *spec = table->spec;
	HTAB	   *entries = table->entries[number];
	char	   *least[EVICTED_AT_ONCE]; /* the least used first */
	int			wanted = table->partition_capacity / EVICTED_FRACTION;
	int			found = 0;
	HASH_SEQ_STATUS scan;
	char	   *entry;

	wanted = Max(Min(wanted, EVICTED_AT_ONCE), 1);
	hash_seq_init(&scan, entries);
	while ((entry = hash_seq_search(&scan)) != NULL)
	{
		double	   *usage = (double *) (entry + spec->usage_offset);
		int			place;

		*usage *= EVICTION_AGING;
		if (spec->may_go && !spec->may_go(entry))
			continue;
		if (found < wanted)
			place = found++;
		else if (*usage < *(double *) (least[wanted - 1] + spec->usage_offset))
			place = wanted - 1;
		else
			continue;
		for (; place > 0 && *usage < *(double *) (least[place - 1] + spec->usage_offset); place--)
			least[place] = least[place - 1];
		least[place] = entry;
	}
	for (int i = 0; i < found; i++)
	{
		void	   *row = choose_row(spec, row_get(table, number, 0), whole_size(spec), least[i]);

		spec->add(row, least[i]);
		add_counters(snapshot_of(spec, row, 0), snapshot_of(spec, least[i], 0),
					 (Size) SNAPSHOTS_KEPT * spec->counters_size);
		(void) hash_search(entries, least[i], HASH_REMOVE, NULL);
	}
	partition_get(table, number)->evicted += found;
	return found > 0;
}

static inline void *
find_entry(const Table *table, uint32 hash, const void *key)
{
	return hash_search_with_hash_value(table->entries[table_partition_of(table, hash)],
									   key, hash, HASH_FIND, NULL);
}

/* Make a new entry: see table_find_or_add(). */
static pg_noinline void *
add_new_entry(Table *table, uint32 hash, const void *key, TimestampTz now)
{
	int			number = table_partition_of(table, hash);
	HTAB	   *entries = table->entries[number];
	Size		key_size = table->spec->key_size;
	char	   *entry;

	if (hash_get_num_entries(entries) >= table->partition_capacity &&
		!evict_some(table, number))
		return NULL;
	entry = hash_search_with_hash_value(entries, key, hash, HASH_ENTER_NULL, NULL);
	if (entry == NULL)
		return NULL;
	memset(entry + key_size, 0, whole_size(table->spec) - key_size);
	*since_of(table->spec, entry) = now;
	return entry;
}

/*
 * Find the entry of a key, or make one, which is zero except for its key and
 * "since".  Returns NULL if the partition is full of entries that must stay.
 */
void *
table_find_or_add(Table *table, uint32 hash, const void *key, TimestampTz now)
{
	void	   *entry = find_entry(table, hash, key);

	return likely(entry != NULL) ? entry : add_new_entry(table, hash, key, now);
}

/*
 * The evicted row for an entry without room, used since "now" if it was not in
 * use.
 */
void *
table_evicted_row(const Table *table, uint32 hash, const void *entry, TimestampTz now)
{
	void	   *row = choose_row(table->spec, row_get(table, table_partition_of(table, hash), 0),
								 whole_size(table->spec), entry);

	if (*since_of(table->spec, row) == 0)
		*since_of(table->spec, row) = now;
	return row;
}

/* Count an entry that found no room, because none could be evicted. */
void
table_count_evicted(Table *table, uint32 hash)
{
	partition_get(table, table_partition_of(table, hash))->evicted++;
}

/* Make a new entry or, if there is no room, use the evicted row. */
static pg_noinline void *
enter_new(Table *table, uint32 hash, const void *key, TimestampTz now)
{
	void	   *entry = add_new_entry(table, hash, key, now);

	if (entry != NULL)
		return entry;
	table_count_evicted(table, hash);
	return table_evicted_row(table, hash, key, now);
}

/*
 * Find or make the entry of a key; if there is no room, use the evicted row.
 */
void *
table_enter(Table *table, uint32 hash, const void *key, TimestampTz now)
{
	void	   *entry = find_entry(table, hash, key);

	return likely(entry != NULL) ? entry : enter_new(table, hash, key, now);
}

/*
 * Put back a saved entry or evicted row.  An entry without room is added to
 * its evicted row.
 */
void
table_restore(Table *table, const void *saved, bool is_evicted)
{
	const TableSpec *spec = table->spec;
	uint32		hash = table_hash(table, saved);
	TimestampTz since = *since_of(spec, saved);
	void	   *entry = NULL;

	table_lock(table, hash);
	if (!is_evicted)
		entry = table_find_or_add(table, hash, saved, since);
	if (entry)
		memcpy(entry, saved, spec->entry_size);
	else
	{
		entry = table_evicted_row(table, hash, saved, since);
		spec->add(entry, saved);
	}
	for (int i = 0; i < SNAPSHOTS_KEPT; i++)
		memcpy(snapshot_of(spec, entry, i), counters_of(spec, entry), spec->counters_size);
	table_unlock(table, hash);
}

/* ---------------------------------------------------------------------------
 * All entries
 * ---------------------------------------------------------------------------
 */

/* Forget all entries and evicted rows. */
static void
clear(Table *table)
{
	for (int i = 0; i < table->partitions; i++)
	{
		HASH_SEQ_STATUS scan;
		void	   *entry;

		locks_acquire(table->spec->lock, i, LW_EXCLUSIVE);
		hash_seq_init(&scan, table->entries[i]);
		while ((entry = hash_seq_search(&scan)) != NULL)
			(void) hash_search(table->entries[i], entry, HASH_REMOVE, NULL);
		begin_own(table, i);
		locks_release(table->spec->lock, i);
	}
}

void
tables_clear(void)
{
	for (Table *table = all_tables; table; table = table->next)
		clear(table);
}

int64
table_entries(const Table *table)
{
	int64		count = 0;

	for (int i = 0; i < table->partitions; i++)
		count += hash_get_num_entries(table->entries[i]);
	return count;
}

/*
 * The number of entries that were evicted or found no room since the latest
 * reset.
 */
int64
table_evicted(const Table *table)
{
	int64		evicted = 0;

	for (int i = 0; i < table->partitions; i++)
	{
		locks_acquire(table->spec->lock, i, LW_SHARED);
		evicted += partition_get(table, i)->evicted;
		locks_release(table->spec->lock, i);
	}
	return evicted;
}

/* Call "visit" for all entries and evicted rows, which it may change. */
void
table_visit(const Table *table, void (*visit) (void *entry, void *arg), void *arg)
{
	for (int i = 0; i < table->partitions; i++)
	{
		HASH_SEQ_STATUS scan;
		void	   *entry;

		locks_acquire(table->spec->lock, i, LW_EXCLUSIVE);
		hash_seq_init(&scan, table->entries[i]);
		while ((entry = hash_seq_search(&scan)) != NULL)
			visit(entry, arg);
		for (int row = 0; row < table->spec->evicted_rows; row++)
		{
			entry = row_get(table, i, row);
			if (*since_of(table->spec, entry) != 0)
				visit(entry, arg);
		}
		locks_release(table->spec->lock, i);
	}
}

/* Set an entry's counters and their snapshots to zero. */
void
table_forget(const Table *table, void *entry)
{
	const TableSpec *spec = table->spec;

	memset(counters_of(spec, entry), 0, spec->counters_size);
	memset(snapshot_of(spec, entry, 0), 0, (Size) SNAPSHOTS_KEPT * spec->counters_size);
}

static void
take_snapshot(const TableSpec *spec, const SnapshotTimes *times, void *entry,
			  SnapshotLevels levels)
{
	for (int level = 0; level < SNAPSHOT_LEVELS; level++)
	{
		if (levels & (1u << level))
			memcpy(snapshot_of(spec, entry, snapshots_place(times, level)),
				   counters_of(spec, entry), spec->counters_size);
	}
}

/* Keep a snapshot of all counters, as of now. */
static void
take_snapshots(const Table *table, SnapshotLevels levels)
{
	for (int i = 0; i < table->partitions; i++)
	{
		SnapshotTimes *times = &partition_get(table, i)->times;
		HASH_SEQ_STATUS scan;
		void	   *entry;

		locks_acquire(table->spec->lock, i, LW_EXCLUSIVE);
		hash_seq_init(&scan, table->entries[i]);
		while ((entry = hash_seq_search(&scan)) != NULL)
			take_snapshot(table->spec, times, entry, levels);
		for (int row = 0; row < table->spec->evicted_rows; row++)
			take_snapshot(table->spec, times, row_get(table, i, row), levels);
		snapshots_date(times, levels, clock_now());
		locks_release(table->spec->lock, i);
	}
}

void
tables_take_snapshots(SnapshotLevels levels)
{
	for (Table *table = all_tables; table; table = table->next)
	{
		if (table->spec->counters_size > 0)
			take_snapshots(table, levels);
	}
}

/*
 * Copy an entry.  If there is a snapshot ("place" is not negative), which is
 * as of "begin", the copy has only what was counted since then.
 */
static void
copy_entry(const TableSpec *spec, void *copy, const void *entry, int place, TimestampTz begin)
{
	const int64 *before = snapshot_of(spec, entry, Max(place, 0));
	int64	   *counters = counters_of(spec, copy);

	memcpy(copy, entry, spec->entry_size);
	if (place < 0)
		return;
	*since_of(spec, copy) = Max(*since_of(spec, copy), begin);
	for (Size i = 0; i < spec->counters_size / sizeof(int64); i++)
		counters[i] -= before[i];
}

/* Copy a partition's entries, and add its evicted rows to "rows". */
static void
copy_partition(const Table *table, int number, int64 length, char *copies, int *count,
			   char *rows, char *buffer)
{
	const TableSpec *spec = table->spec;
	const SnapshotTimes *times = &partition_get(table, number)->times;
	int64		now = clock_now();
	int			place = length > 0 ? snapshots_begin_window(times, now - length) : -1;
	TimestampTz begin = place >= 0 ?
		GetCurrentTimestamp() - (now - times->at[place]) / NS_PER_US : 0;
	HASH_SEQ_STATUS scan;
	void	   *entry;

	hash_seq_init(&scan, table->entries[number]);
	while ((entry = hash_seq_search(&scan)) != NULL)
		copy_entry(spec, copies + (Size) (*count)++ * spec->entry_size, entry, place, begin);
	for (int row = 0; row < spec->evicted_rows; row++)
	{
		entry = row_get(table, number, row);
		if (*since_of(spec, entry) == 0)
			continue;
		copy_entry(spec, buffer, entry, place, begin);

		/* the order of the evicted rows may differ between partitions */
		spec->add(choose_row(spec, rows, spec->entry_size, buffer), buffer);
	}
}

/*
 * A palloc'd copy of all entries, with the evicted rows last.  *count is set
 * to their number.  The counters are those of a window that contains the last
 * "length" nanoseconds if there is one, else of the longest there is; if
 * "length" is 0, of all time.  The copy's "since" is when the window began, or
 * when the entry was made if that was later.
 */
void *
table_copy(const Table *table, int64 length, int *count)
{
	const TableSpec *spec = table->spec;
	Size		room = table_entries(table) + spec->evicted_rows + ROOM_TO_SPARE;
	char	   *copies = palloc_extended(mul_size(room, spec->entry_size), MCXT_ALLOC_HUGE);
	char	   *rows = palloc0(spec->evicted_rows * spec->entry_size);
	char	   *buffer = palloc(spec->entry_size);

	*count = 0;
	/* a reset, which clears one partition after the other, must wait */
	locks_acquire(LOCK_RESET, 0, LW_SHARED);
	for (int i = 0; i < table->partitions; i++)
	{
		Size		needed;

		locks_acquire(spec->lock, i, LW_SHARED);
		needed = *count + hash_get_num_entries(table->entries[i]) + spec->evicted_rows;
		if (likely(needed <= room))
			copy_partition(table, i, length, copies, count, rows, buffer);
		locks_release(spec->lock, i);
		if (unlikely(needed > room))
		{
			/* entries were added; nobody must wait for memory to be allocated */
			room = needed + needed / 4 + ROOM_TO_SPARE;
			copies = repalloc_huge(copies, mul_size(room, spec->entry_size));
			i--;
		}
	}
	locks_release(LOCK_RESET, 0);
	for (int row = 0; row < spec->evicted_rows; row++)
	{
		if (*since_of(spec, rows + row * spec->entry_size) != 0)
			memcpy(copies + (Size) (*count)++ * spec->entry_size, rows + row * spec->entry_size,
				   spec->entry_size);
	}
	pfree(rows);
	pfree(buffer);
	return copies;
}
