/*-------------------------------------------------------------------------
 *
 * process.h
 *	  Asks the kernel what its scheduler counts for a process, and how many
 *	  processors this server may use.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_PROCESS_H
#define PGNETLAT_PROCESS_H

/*
 * What the scheduler has counted for a process since it started; in
 * nanoseconds.
 */
typedef struct RunQueue
{
	int64		time;			/* ready to run, but not running */
	int64		runs;			/* how often it got one */
} RunQueue;

extern bool process_run_queue(int pid, RunQueue *run_queue);
extern long process_times_blocked(void);
extern double process_processors(void);
extern bool process_is_quitting(void);

#endif							/* PGNETLAT_PROCESS_H */
