/*-------------------------------------------------------------------------
 *
 * table.h
 *	  Bounded hash tables in shared memory, partitioned.
 *
 * A table consists of partitions, each of them a dynahash table of fixed size
 * under a lightweight lock of its own.  The hash of its key says which partition
 * an entry belongs to.  Where a partition is full, its least used entries are
 * evicted for a new one: what they have counted is added to a row that is kept in
 * the partition, so sums over all rows never decrease.
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
 * A window is what was counted since a snapshot of the counters.  All entries of a
 * partition have theirs as of the same moments.  An entry that did not exist then had
 * counted nothing: its snapshot is zero.  One that was evicted since takes its snapshots
 * along to the row that it is added to: there, too, the difference is what was counted in
 * the window.  What was saved by an earlier server is in all snapshots, which all begin as
 * of the server's start.
 *
 * How to use one: describe the entries in a TableSpec.  They begin with their
 * key, which is hashed and compared as bytes: no padding.  Hash a key before
 * taking a lock.  Then
 *
 *		table_lock(table, hash);
 *		entry = table_enter(table, hash, &key, now);
 *		... add to the entry ...
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
#include "snapshots.h"
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
	Size		counters_offset;	/* int64 fields, of which snapshots are
									 * kept, ... */
	Size		counters_size;	/* ... or 0 */
	int			evicted_rows;	/* in each partition */

	/* Hashes a key.  NULL: by its bytes, as dynahash does. */
	HashValueFunc hash;

	/* May an entry be evicted?  NULL: any may. */
	bool		(*may_go) (const void *entry);

	/* Adds what an entry has counted, and its "since", to another one. */
	void		(*add) (void *sum, const void *entry);

	/*
	 * Where there are several rows of evicted entries: does this one belong
	 * in that row, which is all zero if it is not in use?  The last row is
	 * for what belongs in none.
	 */
	bool		(*belongs) (const void *row, const void *entry);

	/*
	 * A row of evicted entries, which is all zero, comes into use for entries
	 * like this one; NULL: it is the last one.  Or NULL: nothing to be done.
	 */
	void		(*begin_row) (void *row, const void *entry);
} TableSpec;

/* Protected by its lock; its rows of evicted entries follow. */
typedef struct TablePartition
{
	int64		evicted;		/* entries that were evicted, or found no room */
	SnapshotTimes times;
} TablePartition;

/* A process's handle, set up by table_shmem_init(). */
typedef struct Table
{
	const TableSpec *spec;
	int			partitions;
	int			partition_capacity; /* entries of each */
	HTAB	  **entries;		/* of each partition */
	char	   *own;			/* a TablePartition for each partition, with
								 * its rows */
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
extern void *table_find_or_add(Table *table, uint32 hash, const void *key,
							   TimestampTz now);
extern void *table_evicted_row(const Table *table, uint32 hash, const void *entry,
							   TimestampTz now);
extern void table_count_evicted(Table *table, uint32 hash);
extern void *table_enter(Table *table, uint32 hash, const void *key, TimestampTz now);

/* Functions for callers that hold no lock of the table */
extern void table_restore(Table *table, const void *saved, bool is_evicted);
extern void table_clear(Table *table);
extern int64 table_entries(const Table *table);
extern int64 table_evicted(const Table *table);
extern void table_take_snapshots(const Table *table, SnapshotLevels levels);
extern void table_forget(const Table *table, void *entry);
extern void table_visit(const Table *table, void (*visit) (void *entry, void *arg), void *arg);
extern void *table_copy(const Table *table, int64 length, int *count);

#endif							/* PGNETLAT_TABLE_H */
