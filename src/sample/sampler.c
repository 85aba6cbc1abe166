/*-------------------------------------------------------------------------
 *
 * sampler.c
 *	  See sampler.h.
 *
 * What no event shows, samples do: the wait events of each session, and which
 * part of an exchange the backend spent blocked reading from its client (COPY
 * FROM STDIN, half a message, the rest of a failed pipeline).  Each sample
 * stands for the time that has really passed since the one before.
 *
 * Ticks lie on a grid, one each sample_interval.  One at which no session is
 * active (active_sessions.h) is left out: the sampler sleeps until a session
 * wakes it, and then until the next tick of the grid.  So samples are always
 * taken on the grid, not when an exchange begins, and the first one stands for
 * one interval.  What was left out is booked afterwards as what it was: the
 * wait of a quiet session.
 *
 * A tick waits for the kernel's own, up to half an interval: to be woken in between
 * would cost busy processors more than the sampler does.
 *
 * Where very many sessions are active, ticks are further apart, so that what
 * the sampler takes of a processor does not grow with them (up to 100 ms apart,
 * so with some thousands it does grow again).
 *
 * The sampler also asks the kernel, over socket diagnosis, about connections
 * whose backend cannot: those blocked in sending, and those whose last
 * response is still leaving the kernel.
 *
 * It looks at the walsenders in each tick as well (walsenders.h), and while one
 * of them is active it leaves out none.
 *
 * It accumulates all sessions when it closes an interval of the history.
 *
 * Every few seconds it keeps a snapshot of all accounts, where windows begin.
 *
 * Nothing but samples is lost while the sampler is down.  It may be told to
 * terminate at any time, by exiting with status 1 so that the postmaster
 * starts it again, and survives errors.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#ifdef HAVE_SYS_PRCTL_H
#include <sys/prctl.h>
#endif

#include "active_sessions.h"
#include "clients.h"
#include "compat.h"
#include "accumulate.h"
#include "settings.h"
#include "history.h"
#include "lock_waits.h"
#include "miscadmin.h"
#include "persist.h"
#include "pools.h"
#include "pooler_clients.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "recorder.h"
#include "sampler.h"
#include "session_slot.h"
#include "statements.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/shmem.h"
#include "tcop/tcopprot.h"
#include "tcpinfo.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "wait_events.h"
#include "windows.h"

#define SAMPLER_RESTART_S		1

/*
 * At most this many questions to the kernel per sample_interval; the next tick
 * goes on where they were used up.  One takes 1 to 2 us, so putting many into one
 * message saves little, and a dump of all connections costs more than some
 * hundred questions even where there are few (it walks the kernel's table).
 */
#define DIAG_QUERIES_PER_INTERVAL	32

/*
 * So many sessions ahead memory is asked for; what points there, twice as many.
 * With 8 of them, a thousand executing sessions cost a tenth more.
 */
#define PREFETCH_AHEAD			3

/* For a snapshot more of it is needed, and more is done with it. */
#define SNAPSHOT_AHEAD			2

/*
 * So often quiet sessions are looked at: this far apart, and where there are many
 * of them, so much for each, up to the longest time.
 */
#define QUIET_LOOK_NS			(250 * NS_PER_MS)
#define QUIET_LOOK_EACH_NS		(100 * NS_PER_US)
#define QUIET_LOOK_LONGEST_NS	NS_PER_S

/*
 * Where more sessions than this are active, the interval between ticks is as much
 * longer, up to the longest.  A server that executes a thousand statements at
 * once has no processor to spare, and many samples of what they wait for.
 */
#define SESSIONS_PER_INTERVAL	400
#define LONGEST_INTERVAL_NS		(100 * NS_PER_MS)

/*
 * A tick may be late by half an interval, but by no more than this: it is to coincide
 * with one of the kernel's own, which are up to 10 ms apart.
 */
#define LATEST_NS				(10 * NS_PER_MS)

/* Longer than this the sampler does not sleep. */
#define LONGEST_SLEEP_NS		NS_PER_S

static SamplerStatus *status = NULL;

/* The few fields that a sample needs, consistent among each other. */
typedef struct Peek
{
	uint64		session;
	uint32		generation;
	uint64		exchange_number;
	LedgerPhase phase;
	LedgerWaitTerms wait;
	int64		since;
	int64		exec;			/* all execution before that */
	int64		counted_from;	/* nothing before this counts */
	PGPROC	   *proc;
	uint32		changecount;	/* nothing is published that is not in here */
} Peek;

/* What the sampler remembers of a slot, in memory of its own. */
typedef struct SlotNotes
{
	Peek		view;			/* of the session that was sampled last, ... */
	int64		sampled_at;		/* ... at this moment */
	bool		quiet;			/* and it has been so since then */

	uint64		gone_session;	/* of this one the kernel knew no connection: */
	TcpBackoff	gone;
} SlotNotes;

/* What one tick knows. */
typedef struct Tick
{
	int64		now;
	int64		before;			/* the tick before, made or left out */
	int64		interval;
	int64		last;			/* when the session in question was sampled
								 * before, or would have been */
	int64		quiet_look_due; /* when quiet sessions are to be looked at */
	int		   *slots;			/* those to look at */
	int			active;			/* so many were, at the latest tick */
	int			first;			/* slot to begin with */
	int			next_first;		/* ... at the next tick */
	int			diag_queries;	/* to the kernel, in this tick ... */
	int			diag_queries_most;	/* ... of so many */
	uint32		generation;		/* of resets */
	TcpDiag		diag;
	SlotNotes  *notes;			/* one for each slot */
	int64		clock_offset;	/* between the clocks, see clock.h */
} Tick;

Size
sampler_shmem_size(void)
{
	return MAXALIGN(sizeof(SamplerStatus));
}

void
sampler_shmem_init(void)
{
	bool		found;

	status = ShmemInitStruct("pgnetlat sampler", sampler_shmem_size(), &found);
	if (!found)
		memset(status, 0, sizeof(*status));
}

void
sampler_get_status(SamplerStatus *copy)
{
	*copy = *(volatile SamplerStatus *) status;
}

void
sampler_register(void)
{
	BackgroundWorker worker;

	memset(&worker, 0, sizeof(worker));
	strlcpy(worker.bgw_name, "pgnetlat sampler", sizeof(worker.bgw_name));
	strlcpy(worker.bgw_type, "pgnetlat sampler", sizeof(worker.bgw_type));
	strlcpy(worker.bgw_library_name, "pgnetlat", sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, "pgnetlat_sampler_main",
			sizeof(worker.bgw_function_name));
	/* connected to no database, only to be seen in pg_stat_activity */
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_ConsistentState;
	worker.bgw_restart_time = SAMPLER_RESTART_S;
	RegisterBackgroundWorker(&worker);
}

/* False if the slot is free, or its owner is just writing: next time then. */
static bool
peek(SessionSlot *slot, Peek *view)
{
	for (int i = 0; i < 3; i++)
	{
		uint32		changecount = seqlock_read_begin(&slot->lock);
		SlotPublished *published = &slot->published;

		if (published->session == 0)
			return false;
		view->session = published->session;
		view->generation = published->generation;
		view->exchange_number = published->ledger.exchange_number;
		view->phase = published->ledger.phase;
		view->wait = published->ledger.wait;
		view->since = published->ledger.since;
		view->exec = published->ledger.totals.exec + published->ledger.exec;
		view->counted_from = published->ledger.counted_from;
		view->proc = published->proc;
		view->changecount = changecount;
		if (seqlock_read_valid(&slot->lock, changecount))
			return true;
	}
	return false;
}

/* Has the session published nothing since? */
static inline bool
is_unmoved(const SessionSlot *slot, const Peek *view)
{
	return view->session != 0 && seqlock_count(&slot->lock) == view->changecount;
}

static inline uint32
wait_event_of(const PGPROC *proc)
{
	return *(const volatile uint32 *) &proc->wait_event_info;
}

static LedgerState
state_of(const Peek *view, uint32 event, int64 now)
{
	switch (view->phase)
	{
		case LEDGER_OFF:
			return LEDGER_STATE_DISABLED;
		case LEDGER_SENDING:
			return LEDGER_STATE_SENDING;
		case LEDGER_TURNING:
			return LEDGER_STATE_RECEIVING;
		case LEDGER_EXECUTING:
			return ledger_executing_state(slot_blocked_in(event));
		case LEDGER_WAITING:
			break;
	}
	/* not waiting for its client: a request was read, nothing sent yet */
	if (event != WAIT_EVENT_CLIENT_READ)
		return LEDGER_STATE_EXECUTING;
	if (view->wait.in_xact)
		return LEDGER_STATE_WAITING_IN_XACT;
	return now - view->since > view->wait.idle_threshold ?
		LEDGER_STATE_IDLE : LEDGER_STATE_WAITING;
}

/*
 * Begin to write what was seen of the session's exchange in progress; NULL if the
 * session is gone.
 */
static LedgerSampled *
sampled_begin(int index, const Peek *view, const Tick *tick)
{
	SlotSampled *sampled = slot_sampled_begin(index, view->session, tick->generation);

	if (sampled == NULL)
		return NULL;
	if (sampled->exchange_number != view->exchange_number)
	{
		memset(&sampled->ledger, 0, sizeof(sampled->ledger));
		sampled->exchange_number = view->exchange_number;
	}
	return &sampled->ledger;
}

/* In an exchange: is the backend blocked reading from its client? */
static void
sample_exchange(int index, const Peek *view, LedgerState state, const Tick *tick)
{
	LedgerSampled *ledger;

	/* blocked in sending what nobody thought could block: no news */
	if (state == LEDGER_STATE_SENDING || (ledger = sampled_begin(index, view, tick)) == NULL)
		return;
	if (state == LEDGER_STATE_RECEIVING)
	{
		int64		from = Max(tick->last, view->since);

		from = Max(from, ledger->visited);
		from = Max(from, slot_control->reset_at);
		if (tick->now > from)
			ledger->recv += tick->now - from;
	}
	ledger->visited = tick->now;
	slot_sampled_end(index);
}

/*
 * The session executes, as it did since this moment: what of?  And which statement?
 * The time since it was sampled last is booked, as far as there is execution that is
 * not.
 */
static void
sample_execution(int index, const Peek *view, int64 since, uint32 event, const Tick *tick)
{
	ExecPart	part = exec_samples_part(event);
	int64		from = Max(since, Max(view->counted_from, slot_control->reset_at));
	int64		exec = Max(tick->now - from, 0);
	SlotSampled *sampled = slot_sampled_begin(index, view->session, tick->generation);
	int64		time;
	ExecRecord	record;

	if (sampled == NULL)
		return;
	/* a reset that the session has not applied */
	if (view->generation == tick->generation)
		exec += view->exec;
	if (sampled->exchange_number == view->exchange_number)
		exec -= Min(sampled->ledger.recv, exec);
	time = Min(tick->now - tick->last, exec - exec_parts_sum(sampled->exec_part));
	time = Max(time, 0);
	sampled->exec_part[part] += time;
	slot_sampled_end(index);

	(void) recorder_in_progress(index, &record);
	if (!exec_samples_note(index, &record, part, time))
	{
		accumulate_session(index);
		(void) exec_samples_note(index, &record, part, time);
	}
}

/* The session's connection; false if the session has moved on since "view". */
static bool
peek_connection(SessionSlot *slot, const Peek *view, TcpEndpoints *endpoints,
				TcpInfo *published_info)
{
	uint32		changecount = seqlock_read_begin(&slot->lock);
	SlotPublished *published = &slot->published;
	bool		same = published->session == view->session &&
		published->ledger.exchange_number == view->exchange_number &&
		published->ledger.phase == view->phase &&
		published->ledger.since == view->since;

	*endpoints = published->endpoints;
	*published_info = published->tcp;
	return seqlock_read_valid(&slot->lock, changecount) && same;
}

/*
 * Ask the kernel about the connection of the session in a slot.  False if it
 * was not asked, or did not reply.
 */
static bool
ask_about_connection(int index, const Peek *view, const TcpEndpoints *endpoints,
					 const TcpInfo *known, Tick *tick, TcpInfo *info)
{
	SlotNotes  *notes = &tick->notes[index];
	int64		now = clock_now();
	TcpReply	reply;

	if (notes->gone_session != view->session)
	{
		notes->gone_session = view->session;
		tcpstate_got_reply(&notes->gone);
	}
	if (!tcpstate_may_ask(&tick->diag.backoff, now) ||
		!tcpstate_may_ask(&notes->gone, now))
		return false;
	if (tick->diag_queries >= tick->diag_queries_most)
	{
		/* here the next tick begins */
		if (tick->next_first < 0)
			tick->next_first = index;
		return false;
	}
	tick->diag_queries++;
	reply = tcpinfo_diag_query(&tick->diag, endpoints, known, now, info);
	if (reply == TCP_REPLY_VALID)
		tcpstate_got_reply(&notes->gone);
	else if (reply == TCP_REPLY_GONE)
		tcpstate_was_refused(&notes->gone, now);
	return reply == TCP_REPLY_VALID;
}

/*
 * Blocked in sending, or the last response is still leaving the kernel: ask
 * the kernel how it gets on.
 */
static void
sample_connection(int index, const Peek *view, Tick *tick)
{
	SessionSlot *slot = slot_get(index);
	TcpEndpoints endpoints;
	TcpInfo		before;
	TcpInfo		known;
	TcpInfo		info;
	LedgerSampled *ledger;

	if (!peek_connection(slot, view, &endpoints, &before) || endpoints.family == 0)
		return;
	known = before;
	if (slot->sampled.tcp_session == view->session)
		tcpstate_latest(&known, &slot->sampled.tcp);
	if (!ask_about_connection(index, view, &endpoints, &known, tick, &info))
		return;

	ledger = sampled_begin(index, view, tick);
	if (ledger == NULL)
		return;
	slot->sampled.tcp = info;
	slot->sampled.tcp_session = view->session;
	if (before.measured_at != 0)
	{
		int64		closed = Max(info.rwnd_limited - before.rwnd_limited, 0);

		if (view->phase == LEDGER_SENDING)
		{
			/* what has been shown of this sending stays */
			ledger->send_client = ledger->send_began == view->since ?
				Max(ledger->send_client, closed) : closed;
			ledger->send_began = view->since;
		}
		else if (info.unsent == 0)
		{
			ledger->drained = true;
			ledger->drain.total = Max(info.busy - before.busy, 0);
			ledger->drain.client = closed;
		}
	}
	slot_sampled_end(index);
}

/* ---------------------------------------------------------------------------
 * Quiet sessions
 * ---------------------------------------------------------------------------
 */

/* Is a session that was quiet still so?  Two words show it. */
static bool
waits_on(const SessionSlot *slot, const Peek *view)
{
	return is_unmoved(slot, view) &&
		(view->phase == LEDGER_OFF || wait_event_of(view->proc) == WAIT_EVENT_CLIENT_READ);
}

/* How many samples such a time stands for. */
static uint32
samples_in(const Tick *tick, int64 time)
{
	return Max((time + tick->interval / 2) / tick->interval, 1);
}

/* A session that was quiet when it was looked at last has been so up to "to". */
static void
add_quiet_wait(int index, SlotNotes *notes, int64 to, const Tick *tick)
{
	int64		from = notes->sampled_at;
	const Peek *view = &notes->view;
	int64		idle_from = to;

	if (to <= from)
		return;
	notes->sampled_at = to;
	if (view->phase == LEDGER_OFF)
		return;
	if (!view->wait.in_xact)
		idle_from = Min(Max(view->since + view->wait.idle_threshold, from), to);
	if (wait_events_are_reset(index, view->session, view->generation))
		from = Max(from, tick->before);
	if (idle_from > from)
		wait_events_add(index, view->session, view->generation,
						view->wait.in_xact ? LEDGER_STATE_WAITING_IN_XACT : LEDGER_STATE_WAITING,
						WAIT_EVENT_CLIENT_READ, samples_in(tick, idle_from - from),
						idle_from - from);
	from = Max(from, idle_from);
	if (to > from)
		wait_events_add(index, view->session, view->generation, LEDGER_STATE_IDLE,
						WAIT_EVENT_CLIENT_READ, samples_in(tick, to - from), to - from);
}

/*
 * Look at a session that was quiet.  If it is not any more, it is sampled with
 * the active ones.
 */
static void
look_at_quiet(int index, const Tick *tick)
{
	SlotNotes  *notes = &tick->notes[index];

	if (notes->quiet && waits_on(slot_get(index), &notes->view))
		add_quiet_wait(index, notes, tick->now, tick);
	else
		active_enter(index);
}

/*
 * What is looked at lies in several places for each session, and most of a tick
 * would be spent waiting for memory: so that is asked for some sessions ahead.
 */
static void
prefetch_session(int index, const Tick *tick)
{
	SessionSlot *slot = slot_get(index);
	const SlotNotes *notes = &tick->notes[index];

	__builtin_prefetch(&slot->lock);
	if (notes->view.proc)
		__builtin_prefetch(&notes->view.proc->wait_event_info);
	__builtin_prefetch(&notes->view);
	__builtin_prefetch(&notes->sampled_at, 1);
	__builtin_prefetch(&slot->sampled_lock, 1);
	wait_events_prefetch(index);
	exec_samples_prefetch(index);
}

/* The session at "place" in the list is looked at: ask for those behind it. */
static inline void
prefetch_behind(int place, int count, const Tick *tick)
{
	if (place + 2 * PREFETCH_AHEAD < count)
		__builtin_prefetch(&tick->notes[tick->slots[place + 2 * PREFETCH_AHEAD]], 1);
	if (place + PREFETCH_AHEAD < count)
		prefetch_session(tick->slots[place + PREFETCH_AHEAD], tick);
}

static void
look_at_quiet_if_due(Tick *tick)
{
	int			count;

	if (tick->now < tick->quiet_look_due)
		return;
	count = active_list_quiet(tick->slots);
	tick->quiet_look_due = tick->now +
		Min(Max(QUIET_LOOK_NS, count * QUIET_LOOK_EACH_NS), QUIET_LOOK_LONGEST_NS);
	for (int i = 0; i < count; i++)
	{
		prefetch_behind(i, count, tick);
		look_at_quiet(tick->slots[i], tick);
	}
}

/*
 * The latest tick that was left out before "at"; of none that was, the tick
 * before this one.
 */
static int64
tick_left_out(const Tick *tick, int64 at)
{
	int64		count;

	if (at >= tick->before)
		return tick->before;
	count = (tick->before - at + tick->interval - 1) / tick->interval;
	return tick->before - count * tick->interval;
}

/*
 * For how long does a sample of this session count?  If it was quiet, from the
 * tick before what ended that; then what was before is booked here.
 */
static int64
sampled_before(int index, const Peek *view, uint32 event, const Tick *tick)
{
	SlotNotes  *notes = &tick->notes[index];
	int64		began = view->since;

	if (notes->view.session != view->session)
		return tick->before;
	if (!notes->quiet)
		return notes->sampled_at;
	if (view->phase == LEDGER_WAITING && event != WAIT_EVENT_CLIENT_READ &&
		!slot_request_began(index, &began))
		began = tick->now;
	add_quiet_wait(index, notes, tick_left_out(tick, began), tick);
	return notes->sampled_at;
}

/* Has the session's response left the kernel, as far as that is known? */
static bool
has_drained(const SessionSlot *slot, const Peek *view)
{
	return !view->wait.draining ||
		(slot->sampled.session == view->session &&
		 slot->sampled.exchange_number == view->exchange_number &&
		 slot->sampled.ledger.drained);
}

/* Will the session announce its next exchange? */
static bool
is_quiet(const SessionSlot *slot, const Peek *view, uint32 event, int64 now)
{
	if (view->phase == LEDGER_OFF)
		return true;
	return view->phase == LEDGER_WAITING && event == WAIT_EVENT_CLIENT_READ &&
		now - view->since > QUIET_AFTER_NS + view->wait.rtt && has_drained(slot, view);
}

/* From now on the session is looked at only now and then, if it stays quiet. */
static void
leave_alone(int index, SlotNotes *notes)
{
	notes->quiet = true;
	active_leave(index);
	if (!waits_on(slot_get(index), &notes->view))
		active_enter(index);
}

/* ---------------------------------------------------------------------------
 * Active sessions
 * ---------------------------------------------------------------------------
 */

/* There is no session in a slot that should have one; or has it just come? */
static void
leave_empty(int index)
{
	SessionSlot *slot = slot_get(index);

	active_leave(index);
	if (*(volatile uint64 *) &slot->published.session != 0)
		active_enter(index);
}

static void
sample_active(int index, const Peek *view, uint32 event, Tick *tick)
{
	SessionSlot *slot = slot_get(index);
	LedgerState state = state_of(view, event, tick->now);
	int64		began;

	pools_see(index, view->session, ledger_state_is_busy(state));
	if (slot_waits_for_lock(event))
		lock_waits_note(index);
	if (view->phase == LEDGER_EXECUTING)
	{
		sample_exchange(index, view, state, tick);
		if (state == LEDGER_STATE_EXECUTING)
			sample_execution(index, view, view->since, event, tick);
	}
	else if (view->phase == LEDGER_SENDING)
	{
		if (view->since < tick->last)
			sample_connection(index, view, tick);
	}
	else if (view->phase == LEDGER_WAITING && unlikely(!has_drained(slot, view)))
		sample_connection(index, view, tick);
	/* such as one that waits for a lock while its query is analyzed */
	else if (view->phase == LEDGER_WAITING && state == LEDGER_STATE_EXECUTING &&
			 slot_request_began(index, &began))
		sample_execution(index, view, began, event, tick);

	/* behind the write section above: its barrier waits for what is written */
	wait_events_add(index, view->session, view->generation, state, event, 1,
					tick->now - tick->last);
}

static void
sample_session(int index, Tick *tick)
{
	SessionSlot *slot = slot_get(index);
	SlotNotes  *notes = &tick->notes[index];
	Peek		view;
	uint32		event;

	view = notes->view;
	if (!is_unmoved(slot, &view))
	{
		if (slot->published.session == 0)
			leave_empty(index);
		if (!peek(slot, &view))
			return;
	}
	event = wait_event_of(view.proc);
	tick->last = sampled_before(index, &view, event, tick);
	if (view.phase != LEDGER_OFF)
		sample_active(index, &view, event, tick);
	else
		pools_see(index, view.session, false);
	notes->view = view;
	notes->sampled_at = tick->now;
	notes->quiet = false;
	if (is_quiet(slot, &view, event, tick->now))
		leave_alone(index, notes);
}

static void
sample_range(int from, int to, int count, Tick *tick)
{
	for (int i = from; i < to; i++)
	{
		prefetch_behind(i, count, tick);
		sample_session(tick->slots[i], tick);
	}
}

/* How far apart are ticks, with so many active sessions? */
static int64
interval_for(int active)
{
	int64		shortest = pgnetlat_sample_interval * NS_PER_MS;

	return Max(Min(shortest * active / SESSIONS_PER_INTERVAL, LONGEST_INTERVAL_NS),
			   shortest);
}

/* Whom the questions did not reach this time comes first the next time. */
static void
sample_all(Tick *tick)
{
	int			count;
	int			first = 0;

	look_at_quiet_if_due(tick);
	tick->generation = slot_generation();
	count = active_list(tick->slots);
	tick->active = count;
	tick->diag_queries = 0;
	tick->diag_queries_most = DIAG_QUERIES_PER_INTERVAL * interval_for(count) /
		(pgnetlat_sample_interval * NS_PER_MS);
	tick->next_first = -1;
	while (first < count && tick->slots[first] < tick->first)
		first++;
	sample_range(first, count, count, tick);
	sample_range(0, first, count, tick);
	if (tick->next_first >= 0)
		tick->first = tick->next_first;
}

/* As prefetch_behind(): most of the sessions have not been touched for long. */
static void
prefetch_for_snapshot(int slot)
{
	slot_prefetch(slot);
	windows_prefetch(slot);
	accumulate_prefetch(slot);
}

/*
 * All sessions in one look, so that windows over them begin together; those
 * over groups and statements with what the same sessions have accumulated into
 * them.
 */
static void
take_snapshots_if_due(const Tick *tick)
{
	SnapshotLevels due = windows_due(tick->now);
	SlotObservation observation;
	int			count;

	if (due == 0)
		return;
	count = active_list_attached(tick->slots);
	for (int i = 0; i < count; i++)
	{
		int			slot = tick->slots[i];

		if (i + SNAPSHOT_AHEAD < count)
			prefetch_for_snapshot(tick->slots[i + SNAPSHOT_AHEAD]);
		if (accumulate_and_observe(slot, &observation))
			windows_add(slot, &observation, due);
	}
	windows_were_taken(count);
	clients_take_snapshots(due);
	pools_take_snapshots(due);
	statements_take_snapshots(due);
}

static void
rotate_history_if_due(void)
{
	TimestampTz now = GetCurrentTimestamp();

	if (!history_is_due(now))
		return;
	accumulate_all();
	history_rotate(now);
}

/* One round.  An error costs this round only. */
static void
tick_once(Tick *tick)
{
	MemoryContext context = CurrentMemoryContext;

	tick->now = clock_now();
	PG_TRY();
	{
		if (clock_refresh_offset(&tick->clock_offset))
			slot_control->clock_steps++;
		sample_all(tick);
		pools_end_tick(tick->before, tick->now);
		lock_waits_tick(tick->now, tick->before, tick->clock_offset);
		pooler_clients_tick(tick->now);
		take_snapshots_if_due(tick);
		rotate_history_if_due();
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		EmitErrorReport();
		FlushErrorState();
		LWLockReleaseAll();
		status->errors++;
	}
	PG_END_TRY();
	tick->before = tick->now;
	status->ticks++;
	status->last_tick = GetCurrentTimestamp();
}

/*
 * When nothing is to be done but what the clock asks for: until when may the
 * sampler sleep?
 */
static int64
longest_sleep(const Tick *tick)
{
	int64		until = tick->now + LONGEST_SLEEP_NS;

	if (!active_nobody_attached())
		until = Min(until, tick->quiet_look_due);
	until = Min(until, windows_next_due());
	until = Min(until, clock_from_timestamp(tick->clock_offset, history_next_due()));
	return until;
}

/* The first tick of the grid that is not before "at"; "due" is one of them. */
static int64
tick_at_or_after(const Tick *tick, int64 due, int64 at)
{
	if (at <= due)
		return due;
	return due + (at - due + tick->interval - 1) / tick->interval * tick->interval;
}

/*
 * How late may the kernel wake us up?  0: as late as everybody else.
 *
 * A timer of our own interrupts whoever is executing, and where no processor is free
 * that costs many times what we do then: 1 to 1.5 % of the throughput of two busy
 * processors at 100 ticks a second, whatever is done in them.  At the kernel's own
 * tick, which interrupts anyway, it is a quarter of that.  (bench/throughput with 8
 * clients shows it: "sampler asleep" beside the same while it is awake.)
 */
static void
allow_to_be_late(int64 ns)
{
#if defined(HAVE_SYS_PRCTL_H) && defined(PR_SET_TIMERSLACK)
	(void) prctl(PR_SET_TIMERSLACK, (unsigned long) ns, 0, 0, 0);
#endif
}

static void
wait_until(int64 until, uint32 wait_event)
{
	int64		timeout = (until - clock_now() + NS_PER_MS - 1) / NS_PER_MS;

	allow_to_be_late(Min(pgnetlat_sample_interval * NS_PER_MS / 2, LATEST_NS));
	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
					 Max(timeout, 0), wait_event);
	allow_to_be_late(0);
	ResetLatch(MyLatch);
}

/*
 * Wait, or if nobody is active sleep, until the next tick is due at "due", or
 * something else must be seen to: is it due?  Ticks missed are not made up for.
 */
static bool
wait_for_next_tick(Tick *tick, int64 *due, uint32 wait_event)
{
	int64		now = clock_now();
	int64		sleep_until;

	tick->interval = interval_for(tick->active);
	/* the interval has become shorter: a new grid */
	if (*due > now + tick->interval)
		*due = now + tick->interval;
	*due = tick_at_or_after(tick, *due, now);
	sleep_until = tick_at_or_after(tick, *due, longest_sleep(tick));
	if (sleep_until > *due && active_fall_asleep())
	{
		wait_until(sleep_until, wait_event);
		active_wake_up();
		*due = tick_at_or_after(tick, *due, clock_now());
		/* woken before that, or at it */
		*due = Min(*due, sleep_until);
		tick->before = Max(tick->before, *due - tick->interval);
	}
	else
		wait_until(*due, wait_event);
	return clock_now() >= *due;
}

static void
sampler_exit(int code, Datum arg)
{
	active_sampler_ends();
	pools_sampler_ends();
	if (status->pid == MyProcPid)
		status->pid = 0;
}

static void
sampler_setup(void)
{
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);
	pgstat_report_appname("pgnetlat sampler");
	pgstat_report_activity(STATE_IDLE, NULL);

	persist_server_is_up();
	status->pid = MyProcPid;
	status->started = GetCurrentTimestamp();
	active_sampler_starts();
	pools_sampler_starts();
	before_shmem_exit(sampler_exit, (Datum) 0);
}

static void
allocate_notes(Tick *tick)
{
	tick->notes = MemoryContextAllocZero(TopMemoryContext, slot_count() * sizeof(SlotNotes));
	tick->slots = MemoryContextAlloc(TopMemoryContext, slot_count() * sizeof(int));
}

void
pgnetlat_sampler_main(Datum arg)
{
	Tick		tick = {0};
	uint32		wait_event;
	int64		due;
	int64		cpu_time_before;
	bool		is_due;

	sampler_setup();
	wait_event = WaitEventExtensionNew("PgnetlatSamplerMain");
	cpu_time_before = status->cpu_time;
	tcpinfo_diag_init(&tick.diag);
	allocate_notes(&tick);
	tick.before = due = clock_now();
	tick.clock_offset = clock_measure_offset();

	while (!ShutdownRequestPending)
	{
		is_due = wait_for_next_tick(&tick, &due, wait_event);
		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}
		if (ShutdownRequestPending)
			break;
		if (!is_due)
			continue;
		tick_once(&tick);
		due += tick.interval;
		status->cpu_time = cpu_time_before + clock_read(CLOCK_PROCESS_CPUTIME_ID);
	}

	/* not 0: the postmaster would not start it again */
	proc_exit(1);
}
