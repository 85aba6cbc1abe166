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

/*
 * The row of a database: its own, or an unused one, or that of all others; of
 * none that is known, too.
 */
static HistoryRow *
row_for(HistoryInterval *interval, Oid datid)
{
	for (int i = 0; OidIsValid(datid) && i < HISTORY_DATABASES; i++)
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

/*
 * Add to the interval in progress.
 */
void
history_add(Oid datid, const LedgerTotals *totals, const TcpCounters *tcp)
{
	HistoryRow *row;

	locks_acquire(LOCK_HISTORY, 0, LW_EXCLUSIVE);
	row = row_for_adding(interval_get(shared->current), datid);
	ledger_totals_add(&row->totals, totals);
	row->retransmits += tcp->retransmits;
	row->bytes_received += tcp->bytes_received;
	locks_release(LOCK_HISTORY, 0);
}

/*
 * Add what connections have cost to the interval in progress.
 */
void
history_add_connect(Oid datid, const ConnectTotals *connect)
{
	HistoryRow *row;

	locks_acquire(LOCK_HISTORY, 0, LW_EXCLUSIVE);
	row = row_for_adding(interval_get(shared->current), datid);
	row->connections += connect->connections;
	row->connect += connect->time;
	locks_release(LOCK_HISTORY, 0);
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

/* How many intervals are copied while the lock is held: some microseconds. */
#define COPY_STEP		16

typedef struct HistoryCopies
{
	HistoryInterval *at;		/* room for as many as are kept */
	int64		first;			/* number of the first one there */
	int64		next;			/* ... of the next one to be copied */
} HistoryCopies;

/* Copy some more; false if the last one of these was the one in progress. */
static bool
copy_some(HistoryCopies *copies)
{
	int64		first;
	int64		to;
	bool		more;

	locks_acquire(LOCK_HISTORY, 0, LW_SHARED);
	first = shared->first;
	if (first > copies->next)
		copies->first = copies->next = first;
	to = Min(copies->next + COPY_STEP, copies->first + pgnetlat_history_size);
	to = Min(to, shared->current + 1);
	for (int64 i = copies->next; i < to; i++)
		copies->at[i - copies->first] = *interval_get(i);
	more = to <= shared->current;
	locks_release(LOCK_HISTORY, 0);

	/* what is not kept any more, after all */
	if (first > copies->first)
		memmove(copies->at, copies->at + (first - copies->first),
				(to - first) * sizeof(HistoryInterval));
	copies->first = first;
	copies->next = to;
	return more;
}

/*
 * A palloc'd copy of the intervals, oldest first; the last is in progress and
 * shown as ending now.
 *
 * It is made in steps, between which others may add.  They add to the interval
 * in progress, which is copied last, and with it the copy ends: all others have
 * been copied when they were complete.
 */
HistoryInterval *
history_copy(TimestampTz now, int *count)
{
	HistoryCopies copies = {0};
	HistoryInterval *last;

	copies.at = palloc_extended((Size) pgnetlat_history_size * sizeof(HistoryInterval),
								MCXT_ALLOC_HUGE);
	while (copy_some(&copies))
		;
	*count = (int) (copies.next - copies.first);
	last = &copies.at[*count - 1];
	last->end = Max(now, last->start);
	/* what was known late may be of the interval before */
	for (int i = 0; i < *count; i++)
	{
		for (int j = 0; j <= HISTORY_DATABASES; j++)
			ledger_totals_fit(&copies.at[i].rows[j].totals);
	}
	return copies.at;
}

/*
 * Put back a saved interval, in front of the one in progress.
 */
void
history_restore(const HistoryInterval *interval)
{
	TimestampTz start;

	locks_acquire(LOCK_HISTORY, 0, LW_EXCLUSIVE);
	start = interval_get(shared->current)->start;
	*interval_get(shared->current) = *interval;
	interval_begin(shared->current + 1, start);
	locks_release(LOCK_HISTORY, 0);
}
