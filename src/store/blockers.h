/*-------------------------------------------------------------------------
 *
 * blockers.h
 *	  Who held up others, and after which statement: a bounded table in shared
 *	  memory.
 *
 * A holder is the root of a chain of lock waits: it holds a lock that others
 * wait for, and waits for none itself.  Its entry is that of its client group
 * and its latest statement; holders without a client have one for each type of
 * process.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_BLOCKERS_H
#define PGNETLAT_BLOCKERS_H

#include "clients.h"
#include "datatype/timestamp.h"
#include "table.h"

/* Hashed as bytes: no padding, and everything unused is zero. */
typedef struct BlockerKey
{
	ClientKey	client;
	char		backend_type[NAMEDATALEN];	/* as in pg_stat_activity, or
											 * "prepared transaction"; empty:
											 * evicted entries */
	uint32		unused;
	uint64		queryid;		/* 0: none, or none that is known */
} BlockerKey;

/* What others waited for, and what the holder did meanwhile; ns. */
typedef struct BlockerCounters
{
	int64		blocked;		/* at least the sum of the parts that follow */
	int64		exec;			/* the first of BLOCKER_PARTS */
	int64		send;
	int64		recv;
	int64		network;
	int64		client;
	int64		blocked_max;	/* the longest that one session waited */
	int64		sessions_max;	/* the most that waited at a time */
} BlockerCounters;

#define BLOCKER_PARTS	5

/*
 * What is new of some waits for a holder; blocked_max is for how long the longest
 * of them has been in progress under this key.
 */
typedef struct BlockerDelta
{
	BlockerCounters counters;
	int64		in_progress;	/* as of this pass */
	int64		begun;			/* of which nothing was added yet */
} BlockerDelta;

/* How many wait now: valid only while "pass" is the latest. */
typedef struct BlockerLive
{
	uint64		pass;
	int64		sessions;
} BlockerLive;

typedef struct BlockerEntry
{
	BlockerKey	key;			/* must be first */
	double		usage;			/* aging seconds that others waited, for
								 * eviction */
	TimestampTz since;
	BlockerLive live;
	BlockerCounters counters;
} BlockerEntry;

extern Size blockers_shmem_size(void);
extern void blockers_shmem_init(void);

extern uint32 blockers_hash(const BlockerKey *key);
extern void blockers_sum(BlockerCounters *sum, const BlockerCounters *term);

/*
 * Functions for the holder of the lock of lock waits.  Each pass over the waits
 * begins with blockers_begin_pass(); each wait goes into one blockers_add() of
 * it.
 */
extern void blockers_begin_pass(void);
extern void blockers_add(const BlockerKey *key, uint32 hash, const BlockerDelta *delta,
						 TimestampTz now);
extern void blockers_reset(void);

extern BlockerEntry *blockers_copy(int *count);

/*
 * The same in three steps, of which only the second one is for the holder of the
 * lock of lock waits, and does not allocate.  It returns false if the first two
 * are to be done again.
 */
typedef struct BlockersCopy
{
	TableCopies entries;
	BlockerEntry evicted;
} BlockersCopy;

extern void blockers_prepare_copy(BlockersCopy *copy);
extern bool blockers_copy_prepared(BlockersCopy *copy);
extern BlockerEntry *blockers_finish_copy(BlockersCopy *copy, int *count);

extern void blockers_counts(int64 *entries, int64 *evicted);
extern void blockers_restore(const BlockerEntry *saved);

#endif							/* PGNETLAT_BLOCKERS_H */
