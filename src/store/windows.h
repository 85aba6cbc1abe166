/*-------------------------------------------------------------------------
 *
 * windows.h
 *	  Keeps snapshots of the sessions' accounts, where windows begin.
 *
 * The sampler takes snapshots of all sessions together; see snapshots.h for
 * when.
 *
 * What is pending when a snapshot is taken will be booked later, but happened
 * before it.  So a snapshot is the account as of the moment up to which all
 * time was attributed: then the parts of a window add up to its length, to the
 * nanosecond, and none is negative.
 *
 * A reset of one session is such a snapshot, too, and no window reaches back
 * beyond it.  It does not affect the session itself, nor groups and
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
extern void windows_shmem_attach(void *memory, bool is_new);

/* Function for the sampler */
extern void windows_add(int index, const SlotObservation *observation, SnapshotLevels levels);

/* Functions for readers */
#define WINDOW_WHOLE	INT64CONST(0)	/* since the session began */

extern bool windows_observe(int index, int64 length, SlotObservation *observation);
extern bool windows_reset(int index, int pid, TimestampTz *since);

#endif							/* PGNETLAT_WINDOWS_H */
