/*-------------------------------------------------------------------------
 *
 * explain.c
 *	  EXPLAIN (NETLAT): what a statement costs beyond its plan.
 *
 * Below the plan: the round trip of this connection; what this statement has
 * taken so far, per call; and with ANALYZE and SERIALIZE, the size of the result
 * and the shortest time in which it can reach this client.  EXPLAIN sends no
 * rows, so that time is an estimate: TCP sends some packets, and twice as many
 * after each round trip.
 *
 * The option is there from 18 on, where core lets extensions have options.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat.h"
#include "explain.h"

#if COMPAT_HAS_EXPLAIN_OPTIONS

#include "accumulate.h"
#include "clock.h"
#include "commands/defrem.h"
#include "commands/explain.h"
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#include "miscadmin.h"
#include "rows.h"
#include "session_slot.h"
#include "statement_hooks.h"
#include "statements.h"

/* What TCP sends before the first acknowledgement: ten packets (RFC 6928). */
#define FIRST_WINDOW	(10 * 1448)

static int	extension_id;
static explain_per_plan_hook_type prev_explain_per_plan;

static void
netlat_option(ExplainState *es, DefElem *option, ParseState *pstate)
{
	bool	   *wanted = palloc(sizeof(bool));

	*wanted = defGetBoolean(option);
	statement_serialized_bytes = 0;
	SetExplainExtensionState(es, extension_id, wanted);
}

static void
print_ms(const char *label, double time, ExplainState *es)
{
	ExplainPropertyFloat(label, "ms", time / NS_PER_MS, 3, es);
}

/* The round trip of this connection, in nanoseconds; 0 if it is not known. */
static int64
own_rtt(void)
{
	int			index = slot_find_pid(MyProcPid);
	SlotObservation observation;

	return index >= 0 && slot_observe(index, &observation) ? observation.published.tcp.rtt : 0;
}

/* What the caller's role has counted of a statement in this database; NULL if nothing. */
static const StatementTotals *
statement_so_far(uint64 queryid)
{
	StatementEntry *entries;
	int			count;

	accumulate_all();
	entries = statements_copy(0, &count);
	for (int i = 0; i < count; i++)
		if (entries[i].key.queryid == queryid && entries[i].key.dbid == MyDatabaseId &&
			entries[i].key.userid == GetUserId() && entries[i].counters.totals.calls > 0)
			return &entries[i].counters.totals;
	return NULL;
}

/* The shortest time from request to the end of a response of so many bytes. */
static int64
delivery_time(uint64 bytes, int64 rtt)
{
	int64		trips = 1;

	for (uint64 window = FIRST_WINDOW; bytes > window; window *= 2)
	{
		bytes -= window;
		trips++;
	}
	return trips * rtt;
}

static void
print_netlat(const PlannedStmt *statement, ExplainState *es)
{
	int64		rtt = own_rtt();
	const StatementTotals *totals = statement->queryId != 0 ? statement_so_far(statement->queryId) : NULL;
	int64		delivery = delivery_time(es->analyze ? statement_serialized_bytes : 0, rtt);

	if (rtt > 0)
		print_ms("Round Trip", rtt, es);
	else if (es->format == EXPLAIN_FORMAT_TEXT)
		/* programs expect a number or nothing */
		ExplainPropertyText("Round Trip", "not known: not a TCP connection, or not measured yet", es);
	ExplainPropertyInteger("Calls So Far", NULL, totals ? totals->calls : 0, es);
	if (totals)
	{
		double		calls = totals->calls;

		ExplainPropertyInteger("Repeats So Far", NULL, totals->repeats, es);
		print_ms("Executing Per Call", totals->exec / calls, es);
		print_ms("Sending Per Call", totals->send / calls, es);
		print_ms("Network Per Call", totals->network / calls, es);
		print_ms("Client Per Call", totals->client / calls, es);
	}
	if (es->analyze && statement_serialized_bytes > 0)
	{
		ExplainPropertyUInteger("Result Size", "bytes", statement_serialized_bytes, es);
		if (rtt > 0)
			print_ms("Estimated Shortest Delivery", delivery, es);
	}
	if (totals)
		print_ms("Estimated Application Time",
				 (totals->exec + totals->send + totals->recv) / (double) totals->calls + delivery, es);
}

static void
explain_plan(PlannedStmt *statement, IntoClause *into, ExplainState *es, const char *query,
			 ParamListInfo params, QueryEnvironment *environment)
{
	const bool *wanted = GetExplainExtensionState(es, extension_id);

	if (prev_explain_per_plan)
		prev_explain_per_plan(statement, into, es, query, params, environment);
	if (wanted == NULL || !*wanted || !rows_are_there())
		return;
	if (es->format == EXPLAIN_FORMAT_TEXT)
	{
		ExplainIndentText(es);
		appendStringInfoString(es->str, "Netlat:\n");
		es->indent++;
	}
	ExplainOpenGroup("Netlat", "Netlat", true, es);
	print_netlat(statement, es);
	ExplainCloseGroup("Netlat", "Netlat", true, es);
	if (es->format == EXPLAIN_FORMAT_TEXT)
		es->indent--;
}

void
explain_install(void)
{
	extension_id = GetExplainExtensionId("pgnetlat");
	compat_register_explain_option("netlat", netlat_option);
	prev_explain_per_plan = explain_per_plan_hook;
	explain_per_plan_hook = explain_plan;
}

#else

void
explain_install(void)
{
}

#endif
