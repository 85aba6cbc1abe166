/*-------------------------------------------------------------------------
 *
 * statement_hooks.c
 *	  Finds out which statement an exchange runs, from core's hooks.
 *
 * A statement is identified by the query identifier of what the client asked
 * for at top level.  What runs inside it (functions, triggers, the query of a
 * cursor, subexpressions evaluated by the planner) is part of it.  EXECUTE
 * stands for the prepared statement, as in pg_stat_statements.  What runs
 * outside all portals is not a client's statement: for example, the CHECK of a
 * domain while a parameter is bound, or a function called through the fast
 * path.
 *
 * SET application_name is one statement whatever the name, although core has
 * an identifier for each name before PostgreSQL 18: tracers set another one
 * before each statement.
 *
 * Some statements do no work for the application: those that only look after
 * the session (SET, SHOW, DISCARD, DEALLOCATE), and a constant (SELECT 1), with
 * which pools test connections.
 *
 * A commit runs deferred triggers, and reads cursors WITH HOLD to their end.
 * Under Sync that happens after the statement is complete, but is part of it.
 *
 * STATE_NESTED is restored on normal return only, which spares the hot path a
 * PG_TRY.  After an error at top level the exchange runs nothing else, and the
 * next one begins at top level.  After an error that was caught inside a
 * statement, the hook around the catcher restores its own state.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "commands/prepare.h"
#include "compat.h"
#include "executor/executor.h"
#include "settings.h"
#include "optimizer/planner.h"
#include "statement_hooks.h"
#include "tcop/pquery.h"
#include "tcop/utility.h"
#include "utils/backend_status.h"
#include "utils/plancache.h"
#include "utils/portal.h"
#include "wire.h"

static planner_hook_type prev_planner = NULL;
static ExecutorRun_hook_type next_ExecutorRun = NULL;	/* or the standard one */
static ProcessUtility_hook_type next_ProcessUtility = NULL; /* the same */

static pg_attribute_hot PlannedStmt *
pgnetlat_planner(PLANNER_PARAMS)
{
	PlannedStmt *result;
	bool		outer;

	wire_work_begins();
	outer = exchange_state(STATE_NESTED);
	/* so that the exchange has its statement even if planning fails */
	if (!outer && exchange_state(STATE_RECORDING) && !exchange_state(STATE_STATEMENT_DONE) &&
		exchange_record()->queryid == 0)
		exchange_record()->queryid = parse->queryId;
	exchange_set_state(STATE_NESTED, true);
	if (prev_planner)
		result = prev_planner(PLANNER_ARGS);
	else
		result = standard_planner(PLANNER_ARGS);
	exchange_set_state(STATE_NESTED, outer);
	return result;
}

uint64		statement_serialized_bytes = 0;

/* Run a query inside a statement, or one that is not a statement. */
static pg_noinline void
nested_ExecutorRun(EXECUTOR_RUN_PARAMS)
{
	bool		outer = exchange_state(STATE_NESTED);
	uint64		serialized;

	exchange_set_state(STATE_NESTED, true);
	next_ExecutorRun(EXECUTOR_RUN_ARGS);

	/*
	 * its receiver knows it as long as it lives, which is not until the plan
	 * is shown
	 */
	serialized = compat_serialized_bytes(queryDesc->dest);
	if (serialized > 0)
		statement_serialized_bytes = serialized;
	exchange_set_state(STATE_NESTED, outer);
}

/*
 * Is this a client's statement, the first one of its record, and without
 * suspended portals?  Most are, so one word has all that is tested.
 */
static inline bool
is_first_statement(void)
{
	return (my_session.state & (STATE_RECORDING | STATE_STATEMENT_DONE | STATE_SUSPENDED |
								STATE_NESTED | STATE_STATEMENT_BEGUN)) == STATE_RECORDING &&
		ActivePortal != NULL;
}

/* Is the result a constant? */
static inline bool
is_constant(const PlannedStmt *statement)
{
	const Plan *plan = statement->planTree;

	return unlikely(IsA(plan, Result)) && plan->lefttree == NULL &&
		list_length(plan->targetlist) == 1 &&
		IsA(linitial_node(TargetEntry, plan->targetlist)->expr, Const);
}

/*
 * Run the first statement of a record.  Nothing is called before the next
 * hook, so that the arguments stay in their registers.
 */
static pg_attribute_hot pg_noinline void
run_first_statement(EXECUTOR_RUN_PARAMS)
{
	exchange_statement_begins(queryDesc->plannedstmt->queryId, STATE_NESTED);
	if (is_constant(queryDesc->plannedstmt))
		exchange_record()->flags |= RECORD_OVERHEAD;
	next_ExecutorRun(EXECUTOR_RUN_ARGS);
	exchange_set_state(STATE_NESTED, false);
	exchange_record()->rows += queryDesc->estate->es_processed;
}

/*
 * Does the client's next statement run at top level, after a complete one?
 * Otherwise a commit runs it: outside all portals, or in that of a cursor WITH
 * HOLD, whose statement is FETCH and not its query.
 */
static bool
is_next_statement(void)
{
	return ActivePortal != NULL && (ActivePortal->cursorOptions & CURSOR_OPT_HOLD) == 0;
}

/* Run a query that may not be the first statement of its record. */
static pg_noinline void
other_ExecutorRun(EXECUTOR_RUN_PARAMS)
{
	wire_work_begins();
	if (exchange_state(STATE_SUSPENDED))
		wire_fetches(queryDesc->already_executed);
	if (!exchange_state(STATE_RECORDING) ||
		(exchange_state(STATE_STATEMENT_DONE) && !is_next_statement()))
	{
		next_ExecutorRun(EXECUTOR_RUN_ARGS);
		return;
	}
	wire_next_statement();
	if (exchange_state(STATE_NESTED | STATE_STATEMENT_BEGUN) || ActivePortal == NULL)
		nested_ExecutorRun(EXECUTOR_RUN_ARGS);
	else
		run_first_statement(EXECUTOR_RUN_ARGS);
}

/* Called for each statement. */
static pg_attribute_hot void
pgnetlat_ExecutorRun(EXECUTOR_RUN_PARAMS)
{
	if (likely(is_first_statement()))
		run_first_statement(EXECUTOR_RUN_ARGS);
	else if (exchange_state(STATE_IN_WAIT | STATE_RECORDING | STATE_SUSPENDED))
		other_ExecutorRun(EXECUTOR_RUN_ARGS);
	else
		next_ExecutorRun(EXECUTOR_RUN_ARGS);
}

/* The identifier of SET application_name; pgnetlat_query_text() knows it. */
#define SET_NAME_QUERYID	UINT64CONST(0x5345545F4E414D45)
#define NAME_SETTING		"application_name"

static inline bool
sets_name(const Node *statement)
{
	const VariableSetStmt *set = (const VariableSetStmt *) statement;

	return IsA(statement, VariableSetStmt) && set->name != NULL &&
		pg_strcasecmp(set->name, NAME_SETTING) == 0;
}

/* The same of a text, as far as it can be seen without parsing it. */
static bool
text_sets_name(const char *text)
{
	text += strspn(text, " \t\n\r");
	return pg_strncasecmp(text, "SET", 3) == 0 && strstr(text, NAME_SETTING) != NULL;
}

/* The identifier of a statement that has just been parsed, and not run. */
uint64
statement_parsed_queryid(void)
{
	return debug_query_string && text_sets_name(debug_query_string) ? SET_NAME_QUERYID :
		(uint64) pgstat_get_my_query_id();
}

/*
 * The identifier of the unnamed prepared statement, if it is a utility
 * statement that has been run, and its plan, which lives as long.
 */
static uint64 unnamed_queryid = 0;
static const CachedPlan *unnamed_plan = NULL;

/*
 * A statement was parsed in the extended protocol, perhaps the unnamed one:
 * then the plan of the one before it is gone, and another may get its address.
 */
void
statement_was_parsed(void)
{
	unnamed_plan = NULL;
}

/*
 * Find the identifier of a utility statement.
 *
 * pg_stat_statements clears the identifier in the statement when it runs,
 * before or after it calls us.  The first time, core has reported it before.
 * When a prepared statement runs again (drivers prepare BEGIN and COMMIT),
 * only the query that it was planned from still has it.
 */
static uint64
utility_queryid(const PlannedStmt *pstmt)
{
	Portal		portal = ActivePortal;
	uint64		queryid = pstmt->queryId != 0 ? pstmt->queryId : pgstat_get_my_query_id();
	PreparedStatement *prepared;

	if (portal == NULL || portal->cplan == NULL)
		return queryid;
	if (portal->prepStmtName == NULL)
	{
		if (queryid == 0)
			return portal->cplan == unnamed_plan ? unnamed_queryid : 0;
		unnamed_plan = portal->cplan;
		unnamed_queryid = queryid;
	}
	else if (queryid == 0)
	{
		prepared = FetchPreparedStatement(portal->prepStmtName, false);
		if (prepared && list_length(prepared->plansource->query_list) == 1)
			queryid = linitial_node(Query, prepared->plansource->query_list)->queryId;
	}
	return queryid;
}

/*
 * Add a utility statement's rows to the record, which may be another one than
 * before if the statement was COPY FROM STDIN.
 */
static inline void
note_rows(const QueryCompletion *qc)
{
	if (qc && qc->nprocessed > 0 && command_tag_display_rowcount(qc->commandTag))
		exchange_record()->rows += qc->nprocessed;
}

/* Does a utility statement only look after the session? */
static inline bool
is_overhead(const Node *statement)
{
	return IsA(statement, VariableSetStmt) || IsA(statement, VariableShowStmt) ||
		IsA(statement, DiscardStmt) || IsA(statement, DeallocateStmt);
}

/* The flags of a record that depend on the command. */
static uint8
command_flags(const Node *statement)
{
	return IsA(statement, FetchStmt) ? RECORD_FETCH : is_overhead(statement) ? RECORD_OVERHEAD : 0;
}

/* Run any utility statement. */
static pg_noinline void
special_ProcessUtility(PROCESS_UTILITY_PARAMS)
{
	bool		transparent = IsA(pstmt->utilityStmt, ExecuteStmt);
	bool		recorded = false;
	uint64		queryid;
	bool		outer;

	wire_work_begins();
	if (unlikely(exchange_state(STATE_SUSPENDED)))
		wire_fetches(false);
	outer = exchange_state(STATE_NESTED);
	if (!outer && ActivePortal != NULL && !transparent && exchange_state(STATE_RECORDING) &&
		(!exchange_state(STATE_STATEMENT_DONE) || is_next_statement()))
	{
		wire_next_statement();
		queryid = utility_queryid(pstmt);
		if (sets_name(pstmt->utilityStmt))
			queryid = SET_NAME_QUERYID;
		recorded = !exchange_state(STATE_STATEMENT_BEGUN);
		if (recorded)
			exchange_statement_begins(queryid, 0);
		if (recorded)
			exchange_record()->flags |= command_flags(pstmt->utilityStmt);
	}
	exchange_set_state(STATE_NESTED, outer || !transparent);

	/* beware: pstmt may be freed by this, as by ROLLBACK in a procedure */
	next_ProcessUtility(PROCESS_UTILITY_ARGS);
	exchange_set_state(STATE_NESTED, outer);
	if (recorded)
		note_rows(qc);
}

/* Does the statement still have its own identifier?  See utility_queryid(). */
static inline bool
has_own_queryid(const PlannedStmt *pstmt)
{
	return pstmt->queryId != 0 &&
		(ActivePortal->cplan == NULL || ActivePortal->prepStmtName != NULL);
}

/* Is there more to be known of a utility statement than its identifier? */
static inline bool
is_special(const Node *statement)
{
	return IsA(statement, ExecuteStmt) || IsA(statement, FetchStmt) || is_overhead(statement);
}

/*
 * Called for each utility statement.  One at top level that is the first of
 * its exchange, such as BEGIN or COMMIT, takes the fast path, where nothing is
 * called before the next hook, so that the arguments stay in their registers.
 */
static pg_attribute_hot void
pgnetlat_ProcessUtility(PROCESS_UTILITY_PARAMS)
{
	if (likely(is_first_statement()) && !is_special(pstmt->utilityStmt) && has_own_queryid(pstmt))
	{
		exchange_statement_begins(pstmt->queryId, STATE_NESTED);
		next_ProcessUtility(PROCESS_UTILITY_ARGS);
		exchange_set_state(STATE_NESTED, false);
		note_rows(qc);
	}
	else
		special_ProcessUtility(PROCESS_UTILITY_ARGS);
}

void
statement_hooks_install(void)
{
	/*
	 * computing identifiers costs core time, so skip it if nothing is tracked
	 */
	if (pgnetlat_track_statements)
		EnableQueryId();

	prev_planner = planner_hook;
	planner_hook = pgnetlat_planner;
	next_ExecutorRun = ExecutorRun_hook ? ExecutorRun_hook : standard_ExecutorRun;
	ExecutorRun_hook = pgnetlat_ExecutorRun;
	next_ProcessUtility = ProcessUtility_hook ? ProcessUtility_hook : standard_ProcessUtility;
	ProcessUtility_hook = pgnetlat_ProcessUtility;
}
