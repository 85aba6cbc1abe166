/*-------------------------------------------------------------------------
 *
 * blockers.h
 *	  Who held up others, and after which statement: a bounded table in shared
 *	  memory.
 *
 * A holder is the root of a chain of lock waits: it holds a lock that others
 * wait for, and waits for none itself.  Its entry is that of its client group
 * and its latest statement; holders without a client have one for each type of
 * process.  What is added, and when, is explained in lock_waits.h.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_BLOCKERS_H
#define PGNETLAT_BLOCKERS_H

#include "clients.h"
#include "datatype/timestamp.h"

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

typedef struct BlockerEntry
{
	BlockerKey	key;			/* must be first; all zero: evicted entries */
	TimestampTz since;
	double		usage;			/* ns that others waited, aging; for eviction */
	uint64		pass;			/* of the worker, in which so many ... */
	int64		sessions;		/* ... waited for it */
	BlockerCounters counters;
} BlockerEntry;

extern Size blockers_shmem_size(void);
extern void blockers_shmem_init(void);

/* Functions for the worker */
extern void blockers_begin_pass(void);
extern void blockers_add(const BlockerKey *key, const BlockerCounters *new, int64 sessions,
						 uint32 generation);

extern void blockers_reset(void);
extern void blockers_counts(int64 *entries, int64 *evicted);
extern BlockerEntry *blockers_copy(int *count);
extern void blockers_restore(const BlockerEntry *saved);

#endif							/* PGNETLAT_BLOCKERS_H */
