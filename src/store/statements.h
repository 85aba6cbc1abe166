/*-------------------------------------------------------------------------
 *
 * statements.h
 *	  What each statement cost: a bounded table in shared memory.
 *
 * Whoever accumulates has added up what there is for each statement, and adds
 * all of that with one call.  Where it knows in which place the entry of a
 * statement was before, no lock of the table is taken: each entry has one of its
 * own, which is held for eleven additions.  The others are looked up, under each
 * partition's lock once.  A session adds guests one by one (tally.h), to entries
 * whose places it knows.
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
#include "known.h"
#include "port/atomics.h"
#include "session_slot.h"
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
	double		usage;			/* aging count of calls, for eviction; brought
								 * up to date when it is needed */
	TimestampTz since;
	StatementCounters counters;
} StatementEntry;

/* What of a statement was counted in a window, which began at "since". */
typedef struct StatementWindow
{
	StatementKey key;
	TimestampTz since;
	StatementTotals totals;
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

static inline uint32
statements_hash(const StatementKey *key)
{
	return chains_hash(key->queryid, (uint64) key->dbid << 32 | key->userid);
}

/* Sums are added in pairs, and the places of entries are counted in this unit. */
#define STATEMENT_ALIGNMENT	16

/* An entry in shared memory. */
typedef struct SharedStatement
{
	StatementEntry entry pg_attribute_aligned(STATEMENT_ALIGNMENT); /* must be first */
	StatementTotals kept[SNAPSHOTS_KEPT];
	int64		calls_in_usage; /* those that entry.usage has */
	pg_atomic_flag busy;		/* set: somebody adds to the entry, or reads
								 * it */
} SharedStatement;

/* Where the entries are, in hot paths. */
#pragma GCC visibility push(hidden)
extern SharedStatement *statements_entries;
#pragma GCC visibility pop

extern Size statements_shmem_size(void);
extern void statements_shmem_init(void);

extern uint64 statements_accumulate(const CountedStatement *counted, int count, Oid dbid,
									int32 *where, bool if_free);
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

/* ---------------------------------------------------------------------------
 * Adding to an entry whose place is known
 * ---------------------------------------------------------------------------
 */

/* Where an entry is, as in known.h: always positive. */
static inline int32
statements_where(const SharedStatement *shared)
{
	return ((const char *) shared - (const char *) statements_entries) / STATEMENT_ALIGNMENT + 1;
}

static inline SharedStatement *
statements_at(int32 where)
{
	return (SharedStatement *) ((char *) statements_entries +
								(uint64) (uint32) where * STATEMENT_ALIGNMENT - STATEMENT_ALIGNMENT);
}

static inline void
statements_totals_add(StatementTotals *sum, const StatementTotals *term)
{
	sum->calls += term->calls;
	sum->rows += term->rows;
	sum->exec += term->exec;
	sum->send += term->send;
	sum->recv += term->recv;
	sum->network += term->network;
	sum->client += term->client;
	sum->in_xact_wait += term->in_xact_wait;
	sum->bytes += term->bytes;
	sum->repeats += term->repeats;
	sum->repeat_network += term->repeat_network;
}

static inline void
statements_totals_subtract(StatementTotals *difference, const StatementTotals *term)
{
	difference->calls -= term->calls;
	difference->rows -= term->rows;
	difference->exec -= term->exec;
	difference->send -= term->send;
	difference->recv -= term->recv;
	difference->network -= term->network;
	difference->client -= term->client;
	difference->in_xact_wait -= term->in_xact_wait;
	difference->bytes -= term->bytes;
	difference->repeats -= term->repeats;
	difference->repeat_network -= term->repeat_network;
}

/*
 * Add to the entry that was in the place known as "where", and nothing else.  False if
 * it is not there any more, or somebody else is just about it.
 *
 * "slot" is that of a session which adds from its own tally, in a write section in
 * which it forgets that: then also false if somebody has come to the tally.  No reset
 * gets in between: its announcement shows there, as it does to who makes a new entry
 * in the place, under the same lock.
 */
static pg_attribute_always_inline bool
statements_add_in_place(const CountedStatement *counted, const Oid *dbid, int32 where,
						SessionSlot *slot)
{
	SharedStatement *shared = statements_at(where);
	StatementTotals *sum = __builtin_assume_aligned(&shared->entry.counters.totals,
													STATEMENT_ALIGNMENT);
	const StatementKey *key = &shared->entry.key;
	bool		found;

	if (unlikely(!pg_atomic_test_set_flag(&shared->busy)))
		return false;
	found = key->queryid == counted->queryid && key->userid == counted->userid &&
		key->dbid == *dbid && (slot == NULL || !slot_tally_was_touched(slot));
	if (likely(found))
		statements_totals_add(sum, &counted->totals);
	pg_atomic_clear_flag(&shared->busy);
	return found;
}

#endif							/* PGNETLAT_STATEMENTS_H */
