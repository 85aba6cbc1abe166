/*-------------------------------------------------------------------------
 *
 * wait_events.c
 *	  See wait_events.h.
 *
 * A session's profile is a short array, searched from the front, where
 * frequent events soon are.  The last place takes whatever finds no other.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "port/atomics.h"
#include "session_slot.h"
#include "storage/shmem.h"
#include "wait_events.h"

/* key: state, then the event's class (8 bits) and number (16 bits), in one word with the count */
typedef struct WaitEntry
{
	uint64		samples:36;
	uint64		state:4;
	uint64		event:24;
	int64		time;			/* ns */
} WaitEntry;

StaticAssertDecl(sizeof(WaitEntry) == 16, "WaitEntry is meant to be two words");

typedef struct WaitProfile
{
	volatile uint64 session;	/* 0 while the profile is being cleared */
	volatile uint32 generation;
	volatile int32 used;
	pg_atomic_uint32 resets;	/* how often somebody has asked for one ... */
	volatile uint32 resets_done;	/* ... before it was cleared last */
	WaitEntry	entries[WAITS_PER_SESSION];
} WaitProfile;

#define OTHER_ENTRY		(WAITS_PER_SESSION - 1)

static WaitProfile *profiles = NULL;

Size
wait_events_shmem_size(void)
{
	return mul_size(slot_count(), sizeof(WaitProfile));
}

void
wait_events_shmem_init(void)
{
	bool		found;

	profiles = ShmemInitStruct("pgnetlat waits", wait_events_shmem_size(), &found);
	if (found)
		return;
	memset(profiles, 0, wait_events_shmem_size());
	for (int i = 0; i < slot_count(); i++)
		pg_atomic_init_u32(&profiles[i].resets, 0);
}

static inline uint32
pack_event(uint32 event)
{
	return (event >> 24) << 16 | (event & 0xFFFF);
}

static inline uint32
unpack_event(uint32 packed)
{
	return (packed >> 16) << 24 | (packed & 0xFFFF);
}

static void
profile_clear(WaitProfile *profile, uint64 session, uint32 generation)
{
	profile->session = 0;
	pg_write_barrier();
	profile->resets_done = pg_atomic_read_u32(&profile->resets);
	memset(profile->entries, 0, sizeof(profile->entries));
	profile->used = 0;
	profile->generation = generation;
	pg_write_barrier();
	profile->session = session;
}

static inline bool
profile_is_of(WaitProfile *profile, uint64 session, uint32 generation)
{
	return profile->session == session && profile->generation == generation &&
		profile->resets_done == pg_atomic_read_u32(&profile->resets);
}

/*
 * The profile begins anew with the next sample, and is empty until then.
 */
void
wait_events_reset(int slot)
{
	pg_atomic_fetch_add_u32(&profiles[slot].resets, 1);
}

/* The profile is soon to be added to: its first entries, the others are rare. */
void
wait_events_prefetch(int slot)
{
	__builtin_prefetch(&profiles[slot], 1);
	__builtin_prefetch(&profiles[slot].entries[2], 1);
}

/*
 * Has the profile been asked to begin anew?  For the sampler, about a session
 * that it has sampled.
 */
bool
wait_events_are_reset(int slot, uint64 session, uint32 generation)
{
	return !profile_is_of(&profiles[slot], session, generation);
}

/*
 * Add so many samples that stand for "time".  For the sampler only.
 */
void
wait_events_add(int slot, uint64 session, uint32 generation, LedgerState state,
				uint32 event, uint32 samples, int64 time)
{
	WaitProfile *profile = &profiles[slot];
	uint32		packed = pack_event(event);
	WaitEntry  *entry;
	int			i;

	if (unlikely(!profile_is_of(profile, session, generation)))
		profile_clear(profile, session, generation);

	for (i = 0; i < profile->used; i++)
	{
		entry = &profile->entries[i];
		if (entry->event == packed && entry->state == (uint64) state)
			break;
	}
	if (i == profile->used)
	{
		if (i < OTHER_ENTRY)
		{
			entry = &profile->entries[i];
			entry->state = state;
			entry->event = packed;
			pg_write_barrier();
			profile->used = i + 1;
		}
		else
			i = OTHER_ENTRY;
	}
	entry = &profile->entries[i];
	entry->samples += samples;
	entry->time += time;
}

/*
 * Copy the profile of a session.  Returns the number of samples' kinds, 0 if
 * the sampler has not seen the session since it began or was reset.
 */
int
wait_events_copy(int slot, uint64 session, uint32 generation, WaitSample *samples)
{
	WaitProfile *profile = &profiles[slot];
	int			count = 0;

	if (!profile_is_of(profile, session, generation))
		return 0;
	pg_read_barrier();
	for (int i = 0; i < WAITS_PER_SESSION; i++)
	{
		WaitEntry	entry = profile->entries[i];

		if (entry.samples == 0)
			continue;
		samples[count].state = entry.state;
		samples[count].event = unpack_event(entry.event);
		samples[count].other = i == OTHER_ENTRY;
		samples[count].samples = entry.samples;
		samples[count].time = entry.time;
		count++;
	}
	pg_read_barrier();
	return profile_is_of(profile, session, generation) ? count : 0;
}
