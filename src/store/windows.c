/*-------------------------------------------------------------------------
 *
 * windows.c
 *	  See windows.h.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "locks.h"
#include "miscadmin.h"
#include "seqlock.h"
#include "storage/shmem.h"
#include "wait_events.h"
#include "windows.h"

/*
 * A snapshot takes a microsecond or two where there are thousands of them, so all
 * of them are further apart then: this long for each.
 */
#define SNAPSHOT_EACH_NS	(500 * NS_PER_US)

/* Where a window over a session's account begins. */
typedef struct WindowStart
{
	uint64		session;		/* valid for this session ... */
	uint32		generation;		/* ... and reset generation only */
	int64		at;
	TimestampTz since;			/* the same moment, of a reset */
	WindowAccount before;
} WindowStart;

typedef struct SessionSnapshots
{
	/* written by the sampler alone, under the seqlock */
	SeqLock		lock;
	uint32		generation;		/* of these, as in WindowStart */
	uint64		session;
	SnapshotTimes times;
	WindowAccount snapshots[SNAPSHOTS_KEPT];

	/* written under the reset lock and the seqlock */
	SeqLock		reset_lock;
	WindowStart reset;			/* of this session */
} SessionSnapshots;

/*
 * Only the sampler uses the schedule; it is here because a sampler that is started
 * anew goes on with it.
 */
typedef struct WindowsShared
{
	SnapshotSchedule schedule;
	SessionSnapshots sessions[FLEXIBLE_ARRAY_MEMBER];
} WindowsShared;

static WindowsShared *shared = NULL;

Size
windows_shmem_size(void)
{
	return add_size(offsetof(WindowsShared, sessions),
					mul_size(slot_count(), sizeof(SessionSnapshots)));
}

void
windows_shmem_init(void)
{
	bool		found;

	shared = ShmemInitStruct("pgnetlat windows", windows_shmem_size(), &found);
	if (!found)
		memset(shared, 0, windows_shmem_size());
}

/*
 * The levels for which the sampler is to take snapshots of all sessions now.
 */
SnapshotLevels
windows_due(int64 now)
{
	return snapshots_due(&shared->schedule, now);
}

/*
 * Snapshots of so many sessions have been taken.
 */
void
windows_were_taken(int sessions)
{
	snapshots_keep_apart(&shared->schedule, sessions * SNAPSHOT_EACH_NS);
}

/*
 * When snapshots are to be taken next.
 */
int64
windows_next_due(void)
{
	return snapshots_next_due(&shared->schedule);
}

static void
account_of(WindowAccount *account, const SlotObservation *observation)
{
	account->totals = observation->account.totals;
	account->tcp = observation->tcp_counters;
	account->lock_held_up = observation->held_up;
}

/*
 * Keep a snapshot of a session that was just observed.
 */
void
windows_add(int slot, const SlotObservation *observation, SnapshotLevels levels)
{
	SessionSnapshots *own = &shared->sessions[slot];

	seqlock_write_begin(&own->lock);
	if (own->session != observation->session || own->generation != observation->generation)
	{
		own->session = observation->session;
		own->generation = observation->generation;
		memset(&own->times, 0, sizeof(own->times));
	}
	for (int level = 0; level < SNAPSHOT_LEVELS; level++)
	{
		int			place = snapshots_place(&own->times, level);

		if (!(levels & (1u << level)))
			continue;
		own->times.at[place] = observation->observed_at - observation->account.pending;
		account_of(&own->snapshots[place], observation);
	}
	seqlock_write_end(&own->lock);
}

/* The snapshot that begins the shortest window with all that was since then. */
static void
find_start(int slot, int64 since, WindowStart *start)
{
	SessionSnapshots *own = &shared->sessions[slot];
	int			attempts = 0;

	for (;;)
	{
		uint32		changecount = seqlock_read_begin(&own->lock);
		int			place = snapshots_find(&own->times, since);

		start->session = 0;
		if (place >= 0)
		{
			start->session = own->session;
			start->generation = own->generation;
			start->at = own->times.at[place];
			start->before = own->snapshots[place];
		}
		if (seqlock_read_valid(&own->lock, changecount))
			return;
		if (!seqlock_try_again(&attempts))
			break;
		CHECK_FOR_INTERRUPTS();
	}
	start->session = 0;
}

static void
copy_reset(int slot, WindowStart *reset)
{
	SessionSnapshots *own = &shared->sessions[slot];
	int			attempts = 0;

	for (;;)
	{
		uint32		changecount = seqlock_read_begin(&own->reset_lock);

		*reset = own->reset;
		if (seqlock_read_valid(&own->reset_lock, changecount))
			return;
		if (!seqlock_try_again(&attempts))
			break;
		CHECK_FOR_INTERRUPTS();
	}
	reset->session = 0;
}

static bool
is_start_of(const WindowStart *start, const SlotObservation *observation)
{
	return start->session == observation->session && start->generation == observation->generation;
}

/* What a session has counted in the window, instead of all it has. */
static void
subtract(SlotObservation *observation, const WindowAccount *before)
{
	ledger_totals_subtract(&observation->account.totals, &before->totals);
	ledger_totals_fit(&observation->account.totals);
	tcpstate_counters_subtract(&observation->tcp_counters, &before->tcp);
	observation->held_up -= before->lock_held_up;
}

/*
 * Like slot_observe(), but only what was counted in a window: the shortest one
 * that contains the last "length" nanoseconds, or all since the session began
 * or was reset if no snapshot is as old as that, or WINDOW_WHOLE was asked for.
 * The observation's stats_since is when the window began.
 */
bool
windows_observe(int slot, int64 length, SlotObservation *observation)
{
	WindowStart start = {.session = 0};
	WindowStart reset;
	bool		is_started;

	/* first, so that no snapshot is later than the observation */
	if (length != WINDOW_WHOLE)
		find_start(slot, clock_now() - length, &start);
	copy_reset(slot, &reset);
	if (!slot_observe(slot, observation))
		return false;
	is_started = is_start_of(&start, observation);
	if (is_start_of(&reset, observation) && !(is_started && start.at > reset.at))
	{
		subtract(observation, &reset.before);
		observation->stats_since = reset.since;
	}
	else if (is_started)
	{
		subtract(observation, &start.before);
		observation->stats_since = clock_to_timestamp(observation->clock_offset, start.at);
	}
	return true;
}

/*
 * Forget what the session with this process ID has counted so far; false if it
 * is not there, or does not let itself be observed.  "since" is the moment from
 * which it counts again.
 */
bool
windows_reset(int slot, int pid, TimestampTz *since)
{
	SessionSnapshots *own = &shared->sessions[slot];
	WindowStart reset = {.session = 0};
	SlotObservation observation;

	/* without a lock: that may take a while, of a session that was stopped */
	if (!slot_observe(slot, &observation) || observation.pid != pid || observation.closed)
		return false;
	reset.session = observation.session;
	reset.generation = observation.generation;
	reset.at = observation.observed_at - observation.account.pending;
	reset.since = *since = clock_to_timestamp(observation.clock_offset, reset.at);
	account_of(&reset.before, &observation);

	/*
	 * of a session that has ended by now, or of an older generation, it is
	 * void
	 */
	locks_acquire(LOCK_RESET, 0, LW_EXCLUSIVE);
	seqlock_write_begin(&own->reset_lock);
	own->reset = reset;
	seqlock_write_end(&own->reset_lock);
	wait_events_reset(slot);
	locks_release(LOCK_RESET, 0);
	return true;
}
