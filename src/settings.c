/*-------------------------------------------------------------------------
 *
 * settings.c
 *	  The settings, in alphabetical order.
 *
 * What costs time or decides who is counted how is for superusers; what sizes
 * shared memory needs a restart.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <limits.h>

#include "settings.h"
#include "utils/guc.h"

bool		pgnetlat_enabled = true;
int			pgnetlat_history_interval = 10;
int			pgnetlat_history_size = 360;
int			pgnetlat_idle_threshold = 1000;
int64		pgnetlat_idle_threshold_ns = 1000 * NS_PER_MS;
int64		pgnetlat_plain_wait_ns = LONG_WAIT_NS;
int64		pgnetlat_log_limit = PG_INT64_MAX;
int			pgnetlat_max_blockers = 500;
int			pgnetlat_max_clients = 500;
int			pgnetlat_max_statements = 5000;
int			pgnetlat_recorder_size = 24;
int			pgnetlat_rtt_interval = 1000;
int			pgnetlat_sample_interval = 10;
bool		pgnetlat_save = true;
bool		pgnetlat_track_statements = true;

/* the session is to be attached */
bool		pgnetlat_housekeeping = true;

/* what users set, in milliseconds; see pgnetlat_log_limit */
static int	log_min_duration = -1;

static void
assign_enabled(bool newval, void *extra)
{
	pgnetlat_housekeeping = true;
}

/* The hot path multiplies nothing. */
static void
assign_idle_threshold(int newval, void *extra)
{
	pgnetlat_idle_threshold_ns = newval * NS_PER_MS;
	pgnetlat_plain_wait_ns = Min(pgnetlat_idle_threshold_ns, LONG_WAIT_NS);
}

static void
assign_log_min_duration(int newval, void *extra)
{
	pgnetlat_log_limit = newval < 0 ? PG_INT64_MAX : newval * NS_PER_MS;
}

/* In two parts, for the alphabet is long. */
static void
define_up_to_l(void)
{
	DefineCustomBoolVariable("pgnetlat.enabled",
							 "Enables counting where sessions spend their time.",
							 "A change takes effect when the exchange in progress ends.",
							 &pgnetlat_enabled, true,
							 PGC_SUSET, 0, NULL, assign_enabled, NULL);

	DefineCustomIntVariable("pgnetlat.history_interval",
							"Sets the length of an interval of pgnetlat_history.",
							NULL,
							&pgnetlat_history_interval, 10, 1, 86400,
							PGC_SIGHUP, GUC_UNIT_S, NULL, NULL, NULL);

	DefineCustomIntVariable("pgnetlat.history_size",
							"Sets the number of intervals that pgnetlat_history keeps.",
							NULL,
							&pgnetlat_history_size, 360, 2, 100000,
							PGC_POSTMASTER, 0, NULL, NULL, NULL);

	DefineCustomIntVariable("pgnetlat.idle_threshold",
							"Sets the time after which a session that waits outside a transaction counts as idle.",
							NULL,
							&pgnetlat_idle_threshold, 1000, 0, INT_MAX,
							PGC_SUSET, GUC_UNIT_MS, NULL, assign_idle_threshold, NULL);

	DefineCustomIntVariable("pgnetlat.log_min_duration",
							"Sets the duration of an exchange from which on it is logged.",
							"-1 disables logging exchanges. 0 logs all of them.",
							&log_min_duration, -1, -1, INT_MAX,
							PGC_SUSET, GUC_UNIT_MS, NULL, assign_log_min_duration, NULL);
}

static void
define_from_m(void)
{
	DefineCustomIntVariable("pgnetlat.max_blockers",
							"Sets the number of entries that pgnetlat_blockers keeps.",
							NULL,
							&pgnetlat_max_blockers, 500, 10, 100000,
							PGC_POSTMASTER, 0, NULL, NULL, NULL);

	DefineCustomIntVariable("pgnetlat.max_clients",
							"Sets the number of client groups that pgnetlat_clients keeps.",
							NULL,
							&pgnetlat_max_clients, 500, 10, 100000,
							PGC_POSTMASTER, 0, NULL, NULL, NULL);

	DefineCustomIntVariable("pgnetlat.max_statements",
							"Sets the number of statements that pgnetlat_statements keeps.",
							NULL,
							&pgnetlat_max_statements, 5000, 100, INT_MAX / 2,
							PGC_POSTMASTER, 0, NULL, NULL, NULL);

	DefineCustomIntVariable("pgnetlat.recorder_size",
							"Sets the number of records of recent exchanges that are kept for each session.",
							"An exchange takes one record for each of its statements.",
							&pgnetlat_recorder_size, 24, 16, 65536,
							PGC_POSTMASTER, 0, NULL, NULL, NULL);

	DefineCustomIntVariable("pgnetlat.rtt_interval",
							"Sets how often a busy session asks the kernel for its connection's round-trip time.",
							"-1 disables asking.",
							&pgnetlat_rtt_interval, 1000, -1, INT_MAX,
							PGC_SUSET, GUC_UNIT_MS, NULL, NULL, NULL);

	DefineCustomIntVariable("pgnetlat.sample_interval",
							"Sets the time between two samples of the sessions' wait events.",
							NULL,
							&pgnetlat_sample_interval, 10, 1, 60000,
							PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);

	DefineCustomBoolVariable("pgnetlat.save",
							 "Enables saving statistics at shutdown and loading them at start.",
							 NULL,
							 &pgnetlat_save, true,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);

	DefineCustomBoolVariable("pgnetlat.track_statements",
							 "Enables recording exchanges and attributing them to statements.",
							 "Without it pgnetlat_recent, pgnetlat_statements and pgnetlat_histogram do not grow.",
							 &pgnetlat_track_statements, true,
							 PGC_SUSET, 0, NULL, NULL, NULL);
}

void
settings_define(void)
{
	define_up_to_l();
	define_from_m();
	MarkGUCPrefixReserved("pgnetlat");
}
