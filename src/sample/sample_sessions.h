/*-------------------------------------------------------------------------
 *
 * sample_sessions.h
 *	  What the worker's ticks find out about sessions.
 *
 * At each tick the worker looks at each active session (active_sessions.h): in
 * which state is it, and with which wait event?  The answer is in SlotSampled.doing,
 * and as long as it stays the same nothing is written: that the ticks go on says
 * that the session does.  When it changes, the time up to the tick before is booked
 * once, for the session's parts of execution, its profile of wait events, and its
 * statement's parts; what is seen now stands for the time since then.  Readers
 * add what is in progress.
 *
 * Whoever executes for long is attended to once a second: its statement's entry
 * gets the execution so far, and the kernel is asked how long the process has waited
 * for a processor.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_SAMPLE_SESSIONS_H
#define PGNETLAT_SAMPLE_SESSIONS_H

#include "session_slot.h"

/* What one tick knows. */
typedef struct Tick
{
	int64		now;
	int64		before;			/* the tick before, made or left out */
	int64		interval;
	uint32		generation;		/* of resets */
	int64		clock_offset;	/* between the clocks, see clock.h */
	int			active;			/* sessions, at the latest tick */
	TcpDiag		diag;
} Tick;

extern LedgerSampled *sampled_begin(int index, const SlotPublished *view, const Tick *tick);

extern LedgerState sample_sessions_state(int index, uint64 session);
extern void sample_sessions_init(void);
extern void sample_sessions(Tick *tick);
extern int64 sample_sessions_next_due(void);

/* sample_connections.c */
extern void sample_connections_begin_tick(const Tick *tick);
extern void sample_connection(int index, const SlotPublished *view, Tick *tick);

#endif							/* PGNETLAT_SAMPLE_SESSIONS_H */
