/*-------------------------------------------------------------------------
 *
 * sample_sessions.c
 *	  Samples what sessions are doing.
 *
 * A quiet session is looked at only now and then.  When it is found doing
 * something, it had been waiting until that began, which is known.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "accumulate.h"
#include "active_sessions.h"
#include "lock_waits.h"
#include "pools.h"
#include "process.h"
#include "sample_sessions.h"
#include "sample_statements.h"
#include "utils/memutils.h"
#include "wait_events.h"

/* How often a long execution is attended to, and how many of them per tick. */
#define ATTEND_NS				NS_PER_S
#define ATTENDED_PER_TICK		16

/* Interval between looks at quiet sessions: this, or this much for each. */
#define QUIET_LOOK_NS			(250 * NS_PER_MS)
#define QUIET_LOOK_EACH_NS		(100 * NS_PER_US)

static Seen *all_seen = NULL;	/* by slot */
static int *slots = NULL;		/* slots to look at in this tick */
static int64 quiet_look_due = 0;
static int	attended = 0;		/* long executions, in this tick */

static inline uint32
wait_event_of(const PGPROC *proc)
{
	return *(const volatile uint32 *) &proc->wait_event_info;
}

/*
 * Copy what a session has published; false if the slot is free, or the session
 * is writing just now: then the next tick looks again.
 */
static bool
view_session(const SessionSlot *slot, SlotPublished *view, uint32 *changecount)
{
	for (int i = 0; i < 3; i++)
	{
		*changecount = seqlock_read_begin(&slot->lock);
		*view = slot->published;
		if (seqlock_read_valid(&slot->lock, *changecount))
			return view->session != 0;
	}
	return false;
}

/* Is the session still doing what it was seen doing, as far as is known? */
static inline bool
goes_on(int index, const Seen *seen, const Tick *tick)
{
	return seen->proc != NULL && seen->generation == tick->generation &&
		seqlock_count(&slot_get(index)->lock) == seen->doing.changecount &&
		wait_event_of(seen->proc) == seen->doing.event;
}

static LedgerState
state_of(const SlotPublished *view, uint32 event)
{
	switch (view->ledger.phase)
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
	/* not waiting for its client: a request was read, and nothing sent yet */
	if (event != WAIT_EVENT_CLIENT_READ)
		return LEDGER_STATE_EXECUTING;
	return view->ledger.wait.in_xact ? LEDGER_STATE_WAITING_IN_XACT : LEDGER_STATE_WAITING;
}

/* What a session that is seen like this has been doing since "from". */
static SlotDoing
doing_since(const SlotPublished *view, uint32 changecount, uint32 event, int64 from)
{
	SlotDoing	doing;

	doing.from = Max(from, slot_control->reset_at);
	doing.changecount = changecount;
	doing.event = event;
	doing.state = state_of(view, event);
	doing.part = doing.state == LEDGER_STATE_EXECUTING ? wait_event_part(event) :
		NUM_EXEC_PARTS;
	doing.idle_from = doing.state == LEDGER_STATE_WAITING ?
		view->ledger.since + view->ledger.wait.idle_threshold : PG_INT64_MAX;
	return doing;
}

/*
 * Begin to write what was seen of the session's exchange in progress, until
 * slot_sampled_end().  Returns NULL if the session is gone.
 */
LedgerSampled *
sampled_begin(int index, const SlotPublished *view, const Tick *tick)
{
	SlotSampled *sampled = slot_sampled_begin(index, view->session, tick->generation);

	if (sampled == NULL)
		return NULL;
	if (sampled->exchange_number != view->ledger.exchange_number)
	{
		memset(&sampled->ledger, 0, sizeof(sampled->ledger));
		sampled->exchange_number = view->ledger.exchange_number;
	}
	return &sampled->ledger;
}

/* ---------------------------------------------------------------------------
 * Booking
 * ---------------------------------------------------------------------------
 */

/* The session's execution since it was attached or reset, up to now. */
static int64
execution(int index, const Seen *seen, const SlotPublished *view, const SlotSampled *sampled,
		  const Tick *tick)
{
	int64		exec = view->generation == tick->generation ?
		view->ledger.totals.exec + view->ledger.exec : 0;
	int64		from = ledger_executes_from(&view->ledger);

	/* a request may have been read long ago and not be published yet */
	if (view->ledger.phase == LEDGER_EXECUTING ||
		(view->ledger.phase == LEDGER_WAITING && seen->view.ledger.phase == LEDGER_WAITING &&
		 slot_request_began(index, &from)))
	{
		from = Max(from, Max(view->ledger.counted_from, slot_control->reset_at));
		exec += Max(tick->now - from, 0);
	}
	if (view->ledger.phase != LEDGER_WAITING &&
		sampled->exchange_number == view->ledger.exchange_number)
		exec -= Min(sampled->ledger.recv, exec);
	return exec;
}

/*
 * Book what the session was seen doing until "next" began.  The time is booked
 * on a part of execution only as far as there is execution that is not booked
 * yet, so that a session with frequent short executions is seen in proportion.
 */
static void
book(int index, Seen *seen, const SlotPublished *view, const SlotDoing *next, const Tick *tick)
{
	SlotSampled *sampled = slot_sampled_begin(index, view->session, tick->generation);
	SlotDoing  *doing = &seen->doing;
	bool		same = seen->view.session == view->session &&
		seen->generation == tick->generation;
	int64		time = 0;

	if (sampled == NULL)
		return;
	if (same && doing->part != NUM_EXEC_PARTS)
		time = exec_parts_book(sampled->exec_part, execution(index, seen, view, sampled, tick),
							   doing->part, next->from - doing->from);
	if (same)
		wait_events_add(index, sampled, next->from, tick->interval);
	sampled->doing = *next;
	slot_sampled_end(index);

	sample_statement_book(index, seen, time, next->from);
	*doing = *next;
}

/*
 * In an exchange: the backend has been blocked reading from its client since
 * "from".
 */
static void
book_receiving(int index, const SlotPublished *view, int64 from, const Tick *tick)
{
	LedgerSampled *ledger = sampled_begin(index, view, tick);

	if (ledger == NULL)
		return;
	from = Max(Max(from, ledger_executes_from(&view->ledger)),
			   Max(ledger->visited, slot_control->reset_at));
	ledger->recv += Max(tick->now - from, 0);
	ledger->visited = tick->now;
	slot_sampled_end(index);
}

/* ---------------------------------------------------------------------------
 * A session that goes on
 * ---------------------------------------------------------------------------
 */

/* Has the session's response left the kernel, as far as is known? */
static bool
has_drained(const SessionSlot *slot, const SlotPublished *view)
{
	return !view->ledger.wait.draining ||
		(slot->sampled.session == view->session &&
		 slot->sampled.exchange_number == view->ledger.exchange_number &&
		 slot->sampled.ledger.drained);
}

/* Make a session quiet, unless it is doing something else by now. */
static void
make_quiet(int index, Seen *seen, const Tick *tick)
{
	seen->quiet = true;
	sample_statement_flush(seen, 0);
	active_leave(index);
	if (*(volatile uint64 *) &slot_get(index)->published.session != 0 &&
		!goes_on(index, seen, tick))
		active_enter(index);
}

/* Ask how long a process that may be waiting for a processor has done so. */
static void
sample_run_queue(int index, const Seen *seen, const Tick *tick)
{
	SlotSampled *sampled;
	RunQueue	run_queue;

	/* a wait for I/O may be over, but the process without a processor */
	if ((seen->doing.part != EXEC_CPU && seen->doing.part != EXEC_IO) ||
		!seen->view.run_queue_known ||
		!process_run_queue(seen->view.pid, &run_queue))
		return;
	sampled = slot_sampled_begin(index, seen->view.session, tick->generation);
	if (sampled == NULL)
		return;
	if (sampled->run_queue == 0 && seen->view.generation != tick->generation)
		sampled->run_queue_base = run_queue.time;
	sampled->run_queue = run_queue.time;
	slot_sampled_end(index);
}

/* Attend to a long execution. */
static void
attend_execution(int index, Seen *seen, Tick *tick)
{
	SlotDoing	doing = seen->doing;

	/* its record may have begun just after the exchange was published */
	if (!seen->record_is_sure)
	{
		sample_statement_find(index, seen, &seen->view);
		seen->record_is_sure = true;
		seen->due = seen->long_at;
		if (tick->now < seen->due)
			return;
	}
	if (attended++ >= ATTENDED_PER_TICK)
	{
		seen->due = tick->now + attended / ATTENDED_PER_TICK * tick->interval;
		return;
	}
	seen->due = seen->long_at = tick->now + ATTEND_NS;
	sample_run_queue(index, seen, tick);
	doing.from = tick->now;
	book(index, seen, &seen->view, &doing, tick);
	sample_statement_add_execution(index, seen, tick);
}

/* Attend to a session that goes on doing the same, and is due. */
static void
attend(int index, Seen *seen, Tick *tick)
{
	const SlotPublished *view = &seen->view;

	switch (seen->doing.state)
	{
		case LEDGER_STATE_EXECUTING:
			attend_execution(index, seen, tick);
			break;
		case LEDGER_STATE_RECEIVING:
			if (view->ledger.phase == LEDGER_EXECUTING)
				book_receiving(index, view, 0, tick);
			break;
		case LEDGER_STATE_SENDING:
			if (view->ledger.phase == LEDGER_SENDING)
				sample_connection(index, view, tick);
			break;
		default:
			if (!has_drained(slot_get(index), view))
				sample_connection(index, view, tick);
			else
				make_quiet(index, seen, tick);
	}
}

/* ---------------------------------------------------------------------------
 * A session that changes
 * ---------------------------------------------------------------------------
 */

/* The session has ended.  It did what it was seen doing until the last tick. */
static void
end_session(int index, Seen *seen, const Tick *tick)
{
	SlotDoing  *doing = &seen->doing;

	if (seen->generation == tick->generation)
	{
		sample_statement_book(index, seen, doing->part != NUM_EXEC_PARTS ?
							  tick->before - doing->from : 0, tick->before);
		sample_statement_flush(seen, 0);
	}
	sample_statement_forget(seen);
	doing->part = NUM_EXEC_PARTS;
}

/*
 * When did what the session is seen doing begin?  Until then it did what it
 * was seen doing before.  A sample stands for the time since the previous
 * tick, but the beginning of a lock wait is known.
 */
static int64
began_at(int index, const Seen *seen, const SlotPublished *view, uint32 event, const Tick *tick)
{
	bool		same = seen->view.session == view->session;
	int64		from = tick->before;
	int64		began = view->ledger.since;
	TimestampTz lock_since = 0;

	if (same && seen->quiet)
	{
		if (view->ledger.phase == LEDGER_WAITING && event != WAIT_EVENT_CLIENT_READ &&
			!slot_request_began(index, &began))
			began = tick->now;
		from = Min(from, began);
	}
	if (slot_waits_for_lock(event))
		lock_since = (TimestampTz) pg_atomic_read_u64(&view->proc->waitStart);
	if (lock_since != 0)
		from = Min(from, clock_from_timestamp(view->clock_offset, lock_since));
	return same ? Max(from, seen->doing.from) : from;
}

/*
 * Is the exchange in progress the one that was seen?  While it executes, its wait event
 * may change at each tick.
 */
static bool
goes_on_executing(const Seen *seen, const SlotPublished *view)
{
	return seen->view.session == view->session &&
		seen->view.ledger.exchange_number == view->ledger.exchange_number &&
		(seen->doing.state == LEDGER_STATE_EXECUTING ||
		 seen->doing.state == LEDGER_STATE_SENDING ||
		 seen->doing.state == LEDGER_STATE_RECEIVING);
}

static void
see_change(int index, Seen *seen, const SlotPublished *view, uint32 changecount, Tick *tick)
{
	uint32		event = wait_event_of(view->proc);
	SlotDoing	doing = doing_since(view, changecount, event,
									began_at(index, seen, view, event, tick));

	if (!goes_on_executing(seen, view))
		seen->long_at = tick->now + ATTEND_NS;
	if (seen->view.session != view->session)
		end_session(index, seen, tick);
	else if (seen->generation != tick->generation)
		sample_statement_forget(seen);
	book(index, seen, view, &doing, tick);
	if (seen->flush_at != 0 && tick->now >= seen->flush_at)
		sample_statement_flush(seen, 0);
	if (doing.state == LEDGER_STATE_EXECUTING)
		sample_statement_find(index, seen, view);
	if (doing.state == LEDGER_STATE_RECEIVING && view->ledger.phase == LEDGER_EXECUTING)
		book_receiving(index, view, doing.from, tick);
	seen->proc = view->proc;
	seen->doing = doing;
	seen->generation = tick->generation;
	seen->quiet = false;
	seen->record_is_sure = false;
	seen->view = *view;
	seen->due = view->ledger.phase != LEDGER_WAITING || view->ledger.wait.draining ||
		doing.state == LEDGER_STATE_EXECUTING ? 0 :
		view->ledger.since + view->ledger.wait.rtt + QUIET_AFTER_NS;

	/*
	 * leave a statement's record and the first look at a send to the next
	 * tick
	 */
	if (doing.state == LEDGER_STATE_EXECUTING ? tick->now >= seen->long_at :
		doing.state != LEDGER_STATE_RECEIVING && doing.state != LEDGER_STATE_SENDING &&
		tick->now >= seen->due)
		attend(index, seen, tick);
}

/* Tell the session's pools whether it is busy. */
static void
note_if_busy(int index, const Seen *seen)
{
	bool		busy = ledger_state_is_busy(seen->doing.state);

	if (likely(pools_saw_busy(index) == busy))
		return;
	accumulate_begin(index);
	pools_see(index, seen->view.session, busy);
	accumulate_end(index);
}

static void
sample_session(int index, Tick *tick)
{
	SessionSlot *slot = slot_get(index);
	Seen	   *seen = &all_seen[index];
	SlotPublished view;
	uint32		changecount;

	if (!goes_on(index, seen, tick))
	{
		if (slot->published.session == 0)
		{
			end_session(index, seen, tick);
			seen->proc = NULL;
			make_quiet(index, seen, tick);
		}
		if (!view_session(slot, &view, &changecount))
			return;
		see_change(index, seen, &view, changecount, tick);
	}
	else if (tick->now >= seen->due)
		attend(index, seen, tick);
	note_if_busy(index, seen);
	if (slot_waits_for_lock(seen->doing.event))
		lock_waits_note(index);
}

/* ---------------------------------------------------------------------------
 * A tick
 * ---------------------------------------------------------------------------
 */

/* Sample quiet sessions with the active ones if they have become active. */
static void
look_at_quiet(Tick *tick)
{
	int			count = 0;

	for (int i = 0; i < slot_count(); i++)
	{
		if (active_is(i) || slot_get(i)->published.session == 0)
			continue;
		count++;
		if (goes_on(i, &all_seen[i], tick))
			sample_acknowledgement(i, &all_seen[i].view, tick);
		else
			active_enter(i);
	}
	quiet_look_due = tick->now + Max(QUIET_LOOK_NS, count * QUIET_LOOK_EACH_NS);
}

/* When to look at quiet sessions next. */
int64
sample_sessions_next_due(void)
{
	return quiet_look_due;
}

void
sample_sessions(Tick *tick)
{
	tick->generation = slot_control->generation;
	if (tick->now >= quiet_look_due)
		look_at_quiet(tick);
	tick->active = active_list(slots);
	attended = 0;
	sample_connections_begin_tick(tick);
	for (int i = 0; i < tick->active; i++)
		sample_session(slots[i], tick);
	slot_control->tick_interval = tick->interval;
	pg_write_barrier();
	slot_control->last_tick = tick->now;
}

/*
 * Start where a previous sampler stopped: what it saw sessions doing lasts
 * until now.
 */
void
sample_sessions_init(void)
{
	all_seen = MemoryContextAllocZero(TopMemoryContext, slot_count() * sizeof(Seen));
	slots = MemoryContextAlloc(TopMemoryContext, slot_count() * sizeof(int));
	for (int i = 0; i < slot_count(); i++)
	{
		const SlotSampled *sampled = &slot_get(i)->sampled;

		if (sampled->doing.from == 0)
			continue;
		all_seen[i].view.session = sampled->session;
		all_seen[i].generation = sampled->generation;
		all_seen[i].doing = sampled->doing;
	}
}
