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

/*
 * The lowest level that was not exceeded for "per_mille" of the time, rounded
 * up to the greatest in its bucket, but at most "highest", the highest level
 * that there was.  -1 if there is no time.
 */
int
concurrency_quantile(const Concurrency *distribution, int per_mille, int highest)
{
	int64_t		total = 0;
	int64_t		left;
	int			bucket = CONCURRENCY_BUCKETS - 1;
	int			level;

	for (int i = 0; i < CONCURRENCY_BUCKETS; i++)
		total += distribution->weight[i];
	if (total == 0)
		return -1;
	left = total / 1000 * (1000 - per_mille) + total % 1000 * (1000 - per_mille) / 1000;
	for (; bucket > 0 && distribution->weight[bucket] <= left; bucket--)
		left -= distribution->weight[bucket];
	level = concurrency_greatest(bucket);
	return level < highest ? level : highest;
}

/* Add a distribution to another one, or subtract it if "sign" is -1. */
void
concurrency_sum(Concurrency *sum, const Concurrency *term, int sign)
{
	for (int i = 0; i < CONCURRENCY_BUCKETS; i++)
		sum->weight[i] += sign * term->weight[i];
}
