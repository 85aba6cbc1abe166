/*-------------------------------------------------------------------------
 *
 * rows.h
 *	  What the SQL functions share: building rows, units, permissions.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_ROWS_H
#define PGNETLAT_ROWS_H

#include "clients.h"
#include "fmgr.h"
#include "funcapi.h"
#include "ledger.h"

#define ROW_MAX_COLUMNS		48

/* A row under construction, filled from left to right. */
typedef struct RowBuilder
{
	ReturnSetInfo *result;
	int			column;
	Datum		values[ROW_MAX_COLUMNS];
	bool		nulls[ROW_MAX_COLUMNS];
} RowBuilder;

extern void rows_require_preload(void);
extern void rows_begin(FunctionCallInfo fcinfo, RowBuilder *row);
extern void row_emit(RowBuilder *row);

extern void row_null(RowBuilder *row);
extern void row_bool(RowBuilder *row, bool value);
extern void row_char(RowBuilder *row, char value);
extern void row_int32(RowBuilder *row, int32 value);
extern void row_int64(RowBuilder *row, int64 value);
extern void row_float8(RowBuilder *row, double value);
extern void row_oid(RowBuilder *row, Oid value);	/* NULL if invalid */
extern void row_text(RowBuilder *row, const char *value);	/* NULL if NULL */
extern void row_timestamp(RowBuilder *row, TimestampTz value);	/* NULL if 0 */
extern void row_ms(RowBuilder *row, int64 nanoseconds);
extern void row_address(RowBuilder *row, int family, const uint8 *address);
extern void row_account(RowBuilder *row, const LedgerTotals *totals, const int64 *pending);

extern bool rows_may_see(Oid role);

#endif							/* PGNETLAT_ROWS_H */
