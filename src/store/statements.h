/*-------------------------------------------------------------------------
 *
 * statements.h
 *	  A bounded table of what each statement has cost.
 *
 * Sessions count statements in their tallies (tally.h).  Accumulating a
 * session adds its tally's statements to the entries here, in batches.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_STATEMENTS_H
#define PGNETLAT_STATEMENTS_H

#include "datatype/timestamp.h"
#include "exec_split.h"

/* Compared as bytes: no padding; see the assertion in statements.c. */
typedef struct StatementKey
{
	Oid			userid;
	Oid			dbid;
	uint64		queryid;
} StatementKey;

/* What is counted of a statement: only int64 fields; times in nanoseconds. */
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
	int64		exec_part[NUM_EXEC_PARTS];	/* of exec; sampled */
} StatementCounters;

typedef struct StatementEntry
{
	StatementKey key;			/* must be first */
	double		usage;			/* aging number of calls, for eviction */
	TimestampTz since;
	StatementCounters counters;
	int64		early[NUM_EXEC_PARTS];	/* samples of execution that is not in
										 * totals.exec yet */
} StatementEntry;

/* What a session has counted of a statement, to be added to its entry. */
typedef struct CountedStatement
{
	uint64		queryid;		/* 0: no identifier */
	Oid			userid;
	uint32		executed_in;	/* number of the burst of its last execution */
	StatementTotals totals;
} CountedStatement;

/* The most statements that a tally can have. */
#define TALLY_STATEMENTS	32

extern Size statements_shmem_size(void);
extern void statements_shmem_attach(void *memory, bool is_new);

extern void statements_accumulate(const CountedStatement *counted, int count, Oid dbid);
extern void statements_add_sampled(const StatementKey *key, int64 exec, const int64 *part,
								   uint32 generation);
extern void statements_counts(int64 *entries, int64 *evicted);
extern bool statements_restore(const void *content, double *sum);
extern void *statements_copy(int64 length, int *count);

static inline void
statements_totals_add(StatementTotals *sum, const StatementTotals *term)
{
	for (size_t i = 0; i < sizeof(*sum) / sizeof(int64); i++)
		((int64 *) sum)[i] += ((const int64 *) term)[i];
}

/* Has anything been counted?  The other fields are parts of these. */
static inline bool
statements_has_counted(const CountedStatement *statement)
{
	const StatementTotals *totals = &statement->totals;

	return likely(totals->calls != 0) ||
		(totals->rows | totals->exec | totals->send | totals->recv |
		 totals->network | totals->client | totals->bytes) != 0;
}

#endif							/* PGNETLAT_STATEMENTS_H */
