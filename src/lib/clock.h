/*-------------------------------------------------------------------------
 *
 * clock.h
 *	  The monotonic clock, and how core's timestamps map onto it.
 *
 * All intervals are measured with CLOCK_MONOTONIC, in nanoseconds: it is the
 * same for all processes of a machine and does not step.  Only core's
 * statement timestamp says when a request was read, however, and that is
 * wall-clock time.  An offset converts it.  The offset is kept until it is
 * clearly wrong (the wall clock has stepped), so that every conversion of the
 * same timestamp gives the same result.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_CLOCK_H
#define PGNETLAT_CLOCK_H

#include <time.h>

#include "datatype/timestamp.h"

#define NS_PER_US	INT64CONST(1000)
#define NS_PER_MS	INT64CONST(1000000)
#define NS_PER_S	INT64CONST(1000000000)

/* An offset is kept while its error is below this. */
#define CLOCK_OFFSET_TOLERANCE	(100 * NS_PER_US)

static inline int64
clock_read(clockid_t clock)
{
	/*
	 * static, since a variable on the stack would cost each caller a stack
	 * protector
	 */
	static struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

/* Nanoseconds of the monotonic clock. */
static inline int64
clock_now(void)
{
	return clock_read(CLOCK_MONOTONIC);
}

/* Monotonic time minus wall-clock time (Unix epoch), as of now. */
static inline int64
clock_measure_offset(void)
{
	int64		best_offset = 0;
	int64		best_error = PG_INT64_MAX;

	/* try again if the process was preempted between the readings */
	for (int i = 0; i < 5 && best_error > NS_PER_US; i++)
	{
		int64		before = clock_now();
		int64		wall = clock_read(CLOCK_REALTIME);
		int64		after = clock_now();

		if (after - before < best_error)
		{
			best_error = after - before;
			best_offset = before + best_error / 2 - wall;
		}
	}
	return best_offset;
}

static inline bool
clock_offset_is_off(int64 offset, int64 fresh)
{
	return fresh - offset > CLOCK_OFFSET_TOLERANCE ||
		offset - fresh > CLOCK_OFFSET_TOLERANCE;
}

/*
 * Replace an offset if the wall clock has stepped since it was measured.
 * Returns true if it has.
 */
static inline bool
clock_refresh_offset(int64 *offset)
{
	int64		fresh = clock_now() - clock_read(CLOCK_REALTIME);

	/* one rough measurement is enough to see that nothing has happened */
	if (likely(!clock_offset_is_off(*offset, fresh)))
		return false;
	fresh = clock_measure_offset();
	if (!clock_offset_is_off(*offset, fresh))
		return false;
	*offset = fresh;
	return true;
}

#define CLOCK_EPOCH_DIFFERENCE_US \
	((int64) (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * SECS_PER_DAY * USECS_PER_SEC)

/*
 * A timestamp as monotonic time.  Timestamps are truncated to whole
 * microseconds, so half of one is added to make the result right on average.
 */
static inline int64
clock_from_timestamp(int64 offset, TimestampTz timestamp)
{
	return (timestamp + CLOCK_EPOCH_DIFFERENCE_US) * NS_PER_US + NS_PER_US / 2 + offset;
}

/* Monotonic time as a timestamp. */
static inline TimestampTz
clock_to_timestamp(int64 offset, int64 monotonic)
{
	return (monotonic - offset) / NS_PER_US - CLOCK_EPOCH_DIFFERENCE_US;
}

#endif							/* PGNETLAT_CLOCK_H */
