/*-------------------------------------------------------------------------
 *
 * history.h
 *	  A ring of accounts by interval and database.
 *
 * What is accumulated is added to the interval in progress, which the sampler
 * closes.  While there is no sampler, that interval just grows longer.
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

/*
 * Databases with a row of their own in an interval; the rest share the
 * overflow row.
 */
#define HISTORY_DATABASES	15

typedef struct HistoryRow
{
	Oid			datid;			/* InvalidOid: overflow row */
	uint8		used;
	LedgerTotals totals;
	int64		retransmits;
	int64		bytes_received;
	int64		connections;
	int64		connect;		/* ns */
} HistoryRow;

typedef struct HistoryInterval
{
	TimestampTz start;
	TimestampTz end;			/* unset in the interval in progress */
	HistoryRow	rows[HISTORY_DATABASES + 1];
} HistoryInterval;

extern Size history_shmem_size(void);
extern void history_shmem_attach(void *memory, bool is_new);

extern void history_add(Oid datid, const LedgerTotals *totals, const TcpCounters *tcp,
						const ConnectTotals *connect);
extern bool history_is_due(TimestampTz now);
extern TimestampTz history_next_due(void);
extern void history_rotate(TimestampTz now);
extern void history_reset(TimestampTz now);
extern void *history_copy(int64 length, int *count);
extern bool history_restore(const void *content, double *sum);

#endif							/* PGNETLAT_HISTORY_H */
