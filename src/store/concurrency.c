/*-------------------------------------------------------------------------
 *
 * concurrency.c
 *	  See concurrency.h.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "concurrency.h"

/* Each bucket of the first doubling has so many levels: 2 to the power of it. */
#define FIRST_SHIFT		2

/* The bucket of a level, which is not negative. */
int
concurrency_bucket(int level)
{
	int			doubling;

	if (level < CONCURRENCY_EXACT)
		return level;
	if (level >= CONCURRENCY_LIMIT)
		return CONCURRENCY_BUCKETS - 1;
	doubling = 31 - __builtin_clz((unsigned) level / CONCURRENCY_EXACT);
	return CONCURRENCY_EXACT + doubling * CONCURRENCY_STEPS +
		(level >> (doubling + FIRST_SHIFT)) - CONCURRENCY_STEPS;
}

/* The least level in a bucket. */
static int
least(int bucket)
{
	int			above = bucket - CONCURRENCY_EXACT;

	if (above < 0)
		return bucket;
	return (CONCURRENCY_STEPS + above % CONCURRENCY_STEPS) <<
		(above / CONCURRENCY_STEPS + FIRST_SHIFT);
}

/* The greatest one; of the last bucket, that of an int. */
int
concurrency_greatest(int bucket)
{
	return bucket == CONCURRENCY_BUCKETS - 1 ? INT32_MAX : least(bucket + 1) - 1;
}

/* The time in all buckets. */
int64_t
concurrency_total(const Concurrency *distribution)
{
	int64_t		total = 0;

	for (int i = 0; i < CONCURRENCY_BUCKETS; i++)
		total += distribution->weight[i];
	return total;
}

/*
 * The lowest level that was exceeded for no more than what is left of the time
 * after so many thousandths of it, or the greatest level in its bucket; but not
 * more than the highest level there was, which the caller knows.  -1 if there is
 * no time at all.
 */
int
concurrency_quantile(const Concurrency *distribution, int per_mille, int highest)
{
	int64_t		total = concurrency_total(distribution);
	int64_t		left = total / 1000 * (1000 - per_mille) +
		total % 1000 * (1000 - per_mille) / 1000;
	int			bucket = CONCURRENCY_BUCKETS - 1;
	int			level;

	if (total == 0)
		return -1;
	for (; bucket > 0 && distribution->weight[bucket] <= left; bucket--)
		left -= distribution->weight[bucket];
	level = concurrency_greatest(bucket);
	return level < highest ? level : highest;
}

/*
 * The greatest level of the highest bucket in which there was any time; 0 if there
 * is none.
 */
int
concurrency_highest(const Concurrency *distribution)
{
	int			bucket = CONCURRENCY_BUCKETS - 1;

	while (bucket > 0 && distribution->weight[bucket] == 0)
		bucket--;
	return concurrency_greatest(bucket);
}

void
concurrency_sum(Concurrency *sum, const Concurrency *term)
{
	for (int i = 0; i < CONCURRENCY_BUCKETS; i++)
		sum->weight[i] += term->weight[i];
}

void
concurrency_subtract(Concurrency *difference, const Concurrency *term)
{
	for (int i = 0; i < CONCURRENCY_BUCKETS; i++)
		difference->weight[i] -= term->weight[i];
}
