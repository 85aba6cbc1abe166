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

#include "settings.h"
#include "recorder.h"
#include "session_slot.h"
#include "storage/shmem.h"

typedef struct Recorder
{
	pg_atomic_uint64 head;		/* written by the session */
	pg_atomic_uint64 first;		/* written by the session, when it starts */

	/* apart from the head: one writer per cache line */
	char		padding[64 - 2 * sizeof(pg_atomic_uint64)];
	pg_atomic_uint64 tail;		/* written under the accumulation lock */
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

/*
 * A session begins: what is in the ring is not its own.
 */
void
recorder_attach(int slot)
{
	Recorder   *recorder = recorder_get(slot);

	pg_atomic_write_u64(&recorder->first, pg_atomic_read_u64(&recorder->head));
}

/* Places that are left. */
int
recorder_room(const RecorderWriter *writer)
{
	Recorder   *recorder = recorder_get(writer->slot);

	return pgnetlat_recorder_size -
		(int) (writer->number - pg_atomic_read_u64(&recorder->tail));
}

/*
 * Find the place of the next record, and how far the session may go from
 * there.  Returns true if there are only the reserved places left, or none.
 */
bool
recorder_find_room(RecorderWriter *writer)
{
	Recorder   *recorder = recorder_get(writer->slot);
	int			place = writer->number % pgnetlat_recorder_size;
	int			room = recorder_room(writer);

	/* the reserve is used up one by one */
	int			run = room > RECORDER_RESERVE ? room - RECORDER_RESERVE : 1;

	if (room <= 0)
	{
		writer->next = &writer->nowhere;
		return true;
	}
	/* what was begun without a place has one now */
	if (writer->next == &writer->nowhere)
		recorder->records[place] = writer->nowhere;
	writer->next = &recorder->records[place];
	writer->limit = &recorder->records[Min(place + run, pgnetlat_recorder_size)];
	return room <= RECORDER_RESERVE;
}

void
recorder_open(int slot, RecorderWriter *writer)
{
	Recorder   *recorder = recorder_get(slot);

	writer->slot = slot;
	writer->head = &recorder->head;
	writer->number = pg_atomic_read_u64(&recorder->head);
	recorder_find_room(writer);
}

void
recorder_count_dropped(void)
{
	pg_atomic_fetch_add_u64(&slot_control->records_dropped, 1);
}

/*
 * The records that have not been consumed, oldest first, or as many of them
 * as are in one piece: call again for more after recorder_consume().  They
 * stay there until then.
 */
int
recorder_unread(int slot, const FlightRecord **records)
{
	Recorder   *recorder = recorder_get(slot);
	uint64		tail = pg_atomic_read_u64(&recorder->tail);
	int			place = tail % pgnetlat_recorder_size;
	uint64		count = pg_atomic_read_u64(&recorder->head) - tail;

	pg_read_barrier();
	*records = &recorder->records[place];
	return Min(count, (uint64) (pgnetlat_recorder_size - place));
}

/* Records that have not been consumed. */
int
recorder_pending(int slot)
{
	Recorder   *recorder = recorder_get(slot);

	return (int) (pg_atomic_read_u64(&recorder->head) - pg_atomic_read_u64(&recorder->tail));
}

/* The number of the first record that has not been consumed. */
uint64
recorder_consumed(int slot)
{
	return pg_atomic_read_u64(&recorder_get(slot)->tail);
}

/*
 * The record that is being built, and whose statement it says it is.  Read while
 * the session may change it: a hint.
 */
void
recorder_in_progress(int slot, ExecRecord *in_progress)
{
	Recorder   *recorder = recorder_get(slot);
	uint64		number = pg_atomic_read_u64(&recorder->head);
	const volatile FlightRecord *record =
		&recorder->records[number % pgnetlat_recorder_size];

	in_progress->number = number;
	in_progress->queryid = record->queryid;
	in_progress->userid = record->userid;
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
 * Copy the session's records, oldest first, leaving out what it overwrites
 * meanwhile: see recorder.h.  Returns their number.  Whose they are is for the
 * caller to make sure, afterwards.
 */
int
recorder_copy(int slot, FlightRecord *records, int max)
{
	Recorder   *recorder = recorder_get(slot);
	uint64		first = pg_atomic_read_u64(&recorder->first);
	uint64		head;
	uint64		from;
	uint64		intact;

	/* first is never ahead of a head that is read after it */
	pg_read_barrier();
	head = pg_atomic_read_u64(&recorder->head);
	from = head - Min(head - first, (uint64) Min(max, pgnetlat_recorder_size));
	pg_read_barrier();			/* (a) */
	for (uint64 i = from; i < head; i++)
		records[i - from] = recorder->records[i % pgnetlat_recorder_size];
	pg_read_barrier();			/* (b) */

	/* the one being written now is not complete either */
	intact = pg_atomic_read_u64(&recorder->head) + 1;
	intact -= Min(intact, (uint64) pgnetlat_recorder_size);
	/* and a reset forgets what it has found */
	intact = Max(intact, pg_atomic_read_u64(&recorder->first));
	intact = Min(Max(intact, from), head);
	if (intact > from)
		memmove(records, records + (intact - from), (head - intact) * sizeof(FlightRecord));
	return head - intact;
}
