/*-------------------------------------------------------------------------
 *
 * histogram.h
 *	  Histograms of durations, with fixed buckets as Prometheus users
 *	  expect.
 *
 * Plain C, without server headers.  A bucket counts the durations above the
 * previous bound and up to its own; readers add the buckets up.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_HISTOGRAM_H
#define PGNETLAT_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_BUCKETS	20	/* the last one is +Inf */

typedef struct Histogram
{
	int64_t		bucket[HISTOGRAM_BUCKETS];
	int64_t		sum;			/* nanoseconds */
} Histogram;

/* Tables for finding a bucket. */
typedef struct HistogramScale
{
	int64_t		bound[HISTOGRAM_BUCKETS];	/* upper ones, in nanoseconds */
	unsigned char first[64];	/* bucket whose bound is at least 2^n */
} HistogramScale;

/* hidden: the hot path must not go through the table of exported symbols */
#pragma GCC visibility push(hidden)
extern const HistogramScale histogram_scale;
#pragma GCC visibility pop

/*
 * The bucket for a duration, which is not negative.  There is at most one
 * bound between two powers of two, so the magnitude leaves two buckets to
 * choose from.
 */
static inline unsigned
histogram_bucket(int64_t nanoseconds)
{
	uint64_t	duration = (uint64_t) nanoseconds;
	unsigned	magnitude = 63 ^ (unsigned) __builtin_clzll(duration | 1);
	unsigned	bucket = histogram_scale.first[magnitude];

	return bucket + ((uint64_t) histogram_scale.bound[bucket] < duration);
}

static inline void
histogram_count(Histogram *histogram, int64_t nanoseconds)
{
	histogram->bucket[histogram_bucket(nanoseconds)]++;
	histogram->sum += nanoseconds;
}

extern void histogram_add(Histogram *sum, const Histogram *term);
extern const char *const histogram_le[HISTOGRAM_BUCKETS];

#endif							/* PGNETLAT_HISTOGRAM_H */
