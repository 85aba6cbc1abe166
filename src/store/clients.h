/*-------------------------------------------------------------------------
 *
 * clients.h
 *	  The account by client group: a bounded table in shared memory.
 *
 * A group is a database, a role, an application_name and an address.  Its sums
 * hold what was accumulated from live and ended sessions.  What only live
 * sessions add to it (their number, and their pending time) is in the same
 * entry, under the same lock: a copy of an entry is as of one moment, so its
 * parts add up and its total never decreases.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_CLIENTS_H
#define PGNETLAT_CLIENTS_H

#include "datatype/timestamp.h"
#include "client_key.h"
#include "connect_cost.h"
#include "histogram.h"
#include "ledger.h"
#include "snapshots.h"
#include "tcpinfo.h"

typedef enum ClientMetric
{
	METRIC_WAIT,				/* waits that are not idle */
	METRIC_REQUEST,				/* exchanges: exec + send + recv */
	METRIC_NETWORK,				/* of those waits: the network */
	METRIC_CLIENT,				/* of those waits: the client */
	METRIC_RTT,					/* round-trip times, each time they are
								 * measured */
	METRIC_CONNECT,				/* connections: connect_cost.h */
	NUM_METRICS
} ClientMetric;

/* Those that sessions count in their tallies come first. */
#define NUM_TALLY_METRICS	METRIC_CONNECT

typedef struct ClientCounters
{
	/* of these, snapshots are kept: see clients.c */
	LedgerTotals totals;
	TcpCounters tcp;
	int64		ended_sessions;
	ConnectTotals connect;

	int64		rtt;			/* ns, latest measured; 0: none */
	Histogram	histogram[NUM_METRICS];
} ClientCounters;

/*
 * What the live sessions of a group add to it, and what is not saved; the only
 * part that may fall.
 */
typedef struct ClientLive
{
	int64		sessions;
	int64		pending;		/* ns */
} ClientLive;

typedef struct ClientEntry
{
	ClientKey	key;			/* must be first */
	bool		is_evicted;		/* a database's evicted groups; only datid is
								 * set */
	double		usage;			/* aging count of exchanges, for eviction */
	TimestampTz since;
	ClientPooler pooler;		/* the latest */
	ClientLive	live;
	ClientCounters counters;
} ClientEntry;

/*
 * One live session's part in the group of its key.  All zero: in none yet.  A
 * group that has live sessions stays where it is, so its place is kept.
 */
typedef struct ClientMember
{
	bool		joined;
	bool		in_evicted;		/* there was no room for the group: it is in
								 * the row of its database's evicted ones */
	uint32		hash;			/* of the key with which it joined */
	ClientEntry *entry;
	int64		pending;		/* its part of the group's */
} ClientMember;

extern Size clients_shmem_size(void);
extern void clients_shmem_init(void);

/*
 * The entry of a live session, which joins it if it is not there yet, locked
 * until clients_release() or clients_leave().  Between the two nothing may
 * raise an error.
 */
extern ClientEntry *clients_acquire(const ClientKey *key, ClientMember *member,
									TimestampTz now);
extern void clients_release(const ClientMember *member);

/* Functions for the holder of the entry; its pending time is zero. */
extern ClientEntry *clients_move(const ClientKey *key, ClientMember *member,
								 TimestampTz now);
extern void clients_leave(ClientMember *member);

static inline void
clients_set_pending(ClientEntry *entry, ClientMember *member, int64 pending)
{
	entry->live.pending += pending - member->pending;
	member->pending = pending;
}


extern void clients_reset(void);

/* Which groups: what is zero or NULL may be anything. */
typedef struct ClientPattern
{
	Oid			datid;
	Oid			userid;
	const char *application_name;
	int32		family;
	uint8		address[16];
} ClientPattern;

extern int64 clients_reset_matching(const ClientPattern *pattern, TimestampTz now);
extern void clients_counts(int64 *entries, int64 *evicted);
extern ClientEntry *clients_copy(int *count);
extern void clients_restore(const ClientEntry *saved);

/* Windows: what was counted since a moment that is kept */
extern void clients_take_snapshots(SnapshotLevels levels);
extern ClientEntry *clients_copy_window(int64 length, int *count);

#endif							/* PGNETLAT_CLIENTS_H */
