/*-------------------------------------------------------------------------
 *
 * exec_samples.h
 *	  What each session was seen doing while it was executing.
 *
 * Whoever looks at a session takes a sample of it: the sampler at each tick,
 * and anybody who observes it in between.  So there are several writers, and a
 * spinlock for each slot.  No event of a session takes it: the session itself
 * comes here only when it accumulates itself, because it is renamed or ends.
 *
 * In addition to the session's parts there are those of the statement in
 * progress, whose execution reaches its table only when the tally that counts
 * it is taken: until then they wait here.
 *
 * Times are nanoseconds of the monotonic clock.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_EXEC_SAMPLES_H
#define PGNETLAT_EXEC_SAMPLES_H

#include "exec_split.h"
#include "storage/proc.h"

/* A session as somebody sees it. */
typedef struct ExecLook
{
	uint64		session;
	uint32		generation;		/* of resets */
	int64		now;
	int64		exec;			/* all execution since attached or reset, up
								 * to now */
	bool		executing;		/* at this moment, and not blocked by its
								 * client */
	uint32		wait_event;		/* as in PGPROC */
	int64		sampled_before; /* when the sampler did so; 0: somebody else
								 * looks */
	PGPROC	   *proc;
	int64		clock_offset;	/* converts core's timestamps, see clock.h */
} ExecLook;

/* Why somebody looks. */
typedef enum ExecPurpose
{
	EXEC_SHOW,					/* to show it, or to add it to a table, which
								 * anybody may show: what is not sampled stays
								 * so */
	EXEC_SAMPLE					/* the sampler, at its tick */
} ExecPurpose;

/* What of a session's parts the sampler has noted as some statement's. */
typedef struct ExecNoted
{
	uint64		session;
	uint32		generation;
	int64		part[NUM_EXEC_PARTS];
} ExecNoted;

/* The record that a session is building, and whose statement it says it is. */
typedef struct ExecRecord
{
	uint64		number;
	uint64		queryid;
	Oid			userid;
} ExecRecord;

/* What came of a sample. */
typedef enum ExecTick
{
	EXEC_TICK_STALE,			/* nothing: others have seen more already */
	EXEC_TICK_BOOKED,
	EXEC_TICK_FULL				/* booked, but an earlier record's samples are
								 * still there: accumulate the session, and
								 * try again */
} ExecTick;

/* What was sampled of the statement whose record has that number. */
typedef struct ExecStatement
{
	ExecRecord	record;
	bool		used;
	int64		part[NUM_EXEC_PARTS];
} ExecStatement;

extern Size exec_samples_shmem_size(void);
extern void exec_samples_shmem_init(void);

extern ExecPart exec_samples_part(uint32 wait_event);
extern bool exec_samples_look(int slot, const ExecLook *look, ExecPurpose purpose,
							  int64 *part);
extern int64 exec_samples_run_until(int slot, uint64 session);

/* Functions for the sampler */
extern void exec_samples_end_tick(int64 at, int64 interval);
extern void exec_samples_begin_notes(int slot, ExecNoted *noted);
extern void exec_samples_prefetch(int slot);
extern ExecTick exec_samples_tick(int slot, const ExecLook *look, ExecNoted *noted,
								  const ExecRecord *record);
extern void exec_samples_end_run(int slot);

/* Functions for the holder of the accumulation lock */
extern bool exec_samples_take_statement(int slot, uint64 before, ExecStatement *statement);
extern void exec_samples_forget_statement(int slot);

#endif							/* PGNETLAT_EXEC_SAMPLES_H */
