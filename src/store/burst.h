/*-------------------------------------------------------------------------
 *
 * burst.h
 *	  Which statements of a session are repeats: what an N+1 looks like.
 *
 * A burst is a run of exchanges of one session that belong to one piece of
 * work: those inside one transaction block, or successive exchanges outside of
 * a block between which the client never thought for longer than
 * BURST_THINK_NS.  The round trips that brought a repeat (those before it and,
 * where the client prepares it anew each time, before that) are what one
 * statement for all would have saved.
 *
 * In a transaction block, a statement that has been executed in the burst
 * before is a repeat, whatever came in between.
 *
 * Outside of a block, a burst need not be one piece of work.  Through a pooler,
 * requests of many users follow each other as closely as the statements of a
 * loop do, and most of them run the same few statements.  So only what is
 * executed again and again, without anything in between, is a repeat, and only
 * if it is in the same exchange, or looks like a loop:
 *
 * - The statement before the first execution had more than one row: as many
 *   executions as it had rows are one for each of them.  That is an N+1.
 * - Or there were BURST_LOOP executions, and now there is another one, before
 *   all of which the client thought for BURST_LOOP_THINK_NS at most.
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
#define BURST_THINK_NS		INT64_C(100000000)

/* There, a loop that no rows account for. */
#define BURST_LOOP			30
#define BURST_LOOP_THINK_NS	INT64_C(2000000)

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

	/* outside of a block */
	uint64_t	run_of;			/* the latest statement; 0: none */
	int64_t		rows;			/* that it had */
	int64_t		accounted;		/* so many more executions of it are for a row
								 * each, if that is positive ... */
	int64_t		before_loop;	/* ... and what comes after so many is a loop */
} Burst;

/* A new burst: no statement has been executed in it. */
static inline void
burst_begin(Burst *burst)
{
	/* 0 is of what was never executed, also when all numbers have been used */
	if (++burst->number == 0)
		burst->number = 1;
	burst->run_of = 0;
	burst->rows = 0;
}

/*
 * Before a statement: begin a new burst if it does not continue the one in
 * progress.
 */
static inline void
burst_enter(Burst *burst, bool in_block)
{
	BurstContinues where = in_block ? BURST_IN_BLOCK : BURST_OUTSIDE;

	if (__builtin_expect(burst->continues == where, true))
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
 * The same outside of a block, of a statement that had so many rows; perhaps in
 * the same exchange as the one before.
 */
static inline bool
burst_repeats_outside(Burst *burst, uint64_t statement, int64_t rows, bool same_exchange)
{
	int64_t		rows_before = burst->rows;

	burst->rows = rows;
	if (burst->run_of != statement)
	{
		burst->run_of = statement;
		burst->accounted = rows_before - 1;
		burst->before_loop = BURST_LOOP - 1;
		return false;
	}
	burst->accounted--;
	burst->before_loop--;
	return burst->before_loop < 0 || burst->accounted >= 0 || same_exchange;
}

/* There, a statement is prepared: would it be a repeat if it were executed next? */
static inline bool
burst_would_repeat_outside(const Burst *burst, uint64_t statement)
{
	return burst->run_of == statement && (burst->before_loop <= 0 || burst->accounted > 0);
}

/* A wait is over: so long was its round trip, and so long has the client thought. */
static inline void
burst_wait(Burst *burst, int64_t network, int64_t client)
{
	burst->trip = network;
	if (client > BURST_LOOP_THINK_NS)
		burst->before_loop = BURST_LOOP;
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
