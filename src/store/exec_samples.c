/*-------------------------------------------------------------------------
 *
 * exec_samples.c
 *	  See exec_samples.h.
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

typedef struct SessionSamples
{
	slock_t		lock;			/* protects what follows */
	ExecStatement statement;
} SessionSamples;

static SessionSamples *shared = NULL;

/* as slot_count(), which is told by a file above this one */
static int
session_count(void)
{
	return MaxConnections;
}

Size
exec_samples_shmem_size(void)
{
	return mul_size(session_count(), sizeof(SessionSamples));
}

void
exec_samples_shmem_init(void)
{
	bool		found;

	shared = ShmemInitStruct("pgnetlat executions", exec_samples_shmem_size(), &found);
	if (found)
		return;
	memset(shared, 0, exec_samples_shmem_size());
	for (int i = 0; i < session_count(); i++)
		SpinLockInit(&shared[i].lock);
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
 * The statement in progress
 * ---------------------------------------------------------------------------
 */

void
exec_samples_prefetch(int slot)
{
	prefetch_to_write(&shared[slot], sizeof(SessionSamples));
}

/*
 * So much of a session's execution was in the statement of this record.  False if
 * there still are samples of an earlier record: accumulate the session, and try again.
 */
bool
exec_samples_note(int slot, const ExecRecord *record, ExecPart part, int64 time)
{
	SessionSamples *own = &shared[slot];
	ExecStatement *statement = &own->statement;
	const ExecRecord *known = &statement->record;
	bool		noted = false;

	SpinLockAcquire(&own->lock);
	if (!statement->used || known->number == record->number)
	{
		/* before it is planned nobody knows which one it is */
		if (!statement->used ||
			(known->queryid != 0 &&
			 (known->queryid != record->queryid || known->userid != record->userid)))
			memset(statement->part, 0, sizeof(statement->part));
		statement->used = true;
		statement->record = *record;
		statement->part[part] += time;
		noted = true;
	}
	SpinLockRelease(&own->lock);
	return noted;
}

/*
 * What was sampled of a statement whose record has been accumulated, as all
 * have with a number less than "before"; false if there is none.
 */
bool
exec_samples_take_statement(int slot, uint64 before, ExecStatement *statement)
{
	SessionSamples *own = &shared[slot];
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
	SessionSamples *own = &shared[slot];

	SpinLockAcquire(&own->lock);
	own->statement.used = false;
	SpinLockRelease(&own->lock);
}
