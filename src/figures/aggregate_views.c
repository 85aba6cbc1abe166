/*-------------------------------------------------------------------------
 *
 * aggregate_views.c
 *	  SQL functions about statements, client groups, histograms and history.
 *
 * Each of them accumulates all sessions before it reads.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/socket.h>

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "clients.h"
#include "compat.h"
#include "accumulate.h"
#include "settings.h"
#include "failed_views.h"
#include "history.h"
#include "miscadmin.h"
#include "rows.h"
#include "statements.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/inet.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

static const char *const metric_names[NUM_METRICS] = {
	[METRIC_WAIT] = "wait",
	[METRIC_REQUEST] = "request",
	[METRIC_NETWORK] = "network",
	[METRIC_CLIENT] = "client",
	[METRIC_RTT] = "rtt",
	[METRIC_CONNECT] = "connect",
};

static void
row_statement_parts(RowBuilder *row, const StatementCounters *counters)
{
	LedgerTotals totals = {.exec = counters->totals.exec};

	memcpy(totals.exec_part, counters->exec_part, sizeof(totals.exec_part));
	row_exec_parts(row, &totals);
}

/*
 * Whose statement it is; false if nothing else of it is for the caller's eyes.
 */
static bool
statement_identity(RowBuilder *row, const StatementKey *key)
{
	row_oid(row, "userid", key->userid);
	row_oid(row, "dbid", key->dbid);
	if (!rows_may_see(key->userid))
	{
		row_null_rest(row);
		return false;
	}
	if (key->queryid == 0)
		row_null(row, "queryid");
	else
		row_int64(row, "queryid", (int64) key->queryid);
	return true;
}

static void
statement_totals(RowBuilder *row, const StatementTotals *totals)
{
	row_int64(row, "calls", totals->calls);
	row_int64(row, "rows", totals->rows);
	row_ms(row, "exec_time", totals->exec);
	row_ms(row, "send_time", totals->send);
	row_ms(row, "recv_time", totals->recv);
	row_ms(row, "network_time", totals->network);
	row_ms(row, "client_time", totals->client);
	row_ms(row, "in_xact_wait_time", totals->in_xact_wait);
	row_int64(row, "bytes_sent", totals->bytes);
	row_int64(row, "repeats", totals->repeats);
	row_ms(row, "repeat_network_time", totals->repeat_network);
}

static void
statement_row(RowBuilder *row, const StatementEntry *entry)
{
	if (statement_identity(row, &entry->key))
	{
		statement_totals(row, &entry->counters.totals);
		row_timestamp(row, "stats_since", entry->since);
		row_statement_parts(row, &entry->counters);
	}
	row_emit(row);
}

/*
 * One row per role, database and query identifier; one more without any of
 * them for what was evicted.
 */
PG_FUNCTION_INFO_V1(pgnetlat_statements);

Datum
pgnetlat_statements(PG_FUNCTION_ARGS)
{
	RowBuilder	row;
	StatementEntry *entries;
	int			count;

	rows_begin(fcinfo, &row);
	accumulate_all();
	entries = statements_copy(&count);
	for (int i = 0; i < count; i++)
		statement_row(&row, &entries[i]);
	return (Datum) 0;
}

/*
 * The same over a window, without what was evicted.
 */
PG_FUNCTION_INFO_V1(pgnetlat_statements_last);

Datum
pgnetlat_statements_last(PG_FUNCTION_ARGS)
{
	RowBuilder	row;
	StatementWindow *windows;
	TimestampTz ends;
	int64		length;
	int			count;

	rows_begin(fcinfo, &row);
	length = rows_window_length(PG_GETARG_INTERVAL_P(0));
	accumulate_all();
	windows = statements_copy_window(length, &count);
	ends = GetCurrentTimestamp();
	for (int i = 0; i < count; i++)
	{
		if (statement_identity(&row, &windows[i].key))
		{
			statement_totals(&row, &windows[i].totals);
			row_ms(&row, "window_time", Max(ends - windows[i].since, 0) * NS_PER_US);
		}
		row_emit(&row);
	}
	return (Datum) 0;
}

static void
row_run_queue(RowBuilder *row, const LedgerTotals *totals)
{
	row_ms(row, "run_queue_time", totals->run_queue);
	row_ms(row, "run_queue_wait_time", totals->run_queue_wait);
}

/* Is the account of a group for the caller's eyes? */
static bool
client_is_visible(const ClientEntry *entry)
{
	return rows_may_see(entry->is_evicted ? InvalidOid : entry->key.userid);
}

static void
client_account(RowBuilder *row, const ClientEntry *entry)
{
	const ClientCounters *counters = &entry->counters;
	const LedgerTotals *totals = &counters->totals;

	row_int64(row, "sessions", entry->live.sessions);
	row_int64(row, "ended_sessions", counters->ended_sessions);
	row_account(row, totals, &entry->live.pending);
	if (counters->rtt > 0)
		row_ms(row, "rtt", counters->rtt);
	else
		row_null(row, "rtt");
	row_int64(row, "retransmits", counters->tcp.retransmits);
	row_int64(row, "bytes_sent", totals->bytes_sent);
	row_int64(row, "bytes_received", counters->tcp.bytes_received);
	row_int64(row, "packets_sent", counters->tcp.packets_sent);
	row_int64(row, "packets_received", counters->tcp.packets_received);
	row_timestamp(row, "stats_since", entry->since);
	row_run_queue(row, totals);
	row_exec_parts(row, totals);
	row_connect_cost(row, &counters->connect);
	row_int64(row, "pooler_requests", totals->pooler_requests);
	if (entry->is_evicted)
		row_null(row, "pooler_addr");
	else
		row_address(row, "pooler_addr", entry->pooler.family, entry->pooler.address);
}

static void
client_row(RowBuilder *row, const ClientEntry *entry, int64 failed)
{
	row_client_identity(row, entry, false);
	if (client_is_visible(entry))
	{
		client_account(row, entry);
		row_int64(row, "failed_connections", failed);
	}
	else
		row_null_rest(row);
	row_emit(row);
}

/*
 * One row per client group; and one per role, database and address of failed
 * connections.
 */
PG_FUNCTION_INFO_V1(pgnetlat_clients);

Datum
pgnetlat_clients(PG_FUNCTION_ARGS)
{
	RowBuilder	row;
	ClientEntry *entries;
	FailedGroup *failed;
	int			count;

	rows_begin(fcinfo, &row);
	accumulate_all();
	entries = clients_copy(&count);
	for (int i = 0; i < count; i++)
		client_row(&row, &entries[i], 0);
	failed = failed_connection_groups(&count);
	for (int i = 0; i < count; i++)
		client_row(&row, &failed[i].group, failed[i].count);
	return (Datum) 0;
}

/*
 * The same over a window, with its length, and with names; a group that is
 * younger than the window has one that begins with it.
 */
PG_FUNCTION_INFO_V1(pgnetlat_clients_last);

Datum
pgnetlat_clients_last(PG_FUNCTION_ARGS)
{
	RowBuilder	row;
	ClientEntry *entries;
	TimestampTz ends;
	int64		length;
	int			count;

	rows_begin(fcinfo, &row);
	length = rows_window_length(PG_GETARG_INTERVAL_P(0));
	accumulate_all();
	entries = clients_copy_window(length, &count);
	ends = GetCurrentTimestamp();
	for (int i = 0; i < count; i++)
	{
		row_client_identity(&row, &entries[i], true);
		if (client_is_visible(&entries[i]))
		{
			client_account(&row, &entries[i]);
			row_ms(&row, "window_time", Max(ends - entries[i].since, 0) * NS_PER_US);
		}
		else
			row_null_rest(&row);
		row_emit(&row);
	}
	return (Datum) 0;
}

/* Fill in an address, if it is one of a single host. */
static bool
set_pattern_address(ClientPattern *pattern, inet *address)
{
	pattern->family = ip_family(address) == PGSQL_AF_INET ? AF_INET : AF_INET6;
	memcpy(pattern->address, ip_addr(address), ip_addrsize(address));
	return ip_bits(address) == ip_maxbits(address);
}

/*
 * Forget what client groups have counted so far: those that have all that was
 * given.  Returns how many there are.
 */
PG_FUNCTION_INFO_V1(pgnetlat_reset_clients);

Datum
pgnetlat_reset_clients(PG_FUNCTION_ARGS)
{
	ClientPattern pattern;

	rows_require_preload();
	memset(&pattern, 0, sizeof(pattern));
	if (!PG_ARGISNULL(0))
		pattern.datid = PG_GETARG_OID(0);
	if (!PG_ARGISNULL(1))
		pattern.userid = PG_GETARG_OID(1);
	if (!PG_ARGISNULL(2))
		pattern.application_name = text_to_cstring(PG_GETARG_TEXT_PP(2));
	if (!PG_ARGISNULL(3) && !set_pattern_address(&pattern, PG_GETARG_INET_PP(3)))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("client_addr must be the address of a host, not of a network")));
	/* no group is of database or role 0 */
	if ((!PG_ARGISNULL(0) && !OidIsValid(pattern.datid)) ||
		(!PG_ARGISNULL(1) && !OidIsValid(pattern.userid)))
		PG_RETURN_INT64(0);
	accumulate_all();
	PG_RETURN_INT64(clients_reset_matching(&pattern, GetCurrentTimestamp()));
}

/*
 * Where we are in the histograms.  They are many rows, so they are returned
 * one by one, for a caller that needs no more than one at a time: the view
 * calls the function in its target list, where nobody collects its rows.
 */
typedef struct HistogramScan
{
	ClientEntry *groups;
	int			count;
	int			group;			/* the next row's */
	int			metric;
	Datum		metric_text[NUM_METRICS];
	Datum		le_text[HISTOGRAM_BUCKETS];
	Datum		le_array;
	TupleDesc	desc;
	RowBuilder	row;			/* begins with the group's identity, */
	int			identity_columns;	/* so many columns ... */
	MemoryContext identity_context; /* ... with values here */
} HistogramScan;

/* In a context that lives as long as the scan. */
static HistogramScan *
histogram_begin(FunctionCallInfo fcinfo)
{
	HistogramScan *scan = palloc0(sizeof(HistogramScan));
	int			count;

	rows_require_preload();
	if (get_call_result_type(fcinfo, NULL, &scan->desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	scan->desc = BlessTupleDesc(scan->desc);
	accumulate_all();
	scan->groups = clients_copy(&count);
	for (int i = 0; i < count; i++)
	{
		if (client_is_visible(&scan->groups[i]))
			scan->groups[scan->count++] = scan->groups[i];
	}
	scan->identity_context = AllocSetContextCreate(CurrentMemoryContext,
												   "pgnetlat histogram group",
												   ALLOCSET_SMALL_SIZES);
	for (int i = 0; i < NUM_METRICS; i++)
		scan->metric_text[i] = CStringGetTextDatum(metric_names[i]);
	for (int i = 0; i < HISTOGRAM_BUCKETS; i++)
		scan->le_text[i] = CStringGetTextDatum(histogram_le(i));
	scan->le_array = PointerGetDatum(construct_array(scan->le_text, HISTOGRAM_BUCKETS,
													 TEXTOID, -1, false, TYPALIGN_INT));
	return scan;
}

/* Identities are the same for all rows of a group, and kept in between. */
static void
histogram_begin_group(HistogramScan *scan)
{
	MemoryContext old;

	MemoryContextReset(scan->identity_context);
	old = MemoryContextSwitchTo(scan->identity_context);
	scan->row.column = 0;
	row_client_identity(&scan->row, &scan->groups[scan->group], false);
	scan->identity_columns = scan->row.column;
	MemoryContextSwitchTo(old);
}

static void
histogram_step(HistogramScan *scan)
{
	if (++scan->metric < NUM_METRICS)
		return;
	scan->metric = 0;
	scan->group++;
}

/* The next row, and one step further. */
static Datum
histogram_next(HistogramScan *scan)
{
	RowBuilder *row = &scan->row;
	const Histogram *values =
		&scan->groups[scan->group].counters.histogram[scan->metric];
	Datum		cumulative[HISTOGRAM_BUCKETS];
	int64		count = 0;

	if (scan->metric == 0)
		histogram_begin_group(scan);
	for (int i = 0; i < HISTOGRAM_BUCKETS; i++)
	{
		count += values->bucket[i];
		cumulative[i] = Int64GetDatum(count);
	}

	row->column = scan->identity_columns;
	row_datum(row, "metric", scan->metric_text[scan->metric]);
	row_datum(row, "le", scan->le_array);
	row_datum(row, "bucket", PointerGetDatum(construct_array(cumulative, HISTOGRAM_BUCKETS,
															 INT8OID, sizeof(int64), FLOAT8PASSBYVAL,
															 TYPALIGN_DOUBLE)));
	row_float8(row, "sum", values->sum / (double) NS_PER_S);
	row_int64(row, "count", count);
	rows_check_columns(row, scan->desc);
	histogram_step(scan);
	return HeapTupleGetDatum(heap_form_tuple(scan->desc, row->values, row->nulls));
}

/*
 * One row per client group and metric, with arrays of the buckets; in
 * seconds, as Prometheus wants them.  Only groups that the caller may see.
 */
PG_FUNCTION_INFO_V1(pgnetlat_histogram);

Datum
pgnetlat_histogram(PG_FUNCTION_ARGS)
{
	FuncCallContext *call;
	HistogramScan *scan;

	if (SRF_IS_FIRSTCALL())
	{
		MemoryContext old;

		call = SRF_FIRSTCALL_INIT();
		old = MemoryContextSwitchTo(call->multi_call_memory_ctx);
		call->user_fctx = histogram_begin(fcinfo);
		MemoryContextSwitchTo(old);
	}
	call = SRF_PERCALL_SETUP();
	scan = call->user_fctx;
	if (scan->group == scan->count)
		SRF_RETURN_DONE(call);
	SRF_RETURN_NEXT(call, histogram_next(scan));
}

static void
history_row(RowBuilder *row, const HistoryInterval *interval, const HistoryRow *values)
{
	const LedgerTotals *totals = &values->totals;

	row_timestamp(row, "bucket_start", interval->start);
	row_timestamp(row, "bucket_end", interval->end);
	row_oid(row, "datid", values->datid);
	/* a database's sums are of many roles */
	if (rows_may_see(InvalidOid))
	{
		row_account(row, totals, NULL);
		row_int64(row, "retransmits", values->retransmits);
		row_int64(row, "bytes_sent", totals->bytes_sent);
		row_int64(row, "bytes_received", values->bytes_received);
		row_run_queue(row, totals);
		row_exec_parts(row, totals);
		row_int64(row, "connections", values->connections);
		row_ms(row, "connect_time", values->connect);
	}
	else
		row_null_rest(row);
	row_emit(row);
}

/*
 * One row per interval and database.
 */
PG_FUNCTION_INFO_V1(pgnetlat_history);

Datum
pgnetlat_history(PG_FUNCTION_ARGS)
{
	RowBuilder	row;
	HistoryInterval *intervals;
	int			count;

	rows_begin(fcinfo, &row);
	accumulate_all();
	intervals = history_copy(GetCurrentTimestamp(), &count);
	for (int i = 0; i < count; i++)
	{
		for (int j = 0; j <= HISTORY_DATABASES; j++)
		{
			if (intervals[i].rows[j].used)
				history_row(&row, &intervals[i], &intervals[i].rows[j]);
		}
	}
	return (Datum) 0;
}
