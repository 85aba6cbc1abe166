/*-------------------------------------------------------------------------
 *
 * recorder.h
 *	  The flight recorder: a ring of each session's last records.
 *
 * One producer (the session), one consumer at a time (whoever holds the
 * session's accumulation lock), any number of readers.  The consumer only moves a
 * mark: a record stays readable until the session needs its place, and the
 * session does not overwrite what has not been consumed.  The session builds
 * a record in its place, where nobody looks before it is pushed.
 *
 * Readers take no lock, so head tells them two things: what is complete, and
 * what may be overwritten.  While head is n, the session builds record n, in
 * the place where record n - size was.
 *
 *		session						reader
 *		fill record n - 1			read head: n
 *		write barrier (a)			read barrier (a)
 *		head = n					copy records n - size + 1 .. n - 1
 *		write barrier (b)			read barrier (b)
 *		fill record n				read head again: m
 *
 * By (a) a record that head promises is complete.  By (b), where a copy has
 * anything of record m in it, the second reading of head says at least m, and
 * what is below m - size + 1 is thrown away: exactly what may be torn.  On x86,
 * where stores stay in order, both barriers only bind the compiler.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_RECORDER_H
#define PGNETLAT_RECORDER_H

#include "exec_samples.h"
#include "port/atomics.h"

/*
 * When so many places are left, the session empties it if nobody else is doing
 * that, and then it waits for it: an exchange may end with a record where it
 * cannot, and another may begin.
 */
#define RECORDER_RESERVE		8
#define RECORDER_LAST_RESERVE	2

/* flags of a record */
#define RECORD_ENDS_EXCHANGE	0x01	/* a wait follows; else the next record
										 * is of the same exchange */
#define RECORD_PIPELINED		0x02	/* its request needed no round trip */
#define RECORD_WAIT_IN_XACT		0x04	/* the wait after it is in a transaction */
#define RECORD_IN_BLOCK			0x08	/* ran inside a transaction block */
#define RECORD_TURN				0x10	/* ends with a round trip inside the
										 * exchange, which is its network */
#define RECORD_PREPARES			0x20	/* its statement was prepared in it */
#define RECORD_ABANDONED		0x40	/* no request ended the wait after it */
#define RECORD_CONTINUES		0x80	/* not the first one of its exchange */
#define RECORD_NO_EXCHANGE		0x100	/* no request asked for it; or all but its
										 * wait has been accumulated already */

/*
 * One statement's part of an exchange, with the wait after it if it is the
 * last one.  Normally an exchange is one record.  Times in nanoseconds.
 */
typedef struct FlightRecord
{
	int64		start;			/* monotonic */
	int64		exec;
	int64		send;
	int64		recv;
	int64		network;		/* of the wait (or turn) after it */
	int64		client;
	int64		idle;
	int64		bytes;

	/* with send and recv, zero when a record is begun */
	uint64		queryid;		/* 0: no statement, or none that has one */
	int64		rows;
	Oid			userid;			/* who ran it; InvalidOid without statement */
	uint32		rtt_us;			/* measured in this exchange; 0: not measured */
	uint32		statements;		/* completed */
	uint16		flags;
	char		xact_status;	/* as in ReadyForQuery: I, T, E; or 0 */
	char		unused;
} FlightRecord;

/* The session's end of its ring, in its own memory. */
typedef struct RecorderWriter
{
	int			slot;
	FlightRecord *next;			/* the record being built, or &nowhere */
	FlightRecord *limit;		/* when next gets there, there is no room, or it
								 * is at the end of the ring */
	uint64		number;			/* of the next record */
	pg_atomic_uint64 *head;		/* the same, for others */
	FlightRecord nowhere;		/* for what finds no place, and is lost */
} RecorderWriter;

extern Size recorder_shmem_size(void);
extern void recorder_shmem_init(void);

/* Functions for the session itself */
extern void recorder_open(int slot, RecorderWriter *writer);
extern bool recorder_find_room(RecorderWriter *writer);
extern int	recorder_room(const RecorderWriter *writer);
extern void recorder_count_dropped(void);

/*
 * The record at writer->next is complete: everybody may see it.  Returns true
 * if the ring should be emptied before long.
 */
static inline bool
recorder_push(RecorderWriter *writer)
{
	if (unlikely(writer->next == &writer->nowhere))
	{
		recorder_count_dropped();
		return true;
	}
	pg_write_barrier();			/* (a) */
	pg_atomic_write_u64(writer->head, ++writer->number);
	pg_write_barrier();			/* (b) */
	return unlikely(++writer->next == writer->limit) && recorder_find_room(writer);
}

/* Functions for the holder of the accumulation lock */
extern void recorder_attach(int slot);
extern int	recorder_unread(int slot, const FlightRecord **records);
extern void recorder_consume(int slot, int count);
extern void recorder_discard(int slot);

extern uint64 recorder_consumed(int slot);

/* Functions for the sampler */
extern int	recorder_pending(int slot);
extern void recorder_in_progress(int slot, ExecRecord *in_progress);

/* Functions for readers */
extern int	recorder_copy(int slot, FlightRecord *records, int max);
extern int	recorder_capacity(void);

#endif							/* PGNETLAT_RECORDER_H */
