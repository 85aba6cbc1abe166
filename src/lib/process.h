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

extern bool process_run_queue(int pid, int64 *time, int64 *runs, int64 *on_cpu);	/* ns, times, ns */
extern long process_times_blocked(void);
extern double process_processors(void);

#endif							/* PGNETLAT_PROCESS_H */
