/*-------------------------------------------------------------------------
 *
 * sample_statements.h
 *	  Books what sessions are seen doing on their statements.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_SAMPLE_STATEMENTS_H
#define PGNETLAT_SAMPLE_STATEMENTS_H

#include "sample_sessions.h"
#include "statements.h"

/* What the sampler remembers of a session. */
typedef struct Seen
{
	/* read in each tick: close together */
	PGPROC	   *proc;			/* NULL: not seen yet */
	SlotDoing	doing;
	uint32		generation;		/* reset generation */
	bool		quiet;			/* not looked at in each tick */
	bool		recorded;		/* what it executes has a record */
	bool		record_is_sure; /* the record has been looked for twice */
	int64		due;			/* when to attend to the session */
	int64		long_at;		/* when its execution is a long one */

	SlotPublished view;
	uint64		record;			/* number of the record in progress */
	StatementKey statement;		/* the statement of these sampled parts: */
	int64		part[NUM_EXEC_PARTS];
	int64		unplaced[NUM_EXEC_PARTS];	/* parts of a record that had not
											 * begun */
	bool		has_unplaced;
	int64		flush_at;		/* when to add "part" to the statement's
								 * entry; 0: nothing to add */
} Seen;

extern void sample_statement_flush(Seen *seen, int64 exec);
extern void sample_statement_find(int index, Seen *seen, const SlotPublished *view);
extern void sample_statement_book(int index, Seen *seen, int64 time, int64 until);
extern void sample_statement_forget(Seen *seen);
extern void sample_statement_add_execution(int index, Seen *seen, const Tick *tick);

#endif							/* PGNETLAT_SAMPLE_STATEMENTS_H */
