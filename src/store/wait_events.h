/*-------------------------------------------------------------------------
 *
 * wait_events.h
 *	  The sampled profile of each session: wait events by state.
 *
 * Written by the sampler alone (to reset one is to ask the sampler); readers
 * see each counter whole, but not all of them as of one moment.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_WAIT_EVENTS_H
#define PGNETLAT_WAIT_EVENTS_H

#include "ledger.h"

/* Pairs of state and event that a session's profile tells apart. */
#define WAITS_PER_SESSION	24

typedef struct WaitSample
{
	LedgerState state;
	uint32		event;			/* as in PGPROC; 0: none, that is CPU */
	bool		other;			/* the pairs that found no place */
	int64		samples;
	int64		time;			/* ns */
} WaitSample;

extern Size wait_events_shmem_size(void);
extern void wait_events_shmem_init(void);
extern void wait_events_add(int slot, uint64 session, uint32 generation,
							LedgerState state, uint32 event, uint32 samples, int64 time);
extern void wait_events_prefetch(int slot);
extern bool wait_events_are_reset(int slot, uint64 session, uint32 generation);
extern void wait_events_reset(int slot);
extern int	wait_events_copy(int slot, uint64 session, uint32 generation, WaitSample *samples);

#endif							/* PGNETLAT_WAIT_EVENTS_H */
