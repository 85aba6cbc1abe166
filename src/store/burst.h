/*-------------------------------------------------------------------------
 *
 * burst.h
 *	  Finds statements that a session repeats, as in an N+1.
 *
 * A burst is a run of exchanges of one session that belong to one piece of
 * work: those in one transaction block, or successive exchanges outside a
 * block between which the client never thought for longer than BURST_THINK_NS,
 * and no pooler is seen to hand the connection to another client.  A session
 * that is renamed begins another piece of work.
 * A single statement for all would have saved the round trips before each
 * repeat, and before its Parse where the client prepares it each time.
 *
 * In a transaction block, a statement is a repeat if it has been executed in
 * the same burst before, whatever came in between.
 *
 * Outside a block, a burst may be more than one piece of work.  Through a
 * pooler, requests of many users follow each other as closely as the
 * statements of a loop, and are mixed with them.  So there a statement is a
 * repeat only if it is in the same exchange, or looks like a loop:
 *
 * - The statement before its first execution returned several rows, and it
 *   is executed for many of them before that one is executed again: an N+1.
 *   Its executions count from the second one up to the number of rows, as soon
 *   as there has been one for a quarter of the rows, and BURST_FEWEST in all.
 *   Up to BURST_RUNS - 1 other statements may come in between.
 * - Or it is executed more than BURST_LOOP times in a row, and before each
 *   time the client thought for BURST_LOOP_THINK_NS at most.
 *
 * Bursts are numbered.  A statement's entry in the tally keeps the number of
 * the burst in which it was last executed, so that one comparison finds a
 * repeat.
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

/* Outside a transaction block, a longer think time ends a burst. */
#define BURST_THINK_NS		INT64_C(100000000)

/*
 * The fewest executions of an N+1, and the number of runs that are told apart.
 */
#define BURST_FEWEST		5
#define BURST_RUNS			4

/* A loop that is not for the rows of another statement. */
#define BURST_LOOP			30
#define BURST_LOOP_THINK_NS	INT64_C(2000000)

/* Which statement continues the burst in progress. */
typedef enum BurstContinues
{
	BURST_ENDS = 0,				/* none */
	BURST_OUTSIDE,				/* one outside a transaction block */
	BURST_IN_BLOCK				/* one in a transaction block */
} BurstContinues;

/* Executions of a statement, perhaps for the rows of another one. */
typedef struct BurstRun
{
	uint64_t	statement;		/* 0: none */
	uint64_t	parent;			/* the statement before its first execution */
	int64_t		rows;			/* that it had */
	int64_t		executions;
	int64_t		repeats;		/* executions not yet counted as repeats */
	int64_t		network;		/* round trips before these */
} BurstRun;

typedef struct Burst
{
	uint32_t	number;			/* the burst in progress; 0: none yet */
	BurstContinues continues;
	int64_t		trip;			/* round trips so far before the next
								 * statement */

	/* outside a block */
	uint64_t	latest;			/* latest statement; 0: none */
	int64_t		rows;			/* that it had */
	int64_t		before_loop;	/* executions in a row until it is a loop */
	unsigned	run;			/* number of the latest run */
	BurstRun	runs[BURST_RUNS];
} Burst;

/* Begin a new burst, in which no statement has been executed. */
static inline void
burst_begin(Burst *burst)
{
	/* skip 0, which says "never executed", when the number wraps around */
	if (++burst->number == 0)
		burst->number = 1;
	burst->latest = 0;
	burst->rows = 0;
	for (int i = 0; i < BURST_RUNS; i++)
		burst->runs[i].statement = burst->runs[i].parent = 0;
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

static inline BurstRun *
burst_find_run(Burst *burst, uint64_t statement)
{
	for (int i = 0; i < BURST_RUNS; i++)
	{
		if (burst->runs[i].statement == statement)
			return &burst->runs[i];
	}
	return NULL;
}

/*
 * Switch to the run of a statement that is not in the latest run, or begin
 * one.
 */
static inline BurstRun *
burst_change_run(Burst *burst, uint64_t statement)
{
	BurstRun   *run = NULL;

	for (int i = BURST_RUNS - 1; i >= 0; i--)
	{
		if (burst->runs[i].statement == statement)
			run = &burst->runs[i];
		/* the statement itself ends the runs for its earlier rows */
		if (burst->runs[i].parent == statement)
			burst->runs[i].statement = 0;
	}
	if (run == NULL || run->statement == 0 || (burst->rows > 1 && run->executions >= run->rows))
	{
		run = &burst->runs[++burst->run % BURST_RUNS];
		run->statement = statement;
		run->parent = burst->latest;
		run->rows = burst->rows;
		run->executions = run->repeats = run->network = 0;
	}
	burst->run = run - burst->runs;
	burst->latest = statement;
	burst->before_loop = BURST_LOOP;
	return run;
}

/* Does one more execution make it an N+1? */
static inline bool
burst_is_shown(const BurstRun *run)
{
	return run->executions + 1 >= BURST_FEWEST && run->executions + 1 >= run->rows / 4;
}

/*
 * Outside a block, a statement was executed and returned "rows", perhaps in
 * the same exchange as the one before.  Returns how many repeats that reveals,
 * and adds the round trips before them to "network".
 */
static inline int64_t
burst_repeats_outside(Burst *burst, uint64_t statement, int64_t rows, bool same_exchange,
					  int64_t *network)
{
	bool		in_a_row = burst->latest == statement;
	BurstRun   *run = __builtin_expect(in_a_row, true) ? &burst->runs[burst->run] :
		burst_change_run(burst, statement);
	int64_t		repeats = 0;

	burst->rows = rows;
	burst->before_loop--;
	if (burst->before_loop < 0 || (in_a_row && same_exchange))
	{
		*network += burst->trip;
		repeats = 1;
	}
	else if (run->executions > 0 && run->executions < run->rows)
	{
		run->repeats++;
		run->network += burst->trip;
	}
	if (run->repeats > 0 && burst_is_shown(run))
	{
		repeats += run->repeats;
		*network += run->network;
		run->repeats = run->network = 0;
	}
	run->executions++;
	return repeats;
}

/*
 * Outside a block, a statement is prepared.  Returns the round trips to count
 * for a repeat that follows.
 */
static inline int64_t
burst_prepares_outside(Burst *burst, uint64_t statement)
{
	BurstRun   *run = burst_find_run(burst, statement);

	if (burst->latest == statement && burst->before_loop <= 0)
		return burst->trip;
	if (run == NULL || run->executions == 0 || run->executions >= run->rows)
		return 0;
	if (burst_is_shown(run))
		return burst->trip;
	run->network += burst->trip;
	return 0;
}

/*
 * In a block, a statement was executed: is it a repeat?  "executed_in" is the
 * burst of its last execution.
 */
static inline int64_t
burst_repeats_in_block(const Burst *burst, uint32_t *executed_in, int64_t *network)
{
	if (*executed_in != burst->number)
	{
		*executed_in = burst->number;
		return 0;
	}
	*network += burst->trip;
	return 1;
}

/*
 * A statement was executed.  Returns how many repeats that reveals, and adds
 * the round trips before them to "network".  The caller keeps "executed_in" for
 * each statement.
 */
static inline int64_t
burst_repeats(Burst *burst, bool in_block, uint32_t *executed_in, uint64_t statement,
			  int64_t rows, bool same_exchange, int64_t *network)
{
	if (__builtin_expect(!in_block, true))
		return burst_repeats_outside(burst, statement, rows, same_exchange, network);
	return burst_repeats_in_block(burst, executed_in, network);
}

/*
 * A statement was prepared.  Returns the round trips to count for a repeat that
 * it belongs to.
 */
static inline int64_t
burst_prepares(Burst *burst, bool in_block, uint32_t executed_in, uint64_t statement)
{
	if (!in_block)
		return burst_prepares_outside(burst, statement);
	return executed_in == burst->number ? burst->trip : 0;
}

/*
 * A wait is over, with "network" for its round trip, and "client" for
 * thinking.
 */
static inline void
burst_wait(Burst *burst, int64_t network, int64_t client)
{
	burst->trip = network;
	if (client > BURST_LOOP_THINK_NS)
		burst->before_loop = BURST_LOOP;
}

/*
 * The exchange of a statement in a transaction block is over.  The block goes
 * on if "in_xact".
 */
static inline void
burst_leave_block(Burst *burst, bool in_xact)
{
	burst->continues = in_xact ? BURST_IN_BLOCK : BURST_ENDS;
}

/* Another piece of work follows, perhaps in the same block. */
static inline void
burst_end(Burst *burst)
{
	burst->continues = BURST_ENDS;
}

/* Another piece of work follows, unless it is in the same block. */
static inline void
burst_pause(Burst *burst)
{
	if (burst->continues == BURST_OUTSIDE)
		burst->continues = BURST_ENDS;
}

/* The client was thinking or idle for so long in a wait. */
static inline void
burst_think(Burst *burst, int64_t length)
{
	if (length > BURST_THINK_NS)
		burst_pause(burst);
}

#endif							/* PGNETLAT_BURST_H */
