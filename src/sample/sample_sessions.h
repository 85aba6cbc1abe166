/*-------------------------------------------------------------------------
 *
 * sample_sessions.h
 *	  Samples what sessions are doing.
 *
 * Each tick of the sampler looks at the state and the wait event of each active
 * session (active_sessions.h).  They are in SlotSampled.doing.  While they
 * stay the same nothing is written, since the time of the latest tick says how
 * long they have lasted.  When they change, the time up to the previous tick
 * is booked, once, on the session's parts of execution, its profile of wait
 * events, and its statement's parts; what is seen now counts from then on.
 * Readers add what is in progress.
 *
 * A session that executes for long is attended to once a second: its execution
 * so far is added to its statement's entry, and the kernel is asked how long
 * the process has waited for a processor.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_SAMPLE_SESSIONS_H
#define PGNETLAT_SAMPLE_SESSIONS_H

#include "session_slot.h"

/* A tick. */
typedef struct Tick
{
	int64		now;
	int64		before;			/* the previous tick, made or skipped */
	bool		failed;			/* the previous tick has */
	int64		interval;
	uint32		generation;		/* reset generation */
	int64		clock_offset;	/* see clock.h */
	int			active;			/* active sessions at the latest tick */
	TcpDiag		diag;
} Tick;

extern LedgerSampled *sampled_begin(int index, const SlotPublished *view, const Tick *tick);

extern void sample_sessions_init(void);
extern void sample_sessions(Tick *tick);
extern int64 sample_sessions_next_due(void);

/* sample_connections.c */
extern void sample_connections_begin_tick(const Tick *tick);
extern void sample_connection(int index, const SlotPublished *view, Tick *tick);
extern void sample_paths(const Tick *tick);
extern void sample_acknowledgement(int index, const SlotPublished *view, Tick *tick);

#endif							/* PGNETLAT_SAMPLE_SESSIONS_H */
