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

/* A reset of one session. */
typedef struct WindowReset
{
	WindowStart start;
	TimestampTz since;			/* the same moment as start.at */
} WindowReset;

typedef struct SessionSnapshots
{
	/* written by the sampler alone, under the seqlock */
	SeqLock		lock;
	uint32		generation;		/* of these, as in WindowStart */
	uint64		session;
	SnapshotTimes times;
	WindowSnapshot snapshots[SNAPSHOTS_KEPT];

	/* written under the reset lock and the seqlock */
	SeqLock		reset_lock;
	WindowReset reset;
} SessionSnapshots;

/*
 * The schedule is of the sampler alone; here, because one that is started anew
 * goes on with it.
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

SnapshotLevels
windows_due(int64 now)
{
	return snapshots_due(&shared->schedule, now);
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
take_snapshot(WindowSnapshot *snapshot, const SlotObservation *observation)
{
	snapshot->totals = observation->account.totals;
	snapshot->tcp = observation->tcp_counters;
	snapshot->run_queue_time = Max(observation->run_queue_time, 0);
}

/*
 * Keep a snapshot of a session that was just observed.
 */
void
windows_add(int slot, const SlotObservation *observation, SnapshotLevels levels)
{
	SessionSnapshots *own = &shared->sessions[slot];
	int64		at = observation->observed_at - observation->account.pending;

	seqlock_write_begin(&own->lock);
	if (own->session != observation->session || own->generation != observation->generation)
	{
		own->session = observation->session;
		own->generation = observation->generation;
		memset(&own->times, 0, sizeof(own->times));
	}
	for (int level = 0; level < SNAPSHOT_LEVELS; level++)
	{
		int			place;

		if (!(levels & (1u << level)))
			continue;
		place = snapshots_place(&own->times, level);
		own->times.at[place] = at;
		take_snapshot(&own->snapshots[place], observation);
	}
	seqlock_write_end(&own->lock);
}

/* Where the window begins that contains all since then; false if not known. */
static bool
find_start(int slot, int64 since, WindowStart *start)
{
	SessionSnapshots *own = &shared->sessions[slot];

	for (;;)
	{
		uint32		changecount = seqlock_read_begin(&own->lock);
		int			place = snapshots_find(&own->times, since);

		if (place >= 0)
		{
			start->session = own->session;
			start->generation = own->generation;
			start->at = own->times.at[place];
			start->snapshot = own->snapshots[place];
		}
		if (seqlock_read_valid(&own->lock, changecount))
			return place >= 0;
		CHECK_FOR_INTERRUPTS();
	}
}

static void
copy_reset(int slot, WindowReset *reset)
{
	SessionSnapshots *own = &shared->sessions[slot];

	for (;;)
	{
		uint32		changecount = seqlock_read_begin(&own->reset_lock);

		*reset = own->reset;
		if (seqlock_read_valid(&own->reset_lock, changecount))
			break;
		CHECK_FOR_INTERRUPTS();
	}
}

static bool
is_start_of(const WindowStart *start, const SlotObservation *observation)
{
	return start->session == observation->session && start->generation == observation->generation;
}

/* What a session has counted in the window, instead of all it has. */
static void
subtract_start(SlotObservation *observation, const WindowStart *start)
{
	const WindowSnapshot *before = &start->snapshot;

	ledger_totals_subtract(&observation->account.totals, &before->totals);
	/* of what was found late to be the client's, some is of the time before */
	(void) ledger_totals_cut_late(&observation->account.totals);
	tcpstate_counters_subtract(&observation->tcp_counters, &before->tcp);
	if (observation->run_queue_time >= 0)
		observation->run_queue_time -= before->run_queue_time;
	observation->stats_since = clock_to_timestamp(observation->clock_offset, start->at);
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
	WindowStart start;
	WindowReset reset;
	bool		found;

	/* first, so that no snapshot is later than the observation */
	found = length != WINDOW_WHOLE && find_start(slot, clock_now() - length, &start);
	copy_reset(slot, &reset);
	if (!slot_observe(slot, observation))
		return false;
	found = found && is_start_of(&start, observation);
	if (is_start_of(&reset.start, observation) && !(found && start.at > reset.start.at))
	{
		subtract_start(observation, &reset.start);
		observation->stats_since = reset.since;
	}
	else if (found)
		subtract_start(observation, &start);
	return true;
}

/*
 * Forget what the session with this process ID has counted so far; false if it
 * is not there.  "since" is the moment from which it counts again.
 */
bool
windows_reset(int slot, int pid, TimestampTz *since)
{
	SessionSnapshots *own = &shared->sessions[slot];
	WindowReset reset;
	SlotObservation observation;
	bool		found;

	memset(&reset, 0, sizeof(reset));
	locks_acquire(LOCK_RESET, 0, LW_EXCLUSIVE);
	found = slot_observe(slot, &observation) && observation.pid == pid && !observation.closed;
	if (found)
	{
		reset.start.session = observation.session;
		reset.start.generation = observation.generation;
		reset.start.at = observation.observed_at - observation.account.pending;
		take_snapshot(&reset.start.snapshot, &observation);
		reset.since = clock_to_timestamp(observation.clock_offset, reset.start.at);
		*since = reset.since;
		seqlock_write_begin(&own->reset_lock);
		own->reset = reset;
		seqlock_write_end(&own->reset_lock);
		wait_events_reset(slot);
	}
	locks_release(LOCK_RESET, 0);
	return found;
}
