/*-------------------------------------------------------------------------
 *
 * history.c
 *	  The ring of intervals.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "settings.h"
#include "history.h"
#include "locks.h"
#include "saved.h"
#include "utils/timestamp.h"

/* protected by the history lock */
typedef struct HistoryShared
{
	int64		current;		/* number of the current interval */
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
	/* Max() tells clang that the setting is at least 1 */
	return &shared->intervals[number % Max(pgnetlat_history_size, 1)];
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
history_shmem_attach(void *memory, bool is_new)
{
	shared = memory;
	if (is_new)
		interval_begin(0, GetCurrentTimestamp());
}

/*
 * The row of a database in the interval in progress: its own, an unused one,
 * or the overflow row, which is also for InvalidOid.
 */
static HistoryRow *
row_for(Oid datid)
{
	HistoryRow *rows = interval_get(shared->current)->rows;
	int			i = OidIsValid(datid) ? 0 : HISTORY_DATABASES;

	while (i < HISTORY_DATABASES && rows[i].used && rows[i].datid != datid)
		i++;
	rows[i].used = true;
	if (i < HISTORY_DATABASES)
		rows[i].datid = datid;
	return &rows[i];
}

/* Add to the interval in progress. */
void
history_add(Oid datid, const LedgerTotals *totals, const TcpCounters *tcp,
			const ConnectTotals *connect)
{
	HistoryRow *row;

	locks_acquire(LOCK_HISTORY, 0, LW_EXCLUSIVE);
	row = row_for(datid);
	ledger_totals_add(&row->totals, totals);
	row->retransmits += tcp->retransmits;
	row->bytes_received += tcp->bytes_received;
	row->connections += connect->connections;
	row->connect += connect->time;
	locks_release(LOCK_HISTORY, 0);
}

/*
 * When the interval that begins at "start" is to end: at a multiple of its
 * length.
 */
static TimestampTz
due_at(TimestampTz start)
{
	int64		length = (int64) pgnetlat_history_interval * USECS_PER_SEC;

	return start - start % length + length;
}

/* Is the interval in progress over?  Only the sampler asks, and rotates. */
bool
history_is_due(TimestampTz now)
{
	TimestampTz start = interval_get(shared->current)->start;

	/* a clock that was set back ends the interval, too */
	return now >= due_at(start) || now < start;
}

/* When the interval in progress is to end. */
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
	locks_acquire(LOCK_HISTORY, 0, LW_EXCLUSIVE);
	interval_get(shared->current)->end = Max(now, interval_get(shared->current)->start);
	interval_begin(shared->current + 1, now);
	locks_release(LOCK_HISTORY, 0);
}

void
history_reset(TimestampTz now)
{
	locks_acquire(LOCK_HISTORY, 0, LW_EXCLUSIVE);
	shared->first = shared->current + 1;
	interval_begin(shared->first, now);
	locks_release(LOCK_HISTORY, 0);
}

/*
 * A palloc'd copy of the intervals, oldest first.  The last one is in
 * progress, and ends now.  All are copied, whatever the length of a window.
 *
 * The lock is held for one interval at a time.  Only the interval in progress
 * changes meanwhile, and it is copied last.
 */
void *
history_copy(int64 length, int *count)
{
	HistoryInterval *copies = palloc_extended((Size) pgnetlat_history_size * sizeof(HistoryInterval),
											  MCXT_ALLOC_HUGE);
	TimestampTz now = GetCurrentTimestamp();
	int64		number = 0;
	bool		more = true;

	for (*count = 0; more; (*count)++)
	{
		/* an interval has begun meanwhile, in place of the oldest one */
		if (*count == pgnetlat_history_size)
			memmove(copies, copies + 1, --(*count) * sizeof(HistoryInterval));
		locks_acquire(LOCK_HISTORY, 0, LW_SHARED);
		number = Max(number, shared->first);
		copies[*count] = *interval_get(number);
		more = number++ < shared->current;
		locks_release(LOCK_HISTORY, 0);
	}
	copies[*count - 1].end = Max(now, copies[*count - 1].start);
	/* a part that was known late may be in a later interval than its whole */
	for (int i = 0; i < *count; i++)
	{
		for (int j = 0; j <= HISTORY_DATABASES; j++)
			ledger_totals_fit(&copies[i].rows[j].totals);
	}
	return copies;
}

/*
 * Put back a saved interval, before the one in progress; false if it is
 * damaged.
 */
bool
history_restore(const void *content, double *sum)
{
	const HistoryInterval *interval = content;
	TimestampTz start;

	if (!saved_are_figures(&interval->start, interval->rows))
		return false;
	for (const HistoryRow *row = interval->rows; row < (const HistoryRow *) (interval + 1); row++)
	{
		if (!saved_are_figures(&row->totals, row + 1) || !saved_add_totals(sum, &row->totals))
			return false;
	}
	locks_acquire(LOCK_HISTORY, 0, LW_EXCLUSIVE);
	start = interval_get(shared->current)->start;
	*interval_get(shared->current) = *interval;
	interval_begin(shared->current + 1, start);
	locks_release(LOCK_HISTORY, 0);
	return true;
}
