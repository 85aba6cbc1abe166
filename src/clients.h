/*-------------------------------------------------------------------------
 *
 * clients.h
 *	  The account by client group: a bounded table in shared memory.
 *
 * A group is a database, a role, an application_name and an address.  Its
 * sums hold what was folded in from live and ended sessions.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_CLIENTS_H
#define PGNETLAT_CLIENTS_H

#include "datatype/timestamp.h"
#include "histogram.h"
#include "ledger.h"
#include "tcpinfo.h"

/* Hashed as bytes: no padding, and everything unused is zero. */
typedef struct ClientKey
{
	Oid			datid;
	Oid			userid;
	int32		family;			/* AF_INET, AF_INET6; 0: Unix-domain socket */
	uint8		address[16];
	char		application_name[NAMEDATALEN];
} ClientKey;

typedef enum ClientMetric
{
	METRIC_WAIT,				/* waits that are not idle */
	METRIC_EXCHANGE,			/* exchanges: exec + send + recv */
	METRIC_NETWORK,				/* of those waits: the network */
	METRIC_CLIENT,				/* of those waits: the client */
	METRIC_RTT,					/* round-trip times, each time they are measured */
	NUM_METRICS
} ClientMetric;

typedef struct ClientCounters
{
	LedgerTotals totals;
	TcpCounters tcp;
	int64		ended_sessions;
	int64		rtt;			/* ns, latest measured; 0: none */
	Histogram	histogram[NUM_METRICS];
} ClientCounters;

typedef struct ClientEntry
{
	ClientKey	key;			/* must be first */
	bool		is_other;		/* a database's evicted groups; only datid is set */
	double		usage;			/* aging count of exchanges, for eviction */
	TimestampTz since;
	ClientCounters counters;
} ClientEntry;

extern Size clients_shmem_size(void);
extern void clients_shmem_init(void);

/*
 * The entry for a key, new if need be, locked until clients_release().
 * Between the two nothing may raise an error.
 */
extern ClientCounters *clients_acquire(const ClientKey *key, int64 usage, TimestampTz now);
extern void clients_release(void);

extern void clients_reset(TimestampTz now);
extern void clients_counts(int64 *entries, int64 *evicted);
extern ClientEntry *clients_copy(int *count);
extern void clients_restore(const ClientEntry *entry);

#endif							/* PGNETLAT_CLIENTS_H */
