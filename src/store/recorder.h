/*-------------------------------------------------------------------------
 *
 * recorder.h
 *	  The flight recorder: a ring of each session's last records.
 *
 * For pgnetlat_recent() only; nothing is counted from it.  One writer, the
 * session, which overwrites its oldest record, and any number of readers.  The
 * session builds a record in its place, where nobody looks before it is pushed.
 *
 * Readers take no lock, so head tells them two things: what is complete, and
 * what is perhaps being overwritten.  While head is n, the session builds record
 * n, in the place where record n - size was.
 *
 *		session						reader
 *		fill record n - 1			read head: n
 *		write barrier (a)			read barrier (a)
 *		head = n					copy records n - size + 1 .. n - 1
 *		write barrier (b)			read barrier (b)
 *		fill record n				read head again: m
 *
 * By (a) a record that head promises is complete.  By (b), if a copy contains
 * anything of record m, the second reading of head is at least m, and records
 * below m - size + 1 are discarded: exactly those that may be torn.  On x86,
 * where stores stay in order, both barriers only bind the compiler.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_RECORDER_H
#define PGNETLAT_RECORDER_H

#include "port/atomics.h"

/* flags of a record */
#define RECORD_ENDS_EXCHANGE	0x01	/* a wait follows; else the next
										 * record is of the same exchange */
#define RECORD_PIPELINED		0x02	/* its request needed no round trip */
#define RECORD_CONTINUES		0x04	/* not the first one of its exchange */
#define RECORD_FETCH			0x08	/* of a cursor, by a statement */

/*
 * One statement's part of an exchange, with the wait after it if it is the
 * last one.  Normally an exchange is one record.  Times in nanoseconds.
 */
typedef struct FlightRecord
{
	int64		start;			/* monotonic */
	int64		exec;
	int64		network;		/* of the wait (or turn) after it */
	int64		client;
	int64		idle;
	int64		bytes;

	/* zero when a record is begun */
	int64		send;
	int64		recv;
	uint64		queryid;		/* 0: no statement, or none that has one */
	int64		rows;
	Oid			userid;			/* who runs it */
	uint32		statements;		/* completed */
	char		xact_status;	/* as in ReadyForQuery: I, T, E; or 0 */

	uint8		flags;
} FlightRecord;

/* The session's end of its ring, in its own memory. */
typedef struct RecorderWriter
{
	FlightRecord *next;			/* the record being built */
	FlightRecord *records;		/* the ring, ... */
	FlightRecord *end;			/* ... and where it ends */
	uint64	   *head;			/* number of the next record; volatile for
								 * others only, as in seqlock.h */
} RecorderWriter;

extern Size recorder_shmem_size(void);
extern void recorder_shmem_init(void);

/* Functions for the session itself */
extern void recorder_attach(int slot, RecorderWriter *writer);

/* The record, which is writer->next, is complete: everybody may see it. */
static inline void
recorder_push(RecorderWriter *writer, FlightRecord *record)
{
	FlightRecord *next = record + 1;

	pg_write_barrier();			/* (a) */
	++*writer->head;
	pg_write_barrier();			/* (b) */
	writer->next = likely(next != writer->end) ? next : writer->records;
}

/* Functions for the sampler, */
extern uint64 recorder_number(int slot);
extern bool recorder_read(int slot, uint64 number, FlightRecord *record);

/* Functions for readers */
extern FlightRecord *recorder_copy(int slot, int *count);

/* Functions for resets */
extern void recorder_discard(int slot);

#endif							/* PGNETLAT_RECORDER_H */
