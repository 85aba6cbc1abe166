/*-------------------------------------------------------------------------
 *
 * concurrency.h
 *	  The time-weighted distribution of the number of sessions that were
 *	  busy at once.
 *
 * Levels below CONCURRENCY_EXACT have a bucket each.  Above, each doubling is
 * divided into CONCURRENCY_STEPS buckets.  A level is reported as the greatest
 * in its bucket, which is at most a sixteenth too much.  The last bucket has
 * no upper end.
 *
 * Plain C, no server headers.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_CONCURRENCY_H
#define PGNETLAT_CONCURRENCY_H

#include <stdint.h>

#define CONCURRENCY_STEPS		16	/* 2^4 */
#define CONCURRENCY_EXACT		(2 * CONCURRENCY_STEPS)
#define CONCURRENCY_DOUBLINGS	7
#define CONCURRENCY_LIMIT		(CONCURRENCY_EXACT << CONCURRENCY_DOUBLINGS)
#define CONCURRENCY_BUCKETS \
	(CONCURRENCY_EXACT + CONCURRENCY_STEPS * CONCURRENCY_DOUBLINGS + 1)

/* The nanoseconds for which the level was in each bucket. */
typedef struct Concurrency
{
	int64_t		weight[CONCURRENCY_BUCKETS];
} Concurrency;

extern int	concurrency_bucket(int level);
extern int	concurrency_greatest(int bucket);
extern int64_t concurrency_time(const Concurrency *distribution);
extern int	concurrency_quantile(const Concurrency *distribution, int per_mille,
								 int highest);

#endif							/* PGNETLAT_CONCURRENCY_H */
