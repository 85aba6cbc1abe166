/*-------------------------------------------------------------------------
 *
 * session_slot.h
 *	  The session slots: what each session publishes, and how others read it.
 *
 * There is one slot per possible client backend.  Each of its two parts has
 * one writer, a seqlock and cache lines of its own:
 *
 *	published	written by the session alone: its ledger, and what it is
 *	sampled		written by the sampler alone: all that only samples tell
 *
 * A reader copies both and lets its copy of the ledger run ahead to the
 * present.  What the session has booked never falls.  What is in progress is
 * one state and its age, added as well as it can be known; when it ends, it
 * may turn out otherwise.
 *
 * Resets keep the rule of one writer: pgnetlat_reset() only announces a new
 * generation, which every write section checks.  A session applies it to its
 * own ledger at its next event, and the sampler to what it has sampled when it
 * next writes; until then, readers apply it to their private copies.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_SESSION_SLOT_H
#define PGNETLAT_SESSION_SLOT_H

#include "clock.h"
#include "connect_cost.h"
#include "ledger.h"
#include "port/atomics.h"
#include "seqlock.h"
#include "storage/proc.h"
#include "tcpinfo.h"
#include "utils/backend_status.h"
#include "utils/wait_event.h"

typedef enum SessionTransport
{
	TRANSPORT_UNIX,
	TRANSPORT_TCP,
	TRANSPORT_TLS,
	TRANSPORT_GSS
} SessionTransport;

/* No system user has this number. */
#define OWNER_UNKNOWN	UINT32_MAX

typedef struct SlotPublished
{
	/* set by slot_attach(), constant while the session lasts */
	uint64		session;		/* unique while the server runs; 0: free slot */

	/* these change with each exchange: close together, in few cache lines */
	TimestampTz request_stamp;	/* statement timestamp when the wait began */
	int64		trip;			/* one round trip to the client: tcp.rtt plus
								 * the client's, behind a pooler on this host */
	Ledger		ledger;

	/* constant, like session */
	int			pid;
	Oid			datid;
	Oid			userid;
	SessionTransport transport;
	TcpEndpoints endpoints;
	uint32		pooler_owner;	/* system user of the pooler at the other end;
								 * OWNER_UNKNOWN */
	PGPROC	   *proc;
	PgBackendStatus *status;
	TimestampTz backend_start;

	/* these change with events */
	char		name[NAMEDATALEN];	/* application_name, or what it was before
									 * a tracer's: see trace_context.h */
	bool		closed;			/* about to leave: has no row */
	bool		run_queue_known;	/* the kernel reports it */
	uint32		generation;		/* latest reset applied to the ledger */
	TimestampTz stats_since;	/* when attached, or that reset */
	int64		clock_offset;	/* converts core's timestamps, see clock.h */
	TcpInfo		tcp;			/* with widened counters */
	int64		first_rtt;		/* the kernel's minimum when first asked; 0:
								 * not yet */
	TcpCounters tcp_base;		/* counters at the latest reset */
	int64		run_queue_booked;	/* the kernel's total for the process, as
									 * far as booked */

	/* set by slot_open(), constant after that */
	ConnectTotals connect;		/* what its connection has cost; zero: not
								 * known */
} SlotPublished;

/* Not waiting for a lock, or the holder is not known. */
#define SLOT_NOT_BLOCKED	(-1)

/*
 * What the sampler has seen a session doing at each tick since "from".  It
 * lasts until the latest tick, and longer while the session publishes nothing.
 */
typedef struct SlotDoing
{
	int64		from;			/* 0: not known */
	int64		idle_from;		/* a wait is idle from then on */
	uint32		changecount;	/* of the published part */
	uint32		event;			/* as in PGPROC */
	LedgerState state;
	ExecPart	part;			/* part of execution; else NUM_EXEC_PARTS */
} SlotDoing;

/* What the sampler knows of a session. */
typedef struct SlotSampled
{
	uint64		session;		/* valid for this session ... */
	uint32		generation;		/* ... and reset generation only */
	int			blocked_by;		/* process ID of the holder that it waits for;
								 * 0: a prepared transaction; or
								 * SLOT_NOT_BLOCKED */
	int64		blocking;		/* ns for which others have waited for it */
	int64		exec_part[NUM_EXEC_PARTS];	/* since attached or reset */
	SlotDoing	doing;			/* in progress, and not in exec_part */
	uint32		path_rtt;		/* us: round trip of most connections with the
								 * same path; 0: not shorter */
	int			waits_used;		/* entries of its profile of wait events ... */
	int64		waits_since;	/* ... and when that was last reset */
	uint64		added_record;	/* for the record with this number, ... */
	int64		added_exec;		/* ... the execution that is in the
								 * statement's entry */
	int64		run_queue;		/* the kernel's total for the process, as in
								 * run_queue_booked; 0: not known */
	int64		run_queue_base; /* the same when first asked after a reset
								 * that came during an exchange; else 0 */

	uint64		exchange_number;	/* ledger is of this exchange, or of the
									 * wait after it */
	LedgerSampled ledger;

	uint64		tcp_session;	/* tcp is of this session, since it began */
	TcpInfo		tcp;			/* from socket diagnosis. Either this or the
								 * published one may be later: readers merge
								 * them */
} SlotSampled;

typedef struct SessionSlot
{
	SeqLock		lock;			/* protects published */
	SlotPublished published;
	pg_atomic_uint32 tally_state;	/* beside what hardly ever changes */

	SeqLock		sampled_lock pg_attribute_aligned(PG_CACHE_LINE_SIZE);
	SlotSampled sampled;
} SessionSlot;

/* The state of a session's tally: see tally.h. */
typedef enum TallyState
{
	TALLY_KEPT = 0,				/* the session's */
	TALLY_PROPOSED,				/* another process is about to take it */
	TALLY_TAKEN					/* another process has taken it */
} TallyState;

/* A session as seen at one moment. */
typedef struct SlotObservation
{
	SlotPublished published;	/* with the later of both measurements of the
								 * connection, and all resets applied */
	int64		observed_at;
	LedgerAccount account;		/* its run_queue is valid if run_queue_known */
	TcpCounters tcp_counters;	/* since connected or reset */
	int64		doing_until;	/* end of what the sampler has seen it doing */
	int			blocked_by;		/* as in SlotSampled */
	int64		blocking;
} SlotObservation;

/*
 * What an executing backend with this wait event is blocked in.  It may be
 * blocked in writing without having published that it is sending: see
 * exchange.h.
 */
static inline LedgerBlocked
slot_blocked_in(uint32 wait_event)
{
	switch (wait_event)
	{
		case WAIT_EVENT_CLIENT_READ:
			return LEDGER_BLOCKED_READING;
		case WAIT_EVENT_CLIENT_WRITE:
			return LEDGER_BLOCKED_WRITING;
		default:
			return LEDGER_NOT_BLOCKED;
	}
}

/* Is the session's path shorter than the kernel's minimum for it? */
static inline void
slot_limit_rtt(const SessionSlot *slot, TcpInfo *info)
{
	int64		rtt = *(const volatile uint32 *) &slot->sampled.path_rtt * NS_PER_US;

	if (rtt > 0 && rtt < info->rtt && slot->sampled.session == slot->published.session)
		info->rtt = rtt;
}

/* Is this a wait for a heavyweight lock? */
static inline bool
slot_waits_for_lock(uint32 wait_event)
{
	return (wait_event & 0xFF000000) == PG_WAIT_LOCK;
}

/* Functions for shared_memory.c */
extern Size slot_shmem_size(void);
extern void slot_shmem_attach(void *memory, bool is_new);
extern int	slot_count(void);

/* Functions for the session itself */
extern SessionSlot *slot_attach(void);
extern uint64 slot_open(SessionSlot *slot, const ConnectTotals *connect);
extern void slot_close(SessionSlot *slot);
extern int	slot_my_index(void);
extern SessionTransport slot_my_transport(void);
extern void slot_detach(SessionSlot *slot);
extern void slot_apply_reset(SlotPublished *published);
extern bool slot_sampled_of_exchange(SessionSlot *slot, LedgerSampled *sampled);
extern int64 slot_added_exec(SessionSlot *slot, uint64 record);
extern int64 slot_run_queue_base(SessionSlot *slot);

/* Functions for readers */
extern bool slot_observe(int index, SlotObservation *observation);
extern int	slot_find_pid(int pid);
extern bool slot_name(int index, uint64 session, char *name);
extern PgBackendStatus *slot_next_uncounted(int *number);

/* Functions for the sampler */
extern SessionSlot *slot_get(int index);
extern SlotSampled *slot_sampled_begin(int index, uint64 session, uint32 generation);
extern void slot_sampled_end(int index);
extern bool slot_request_began(int index, int64 *at);

/* Function for resets */
extern void slot_announce_reset(int64 at, TimestampTz timestamp);

/* The latest reset, and what else all sessions read. */
typedef struct SlotControl
{
	/*
	 * Written by a reset, under the reset lock.  The hot path only compares
	 * generations, and reads both under the seqlock if there is a new one.
	 */
	SeqLock		reset_lock;
	volatile uint32 generation;
	volatile int64 reset_at;	/* monotonic */
	volatile TimestampTz reset_timestamp;
	volatile uint32 clock_steps;	/* steps of the wall clock that the
									 * sampler has seen */

	/*
	 * written by the sampler at each tick, after it has looked at all active
	 * sessions
	 */
	volatile int64 last_tick pg_attribute_aligned(PG_CACHE_LINE_SIZE);
	volatile int64 tick_interval;

	pg_atomic_uint64 sessions pg_attribute_aligned(PG_CACHE_LINE_SIZE); /* sessions attached so
																		 * far */
} SlotControl;

/* hidden: it is read in the hot path */
#pragma GCC visibility push(hidden)
extern SlotControl *slot_control;
#pragma GCC visibility pop

/* Has the session applied the latest reset?  In a write section. */
static inline bool
slot_reset_is_applied(const SessionSlot *slot)
{
	return slot->published.generation == slot_control->generation;
}

/*
 * Begin to publish, with the latest reset applied.  Until slot_write_end(),
 * nothing may raise an error or block.
 */
static inline void
slot_write_begin(SessionSlot *slot)
{
	seqlock_write_begin(&slot->lock);
	if (unlikely(!slot_reset_is_applied(slot)))
		slot_apply_reset(&slot->published);
}

static inline void
slot_write_end(SessionSlot *slot)
{
	seqlock_write_end(&slot->lock);
}

#endif							/* PGNETLAT_SESSION_SLOT_H */
