/*-------------------------------------------------------------------------
 *
 * recorder.h
 *	  The flight recorder: a ring with each session's latest records.
 *
 * It is for pgnetlat_recent(), and tells the sampler which statement a session
 * executes.  It has one writer, the session, which overwrites its oldest
 * record, and any number of readers.  The session builds a record in the ring
 * itself, and then pushes it.
 *
 * Readers take no lock: head tells them what is complete, and what may be
 * being overwritten.  While head is n, the session builds record n, in place
 * of record n - size.
 *
 *		session						reader
 *		fill record n - 1			read head: n
 *		write barrier (a)			read barrier (a)
 *		head = n					copy records n - size + 1 .. n - 1
 *		write barrier (b)			read barrier (b)
 *		fill record n				read head again: m
 *
 * By (a), the records before head are complete.  By (b), if a copy has
 * anything of record m, the second read of head gives at least m, and records
 * below m - size + 1 are discarded, which are those that may be torn.  On x86,
 * where stores stay in order, both barriers only affect the compiler.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_RECORDER_H
#define PGNETLAT_RECORDER_H

#include "port/atomics.h"
#include "trace_context.h"

/* flags of a record */
#define RECORD_ENDS_EXCHANGE	0x01	/* followed by a wait, not by another
										 * record of its exchange */
#define RECORD_PIPELINED		0x02	/* its request needed no round trip */
#define RECORD_CONTINUES		0x04	/* not the first record of its
										 * exchange */
#define RECORD_FETCH			0x08	/* a FETCH statement */
#define RECORD_TRACED			0x10	/* trace is set */
#define RECORD_OVERHEAD			0x20	/* a statement that does no work: see
										 * statement_hooks.c */

/*
 * A statement's part of an exchange and, if it is the last one, the wait after
 * it.  Normally an exchange has one record.  Times are in nanoseconds.
 */
typedef struct FlightRecord
{
	int64		start;			/* monotonic */
	int64		exec;
	int64		network;		/* of the wait (or turn) after it */
	int64		client;
	int64		idle;
	int64		bytes;

	/* zeroed when a record begins */
	int64		send;
	int64		recv;
	uint64		queryid;		/* 0: no statement, or one without an
								 * identifier */
	int64		rows;
	Oid			userid;			/* the role that runs it */
	uint32		statements;		/* completed */
	char		xact_status;	/* as in ReadyForQuery: I, T, E; or 0 */

	uint8		flags;
	TraceId		trace;			/* valid if RECORD_TRACED */
} FlightRecord;

/* The session's own view of its ring, in private memory. */
typedef struct RecorderWriter
{
	FlightRecord *next;			/* the record being built */
	FlightRecord *records;		/* the ring ... */
	FlightRecord *end;			/* ... and its end */
	uint64	   *head;			/* number of the next record; volatile for
								 * readers only, as in seqlock.h */
} RecorderWriter;

extern Size recorder_shmem_size(void);
extern void recorder_shmem_attach(void *memory, bool is_new);

/* Functions for the session itself */
extern void recorder_attach(int index, RecorderWriter *writer);

/* Push the record, which is writer->next: it is complete. */
static inline void
recorder_push(RecorderWriter *writer, FlightRecord *record)
{
	FlightRecord *next = record + 1;

	pg_write_barrier();			/* (a) */
	++*writer->head;
	pg_write_barrier();			/* (b) */
	writer->next = likely(next != writer->end) ? next : writer->records;
}

/* Functions for the sampler */
extern uint64 recorder_number(int index);
extern bool recorder_read(int index, uint64 number, FlightRecord *record);

/* Functions for readers */
extern FlightRecord *recorder_copy(int index, int *count);

/* Functions for resets */
extern void recorder_discard(int index);

#endif							/* PGNETLAT_RECORDER_H */
