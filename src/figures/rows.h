/*-------------------------------------------------------------------------
 *
 * rows.h
 *	  What the SQL functions share: rows, units and permissions.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_ROWS_H
#define PGNETLAT_ROWS_H

#include "datatype/timestamp.h"
#include "fmgr.h"
#include "funcapi.h"
#include "ledger.h"

#define ROW_MAX_COLUMNS		80

/*
 * A row under construction, filled from left to right, each column with its
 * name in SQL.  The first complete row is compared with the declaration.
 */
typedef struct RowBuilder
{
	ReturnSetInfo *result;
	bool		checked;		/* column names match the declaration */
	int			column;
	const char *columns[ROW_MAX_COLUMNS];	/* names */
	Datum		values[ROW_MAX_COLUMNS];
	bool		nulls[ROW_MAX_COLUMNS];
} RowBuilder;

extern bool rows_are_there(void);
extern void rows_require_preload(void);
extern void rows_begin_anyway(FunctionCallInfo fcinfo, RowBuilder *row);
extern void rows_begin(FunctionCallInfo fcinfo, RowBuilder *row);
extern int64 rows_begin_window(FunctionCallInfo fcinfo, RowBuilder *row);
extern void row_emit(RowBuilder *row);

extern void row_datum(RowBuilder *row, const char *column, Datum value);
extern void row_null(RowBuilder *row, const char *column);
extern void row_null_last(RowBuilder *row, int columns);
extern void row_null_rest(RowBuilder *row);
extern void row_int32(RowBuilder *row, const char *column, int32 value);
extern void row_int64(RowBuilder *row, const char *column, int64 value);
extern void row_float8(RowBuilder *row, const char *column, double value);
extern void row_oid(RowBuilder *row, const char *column, Oid value);	/* NULL if invalid */
extern void row_name(RowBuilder *row, const char *column, const char *value);	/* NULL if NULL */
extern void row_text(RowBuilder *row, const char *column, const char *value);	/* NULL if NULL */
extern void row_timestamp(RowBuilder *row, const char *column, TimestampTz value);	/* NULL if 0 */
extern void row_ms(RowBuilder *row, const char *column, int64 nanoseconds);
extern void row_rtt(RowBuilder *row, const char *column, int64 nanoseconds);	/* NULL if 0 */
extern void row_window_time(RowBuilder *row, TimestampTz since);
extern void row_address(RowBuilder *row, const char *column, int family, const uint8 *address);
extern void row_database(RowBuilder *row, Oid datid);
extern void row_database_and_role(RowBuilder *row, Oid datid, Oid role);
extern void row_exec_parts(RowBuilder *row, int64 exec, const int64 *part);
extern void row_account(RowBuilder *row, const LedgerTotals *totals, const int64 *pending);

extern bool rows_may_see(Oid role);

#endif							/* PGNETLAT_ROWS_H */
