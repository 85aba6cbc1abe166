/*-------------------------------------------------------------------------
 *
 * statement_hooks.c
 *	  See statement_hooks.h.
 *
 * A statement is identified by the query identifier of what the client asked
 * for at top level; what runs inside of it (functions, triggers, the query of
 * a cursor, subexpressions evaluated by the planner) is part of it.  EXECUTE
 * stands for the statement that was prepared, as in pg_stat_statements.
 *
 * The depth of nesting is restored on normal return only, which spares the
 * hot path a PG_TRY.  After an error at top level the exchange runs nothing
 * else, and the depth starts from zero with the next one; after an error that
 * was caught inside, whoever called the catcher restores its own depth.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat.h"
#include "executor/executor.h"
#include "guc.h"
#include "optimizer/planner.h"
#include "statement_hooks.h"
#include "tcop/utility.h"
#include "utils/backend_status.h"
#include "wire.h"

static planner_hook_type prev_planner = NULL;
static ExecutorRun_hook_type prev_ExecutorRun = NULL;
static ProcessUtility_hook_type prev_ProcessUtility = NULL;

static PlannedStmt *
pgnetlat_planner(PLANNER_PARAMS)
{
	PlannedStmt *result;
	int			outer;

	wire_work_begins();
	outer = my_session.depth;
	my_session.depth = outer + 1;
	if (prev_planner)
		result = prev_planner(PLANNER_ARGS);
	else
		result = standard_planner(PLANNER_ARGS);
	my_session.depth = outer;
	return result;
}

static inline void
next_ExecutorRun(EXECUTOR_RUN_PARAMS)
{
	if (prev_ExecutorRun)
		prev_ExecutorRun(EXECUTOR_RUN_ARGS);
	else
		standard_ExecutorRun(EXECUTOR_RUN_ARGS);
}

/* Run a query that may be a statement of the client's. */
static pg_noinline void
track_ExecutorRun(EXECUTOR_RUN_PARAMS)
{
	FlightRecord *record = NULL;
	int			outer = my_session.depth;

	if (outer == 0)
		record = wire_statement_begins(queryDesc->plannedstmt->queryId);
	my_session.depth = outer + 1;
	next_ExecutorRun(EXECUTOR_RUN_ARGS);
	my_session.depth = outer;
	if (record)
		record->rows += queryDesc->estate->es_processed;
}

/* The same, where something else has to be done before. */
static pg_noinline void
special_ExecutorRun(EXECUTOR_RUN_PARAMS)
{
	wire_work_begins();
	if (session_is_recording())
	{
		wire_next_statement();
		track_ExecutorRun(EXECUTOR_RUN_ARGS);
	}
	else
		next_ExecutorRun(EXECUTOR_RUN_ARGS);
}

/* Calls in tail position only: this is run for each statement. */
static void
pgnetlat_ExecutorRun(EXECUTOR_RUN_PARAMS)
{
	if (unlikely(!session_in_exchange() || my_session.statement_done))
		special_ExecutorRun(EXECUTOR_RUN_ARGS);
	else if (my_session.recording)
		track_ExecutorRun(EXECUTOR_RUN_ARGS);
	else
		next_ExecutorRun(EXECUTOR_RUN_ARGS);
}

/*
 * Who comes before us in the chain may have cleared a utility statement's
 * identifier, as pg_stat_statements does; core has reported it before.
 */
static uint64
utility_queryid(const PlannedStmt *pstmt)
{
	return pstmt->queryId != 0 ? pstmt->queryId : pgstat_get_my_query_id();
}

static void
pgnetlat_ProcessUtility(PROCESS_UTILITY_PARAMS)
{
	bool		transparent = IsA(pstmt->utilityStmt, ExecuteStmt);
	FlightRecord *record = NULL;
	int			outer;

	wire_work_begins();
	outer = my_session.depth;
	if (outer == 0 && !transparent && session_is_recording())
	{
		wire_next_statement();
		record = wire_statement_begins(utility_queryid(pstmt));
	}
	my_session.depth = transparent ? outer : outer + 1;

	/* beware: pstmt may be gone after this, as in ROLLBACK of a procedure */
	if (prev_ProcessUtility)
		prev_ProcessUtility(PROCESS_UTILITY_ARGS);
	else
		standard_ProcessUtility(PROCESS_UTILITY_ARGS);
	my_session.depth = outer;
	if (record && qc && command_tag_display_rowcount(qc->commandTag))
		record->rows += qc->nprocessed;
}

void
statement_hooks_install(void)
{
	/* its cost is core's, so do without where nothing is tracked */
	if (pgnetlat_track_statements)
		EnableQueryId();

	prev_planner = planner_hook;
	planner_hook = pgnetlat_planner;
	prev_ExecutorRun = ExecutorRun_hook;
	ExecutorRun_hook = pgnetlat_ExecutorRun;
	prev_ProcessUtility = ProcessUtility_hook;
	ProcessUtility_hook = pgnetlat_ProcessUtility;
}
