/*-------------------------------------------------------------------------
 *
 * histogram.c
 *	  See histogram.h.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "histogram.h"

/*
 * Bounds in nanoseconds, and in seconds as Prometheus spells them: shortest
 * form, exponent below 0.0001, ".0" on whole numbers.
 */
static const struct
{
	int64_t		bound;
	const char *le;
}			buckets[HISTOGRAM_BUCKETS] = {
	{INT64_C(10000), "1e-05"},
	{INT64_C(25000), "2.5e-05"},
	{INT64_C(50000), "5e-05"},
	{INT64_C(100000), "0.0001"},
	{INT64_C(250000), "0.00025"},
	{INT64_C(500000), "0.0005"},
	{INT64_C(1000000), "0.001"},
	{INT64_C(2500000), "0.0025"},
	{INT64_C(5000000), "0.005"},
	{INT64_C(10000000), "0.01"},
	{INT64_C(25000000), "0.025"},
	{INT64_C(50000000), "0.05"},
	{INT64_C(100000000), "0.1"},
	{INT64_C(250000000), "0.25"},
	{INT64_C(500000000), "0.5"},
	{INT64_C(1000000000), "1.0"},
	{INT64_C(2500000000), "2.5"},
	{INT64_C(5000000000), "5.0"},
	{INT64_C(10000000000), "10.0"},
	{INT64_MAX, "+Inf"},
};

/* The bucket for a duration; binary search over the bounds. */
int
histogram_bucket(int64_t nanoseconds)
{
	int			low = 0;
	int			high = HISTOGRAM_BUCKETS - 1;

	while (low < high)
	{
		int			middle = (low + high) / 2;

		if (nanoseconds <= buckets[middle].bound)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

void
histogram_observe(Histogram *histogram, int64_t nanoseconds)
{
	histogram->bucket[histogram_bucket(nanoseconds)]++;
	histogram->sum += nanoseconds;
}

void
histogram_add(Histogram *sum, const Histogram *term)
{
	for (int i = 0; i < HISTOGRAM_BUCKETS; i++)
		sum->bucket[i] += term->bucket[i];
	sum->sum += term->sum;
}

/* The upper bound of a bucket in seconds, as text. */
const char *
histogram_le(int bucket)
{
	return buckets[bucket].le;
}
