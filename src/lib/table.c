/*-------------------------------------------------------------------------
 *
 * table.c
 *	  See table.h.
 *
 * In addition to the partitions' locks there is one spinlock, on the list of
 * free places: it is taken for a few instructions, when an entry is created or
 * removed, and never to add to an existing one.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "eviction.h"
#include "port/atomics.h"
#include "storage/shmem.h"
#include "storage/spin.h"
#include "table.h"

/*
 * What somebody may look at under one lock: copying as many of the largest
 * entries takes some ten microseconds.
 */
#define PLACES_PER_PARTITION	128

/* More than that are not worth their locks' memory: half a million entries. */
#define MAX_PARTITIONS			4096

/* No larger than a page of memory. */
#define PAGE_STEP				4096

struct TableShared
{
	pg_atomic_uint32 clears;	/* begun and ended: odd while one is under way */
	pg_atomic_uint32 hand;		/* where to look next for what may go */
	pg_atomic_uint32 used;		/* places; changes under the mutex */
	slock_t		mutex;			/* protects the list of free places */
	int32		free;
};

/* Protected by its lock; the owner's part follows. */
typedef struct TablePartition
{
	int32		entries;
	int64		evicted;		/* entries that were thrown out, or found no
								 * room */
} TablePartition;

static ChainDivision
divide(int capacity)
{
	return chains_divide(capacity, PLACES_PER_PARTITION, MAX_PARTITIONS);
}

/*
 * How many partitions, and so locks, a table has.
 */
int
table_partitions(int capacity)
{
	return divide(capacity).partitions;
}

/*
 * Shared memory is one piece: the parts, each on cache lines of its own.
 */
static Size
add_part(Size *size, Size count, Size each)
{
	Size		offset = *size;

	*size = add_size(offset, CACHELINEALIGN(mul_size(count, each)));
	return offset;
}

static Size
partition_size(const TableSpec *spec)
{
	return CACHELINEALIGN(MAXALIGN(sizeof(TablePartition)) + spec->own_size);
}

static Size
lay_out(const TableSpec *spec, int capacity, Table *table)
{
	ChainDivision division = divide(capacity);
	char	   *base;
	Size		size = 0;
	Size		buckets;
	Size		links;
	Size		partitions;
	Size		entries;

	(void) add_part(&size, 1, sizeof(TableShared));
	buckets = add_part(&size, (Size) division.partitions * division.buckets, sizeof(int32));
	links = add_part(&size, capacity, sizeof(ChainLink));
	partitions = add_part(&size, division.partitions, partition_size(spec));
	entries = add_part(&size, capacity, MAXALIGN(spec->entry_size));
	size = add_size(size, PG_CACHE_LINE_SIZE);
	if (table == NULL)
		return size;

	base = (char *) CACHELINEALIGN(table->shared);
	table->spec = spec;
	table->division = division;
	table->shared = (TableShared *) base;
	table->buckets = (int32 *) (base + buckets);
	table->links = (ChainLink *) (base + links);
	table->partitions = base + partitions;
	table->entries = base + entries;
	return size;
}

Size
table_shmem_size(const TableSpec *spec, int capacity)
{
	return lay_out(spec, capacity, NULL);
}

static inline TablePartition *
partition_get(const Table *table, int number)
{
	return (TablePartition *) (table->partitions + number * partition_size(table->spec));
}

static inline void *
own_get(const Table *table, int number)
{
	return (char *) partition_get(table, number) + MAXALIGN(sizeof(TablePartition));
}

static inline char *
entry_get(const Table *table, int32 place)
{
	return table->entries + place * MAXALIGN(table->spec->entry_size);
}

static inline double *
usage_of(const Table *table, char *entry)
{
	return (double *) (entry + table->spec->usage_offset);
}

static void
partition_empty(Table *table, int number)
{
	int32	   *buckets = table->buckets + (Size) number * table->division.buckets;

	memset(partition_get(table, number), 0, partition_size(table->spec));
	for (uint32 i = 0; i < table->division.buckets; i++)
		buckets[i] = CHAIN_END;
}

void
table_shmem_init(Table *table, const TableSpec *spec, int capacity)
{
	bool		found;

	table->shared = ShmemInitStruct(spec->name, table_shmem_size(spec, capacity), &found);
	lay_out(spec, capacity, table);
	if (found)
		return;
	pg_atomic_init_u32(&table->shared->clears, 0);
	pg_atomic_init_u32(&table->shared->hand, 0);
	pg_atomic_init_u32(&table->shared->used, 0);
	SpinLockInit(&table->shared->mutex);
	table->shared->free = CHAIN_END;
	for (int32 place = capacity - 1; place >= 0; place--)
	{
		chain_push(&table->shared->free, table->links, place, 0);
		if (spec->init)
			spec->init(entry_get(table, place));
	}
	for (uint32 i = 0; i < table->division.partitions; i++)
		partition_empty(table, i);
}

/* ---------------------------------------------------------------------------
 * Entries
 * ---------------------------------------------------------------------------
 */

/* CHAIN_END if there is none. */
static int32
take_free_place(Table *table)
{
	TableShared *shared = table->shared;
	int32		place;

	SpinLockAcquire(&shared->mutex);
	place = chain_pop(&shared->free, table->links);
	if (place != CHAIN_END)
		pg_atomic_write_u32(&shared->used, pg_atomic_read_u32(&shared->used) + 1);
	SpinLockRelease(&shared->mutex);
	return place;
}

static void
give_place_back(Table *table, int32 place)
{
	TableShared *shared = table->shared;

	memset(entry_get(table, place), 0, table->spec->key_size);
	SpinLockAcquire(&shared->mutex);
	chain_push(&shared->free, table->links, place, 0);
	pg_atomic_write_u32(&shared->used, pg_atomic_read_u32(&shared->used) - 1);
	SpinLockRelease(&shared->mutex);
}

/* NULL if there is no such entry. */
void *
table_find(Table *table, uint32 hash, const void *key)
{
	int32		place = table->buckets[chains_bucket(&table->division, hash)];

	while ((place = chain_find(place, table->links, hash)) != CHAIN_END)
	{
		char	   *entry = entry_get(table, place);

		if (likely(memcmp(entry, key, table->spec->key_size) == 0))
			return entry;
		place = table->links[place].next;
	}
	return NULL;
}

/*
 * The same, but makes one that is zero but for its key, and for being there
 * since "now".  NULL if no place is free.
 */
void *
table_find_or_add(Table *table, uint32 hash, const void *key, TimestampTz now)
{
	char	   *entry = table_find(table, hash, key);
	int32		place;

	if (likely(entry != NULL))
		return entry;
	place = take_free_place(table);
	if (place == CHAIN_END)
		return NULL;
	entry = entry_get(table, place);
	if (table->spec->make)
		table->spec->make(entry, key);
	else
	{
		memset(entry, 0, table->spec->entry_size);
		memcpy(entry, key, table->spec->key_size);
	}
	*(TimestampTz *) (entry + table->spec->since_offset) = now;
	chain_push(&table->buckets[chains_bucket(&table->division, hash)], table->links,
			   place, hash);
	partition_get(table, table_partition_of(table, hash))->entries++;
	return entry;
}

/*
 * What the owner keeps in a partition.
 */
void *
table_own(Table *table, uint32 hash)
{
	return own_get(table, table_partition_of(table, hash));
}

/*
 * Something found no room, although there was nothing to be thrown out.
 */
void
table_count_evicted(Table *table, uint32 hash)
{
	partition_get(table, table_partition_of(table, hash))->evicted++;
}

/* ---------------------------------------------------------------------------
 * All entries
 * ---------------------------------------------------------------------------
 */

/* The places of a partition, whose lock is held; of each chain, the next is
 * read before the place is done with. */
#define FOREACH_CHAIN(table, number, chain) \
	for (int32 *chain = (table)->buckets + (Size) (number) * (table)->division.buckets, \
		 *chain##_end = chain + (table)->division.buckets; \
		 chain < chain##_end; chain++)

static bool
may_go(const Table *table, const char *entry)
{
	return table->spec->may_go == NULL || table->spec->may_go(entry);
}

/* Note the usage of all that may go, which ages thereby. */
static int
note_usage(Table *table, int number, Eviction *eviction)
{
	int			candidates = 0;

	FOREACH_CHAIN(table, number, chain)
	{
		for (int32 place = *chain; place != CHAIN_END; place = table->links[place].next)
		{
			char	   *entry = entry_get(table, place);
			double	   *usage = usage_of(table, entry);

			if (table->spec->refresh)
				table->spec->refresh(entry);
			*usage *= EVICTION_AGING;
			if (!may_go(table, entry))
				continue;
			eviction_note(eviction, *usage);
			candidates++;
		}
	}
	return candidates;
}

/* Throw out the least used entries of a partition; how many those were. */
static int
evict_some(Table *table, int number)
{
	TablePartition *partition = partition_get(table, number);
	Eviction	eviction = {0};
	int			gone = 0;

	if (note_usage(table, number, &eviction) == 0)
		return 0;
	eviction_choose(&eviction, Max(1, (int) (partition->entries * EVICTION_FRACTION)));
	FOREACH_CHAIN(table, number, chain)
	{
		for (int32 next, place = *chain; place != CHAIN_END; place = next)
		{
			char	   *entry = entry_get(table, place);

			next = table->links[place].next;
			if (!may_go(table, entry) || !eviction_wants(&eviction, *usage_of(table, entry)))
				continue;
			table->spec->evict(own_get(table, number), entry);
			(void) chain_remove(chain, table->links, place);
			give_place_back(table, place);
			gone++;
		}
	}
	partition->entries -= gone;
	partition->evicted += gone;
	return gone;
}

/*
 * See to it that memory of a partition's entries is this process's when it holds
 * the lock: see table_map().  Without the lock a chain may be any, but it leads to
 * places only; so it is followed for as long as one that is intact may be.
 */
static void
touch_partition(const Table *table, int number)
{
	int			left = 2 * PLACES_PER_PARTITION;

	FOREACH_CHAIN(table, number, chain)
	{
		int32		place = *(volatile int32 *) chain;

		for (; place != CHAIN_END && left > 0; left--)
		{
			(void) *(volatile char *) entry_get(table, place);
			place = *(volatile int32 *) &table->links[place].next;
		}
	}
}

/*
 * Throw out a few of the least used entries, of one partition: the next one
 * in turn in which there are any that may go.  Returns false if there are
 * none, in all the table; or, if the caller does not want to wait for locks,
 * in all of it that is not locked.
 */
bool
table_make_room(Table *table, bool wait)
{
	for (uint32 i = 0; i < table->division.partitions; i++)
	{
		int			number = pg_atomic_fetch_add_u32(&table->shared->hand, 1) &
			(table->division.partitions - 1);
		int			gone;

		touch_partition(table, number);
		if (wait)
			locks_acquire(table->spec->lock, number, LW_EXCLUSIVE);
		else if (!locks_acquire_if_free(table->spec->lock, number, LW_EXCLUSIVE))
			continue;
		gone = evict_some(table, number);
		locks_release(table->spec->lock, number);
		if (gone > 0)
			return true;
	}
	return false;
}

/*
 * Forget all, what the owner keeps in the partitions as well.  Nobody adds to
 * the table meanwhile, for the caller holds the reset lock exclusively.
 */
void
table_clear(Table *table)
{
	pg_atomic_fetch_add_u32(&table->shared->clears, 1);
	for (uint32 number = 0; number < table->division.partitions; number++)
	{
		locks_acquire(table->spec->lock, number, LW_EXCLUSIVE);
		FOREACH_CHAIN(table, number, chain)
		{
			int32		place;

			while ((place = chain_pop(chain, table->links)) != CHAIN_END)
				give_place_back(table, place);
		}
		partition_empty(table, number);
		locks_release(table->spec->lock, number);
	}
	pg_atomic_fetch_add_u32(&table->shared->clears, 1);
}

int64
table_entries(Table *table)
{
	return pg_atomic_read_u32(&table->shared->used);
}

/*
 * How many entries were thrown out, or found no room, since the latest reset.
 */
int64
table_evicted(Table *table)
{
	int64		evicted = 0;

	for (uint32 number = 0; number < table->division.partitions; number++)
	{
		locks_acquire(table->spec->lock, number, LW_SHARED);
		evicted += partition_get(table, number)->evicted;
		locks_release(table->spec->lock, number);
	}
	return evicted;
}

/*
 * Memory that a process looks at for the first time costs it a fault for each
 * page, which may take longer than all else.  So it does that before it takes
 * a lock.  Places are given away from the first one on.
 */
void
table_map(Table *table)
{
	Size		used = table_entries(table) * MAXALIGN(table->spec->entry_size);

	for (; table->mapped < used; table->mapped += PAGE_STEP)
		(void) *(volatile char *) (table->entries + table->mapped);
}

/*
 * Look at all entries, or change them.
 */
void
table_visit(Table *table, LWLockMode mode, const TableVisitor *visitor, void *arg)
{
	table_map(table);
	for (uint32 number = 0; number < table->division.partitions; number++)
	{
		void	   *own = own_get(table, number);

		locks_acquire(table->spec->lock, number, mode);
		FOREACH_CHAIN(table, number, chain)
		{
			if (visitor->entry == NULL)
				break;
			for (int32 place = *chain; place != CHAIN_END; place = table->links[place].next)
				visitor->entry(entry_get(table, place), own, arg);
		}
		if (visitor->own)
			visitor->own(own, arg);
		locks_release(table->spec->lock, number);
	}
}

/* ---------------------------------------------------------------------------
 * Reading
 * ---------------------------------------------------------------------------
 */

/* Places to spare, for entries that come while a copy is begun. */
#define COPIES_TO_SPARE		16

/* Make room for a number of copies in all, while no lock is held. */
static void
reserve(TableCopies *copies, Size room, Size copy_size)
{
	Size		bytes = mul_size(Max(room, 1), copy_size);

	if (room <= copies->room && copies->at)
		return;
	copies->at = copies->at ? repalloc_huge(copies->at, bytes) :
		palloc_extended(bytes, MCXT_ALLOC_HUGE);
	copies->room = room;
}

/*
 * Write to the places for the next partition: memory that is new is then the
 * process's own already when it holds a lock.
 */
static void
touch(TableCopies *copies, Size copy_size)
{
	Size		last = Min(copies->count + 2 * (Size) PLACES_PER_PARTITION, copies->room);

	if (last <= copies->touched)
		return;
	memset(copies->at + copies->touched * copy_size, 0,
		   (last - copies->touched) * copy_size);
	copies->touched = last;
}

/* Copy a partition, whose lock is held and for which there is room. */
static void
copy_partition(Table *table, int number, const TableReader *reader, void *arg,
			   TableCopies *copies)
{
	const void *own = own_get(table, number);

	FOREACH_CHAIN(table, number, chain)
	{
		for (int32 place = *chain; place != CHAIN_END; place = table->links[place].next)
		{
			char	   *copy = copies->at + copies->count++ * reader->copy_size;

			if (reader->copy)
				reader->copy(copy, entry_get(table, place), own, arg);
			else
				memcpy(copy, entry_get(table, place), reader->copy_size);
		}
	}
	if (reader->own)
		reader->own(own, arg);
}

/*
 * Copy all, while no other lock is held or, if "prepared", without making more
 * room.  False if there is too little, or something was forgotten meanwhile, so
 * that the copies are no good.
 */
static bool
copy_all(Table *table, const TableReader *reader, void *arg, TableCopies *copies,
		 bool prepared)
{
	uint32		clears = pg_atomic_read_u32(&table->shared->clears);

	copies->count = 0;
	if (reader->restart)
		reader->restart(arg);
	for (uint32 number = 0; number < table->division.partitions; number++)
	{
		for (;;)
		{
			Size		room;

			touch(copies, reader->copy_size);
			locks_acquire(table->spec->lock, number, LW_SHARED);
			room = copies->count + partition_get(table, number)->entries + reader->extra;
			if (room <= copies->room)
				break;
			locks_release(table->spec->lock, number);
			if (prepared)
				return false;
			reserve(copies, Max(room, copies->room / 2 * 3) + COPIES_TO_SPARE, reader->copy_size);
		}
		copy_partition(table, number, reader, arg, copies);
		locks_release(table->spec->lock, number);
	}
	return pg_atomic_read_u32(&table->shared->clears) == clears && (clears & 1) == 0;
}

/*
 * Make room for a copy of all entries; "copies" is all zero at first.
 */
void
table_prepare_copy(Table *table, const TableReader *reader, TableCopies *copies)
{
	table_map(table);
	reserve(copies, table_entries(table) + reader->extra + COPIES_TO_SPARE,
			reader->copy_size);
}

/*
 * Copy all entries into that room.  False: prepare once more, and try again.
 */
bool
table_copy_prepared(Table *table, const TableReader *reader, void *arg,
					TableCopies *copies)
{
	return copy_all(table, reader, arg, copies, true);
}

/*
 * A palloc'd copy of all entries, with places behind it for reader->extra
 * more, and their number without those.
 */
void *
table_copy(Table *table, const TableReader *reader, void *arg, int *count)
{
	TableCopies copies = {0};

	table_prepare_copy(table, reader, &copies);
	while (!copy_all(table, reader, arg, &copies, false))
	{
		/* until the reset is over */
		locks_acquire(LOCK_RESET, 0, LW_SHARED);
		locks_release(LOCK_RESET, 0);
	}
	*count = (int) copies.count;
	return copies.at;
}
