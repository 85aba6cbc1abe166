/*-------------------------------------------------------------------------
 *
 * aggregate_views.c
 *	  SQL functions for statements, client groups, failed connections,
 *	  histograms and history.
 *
 * All sessions are accumulated before sums over them are read.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/socket.h>

#include "catalog/pg_database.h"
#include "catalog/pg_type.h"
#include "clients.h"
#include "commands/dbcommands.h"
#include "compat.h"
#include "accumulate.h"
#include "failed_connections.h"
#include "history.h"
#include "mb/pg_wchar.h"
#include "rows.h"
#include "statements.h"
#include "utils/acl.h"
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
statement_row(RowBuilder *row, const StatementEntry *entry, bool is_window)
{
	const StatementTotals *totals = &entry->counters.totals;

	row_oid(row, "userid", entry->key.userid);
	row_oid(row, "dbid", entry->key.dbid);
	if (rows_may_see(entry->key.userid))
	{
		row_int64(row, "queryid", (int64) entry->key.queryid);
		if (entry->key.queryid == 0)
			row_null_last(row, 1);
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
		row_timestamp(row, "stats_since", entry->since);
		row_exec_parts(row, totals->exec, entry->counters.exec_part);
		if (is_window)
			row_null_last(row, NUM_EXEC_PARTS + 1);
		row_window_time(row, entry->since);
	}
	else
		row_null_rest(row);
	row_emit(row);
}

/*
 * One row per role, database and query identifier, and an evicted row without
 * any of them.  It is also pgnetlat_statements_last(), with the length of a
 * window and without the evicted row.
 */
PG_FUNCTION_INFO_V1(pgnetlat_statements);

Datum
pgnetlat_statements(PG_FUNCTION_ARGS)
{
	RowBuilder	row;
	int64		length = rows_begin_window(fcinfo, &row);
	StatementEntry *entries;
	int			count;

	accumulate_all();
	entries = statements_copy(length, &count);
	for (int i = 0; i < count; i++)
	{
		if (length == 0 || OidIsValid(entries[i].key.userid))
			statement_row(&row, &entries[i], length > 0);
	}
	return (Datum) 0;
}

static void
row_run_queue(RowBuilder *row, const LedgerTotals *totals)
{
	row_ms(row, "run_queue_time", totals->run_queue);
	row_ms(row, "run_queue_wait_time", totals->run_queue_wait);
}

/* May the caller see the account of a group? */
static bool
client_is_visible(const ClientEntry *entry)
{
	return rows_may_see(entry->is_evicted ? InvalidOid : entry->key.userid);
}

/*
 * The columns datid to client_addr.  An evicted row has no role, and its
 * application_name says what it is.
 */
static void
client_identity(RowBuilder *row, const ClientEntry *entry)
{
	Oid			role = entry->is_evicted ? InvalidOid : entry->key.userid;

	row_database_and_role(row, entry->key.datid, role);
	row_text(row, "application_name", entry->is_evicted ? "(evicted)" : entry->key.application_name);
	row_address(row, "client_addr", entry->key.family, entry->key.address);
	if (!client_is_visible(entry))
		row_null_last(row, 1);
}

/* The account's columns; over a window there are no failed connections. */
static void
client_account(RowBuilder *row, const ClientEntry *entry, bool is_window, int64 failed)
{
	const ClientCounters *counters = &entry->counters;
	const LedgerTotals *totals = &counters->totals;

	row_int64(row, "sessions", entry->live.sessions);
	row_int64(row, "ended_sessions", counters->ended_sessions);
	row_account(row, totals, &entry->live.pending);
	row_rtt(row, "rtt", counters->rtt);
	row_int64(row, "retransmits", counters->tcp.retransmits);
	row_int64(row, "bytes_sent", totals->bytes_sent);
	row_int64(row, "bytes_received", counters->tcp.bytes_received);
	row_int64(row, "packets_sent", counters->tcp.packets_sent);
	row_int64(row, "packets_received", counters->tcp.packets_received);
	row_timestamp(row, "stats_since", entry->since);
	row_run_queue(row, totals);
	row_exec_parts(row, totals->exec, totals->exec_part);
	row_int64(row, "connections", counters->connect.connections);
	row_int64(row, "failed_connections", failed);
	if (is_window)
		row_null_last(row, 1);
	row_int64(row, "connect_round_trips", counters->connect.round_trips);
	row_ms(row, "connect_time", counters->connect.time);
	row_ms(row, "connect_tls_time", counters->connect.tls);
	row_ms(row, "connect_auth_time", counters->connect.auth);
	row_int64(row, "pooler_requests", totals->pooler_requests);
	row_address(row, "pooler_addr", entry->pooler.family, entry->pooler.address);
	row_int64(row, "identified_statements", counters->identified);
	row_int64(row, "repeats_max", counters->repeats_max);
	row_int64(row, "repeats_max_queryid", (int64) entry->repeats_max_queryid);
	if (entry->repeats_max_queryid == 0)
		row_null_last(row, 1);
	row_int64(row, "round_trips_max", counters->round_trips_max);
	if (is_window)
		row_null_last(row, 3);
	row_window_time(row, entry->since);
}

static void
client_row(RowBuilder *row, const ClientEntry *entry, bool is_window, int64 failed)
{
	client_identity(row, entry);
	if (client_is_visible(entry))
		client_account(row, entry, is_window, failed);
	else
		row_null_rest(row);
	row_emit(row);
}

/* Rows with nothing but the failed connections to names that exist. */
static void
failed_rows(RowBuilder *row)
{
	int			count;
	FailedConnections *failed = failed_connections_copy(&count);

	for (int i = 0; i < count; i++)
	{
		ClientEntry entry = {.since = failed[i].since};

		entry.key.datid = get_database_oid(failed[i].key.database, true);
		entry.key.userid = get_role_oid(failed[i].key.role, true);
		entry.key.family = failed[i].key.family;
		memcpy(entry.key.address, failed[i].key.address, sizeof(entry.key.address));
		strlcpy(entry.key.application_name, "(failed)", NAMEDATALEN);
		if (OidIsValid(entry.key.datid) && OidIsValid(entry.key.userid))
			client_row(row, &entry, false, failed[i].count);
	}
}

/*
 * One row per client group, and one per role, database and address of failed
 * connections.  It is also pgnetlat_clients_last(), with the length of a
 * window and without the failed connections.
 */
PG_FUNCTION_INFO_V1(pgnetlat_clients);

Datum
pgnetlat_clients(PG_FUNCTION_ARGS)
{
	RowBuilder	row;
	int64		length = rows_begin_window(fcinfo, &row);
	ClientEntry *entries;
	int			count;

	accumulate_all();
	entries = clients_copy(length, &count);
	for (int i = 0; i < count; i++)
		client_row(&row, &entries[i], length > 0, 0);
	if (length == 0)
		failed_rows(&row);
	return (Datum) 0;
}

/* A name from a start-up packet, whose encoding has not been checked. */
static void
row_typed_name(RowBuilder *row, const char *column, char *name)
{
	if (!pg_verifymbstr(name, strlen(name), true))
	{
		for (char *c = name; *c != '\0'; c++)
		{
			if (IS_HIGHBIT_SET(*c))
				*c = '?';
		}
	}
	row_text(row, column, name);
}

/*
 * One row per pair of names and address, and an evicted row without them.
 * Names that strangers have typed are not for everybody.
 */
PG_FUNCTION_INFO_V1(pgnetlat_failed_connections);

Datum
pgnetlat_failed_connections(PG_FUNCTION_ARGS)
{
	RowBuilder	row;
	FailedConnections *failed;
	int			count;
	TimestampTz now;

	rows_begin(fcinfo, &row);
	if (!rows_may_see(InvalidOid))
		return (Datum) 0;
	failed = failed_connections_copy(&count);
	now = GetCurrentTimestamp();
	for (int i = 0; i < count; i++)
	{
		row_typed_name(&row, "datname", failed[i].key.database);
		row_typed_name(&row, "usename", failed[i].key.role);
		if (failed[i].key.role[0] == '\0')
			row_null_last(&row, 2);
		row_address(&row, "client_addr", failed[i].key.family, failed[i].key.address);
		row_int64(&row, "failed_connections", failed[i].count);
		row_timestamp(&row, "first_failed", failed[i].since);
		row_timestamp(&row, "last_failed", failed[i].latest);
		row_text(&row, "last_sqlstate", failed[i].sqlstate != 0 ? unpack_sql_state(failed[i].sqlstate) : NULL);
		row_int64(&row, "failed_last_minute", failed_connections_of_last_minute(&failed[i], now));
		row_emit(&row);
	}
	return (Datum) 0;
}

/* Fill in an address; false if it is a network's. */
static bool
set_pattern_address(ClientPattern *pattern, inet *address)
{
	pattern->family = ip_family(address) == PGSQL_AF_INET ? AF_INET : AF_INET6;
	memcpy(pattern->address, ip_addr(address), ip_addrsize(address));
	return ip_bits(address) == ip_maxbits(address);
}

/*
 * Forget what matching client groups have counted.  Returns the number of
 * groups.
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
	/* no group has database or role 0 */
	if ((!PG_ARGISNULL(0) && !OidIsValid(pattern.datid)) ||
		(!PG_ARGISNULL(1) && !OidIsValid(pattern.userid)))
		PG_RETURN_INT64(0);
	accumulate_all();
	PG_RETURN_INT64(clients_reset_matching(&pattern, GetCurrentTimestamp()));
}

/* A metric's columns, which are the last ones. */
static void
histogram_row(RowBuilder *row, ClientMetric metric, const Histogram *values, Datum les)
{
	Datum		cumulative[HISTOGRAM_BUCKETS];
	int64		count = 0;

	for (int i = 0; i < HISTOGRAM_BUCKETS; i++)
	{
		count += values->bucket[i];
		cumulative[i] = Int64GetDatum(count);
	}
	row_text(row, "metric", metric_names[metric]);
	row_datum(row, "le", les);
	row_datum(row, "bucket", PointerGetDatum(construct_array(cumulative, HISTOGRAM_BUCKETS,
															 INT8OID, sizeof(int64), FLOAT8PASSBYVAL,
															 TYPALIGN_DOUBLE)));
	row_float8(row, "sum", values->sum / (double) NS_PER_S);
	row_int64(row, "count", count);
	row_emit(row);
}

/*
 * Add up the histograms of each database's groups, in its first one, but not
 * those of an application.  Returns the number of databases, which come first.
 */
static int
add_by_database(ClientEntry *groups, int count, const char *without)
{
	int			databases = 0;

	for (int i = 0; i < count; i++)
	{
		int			n = 0;

		if (!client_is_visible(&groups[i]) ||
			(without[0] != '\0' && strcmp(groups[i].key.application_name, without) == 0))
			continue;
		while (n < databases && groups[n].key.datid != groups[i].key.datid)
			n++;
		if (n == databases)
			memmove(&groups[databases++], &groups[i], sizeof(ClientEntry));
		else
			for (int metric = 0; metric < NUM_METRICS; metric++)
				histogram_add(&groups[n].counters.histogram[metric],
							  &groups[i].counters.histogram[metric]);
	}
	return databases;
}

/*
 * One row per client group and metric, with arrays of buckets, in seconds as
 * in Prometheus; only for groups that the caller may see.  With an argument,
 * one row per database and metric, without the application of that name.
 */
PG_FUNCTION_INFO_V1(pgnetlat_histogram);

Datum
pgnetlat_histogram(PG_FUNCTION_ARGS)
{
	bool		by_database = PG_NARGS() > 0;
	RowBuilder	row;
	Datum		les[HISTOGRAM_BUCKETS];
	Datum		le_array;
	ClientEntry *groups;
	int			count;
	MemoryContext per_group;
	MemoryContext old;

	rows_begin(fcinfo, &row);
	for (int i = 0; i < HISTOGRAM_BUCKETS; i++)
		les[i] = CStringGetTextDatum(histogram_le[i]);
	le_array = PointerGetDatum(construct_array(les, HISTOGRAM_BUCKETS, TEXTOID, -1, false,
											   TYPALIGN_INT));
	accumulate_all();
	groups = clients_copy(0, &count);
	if (by_database)
		count = add_by_database(groups, count, text_to_cstring(PG_GETARG_TEXT_PP(0)));
	per_group = AllocSetContextCreate(CurrentMemoryContext, "pgnetlat histograms",
									  ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(per_group);
	for (int i = 0; i < count; i++)
	{
		for (int metric = 0; metric < NUM_METRICS && client_is_visible(&groups[i]); metric++)
		{
			if (by_database)
				row_database(&row, groups[i].key.datid);
			else
				client_identity(&row, &groups[i]);
			histogram_row(&row, metric, &groups[i].counters.histogram[metric], le_array);
		}
		MemoryContextReset(per_group);
	}
	MemoryContextSwitchTo(old);
	return (Datum) 0;
}

static void
history_row(RowBuilder *row, const HistoryInterval *interval, const HistoryRow *values)
{
	const LedgerTotals *totals = &values->totals;

	row_timestamp(row, "bucket_start", interval->start);
	row_timestamp(row, "bucket_end", interval->end);
	row_oid(row, "datid", values->datid);
	row_name(row, "datname", get_database_name(values->datid));
	/* a database's sums are of many roles */
	if (rows_may_see(InvalidOid))
	{
		row_account(row, totals, NULL);
		row_int64(row, "retransmits", values->retransmits);
		row_int64(row, "bytes_sent", totals->bytes_sent);
		row_int64(row, "bytes_received", values->bytes_received);
		row_run_queue(row, totals);
		row_exec_parts(row, totals->exec, totals->exec_part);
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
	intervals = history_copy(0, &count);
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
