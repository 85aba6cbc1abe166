/*-------------------------------------------------------------------------
 *
 * active_sessions.c
 *	  See active_sessions.h.
 *
 * What an atomic operation has written is not for certain out, on all machines,
 * before what follows is read: where the two sides must not miss each other, a
 * barrier sees to that.
 *
 * The sampler's latch is that of its PGPROC, which stays where it is when the
 * sampler exits: setting it too late wakes up some process for nothing.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "active_sessions.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "session_slot.h"
#include "storage/latch.h"
#include "storage/shmem.h"

typedef struct ActiveShared
{
	Latch	   *volatile sampler;	/* NULL: there is none */
	pg_atomic_uint32 asleep;	/* it is to be woken by whoever becomes active */
	ActiveWord	words[FLEXIBLE_ARRAY_MEMBER] pg_attribute_aligned(PG_CACHE_LINE_SIZE);
} ActiveShared;

static ActiveShared *shared = NULL;

ActiveWord *active_words = NULL;

static int
word_count(void)
{
	return (slot_count() + 63) / 64;
}

Size
active_shmem_size(void)
{
	return add_size(offsetof(ActiveShared, words) + PG_CACHE_LINE_SIZE,
					mul_size(word_count(), sizeof(ActiveWord)));
}

void
active_shmem_init(void)
{
	bool		found;
	char	   *base = ShmemInitStruct("pgnetlat active sessions", active_shmem_size(), &found);

	shared = (ActiveShared *) CACHELINEALIGN(base);
	active_words = shared->words;
	if (found)
		return;
	shared->sampler = NULL;
	pg_atomic_init_u32(&shared->asleep, 0);
	for (int i = 0; i < word_count(); i++)
	{
		pg_atomic_init_u64(&active_words[i].attached, 0);
		pg_atomic_init_u64(&active_words[i].active, 0);
	}
}

static inline uint64
bit_of(int slot)
{
	return UINT64CONST(1) << slot % 64;
}

/*
 * The session in a slot is active, whoever says so.  The sampler wakes up if
 * it sleeps.
 */
void
active_enter(int slot)
{
	Latch	   *sampler;

	pg_atomic_fetch_or_u64(&active_words[slot / 64].active, bit_of(slot));
	pg_memory_barrier();
	if (pg_atomic_read_u32(&shared->asleep) == 0 ||
		pg_atomic_exchange_u32(&shared->asleep, 0) == 0)
		return;
	sampler = shared->sampler;
	if (sampler)
		SetLatch(sampler);
}

/* A session has opened its slot. */
void
active_attach(int slot)
{
	pg_atomic_fetch_or_u64(&active_words[slot / 64].attached, bit_of(slot));
	active_enter(slot);
}

/* A session has left its slot. */
void
active_detach(int slot)
{
	pg_atomic_fetch_and_u64(&active_words[slot / 64].attached, ~bit_of(slot));
	active_leave(slot);
}

void
active_sampler_starts(void)
{
	pg_atomic_write_u32(&shared->asleep, 0);
	shared->sampler = MyLatch;
}

void
active_sampler_ends(void)
{
	shared->sampler = NULL;
}

/* Put the slots of a word's bits behind the others; how many there are then. */
static int
list_word(uint64 bits, int word, int *slots, int count)
{
	for (; bits != 0; bits &= bits - 1)
		slots[count++] = word * 64 + pg_rightmost_one_pos64(bits);
	return count;
}

/*
 * The slots of sessions, in order.  There is room for slot_count() of them in
 * "slots"; how many there are is returned.
 */
int
active_list(ActiveKind kind, int *slots)
{
	int			count = 0;

	for (int i = 0; i < word_count(); i++)
	{
		uint64		attached = pg_atomic_read_u64(&active_words[i].attached);
		uint64		active = pg_atomic_read_u64(&active_words[i].active);

		count = list_word(kind == SESSIONS_ACTIVE ? active :
						  kind == SESSIONS_QUIET ? attached & ~active : attached,
						  i, slots, count);
	}
	return count;
}

/*
 * The session in a slot is quiet, or there is none any more.  The sampler must
 * look at it once more after this, and put it back if that has changed.
 */
void
active_leave(int slot)
{
	pg_atomic_fetch_and_u64(&active_words[slot / 64].active, ~bit_of(slot));
	pg_memory_barrier();
}

bool
active_nobody_attached(void)
{
	for (int i = 0; i < word_count(); i++)
	{
		if (pg_atomic_read_u64(&active_words[i].attached) != 0)
			return false;
	}
	return true;
}

/*
 * From now on the first session that becomes active sets the sampler's latch.
 * False if there is an active one: then it is not to sleep.
 */
bool
active_fall_asleep(void)
{
	pg_atomic_exchange_u32(&shared->asleep, 1);
	pg_memory_barrier();
	for (int i = 0; i < word_count(); i++)
	{
		if (pg_atomic_read_u64(&active_words[i].active) == 0)
			continue;
		active_wake_up();
		return false;
	}
	return true;
}

/* The sampler is up, whoever has woken it. */
void
active_wake_up(void)
{
	pg_atomic_write_u32(&shared->asleep, 0);
}
