/*-------------------------------------------------------------------------
 *
 * snapshots.h
 *	  Decides which snapshots of an account are kept, and which one begins a
 *	  window.
 *
 * A window is the difference of two accounts: the present one and a snapshot.
 * There are windows of 10 seconds, a minute and 15 minutes.  For each,
 * snapshots are taken at every third of its length, and four are kept: the
 * oldest one is as old as the window, or up to a third older.  With very many
 * accounts, snapshots are taken less often to limit their cost, down to once
 * in the length of the shortest window.  While no session is active they may
 * be a second late.
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

/* A set of window lengths, one bit each. */
typedef unsigned SnapshotLevels;

/* When the latest snapshots of each level were taken. */
typedef struct SnapshotSchedule
{
	int64_t		taken[SNAPSHOT_LEVELS];
	int64_t		apart;			/* minimum distance, to limit the cost */
} SnapshotSchedule;

/* The moments of the kept snapshots; 0: none. */
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
