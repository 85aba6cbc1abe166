/*-------------------------------------------------------------------------
 *
 * recorder.c
 *	  The flight recorder's rings, and how they are read.
 *
 * "head" counts records since the server started; a record is at its number
 * modulo the ring's size.  "first" is head as of the session's start or the
 * latest reset.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "settings.h"
#include "recorder.h"
#include "session_slot.h"

typedef struct Recorder
{
	uint64		head;			/* written by the session */
	pg_atomic_uint64 first;		/* written by the session when it starts, and
								 * by resets */
	FlightRecord records[FLEXIBLE_ARRAY_MEMBER];
} Recorder;

static char *recorders = NULL;

static inline Size
recorder_size_of_one(void)
{
	return CACHELINEALIGN(offsetof(Recorder, records) +
						  (Size) pgnetlat_recorder_size * sizeof(FlightRecord));
}

static inline Recorder *
recorder_get(int index)
{
	return (Recorder *) (recorders + index * recorder_size_of_one());
}

static inline uint64
head_of(const Recorder *recorder)
{
	return *(const volatile uint64 *) &recorder->head;
}

Size
recorder_shmem_size(void)
{
	return mul_size(slot_count(), recorder_size_of_one());
}

void
recorder_shmem_attach(void *memory, bool is_new)
{
	recorders = memory;
	for (int i = 0; is_new && i < slot_count(); i++)
		pg_atomic_init_u64(&recorder_get(i)->first, 0);
}

/* A session begins: earlier records are not its own. */
void
recorder_attach(int index, RecorderWriter *writer)
{
	Recorder   *recorder = recorder_get(index);
	uint64		number = head_of(recorder);

	writer->head = &recorder->head;
	writer->records = recorder->records;
	writer->end = recorder->records + pgnetlat_recorder_size;
	writer->next = recorder->records + number % pgnetlat_recorder_size;
	pg_atomic_write_u64(&recorder->first, number);
}

/*
 * The number of the record that is being built; those before it are complete.
 */
uint64
recorder_number(int index)
{
	return head_of(recorder_get(index));
}

/*
 * Copy a record.  If it is being built, its fields may be of different
 * moments.  Returns false if it has been overwritten.
 */
bool
recorder_read(int index, uint64 number, FlightRecord *record)
{
	Recorder   *recorder = recorder_get(index);

	*record = *(volatile FlightRecord *) &recorder->records[number % pgnetlat_recorder_size];
	pg_read_barrier();
	return head_of(recorder) - number < (uint64) pgnetlat_recorder_size;
}

/* Hide all records from readers. */
void
recorder_discard(int index)
{
	Recorder   *recorder = recorder_get(index);

	pg_atomic_write_u64(&recorder->first, head_of(recorder));
}

/*
 * A palloc'd copy of a session's records, oldest first, without those
 * overwritten meanwhile: see recorder.h.  *count is set to their number.  The
 * caller must check afterwards that the slot still has the same session.
 */
FlightRecord *
recorder_copy(int index, int *count)
{
	Recorder   *recorder = recorder_get(index);
	FlightRecord *records = palloc(pgnetlat_recorder_size * sizeof(FlightRecord));
	uint64		first = pg_atomic_read_u64(&recorder->first);
	uint64		head;
	uint64		from;
	uint64		intact;

	/* a head that is read after "first" is never behind it */
	pg_read_barrier();
	head = head_of(recorder);
	from = head - Min(head - first, (uint64) pgnetlat_recorder_size);
	pg_read_barrier();			/* (a) */
	for (uint64 i = from; i < head; i++)
		records[i - from] = recorder->records[i % pgnetlat_recorder_size];
	pg_read_barrier();			/* (b) */

	/* the record being built is not complete either */
	intact = head_of(recorder) + 1;
	intact -= Min(intact, (uint64) pgnetlat_recorder_size);
	/* drop what a reset has discarded meanwhile */
	intact = Max(intact, pg_atomic_read_u64(&recorder->first));
	intact = Min(Max(intact, from), head);
	*count = head - intact;
	memmove(records, records + (intact - from), *count * sizeof(FlightRecord));
	return records;
}
