/*-------------------------------------------------------------------------
 *
 * table.h
 *	  Bounded hash tables in shared memory, partitioned.
 *
 * A table consists of partitions, each of them a dynahash table of fixed size
 * under a lightweight lock of its own.  The hash of its key says which partition
 * an entry belongs to.  Where a partition is full, its least used entries are
 * evicted for a new one: the table's owner adds their counters to a row that is
 * kept in the partition, so sums over all rows never decrease.
 *
 * Nobody holds two partitions' locks of a table, and nobody holds one for longer
 * than it takes to look at all entries of a partition, some five hundred.  Nothing that
 * is done under such a lock allocates or raises an error.
 *
 * A copy of the table is made partition by partition.  Entries never change
 * their partition, so it has no row twice, and each partition's sums are as of
 * one moment.  (A copy made during a reset may show one partition as of before
 * the reset and the next one as of after it.)
 *
 * How to use one: describe the entries in a TableSpec.  They begin with their
 * key, which is hashed and compared as bytes: no padding.  Hash a key before
 * taking a lock.  Then
 *
 *		table_lock(table, hash);
 *		entry = table_find_or_add(table, hash, &key, now);
 *		... add to the entry, or to table_own() where it is NULL ...
 *		table_unlock(table, hash);
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_TABLE_H
#define PGNETLAT_TABLE_H

#include "datatype/timestamp.h"
#include "locks.h"
#include "utils/hsearch.h"

typedef struct TableSpec
{
	const char *name;			/* of its shared memory */
	PgnetlatLock lock;			/* the kind of its partitions' locks */
	Size		key_size;
	Size		entry_size;		/* the key, and what the owner keeps with it */
	Size		usage_offset;	/* in the entry, a double: an aging count,
								 * which the owner raises */
	Size		since_offset;	/* a TimestampTz: when the entry was made */
	Size		own_size;		/* what the owner keeps in each partition, at
								 * first all zero */

	/* Hashes a key.  NULL: by its bytes, as dynahash does. */
	HashValueFunc hash;

	/* May an entry be evicted?  NULL: any may. */
	bool		(*may_go) (const void *entry);

	/* Adds what an entry has counted to the partition's own. */
	void		(*evict) (void *own, const void *entry);

	/* Prepares a partition's own, which is all zero.  Or NULL. */
	void		(*begin) (void *own);
} TableSpec;

/* Protected by its lock; the owner's part follows. */
typedef struct TablePartition
{
	int64		evicted;		/* entries that were evicted, or found no room */
} TablePartition;

/* A process's handle, set up by table_shmem_init(). */
typedef struct Table
{
	const TableSpec *spec;
	int			partitions;
	int			partition_capacity; /* entries of each */
	HTAB	  **entries;		/* of each partition */
	char	   *own;			/* a TablePartition for each partition */
} Table;

extern int	table_partitions(int capacity);
extern Size table_shmem_size(const TableSpec *spec, int capacity);
extern void table_shmem_init(Table *table, const TableSpec *spec, int capacity);

static inline uint32
table_hash(const Table *table, const void *key)
{
	return get_hash_value(table->entries[0], key);
}

/* Dynahash chooses buckets by the lower bits of a hash, so this uses the upper. */
static inline int
table_partition_of(const Table *table, uint32 hash)
{
	return (int) (((uint64) hash * table->partitions) >> 32);
}

/* The lock of the partition to which a hash belongs, exclusively. */
static inline void
table_lock(const Table *table, uint32 hash)
{
	locks_acquire(table->spec->lock, table_partition_of(table, hash), LW_EXCLUSIVE);
}

static inline void
table_unlock(const Table *table, uint32 hash)
{
	locks_release(table->spec->lock, table_partition_of(table, hash));
}

/* Functions for the holder of the partition's lock */
extern void *table_find(const Table *table, uint32 hash, const void *key);
extern void *table_find_or_add(Table *table, uint32 hash, const void *key,
							   TimestampTz now);
extern void *table_own(const Table *table, uint32 hash);
extern void table_count_evicted(Table *table, uint32 hash);

/* Functions for callers that hold no lock of the table */
extern void table_clear(Table *table);
extern int64 table_entries(const Table *table);
extern int64 table_evicted(const Table *table);

/* What to do with all entries, partition by partition, under its lock. */
typedef struct TableVisitor
{
	void		(*entry) (void *entry, void *own, void *arg);	/* or NULL */
	void		(*own) (void *own, void *arg);	/* or NULL; after its entries */
} TableVisitor;

extern void table_visit(const Table *table, LWLockMode mode, const TableVisitor *visitor,
						void *arg);

/* How an owner reads: what a copy of an entry consists of. */
typedef struct TableReader
{
	Size		copy_size;

	/* Makes a copy; "own" is of the entry's partition.  NULL: the first bytes. */
	void		(*copy) (void *copy, const void *entry, const void *own, void *arg);

	/* Takes what it wants of a partition's own, or NULL. */
	void		(*own) (const void *own, void *arg);

	int			extra;			/* places for the owner to add to the copy */
} TableReader;

extern void *table_copy(const Table *table, const TableReader *reader, void *arg, int *count);

#endif							/* PGNETLAT_TABLE_H */
