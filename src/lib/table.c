/*-------------------------------------------------------------------------
 *
 * table.c
 *	  See table.h.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat.h"
#include "storage/shmem.h"
#include "table.h"
#include "utils/memutils.h"

/* Few enough that looking at all of them takes some ten microseconds. */
#define PARTITION_ENTRIES	512

/* Entries that are evicted at a time: a twentieth, but no more than that. */
#define EVICTED_FRACTION	20
#define EVICTED_AT_ONCE		32
#define EVICTION_AGING		0.99	/* usage is multiplied by this */

/* In a copy, for entries that come while it is made. */
#define ROOM_TO_SPARE		16

/* What the name of a partition takes in ShmemIndex, which must hold them all. */
#define SHMEM_INDEX_ENTRY	128

/* How many partitions, and so locks, a table has. */
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

static Size
own_size(const TableSpec *spec)
{
	return CACHELINEALIGN(MAXALIGN(sizeof(TablePartition)) + spec->own_size);
}

Size
table_shmem_size(const TableSpec *spec, int capacity)
{
	Size		size = hash_estimate_size(partition_capacity(capacity), spec->entry_size);

	size = add_size(size, own_size(spec) + SHMEM_INDEX_ENTRY);
	return mul_size(table_partitions(capacity), size);
}

static TablePartition *
partition_get(const Table *table, int number)
{
	return (TablePartition *) (table->own + number * own_size(table->spec));
}

static void *
own_get(const Table *table, int number)
{
	return (char *) partition_get(table, number) + MAXALIGN(sizeof(TablePartition));
}

static void
begin_own(const Table *table, int number)
{
	memset(partition_get(table, number), 0, own_size(table->spec));
	if (table->spec->begin)
		table->spec->begin(own_get(table, number));
}

static HTAB *
init_partition(const TableSpec *spec, int number, int capacity)
{
	char		name[NAMEDATALEN];
	HASHCTL		info = {
		.keysize = spec->key_size,
		.entrysize = spec->entry_size,
		.hash = spec->hash
	};

	snprintf(name, sizeof(name), "%s %d", spec->name, number);
	return compat_shmem_hash(name, capacity, &info, HASH_ELEM | HASH_FIXED_SIZE |
							 (spec->hash ? HASH_FUNCTION : HASH_BLOBS));
}

void
table_shmem_init(Table *table, const TableSpec *spec, int capacity)
{
	bool		found;

	table->spec = spec;
	table->partitions = table_partitions(capacity);
	table->partition_capacity = partition_capacity(capacity);
	table->own = ShmemInitStruct(spec->name, mul_size(table->partitions, own_size(spec)), &found);
	table->entries = MemoryContextAlloc(TopMemoryContext, table->partitions * sizeof(HTAB *));
	for (int i = 0; i < table->partitions; i++)
	{
		table->entries[i] = init_partition(spec, i, table->partition_capacity);
		if (!found)
			begin_own(table, i);
	}
}

/* ---------------------------------------------------------------------------
 * Entries
 * ---------------------------------------------------------------------------
 */

/*
 * Evict the least used entries of a partition, whose usage ages.  False if none
 * may go.
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
		spec->evict(own_get(table, number), least[i]);
		(void) hash_search(entries, least[i], HASH_REMOVE, NULL);
	}
	partition_get(table, number)->evicted += found;
	return found > 0;
}

/* NULL if there is no such entry. */
void *
table_find(const Table *table, uint32 hash, const void *key)
{
	return hash_search_with_hash_value(table->entries[table_partition_of(table, hash)], key,
									   hash, HASH_FIND, NULL);
}

/*
 * The same, but makes one that is zero but for its key and since when it has been
 * there.  NULL if the partition is full of entries that must stay.
 */
void *
table_find_or_add(Table *table, uint32 hash, const void *key, TimestampTz now)
{
	int			number = table_partition_of(table, hash);
	HTAB	   *entries = table->entries[number];
	char	   *entry = table_find(table, hash, key);
	Size		key_size = table->spec->key_size;

	if (likely(entry != NULL))
		return entry;
	if (hash_get_num_entries(entries) >= table->partition_capacity &&
		!evict_some(table, number))
		return NULL;
	entry = hash_search_with_hash_value(entries, key, hash, HASH_ENTER_NULL, NULL);
	if (entry == NULL)
		return NULL;
	memset(entry + key_size, 0, table->spec->entry_size - key_size);
	*(TimestampTz *) (entry + table->spec->since_offset) = now;
	return entry;
}

/* What the owner keeps in a partition. */
void *
table_own(const Table *table, uint32 hash)
{
	return own_get(table, table_partition_of(table, hash));
}

/* Something found no room, and there was nothing to be evicted. */
void
table_count_evicted(Table *table, uint32 hash)
{
	partition_get(table, table_partition_of(table, hash))->evicted++;
}

/* ---------------------------------------------------------------------------
 * All entries
 * ---------------------------------------------------------------------------
 */

/* Forget all entries, and what the owner keeps in the partitions. */
void
table_clear(Table *table)
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

int64
table_entries(const Table *table)
{
	int64		count = 0;

	for (int i = 0; i < table->partitions; i++)
		count += hash_get_num_entries(table->entries[i]);
	return count;
}

/* How many entries were evicted, or found no room, since the latest reset. */
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

/* Look at all entries, or change them. */
void
table_visit(const Table *table, LWLockMode mode, const TableVisitor *visitor, void *arg)
{
	for (int i = 0; i < table->partitions; i++)
	{
		HASH_SEQ_STATUS scan;
		void	   *entry;

		locks_acquire(table->spec->lock, i, mode);
		if (visitor->entry)
		{
			hash_seq_init(&scan, table->entries[i]);
			while ((entry = hash_seq_search(&scan)) != NULL)
				visitor->entry(entry, own_get(table, i), arg);
		}
		if (visitor->own)
			visitor->own(own_get(table, i), arg);
		locks_release(table->spec->lock, i);
	}
}

/*
 * A palloc'd copy of all entries, with places behind it for reader->extra more,
 * and their number without those.
 */
void *
table_copy(const Table *table, const TableReader *reader, void *arg, int *count)
{
	Size		room = table_entries(table) + reader->extra + ROOM_TO_SPARE;
	char	   *copies = palloc_extended(mul_size(room, reader->copy_size), MCXT_ALLOC_HUGE);

	*count = 0;
	for (int i = 0; i < table->partitions; i++)
	{
		HASH_SEQ_STATUS scan;
		void	   *entry;
		Size		needed;

		locks_acquire(table->spec->lock, i, LW_SHARED);
		needed = *count + hash_get_num_entries(table->entries[i]) + reader->extra;
		if (unlikely(needed > room))
		{
			/* more have come meanwhile, but nothing is allocated under a lock */
			locks_release(table->spec->lock, i--);
			room = needed + needed / 4 + ROOM_TO_SPARE;
			copies = repalloc_huge(copies, mul_size(room, reader->copy_size));
			continue;
		}
		hash_seq_init(&scan, table->entries[i]);
		while ((entry = hash_seq_search(&scan)) != NULL)
		{
			char	   *copy = copies + (Size) (*count)++ * reader->copy_size;

			if (reader->copy)
				reader->copy(copy, entry, own_get(table, i), arg);
			else
				memcpy(copy, entry, reader->copy_size);
		}
		if (reader->own)
			reader->own(own_get(table, i), arg);
		locks_release(table->spec->lock, i);
	}
	return copies;
}
