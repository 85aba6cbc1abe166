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
 * loop do, and are mixed with them.  So there a statement repeats only if it is in
 * the same exchange, or looks like a loop:
 *
 * - The statement before its first execution had several rows, and it is
 *   executed for many of them, while that one is not executed again: an N+1.
 *   It counts, from its second execution up to the number of rows, as soon as it
 *   has been executed for a quarter of the rows, and BURST_FEWEST times.  Up to
 *   BURST_RUNS - 1 other statements in between do not hide it.
 * - Or it has been executed BURST_LOOP times in a row, and now is once more,
 *   before all of which the client thought for BURST_LOOP_THINK_NS at most.
 *
 * Bursts are numbered.  A statement's place in the tally keeps the number of the
 * burst in which it was last executed, so that each question is one comparison.
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

/* There, an N+1 has at least so many executions, and so many runs are told apart. */
#define BURST_FEWEST		5
#define BURST_RUNS			4

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

/* Executions of a statement that may be for the rows of another one. */
typedef struct BurstRun
{
	uint64_t	statement;		/* 0: none */
	uint64_t	parent;			/* what was executed before */
	int64_t		rows;			/* that it had */
	int64_t		executions;
	int64_t		repeats;		/* of these, not counted yet */
	int64_t		network;		/* the round trips that brought them */
} BurstRun;

typedef struct Burst
{
	uint32_t	number;			/* of the burst in progress; 0: there was none */
	BurstContinues continues;
	int64_t		trip;			/* round trips that brought the next statement */

	/* outside of a block */
	uint64_t	latest;			/* statement; 0: none */
	int64_t		rows;			/* that it had */
	int64_t		before_loop;	/* after so many more in a row it is a loop */
	unsigned	run;			/* the latest one */
	BurstRun	runs[BURST_RUNS];
} Burst;

/* A new burst: no statement has been executed in it. */
static inline void
burst_begin(Burst *burst)
{
	/* 0 is of what was never executed, also when all numbers have been used */
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

/* The run of a statement that is not the latest one; it may be its first execution. */
static inline BurstRun *
burst_change_run(Burst *burst, uint64_t statement)
{
	BurstRun   *run = burst_find_run(burst, statement);

	/* for the rows of an earlier execution there will be no more */
	for (int i = 0; i < BURST_RUNS; i++)
	{
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

/* With one execution more: is it an N+1? */
static inline bool
burst_is_shown(const BurstRun *run)
{
	return run->executions + 1 >= BURST_FEWEST && run->executions + 1 >= run->rows / 4;
}

/*
 * Outside of a block a statement is executed, which had so many rows; perhaps in the
 * same exchange as the one before.  Returns how many repeats that makes known, and
 * adds the round trips that brought them.
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

/* There, a statement is prepared: the round trips of a repeat, if it is executed next. */
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
