/*-------------------------------------------------------------------------
 *
 * sampler.c
 *	  The background worker and its schedule.
 *
 * Samples show what no event shows: what each session is doing, and how long a
 * backend was blocked reading from its client in an exchange (COPY FROM STDIN,
 * half a message, the rest of a failed pipeline).  Each sample stands for the
 * time that has really passed since the previous one; see sample_sessions.h.
 *
 * Ticks are on a grid, one for each sample_interval.  A tick without an active
 * session (active_sessions.h) is skipped: the sampler sleeps until a session
 * wakes it, and then until the next tick of the grid.  So samples are always
 * taken on the grid, not when an exchange begins, and the first one stands for
 * one interval.
 *
 * A tick waits for the kernel's next own tick, for up to half an interval: a
 * wakeup in between would cost busy processors more than the sampler's work.
 *
 * With very many active sessions, ticks are further apart, so that the
 * sampler's share of a processor does not grow with them (up to 100 ms apart,
 * so with some thousands it does grow).
 *
 * The sampler also accumulates all sessions and closes the intervals of the
 * history, and keeps snapshots of all accounts every few seconds, where
 * windows begin.
 *
 * Only samples are lost while the sampler is down.  It may be terminated at
 * any time: it exits with status 1, so that the postmaster restarts it.  It
 * survives errors, all of which are counted, and one a minute is logged.
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
#include "compat.h"
#include "accumulate.h"
#include "settings.h"
#include "history.h"
#include "journal.h"
#include "late_memory.h"
#include "lock_waits.h"
#include "miscadmin.h"
#include "persist.h"
#include "pools.h"
#include "pooler_clients.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "sample_sessions.h"
#include "sampler.h"
#include "session_slot.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "table.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "windows.h"

#define SAMPLER_RESTART_S		1

/*
 * With more active sessions than this, the interval between ticks grows in
 * proportion, up to LONGEST_INTERVAL_NS.  A server that executes a thousand
 * statements at once has no processor to spare, and gets enough samples of
 * what they wait for.
 */
#define SESSIONS_PER_INTERVAL	400
#define LONGEST_INTERVAL_NS		(100 * NS_PER_MS)

/*
 * A tick may be late by half an interval, but by no more than this, in order
 * to coincide with one of the kernel's own, which are up to 10 ms apart.
 */
#define LATEST_NS				(10 * NS_PER_MS)

/*
 * Minimum interval between snapshots, for each account: with thousands of
 * them, each takes a microsecond or two.
 */
#define SNAPSHOT_EACH_NS		(500 * NS_PER_US)

/* After an error: until the next tick, and until another one is logged. */
#define PAUSE_NS				NS_PER_S
#define REPORT_NS				(60 * NS_PER_S)

static SamplerStatus *status = NULL;

Size
sampler_shmem_size(void)
{
	return MAXALIGN(sizeof(SamplerStatus));
}

void
sampler_shmem_attach(void *memory, bool is_new)
{
	status = memory;
}

void
sampler_get_status(SamplerStatus *copy)
{
	*copy = *(volatile SamplerStatus *) status;
}

static void
describe_worker(BackgroundWorker *worker)
{
	memset(worker, 0, sizeof(*worker));
	strlcpy(worker->bgw_name, "pgnetlat sampler", sizeof(worker->bgw_name));
	strlcpy(worker->bgw_type, "pgnetlat sampler", sizeof(worker->bgw_type));
	strlcpy(worker->bgw_library_name, "pgnetlat", sizeof(worker->bgw_library_name));
	strlcpy(worker->bgw_function_name, "pgnetlat_sampler_main",
			sizeof(worker->bgw_function_name));
	/* no database connection; the flag makes it visible in pg_stat_activity */
	worker->bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker->bgw_start_time = BgWorkerStart_ConsistentState;
	worker->bgw_restart_time = SAMPLER_RESTART_S;
}

void
sampler_register(void)
{
	BackgroundWorker worker;

	describe_worker(&worker);
	RegisterBackgroundWorker(&worker);
}

/* Start the sampler of late memory; false if the server can have no more workers. */
bool
sampler_start(void)
{
	BackgroundWorker worker;

	describe_worker(&worker);
	return RegisterDynamicBackgroundWorker(&worker, NULL);
}

/* The interval between ticks with this many active sessions. */
static int64
interval_for(int active)
{
	int64		shortest = pgnetlat_sample_interval * NS_PER_MS;

	return Max(Min(shortest * active / SESSIONS_PER_INTERVAL, LONGEST_INTERVAL_NS),
			   shortest);
}

/*
 * Take the snapshots of all sessions together, so that windows over them begin
 * together, and those of the tables with what these sessions have added to
 * them.
 */
static void
take_snapshots_if_due(const Tick *tick)
{
	SnapshotLevels due = snapshots_due(&status->schedule, tick->now);
	SlotObservation observation;
	int			count = 0;

	if (due == 0)
		return;
	for (int i = 0; i < slot_count(); i++)
	{
		if (!accumulate_and_observe(i, &observation))
			continue;
		windows_add(i, &observation, due);
		count++;
	}
	snapshots_keep_apart(&status->schedule, count * SNAPSHOT_EACH_NS);
	tables_take_snapshots(due);
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

/* Do one tick.  An error costs only this tick, and a pause. */
static void
tick_once(Tick *tick)
{
	static int64 report_due = 0;
	MemoryContext context = CurrentMemoryContext;

	tick->now = clock_now();
	tick->failed = false;
	PG_TRY();
	{
		if (clock_refresh_offset(&tick->clock_offset))
			slot_control->clock_steps++;
		pools_tick(tick->before);
		sample_sessions(tick);
		lock_waits_tick(tick->now, tick->before, tick->clock_offset);
		pooler_clients_tick(tick->now);
		sample_paths(tick);
		take_snapshots_if_due(tick);
		rotate_history_if_due();
		journal_look_if_due();
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		if (tick->now >= report_due)
		{
			EmitErrorReport();
			report_due = tick->now + REPORT_NS;
		}
		FlushErrorState();
		LWLockReleaseAll();
		tick->failed = true;
		status->errors++;
		status->last_error = GetCurrentTimestamp();
	}
	PG_END_TRY();
	tick->before = tick->now;
	if (tick->failed)
		return;
	status->ticks++;
	status->last_tick = GetCurrentTimestamp();
}

/*
 * Until when the sampler may sleep if no session is active.  Snapshots may be
 * late until the next look at quiet sessions.
 */
static int64
longest_sleep(const Tick *tick)
{
	return Min(Min(sample_sessions_next_due(),
				   clock_from_timestamp(tick->clock_offset, history_next_due())),
			   clock_from_timestamp(tick->clock_offset, journal_next_due()));
}

/*
 * The first tick of the grid that is not before "at"; "due" is a tick of the
 * grid.
 */
static int64
tick_at_or_after(const Tick *tick, int64 due, int64 at)
{
	int64		interval = Max(tick->interval, 1);

	if (at <= due)
		return due;
	return due + (at - due + interval - 1) / interval * interval;
}

/*
 * Let the kernel wake us up late by up to "ns"; 0: the default.
 *
 * A timer of our own interrupts an executing process.  If no processor is
 * free, that costs much more than our work: 1 to 1.5 % of the throughput of
 * two busy processors at 100 ticks a second.  At the kernel's own tick, which
 * interrupts anyway, it is a quarter of that.  (bench/throughput with 8
 * clients shows this: compare "sampler asleep".)
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
 * Wait or, if no session is active, sleep until the next tick is due, at
 * "due".  Returns false if something else comes first.  Missed ticks are not
 * made up for.
 */
static bool
wait_for_next_tick(Tick *tick, int64 *due, uint32 wait_event)
{
	int64		now = clock_now();
	int64		sleep_until;

	tick->interval = tick->failed ? PAUSE_NS : interval_for(tick->active);
	/* the interval has become shorter: begin a new grid */
	if (*due > now + tick->interval)
		*due = now + tick->interval;
	*due = tick_at_or_after(tick, *due, now);
	sleep_until = tick_at_or_after(tick, *due, longest_sleep(tick));
	if (sleep_until > *due && active_fall_asleep())
	{
		wait_until(sleep_until, wait_event);
		active_wake_up();
		*due = tick_at_or_after(tick, *due, clock_now());
		/* woken before sleep_until, or at it */
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
	if (status->pid == MyProcPid)
		status->pid = 0;
	late_memory_stop_serving();
}

static void
sampler_setup(void)
{
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);
	if (!late_memory_serve())
		proc_exit(0);
	pgstat_report_appname("pgnetlat sampler");
	pgstat_report_activity(STATE_IDLE, NULL);

	persist_remove_file();
	status->pid = MyProcPid;
	status->started = GetCurrentTimestamp();
	active_sampler_starts();
	before_shmem_exit(sampler_exit, (Datum) 0);
}

/* The sampler's wait event; core may have run out of names for them. */
static uint32
own_wait_event(void)
{
	MemoryContext context = CurrentMemoryContext;
	volatile uint32 event = PG_WAIT_EXTENSION;

	PG_TRY();
	{
		event = WaitEventExtensionNew("PgnetlatSamplerMain");
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		FlushErrorState();
		LWLockReleaseAll();
	}
	PG_END_TRY();
	return event;
}

void
pgnetlat_sampler_main(Datum arg)
{
	Tick		tick = {.diag = {.sock = -1}};
	uint32		wait_event;
	int64		due;
	int64		cpu_time_before;
	bool		is_due;

	sampler_setup();
	wait_event = own_wait_event();
	cpu_time_before = status->cpu_time;
	sample_sessions_init();
	lock_waits_init();
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
			journal_settings_changed();
		}
		if (ShutdownRequestPending)
			break;
		if (late_memory_retire())
			proc_exit(0);
		if (!is_due)
			continue;
		tick_once(&tick);
		due += tick.interval;
		status->cpu_time = cpu_time_before + clock_read(CLOCK_PROCESS_CPUTIME_ID);
	}

	late_memory_at_shutdown();
	/* not 0, after which the postmaster would not restart it */
	proc_exit(1);
}
