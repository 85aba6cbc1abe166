/*-------------------------------------------------------------------------
 *
 * statements.h
 *	  What each statement cost: a bounded table in shared memory.
 *
 * Whoever accumulates has added up what there is for each statement, and adds
 * all of that with one call.  Where it knows in which place the entry of a
 * statement was before, no lock of the table is taken: each entry has one of its
 * own, which is held for eleven additions.  The others are looked up, under each
 * partition's lock once.
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

/* What has been counted of a statement, and is to be added to its entry. */
typedef struct CountedStatement
{
	uint64		queryid;		/* of what has no identifier: 0 */
	Oid			userid;
	uint32		executed_in;	/* number of the burst in which it was, last */
	StatementTotals totals;
} CountedStatement;

/* Statements that can be added with one call: the bits of a word. */
#define STATEMENTS_BATCH	64

/* The place of an entry that is not known; as in known.h. */
#define STATEMENT_NO_PLACE	(-1)

static inline uint32
statements_hash(const StatementKey *key)
{
	return chains_hash(key->queryid, (uint64) key->dbid << 32 | key->userid);
}

extern Size statements_shmem_size(void);
extern void statements_shmem_init(void);

extern uint64 statements_accumulate(const CountedStatement *counted, int count, Oid dbid,
									int32 *places, bool if_free);
extern void statements_add_samples(const StatementKey *key, const int64 *part);
extern bool statements_make_room(int count);
extern void statements_prepare(int count);
extern void statements_reset(void);
extern void statements_counts(int64 *entries, int64 *evicted);
extern StatementEntry *statements_copy(int *count);
extern void statements_restore(const StatementEntry *saved);

/* Windows: what was counted since a moment that is kept */
extern void statements_take_snapshots(SnapshotLevels levels);
extern StatementWindow *statements_copy_window(int64 length, int *count);

#endif							/* PGNETLAT_STATEMENTS_H */
