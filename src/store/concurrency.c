/*-------------------------------------------------------------------------
 *
 * concurrency.c
 *	  Distributions of the number of busy sessions over time.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "concurrency.h"

/* The bucket of a level, which must not be negative. */
int
concurrency_bucket(int level)
{
	int			doubling;

	if (level < CONCURRENCY_EXACT)
		return level;
	if (level >= CONCURRENCY_LIMIT)
		return CONCURRENCY_BUCKETS - 1;
	/* the five highest bits count, and the first one is always set */
	doubling = 31 - __builtin_clz((unsigned) level / CONCURRENCY_STEPS);
	return doubling * CONCURRENCY_STEPS + (level >> doubling);
}

/* The greatest level in a bucket. */
int
concurrency_greatest(int bucket)
{
	int			next = bucket + 1;
	int			doubling = next / CONCURRENCY_STEPS - 1;

	if (next < CONCURRENCY_EXACT)
		return bucket;
	if (next == CONCURRENCY_BUCKETS)
		return INT32_MAX;
	return ((next - doubling * CONCURRENCY_STEPS) << doubling) - 1;
}

/* The sum of all weights. */
int64_t
concurrency_time(const Concurrency *distribution)
{
	int64_t		time = 0;

	for (int i = 0; i < CONCURRENCY_BUCKETS; i++)
		time += distribution->weight[i];
	return time;
}

/*
 * The lowest level that was not exceeded for "per_mille" of the time, rounded
 * up to the greatest in its bucket, but at most "highest", the highest level
 * that there was.  -1 if there is no time.
 */
int
concurrency_quantile(const Concurrency *distribution, int per_mille, int highest)
{
	int64_t		total = concurrency_time(distribution);
	int64_t		left = total / 1000 * (1000 - per_mille) + total % 1000 * (1000 - per_mille) / 1000;
	int			bucket = CONCURRENCY_BUCKETS - 1;
	int			level;

	if (total == 0)
		return -1;
	for (; bucket > 0 && distribution->weight[bucket] <= left; bucket--)
		left -= distribution->weight[bucket];
	level = concurrency_greatest(bucket);
	return level < highest ? level : highest;
}
