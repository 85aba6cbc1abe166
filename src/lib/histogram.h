/*-------------------------------------------------------------------------
 *
 * histogram.h
 *	  Fixed buckets for durations, in the steps that Prometheus users expect.
 *
 * Plain C, no server headers.  A bucket counts what is at most its bound and
 * above the bound before it; readers add them up.
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

/* How buckets are found. */
typedef struct HistogramScale
{
	int64_t		bound[HISTOGRAM_BUCKETS];	/* upper ones, in nanoseconds */
	unsigned char first[64];	/* bucket whose bound is at least 2^n */
} HistogramScale;

/* read in a hot path: not through the table of exported symbols */
#pragma GCC visibility push(hidden)
extern const HistogramScale histogram_scale;
#pragma GCC visibility pop

/*
 * The bucket for a duration, which is not negative.  Between two powers of two
 * there is one bound at the most, so the magnitude tells which of two buckets it
 * is.
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
histogram_observe(Histogram *histogram, int64_t nanoseconds)
{
	histogram->bucket[histogram_bucket(nanoseconds)]++;
	histogram->sum += nanoseconds;
}

extern void histogram_add(Histogram *sum, const Histogram *term);
extern const char *const histogram_le[HISTOGRAM_BUCKETS];

#endif							/* PGNETLAT_HISTOGRAM_H */
