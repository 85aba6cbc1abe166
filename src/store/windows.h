/*-------------------------------------------------------------------------
 *
 * windows.h
 *	  Where windows over the sessions' accounts begin: kept snapshots.
 *
 * The sampler takes them of all sessions in one look; see snapshots.h for
 * when.
 *
 * What is pending when a snapshot is taken will be booked later, but lies
 * before it.  So a snapshot is not the account as of that look but as of the
 * moment up to which all was attributed: the parts of a window then add up to
 * its length, to the nanosecond, and none is ever negative.
 *
 * A reset of one session is such a snapshot as well, and no window reaches
 * back beyond it.  The session itself knows nothing of it, nor do groups and
 * statements, which keep what was counted before.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_WINDOWS_H
#define PGNETLAT_WINDOWS_H

#include "session_slot.h"
#include "snapshots.h"

extern Size windows_shmem_size(void);
extern void windows_shmem_init(void);

/* Function for the sampler */
extern void windows_add(int slot, const SlotObservation *observation, SnapshotLevels levels);

/* Functions for readers */
#define WINDOW_WHOLE	INT64CONST(0)	/* all there is */

extern bool windows_observe(int slot, int64 length, SlotObservation *observation);
extern bool windows_reset(int slot, int pid, TimestampTz *since);

#endif							/* PGNETLAT_WINDOWS_H */
