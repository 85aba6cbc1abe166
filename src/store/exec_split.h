/*-------------------------------------------------------------------------
 *
 * exec_split.h
 *	  The parts of execution, as sampled.
 *
 * The time for which a session has executed is known exactly; what it did
 * meanwhile is sampled.  A sample stands for the time since the previous one:
 * up to that much of the execution that is not booked yet is booked on the
 * part that was seen.  So a session with frequent short executions is seen in
 * proportion, and no more is booked than there was.
 *
 * Plain C, no server headers.  Times are nanoseconds.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_EXEC_SPLIT_H
#define PGNETLAT_EXEC_SPLIT_H

#include <stdbool.h>
#include <stdint.h>

typedef enum ExecPart
{
	EXEC_CPU = 0,				/* no wait event */
	EXEC_IO,
	EXEC_LOCK,					/* heavyweight locks */
	EXEC_REPLICATION,			/* waits for a standby */
	EXEC_REMOTE,				/* waits for another server, as its client */
	EXEC_OTHER,					/* any other wait event */
	NUM_EXEC_PARTS
} ExecPart;

extern int64_t exec_parts_sum(const int64_t *part);
extern int64_t exec_parts_book(int64_t *part, int64_t exec, ExecPart which, int64_t time);
extern void exec_parts_fit(int64_t *part, int64_t exec);

#endif							/* PGNETLAT_EXEC_SPLIT_H */
