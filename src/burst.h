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
 * The first statements of a burst are remembered in the order in which they
 * appeared, for they tend to come in the same order again: most lookups are
 * one comparison.  Further ones go into a small hash table.  When that is full
 * it is forgotten: a loop of more than BURST_STATEMENTS different statements
 * shows repeats of the first BURST_FEW of them only.
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

#define BURST_FEW			16	/* statements that are remembered in order */
#define BURST_PLACES		256 /* of the hash table; a power of two */
#define BURST_MORE			224 /* statements that it may hold */
#define BURST_STATEMENTS	(BURST_FEW + BURST_MORE)

typedef struct Burst
{
	uint64_t	few[BURST_FEW];
	uint32_t	more[BURST_PLACES]; /* halves of hashes; 0: free */
	unsigned	count;			/* of statements in few */
	unsigned	count_more;		/* and in more */
	unsigned	guess;			/* where in few the next one is looked for */
	bool		in_block;
	bool		open;			/* the next statement may continue it */
	int64_t		trip;			/* round trips that brought the next statement */
} Burst;

extern bool burst_find(Burst *burst, uint64_t statement, bool add);
extern void burst_forget(Burst *burst);

/*
 * Before a statement: begin a new burst if it does not continue the one in
 * progress.
 */
static inline void
burst_enter(Burst *burst, bool in_block)
{
	if (!burst->open || burst->in_block != in_block)
		burst_forget(burst);
	burst->in_block = in_block;
	burst->open = true;
}

/* The statement is executed: is it a repeat?  Takes note of it. */
static inline bool
burst_repeats(Burst *burst, uint64_t statement)
{
	unsigned	guess = burst->guess;

	if (guess >= burst->count || burst->few[guess] != statement)
		return burst_find(burst, statement, true);
	burst->guess = (guess + 1) % BURST_FEW;
	return true;
}

/* The statement is only prepared: has it been executed before? */
static inline bool
burst_knows(Burst *burst, uint64_t statement)
{
	return burst_find(burst, statement, false);
}

#endif							/* PGNETLAT_BURST_H */
