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
	pg_atomic_uint64 words[FLEXIBLE_ARRAY_MEMBER];
} ActiveShared;

static ActiveShared *shared = NULL;

pg_atomic_uint64 *active_words = NULL;

static int
word_count(void)
{
	return (slot_count() + 63) / 64;
}

Size
active_shmem_size(void)
{
	return add_size(offsetof(ActiveShared, words),
					mul_size(word_count(), sizeof(pg_atomic_uint64)));
}

void
active_shmem_init(void)
{
	bool		found;

	shared = ShmemInitStruct("pgnetlat active sessions", active_shmem_size(), &found);
	active_words = shared->words;
	if (found)
		return;
	shared->sampler = NULL;
	pg_atomic_init_u32(&shared->asleep, 0);
	for (int i = 0; i < word_count(); i++)
		pg_atomic_init_u64(&active_words[i], 0);
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

	pg_atomic_fetch_or_u64(&active_words[slot / 64], bit_of(slot));
	pg_memory_barrier();
	if (pg_atomic_read_u32(&shared->asleep) == 0 ||
		pg_atomic_exchange_u32(&shared->asleep, 0) == 0)
		return;
	sampler = shared->sampler;
	if (sampler)
		SetLatch(sampler);
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

/*
 * The slots of active sessions, in order.  There is room for slot_count() of them in
 * "slots"; how many there are is returned.
 */
int
active_list(int *slots)
{
	int			count = 0;

	for (int i = 0; i < word_count(); i++)
	{
		for (uint64 bits = pg_atomic_read_u64(&active_words[i]); bits != 0; bits &= bits - 1)
			slots[count++] = i * 64 + pg_rightmost_one_pos64(bits);
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
	pg_atomic_fetch_and_u64(&active_words[slot / 64], ~bit_of(slot));
	pg_memory_barrier();
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
		if (pg_atomic_read_u64(&active_words[i]) == 0)
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
