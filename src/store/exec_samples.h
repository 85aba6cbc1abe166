/*-------------------------------------------------------------------------
 *
 * exec_samples.h
 *	  Which part of execution is a wait event, and whose is what was sampled?
 *
 * What a session was seen doing is in its slot (session_slot.h).  Here are the parts
 * of the statement in progress, whose execution reaches its table only when the tally
 * that counts it is taken: until then they wait here.
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

/* The record that a session is building, and whose statement it says it is. */
typedef struct ExecRecord
{
	uint64		number;
	uint64		queryid;
	Oid			userid;
} ExecRecord;

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

/* Functions for the sampler */
extern void exec_samples_prefetch(int slot);
extern bool exec_samples_note(int slot, const ExecRecord *record, ExecPart part, int64 time);

/* Functions for the holder of the accumulation lock */
extern bool exec_samples_take_statement(int slot, uint64 before, ExecStatement *statement);
extern void exec_samples_forget_statement(int slot);

#endif							/* PGNETLAT_EXEC_SAMPLES_H */
