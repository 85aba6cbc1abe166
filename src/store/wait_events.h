/*-------------------------------------------------------------------------
 *
 * wait_events.h
 *	  The profile of each session: wait events by state, sampled.
 *
 * Only the sampler writes a profile, under the same change count as what else
 * it has sampled of the session; a reset is a request to the sampler.  Readers
 * add what is in progress.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_WAIT_EVENTS_H
#define PGNETLAT_WAIT_EVENTS_H

#include "session_slot.h"

/* Pairs of state and event in a session's profile. */
#define WAITS_PER_SESSION	24

typedef struct WaitSample
{
	LedgerState state;
	uint32		event;			/* as in PGPROC; 0: CPU */
	bool		other;			/* the overflow */
	int64		samples;
	int64		time;			/* ns */
} WaitSample;

extern Size wait_events_shmem_size(void);
extern void wait_events_shmem_attach(void *memory, bool is_new);
extern const char *wait_event_name(uint32 event);
extern ExecPart wait_event_part(uint32 event);
extern void wait_events_add(int index, SlotSampled *sampled, int64 until, int64 interval);
extern void wait_events_reset(int index);
extern int	wait_events_copy(int index, const SlotObservation *observation, WaitSample *samples);

#endif							/* PGNETLAT_WAIT_EVENTS_H */
