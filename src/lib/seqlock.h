/*-------------------------------------------------------------------------
 *
 * seqlock.h
 *	  Implements change counts: one writer, and readers that retry.
 *
 * The writer makes the count odd, changes the data, and makes it even again;
 * a reader copies the data and believes the copy only if the count was even
 * before and the same after.  As in core's PgBackendStatus, between begin and
 * end the writer must not raise an error, block or return: keep it short and
 * straight-line.
 *
 * seqlock_write_begin() is a full barrier, not only a write barrier.  If a
 * reader has seen the count from before the section, what the writer reads
 * inside the section (the state of its tally, see tally.h) is at least as new
 * as what that reader wrote.
 *
 * Other barriers are where something is handed over without a change count
 * (recorder.[ch], pooler_clients.c, last_tick), and where each of two processes
 * must see what the other one has just done (tally.c, active_sessions.[ch],
 * sample_sessions.c).  test/barriers tries most of them in all orders.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_SEQLOCK_H
#define PGNETLAT_SEQLOCK_H

#include "port/atomics.h"
#include "storage/s_lock.h"

/*
 * The count is volatile for readers only.  The writer needs only the barriers,
 * and increments the count in one instruction.
 */
typedef struct SeqLock
{
	uint32		changecount;
} SeqLock;

static inline uint32
seqlock_count(const SeqLock *lock)
{
	return *(const volatile uint32 *) &lock->changecount;
}

static inline void
seqlock_write_begin(SeqLock *lock)
{
	lock->changecount++;
	pg_memory_barrier();
}

static inline void
seqlock_write_end(SeqLock *lock)
{
	pg_write_barrier();
	lock->changecount++;
}

static inline uint32
seqlock_read_begin(const SeqLock *lock)
{
	uint32		before = seqlock_count(lock);

	pg_read_barrier();
	return before;
}

static inline bool
seqlock_read_valid(const SeqLock *lock, uint32 before)
{
	pg_read_barrier();
	return seqlock_count(lock) == before && (before & 1) == 0;
}

/*
 * Should a reader retry after a copy that was not valid?  A write section
 * takes some ten nanoseconds unless its process is preempted in it, so after a
 * while the reader sleeps between attempts.  After a tenth of a second it
 * gives up, since that process must have been stopped in its write section.
 * "attempts" is 0 at first.
 *
 * Every loop over somebody else's change count, core's included, has this bound.
 */
#define SEQLOCK_SPINS	1000
#define SEQLOCK_NAPS	100
#define SEQLOCK_NAP_US	1000

static inline bool
seqlock_try_again(int *attempts)
{
	if (++*attempts <= SEQLOCK_SPINS)
		pg_spin_delay();
	else if (*attempts <= SEQLOCK_SPINS + SEQLOCK_NAPS)
		pg_usleep(SEQLOCK_NAP_US);
	else
		return false;
	return true;
}

/*
 * Copy what the lock protects, as of the change count returned.  False if the
 * reader gave up.
 */
static inline bool
seqlock_copy(const SeqLock *lock, void *to, const void *from, size_t size,
			 uint32 *changecount)
{
	int			attempts = 0;

	do
	{
		*changecount = seqlock_read_begin(lock);
		memcpy(to, from, size);
		if (seqlock_read_valid(lock, *changecount))
			return true;
	} while (seqlock_try_again(&attempts));
	return false;
}

#endif							/* PGNETLAT_SEQLOCK_H */
