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

#include "settings.h"
#include "history.h"
#include "locks.h"
#include "storage/shmem.h"
#include "utils/timestamp.h"

/* protected by the history lock */
typedef struct HistoryShared
{
	int64		current;		/* number of the interval in progress */
	int64		first;			/* oldest interval kept */
	HistoryInterval intervals[FLEXIBLE_ARRAY_MEMBER];
} HistoryShared;

static HistoryShared *shared = NULL;

Size
history_shmem_size(void)
{
	return add_size(offsetof(HistoryShared, intervals),
					mul_size(pgnetlat_history_size, sizeof(HistoryInterval)));
}

static inline HistoryInterval *
interval_get(int64 number)
{
	return &shared->intervals[number % pgnetlat_history_size];
}

static void
interval_begin(int64 number, TimestampTz start)
{
	HistoryInterval *interval = interval_get(number);

	memset(interval, 0, sizeof(*interval));
	interval->start = start;
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
		memset(shared, 0, offsetof(HistoryShared, intervals));
		interval_begin(0, GetCurrentTimestamp());
	}
}

/* The row of a database: its own, or an unused one, or that of all others. */
static HistoryRow *
row_for(HistoryInterval *interval, Oid datid)
{
	for (int i = 0; i < HISTORY_DATABASES; i++)
	{
		HistoryRow *row = &interval->rows[i];

		if (!row->used || row->datid == datid)
			return row;
	}
	return &interval->rows[HISTORY_DATABASES];
}

static HistoryRow *
row_for_adding(HistoryInterval *interval, Oid datid)
{
	HistoryRow *row = row_for(interval, datid);

	if (!row->used)
	{
		row->used = true;
		if (row != &interval->rows[HISTORY_DATABASES])
			row->datid = datid;
	}
	return row;
}

/* What a session was found late to have been blocked in by its client. */
static void
add_late(Oid datid, int64 late)
{
	/* there is no room in a row that is not used */
	for (int64 i = shared->current - 1; i >= shared->first && late > 0; i--)
		late = ledger_totals_add_late(&row_for(interval_get(i), datid)->totals, late);
	ledger_totals_add_late(&row_for(interval_get(shared->current), datid)->totals, late);
}

/*
 * Add to the interval in progress.  What belongs to those before it, as what
 * it is a part of was counted there, goes there; or nowhere, if they are gone.
 */
void
history_add(Oid datid, const LedgerTotals *totals, const TcpCounters *tcp)
{
	HistoryRow *row;
	LedgerTotals growth = *totals;
	int64		late = ledger_totals_cut_late(&growth);

	LWLockAcquire(locks_get(LOCK_HISTORY), LW_EXCLUSIVE);
	row = row_for_adding(interval_get(shared->current), datid);
	ledger_totals_add(&row->totals, &growth);
	row->retransmits += tcp->retransmits;
	row->bytes_received += tcp->bytes_received;
	if (unlikely(late > 0))
		add_late(datid, late);
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
	TimestampTz start = interval_get(shared->current)->start;

	/* a clock that was set back ends the interval as well */
	return now >= due_at(start) || now < start;
}

/*
 * When the interval in progress is to be closed.
 */
TimestampTz
history_next_due(void)
{
	return due_at(interval_get(shared->current)->start);
}

/*
 * Close the interval in progress at "now" and begin another.
 */
void
history_rotate(TimestampTz now)
{
	LWLockAcquire(locks_get(LOCK_HISTORY), LW_EXCLUSIVE);
	interval_get(shared->current)->end = Max(now, interval_get(shared->current)->start);
	interval_begin(shared->current + 1, now);
	LWLockRelease(locks_get(LOCK_HISTORY));
}

void
history_reset(TimestampTz now)
{
	LWLockAcquire(locks_get(LOCK_HISTORY), LW_EXCLUSIVE);
	shared->first = shared->current + 1;
	interval_begin(shared->first, now);
	LWLockRelease(locks_get(LOCK_HISTORY));
}

/*
 * A palloc'd copy of the intervals, oldest first; the last is in progress and
 * shown as ending now.
 */
HistoryInterval *
history_copy(TimestampTz now, int *count)
{
	HistoryInterval *copies;

	copies = palloc_extended((Size) pgnetlat_history_size * sizeof(HistoryInterval),
							 MCXT_ALLOC_HUGE);
	LWLockAcquire(locks_get(LOCK_HISTORY), LW_SHARED);
	*count = 0;
	for (int64 i = shared->first; i <= shared->current; i++)
		copies[(*count)++] = *interval_get(i);
	LWLockRelease(locks_get(LOCK_HISTORY));
	copies[*count - 1].end = Max(now, copies[*count - 1].start);
	return copies;
}

/*
 * Put back a saved interval, in front of the one in progress.
 */
void
history_restore(const HistoryInterval *interval)
{
	TimestampTz start;

	LWLockAcquire(locks_get(LOCK_HISTORY), LW_EXCLUSIVE);
	start = interval_get(shared->current)->start;
	*interval_get(shared->current) = *interval;
	interval_begin(shared->current + 1, start);
	LWLockRelease(locks_get(LOCK_HISTORY));
}
