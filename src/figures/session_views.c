/*-------------------------------------------------------------------------
 *
 * session_views.c
 *	  SQL functions for live sessions.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <netinet/in.h>

#include "client_key.h"
#include "compat.h"
#include "pooler_clients.h"
#include "port/pg_bswap.h"
#include "recorder.h"
#include "rows.h"
#include "session_slot.h"
#include "utils/timestamp.h"
#include "wait_events.h"
#include "windows.h"

static const char *const state_names[] = {
	[LEDGER_STATE_DISABLED] = "disabled",
	[LEDGER_STATE_EXECUTING] = "executing",
	[LEDGER_STATE_SENDING] = "sending",
	[LEDGER_STATE_RECEIVING] = "receiving",
	[LEDGER_STATE_WAITING] = "waiting",
	[LEDGER_STATE_WAITING_IN_XACT] = "waiting in transaction",
	[LEDGER_STATE_IDLE] = "idle",
};

static const char *const transport_names[] = {
	[TRANSPORT_UNIX] = "unix",
	[TRANSPORT_TCP] = "tcp",
	[TRANSPORT_TLS] = "tls",
	[TRANSPORT_GSS] = "gss",
};

/* The client of a session, and the pooler in front of it. */
typedef struct SessionUser
{
	ClientKey	key;
	ClientPooler pooler;
	PoolerClient client;
} SessionUser;

static void
session_user_of(const SlotObservation *observation, SessionUser *user)
{
	clients_set_connection(&user->key, &observation->published.endpoints);
	clients_set_name(&user->key, observation->published.name, &user->pooler, &user->client);
}

/*
 * As in pg_stat_activity, except for a pooler's client, whose port is not
 * always known.
 */
static void
session_port(RowBuilder *row, const SlotObservation *observation, const SessionUser *user)
{
	int			port = user->pooler.known ? user->client.port :
		pg_ntoh16(observation->published.endpoints.remote_port);

	row_int32(row, "client_port", user->key.family == 0 ? -1 : port);
	if (user->key.family != 0 && port == 0)
		row_null_last(row, 1);
}

/* The columns client_addr to stats_since. */
static void
session_state(RowBuilder *row, const SlotObservation *observation, const SessionUser *user)
{
	row_address(row, "client_addr", user->key.family, user->key.address);
	session_port(row, observation, user);
	row_timestamp(row, "backend_start", observation->published.backend_start);
	row_text(row, "transport", transport_names[observation->published.transport]);
	row_text(row, "state", state_names[observation->account.state]);
	row_timestamp(row, "state_change", clock_to_timestamp(observation->published.clock_offset, observation->account.state_since));
	row_timestamp(row, "stats_since", observation->published.stats_since);
}

/* What the kernel says about the connection; NULL where it says nothing. */
static void
session_connection(RowBuilder *row, const SlotObservation *observation)
{
	const TcpCounters *counters = &observation->tcp_counters;
	const LedgerTotals *totals = &observation->account.totals;
	bool		known = observation->published.tcp.measured_at != 0;
	int64		silent_since = observation->published.tcp.silent_since;

	row_rtt(row, "rtt", known ? observation->published.tcp.rtt : 0);
	row_ms(row, "srtt", observation->published.tcp.srtt);
	row_timestamp(row, "rtt_at", clock_to_timestamp(observation->published.clock_offset, observation->published.tcp.measured_at));
	row_int64(row, "retransmits", counters->retransmits);
	if (!known)
		row_null_last(row, 3);
	row_timestamp(row, "unanswered_since", clock_to_timestamp(observation->published.clock_offset,
															  Max(silent_since, observation->account.state_since)));
	if (silent_since == 0)
		row_null_last(row, 1);
	row_int64(row, "bytes_sent", totals->bytes_sent);
	row_int64(row, "bytes_received", counters->bytes_received);
	row_int64(row, "packets_sent", counters->packets_sent);
	row_int64(row, "packets_received", counters->packets_received);
	if (!known)
		row_null_last(row, 3);
	row_ms(row, "run_queue_time", totals->run_queue);
	row_ms(row, "run_queue_wait_time", totals->run_queue_wait);
	if (!observation->published.run_queue_known)
		row_null_last(row, 2);
	row_exec_parts(row, totals->exec, totals->exec_part);
}

/* The columns about lock waits, the cost of the connection, and the pooler. */
static void
session_surroundings(RowBuilder *row, const SlotObservation *observation, const SessionUser *user)
{
	const ConnectTotals *cost = &observation->published.connect;

	row_ms(row, "blocking_time", observation->blocking);
	row_int32(row, "blocked_by", observation->blocked_by);
	if (observation->blocked_by == SLOT_NOT_BLOCKED)
		row_null_last(row, 1);
	row_int64(row, "connect_round_trips", cost->round_trips);
	row_ms(row, "connect_time", cost->time);
	row_ms(row, "connect_tls_time", cost->tls);
	row_ms(row, "connect_auth_time", cost->auth);
	if (cost->connections == 0)
		row_null_last(row, 4);
	row_int64(row, "pooler_requests", observation->account.totals.pooler_requests);
	row_rtt(row, "client_rtt", pooler_clients_rtt(observation->published.userid, observation->published.pooler_owner,
												  &user->client, &observation->published.endpoints,
												  clock_now(), NULL));
	row_address(row, "pooler_addr", user->pooler.family, user->pooler.address);
}

/*
 * Everybody sees what pg_stat_activity shows to everybody.  Not everybody may
 * see the account: anyone who polls its times and byte counts learns when each
 * query ran, for how long, and how much it returned.
 */
static void
session_row(RowBuilder *row, const SlotObservation *observation)
{
	const LedgerAccount *account = &observation->account;
	SessionUser user;

	session_user_of(observation, &user);
	row_int32(row, "pid", observation->published.pid);
	row_database_and_role(row, observation->published.datid, observation->published.userid);
	row_text(row, "application_name", user.key.application_name);
	if (rows_may_see(observation->published.userid))
	{
		session_state(row, observation, &user);
		row_account(row, &account->totals, &account->pending);
		session_connection(row, observation);
		session_surroundings(row, observation, &user);
		row_ms(row, "window_time", ledger_busy_total(&account->totals) +
			   account->totals.idle + account->pending);
	}
	else
		row_null_rest(row);
	row_emit(row);
}

/* A session that is not counted has an identity, and no account. */
static void
uncounted_row(RowBuilder *row, const PgBackendStatus *status)
{
	const struct sockaddr_storage *address = &status->st_clientaddr.addr;
	ClientKey	key;

	clients_set_address(&key, address);
	row_int32(row, "pid", status->st_procpid);
	row_database_and_role(row, status->st_databaseid, status->st_userid);
	row_text(row, "application_name", status->st_appname);
	if (rows_may_see(status->st_userid))
	{
		row_address(row, "client_addr", key.family, key.address);
		row_int32(row, "client_port", key.family == 0 ? -1 : key.family == AF_INET ?
				  pg_ntoh16(((const struct sockaddr_in *) address)->sin_port) :
				  pg_ntoh16(((const struct sockaddr_in6 *) address)->sin6_port));
		row_timestamp(row, "backend_start", status->st_proc_start_timestamp);
	}
	row_null_rest(row);
	row_emit(row);
}

/*
 * One row per connected client backend.  It is also pgnetlat_sessions_last(),
 * with the length of a window.
 */
PG_FUNCTION_INFO_V1(pgnetlat_sessions);

Datum
pgnetlat_sessions(PG_FUNCTION_ARGS)
{
	RowBuilder	row;
	SlotObservation observation;
	int64		length = rows_begin_window(fcinfo, &row);
	PgBackendStatus *uncounted;
	int			number = 0;

	for (int i = 0; i < slot_count(); i++)
	{
		if (windows_observe(i, length, &observation) && !observation.published.closed)
			session_row(&row, &observation);
	}
	while (length == WINDOW_WHOLE && (uncounted = slot_next_uncounted(&number)) != NULL)
		uncounted_row(&row, uncounted);
	return (Datum) 0;
}

/* The wait event of a sample.  No event means CPU. */
static void
wait_names(RowBuilder *row, const WaitSample *sample)
{
	if (sample->other)
	{
		row_null(row, "wait_event_type");
		row_text(row, "wait_event", "other");
	}
	else if (sample->event == 0)
	{
		row_text(row, "wait_event_type", "CPU");
		row_text(row, "wait_event", "CPU");
	}
	else
	{
		row_text(row, "wait_event_type", pgstat_get_wait_event_type(sample->event));
		row_text(row, "wait_event", wait_event_name(sample->event));
	}
}

/*
 * One row per connected session, state and wait event.
 */
PG_FUNCTION_INFO_V1(pgnetlat_waits);

Datum
pgnetlat_waits(PG_FUNCTION_ARGS)
{
	RowBuilder	row;
	SlotObservation observation;
	WaitSample	samples[WAITS_PER_SESSION];

	rows_begin(fcinfo, &row);
	for (int i = 0; i < slot_count(); i++)
	{
		int			count;

		if (!slot_observe(i, &observation) || !rows_may_see(observation.published.userid))
			continue;
		count = wait_events_copy(i, &observation, samples);
		for (int j = 0; j < count; j++)
		{
			row_int32(&row, "pid", observation.published.pid);
			if (samples[j].other)
				row_null(&row, "state");
			else
				row_text(&row, "state", state_names[samples[j].state]);
			wait_names(&row, &samples[j]);
			row_int64(&row, "samples", samples[j].samples);
			row_ms(&row, "time", samples[j].time);
			row_emit(&row);
		}
	}
	return (Datum) 0;
}

/* Add another record of the same exchange. */
static void
continue_exchange(FlightRecord *exchange, const FlightRecord *next)
{
	exchange->exec += next->exec;
	exchange->send += next->send;
	exchange->recv += next->recv;
	/* only the last record is followed by a wait, but any may be by a turn */
	exchange->network += next->network;
	exchange->client = next->client;
	exchange->idle = next->idle;
	exchange->rows += next->rows;
	exchange->bytes += next->bytes;
	exchange->statements += next->statements;
	if (next->queryid != 0)
		exchange->queryid = next->queryid;
	exchange->xact_status = next->xact_status;
	/* overhead, only if all of it is */
	exchange->flags = ((exchange->flags | next->flags) & ~RECORD_OVERHEAD) |
		(exchange->flags & next->flags & RECORD_OVERHEAD);
	if (next->flags & RECORD_TRACED)
		exchange->trace = next->trace;
}

/*
 * Find the next complete exchange, and join its records.  Returns the number
 * of records consumed, or 0 if there is none.  The beginning of the oldest
 * exchange may have been overwritten, the latest one may be in progress, and a
 * reset or lack of room may have removed records.
 */
static int
next_exchange(const FlightRecord *records, int count, FlightRecord *exchange)
{
	bool		begun = false;

	for (int i = 0; i < count; i++)
	{
		if (!(records[i].flags & RECORD_CONTINUES))
		{
			*exchange = records[i];
			begun = true;
		}
		else if (begun)
			continue_exchange(exchange, &records[i]);
		if (begun && (records[i].flags & RECORD_ENDS_EXCHANGE))
			return i + 1;
	}
	return 0;
}

static void
recent_row(RowBuilder *row, const FlightRecord *exchange, int64 clock_offset)
{
	char		trace[TRACE_ID_TEXT];

	row_timestamp(row, "start", clock_to_timestamp(clock_offset, exchange->start));
	row_ms(row, "exec_time", exchange->exec);
	row_ms(row, "send_time", exchange->send);
	row_ms(row, "recv_time", exchange->recv);
	row_ms(row, "wait_time", exchange->network + exchange->client + exchange->idle);
	row_ms(row, "network_time", exchange->network);
	row_ms(row, "client_time", exchange->client);
	row_ms(row, "idle_time", exchange->idle);
	row_int64(row, "queryid", (int64) exchange->queryid);
	if (exchange->queryid == 0)
		row_null_last(row, 1);
	row_int64(row, "statements", exchange->statements);
	row_int64(row, "rows", exchange->rows);
	row_int64(row, "bytes_sent", exchange->bytes);
	row_datum(row, "xact_status", CharGetDatum(exchange->xact_status));
	if (exchange->xact_status == '\0')
		row_null_last(row, 1);
	row_int64(row, "pipelined", (exchange->flags & RECORD_PIPELINED) != 0);
	row_int64(row, "fetched", (exchange->flags & RECORD_FETCH) != 0);
	row_int64(row, "overhead", (exchange->flags & RECORD_OVERHEAD) != 0);
	row_text(row, "trace_id", trace_id_text(&exchange->trace, trace));
	if ((exchange->flags & RECORD_TRACED) == 0)
		row_null_last(row, 1);
	row_emit(row);
}

/*
 * The flight recorder of one session.  No rows if there is no session with
 * this process ID, or the caller may not see it.
 */
PG_FUNCTION_INFO_V1(pgnetlat_recent);

Datum
pgnetlat_recent(PG_FUNCTION_ARGS)
{
	int			pid = PG_GETARG_INT32(0);
	RowBuilder	row;
	SlotObservation observation;
	SlotObservation after;
	FlightRecord *records;
	FlightRecord exchange;
	int			index;
	int			count;
	int			used;

	rows_begin(fcinfo, &row);
	index = slot_find_pid(pid);
	if (index < 0 || !slot_observe(index, &observation) || observation.published.pid != pid ||
		!rows_may_see(observation.published.userid))
		return (Datum) 0;

	records = recorder_copy(index, &count);

	/* another role's session may have taken the slot meanwhile */
	if (!slot_observe(index, &after) || after.published.session != observation.published.session)
		return (Datum) 0;
	for (const FlightRecord *next = records;
		 (used = next_exchange(next, count, &exchange)) > 0;
		 next += used, count -= used)
		recent_row(&row, &exchange, observation.published.clock_offset);
	return (Datum) 0;
}

/*
 * Forget what one session has counted so far.  NULL if there is no session
 * with this process ID.
 */
PG_FUNCTION_INFO_V1(pgnetlat_reset_session);
Datum
pgnetlat_reset_session(PG_FUNCTION_ARGS)
{
	int			pid = PG_GETARG_INT32(0);
	TimestampTz since;
	int			index;

	rows_require_preload();
	index = slot_find_pid(pid);
	if (index < 0 || !windows_reset(index, pid, &since))
		PG_RETURN_NULL();
	PG_RETURN_TIMESTAMPTZ(since);
}
