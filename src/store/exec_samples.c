/*-------------------------------------------------------------------------
 *
 * exec_samples.c
 *	  See exec_samples.h.
 *
 * A sample stands for the time since the latest one of the same session, or
 * since the latest tick, at which the session was looked at as well and was not
 * executing.
 *
 * Runs.  A session that executes for long is seen doing the same in one tick
 * after the other.  So after a sample the sampler says that a run has begun, and
 * then writes nothing until it finds that something has changed: it goes on by
 * last_tick alone.  A run that goes on stands for a sample in each tick.  Whoever
 * looks at the session books it first, up to the latest tick, as the sampler
 * would have done.  So that this holds, the sampler ends a run before it writes
 * the last_tick at which it found the change.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "clock.h"
#include "compat.h"
#include "exec_samples.h"
#include "settings.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "prefetch.h"
#include "storage/shmem.h"
#include "storage/spin.h"
#include "utils/wait_event.h"

/* When a run ends that goes on. */
#define RUN_GOES_ON		PG_INT64_MAX

typedef struct SessionSamples
{
	slock_t		lock;			/* protects all that follows */
	uint8		doing;			/* in the run: the part of execution */
	uint32		generation;		/* of resets */
	uint64		session;
	int64		sampled_at;		/* the latest sample */
	int64		run_until;		/* since then, and up to here, it was seen
								 * doing the same in each tick; 0: no run */
	int64		run_noted;		/* what was booked of the run as the
								 * statement's, and is not in ExecNoted */
	ExecSplit	split;
	ExecLockWait lock_wait;
	ExecStatement statement;
} SessionSamples;

typedef struct SamplesShared
{
	pg_atomic_uint64 last_tick;
	pg_atomic_uint64 tick_interval; /* until the next one; 0: none yet */
	SessionSamples sessions[FLEXIBLE_ARRAY_MEMBER];
} SamplesShared;

static SamplesShared *shared = NULL;

/* as slot_count(), which is told by a file above this one */
static int
session_count(void)
{
	return MaxConnections;
}

Size
exec_samples_shmem_size(void)
{
	return add_size(offsetof(SamplesShared, sessions),
					mul_size(session_count(), sizeof(SessionSamples)));
}

void
exec_samples_shmem_init(void)
{
	bool		found;

	shared = ShmemInitStruct("pgnetlat executions", exec_samples_shmem_size(), &found);
	if (found)
		return;
	memset(shared, 0, exec_samples_shmem_size());
	pg_atomic_init_u64(&shared->last_tick, 0);
	pg_atomic_init_u64(&shared->tick_interval, 0);
	for (int i = 0; i < session_count(); i++)
		SpinLockInit(&shared->sessions[i].lock);
}

/* ---------------------------------------------------------------------------
 * Which part of execution is a wait event?
 * ---------------------------------------------------------------------------
 */

/*
 * Extensions name their wait events themselves, since 17.  Those of foreign
 * data wrappers and of dblink wait for another server; one without a name (which
 * are all before 17) nearly always is one of these.
 */
static ExecPart
part_of_extension_event(uint32 wait_event)
{
	static uint8 known[256];	/* part + 1; 0: not asked for yet */
	uint32		number = wait_event & 0xFFFF;
	const char *name;
	bool		remote;

	if (number == 0)
		return EXEC_REMOTE;
	if (number >= lengthof(known))
		return EXEC_OTHER;
	if (known[number] == 0)
	{
		name = pgstat_get_wait_event(wait_event);
		remote = name && (strstr(name, "Fdw") || strstr(name, "FDW") ||
						  strncmp(name, "Dblink", strlen("Dblink")) == 0);
		known[number] = 1 + (remote ? EXEC_REMOTE : EXEC_OTHER);
	}
	return known[number] - 1;
}

/*
 * The part of execution that a backend with this wait event is in.
 */
ExecPart
exec_samples_part(uint32 wait_event)
{
	if (wait_event == 0)
		return EXEC_CPU;
	if (compat_waits_for_standby(wait_event))
		return EXEC_REPLICATION;
	switch (wait_event & 0xFF000000)
	{
		case PG_WAIT_LOCK:
			return EXEC_LOCK;
		case PG_WAIT_IO:
			return EXEC_IO;
		case PG_WAIT_EXTENSION:
			return part_of_extension_event(wait_event);
		case PG_WAIT_CLIENT:
			/* not by its own client, which the caller sees to: as one */
			return EXEC_REMOTE;
		default:
			return EXEC_OTHER;
	}
}

/* ---------------------------------------------------------------------------
 * Looking at a session
 * ---------------------------------------------------------------------------
 */

/* When did the lock wait in progress begin?  0: not known, or none. */
static int64
lock_wait_since(const ExecLook *look, ExecPart part)
{
	TimestampTz since;

	if (part != EXEC_LOCK)
		return 0;
	since = (TimestampTz) pg_atomic_read_u64(&look->proc->waitStart);
	return since == 0 ? 0 : clock_from_timestamp(look->clock_offset, since);
}

/* For how long does a sample stand? */
static int64
sampled_time(const SessionSamples *own, const ExecLook *look, ExecPurpose purpose)
{
	int64		before = look->sampled_before;
	int64		time;

	if (purpose != EXEC_SAMPLE)
		before = (int64) pg_atomic_read_u64(&shared->last_tick);
	time = Max(look->now - Max(before, own->sampled_at), 0);

	/* where there is no tick, a rare look does not stand for all that passed */
	if (purpose != EXEC_SAMPLE)
		time = Min(time, Max((int64) pg_atomic_read_u64(&shared->tick_interval),
							 pgnetlat_sample_interval * NS_PER_MS));
	return time;
}

/* Are the samples of the session, and since the reset, that the look is of? */
static bool
bring_up_to_date(SessionSamples *own, const ExecLook *look)
{
	if (own->session == look->session && own->generation == look->generation)
		return true;
	if (own->session > look->session ||
		(own->session == look->session && (int32) (look->generation - own->generation) < 0))
		return false;
	own->session = look->session;
	own->generation = look->generation;
	own->sampled_at = 0;
	own->run_until = own->run_noted = 0;
	memset(&own->split, 0, sizeof(own->split));
	memset(&own->lock_wait, 0, sizeof(own->lock_wait));
	own->statement.used = false;
	return true;
}

/* Book so much of the session's execution; how much of it was. */
static int64
book(SessionSamples *own, const ExecLook *look, ExecPart part, int64 time)
{
	time = exec_split_book(&own->split, look->exec, part, time);
	if (part == EXEC_LOCK)
		own->lock_wait.booked += time;
	return time;
}

/*
 * The same of the run, which is its statement's.
 */
static void
book_of_run(SessionSamples *own, const ExecLook *look, int64 time)
{
	time = book(own, look, own->doing, time);
	if (own->statement.used)
	{
		own->statement.part[own->doing] += time;
		own->run_noted += time;
	}
}

static void
book_sample(SessionSamples *own, const ExecLook *look, ExecPart part, int64 lock_since,
			ExecPurpose purpose)
{
	int64		time = sampled_time(own, look, purpose);

	if (part == EXEC_LOCK)
		time = exec_lock_time(&own->lock_wait, lock_since, look->now, time);
	/* the sampler books what the statement has itself */
	if (purpose != EXEC_SAMPLE && own->run_until == RUN_GOES_ON && own->doing == part)
		book_of_run(own, look, time);
	else
		(void) book(own, look, part, time);
	own->sampled_at = Max(own->sampled_at, look->now);
}

/*
 * Book the run, if there is one, up to the latest tick.  No event has been seen
 * since it began; but the session may date one a moment before the tick that did
 * not see it, so that its execution limits this as well.
 */
static void
book_run(SessionSamples *own, const ExecLook *look)
{
	int64		at = Min((int64) pg_atomic_read_u64(&shared->last_tick), look->now);
	int64		time;

	if (own->run_until <= at)
	{
		at = own->run_until;
		own->run_until = 0;
	}
	time = at - own->sampled_at;
	if (time <= 0)
		return;
	if (own->doing == EXEC_LOCK)
		time = exec_lock_time(&own->lock_wait, own->lock_wait.since, at, time);
	book_of_run(own, look, time);
	own->sampled_at = at;
}

/*
 * Somebody looks: bring what is known of the session up to then.  False if others
 * have seen more of it already.
 */
static bool
begin_look(SessionSamples *own, const ExecLook *look)
{
	if (!bring_up_to_date(own, look))
		return false;
	if (own->run_until != 0)
		book_run(own, look);
	return exec_split_sum(&own->split) <= look->exec;
}

/*
 * Sample a session that somebody looks at, and tell what its execution consists
 * of so far.  Returns false if somebody else has seen more of it already: look
 * again.
 */
bool
exec_samples_look(int slot, const ExecLook *look, ExecPurpose purpose, int64 *part)
{
	SessionSamples *own = &shared->sessions[slot];
	ExecPart	doing = exec_samples_part(look->wait_event);
	int64		lock_since = lock_wait_since(look, doing);
	bool		valid;

	SpinLockAcquire(&own->lock);
	valid = begin_look(own, look);
	if (valid)
	{
		if (look->executing)
			book_sample(own, look, doing, lock_since, purpose);
		if (purpose == EXEC_SHOW)
			exec_split_show(&own->split, look->exec);
		memcpy(part, own->split.part, sizeof(own->split.part));
	}
	SpinLockRelease(&own->lock);
	return valid;
}

/*
 * The sampler has looked at all sessions: those it did not sample were not
 * executing, or are in a run that goes on.
 */
void
exec_samples_end_tick(int64 at, int64 interval)
{
	pg_atomic_write_u64(&shared->last_tick, at);
	pg_atomic_write_u64(&shared->tick_interval, interval);
}

/*
 * Up to when is the session in a slot known to have executed, because of its run?
 * 0: there is none.  A moment later it may be over.
 */
int64
exec_samples_run_until(int slot, uint64 session)
{
	SessionSamples *own = &shared->sessions[slot];
	int64		until = 0;

	SpinLockAcquire(&own->lock);
	if (own->session == session)
		until = Min(own->run_until, (int64) pg_atomic_read_u64(&shared->last_tick));
	SpinLockRelease(&own->lock);
	return until;
}

/*
 * The sampler finds that a run ended after the tick before, which was the latest
 * one.
 */
void
exec_samples_end_run(int slot)
{
	SessionSamples *own = &shared->sessions[slot];

	SpinLockAcquire(&own->lock);
	own->run_until = Min(own->run_until, (int64) pg_atomic_read_u64(&shared->last_tick));
	SpinLockRelease(&own->lock);
}

/* ---------------------------------------------------------------------------
 * The statement in progress
 * ---------------------------------------------------------------------------
 */

/*
 * A sampler begins: what was sampled before it is of statements that it does not
 * know, and it continues no runs.
 */
void
exec_samples_begin_notes(int slot, ExecNoted *noted)
{
	SessionSamples *own = &shared->sessions[slot];

	SpinLockAcquire(&own->lock);
	own->run_until = Min(own->run_until, (int64) pg_atomic_read_u64(&shared->last_tick));
	own->run_noted = 0;
	noted->session = own->session;
	noted->generation = own->generation;
	memcpy(noted->part, own->split.part, sizeof(noted->part));
	SpinLockRelease(&own->lock);
}

/* Add to a statement what was sampled and is not noted yet. */
static void
note_samples(const SessionSamples *own, ExecNoted *noted, int64 *part)
{
	if (noted->session != own->session || noted->generation != own->generation)
	{
		memset(noted, 0, sizeof(*noted));
		noted->session = own->session;
		noted->generation = own->generation;
	}
	for (int i = 0; i < NUM_EXEC_PARTS; i++)
	{
		part[i] += own->split.part[i] - noted->part[i];
		noted->part[i] = own->split.part[i];
	}
}

/*
 * What was sampled of a session since the last time was in the statement of this
 * record.  False if there still are samples of an earlier record.
 */
static bool
note_statement(SessionSamples *own, ExecNoted *noted, const ExecRecord *record)
{
	ExecStatement *statement = &own->statement;
	const ExecRecord *known = &statement->record;

	if (statement->used && known->number != record->number)
		return false;

	/* before it is planned nobody knows which one it is */
	if (!statement->used ||
		(known->queryid != 0 &&
		 (known->queryid != record->queryid || known->userid != record->userid)))
		memset(statement->part, 0, sizeof(statement->part));
	statement->used = true;
	statement->record = *record;
	note_samples(own, noted, statement->part);
	return true;
}

void
exec_samples_prefetch(int slot)
{
	prefetch_to_write(&shared->sessions[slot], sizeof(SessionSamples));
}

/* What others have booked of the run, and noted. */
static void
note_run(SessionSamples *own, ExecNoted *noted)
{
	if (noted->session == own->session && noted->generation == own->generation)
		noted->part[own->doing] += own->run_noted;
	own->run_noted = 0;
}

/*
 * The sampler's look at a session that executes, and builds this record.  If it
 * is booked, a run begins: until exec_samples_end_run().
 */
ExecTick
exec_samples_tick(int slot, const ExecLook *look, ExecNoted *noted,
				  const ExecRecord *record)
{
	SessionSamples *own = &shared->sessions[slot];
	ExecPart	doing = exec_samples_part(look->wait_event);
	int64		lock_since = lock_wait_since(look, doing);
	ExecTick	result = EXEC_TICK_STALE;

	SpinLockAcquire(&own->lock);
	if (begin_look(own, look))
	{
		note_run(own, noted);
		book_sample(own, look, doing, lock_since, EXEC_SAMPLE);
		result = EXEC_TICK_FULL;
		if (note_statement(own, noted, record))
		{
			own->doing = doing;
			own->run_until = RUN_GOES_ON;
			result = EXEC_TICK_BOOKED;
		}
	}
	SpinLockRelease(&own->lock);
	return result;
}

/*
 * What was sampled of a statement whose record has been accumulated, as all
 * have with a number less than "before"; false if there is none.
 */
bool
exec_samples_take_statement(int slot, uint64 before, ExecStatement *statement)
{
	SessionSamples *own = &shared->sessions[slot];
	bool		taken = false;

	/* seen a moment later it is taken the next time */
	if (!*(volatile bool *) &own->statement.used)
		return false;
	SpinLockAcquire(&own->lock);
	if (own->statement.used && own->statement.record.number < before)
	{
		*statement = own->statement;
		own->statement.used = false;
		taken = true;
	}
	SpinLockRelease(&own->lock);
	return taken;
}

/*
 * Forget what was sampled of the statement in progress: a reset.
 */
void
exec_samples_forget_statement(int slot)
{
	SessionSamples *own = &shared->sessions[slot];

	SpinLockAcquire(&own->lock);
	own->statement.used = false;
	SpinLockRelease(&own->lock);
}
