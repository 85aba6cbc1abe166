/*-------------------------------------------------------------------------
 *
 * statements.h
 *	  What each statement cost: a bounded table in shared memory.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_STATEMENTS_H
#define PGNETLAT_STATEMENTS_H

#include "datatype/timestamp.h"

/* Hashed as bytes: no padding; see the assertion in statements.c. */
typedef struct StatementKey
{
	Oid			userid;
	Oid			dbid;
	uint64		queryid;
} StatementKey;

/* Times in nanoseconds. */
typedef struct StatementCounters
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
} StatementCounters;

typedef struct StatementEntry
{
	StatementKey key;			/* must be first */
	double		usage;			/* aging count of calls, for eviction */
	TimestampTz since;
	StatementCounters counters;
} StatementEntry;

/* Something to add to a statement's counters. */
typedef struct StatementBatchItem
{
	StatementKey key;
	StatementCounters delta;
} StatementBatchItem;

extern Size statements_shmem_size(void);
extern void statements_shmem_init(void);

extern void statements_accumulate(const StatementBatchItem *items, int count,
								  TimestampTz now);
extern void statements_reset(TimestampTz now);
extern void statements_counts(int64 *entries, int64 *evicted);

/* Calls back with a copy of each entry, the one of evicted entries (all zero key) last. */
extern void statements_iterate(void (*callback) (const StatementEntry *entry, void *arg),
							   void *arg);
extern void statements_restore(const StatementEntry *saved);

#endif							/* PGNETLAT_STATEMENTS_H */
