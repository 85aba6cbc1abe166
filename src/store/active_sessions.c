/*-------------------------------------------------------------------------
 *
 * active_sessions.c
 *	  Keeps the set of active sessions, and wakes the sampler.
 *
 * Not all machines make the result of an atomic operation visible before they
 * do later reads.  Where the two sides must not miss each other, there is a
 * full barrier.
 *
 * The sampler's latch is that of its PGPROC, which remains valid memory when
 * the sampler exits: setting it too late just wakes another process for
 * nothing.
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

typedef struct ActiveShared
{
	Latch	   *volatile sampler;	/* NULL: there is none */
	pg_atomic_uint32 asleep;	/* a session that becomes active must wake it */
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
active_shmem_attach(void *memory, bool is_new)
{
	shared = memory;
	active_words = shared->words;
	if (!is_new)
		return;
	pg_atomic_init_u32(&shared->asleep, 0);
	for (int i = 0; i < word_count(); i++)
		pg_atomic_init_u64(&active_words[i], 0);
}

static inline uint64
bit_of(int index)
{
	return UINT64CONST(1) << index % 64;
}

/*
 * Mark the session in a slot as active, and wake the sampler if it sleeps.
 * Any process may call this.
 */
void
active_enter(int index)
{
	Latch	   *sampler;

	pg_atomic_fetch_or_u64(&active_words[index / 64], bit_of(index));
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
 * List the slots of active sessions, in order.  "slots" has room for
 * slot_count() of them.  Returns their number.
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
 * Mark the session in a slot as quiet, or as gone.  The sampler must look at
 * the slot once more after this, and call active_enter() if that has changed.
 */
void
active_leave(int index)
{
	pg_atomic_fetch_and_u64(&active_words[index / 64], ~bit_of(index));
	pg_memory_barrier();
}

/*
 * Have the next session that becomes active set the sampler's latch.  Returns
 * false if one is active already: then the sampler must not sleep.
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

/* The sampler is awake. */
void
active_wake_up(void)
{
	pg_atomic_write_u32(&shared->asleep, 0);
}
