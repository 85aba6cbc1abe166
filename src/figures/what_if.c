/*-------------------------------------------------------------------------
 *
 * what_if.c
 *	  SQL functions that predict: pgnetlat_what_if() and
 *	  pgnetlat_what_if_session().
 *
 * What was measured is taken from the accounts of a window; prediction.c makes
 * a workload of it and predicts.  Processors are the only thing that client
 * groups share in the model: of those that the server has, a group could have
 * what the others leave, on average, and certainly what it had.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "accumulate.h"
#include "clients.h"
#include "clock.h"
#include "compat.h"
#include "lock_waits.h"
#include "miscadmin.h"
#include "process.h"
#include "rows.h"
#include "session_slot.h"
#include "utils/timestamp.h"
#include "what_if.h"
#include "windows.h"

/* What may be asked for: far more than makes sense. */
#define RTT_MAX			60000.0
#define BATCH_MAX		1000000.0
#define SPEED_MAX		1000.0
#define SESSIONS_MAX	262143

/* However busy the others are, a group gets some of the processors. */
#define LEAST_PROCESSORS	0.05

/* ---------------------------------------------------------------------------
 * What is asked for
 * ---------------------------------------------------------------------------
 */

/* An argument that must be a number in a range; NAN if it is NULL. */
static double
float8_argument(FunctionCallInfo fcinfo, int argument, const char *name,
				double least, double most, const char *hint)
{
	double		value;

	if (PG_ARGISNULL(argument))
		return NAN;
	value = PG_GETARG_FLOAT8(argument);
	if (!(value >= least && value <= most))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s must be between %g and %.0f", name, least, most),
				 errhint("%s", hint)));
	return value;
}

/* rtt, batch and server_speed, from the given argument on. */
static Change
change_arguments(FunctionCallInfo fcinfo, int first)
{
	Change		change = NO_CHANGE;

	change.rtt = float8_argument(fcinfo, first, "rtt", 0, RTT_MAX,
								 "Specify a round-trip time in milliseconds, or NULL to leave it as it is.");
	change.batch = float8_argument(fcinfo, first + 1, "batch", 1, BATCH_MAX,
								   "Specify how many statements share a round trip, or NULL to leave it as it is.");
	change.server_speed = float8_argument(fcinfo, first + 2, "server_speed", 1 / SPEED_MAX, SPEED_MAX,
										  "Specify how many times as fast as now the server is, or NULL to leave it as it is.");
	return change;
}

static double
sessions_argument(FunctionCallInfo fcinfo, int argument)
{
	int32		sessions;

	if (PG_ARGISNULL(argument))
		return NAN;
	sessions = PG_GETARG_INT32(argument);
	if (sessions < 1 || sessions > SESSIONS_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("sessions must be between 1 and %d", SESSIONS_MAX),
				 errhint("Specify a number of sessions, or NULL to leave it as it is.")));
	return sessions;
}

static int64
window_argument(FunctionCallInfo fcinfo, int argument)
{
	if (PG_ARGISNULL(argument))
		return SNAPSHOTS_LONGEST_NS;
	return rows_window_length(PG_GETARG_INTERVAL_P(argument));
}

/* ---------------------------------------------------------------------------
 * Rows
 * ---------------------------------------------------------------------------
 */

static void
measured_columns(RowBuilder *row, const Workload *workload)
{
	row_float8(row, "round_trips", workload->round_trips);
	row_float8(row, "server_time", workload_server_time(workload));
	row_float8(row, "network_time", workload_network_time(workload));
	row_float8(row, "client_time", workload->client_time);
	row_float8(row, "transaction_time", workload->transaction_time);
	row_float8(row, "throughput", workload->throughput);
}

static void
predicted_columns(RowBuilder *row, const Workload *workload, const Change *change)
{
	Prediction	prediction;

	if (!predict(workload, change, &prediction))
	{
		row_null_rest(row);
		return;
	}
	row_float8(row, "predicted_transaction_time", prediction.transaction_time);
	row_float8(row, "predicted_throughput", prediction.throughput);
	row_float8(row, "predicted_throughput_low", prediction.throughput_low);
	row_float8(row, "predicted_throughput_high", prediction.throughput_high);
	row_float8(row, "change", prediction.throughput / workload->throughput);
}

/* What was measured; NULL where there is nothing that could be shown per transaction. */
static void
workload_columns(RowBuilder *row, const LedgerTotals *totals, const Workload *workload,
				 bool known, const Change *change)
{
	row_int64(row, "transactions", totals->transactions);
	row_int64(row, "requests", totals->requests);
	if (!known)
	{
		row_null_rest(row);
		return;
	}
	measured_columns(row, workload);
	predicted_columns(row, workload, change);
}

/* ---------------------------------------------------------------------------
 * Client groups
 * ---------------------------------------------------------------------------
 */

/*
 * The server's processors, and what all groups took of them in the window of
 * which these are copies.
 */
Processors
what_if_processors(const ClientEntry *entries, int count)
{
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz began = now - 1;
	Processors	processors = {.count = process_processors()};

	for (int i = 0; i < count; i++)
	{
		processors.taken += processor_time_of_totals(&entries[i].counters.totals);
		began = Min(began, entries[i].since);
	}
	processors.length = (now - began) * (double) NS_PER_US;
	return processors;
}

/*
 * How many a group could have: all but what the others take, on average.  No
 * less than it had while it was occupied; but what looks like work may have been
 * a wait.
 */
static double
processors_for(const ClientEntry *entry, const Workload *workload, const Processors *all)
{
	double		others = all->taken - processor_time_of_totals(&entry->counters.totals);
	double		left = all->count - others / all->length;
	double		had = workload->throughput / 1000 * workload->processor_time;

	return Min(all->count, Max(Max(left, had), all->count * LEAST_PROCESSORS));
}

/*
 * What a group did, per transaction; false if there is nothing that could be
 * said.
 */
bool
what_if_workload(const ClientEntry *entry, const Processors *processors, Workload *workload)
{
	const ClientCounters *counters = &entry->counters;

	/* of groups that were evicted nobody knows how many sessions there were */
	if (entry->is_evicted ||
		!workload_from_totals(workload, &counters->totals, counters->rtt,
							  entry->key.family != 0, counters->occupied))
		return false;
	workload->processors = processors_for(entry, workload, processors);
	return true;
}

static void
client_row(RowBuilder *row, const ClientEntry *entry, const Processors *processors,
		   const Change *change)
{
	Workload	workload;
	bool		known = what_if_workload(entry, processors, &workload);

	row_client_identity(row, entry, true);
	if (known)
		row_float8(row, "busy_sessions", workload.sessions);
	else
		row_null(row, "busy_sessions");
	workload_columns(row, &entry->counters.totals, &workload, known, change);
	row_emit(row);
}

/*
 * One row per client group.
 */
PG_FUNCTION_INFO_V1(pgnetlat_what_if);

Datum
pgnetlat_what_if(PG_FUNCTION_ARGS)
{
	RowBuilder	row;
	ClientEntry *entries;
	Change		change;
	Processors	processors;
	int64		length;
	int			count;

	rows_begin(fcinfo, &row);
	change = change_arguments(fcinfo, 0);
	change.sessions = sessions_argument(fcinfo, 3);
	length = window_argument(fcinfo, 4);
	accumulate_all();
	entries = clients_copy_window(length, &count);
	processors = what_if_processors(entries, count);
	for (int i = 0; i < count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		client_row(&row, &entries[i], &processors, &change);
	}
	return (Datum) 0;
}

/* ---------------------------------------------------------------------------
 * One session
 * ---------------------------------------------------------------------------
 */

/*
 * One row for a session that the caller may look at; none if there is no such
 * session.
 */
PG_FUNCTION_INFO_V1(pgnetlat_what_if_session);

Datum
pgnetlat_what_if_session(PG_FUNCTION_ARGS)
{
	RowBuilder	row;
	SlotObservation observation;
	Workload	workload;
	Change		change;
	int64		length;
	int			pid;
	int			slot;
	bool		known;

	rows_begin(fcinfo, &row);
	change = change_arguments(fcinfo, 1);
	length = window_argument(fcinfo, 4);
	if (PG_ARGISNULL(0))
		return (Datum) 0;
	pid = PG_GETARG_INT32(0);
	slot = slot_find_pid(pid);
	if (slot < 0 || !windows_observe(slot, length, &observation) ||
		observation.pid != pid || !rows_may_see(observation.userid))
		return (Datum) 0;
	known = workload_from_totals(&workload, &observation.account.totals, observation.tcp.rtt,
								 observation.endpoints.family != 0, 0);
	if (known)
		workload.processors = process_processors();
	workload_columns(&row, &observation.account.totals, &workload, known, &change);
	row_emit(&row);
	return (Datum) 0;
}
