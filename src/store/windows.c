/*-------------------------------------------------------------------------
 *
 * windows.c
 *	  Keeps snapshots of the sessions' accounts.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "locks.h"
#include "wait_events.h"
#include "windows.h"

/* What a window shows. */
typedef struct WindowAccount
{
	LedgerTotals totals;
	TcpCounters tcp;
	int64		blocking;
} WindowAccount;

/* The beginning of a window over a session's account. */
typedef struct WindowStart
{
	int64		at;				/* 0: the session's beginning */
	TimestampTz since;			/* the same moment, for a reset */
	WindowAccount before;
} WindowStart;

/* The snapshots of a session, protected by the lock. */
typedef struct SessionSnapshots
{
	uint64		session;		/* valid for this session ... */
	uint32		generation;		/* ... and reset generation only */
	SnapshotTimes times;
	WindowAccount snapshots[SNAPSHOTS_KEPT];
	WindowStart reset;			/* pgnetlat_reset_session() */
} SessionSnapshots;

static SessionSnapshots *sessions = NULL;

Size
windows_shmem_size(void)
{
	return mul_size(slot_count(), sizeof(SessionSnapshots));
}

void
windows_shmem_attach(void *memory, bool is_new)
{
	sessions = memory;
}

static void
account_of(WindowAccount *account, const SlotObservation *observation)
{
	account->totals = observation->account.totals;
	account->tcp = observation->tcp_counters;
	account->blocking = observation->blocking;
}

/* The moment up to which all time was attributed. */
static int64
moment_of(const SlotObservation *observation)
{
	return observation->observed_at - observation->account.pending;
}

/*
 * Lock the snapshots of a session that was just observed.  If the slot has
 * another session now, its windows begin anew.
 */
static SessionSnapshots *
acquire(int index, const SlotObservation *observation)
{
	SessionSnapshots *own = &sessions[index];

	locks_acquire(LOCK_WINDOWS, 0, LW_EXCLUSIVE);
	if (own->session != observation->published.session ||
		own->generation != observation->published.generation)
	{
		memset(&own->times, 0, sizeof(own->times));
		own->reset.at = 0;
		own->session = observation->published.session;
		own->generation = observation->published.generation;
	}
	return own;
}

/* Keep a snapshot of a session that has just been observed. */
void
windows_add(int index, const SlotObservation *observation, SnapshotLevels levels)
{
	SessionSnapshots *own = acquire(index, observation);

	for (int level = 0; level < SNAPSHOT_LEVELS; level++)
	{
		if (levels & (1u << level))
			account_of(&own->snapshots[snapshots_place(&own->times, level)], observation);
	}
	snapshots_date(&own->times, levels, moment_of(observation));
	locks_release(LOCK_WINDOWS, 0);
}

/*
 * Like slot_observe(), but only with what was counted in a window: the
 * shortest one that contains the last "length" nanoseconds.  If no snapshot is
 * old enough, or for WINDOW_WHOLE, the window begins with the session or its
 * latest reset.  The observation's stats_since is when the window began.
 */
bool
windows_observe(int index, int64 length, SlotObservation *observation)
{
	SessionSnapshots *own = &sessions[index];
	WindowStart start;
	uint64		session;
	uint32		generation;
	int			place;

	/* lock first, so that no snapshot is later than the observation */
	locks_acquire(LOCK_WINDOWS, 0, LW_SHARED);
	session = own->session;
	generation = own->generation;
	start = own->reset;
	place = length == WINDOW_WHOLE ? -1 : snapshots_find(&own->times, clock_now() - length);
	if (place >= 0 && own->times.at[place] > start.at)
	{
		start.at = own->times.at[place];
		start.since = 0;
		start.before = own->snapshots[place];
	}
	locks_release(LOCK_WINDOWS, 0);

	if (!slot_observe(index, observation))
		return false;
	if (start.at == 0 || session != observation->published.session ||
		generation != observation->published.generation)
		return true;
	ledger_totals_subtract(&observation->account.totals, &start.before.totals);
	ledger_totals_fit(&observation->account.totals);
	tcpstate_counters_subtract(&observation->tcp_counters, &start.before.tcp);

	/*
	 * the fresh value is 0 if the sampler was stopped in the middle of a
	 * write
	 */
	observation->blocking = Max(observation->blocking - start.before.blocking, 0);
	observation->published.stats_since = start.since != 0 ? start.since :
		clock_to_timestamp(observation->published.clock_offset, start.at);
	return true;
}

/*
 * Forget what the session with this process ID has counted so far.  Returns
 * false if there is no such session, or it cannot be observed.  "since" is set
 * to the moment from which it counts again.
 */
bool
windows_reset(int index, int pid, TimestampTz *since)
{
	SessionSnapshots *own;
	SlotObservation observation;

	/* without a lock, since observing a stopped session takes a while */
	if (!slot_observe(index, &observation) || observation.published.pid != pid ||
		observation.published.closed)
		return false;
	own = acquire(index, &observation);
	own->reset.at = moment_of(&observation);
	own->reset.since = *since = clock_to_timestamp(observation.published.clock_offset, own->reset.at);
	account_of(&own->reset.before, &observation);
	wait_events_reset(index);
	locks_release(LOCK_WINDOWS, 0);
	return true;
}
