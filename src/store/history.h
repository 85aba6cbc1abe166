/*-------------------------------------------------------------------------
 *
 * history.h
 *	  The account by interval and database: a ring in shared memory.
 *
 * Whatever is accumulated goes into the interval in progress; the sampler closes
 * it.  While the sampler is down the interval in progress just grows longer.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_HISTORY_H
#define PGNETLAT_HISTORY_H

#include "datatype/timestamp.h"
#include "connect_cost.h"
#include "ledger.h"
#include "tcpinfo.h"

/* Databases that an interval tells apart; the rest share a row. */
#define HISTORY_DATABASES	15

typedef struct HistoryRow
{
	Oid			datid;			/* InvalidOid: the databases without a row */
	bool		used;
	LedgerTotals totals;
	int64		retransmits;
	int64		bytes_received;
	int64		connections;
	int64		connect;		/* ns */
} HistoryRow;

typedef struct HistoryInterval
{
	TimestampTz start;
	TimestampTz end;			/* of the interval in progress: unset */
	HistoryRow	rows[HISTORY_DATABASES + 1];
} HistoryInterval;

extern Size history_shmem_size(void);
extern void history_shmem_init(void);

extern void history_add(Oid datid, const LedgerTotals *totals, const TcpCounters *tcp);
extern void history_add_connect(Oid datid, const ConnectTotals *connect);
extern bool history_is_due(TimestampTz now);
extern TimestampTz history_next_due(void);
extern void history_rotate(TimestampTz now);
extern void history_reset(TimestampTz now);
extern HistoryInterval *history_copy(TimestampTz now, int *count);
extern void history_restore(const HistoryInterval *interval);

#endif							/* PGNETLAT_HISTORY_H */
