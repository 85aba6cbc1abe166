/*-------------------------------------------------------------------------
 *
 * exec_split.h
 *	  What execution consists of, as far as samples tell.
 *
 * How long a session has executed is known exactly; what it did meanwhile is
 * sampled.  A sample stands for the time since the one before: up to that much
 * of the execution that has not been booked yet is booked to the part that was
 * seen.  So a session that executes often, but only briefly, is seen in
 * proportion, and never is more booked than there was.
 *
 * What is left over may still be booked until somebody is shown it: what has
 * been shown as unsampled stays so.  That is what keeps all parts, this one
 * included, from ever falling, while they add up to the whole.
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

typedef struct ExecSplit
{
	int64_t		part[NUM_EXEC_PARTS];
	int64_t		unsampled;		/* has been shown as such */
} ExecSplit;

/* The lock wait that a session was seen in. */
typedef struct ExecLockWait
{
	int64_t		since;			/* 0: none */
	int64_t		booked;
} ExecLockWait;

extern int64_t exec_split_sum(const ExecSplit *split);
extern int64_t exec_split_book(ExecSplit *split, int64_t exec, ExecPart part, int64_t time);
extern void exec_split_show(ExecSplit *split, int64_t exec);
extern void exec_split_add(ExecSplit *sum, const ExecSplit *term);
extern int64_t exec_lock_time(ExecLockWait *wait, int64_t since, int64_t now,
							  int64_t sampled);

extern int64_t exec_parts_sum(const int64_t *part);
extern void exec_parts_fit(int64_t *part, int64_t exec);
extern void exec_parts_add_fitting(int64_t *sum, const int64_t *term, int64_t exec);

#endif							/* PGNETLAT_EXEC_SPLIT_H */
