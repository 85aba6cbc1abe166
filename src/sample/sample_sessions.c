/*-------------------------------------------------------------------------
 *
 * sample_sessions.c
 *	  See sample_sessions.h.
 *
 * A session that was quiet is looked at only now and then.  If something else is
 * found, it had waited until what it does now began, which is known.
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
#include "recorder.h"
#include "sample_sessions.h"
#include "settings.h"
#include "statements.h"
#include "utils/memutils.h"
#include "wait_events.h"

/* Who executes for long is attended to so often, but only so many in a tick. */
#define ATTEND_NS				NS_PER_S
#define ATTENDED_PER_TICK		16

/* For so long what was sampled of a statement is kept here, at most. */
#define STATEMENT_LAG_NS		(250 * NS_PER_MS)

/*
 * So often quiet sessions are looked at: this far apart, and where there are many
 * of them, so much for each.
 */
#define QUIET_LOOK_NS			(250 * NS_PER_MS)
#define QUIET_LOOK_EACH_NS		(100 * NS_PER_US)

/* What the worker remembers of a session. */
typedef struct Seen
{
	/* looked at in each tick: close together */
	PGPROC	   *proc;			/* NULL: none has been seen */
	SlotDoing	doing;
	uint32		generation;		/* of resets */
	bool		quiet;			/* looked at now and then */
	bool		recorded;		/* the record is of what it executes */
	bool		record_is_sure; /* it has been looked for twice */
	int64		due;			/* when it is to be attended to */

	SlotPublished view;
	uint64		record;			/* number of the one in progress */
	StatementKey statement;		/* of it these parts were sampled: */
	int64		part[NUM_EXEC_PARTS];
	int64		unplaced[NUM_EXEC_PARTS];	/* of a record that was not begun */
	int64		flush_at;		/* when they are to be in its entry; 0: there
								 * are none */
} Seen;

static Seen *all_seen = NULL;	/* by slot */
static int *slots = NULL;		/* those to look at */
static int64 quiet_look_due = 0;
static int	attended = 0;		/* in this tick */

static inline uint32
wait_event_of(const PGPROC *proc)
{
	return *(const volatile uint32 *) &proc->wait_event_info;
}

/* False if the slot is free, or its owner is just writing: next time then. */
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

/* Does the session still do what it was seen doing, as far as anybody can tell? */
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
	/* not waiting for its client: a request was read, nothing sent yet */
	if (event != WAIT_EVENT_CLIENT_READ)
		return LEDGER_STATE_EXECUTING;
	return view->ledger.wait.in_xact ? LEDGER_STATE_WAITING_IN_XACT : LEDGER_STATE_WAITING;
}

/* What a session of which this is seen has been doing since then. */
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
 * slot_sampled_end(); NULL if the session is gone.
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
 * Statements
 * ---------------------------------------------------------------------------
 */

/* Add to the statement's entry what was sampled, and so much of its execution. */
static void
flush_statement(Seen *seen, int64 exec)
{
	if (seen->flush_at == 0 && exec == 0)
		return;
	statements_add_sampled(&seen->statement, exec, seen->part);
	memset(seen->part, 0, sizeof(seen->part));
	seen->flush_at = 0;
}

/* So much time of what was seen was the statement's of the record in progress. */
static void
book_statement(int index, Seen *seen, int64 time)
{
	FlightRecord record;
	StatementKey key;

	if (!seen->recorded)
		return;
	seen->unplaced[seen->doing.part] += time;
	if (!recorder_read(index, seen->record, &record))
		return;
	key.queryid = record.queryid;
	key.userid = record.queryid != 0 ? record.userid : seen->view.userid;
	key.dbid = seen->view.datid;
	if (memcmp(&key, &seen->statement, sizeof(key)) != 0)
		flush_statement(seen, 0);
	seen->statement = key;
	for (int i = 0; i < NUM_EXEC_PARTS; i++)
		seen->part[i] += seen->unplaced[i];
	memset(seen->unplaced, 0, sizeof(seen->unplaced));
	if (seen->flush_at == 0)
		seen->flush_at = seen->doing.from + STATEMENT_LAG_NS;
}

/*
 * Which record does the session write?  What it executes is not recorded, if that one
 * is older.
 */
static void
find_record(int index, Seen *seen, const SlotPublished *view)
{
	FlightRecord record;
	uint64		number = recorder_number(index);

	/* of a request of which nothing is published: that will be the next one */
	if (view->ledger.phase == LEDGER_WAITING)
	{
		seen->record = number + 1;
		seen->recorded = true;
		return;
	}
	if (seen->recorded && number == seen->record &&
		view->ledger.exchange_number == seen->view.ledger.exchange_number)
		return;
	seen->record = number;
	seen->recorded = recorder_read(index, number, &record) &&
		record.start >= Max(view->ledger.since, slot_control->reset_at);
}

/*
 * How much has been executed of the statement in progress that is not in its entry
 * yet?  It is said to be, next to the session, which leaves it out when the statement
 * is complete; if that has been meanwhile, nothing is added.
 */
static int64
execution_to_add(int index, const Seen *seen, const Tick *tick)
{
	const SlotPublished *view = &seen->view;
	FlightRecord record;
	SlotSampled *sampled;
	int64		exec;
	int64		before;

	/* before it is planned nobody knows which one it is */
	if (!seen->recorded || view->ledger.phase != LEDGER_EXECUTING ||
		view->generation != tick->generation ||
		!recorder_read(index, seen->record, &record) || record.queryid == 0 ||
		sampled_begin(index, view, tick) == NULL)
		return 0;
	sampled = &slot_get(index)->sampled;
	if (sampled->added_record != seen->record)
		sampled->added_exec = 0;
	before = sampled->added_exec;
	exec = tick->now - record.start - record.send - sampled->ledger.recv;
	exec = Max(exec, before);
	sampled->added_record = seen->record;
	sampled->added_exec = exec;
	slot_sampled_end(index);

	pg_memory_barrier();
	if (seqlock_count(&slot_get(index)->lock) == seen->doing.changecount)
		return exec - before;
	if (sampled_begin(index, view, tick) != NULL)
	{
		sampled->added_exec = before;
		slot_sampled_end(index);
	}
	return 0;
}

/* ---------------------------------------------------------------------------
 * Booking
 * ---------------------------------------------------------------------------
 */

/*
 * All execution of the session since it was attached or reset, up to now, where
 * "sampled" is of that.
 */
static int64
execution(int index, const Seen *seen, const SlotPublished *view, const SlotSampled *sampled,
		  const Tick *tick)
{
	int64		exec = view->generation == tick->generation ?
		view->ledger.totals.exec + view->ledger.exec : 0;
	int64		from = view->ledger.since;

	/* a request may have been read of which nothing is published, for long */
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
 * The session did what it was seen doing until "next" began.  The time is booked to a
 * part of execution only as far as there is execution that is not booked yet: so a
 * session that executes often but briefly is seen in proportion.
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

	if (time > 0)
		book_statement(index, seen, time);
	*doing = *next;
}

/* In an exchange: the backend has been blocked reading from its client since then. */
static void
book_receiving(int index, const SlotPublished *view, int64 from, const Tick *tick)
{
	LedgerSampled *ledger = sampled_begin(index, view, tick);

	if (ledger == NULL)
		return;
	from = Max(Max(from, view->ledger.since), Max(ledger->visited, slot_control->reset_at));
	ledger->recv += Max(tick->now - from, 0);
	ledger->visited = tick->now;
	slot_sampled_end(index);
}

/* ---------------------------------------------------------------------------
 * A session that goes on
 * ---------------------------------------------------------------------------
 */

/* Has the session's response left the kernel, as far as that is known? */
static bool
has_drained(const SessionSlot *slot, const SlotPublished *view)
{
	return !view->ledger.wait.draining ||
		(slot->sampled.session == view->session &&
		 slot->sampled.exchange_number == view->ledger.exchange_number &&
		 slot->sampled.ledger.drained);
}

/* From now on the session is looked at only now and then, unless it does something. */
static void
leave_alone(int index, Seen *seen, const Tick *tick)
{
	seen->quiet = true;
	flush_statement(seen, 0);
	active_leave(index);
	if (*(volatile uint64 *) &slot_get(index)->published.session != 0 &&
		!goes_on(index, seen, tick))
		active_enter(index);
}

/* For how long has the process waited for a processor?  Asked while it may be. */
static void
sample_run_queue(int index, const Seen *seen, const Tick *tick)
{
	SlotSampled *sampled;
	RunQueue	run_queue;

	if (seen->doing.event != 0 || !seen->view.run_queue_known ||
		!process_run_queue(seen->view.pid, &run_queue))
		return;
	sampled = slot_sampled_begin(index, seen->view.session, tick->generation);
	if (sampled == NULL)
		return;
	sampled->run_queue = run_queue.time;
	slot_sampled_end(index);
}

/* A session executes for long. */
static void
attend_execution(int index, Seen *seen, Tick *tick)
{
	SlotDoing	doing = seen->doing;

	/* its record may have been begun a moment after that was published */
	if (!seen->record_is_sure)
	{
		find_record(index, seen, &seen->view);
		seen->record_is_sure = true;
		seen->due = tick->now + ATTEND_NS;
		return;
	}
	if (attended++ >= ATTENDED_PER_TICK)
	{
		seen->due = tick->now + attended / ATTENDED_PER_TICK * tick->interval;
		return;
	}
	seen->due = tick->now + ATTEND_NS;
	sample_run_queue(index, seen, tick);
	doing.from = tick->now;
	book(index, seen, &seen->view, &doing, tick);
	flush_statement(seen, execution_to_add(index, seen, tick));
}

/* A session that does the same as before is due. */
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
				leave_alone(index, seen, tick);
	}
}

/* ---------------------------------------------------------------------------
 * A session that does something else
 * ---------------------------------------------------------------------------
 */

/*
 * Since when has the session done what it is seen doing now?  Up to then it did what
 * it was seen doing before.  A sample stands for the time since the tick before; how
 * long it has waited for a lock is known.
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

static void
see_change(int index, Seen *seen, const SlotPublished *view, uint32 changecount, Tick *tick)
{
	uint32		event = wait_event_of(view->proc);
	SlotDoing	doing = doing_since(view, changecount, event,
									began_at(index, seen, view, event, tick));

	if (seen->view.session != view->session)
	{
		flush_statement(seen, 0);
		memset(seen->unplaced, 0, sizeof(seen->unplaced));
	}
	book(index, seen, view, &doing, tick);
	if (seen->flush_at != 0 && tick->now >= seen->flush_at)
		flush_statement(seen, 0);
	if (doing.state == LEDGER_STATE_EXECUTING)
		find_record(index, seen, view);
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
	 * the statement's record, and the first time to send, are seen to next
	 * time
	 */
	if (doing.state != LEDGER_STATE_EXECUTING && doing.state != LEDGER_STATE_RECEIVING &&
		doing.state != LEDGER_STATE_SENDING && tick->now >= seen->due)
		attend(index, seen, tick);
}

/* Its pools count the session, if it is busy. */
static void
count_if_busy(int index, const Seen *seen)
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
			seen->proc = NULL;
			leave_alone(index, seen, tick);
		}
		if (!view_session(slot, &view, &changecount))
			return;
		see_change(index, seen, &view, changecount, tick);
	}
	else if (tick->now >= seen->due)
		attend(index, seen, tick);
	count_if_busy(index, seen);
	if (slot_waits_for_lock(seen->doing.event))
		lock_waits_note(index);
}

/* ---------------------------------------------------------------------------
 * A tick
 * ---------------------------------------------------------------------------
 */

/* Quiet sessions that are not any more are sampled with the active ones. */
static void
look_at_quiet(const Tick *tick)
{
	int			count = 0;

	for (int i = 0; i < slot_count(); i++)
	{
		if (active_is(i) || slot_get(i)->published.session == 0)
			continue;
		count++;
		if (!goes_on(i, &all_seen[i], tick))
			active_enter(i);
	}
	quiet_look_due = tick->now + Max(QUIET_LOOK_NS, count * QUIET_LOOK_EACH_NS);
}

/* When are quiet sessions to be looked at? */
int64
sample_sessions_next_due(void)
{
	return quiet_look_due;
}

/* What was the session in a slot last seen doing?  Of another one nothing is known. */
LedgerState
sample_sessions_state(int index, uint64 session)
{
	const Seen *seen = &all_seen[index];

	return seen->view.session == session ? seen->doing.state : LEDGER_STATE_DISABLED;
}

void
sample_sessions(Tick *tick)
{
	tick->generation = slot_generation();
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
 * What the worker before this one saw a session doing goes on until now.
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
