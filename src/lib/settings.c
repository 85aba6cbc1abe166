/*-------------------------------------------------------------------------
 *
 * settings.c
 *	  Defines the settings.
 *
 * The initial value of a variable is the setting's default. doc/settings.md
 * and expected/settings.out repeat it; scripts/check-source compares them.
 *
 * Settings that cost time, or that decide who is counted and how, are for
 * superusers; those that size shared memory count when it is made: if the
 * library is preloaded, they need a restart.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <limits.h>

#include "miscadmin.h"
#include "settings.h"
#include "utils/guc.h"

bool		pgnetlat_enabled = true;
int			pgnetlat_history_interval = 10;
int			pgnetlat_history_size = 360;
int64		pgnetlat_idle_threshold_ns;
char	   *pgnetlat_journal_database = "";
int			pgnetlat_journal_interval = 60000;
int			pgnetlat_journal_keep = 10080;
char	   *pgnetlat_journal_role = "";
int			pgnetlat_journal_size = 65536;
double		pgnetlat_log_findings = -1;
int64		pgnetlat_log_limit;
int			pgnetlat_max_blockers = 500;
int			pgnetlat_max_pools = 100;
int			pgnetlat_max_clients = 500;
int			pgnetlat_max_statements = 5000;
char	   *pgnetlat_pooler_check_query = "";
PoolerMode	pgnetlat_pooler_mode = POOLER_MODE_AUTO;
bool		pgnetlat_pooler_suffix = true;
int			pgnetlat_recorder_size = 24;
int			pgnetlat_rtt_interval = 1000;
int			pgnetlat_sample_interval = 10;
int			pgnetlat_sampler_timeout = 300;
bool		pgnetlat_save = true;
bool		pgnetlat_track_statements = true;

/* initially true, so that the session gets attached */
bool		pgnetlat_housekeeping = true;
bool		pgnetlat_names_changed = false;

/* as set by the user, in milliseconds; the assign hooks convert them */
static int	idle_threshold = 1000;
static int	log_min_duration = -1;

#define HIDDEN	(GUC_NO_SHOW_ALL | GUC_NOT_IN_SAMPLE)

static bool hide_statements = false;	/* read by pgnetlat_query_start() */

static void
assign_enabled(bool newval, void *extra)
{
	pgnetlat_housekeeping = true;
}

static void
assign_idle_threshold(int newval, void *extra)
{
	pgnetlat_idle_threshold_ns = newval * NS_PER_MS;
	pgnetlat_housekeeping = true;
}

static void
assign_log_min_duration(int newval, void *extra)
{
	pgnetlat_log_limit = newval < 0 ? PG_INT64_MAX : newval * NS_PER_MS;
}

static void
assign_pooler_mode(int newval, void *extra)
{
	pgnetlat_housekeeping = true;
}

static void
assign_pooler_suffix(bool newval, void *extra)
{
	pgnetlat_housekeeping = pgnetlat_names_changed = true;
}

static const struct config_enum_entry pooler_modes[] = {
	{"auto", POOLER_MODE_AUTO, false},
	{"session", POOLER_MODE_SESSION, false},
	{"transaction", POOLER_MODE_TRANSACTION, false},
	/* no different here */
	{"statement", POOLER_MODE_TRANSACTION, true},
	{NULL, 0, false}
};

/* A boolean, an integer, a real number, an enum or a string. */
typedef struct Setting
{
	const char *name;
	const char *short_desc;
	const char *long_desc;
	GucContext	context;
	bool	   *flag;
	int		   *number;
	int			min;
	int			max;
	int			unit;			/* GUC_UNIT_... */
	double	   *real;			/* at least -1 */
	int		   *word;
	const struct config_enum_entry *words;
	char	  **text;
	GucBoolAssignHook assign_flag;
	GucIntAssignHook assign;	/* of a number or word */
} Setting;

static const Setting settings[] = {
	{
		.name = "pgnetlat.enabled",
		.short_desc = "Enables counting where sessions spend their time.",
		.long_desc = "A change takes effect when the exchange in progress ends.",
		.context = PGC_SUSET,
		.flag = &pgnetlat_enabled,
		.assign_flag = assign_enabled,
	},
	{
		.name = "pgnetlat.history_interval",
		.short_desc = "Sets the length of each interval of pgnetlat_history.",
		.context = PGC_SIGHUP,
		.number = &pgnetlat_history_interval,
		.min = 1,
		.max = 86400,
		.unit = GUC_UNIT_S,
	},
	{
		.name = "pgnetlat.history_size",
		.short_desc = "Sets the number of intervals that pgnetlat_history keeps.",
		.context = PGC_POSTMASTER,
		.number = &pgnetlat_history_size,
		.min = 2,
		.max = 100000,
	},
	{
		.name = "pgnetlat.idle_threshold",
		.short_desc = "Sets the time after which a session waiting outside a transaction counts as idle.",
		.context = PGC_SUSET,
		.number = &idle_threshold,
		.min = 0,
		.max = INT_MAX,
		.unit = GUC_UNIT_MS,
		.assign = assign_idle_threshold,
	},
	{
		.name = "pgnetlat.journal_database",
		.short_desc = "Sets the database in which the journal is written.",
		.long_desc = "An empty string turns the journal off.",
		.context = PGC_SIGHUP,
		.text = &pgnetlat_journal_database,
	},
	{
		.name = "pgnetlat.journal_keep",
		.short_desc = "Sets the time for which the journal keeps its rows.",
		.context = PGC_SIGHUP,
		.number = &pgnetlat_journal_keep,
		.min = 10,
		.max = 5256000,
		.unit = GUC_UNIT_MIN,
	},
	{
		.name = "pgnetlat.journal_role",
		.short_desc = "Sets the role that writes the journal.",
		.long_desc = "An empty string stands for the owner of the extension.",
		.context = PGC_SIGHUP,
		.text = &pgnetlat_journal_role,
	},
	{
		.name = "pgnetlat.journal_size",
		.short_desc = "Sets the size of the journal at which its oldest rows are removed.",
		.context = PGC_SIGHUP,
		.number = &pgnetlat_journal_size,
		.min = 1024,
		.max = MAX_KILOBYTES,
		.unit = GUC_UNIT_KB,
	},
	{
		.name = "pgnetlat.log_findings",
		.short_desc = "Sets the minimum number of lost sessions above which the beginning and the end of a finding are logged.",
		.long_desc = "This needs pgnetlat.journal_database.  Zero logs all findings. -1 turns this feature off.",
		.context = PGC_SIGHUP,
		.real = &pgnetlat_log_findings,
		.max = INT_MAX,
	},
	{
		.name = "pgnetlat.log_min_duration",
		.short_desc = "Sets the minimum duration above which exchanges are logged.",
		.long_desc = "Zero logs all exchanges. -1 turns this feature off.",
		.context = PGC_SUSET,
		.number = &log_min_duration,
		.min = -1,
		.max = INT_MAX,
		.unit = GUC_UNIT_MS,
		.assign = assign_log_min_duration,
	},
	{
		.name = "pgnetlat.max_blockers",
		.short_desc = "Sets the number of entries that pgnetlat_blockers keeps.",
		.context = PGC_POSTMASTER,
		.number = &pgnetlat_max_blockers,
		.min = 10,
		.max = 100000,
	},
	{
		.name = "pgnetlat.max_clients",
		.short_desc = "Sets the number of client groups that pgnetlat_clients keeps.",
		.context = PGC_POSTMASTER,
		.number = &pgnetlat_max_clients,
		.min = 10,
		.max = 100000,
	},
	{
		.name = "pgnetlat.max_pools",
		.short_desc = "Sets the number of pools that pgnetlat_pools keeps.",
		.long_desc = "A pool consists of the sessions of one role in one database.",
		.context = PGC_POSTMASTER,
		.number = &pgnetlat_max_pools,
		.min = 10,
		.max = 1000,
	},
	{
		.name = "pgnetlat.max_statements",
		.short_desc = "Sets the number of statements that pgnetlat_statements keeps.",
		.context = PGC_POSTMASTER,
		.number = &pgnetlat_max_statements,
		.min = 100,
		.max = 1000000,
	},
	{
		.name = "pgnetlat.pooler_check_query",
		.short_desc = "Sets the connection pooler's health-check query.",
		.long_desc = "An empty string stands for an empty query or \"select 1\".",
		.context = PGC_SUSET,
		.text = &pgnetlat_pooler_check_query,
	},
	{
		.name = "pgnetlat.pooler_mode",
		.short_desc = "Sets whether time spent waiting outside a transaction belongs to the client or to the connection pool.",
		.long_desc = "Valid values are \"session\" (client), \"transaction\" (pool) and \"auto\" (pool, if the pooler is seen to share connections).",
		.context = PGC_SUSET,
		.word = (int *) &pgnetlat_pooler_mode,
		.words = pooler_modes,
		.assign = assign_pooler_mode,
	},
	{
		.name = "pgnetlat.pooler_suffix",
		.short_desc = "Uses the client's address that a connection pooler appends to application_name.",
		.context = PGC_SIGHUP,
		.flag = &pgnetlat_pooler_suffix,
		.assign_flag = assign_pooler_suffix,
	},
	{
		.name = "pgnetlat.recorder_size",
		.short_desc = "Sets the number of recent records that pgnetlat_recent keeps for each session.",
		.long_desc = "An exchange takes one record for each of its statements.",
		.context = PGC_POSTMASTER,
		.number = &pgnetlat_recorder_size,
		.min = 16,
		.max = 65536,
	},
	{
		.name = "pgnetlat.rtt_interval",
		.short_desc = "Sets the time between readings of an active session's round-trip time.",
		.long_desc = "-1 turns this feature off.",
		.context = PGC_SUSET,
		.number = &pgnetlat_rtt_interval,
		.min = -1,
		.max = INT_MAX,
		.unit = GUC_UNIT_MS,
	},
	{
		.name = "pgnetlat.sample_interval",
		.short_desc = "Sets the time between samples of the active sessions.",
		.long_desc = "With more than 400 active sessions, this time grows, to at most 100 ms.",
		.context = PGC_SIGHUP,
		.number = &pgnetlat_sample_interval,
		.min = 1,
		.max = 60000,
		.unit = GUC_UNIT_MS,
	},
	{
		.name = "pgnetlat.sampler_timeout",
		.short_desc = "Sets the time without counted sessions after which the sampler ends.",
		.long_desc = "This affects only a sampler that a session has started.",
		.context = PGC_SIGHUP,
		.number = &pgnetlat_sampler_timeout,
		.min = 1,
		.max = INT_MAX,
		.unit = GUC_UNIT_S,
	},
	{
		.name = "pgnetlat.save",
		.short_desc = "Saves statistics across server restarts.",
		.context = PGC_SIGHUP,
		.flag = &pgnetlat_save,
	},
	{
		.name = "pgnetlat.track_statements",
		.short_desc = "Records exchanges and attributes time to statements.",
		.long_desc = "If this is off, nothing is added to pgnetlat_recent, pgnetlat_statements or pgnetlat_histogram.",
		.context = PGC_SUSET,
		.flag = &pgnetlat_track_statements,
	},
};

/* Get the settings that size shared memory, or put others in their place. */
void
settings_sizes(MemorySizes *sizes, bool put)
{
	int			count = 0;

	for (size_t i = 0; i < lengthof(settings); i++)
	{
		int		   *size = &sizes->of_setting[count];

		if (settings[i].context != PGC_POSTMASTER)
			continue;
		*(put ? settings[i].number : size) = *(put ? size : settings[i].number);
		count++;
	}
	Assert(count == lengthof(sizes->of_setting));
}

void
settings_define(void)
{
	for (size_t i = 0; i < lengthof(settings); i++)
	{
		const Setting *s = &settings[i];
		GucContext	context = s->context;

		/*
		 * these never change in a process, which has attached memory of that
		 * size
		 */
		if (context == PGC_POSTMASTER && !process_shared_preload_libraries_in_progress)
			context = PGC_SU_BACKEND;

		if (s->flag)
			DefineCustomBoolVariable(s->name, s->short_desc, s->long_desc, s->flag, *s->flag,
									 context, s->unit, NULL, s->assign_flag, NULL);
		else if (s->word)
			DefineCustomEnumVariable(s->name, s->short_desc, s->long_desc, s->word, *s->word,
									 s->words, context, s->unit, NULL, s->assign, NULL);
		else if (s->text)
			DefineCustomStringVariable(s->name, s->short_desc, s->long_desc, s->text, *s->text,
									   context, s->unit, NULL, NULL, NULL);
		else if (s->real)
			DefineCustomRealVariable(s->name, s->short_desc, s->long_desc, s->real, *s->real,
									 -1, s->max, context, s->unit, NULL, NULL, NULL);
		else
			DefineCustomIntVariable(s->name, s->short_desc, s->long_desc, s->number, *s->number,
									s->min, s->max, context, s->unit, NULL, s->assign, NULL);
	}

	/*
	 * neither is for users: the first is for tests, the second for the
	 * journal
	 */
	DefineCustomIntVariable("pgnetlat.journal_interval", "internal: time between looks", NULL,
							&pgnetlat_journal_interval, pgnetlat_journal_interval, 100, 60000,
							PGC_SIGHUP, GUC_UNIT_MS | HIDDEN, NULL, NULL, NULL);
	DefineCustomBoolVariable("pgnetlat.hide_statements", "internal: findings without SQL", NULL,
							 &hide_statements, false, PGC_USERSET, HIDDEN, NULL, NULL, NULL);
	MarkGUCPrefixReserved("pgnetlat");
}
