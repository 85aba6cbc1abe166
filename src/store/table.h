/*-------------------------------------------------------------------------
 *
 * table.h
 *	  Bounded, partitioned hash tables in shared memory.
 *
 * A table consists of partitions.  Each is a hash table of fixed size with its
 * own lightweight lock.  The hash of an entry's key determines its
 * partition.  When a partition is full, its least used entries are evicted for
 * a new one: what they have counted is added to an evicted row in the
 * partition, so that sums over all rows never fall.
 *
 * No process holds the locks of two partitions of a table, or holds one for
 * longer than it takes to scan a partition, some five hundred entries.
 * Nothing that is done under such a lock allocates or raises an error.
 *
 * Entries whose keys begin alike may be kin.  Of these there are only so many:
 * the least used are added to an entry of theirs for the others.  Kin are in
 * one partition, so that it takes no other lock to find them, and it counts
 * them, so that they need not be looked for until there are too many.
 *
 * Hashes do not fill partitions evenly: if no entry may be evicted, a new one
 * may find its partition full once the table is some nine tenths full.
 *
 * The table is copied partition by partition.  Entries never change their
 * partition, so a copy has no row twice, and each partition's sums are as of
 * one moment.  (A copy made during a reset may show one partition as before
 * the reset and another one as after it.)
 *
 * A window is what was counted since a snapshot of the counters.  All entries
 * of a partition have their snapshots as of the same moments.  An entry that
 * did not exist then has a snapshot of zero.  When an entry is evicted, its
 * snapshots are added to those of the evicted row, so the difference is what
 * was counted in the window there, too.  What was loaded at startup is in all
 * snapshots, which all begin then.
 *
 * To use a table, describe its entries in a TableSpec.  They begin with their
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

#include "common/hashfn.h"
#include "datatype/timestamp.h"
#include "locks.h"
#include "snapshots.h"

typedef struct TableSpec
{
	PgnetlatLock lock;			/* kind of its partitions' locks */
	Size		key_size;
	Size		entry_size;		/* size of an entry, its key included */
	Size		usage_offset;	/* of a double: the aging usage, which the
								 * owner increases */
	Size		since_offset;	/* of a TimestampTz: when the entry was made */
	Size		counters_offset;	/* of int64 fields, of which snapshots are
									 * kept ... */
	Size		counters_size;	/* ... or 0 if there are none */
	int			evicted_rows;	/* evicted rows of each partition */

	/*
	 * Entries whose keys begin with the same kin_size bytes are kin.  There
	 * are at most kin_most of them, and the one for the others, whose key
	 * others_key() makes of any of theirs.  kin_most is 0: there are no kin.
	 */
	Size		kin_size;
	int			kin_most;
	const void *(*others_key) (const void *key);

	/* Hashes a key; kin have the same upper half.  NULL: hash its bytes. */
	uint32		(*hash) (const void *key);

	/* May an entry be evicted, or be added to the others?  NULL: always. */
	bool		(*may_go) (const void *entry);

	/* Adds an entry's counts and its "since" to another entry. */
	void		(*add) (void *sum, const void *entry);

	/*
	 * If there are several evicted rows: does this entry belong in that row,
	 * which is all zero if not in use?  The last row is for the entries that
	 * belong in none.
	 */
	bool		(*belongs) (const void *row, const void *entry);

	/*
	 * Begins to use an evicted row, which is all zero, for entries like this
	 * one; "entry" is NULL for the last row.  NULL: nothing to be done.
	 */
	void		(*begin_row) (void *row, const void *entry);
} TableSpec;

#define KIN_COUNTERS	256

/* The header of a partition, protected by its lock; see lay_out(). */
typedef struct TablePartition
{
	int64		evicted;		/* entries evicted, or without room */
	int			entries;		/* in use */
	uint32		ever_used;		/* entries that are in use, or have been */
	uint32		first_free;		/* link of an entry that is not in use any
								 * more, which links the next one */
	SnapshotTimes times;
	uint16		kin[KIN_COUNTERS];	/* entries, by hash of what kin share */
} TablePartition;

/* A process's handle, set up by table_shmem_attach(). */
typedef struct Table
{
	const TableSpec *spec;
	int			partitions;
	int			partition_capacity; /* entries per partition */
	uint32		chains;			/* per partition; a power of two */
	Size		distance;		/* between entries */
	Size		rows_offset;	/* of the evicted rows in a partition */
	Size		entries_offset;
	Size		partition_size;
	char	   *memory;
	struct Table *next;			/* of all tables */
} Table;

extern int	table_partitions(int capacity);
extern Size table_shmem_size(const TableSpec *spec, int capacity);
extern void table_shmem_attach(Table *table, const TableSpec *spec, int capacity, void *memory,
							   bool is_new);

static inline uint32
table_hash(const Table *table, const void *key)
{
	return table->spec->hash ? table->spec->hash(key) :
		hash_bytes(key, (int) table->spec->key_size);
}

/* Chains are chosen by the lower bits of a hash, so this uses the upper ones. */
static inline int
table_partition_of(const Table *table, uint32 hash)
{
	return (int) (((uint64) hash * table->partitions) >> 32);
}

/*
 * What stands for an entry or evicted row in shared memory, which processes may
 * see at different addresses; and the way back.
 */
static inline Size
table_place_of(const Table *table, const void *entry)
{
	return (const char *) entry - table->memory;
}

static inline void *
table_at(const Table *table, Size place)
{
	return table->memory + place;
}

/* Lock the partition of a hash exclusively. */
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
extern void table_forget(const Table *table, void *entry, const void *counted, TimestampTz now);

/* Functions for callers that hold no lock of the table */
extern void table_restore(Table *table, const void *saved, bool is_evicted);
extern int64 table_entries(const Table *table);
extern int64 table_evicted(const Table *table);
extern void table_visit(const Table *table, void (*visit) (void *entry, void *arg), void *arg);
extern void *table_copy(const Table *table, int64 length, int *count);

/* Functions for all tables */
extern void tables_clear(void);
extern void tables_take_snapshots(SnapshotLevels levels);

#endif							/* PGNETLAT_TABLE_H */
