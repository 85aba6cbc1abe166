/*-------------------------------------------------------------------------
 *
 * wait_events.c
 *	  The sessions' profiles of wait events.
 *
 * A session's profile is a short array, searched from the front, where
 * frequent events tend to be.  The last entry is for the overflow.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat.h"
#include "port/atomics.h"
#include "session_slot.h"
#include "utils/memutils.h"
#include "wait_events.h"

typedef struct WaitProfile
{
	pg_atomic_uint64 reset_at;	/* when a reset was last requested */
	WaitSample	entries[WAITS_PER_SESSION]; /* sampled.waits_used of them are
											 * in use */
} WaitProfile;

static WaitProfile *profiles = NULL;

Size
wait_events_shmem_size(void)
{
	return mul_size(slot_count(), sizeof(WaitProfile));
}

void
wait_events_shmem_attach(void *memory, bool is_new)
{
	profiles = memory;
	for (int i = 0; is_new && i < slot_count(); i++)
		pg_atomic_init_u64(&profiles[i].reset_at, 0);
}

/* ---------------------------------------------------------------------------
 * Wait events
 * ---------------------------------------------------------------------------
 */

/*
 * Core's name of a wait event.  From 17 on, core raises an error if an
 * extension's wait event has not been registered.
 */
const char *
wait_event_name(uint32 event)
{
	MemoryContext context = CurrentMemoryContext;
	const char *volatile name = "Extension";

	PG_TRY();
	{
		name = pgstat_get_wait_event(event);
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		FlushErrorState();
	}
	PG_END_TRY();
	return name;
}

/*
 * From 17 on, extensions name their wait events.  Those of foreign data
 * wrappers and of dblink wait for another server.  One without a name, as all
 * are before 17, nearly always does.
 */
static ExecPart
part_of_extension_event(uint32 event)
{
	static uint8 known[256];	/* part + 1; 0: not known yet */
	uint32		number = event & 0xFFFF;
	const char *name;
	bool		remote;

	if (number == 0)
		return EXEC_REMOTE;
	if (number >= lengthof(known))
		return EXEC_OTHER;
	if (known[number] == 0)
	{
		name = wait_event_name(event);
		remote = strstr(name, "Fdw") || strstr(name, "FDW") ||
			strncmp(name, "Dblink", strlen("Dblink")) == 0;
		known[number] = 1 + (remote ? EXEC_REMOTE : EXEC_OTHER);
	}
	return known[number] - 1;
}

/*
 * The part of execution of a backend with this wait event.  Must not be called
 * while a lock is held.
 */
ExecPart
wait_event_part(uint32 event)
{
	if (event == 0)
		return EXEC_CPU;
	if (compat_waits_for_standby(event))
		return EXEC_REPLICATION;
	switch (event & 0xFF000000)
	{
		case PG_WAIT_LOCK:
			return EXEC_LOCK;
		case PG_WAIT_IO:
			return EXEC_IO;
		case PG_WAIT_EXTENSION:
			return part_of_extension_event(event);
		case PG_WAIT_CLIENT:
			/* the caller handles waits for the backend's own client */
			return EXEC_REMOTE;
		default:
			return EXEC_OTHER;
	}
}

/* ---------------------------------------------------------------------------
 * Profiles
 * ---------------------------------------------------------------------------
 */

/* Request a reset of a profile, which is empty until the next sample. */
void
wait_events_reset(int index)
{
	pg_atomic_write_u64(&profiles[index].reset_at, (uint64) clock_now());
}

/*
 * Add time, with one sample for each interval.  Returns the number of entries
 * used.
 */
static int
add_time(WaitSample *entries, int used, LedgerState state, uint32 event, int64 time,
		 int64 interval)
{
	const int	last = WAITS_PER_SESSION - 1;
	WaitSample *entry = entries;

	if (time <= 0)
		return used;
	while (entry < entries + Min(used, last) &&
		   (entry->event != event || entry->state != state))
		entry++;
	if (entry == entries + used)
	{
		memset(entry, 0, sizeof(*entry));
		entry->state = state;
		entry->event = event;
		entry->other = used++ == last;
	}
	entry->samples += Max((time + interval / 2) / interval, 1);
	entry->time += time;
	return used;
}

/*
 * Add what a session was doing until "until"; a wait may have become idle
 * meanwhile.
 */
static int
add_doing(WaitSample *entries, int used, const SlotDoing *doing, int64 from, int64 until,
		  int64 interval)
{
	int64		idle_from = Min(Max(doing->idle_from, from), until);

	if (doing->state == LEDGER_STATE_DISABLED)
		return used;
	used = add_time(entries, used, doing->state, doing->event, idle_from - from, interval);
	return add_time(entries, used, LEDGER_STATE_IDLE, doing->event, until - idle_from, interval);
}

/*
 * Add what the session was seen doing until "until".  For the sampler, between
 * slot_sampled_begin() and slot_sampled_end().
 */
void
wait_events_add(int index, SlotSampled *sampled, int64 until, int64 interval)
{
	int64		reset_at = (int64) pg_atomic_read_u64(&profiles[index].reset_at);

	if (unlikely(sampled->waits_since != reset_at))
		sampled->waits_used = 0;
	sampled->waits_since = reset_at;
	sampled->waits_used = add_doing(profiles[index].entries, sampled->waits_used,
									&sampled->doing, Max(sampled->doing.from, reset_at),
									until, interval);
}

/*
 * Copy the profile of an observed session, with what is in progress.  Returns
 * the number of entries; 0 if the session has not been seen since it began or
 * was reset.
 */
int
wait_events_copy(int index, const SlotObservation *observation, WaitSample *samples)
{
	SessionSlot *own = slot_get(index);
	int64		reset_at = (int64) pg_atomic_read_u64(&profiles[index].reset_at);
	SlotSampled sampled;
	uint32		changecount;
	int			attempts = 0;

	do
	{
		changecount = seqlock_read_begin(&own->sampled_lock);
		sampled = own->sampled;
		memcpy(samples, profiles[index].entries, sizeof(profiles[index].entries));
		if (seqlock_read_valid(&own->sampled_lock, changecount))
			break;
		sampled.session = 0;
	} while (seqlock_try_again(&attempts));

	if (sampled.session != observation->published.session ||
		sampled.generation != observation->published.generation || sampled.doing.from == 0)
		return 0;
	return add_doing(samples, sampled.waits_since == reset_at ? sampled.waits_used : 0,
					 &sampled.doing, Max(sampled.doing.from, reset_at),
					 observation->doing_until, slot_control->tick_interval);
}
