/*-------------------------------------------------------------------------
 *
 * snapshots.c
 *	  Decides which snapshots are kept, and which one begins a window.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "snapshots.h"

#define NS_PER_SECOND	INT64_C(1000000000)

/* The lengths of windows, shortest first. */
static const int64_t lengths[SNAPSHOT_LEVELS] = {
	10 * NS_PER_SECOND,
	60 * NS_PER_SECOND,
	SNAPSHOTS_LONGEST_NS,
};

/* Keep snapshots at least "apart", within bounds. */
void
snapshots_keep_apart(SnapshotSchedule *schedule, int64_t apart)
{
	schedule->apart = apart < lengths[0] ? apart : lengths[0];
}

/*
 * The levels for which snapshots are due.  They count as taken.
 *
 * The next snapshot is timed from when this one was taken, not from when it
 * was due.  Snapshots too far apart make windows longer, but snapshots too
 * close together would make them too short.
 */
SnapshotLevels
snapshots_due(SnapshotSchedule *schedule, int64_t now)
{
	SnapshotLevels due = 0;

	for (int level = 0; level < SNAPSHOT_LEVELS; level++)
	{
		int64_t		apart = lengths[level] / (SNAPSHOTS_PER_LEVEL - 1);

		if (apart < schedule->apart)
			apart = schedule->apart;
		if (schedule->taken[level] != 0 && now < schedule->taken[level] + apart)
			continue;
		schedule->taken[level] = now;
		due |= 1u << level;
	}
	return due;
}

/* The oldest of "count" snapshots.  Unused ones count as the oldest. */
static int
oldest_of(const SnapshotTimes *kept, int first, int count)
{
	int			oldest = first;

	for (int i = first + 1; i < first + count; i++)
	{
		if (kept->at[i] < kept->at[oldest])
			oldest = i;
	}
	return oldest;
}

/* The place for a new snapshot of a level: that of its oldest one. */
int
snapshots_place(const SnapshotTimes *kept, int level)
{
	return oldest_of(kept, level * SNAPSHOTS_PER_LEVEL, SNAPSHOTS_PER_LEVEL);
}

/*
 * Find the snapshot for the shortest window that contains everything since
 * "since", which is the latest one of any level not after that; -1 if there is
 * none.
 */
int
snapshots_find(const SnapshotTimes *kept, int64_t since)
{
	int			best = -1;

	for (int i = 0; i < SNAPSHOTS_KEPT; i++)
	{
		if (kept->at[i] == 0 || kept->at[i] > since)
			continue;
		if (best < 0 || kept->at[i] > kept->at[best])
			best = i;
	}
	return best;
}

/*
 * The same; but if no snapshot is old enough, return the oldest one, or an
 * unused one if there is any.
 */
int
snapshots_begin_window(const SnapshotTimes *kept, int64_t since)
{
	int			found = snapshots_find(kept, since);

	return found >= 0 ? found : oldest_of(kept, 0, SNAPSHOTS_KEPT);
}

/* Date the new snapshots of these levels, which have been put in place. */
void
snapshots_date(SnapshotTimes *kept, SnapshotLevels levels, int64_t now)
{
	for (int level = 0; level < SNAPSHOT_LEVELS; level++)
	{
		if (levels & (1u << level))
			kept->at[snapshots_place(kept, level)] = now;
	}
}
