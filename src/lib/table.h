/*-------------------------------------------------------------------------
 *
 * table.h
 *	  Bounded hash tables in shared memory, made for many processors.
 *
 * A table never has more entries than its setting allows.  Whoever finds none
 * left evicts some of the least used ones, whose counters the table's owner
 * adds to a row for evicted entries: sums never decrease.
 *
 * Partitions.  The hash of its key says to which partition an entry belongs;
 * each partition has a lock of its own, and so few entries that looking at all
 * of them takes some microseconds.  Nobody holds two partitions' locks of a
 * table, and nobody holds one for longer than it takes to copy a partition.
 * Entries as such are of the whole table: a partition takes from those that
 * are free, so the setting is kept to the entry.
 *
 * Reading.  A copy of a table is made partition by partition, without holding
 * anybody up.  It still shows no column that falls and no row twice: an entry
 * never changes its partition, and what is evicted stays in the partition, in
 * a row of its own that is added up when it is read.  So a partition is
 * copied as of one moment with its sums complete, and a copy that begins
 * after another was made has all partitions as of later moments.  (It may have
 * a few entries more than the setting allows, if some of them were thrown out
 * for others while it was made.)  Only a reset can come between two partitions
 * and spoil that: then the copy is made again.
 *
 * How to use one.  Say what the entries are in a TableSpec; in shared memory
 * they begin with their key, which is hashed and compared as bytes.  Hash a
 * key once, before any lock is taken, and keep the hash where the key is used
 * again.  Then
 *
 *		table_lock(table, hash);
 *		entry = table_find_or_add(table, hash, &key, now);
 *		... add to the entry: no call that may raise an error ...
 *		table_unlock(table, hash);
 *
 * and for as many entries of the partition as there are to add to.  If the
 * entry is NULL, there is none left: unlock, table_make_room(), try again, and
 * if there is still none, add to the partition's evicted row.  Callers that
 * can come back later use table_lock_if_free().  statements_accumulate() is
 * the example for a batch, clients_acquire() for entries that stay in use.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_TABLE_H
#define PGNETLAT_TABLE_H

#include "chains.h"
#include "datatype/timestamp.h"
#include "locks.h"

/* What of a table's nature its owner tells. */
typedef struct TableSpec
{
	const char *name;			/* of its shared memory */
	PgnetlatLock lock;			/* the kind of its partitions' locks */
	Size		key_size;		/* of a key that is never all zeros */
	Size		entry_size;		/* the key, and what the owner keeps with it */
	Size		usage_offset;	/* in the entry, a double: an aging count,
								 * which the owner raises */
	Size		since_offset;	/* a TimestampTz: when the entry was made */

	/* What each partition has besides, under its lock; at first all zero. */
	Size		own_size;

	/*
	 * Brings the usage of an entry up to date, where its owner does not do
	 * that each time.  Or NULL.
	 */
	void		(*refresh) (void *entry);

	/* May an entry be thrown out?  NULL: any may. */
	bool		(*may_go) (const void *entry);

	/*
	 * An entry is thrown out: what it has counted goes into the partition's
	 * own.
	 */
	void		(*evict) (void *own, const void *entry);

	/*
	 * An owner may have a lock in each entry, for who adds to one that he has
	 * found before, without the partition's lock: see statements.c.  Then
	 * these prepare a place, once and for all, and make an entry in it that
	 * is zero but for its key.  NULL: there is nothing to prepare, and the
	 * table makes the entries itself.
	 */
	void		(*init) (void *entry);
	void		(*make) (void *entry, const void *key);
} TableSpec;

typedef struct TableShared TableShared;

/* A process's handle; set up by table_shmem_init(). */
typedef struct Table
{
	const TableSpec *spec;
	ChainDivision division;
	TableShared *shared;
	int32	   *buckets;
	ChainLink  *links;
	char	   *partitions;
	char	   *entries;		/* one behind the other, in places of their
								 * size aligned; the key of a free place is
								 * zero */
	Size		mapped;			/* bytes of entries that this process has
								 * looked at */
} Table;

extern int	table_partitions(int capacity);
extern Size table_shmem_size(const TableSpec *spec, int capacity);
extern void table_shmem_init(Table *table, const TableSpec *spec, int capacity);

static inline int
table_partition_of(const Table *table, uint32 hash)
{
	return chains_partition(&table->division, hash);
}

/* Of the partition to which a hash belongs, exclusively. */
static inline void
table_lock(const Table *table, uint32 hash)
{
	locks_acquire(table->spec->lock, table_partition_of(table, hash), LW_EXCLUSIVE);
}

/* The same, unless that takes waiting; then returns false. */
static inline bool
table_lock_if_free(const Table *table, uint32 hash)
{
	return locks_acquire_if_free(table->spec->lock, table_partition_of(table, hash),
								 LW_EXCLUSIVE);
}

static inline void
table_unlock(const Table *table, uint32 hash)
{
	locks_release(table->spec->lock, table_partition_of(table, hash));
}

/* Functions for the holder of the partition's lock */
extern void *table_find(Table *table, uint32 hash, const void *key);
extern void *table_find_or_add(Table *table, uint32 hash, const void *key,
							   TimestampTz now);
extern void *table_own(Table *table, uint32 hash);
extern void table_count_evicted(Table *table, uint32 hash);

/* Functions for who holds no lock of the table */
extern bool table_make_room(Table *table, bool wait);
extern void table_map(Table *table);
extern void table_clear(Table *table);
extern int64 table_entries(Table *table);
extern int64 table_evicted(Table *table);

/* What to do with all entries, partition by partition, under its lock. */
typedef struct TableVisitor
{
	void		(*entry) (void *entry, void *own, void *arg);	/* or NULL */
	void		(*own) (void *own, void *arg);	/* or NULL; after its entries */
} TableVisitor;

extern void table_visit(Table *table, LWLockMode mode, const TableVisitor *visitor,
						void *arg);

/* How an owner reads: what a copy of an entry consists of. */
typedef struct TableReader
{
	Size		copy_size;

	/*
	 * Makes a copy; "own" is of the entry's partition.  NULL: the first
	 * bytes.
	 */
	void		(*copy) (void *copy, const void *entry, const void *own, void *arg);

	/* Takes what it wants of a partition's own, or NULL. */
	void		(*own) (const void *own, void *arg);

	/* What the two have noted is void: the copy begins anew.  Or NULL. */
	void		(*restart) (void *arg);

	int			extra;			/* places for the owner to add to the copy */
} TableReader;

extern void *table_copy(Table *table, const TableReader *reader, void *arg, int *count);

/*
 * The same in two steps, for who holds another lock while the copy is made: first
 * room for it is made, then it is, if that is enough, and no reset gets in
 * between.  Otherwise both are to be done again.
 */
typedef struct TableCopies
{
	char	   *at;				/* palloc'd; NULL: no room yet */
	Size		room;			/* for so many copies */
	Size		count;
	Size		touched;		/* places that have been written to */
} TableCopies;

extern void table_prepare_copy(Table *table, const TableReader *reader, TableCopies *copies);
extern bool table_copy_prepared(Table *table, const TableReader *reader, void *arg,
								TableCopies *copies);

#endif							/* PGNETLAT_TABLE_H */
