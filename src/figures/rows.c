/*-------------------------------------------------------------------------
 *
 * rows.c
 *	  Builds rows, and checks permissions, for the SQL functions.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/socket.h>

#include "catalog/pg_authid.h"
#include "clock.h"
#include "commands/dbcommands.h"
#include "compat.h"
#include "late_memory.h"
#include "miscadmin.h"
#include "rows.h"
#include "shared_memory.h"
#include "snapshots.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/inet.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

/* Is there memory to read from? */
bool
rows_are_there(void)
{
	return late_is_used ? late_memory_find() : shmem_is_ready();
}

void
rows_require_preload(void)
{
	if (rows_are_there())
		return;
	if (COMPAT_HAS_NAMED_MEMORY)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("pgnetlat must be loaded via \"shared_preload_libraries\" or \"session_preload_libraries\""),
				 errhint("Add \"pgnetlat\" to \"shared_preload_libraries\" and restart the server, or add it to \"session_preload_libraries\" and reload the configuration, so that each new connection is counted.")));
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("pgnetlat must be loaded via \"shared_preload_libraries\""),
			 errhint("Add \"pgnetlat\" to \"shared_preload_libraries\" and restart the server.")));
}

/* Start a set of rows, with the columns of the SQL declaration. */
void
rows_begin(FunctionCallInfo fcinfo, RowBuilder *row)
{
	rows_require_preload();
	rows_begin_anyway(fcinfo, row);
}

/* The same where there may be no shared memory. */
void
rows_begin_anyway(FunctionCallInfo fcinfo, RowBuilder *row)
{
	InitMaterializedSRF(fcinfo, 0);
	row->result = (ReturnSetInfo *) fcinfo->resultinfo;
	row->column = 0;
	row->checked = false;
}

static int
compare_intervals(const Interval *a, const Interval *b)
{
	return DatumGetInt32(DirectFunctionCall2(interval_cmp, IntervalPGetDatum(a),
											 IntervalPGetDatum(b)));
}

/* The length of the window that a caller asks for, in nanoseconds. */
static int64
window_length(const Interval *duration)
{
	static const Interval nothing = {.time = 0};
	static const Interval longest = {.time = SNAPSHOTS_LONGEST_NS / NS_PER_US};

	if (compare_intervals(duration, &nothing) <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("duration must be positive"),
				 errhint("Specify how far to look back from now, such as '10 s' or '1 min'.")));
	if (compare_intervals(duration, &longest) > 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("duration must not be more than 15 minutes"),
				 errhint("Use pgnetlat_history for earlier times.")));
	/* the terms may be large (1 day - 23:59:50), their sum is not */
	return (duration->time +
			((int64) duration->month * DAYS_PER_MONTH + duration->day) * USECS_PER_DAY) *
		NS_PER_US;
}

/*
 * The same for a function whose parameter, if it has one, is a window's
 * duration.  Returns the window's length in nanoseconds; 0 for all time.
 */
int64
rows_begin_window(FunctionCallInfo fcinfo, RowBuilder *row)
{
	rows_begin(fcinfo, row);
	return PG_NARGS() > 0 ? window_length(PG_GETARG_INTERVAL_P(0)) : 0;
}

/*
 * Check a row against the declaration.  Another number of columns means
 * another version of the library.  Another name is our own mistake: otherwise
 * two columns of one type, swapped in C or in SQL, would go unnoticed.
 */
static void
check_columns(RowBuilder *row)
{
	TupleDesc	declared = row->result->setDesc;

	if (row->column != declared->natts)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("library and extension \"pgnetlat\" do not match"),
				 errdetail("The function is declared with %d columns, but version %s of the library has %d.",
						   declared->natts, PGNETLAT_VERSION, row->column),
				 errhint("Install the version of the library that matches the extension, and restart the server.")));
	if (row->checked)
		return;
	row->checked = true;
	for (int i = 0; i < row->column; i++)
	{
		const char *name = NameStr(TupleDescAttr(declared, i)->attname);

		/* columns of a row that the caller may not see have no names */
		if (row->columns[i] == NULL)
			row->checked = false;
		else if (strcmp(name, row->columns[i]) != 0)
			elog(ERROR, "column %d is declared as \"%s\", but the library has \"%s\"",
				 i + 1, name, row->columns[i]);
	}
}

void
row_emit(RowBuilder *row)
{
	check_columns(row);
	tuplestore_putvalues(row->result->setResult, row->result->setDesc,
						 row->values, row->nulls);
	row->column = 0;
}

void
row_datum(RowBuilder *row, const char *column, Datum value)
{
	Assert(row->column < ROW_MAX_COLUMNS);
	row->columns[row->column] = column;
	row->values[row->column] = value;
	row->nulls[row->column++] = false;
}

void
row_null(RowBuilder *row, const char *column)
{
	Assert(row->column < ROW_MAX_COLUMNS);
	row->columns[row->column] = column;
	row->values[row->column] = (Datum) 0;
	row->nulls[row->column++] = true;
}

/* Set the last "columns" columns to NULL. */
void
row_null_last(RowBuilder *row, int columns)
{
	memset(&row->nulls[row->column - columns], true, columns);
}

/* Set the rest of the row to NULL. */
void
row_null_rest(RowBuilder *row)
{
	int			declared = Min(row->result->setDesc->natts, ROW_MAX_COLUMNS);

	while (row->column < declared)
		row_null(row, NULL);
}

void
row_int32(RowBuilder *row, const char *column, int32 value)
{
	row_datum(row, column, Int32GetDatum(value));
}

void
row_int64(RowBuilder *row, const char *column, int64 value)
{
	row_datum(row, column, Int64GetDatum(value));
}

void
row_float8(RowBuilder *row, const char *column, double value)
{
	row_datum(row, column, Float8GetDatum(value));
}

void
row_oid(RowBuilder *row, const char *column, Oid value)
{
	if (OidIsValid(value))
		row_datum(row, column, ObjectIdGetDatum(value));
	else
		row_null(row, column);
}

void
row_name(RowBuilder *row, const char *column, const char *value)
{
	if (value)
		row_datum(row, column, DirectFunctionCall1(namein, CStringGetDatum(value)));
	else
		row_null(row, column);
}

void
row_text(RowBuilder *row, const char *column, const char *value)
{
	if (value)
		row_datum(row, column, CStringGetTextDatum(value));
	else
		row_null(row, column);
}

void
row_timestamp(RowBuilder *row, const char *column, TimestampTz value)
{
	if (value != 0)
		row_datum(row, column, TimestampTzGetDatum(value));
	else
		row_null(row, column);
}

/* Durations are kept in nanoseconds and shown in milliseconds. */
void
row_ms(RowBuilder *row, const char *column, int64 nanoseconds)
{
	row_float8(row, column, nanoseconds / (double) NS_PER_MS);
}

/* A round trip; NULL if not known. */
void
row_rtt(RowBuilder *row, const char *column, int64 nanoseconds)
{
	row_ms(row, column, nanoseconds);
	if (nanoseconds <= 0)
		row_null_last(row, 1);
}

/* The length of a window that began at "since". */
void
row_window_time(RowBuilder *row, TimestampTz since)
{
	row_ms(row, "window_time", Max(GetCurrentTimestamp() - since, 0) * NS_PER_US);
}

/* An address; NULL on a Unix-domain socket, as in pg_stat_activity. */
void
row_address(RowBuilder *row, const char *column, int family, const uint8 *address)
{
	inet	   *result;
	int			length = family == AF_INET ? 4 : 16;

	if (family != AF_INET && family != AF_INET6)
	{
		row_null(row, column);
		return;
	}
	result = palloc0(sizeof(inet));
	ip_family(result) = family == AF_INET ? PGSQL_AF_INET : PGSQL_AF_INET6;
	ip_bits(result) = ip_maxbits(result);
	memcpy(ip_addr(result), address, length);
	SET_INET_VARSIZE(result);
	row_datum(row, column, InetPGetDatum(result));
}

/* datid, datname */
void
row_database(RowBuilder *row, Oid datid)
{
	row_oid(row, "datid", datid);
	row_name(row, "datname", get_database_name(datid));
}

/* datid, datname, usesysid, usename; a name is NULL if it no longer exists. */
void
row_database_and_role(RowBuilder *row, Oid datid, Oid role)
{
	row_database(row, datid);
	row_oid(row, "usesysid", role);
	row_name(row, "usename", GetUserNameFromId(role, true));
}

/*
 * server_share, network_share, client_share of the time that is neither idle
 * nor pending; NULL if there is none.
 */
static void
row_shares(RowBuilder *row, const LedgerTotals *totals)
{
	double		whole = ledger_busy_total(totals);

	row_float8(row, "server_share", ledger_server_part(totals) / whole);
	row_float8(row, "network_share", ledger_network_part(totals) / whole);
	row_float8(row, "client_share", ledger_client_part(totals) / whole);
	if (whole <= 0)
		row_null_last(row, 3);
}

/* exec_cpu_time to exec_unsampled_time: the parts of exec_time. */
void
row_exec_parts(RowBuilder *row, int64 exec, const int64 *part)
{
	row_ms(row, "exec_cpu_time", part[EXEC_CPU]);
	row_ms(row, "exec_io_time", part[EXEC_IO]);
	row_ms(row, "exec_lock_time", part[EXEC_LOCK]);
	row_ms(row, "exec_replication_time", part[EXEC_REPLICATION]);
	row_ms(row, "exec_remote_time", part[EXEC_REMOTE]);
	row_ms(row, "exec_other_time", part[EXEC_OTHER]);
	row_ms(row, "exec_unsampled_time", exec - exec_parts_sum(part));
}

/*
 * The columns of every account: counts, times with their sum, and shares.
 * "pending" is NULL if the account has no such column.
 */
void
row_account(RowBuilder *row, const LedgerTotals *totals, const int64 *pending)
{
	row_int64(row, "requests", totals->requests);
	row_int64(row, "statements", totals->statements);
	row_int64(row, "transactions", totals->transactions);
	row_int64(row, "pipelined", totals->pipelined);
	row_int64(row, "round_trips", ledger_round_trips(totals));
	row_ms(row, "total_time", ledger_busy_total(totals) + totals->idle + (pending ? *pending : 0));
	row_ms(row, "exec_time", totals->exec);
	row_ms(row, "send_time", totals->send);
	row_ms(row, "recv_time", totals->recv);
	row_ms(row, "network_time", totals->network);
	row_ms(row, "client_time", totals->client);
	row_ms(row, "idle_time", totals->idle);
	if (pending)
		row_ms(row, "pending_time", *pending);
	row_ms(row, "in_xact_wait_time", totals->in_xact_wait);
	row_ms(row, "send_blocked_time", totals->send_blocked);
	row_ms(row, "send_client_time", totals->send_client);
	row_shares(row, totals);
}

/*
 * May the caller see sessions of this role?   See HAS_PGSTAT_PERMISSIONS in
 * pgstatfuncs.c.
 */
bool
rows_may_see(Oid role)
{
	return has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS) ||
		(OidIsValid(role) && has_privs_of_role(GetUserId(), role));
}
