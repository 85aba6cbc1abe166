/*-------------------------------------------------------------------------
 *
 * sampler.c
 *	  See sampler.h.
 *
 * What no event shows, samples do: the wait events of each session, and which
 * part of an exchange the backend spent blocked reading from its client (COPY
 * FROM STDIN, half a message, the rest of a failed pipeline).  Each sample
 * stands for the time that really passed since the one before.
 *
 * The sampler also asks the kernel, over socket diagnosis, about connections
 * whose backend cannot: those blocked in sending, and those whose last
 * response is still leaving the kernel.
 *
 * And it accumulates all sessions when it closes an interval of the history.
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

#include "clients.h"
#include "compat.h"
#include "accumulate.h"
#include "settings.h"
#include "history.h"
#include "miscadmin.h"
#include "persist.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "sampler.h"
#include "session_slot.h"
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
 * At most this many questions to the kernel per tick; the next tick goes on
 * where they were used up.  One takes 1 to 2 us, so putting many into one
 * message saves little, and a dump of all connections costs more than some
 * hundred questions even where there are few (it walks the kernel's table).
 */
#define DIAG_QUERIES_PER_TICK	32

static SamplerStatus *status = NULL;

/* What the sampler remembers of a slot, in memory of its own. */
typedef struct SlotNotes
{
	uint64		gone_session;	/* of this one the kernel knew no connection: */
	TcpBackoff	gone;
} SlotNotes;

/* What one tick knows. */
typedef struct Tick
{
	int64		now;
	int64		last;			/* the tick before */
	int			first;			/* slot to begin with */
	int			next_first;		/* ... at the next tick */
	int			diag_queries;
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

/* The few fields that a sample needs, consistent among each other. */
typedef struct Peek
{
	uint64		session;
	uint32		generation;
	uint64		exchange_number;
	LedgerPhase phase;
	LedgerWaitTerms wait;
	int64		since;
	PGPROC	   *proc;
} Peek;

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
		view->proc = published->proc;
		if (seqlock_read_valid(&slot->lock, changecount))
			return true;
	}
	return false;
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

/* Begin to write what was seen of the session's exchange in progress. */
static LedgerSampled *
sampled_begin(SessionSlot *slot, const Peek *view)
{
	SlotSampled *sampled = &slot->sampled;

	seqlock_write_begin(&slot->sampled_lock);
	if (sampled->session != view->session || sampled->exchange_number != view->exchange_number ||
		sampled->generation != view->generation)
	{
		memset(&sampled->ledger, 0, sizeof(sampled->ledger));
		sampled->session = view->session;
		sampled->exchange_number = view->exchange_number;
		sampled->generation = view->generation;
	}
	return &sampled->ledger;
}

static void
seen_end(SessionSlot *slot)
{
	seqlock_write_end(&slot->sampled_lock);
}

/*
 * In an exchange: is the backend blocked reading from its client?  The time
 * that a reader has shown as execution stays execution.
 */
static void
sample_exchange(SessionSlot *slot, const Peek *view, LedgerState state, const Tick *tick)
{
	LedgerSampled *ledger;

	/* blocked in sending what nobody thought could block: no news */
	if (state == LEDGER_STATE_SENDING)
		return;
	ledger = sampled_begin(slot, view);
	if (state == LEDGER_STATE_RECEIVING)
	{
		int64		from = Max(tick->last, view->since);

		from = Max(from, ledger->visited);
		from = Max(from, (int64) pg_atomic_read_u64(&slot->busy_shown));
		from = Max(from, slot_control->reset_at);
		if (tick->now > from)
			ledger->recv += tick->now - from;
	}
	ledger->visited = tick->now;
	seen_end(slot);
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
	if (tick->diag_queries >= DIAG_QUERIES_PER_TICK)
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

	ledger = sampled_begin(slot, view);
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
	seen_end(slot);
}

static void
sample_session(int index, Tick *tick)
{
	SessionSlot *slot = slot_get(index);
	Peek		view;
	uint32		event;
	LedgerState state;

	if (slot->published.session == 0 || !peek(slot, &view) || view.phase == LEDGER_OFF)
		return;
	event = *(volatile uint32 *) &view.proc->wait_event_info;
	state = state_of(&view, event, tick->now);
	wait_events_add(index, view.session, view.generation, state, event, tick->now - tick->last);

	if (view.phase == LEDGER_EXECUTING)
		sample_exchange(slot, &view, state, tick);
	else if (view.phase == LEDGER_SENDING)
	{
		if (view.since < tick->last)
			sample_connection(index, &view, tick);
	}
	else if (view.phase == LEDGER_WAITING && unlikely(view.wait.draining) &&
			 !(slot->sampled.session == view.session &&
			   slot->sampled.exchange_number == view.exchange_number && slot->sampled.ledger.drained))
		sample_connection(index, &view, tick);
}

/* Whom the questions did not reach this time comes first the next time. */
static void
sample_all(Tick *tick)
{
	int			count = slot_count();

	tick->diag_queries = 0;
	tick->next_first = -1;
	for (int i = tick->first; i < count; i++)
		sample_session(i, tick);
	for (int i = 0; i < tick->first; i++)
		sample_session(i, tick);
	if (tick->next_first >= 0)
		tick->first = tick->next_first;
}

/*
 * All sessions in one look, so that windows over them begin together; those
 * over groups with what the same sessions have accumulated into them.
 */
static void
take_snapshots_if_due(int64 now)
{
	SnapshotLevels due = windows_due(now);
	SlotObservation observation;

	if (due == 0)
		return;
	for (int i = 0; i < slot_count(); i++)
	{
		if (slot_observe(i, &observation))
			windows_add(i, &observation, due);
	}
	accumulate_all();
	clients_take_snapshots(due);
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
		take_snapshots_if_due(tick->now);
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
	tick->last = tick->now;
	status->ticks++;
	status->last_tick = GetCurrentTimestamp();
}

/* Sleep until the next round is due.  Rounds missed are not made up for. */
static void
wait_for_next_tick(int64 *due, uint32 wait_event)
{
	int64		now = clock_now();
	int64		timeout;

	*due += pgnetlat_sample_interval * NS_PER_MS;
	if (*due < now || *due > now + pgnetlat_sample_interval * NS_PER_MS)
		*due = now + pgnetlat_sample_interval * NS_PER_MS;
	timeout = (*due - now + NS_PER_MS - 1) / NS_PER_MS;
	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
					 Max(timeout, 1), wait_event);
	ResetLatch(MyLatch);
}

static void
sampler_exit(int code, Datum arg)
{
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
	before_shmem_exit(sampler_exit, (Datum) 0);
}

void
pgnetlat_sampler_main(Datum arg)
{
	Tick		tick = {0};
	uint32		wait_event;
	int64		due;
	int64		cpu_time_before;

	sampler_setup();
	wait_event = WaitEventExtensionNew("PgnetlatSamplerMain");
	cpu_time_before = status->cpu_time;
	tcpinfo_diag_init(&tick.diag);
	tick.notes = MemoryContextAllocZero(TopMemoryContext, slot_count() * sizeof(SlotNotes));
	tick.last = due = clock_now();
	tick.clock_offset = clock_measure_offset();

	while (!ShutdownRequestPending)
	{
		wait_for_next_tick(&due, wait_event);
		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}
		if (ShutdownRequestPending)
			break;
		tick_once(&tick);
		status->cpu_time = cpu_time_before + clock_read(CLOCK_PROCESS_CPUTIME_ID);
	}

	/* not 0: the postmaster would not start it again */
	proc_exit(1);
}
