/*-------------------------------------------------------------------------
 *
 * recorder.c
 *	  See recorder.h.
 *
 * head and tail count records since the server started; a record's place is
 * its number modulo the capacity.  first is head as of the session's start.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "guc.h"
#include "recorder.h"
#include "slot.h"
#include "storage/shmem.h"

typedef struct Recorder
{
	pg_atomic_uint64 head;		/* written by the session */
	pg_atomic_uint64 first;		/* written by the session, when it starts */

	/* apart from the head: one writer per cache line */
	char		padding[64 - 2 * sizeof(pg_atomic_uint64)];
	pg_atomic_uint64 tail;		/* written under the drain lock */
	char		padding_after[64 - sizeof(pg_atomic_uint64)];

	FlightRecord records[FLEXIBLE_ARRAY_MEMBER];
} Recorder;

static char *recorders = NULL;

static inline Size
recorder_size_of_one(void)
{
	return offsetof(Recorder, records) +
		(Size) pgnetlat_recorder_size * sizeof(FlightRecord);
}

static inline Recorder *
recorder_get(int slot)
{
	return (Recorder *) (recorders + slot * recorder_size_of_one());
}

int
recorder_capacity(void)
{
	return pgnetlat_recorder_size;
}

Size
recorder_shmem_size(void)
{
	return mul_size(slot_count(), recorder_size_of_one());
}

void
recorder_shmem_init(void)
{
	bool		found;

	recorders = ShmemInitStruct("pgnetlat recorders", recorder_shmem_size(), &found);
	if (found)
		return;
	memset(recorders, 0, recorder_shmem_size());
	for (int i = 0; i < slot_count(); i++)
	{
		Recorder   *recorder = recorder_get(i);

		pg_atomic_init_u64(&recorder->head, 0);
		pg_atomic_init_u64(&recorder->first, 0);
		pg_atomic_init_u64(&recorder->tail, 0);
	}
}

void
recorder_attach(int slot)
{
	Recorder   *recorder = recorder_get(slot);

	pg_atomic_write_u64(&recorder->first, pg_atomic_read_u64(&recorder->head));
}

/*
 * Append a record.  Returns false, and does nothing, if there is no place
 * because nobody has drained the ring.
 */
bool
recorder_push(int slot, const FlightRecord *record)
{
	Recorder   *recorder = recorder_get(slot);
	uint64		head = pg_atomic_read_u64(&recorder->head);

	if (head - pg_atomic_read_u64(&recorder->tail) >= (uint64) pgnetlat_recorder_size)
		return false;
	recorder->records[head % pgnetlat_recorder_size] = *record;
	pg_write_barrier();
	pg_atomic_write_u64(&recorder->head, head + 1);
	return true;
}

/* Records that can be pushed before somebody must drain. */
int
recorder_room(int slot)
{
	Recorder   *recorder = recorder_get(slot);

	return pgnetlat_recorder_size -
		(int) (pg_atomic_read_u64(&recorder->head) - pg_atomic_read_u64(&recorder->tail));
}

/*
 * The record that is "ahead" of the oldest one not consumed, in its place;
 * NULL if there is none.  It stays there until it is consumed.
 */
const FlightRecord *
recorder_peek(int slot, int ahead)
{
	Recorder   *recorder = recorder_get(slot);
	uint64		number = pg_atomic_read_u64(&recorder->tail) + ahead;

	if (number >= pg_atomic_read_u64(&recorder->head))
		return NULL;
	pg_read_barrier();
	return &recorder->records[number % pgnetlat_recorder_size];
}

/* Consume that many: the session may reuse their places. */
void
recorder_consume(int slot, int count)
{
	Recorder   *recorder = recorder_get(slot);

	/* what was read of them must have been read before */
	pg_memory_barrier();
	pg_atomic_write_u64(&recorder->tail, pg_atomic_read_u64(&recorder->tail) + count);
}

/* Consume all records unseen, and hide them from readers as well. */
void
recorder_discard(int slot)
{
	Recorder   *recorder = recorder_get(slot);
	uint64		head = pg_atomic_read_u64(&recorder->head);

	pg_atomic_write_u64(&recorder->tail, head);
	pg_atomic_write_u64(&recorder->first, head);
}

/*
 * Copy the records of the session, oldest first, leaving out what the session
 * overwrites meanwhile.  Returns their number.
 */
int
recorder_copy(int slot, FlightRecord *records, int max)
{
	Recorder   *recorder = recorder_get(slot);
	uint64		head = pg_atomic_read_u64(&recorder->head);
	uint64		first = pg_atomic_read_u64(&recorder->first);
	uint64		from = head - Min(head - first, (uint64) Min(max, pgnetlat_recorder_size));
	uint64		overwritten;
	int			skip;

	pg_read_barrier();
	for (uint64 i = from; i < head; i++)
		records[i - from] = recorder->records[i % pgnetlat_recorder_size];
	pg_read_barrier();

	/* the one being written now is not complete either */
	overwritten = pg_atomic_read_u64(&recorder->head) + 1;
	overwritten = overwritten > (uint64) pgnetlat_recorder_size ?
		overwritten - pgnetlat_recorder_size : 0;
	skip = overwritten > from ? Min(overwritten - from, head - from) : 0;
	if (skip > 0)
		memmove(records, records + skip, (head - from - skip) * sizeof(FlightRecord));
	return head - from - skip;
}
