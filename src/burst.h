/*-------------------------------------------------------------------------
 *
 * burst.h
 *	  Which statements of a session are repeats: what an N+1 looks like.
 *
 * A burst is a run of exchanges of one session that belong to one piece of
 * work: those inside one transaction block, or successive exchanges outside of
 * a block between which the client never thought for longer than
 * BURST_THINK_NS.  A statement that has been executed in the burst before is a
 * repeat, whatever came in between, and the round trips that brought it (those
 * before it and, where the client prepares it anew each time, before that) are
 * what one statement for all would have saved.
 *
 * Bursts are numbered.  Whoever keeps something for each statement also keeps
 * the number of the burst in which the statement was last executed, so that
 * each question is one comparison (known.h).
 *
 * Plain C, no server headers.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_BURST_H
#define PGNETLAT_BURST_H

#include <stdbool.h>
#include <stdint.h>

/* Outside of a transaction block, a client that thinks longer starts anew. */
#define BURST_THINK_NS		INT64_C(10000000)

/* Which statement continues the burst in progress? */
typedef enum BurstContinues
{
	BURST_ENDS = 0,				/* none */
	BURST_OUTSIDE,				/* one outside of a transaction block */
	BURST_IN_BLOCK				/* one in a transaction block */
} BurstContinues;

typedef struct Burst
{
	uint32_t	number;			/* of the burst in progress; 0: there was none */
	BurstContinues continues;
	int64_t		trip;			/* round trips that brought the next statement */
} Burst;

/* A new burst: no statement has been executed in it. */
static inline void
burst_begin(Burst *burst)
{
	/* 0 is of what was never executed, also when all numbers have been used */
	if (++burst->number == 0)
		burst->number = 1;
}

/*
 * Before a statement: begin a new burst if it does not continue the one in
 * progress.
 */
static inline void
burst_enter(Burst *burst, bool in_block)
{
	BurstContinues where = in_block ? BURST_IN_BLOCK : BURST_OUTSIDE;

	if (burst->continues == where)
		return;
	burst_begin(burst);
	burst->continues = where;
}

/*
 * The statement is executed: is it a repeat?  "executed_in" is when it was last
 * executed, which the caller keeps.
 */
static inline bool
burst_repeats(const Burst *burst, uint32_t *executed_in)
{
	if (*executed_in == burst->number)
		return true;
	*executed_in = burst->number;
	return false;
}

/*
 * The exchange of a statement that was in a transaction block is over: what
 * comes next is in that, too, if "in_xact".
 */
static inline void
burst_leave_block(Burst *burst, bool in_xact)
{
	burst->continues = in_xact ? BURST_IN_BLOCK : BURST_ENDS;
}

/* The client has thought for long. */
static inline void
burst_pause(Burst *burst)
{
	if (burst->continues == BURST_OUTSIDE)
		burst->continues = BURST_ENDS;
}

#endif							/* PGNETLAT_BURST_H */
