/*-------------------------------------------------------------------------
 *
 * snapshots.h
 *	  Which snapshots of an account are kept, and which one begins a window.
 *
 * A window is the difference of two accounts: the present one and a snapshot.
 * There are windows of 10 seconds, a minute and 15 minutes.  Snapshots are taken
 * at every third of each, and four are kept: the oldest is then as old as the
 * window, or up to a third older.  With very many accounts that would cost too
 * much, so snapshots are further apart, up to the length of the shortest window.
 * While nobody is active they may be a second late.
 *
 * Plain C, no server headers.  Moments are nanoseconds of the monotonic clock.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_SNAPSHOTS_H
#define PGNETLAT_SNAPSHOTS_H

#include <stdint.h>

#define SNAPSHOT_LEVELS			3
#define SNAPSHOTS_PER_LEVEL		4
#define SNAPSHOTS_KEPT			(SNAPSHOT_LEVELS * SNAPSHOTS_PER_LEVEL)

#define SNAPSHOTS_LONGEST_NS	INT64_C(900000000000)

/* A set of levels, one bit each. */
typedef unsigned SnapshotLevels;

/* When the latest snapshots of each level were taken. */
typedef struct SnapshotSchedule
{
	int64_t		taken[SNAPSHOT_LEVELS];
	int64_t		apart;			/* at least; for what they cost */
} SnapshotSchedule;

/* The moments as of which the kept snapshots are; 0: no such snapshot. */
typedef struct SnapshotTimes
{
	int64_t		at[SNAPSHOTS_KEPT];
} SnapshotTimes;

extern SnapshotLevels snapshots_due(SnapshotSchedule *schedule, int64_t now);
extern void snapshots_keep_apart(SnapshotSchedule *schedule, int64_t apart);
extern int	snapshots_place(const SnapshotTimes *kept, int level);
extern int	snapshots_find(const SnapshotTimes *kept, int64_t since);
extern int	snapshots_begin_window(const SnapshotTimes *kept, int64_t since);
extern void snapshots_date(SnapshotTimes *kept, SnapshotLevels levels, int64_t now);

#endif							/* PGNETLAT_SNAPSHOTS_H */
