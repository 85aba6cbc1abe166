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

#include "miscadmin.h"
#include "seqlock.h"
#include "storage/shmem.h"
#include "windows.h"

/* Written by the sampler alone, under the seqlock. */
typedef struct SessionSnapshots
{
	SeqLock		lock;
	uint32		generation;		/* of these, as in WindowStart */
	uint64		session;
	SnapshotTimes times;
	WindowSnapshot snapshots[SNAPSHOTS_KEPT];
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
 * Keep a snapshot of a session that was just observed.
 */
void
windows_add(int slot, const SlotObservation *seen, SnapshotLevels levels)
{
	SessionSnapshots *own = &shared->sessions[slot];
	int64		at = seen->observed_at - seen->account.pending;

	seqlock_write_begin(&own->lock);
	if (own->session != seen->session || own->generation != seen->generation)
	{
		own->session = seen->session;
		own->generation = seen->generation;
		memset(&own->times, 0, sizeof(own->times));
	}
	for (int level = 0; level < SNAPSHOT_LEVELS; level++)
	{
		int			place;

		if (!(levels & (1u << level)))
			continue;
		place = snapshots_place(&own->times, level);
		own->times.at[place] = at;
		own->snapshots[place].totals = seen->account.totals;
		own->snapshots[place].tcp = seen->tcp_counters;
		own->snapshots[place].run_queue_time = Max(seen->run_queue_time, 0);
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

/* What a session has counted in the window, instead of all it has. */
static void
subtract_start(SlotObservation *seen, const WindowStart *start)
{
	const WindowSnapshot *before = &start->snapshot;

	ledger_totals_subtract(&seen->account.totals, &before->totals);
	/* of what was found late to be the client's, some is of the time before */
	(void) ledger_totals_cut_late(&seen->account.totals);
	seen->tcp_counters.retransmits -= before->tcp.retransmits;
	seen->tcp_counters.bytes_received -= before->tcp.bytes_received;
	seen->tcp_counters.packets_sent -= before->tcp.packets_sent;
	seen->tcp_counters.packets_received -= before->tcp.packets_received;
	if (seen->run_queue_time >= 0)
		seen->run_queue_time -= before->run_queue_time;
	seen->stats_since = clock_to_timestamp(seen->clock_offset, start->at);
}

/*
 * Like slot_observe(), but only what was counted in a window: the shortest one
 * that contains the last "length" nanoseconds, or all since the session began
 * or was reset if no snapshot is as old as that.  The observation's stats_since
 * is when the window began.
 */
bool
windows_observe(int slot, int64 length, SlotObservation *observation)
{
	WindowStart start;
	bool		found;

	/* first, so that no snapshot is later than the observation */
	found = find_start(slot, clock_now() - length, &start);
	if (!slot_observe(slot, observation))
		return false;
	if (found && start.session == observation->session &&
		start.generation == observation->generation)
		subtract_start(observation, &start);
	return true;
}
