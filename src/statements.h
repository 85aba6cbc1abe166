/*-------------------------------------------------------------------------
 *
 * statements.h
 *	  What each statement cost: a bounded table in shared memory.
 *
 * Whoever accumulates first adds up what it has for each statement in items of
 * its own, with the hashes of their keys, and then adds all of them with one
 * call, which takes each lock that it needs once.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_STATEMENTS_H
#define PGNETLAT_STATEMENTS_H

#include "chains.h"
#include "datatype/timestamp.h"
#include "exec_split.h"
#include "snapshots.h"

/* Compared as bytes: no padding; see the assertion in statements.c. */
typedef struct StatementKey
{
	Oid			userid;
	Oid			dbid;
	uint64		queryid;
} StatementKey;

/* What a session counts of a statement.  Times in nanoseconds. */
typedef struct StatementTotals
{
	int64		calls;
	int64		rows;
	int64		exec;
	int64		send;
	int64		recv;
	int64		network;
	int64		client;
	int64		in_xact_wait;
	int64		bytes;
	int64		repeats;
	int64		repeat_network;
} StatementTotals;

typedef struct StatementCounters
{
	StatementTotals totals;
	ExecSplit	split;			/* of exec; sampled */
} StatementCounters;

typedef struct StatementEntry
{
	StatementKey key;			/* must be first */
	double		usage;			/* aging count of calls, for eviction */
	TimestampTz since;
	StatementCounters counters;
} StatementEntry;

/*
 * What of a statement was counted in a window.  Times in nanoseconds, to the
 * millisecond.
 */
typedef struct StatementWindow
{
	StatementKey key;
	int64		calls;
	int64		repeats;
	int64		repeat_network;
	int64		client;
	int64		in_xact_wait;
	int64		time;			/* its executions, and the waits after them */
} StatementWindow;

/* Something to add to what has been counted of a statement. */
typedef struct StatementBatchItem
{
	StatementKey key;
	uint32		hash;			/* statements_hash(&key) */
	StatementTotals delta;
} StatementBatchItem;

static inline uint32
statements_hash(const StatementKey *key)
{
	return chains_hash(key->queryid, (uint64) key->dbid << 32 | key->userid);
}

extern Size statements_shmem_size(void);
extern void statements_shmem_init(void);

extern void statements_accumulate(const StatementBatchItem *items, int count,
								  TimestampTz now);
extern void statements_add_samples(const StatementKey *key, const int64 *part);
extern int	statements_accumulate_if_free(StatementBatchItem *items, int count,
										  TimestampTz now);
extern void statements_reset(void);
extern void statements_counts(int64 *entries, int64 *evicted);
extern StatementEntry *statements_copy(int *count);
extern void statements_restore(const StatementEntry *saved);

/* Windows: what was counted since a moment that is kept */
extern void statements_take_snapshots(SnapshotLevels levels);
extern StatementWindow *statements_copy_window(int64 length, int *count);

#endif							/* PGNETLAT_STATEMENTS_H */
