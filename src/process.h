/*-------------------------------------------------------------------------
 *
 * process.h
 *	  Asking the kernel about this process: what its scheduler counts.
 *
 * As in tcpinfo.h, differences between operating systems end here.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_PROCESS_H
#define PGNETLAT_PROCESS_H

extern int64 process_run_queue_time(void);	/* ns; -1: unknown */
extern long process_times_blocked(void);

#endif							/* PGNETLAT_PROCESS_H */
