/*-------------------------------------------------------------------------
 *
 * blockers.h
 *	  A bounded table of holders: who held up others, and after which
 *	  statement.
 *
 * A holder is the root of a chain of lock waits: it holds a lock that others
 * wait for, and waits for none itself.  There is an entry for each client
 * group and latest statement of holders; holders without a client have one for
 * each type of process.  lock_waits.h says what is added, and when.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_BLOCKERS_H
#define PGNETLAT_BLOCKERS_H

#include "client_key.h"
#include "datatype/timestamp.h"

/* Hashed as bytes: no padding, and everything unused is zero. */
typedef struct BlockerKey
{
	ClientKey	client;
	char		backend_type[NAMEDATALEN];	/* as in pg_stat_activity, or
											 * "prepared transaction"; empty:
											 * evicted entries */
	uint32		unused;
	uint64		queryid;		/* 0: none, or not known */
} BlockerKey;

/* How long others waited, by what the holder was doing; ns. */
typedef struct BlockerCounters
{
	/* snapshots are kept of these: see blockers.c */
	int64		blocked;		/* at least the sum of its parts, which follow */
	int64		exec;
	int64		send;
	int64		recv;
	int64		network;
	int64		client;

	int64		blocked_max;	/* longest wait of one session */
	int64		sessions_max;	/* most sessions that waited at once */
} BlockerCounters;

typedef struct BlockerEntry
{
	BlockerKey	key;			/* must be first; all zero: evicted entries */
	TimestampTz since;
	double		usage;			/* aging sum of ns that others waited, for
								 * eviction */
	uint64		pass;			/* the latest pass in which sessions ... */
	int64		sessions;		/* ... waited for it, and how many */
	BlockerCounters counters;
} BlockerEntry;

extern Size blockers_shmem_size(void);
extern void blockers_shmem_attach(void *memory, bool is_new);

/* Functions for the sampler */
extern void blockers_begin_pass(void);
extern void blockers_add(const BlockerKey *key, const BlockerCounters *new, int64 sessions,
						 uint32 generation);

extern void blockers_counts(int64 *entries, int64 *evicted);
extern bool blockers_restore(const void *content, double *sum);
extern void *blockers_copy(int64 length, int *count);

#endif							/* PGNETLAT_BLOCKERS_H */
