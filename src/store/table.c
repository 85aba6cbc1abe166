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
#include "table.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/* Few enough to scan in some ten microseconds. */
#define PARTITION_ENTRIES	512

/* Entries evicted at a time: a twentieth, but no more than EVICTED_AT_ONCE. */
#define EVICTED_FRACTION	20
#define EVICTED_AT_ONCE		32
#define EVICTION_AGING		0.99	/* factor of usage at each eviction */

/* The part of an entry's kin that is added to the others at a time. */
#define KIN_FRACTION		4

/* In the link of an entry that is not in use, but has been. */
#define IS_FREE				((uint32) 1 << 31)

static Table *all_tables = NULL;

/* The number of partitions, and so of locks, of a table. */
int
table_partitions(int capacity)
{
	return Max((capacity + PARTITION_ENTRIES / 2) / PARTITION_ENTRIES, 1);
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

/*
 * A partition consists of its header, the links of its chains and entries, its
 * evicted rows, and its entries.
 */
static void
lay_out(Table *table, const TableSpec *spec, int capacity)
{
	table->spec = spec;
	table->partitions = table_partitions(capacity);
	table->partition_capacity = capacity / table->partitions;
	table->chains = 1;
	while (table->chains < (uint32) table->partition_capacity)
		table->chains *= 2;
	table->distance = whole_size(spec);
	table->rows_offset = MAXALIGN(sizeof(TablePartition)) +
		MAXALIGN((table->chains + table->partition_capacity) * sizeof(uint32));
	table->entries_offset = table->rows_offset + spec->evicted_rows * table->distance;
	table->partition_size =
		CACHELINEALIGN(table->entries_offset + table->partition_capacity * table->distance);
}

Size
table_shmem_size(const TableSpec *spec, int capacity)
{
	Table		table;

	lay_out(&table, spec, capacity);
	return mul_size(table.partitions, table.partition_size);
}

static TablePartition *
partition_get(const Table *table, int number)
{
	return (TablePartition *) (table->memory + number * table->partition_size);
}

/* One of a partition's evicted rows. */
static void *
row_get(const Table *table, int number, int row)
{
	return (char *) partition_get(table, number) + table->rows_offset +
		row * table->distance;
}

/*
 * The links of a partition: first those that begin its chains, then one for
 * each entry, to the next one of its chain.  A link is an entry's number plus
 * one; zero ends a chain.
 */
static uint32 *
links_get(const Table *table, int number)
{
	return (uint32 *) ((char *) partition_get(table, number) + MAXALIGN(sizeof(TablePartition)));
}

static void *
linked_entry(const Table *table, int number, uint32 link)
{
	return (char *) partition_get(table, number) + table->entries_offset +
		(link - 1) * table->distance;
}

/*
 * The next entry that is in use after the one of this link, which is updated;
 * begin with zero.  NULL if there is none.
 */
static void *
next_entry(const Table *table, int number, uint32 *link)
{
	const uint32 *next = links_get(table, number) + table->chains;

	while (*link < partition_get(table, number)->ever_used)
	{
		if ((next[(*link)++] & IS_FREE) == 0)
			return linked_entry(table, number, *link);
	}
	return NULL;
}

/* Nothing has been counted, and all snapshots are as of now. */
static void
begin_partition(const Table *table, int number)
{
	TablePartition *partition = partition_get(table, number);

	memset(partition, 0, table->entries_offset);
	for (int i = 0; i < SNAPSHOTS_KEPT; i++)
		partition->times.at[i] = clock_now();
}

void
table_shmem_attach(Table *table, const TableSpec *spec, int capacity, void *memory, bool is_new)
{
	/* memory may be set up anew, but then the list has the table */
	if (table->spec == NULL)
	{
		table->next = all_tables;
		all_tables = table;
	}
	lay_out(table, spec, capacity);
	table->memory = memory;
	for (int i = 0; is_new && i < table->partitions; i++)
		begin_partition(table, i);
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

/* The counter of an entry's kin, and of others with the same hash. */
static inline uint16 *
kin_counter(const Table *table, uint32 hash)
{
	return &partition_get(table, table_partition_of(table, hash))->kin[(hash >> 16) % KIN_COUNTERS];
}

/* Take an entry out of its chain; it is free. */
static void
remove_entry(const Table *table, int number, const void *entry)
{
	TablePartition *partition = partition_get(table, number);
	uint32	   *links = links_get(table, number);
	uint32	   *next = links + table->chains;
	uint32		hash = table_hash(table, entry);
	uint32	   *link = &links[hash & (table->chains - 1)];
	uint32		removed;

	while (linked_entry(table, number, *link) != entry)
		link = &next[*link - 1];
	removed = *link;
	*link = next[removed - 1];
	next[removed - 1] = partition->first_free | IS_FREE;
	partition->first_free = removed;
	partition->entries--;
	--*kin_counter(table, hash);
}

/*
 * Find at most "wanted" of the least used entries of a partition that may go,
 * and age the usage of all.  With "others", which is an entry, look only at its
 * kin, without itself.  Returns the number of entries found.
 */
static int
find_least_used(const Table *table, int number, const void *others, int wanted, char **least)
{
	const TableSpec *spec = table->spec;
	int			found = 0;
	uint32		link = 0;
	char	   *entry;

	wanted = Max(Min(wanted, EVICTED_AT_ONCE), 1);
	while ((entry = next_entry(table, number, &link)) != NULL)
	{
		double	   *usage = (double *) (entry + spec->usage_offset);
		int			place;

		if (others && (entry == others || memcmp(entry, others, spec->kin_size) != 0))
			continue;
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
	return found;
}

/* Add an entry to another one or to an evicted row, and remove it. */
static void
absorb(const Table *table, int number, void *sum, const void *entry)
{
	const TableSpec *spec = table->spec;

	spec->add(sum, entry);
	add_counters(snapshot_of(spec, sum, 0), snapshot_of(spec, entry, 0),
				 (Size) SNAPSHOTS_KEPT * spec->counters_size);
	remove_entry(table, number, entry);
}

/*
 * Evict the least used entries of a partition.  Returns false if none may be
 * evicted.
 */
static bool
evict_some(Table *table, int number)
{
	char	   *least[EVICTED_AT_ONCE]; /* the least used first */
	int			found = find_least_used(table, number, NULL,
										table->partition_capacity / EVICTED_FRACTION, least);

	for (int i = 0; i < found; i++)
		absorb(table, number, choose_row(table->spec, row_get(table, number, 0),
										 table->distance, least[i]), least[i]);
	partition_get(table, number)->evicted += found;
	return found > 0;
}

static inline void *
find_entry(const Table *table, uint32 hash, const void *key)
{
	int			number = table_partition_of(table, hash);
	const uint32 *links = links_get(table, number);
	const uint32 *next = links + table->chains;

	for (uint32 link = links[hash & (table->chains - 1)]; link != 0; link = next[link - 1])
	{
		void	   *entry = linked_entry(table, number, link);

		if (memcmp(entry, key, table->spec->key_size) == 0)
			return entry;
	}
	return NULL;
}

/* The number of entries that are kin of a key. */
static int
count_kin(const Table *table, int number, const void *key)
{
	int			count = 0;
	uint32		link = 0;
	const void *entry;

	while ((entry = next_entry(table, number, &link)) != NULL)
		count += memcmp(entry, key, table->spec->kin_size) == 0;
	return count;
}

/*
 * Make room for another one of a key's kin, if there are too many: add the
 * least used to the others.  Returns false if none of them may go.
 */
static bool
make_room_for_kin(Table *table, uint32 hash, const void *key, TimestampTz now)
{
	const TableSpec *spec = table->spec;
	int			number = table_partition_of(table, hash);
	const void *others_key;
	void	   *others;
	char	   *least[EVICTED_AT_ONCE];
	int			found;

	if (spec->kin_most == 0 || *kin_counter(table, hash) < spec->kin_most)
		return true;
	others_key = spec->others_key(key);
	if (memcmp(key, others_key, spec->key_size) == 0 || count_kin(table, number, key) < spec->kin_most)
		return true;
	others = table_find_or_add(table, table_hash(table, others_key), others_key, now);
	if (others == NULL)
		return false;
	found = find_least_used(table, number, others, spec->kin_most / KIN_FRACTION, least);
	for (int i = 0; i < found; i++)
		absorb(table, number, others, least[i]);
	return found > 0;
}

/* Make a new entry: see table_find_or_add(). */
static pg_noinline void *
add_new_entry(Table *table, uint32 hash, const void *key, TimestampTz now)
{
	int			number = table_partition_of(table, hash);
	TablePartition *partition = partition_get(table, number);
	uint32	   *links = links_get(table, number);
	uint32	   *next = links + table->chains;
	uint32	   *first = &links[hash & (table->chains - 1)];
	uint32		link;
	char	   *entry;

	if (!make_room_for_kin(table, hash, key, now) ||
		(partition->entries >= table->partition_capacity && !evict_some(table, number)))
		return NULL;
	partition->entries++;
	++*kin_counter(table, hash);
	link = partition->first_free;
	if (link != 0)
		partition->first_free = next[link - 1] & ~IS_FREE;
	else
		link = ++partition->ever_used;
	next[link - 1] = *first;
	*first = link;

	entry = linked_entry(table, number, link);
	memset(entry, 0, table->distance);
	memcpy(entry, key, table->spec->key_size);
	*since_of(table->spec, entry) = now;
	return entry;
}

/*
 * Find the entry of a key, or make one, which is zero except for its key and
 * "since".  Returns NULL if the partition is full of entries that must stay,
 * or the key has too many kin that must stay.
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
								 table->distance, entry);

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
		locks_acquire(table->spec->lock, i, LW_EXCLUSIVE);
		begin_partition(table, i);
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
		count += *(volatile int *) &partition_get(table, i)->entries;
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
		uint32		link = 0;
		void	   *entry;

		locks_acquire(table->spec->lock, i, LW_EXCLUSIVE);
		while ((entry = next_entry(table, i, &link)) != NULL)
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

/*
 * Set an entry's counters and their snapshots to zero, for a visitor.  What it
 * has counted goes to its evicted row, but not into any window, so that sums
 * over all entries do not fall.  "counted" is a copy of the entry, with what
 * the evicted row is to get.
 */
void
table_forget(const Table *table, void *entry, const void *counted, TimestampTz now)
{
	const TableSpec *spec = table->spec;
	void	   *row = table_evicted_row(table, table_hash(table, entry), entry, now);

	spec->add(row, counted);
	for (int i = 0; i < SNAPSHOTS_KEPT; i++)
		add_counters(snapshot_of(spec, row, i), counters_of(spec, counted), spec->counters_size);
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
		uint32		link = 0;
		void	   *entry;

		locks_acquire(table->spec->lock, i, LW_EXCLUSIVE);
		while ((entry = next_entry(table, i, &link)) != NULL)
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
	uint32		link = 0;
	void	   *entry;

	while ((entry = next_entry(table, number, &link)) != NULL)
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
	Size		room = (Size) table->partitions * table->partition_capacity + spec->evicted_rows;
	char	   *copies = palloc_extended(mul_size(room, spec->entry_size), MCXT_ALLOC_HUGE);
	char	   *rows = palloc0(spec->evicted_rows * spec->entry_size);
	char	   *buffer = palloc(spec->entry_size);

	/*
	 * there is room for all that may come, since nothing allocates under a
	 * lock
	 */
	*count = 0;
	/* a reset, which clears one partition after the other, must wait */
	locks_acquire(LOCK_RESET, 0, LW_SHARED);
	for (int i = 0; i < table->partitions; i++)
	{
		locks_acquire(spec->lock, i, LW_SHARED);
		copy_partition(table, i, length, copies, count, rows, buffer);
		locks_release(spec->lock, i);
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
	/* give back what was not needed */
	return repalloc_huge(copies, mul_size(Max(*count, 1), spec->entry_size));
}
