/*-------------------------------------------------------------------------
 *
 * journal.c
 *	  Has the journal written, and logs when findings begin and end.
 *
 * The sampler, which is connected to no database, starts a worker for each
 * look, once a minute.  Between looks nothing is connected: so nothing is in
 * the way of DROP DATABASE or DROP EXTENSION, and no transaction is open.  A
 * worker that is terminated costs one look.
 *
 * What a look writes is SQL: pgnetlat_record().  The worker calls it, and
 * pgnetlat_diagnose(), by their qualified names, as pgnetlat.journal_role and
 * with a search_path in which nobody else can put anything.
 *
 * Episodes, which hold from look to look, are in shared memory.  Only the
 * worker writes them; there is one at a time.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "compat.h"
#include "executor/spi.h"
#include "journal.h"
#include "late_memory.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "settings.h"
#include "shared_memory.h"
#include "storage/ipc.h"
#include "storage/procarray.h"
#include "tcop/tcopprot.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timeout.h"
#include "utils/timestamp.h"

/* Looks are at this second of each minute. */
#define AT_SECOND_US		(5 * USECS_PER_SEC)

#define LOCK_TIMEOUT		"500ms"
#define LOOK_TIMEOUT_MS		10000

/* After a failed look, looks are skipped: 1, 3, 7, ... up to this many. */
#define MOST_SKIPPED		31

/* A problem that persists is logged again after this many looks with it. */
#define REPEAT_PROBLEM		60

/* Episodes: hysteresis, and how many there may be. */
#define LOOKS_TO_BEGIN		2
#define LOOKS_TO_END		3
#define MAX_EPISODES		100
#define MAX_LINES			10

/* The same verdict on the same subject, from look to look. */
typedef struct Episode
{
	char		verdict[NAMEDATALEN];	/* empty: unused */
	char		subject[4 * NAMEDATALEN];
	TimestampTz began;			/* the window in which it was seen first */
	TimestampTz last_seen;
	double		lost;			/* session-minutes */
	int			seen;			/* looks in a row, up to LOOKS_TO_BEGIN */
	int			missing;		/* looks in a row */
} Episode;

typedef struct JournalState
{
	int			pid;			/* of the worker; 0: none */
	bool		is_connecting;	/* still so after its end: it could not */
	int			problem;		/* error code of the latest look; 0: none */
	int			problem_looks;	/* that had it, in a row */
	Episode		episodes[MAX_EPISODES];
} JournalState;

static JournalState *state = NULL;

Size
journal_shmem_size(void)
{
	return MAXALIGN(sizeof(JournalState));
}

void
journal_shmem_attach(void *memory, bool is_new)
{
	state = memory;
}

/* ---------------------------------------------------------------------------
 * In the sampler
 * ---------------------------------------------------------------------------
 */

static BackgroundWorkerHandle *worker_handle = NULL;
static TimestampTz next_look = 0;
static int	skipped = 0;		/* looks after the latest one */
static int	to_skip = 0;

static bool
is_on(void)
{
	return pgnetlat_journal_database[0] != '\0';
}

/* When is the next look?  Never, if there is no journal. */
TimestampTz
journal_next_due(void)
{
	return is_on() ? next_look : GetCurrentTimestamp() + USECS_PER_DAY;
}

void
journal_settings_changed(void)
{
	next_look = 0;
	to_skip = 0;
	state->problem = 0;
}

static bool
worker_is_running(void)
{
	pid_t		pid;
	BgwHandleStatus status;

	if (worker_handle == NULL)
		return state->pid != 0 && BackendPidGetProc(state->pid) != NULL;
	status = GetBackgroundWorkerPid(worker_handle, &pid);
	if (status == BGWH_NOT_YET_STARTED || status == BGWH_STARTED)
		return true;
	pfree(worker_handle);
	worker_handle = NULL;
	return false;
}

static void
start_worker(void)
{
	MemoryContext before = MemoryContextSwitchTo(TopMemoryContext);
	BackgroundWorker worker = {
		.bgw_name = "pgnetlat journal",
		.bgw_type = "pgnetlat journal",
		.bgw_library_name = "pgnetlat",
		.bgw_function_name = "pgnetlat_journal_main",
		.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION,
		.bgw_start_time = BgWorkerStart_ConsistentState,
		.bgw_restart_time = BGW_NEVER_RESTART,
	};

	if (!RegisterDynamicBackgroundWorker(&worker, &worker_handle))
	{
		worker_handle = NULL;
		ereport(LOG,
				(errcode(ERRCODE_INSUFFICIENT_RESOURCES),
				 errmsg("pgnetlat could not write its journal: no background worker slots are available"),
				 errhint("Consider increasing the configuration parameter \"max_worker_processes\".  pgnetlat tries again once a minute.")));
	}
	MemoryContextSwitchTo(before);
}

/* Start a look if one is due, and the one before has ended. */
void
journal_look_if_due(void)
{
	TimestampTz now;
	int64		interval = pgnetlat_journal_interval * INT64CONST(1000);

	if (!is_on())
		return;
	now = GetCurrentTimestamp();
	/* the clock may have been set back */
	if (now < next_look && next_look <= now + interval)
		return;
	next_look = ((now - AT_SECOND_US) / interval + 1) * interval + AT_SECOND_US;
	if (worker_is_running())
		return;
	if (state->is_connecting && skipped == 0)
		to_skip = Min(2 * to_skip + 1, MOST_SKIPPED);
	else if (!state->is_connecting)
		to_skip = 0;
	if (skipped < to_skip)
	{
		skipped++;
		return;
	}
	skipped = 0;
	start_worker();
}

/* ---------------------------------------------------------------------------
 * Episodes
 * ---------------------------------------------------------------------------
 */

/* The log's lines of one look. */
typedef struct Lines
{
	int			written;
	int			more;
} Lines;

/* What comes from outside stays on its line. */
static const char *
on_one_line(char *text)
{
	for (char *c = text; *c; c++)
	{
		if ((unsigned char) *c < ' ')
			*c = ' ';
	}
	return text;
}

/*
 * Is it the same client?  A finding about a session may become one about its
 * client group, or the other way around.
 */
static bool
is_same_subject(const char *one, const char *two)
{
	const char *one_end = strstr(one, ", pid ");
	const char *two_end = strstr(two, ", pid ");
	size_t		one_length = one_end ? (size_t) (one_end - one) : strlen(one);
	size_t		two_length = two_end ? (size_t) (two_end - two) : strlen(two);

	return one_length == two_length && memcmp(one, two, one_length) == 0;
}

/* The finding's episode, a new one if need be; NULL if there is no place. */
static Episode *
find_episode(const char *verdict, const char *subject)
{
	char		key[sizeof(((Episode *) 0)->subject)];
	Episode    *unused = NULL;

	strlcpy(key, subject, sizeof(key));
	for (int i = 0; i < MAX_EPISODES; i++)
	{
		Episode    *e = &state->episodes[i];

		if (e->verdict[0] == '\0')
			unused = unused ? unused : e;
		else if (strcmp(e->verdict, verdict) == 0 && is_same_subject(e->subject, key))
			return e;
	}
	if (unused)
	{
		memset(unused, 0, sizeof(*unused));
		strlcpy(unused->subject, key, sizeof(unused->subject));
		strlcpy(unused->verdict, verdict, sizeof(unused->verdict));
	}
	return unused;
}

static bool
may_log(Lines *lines)
{
	if (lines->written < MAX_LINES)
	{
		lines->written++;
		return true;
	}
	lines->more++;
	return false;
}

static void
episode_seen(Episode *e, TimestampTz now, double lost, char *evidence, Lines *lines)
{
	if (e->seen == 0)
		e->began = now - pgnetlat_journal_interval * INT64CONST(1000);
	e->last_seen = now;
	e->missing = 0;
	e->lost += lost * pgnetlat_journal_interval / 60000;
	if (e->seen == LOOKS_TO_BEGIN)
		return;
	if (++e->seen == LOOKS_TO_BEGIN && may_log(lines))
		ereport(LOG,
				(errmsg("pgnetlat: began: %s: %s: %s", e->verdict, e->subject, on_one_line(evidence)),
				 errhidestmt(true), errhidecontext(true)));
}

static void
episode_missing(Episode *e, Lines *lines)
{
	if (e->seen == LOOKS_TO_BEGIN)
	{
		if (++e->missing < LOOKS_TO_END)
			return;
		if (may_log(lines))
			ereport(LOG,
					(errmsg("pgnetlat: ended: %s: %s: after %.0f min, lost %.1f session-minutes",
							e->verdict, e->subject,
							(double) (e->last_seen - e->began) / USECS_PER_MINUTE, e->lost),
					 errhidestmt(true), errhidecontext(true)));
	}
	e->verdict[0] = '\0';
}

/* ---------------------------------------------------------------------------
 * In the worker
 * ---------------------------------------------------------------------------
 */

/* The text of a column of SPI's row; an empty one if it is NULL. */
static char *
column(int row, int number)
{
	char	   *text = SPI_getvalue(SPI_tuptable->vals[row], SPI_tuptable->tupdesc, number);

	return text ? text : pstrdup("");
}

static void
run(const char *query)
{
	pgstat_report_activity(STATE_RUNNING, query);
	if (SPI_execute(query, false, 0) < 0)
		elog(ERROR, "could not execute \"%s\"", query);
}

/*
 * Become the role.  Returns the extension's schema, quoted.
 */
static char *
enter_extension(void)
{
	Oid			role;
	char	   *schema;

	run("SELECT pg_catalog.quote_ident(n.nspname), e.extowner"
		"  FROM pg_catalog.pg_extension e JOIN pg_catalog.pg_namespace n"
		"    ON n.oid OPERATOR(pg_catalog.=) e.extnamespace"
		" WHERE e.extname OPERATOR(pg_catalog.=) 'pgnetlat'");
	if (SPI_processed == 0)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("extension \"pgnetlat\" does not exist in database \"%s\"",
						pgnetlat_journal_database),
				 errhint("Execute CREATE EXTENSION pgnetlat there, or change \"pgnetlat.journal_database\".")));
	schema = column(0, 1);
	role = atooid(column(0, 2));
	if (pgnetlat_journal_role[0] != '\0')
		role = get_role_oid(pgnetlat_journal_role, false);
	SetUserIdAndSecContext(role, SECURITY_LOCAL_USERID_CHANGE | SECURITY_RESTRICTED_OPERATION);
	return schema;
}

static void
write_row(void)
{
	run(psprintf("SELECT %s.pgnetlat_record()", enter_extension()));
}

/*
 * The server's log shows the texts of statements only where it is to have all
 * of them.
 */
static void
log_episodes(void)
{
	bool		shows_texts = log_statement == LOGSTMT_ALL || log_min_duration_statement == 0;
	TimestampTz now = GetCurrentTimestamp();
	Lines		lines = {0};

	SetConfigOption("pgnetlat.hide_statements", shows_texts ? "off" : "on",
					PGC_USERSET, PGC_S_SESSION);
	run(psprintf("SELECT verdict, subject, lost_sessions, evidence"
				 "  FROM %s.pgnetlat_diagnose('%d ms')"
				 " WHERE severity IN ('outage', 'loss') AND lost_sessions >= %g",
				 enter_extension(), Max(pgnetlat_journal_interval, 1000), pgnetlat_log_findings));
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		char	   *subject = column(i, 2);
		Episode    *e = find_episode(column(i, 1), on_one_line(subject));

		if (e && e->last_seen != now)
			episode_seen(e, now, strtod(column(i, 3), NULL), column(i, 4), &lines);
	}
	for (int i = 0; i < MAX_EPISODES; i++)
	{
		Episode    *e = &state->episodes[i];

		if (e->verdict[0] != '\0' && e->last_seen != now)
			episode_missing(e, &lines);
	}
	if (lines.more > 0)
		ereport(LOG,
				(errmsg("pgnetlat: %d more findings began or ended", lines.more),
				 errhidestmt(true), errhidecontext(true)));
}

/* Log the current error, once if it goes on. */
static void
note_error(MemoryContext context)
{
	ErrorData  *error;

	MemoryContextSwitchTo(context);
	error = CopyErrorData();
	if (error->sqlerrcode != state->problem)
		state->problem_looks = 0;
	state->problem = error->sqlerrcode;
	if (state->problem_looks++ % REPEAT_PROBLEM == 0)
		ereport(LOG,
				(errcode(error->sqlerrcode),
				 errmsg("pgnetlat could not write its journal: %s", error->message),
				 error->detail ? errdetail("%s", error->detail) : 0,
				 error->hint ? errhint("%s", error->hint) : 0,
				 errhidestmt(true), errhidecontext(true)));
	FlushErrorState();
	FreeErrorData(error);
}

/* Do one thing in a transaction of its own; false after an error. */
static bool
do_in_transaction(void (*what) (void))
{
	MemoryContext context = TopMemoryContext;
	volatile bool done = false;
	Oid			user;
	int			security;

	GetUserIdAndSecContext(&user, &security);
	PG_TRY();
	{
		SetCurrentStatementStartTimestamp();
		StartTransactionCommand();
		enable_timeout_after(STATEMENT_TIMEOUT, LOOK_TIMEOUT_MS);
		SPI_connect();
		PushActiveSnapshot(GetTransactionSnapshot());
		what();
		SPI_finish();
		PopActiveSnapshot();
		disable_timeout(STATEMENT_TIMEOUT, false);
		SetUserIdAndSecContext(user, security);
		CommitTransactionCommand();
		done = true;
	}
	PG_CATCH();
	{
		disable_timeout(STATEMENT_TIMEOUT, false);
		note_error(context);
		AbortCurrentTransaction();
		SetUserIdAndSecContext(user, security);
		MemoryContextSwitchTo(context);
	}
	PG_END_TRY();
	return done;
}

static void
worker_exit(int code, Datum arg)
{
	if (state->pid == MyProcPid)
		state->pid = 0;
}

void
pgnetlat_journal_main(Datum arg)
{
	bool		done = true;

	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	if (!shmem_is_ready() && !late_memory_find())
		proc_exit(0);
	state->pid = MyProcPid;
	state->is_connecting = true;
	before_shmem_exit(worker_exit, (Datum) 0);
	BackgroundWorkerInitializeConnection(pgnetlat_journal_database, NULL, 0);
	state->is_connecting = false;
	pgstat_report_appname("pgnetlat journal");
	SetConfigOption("lock_timeout", LOCK_TIMEOUT, PGC_SUSET, PGC_S_OVERRIDE);
	SetConfigOption("search_path", "pg_catalog, pg_temp", PGC_SUSET, PGC_S_OVERRIDE);

	if (!RecoveryInProgress())
		done = do_in_transaction(write_row);
	if (pgnetlat_log_findings < 0)
		memset(state->episodes, 0, sizeof(state->episodes));
	else
		done = do_in_transaction(log_episodes) && done;
	if (done)
		state->problem = 0;
	pgstat_report_activity(STATE_IDLE, NULL);
	proc_exit(0);
}
