/*-------------------------------------------------------------------------
 *
 * settings.h
 *	  The settings.  Their meaning is documented in the README.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_SETTINGS_H
#define PGNETLAT_SETTINGS_H

#include "clock.h"

/*
 * Behind a wait longer than this there is time to look closer: has the wall
 * clock stepped, in which core's timestamp is?  Was the response lost and sent
 * again?
 */
#define LONG_WAIT_NS				(10 * NS_PER_MS)

/* Who has a server connection between two transactions? */
typedef enum PoolerMode
{
	POOLER_MODE_AUTO,			/* as far as it shows */
	POOLER_MODE_SESSION,		/* the client */
	POOLER_MODE_TRANSACTION		/* the pool */
} PoolerMode;

/*
 * Read in the hot path: not through the table of exported symbols.  (The
 * compiler's -fvisibility=hidden is about definitions; what is only declared
 * might still be another library's.)
 */
#pragma GCC visibility push(hidden)
extern bool pgnetlat_enabled;
extern int	pgnetlat_history_interval;	/* seconds */
extern int	pgnetlat_history_size;
extern int	pgnetlat_idle_threshold;	/* milliseconds */
extern int64 pgnetlat_idle_threshold_ns;	/* the same */
extern int64 pgnetlat_log_limit;	/* nanoseconds; PG_INT64_MAX: off */
extern int	pgnetlat_max_blockers;
extern int	pgnetlat_max_pools;
extern int	pgnetlat_max_clients;
extern int	pgnetlat_max_statements;
extern char *pgnetlat_pooler_check_query;	/* "": the usual ones */
extern PoolerMode pgnetlat_pooler_mode;
extern bool pgnetlat_pooler_suffix;
extern int	pgnetlat_recorder_size;
extern int	pgnetlat_rtt_interval;	/* milliseconds */
extern int	pgnetlat_sample_interval;	/* milliseconds */
extern bool pgnetlat_save;
extern bool pgnetlat_track_statements;

/*
 * There is something to do between two exchanges, for example because a setting
 * has changed: see exchange.c.
 */
extern bool pgnetlat_housekeeping;

/* How application_name is to be read has changed. */
extern bool pgnetlat_names_changed;
#pragma GCC visibility pop

extern void settings_define(void);

#endif							/* PGNETLAT_SETTINGS_H */
