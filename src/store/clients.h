/*-------------------------------------------------------------------------
 *
 * clients.h
 *	  A bounded table of accounts by client group.
 *
 * A group is a database, a role, a name and an address.  The name is
 * application_name without a pooler's suffix and a tracer's context.  Its sums
 * hold what was accumulated from live and ended sessions.  The number of live
 * sessions and their pending time are in the same entry, under the same lock:
 * a copy of an entry is as of one moment, so its parts add up and its total
 * never falls.
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
#include "tcpinfo.h"

typedef enum ClientMetric
{
	METRIC_WAIT,				/* waits that are not idle */
	METRIC_REQUEST,				/* exchanges: exec + send + recv */
	METRIC_NETWORK,				/* network part of those waits */
	METRIC_CLIENT,				/* client part of those waits */
	METRIC_RTT,					/* each round-trip time measured */
	METRIC_CONNECT,				/* connect_time: see connect_cost.h */
	NUM_METRICS
} ClientMetric;

/* The metrics that sessions count in their tallies come first. */
#define NUM_TALLY_METRICS	METRIC_CONNECT

typedef struct ClientCounters
{
	/* snapshots are kept of these: see clients.c */
	LedgerTotals totals;
	TcpCounters tcp;
	int64		ended_sessions;
	int64		identified;		/* part of statements: repeats can be found */
	ConnectTotals connect;

	int64		rtt;			/* ns, latest measured; 0: none */
	/* what a sum of other names or evicted groups keeps, too */
	int64		repeats_max;	/* of one statement in one burst */
	int64		round_trips_max;	/* of a transaction block */
	Histogram	histogram[NUM_METRICS];
} ClientCounters;

/*
 * What belongs to live sessions: the only part that may fall.  It is zero when
 * the table is saved.
 */
typedef struct ClientLive
{
	int64		sessions;
	int64		pending;		/* ns */
} ClientLive;

typedef struct ClientEntry
{
	ClientKey	key;			/* must be first */
	uint8		is_evicted;		/* evicted row; its key has only datid */
	double		usage;			/* aging number of exchanges, for eviction */
	TimestampTz since;
	ClientPooler pooler;		/* latest seen */
	ClientLive	live;
	uint64		repeats_max_queryid;	/* of counters.repeats_max */
	ClientCounters counters;
} ClientEntry;

/*
 * A live session's membership in its group; all zero if it is in none yet.  A
 * group with live sessions is never moved, so its place is kept here.
 */
typedef struct ClientMember
{
	bool		joined;
	bool		no_room;		/* for the group: this is the one of other
								 * names, or its database's evicted row */
	uint32		hash;			/* of the key with which the session joined */
	Size		entry;			/* see table_at() */
	int64		pending;		/* its part of the group's pending time */
} ClientMember;

extern Size clients_shmem_size(void);
extern void clients_shmem_attach(void *memory, bool is_new);

/*
 * Lock the entry of a live session, which joins its group if it has not yet,
 * until clients_release() or clients_leave().  In between, nothing may raise
 * an error.
 */
extern ClientEntry *clients_acquire(const ClientKey *key, ClientMember *member,
									TimestampTz now);
extern void clients_release(const ClientMember *member);
extern void clients_note_repeats(ClientEntry *entry, int64 repeats, uint64 queryid);
extern bool clients_have_room(const ClientKey *key, const ClientMember *member, TimestampTz now);

/*
 * Functions for the holder of the entry, when the session's pending time is
 * zero.
 */
extern ClientEntry *clients_move(const ClientKey *key, ClientMember *member,
								 TimestampTz now);
extern void clients_leave(ClientMember *member);

static inline void
clients_set_pending(ClientEntry *entry, ClientMember *member, int64 pending)
{
	entry->live.pending += pending - member->pending;
	member->pending = pending;
}

/*
 * Idle time stops at 146 years, which 5,000 idle sessions have after eleven days:
 * the sums that it is part of must not overflow.
 */
static inline void
clients_limit_idle(ClientCounters *counters)
{
	counters->totals.idle = Min(counters->totals.idle, PG_INT64_MAX / 2);
}

/* Selects groups; zero or NULL matches anything. */
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
extern bool clients_restore(const void *content, double *sum);
extern void *clients_copy(int64 length, int *count);

#endif							/* PGNETLAT_CLIENTS_H */
