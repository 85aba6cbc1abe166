/*-------------------------------------------------------------------------
 *
 * history.c
 *	  See history.h.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "guc.h"
#include "history.h"
#include "locks.h"
#include "storage/shmem.h"
#include "utils/timestamp.h"

/* protected by the history lock */
typedef struct HistoryShared
{
	int64		current;		/* number of the interval in progress */
	int64		first;			/* oldest interval kept */
	HistoryBucket buckets[FLEXIBLE_ARRAY_MEMBER];
} HistoryShared;

static HistoryShared *shared = NULL;

Size
history_shmem_size(void)
{
	return add_size(offsetof(HistoryShared, buckets),
					mul_size(pgnetlat_history_size, sizeof(HistoryBucket)));
}

static inline HistoryBucket *
bucket_get(int64 number)
{
	return &shared->buckets[number % pgnetlat_history_size];
}

static void
bucket_begin(int64 number, TimestampTz start)
{
	HistoryBucket *bucket = bucket_get(number);

	memset(bucket, 0, sizeof(*bucket));
	bucket->start = start;
	shared->current = number;
	if (number - shared->first >= pgnetlat_history_size)
		shared->first = number - pgnetlat_history_size + 1;
}

void
history_shmem_init(void)
{
	bool		found;

	shared = ShmemInitStruct("pgnetlat history", history_shmem_size(), &found);
	if (!found)
	{
		memset(shared, 0, offsetof(HistoryShared, buckets));
		bucket_begin(0, GetCurrentTimestamp());
	}
}

static HistoryRow *
row_for(HistoryBucket *bucket, Oid datid)
{
	for (int i = 0; i < HISTORY_DATABASES; i++)
	{
		HistoryRow *row = &bucket->rows[i];

		if (!row->used)
		{
			row->used = true;
			row->datid = datid;
		}
		if (row->datid == datid)
			return row;
	}
	bucket->rows[HISTORY_DATABASES].used = true;
	return &bucket->rows[HISTORY_DATABASES];
}

/*
 * Add to the interval in progress.
 */
void
history_add(Oid datid, const LedgerTotals *totals, const TcpCounters *tcp)
{
	HistoryRow *row;

	LWLockAcquire(locks_get(LOCK_HISTORY), LW_EXCLUSIVE);
	row = row_for(bucket_get(shared->current), datid);
	ledger_totals_add(&row->totals, totals);
	row->retransmits += tcp->retransmits;
	row->bytes_received += tcp->bytes_received;
	LWLockRelease(locks_get(LOCK_HISTORY));
}

/* When the interval that begins at "start" is to end: on a round time. */
static TimestampTz
due_at(TimestampTz start)
{
	int64		length = (int64) pgnetlat_history_interval * USECS_PER_SEC;

	return start - start % length + length;
}

/*
 * Is the interval in progress over?  Only the sampler asks and rotates.
 */
bool
history_is_due(TimestampTz now)
{
	TimestampTz start = bucket_get(shared->current)->start;

	/* a clock that was set back ends the interval as well */
	return now >= due_at(start) || now < start;
}

/*
 * Close the interval in progress at "now" and begin another.
 */
void
history_rotate(TimestampTz now)
{
	LWLockAcquire(locks_get(LOCK_HISTORY), LW_EXCLUSIVE);
	bucket_get(shared->current)->end = Max(now, bucket_get(shared->current)->start);
	bucket_begin(shared->current + 1, now);
	LWLockRelease(locks_get(LOCK_HISTORY));
}

void
history_reset(TimestampTz now)
{
	LWLockAcquire(locks_get(LOCK_HISTORY), LW_EXCLUSIVE);
	shared->first = shared->current + 1;
	bucket_begin(shared->first, now);
	LWLockRelease(locks_get(LOCK_HISTORY));
}

/*
 * A palloc'd copy of the intervals, oldest first; the last is in progress and
 * shown as ending now.
 */
HistoryBucket *
history_copy(TimestampTz now, int *count)
{
	HistoryBucket *copies;

	copies = palloc_extended((Size) pgnetlat_history_size * sizeof(HistoryBucket),
							 MCXT_ALLOC_HUGE);
	LWLockAcquire(locks_get(LOCK_HISTORY), LW_SHARED);
	*count = 0;
	for (int64 i = shared->first; i <= shared->current; i++)
		copies[(*count)++] = *bucket_get(i);
	LWLockRelease(locks_get(LOCK_HISTORY));
	copies[*count - 1].end = Max(now, copies[*count - 1].start);
	return copies;
}

/*
 * Put back a saved interval, in front of the one in progress.
 */
void
history_restore(const HistoryBucket *bucket)
{
	TimestampTz start;

	LWLockAcquire(locks_get(LOCK_HISTORY), LW_EXCLUSIVE);
	start = bucket_get(shared->current)->start;
	*bucket_get(shared->current) = *bucket;
	bucket_begin(shared->current + 1, start);
	LWLockRelease(locks_get(LOCK_HISTORY));
}
