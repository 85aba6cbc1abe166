/*-------------------------------------------------------------------------
 *
 * process.h
 *	  Asking the kernel about processes: what its scheduler counts, and how
 *	  many processors this server may use.
 *
 * As in tcpinfo.h, differences between operating systems end here.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_PROCESS_H
#define PGNETLAT_PROCESS_H

/* What the scheduler says of a process since it started; times in nanoseconds. */
typedef struct RunQueue
{
	int64		time;			/* ready to run, without getting a processor */
	int64		runs;			/* how often it got one */
} RunQueue;

extern bool process_run_queue(int pid, RunQueue *run_queue);
extern long process_times_blocked(void);
extern double process_processors(void);

#endif							/* PGNETLAT_PROCESS_H */
