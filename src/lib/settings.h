/*-------------------------------------------------------------------------
 *
 * settings.h
 *	  The settings, which doc/settings.md documents.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_SETTINGS_H
#define PGNETLAT_SETTINGS_H

#include "clock.h"

/*
 * After a wait longer than this there is time to look closer: has the wall
 * clock stepped, and was the response lost and sent again?
 */
#define LONG_WAIT_NS				(10 * NS_PER_MS)

/* Who owns a server connection between two transactions? */
typedef enum PoolerMode
{
	POOLER_MODE_AUTO,			/* found out by pooler.c */
	POOLER_MODE_SESSION,		/* the client */
	POOLER_MODE_TRANSACTION		/* the pool */
} PoolerMode;

/*
 * Hidden: the hot path must not go through the table of exported symbols.
 * (The compiler's -fvisibility=hidden affects definitions only; what is merely
 * declared might be another library's.)
 */
#pragma GCC visibility push(hidden)
extern bool pgnetlat_enabled;
extern int	pgnetlat_history_interval;	/* seconds */
extern int	pgnetlat_history_size;
extern int64 pgnetlat_idle_threshold_ns;	/* nanoseconds, like the next */
extern char *pgnetlat_journal_database; /* "": no journal */
extern int	pgnetlat_journal_interval;	/* milliseconds */
extern int	pgnetlat_journal_keep;	/* minutes */
extern char *pgnetlat_journal_role; /* "": the extension's owner */
extern int	pgnetlat_journal_size;	/* kB */
extern double pgnetlat_log_findings;	/* lost sessions; negative: off */
extern int64 pgnetlat_log_limit;	/* PG_INT64_MAX: off */
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
extern int	pgnetlat_sampler_timeout;	/* seconds */
extern bool pgnetlat_save;
extern bool pgnetlat_track_statements;

/*
 * exchange_housekeeping() has something to do, for example because a setting
 * has changed.
 */
extern bool pgnetlat_housekeeping;

/* A setting has changed that says how application_name is read. */
extern bool pgnetlat_names_changed;
#pragma GCC visibility pop

/* The settings that size shared memory, in the order of their names. */
typedef struct MemorySizes
{
	int			of_setting[6];
} MemorySizes;

extern void settings_sizes(MemorySizes *sizes, bool put);

extern void settings_define(void);

#endif							/* PGNETLAT_SETTINGS_H */
