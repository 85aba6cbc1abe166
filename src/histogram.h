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

/* read in a hot path: not through the table of exported symbols */
#pragma GCC visibility push(hidden)
extern const int64_t histogram_bounds[HISTOGRAM_BUCKETS];
extern const unsigned char histogram_first[64];
#pragma GCC visibility pop

/*
 * The bucket for a duration.  Between two powers of two there is one bound at
 * the most, so the magnitude tells which of two buckets it is.
 */
static inline unsigned
histogram_bucket(int64_t nanoseconds)
{
	unsigned	bucket = histogram_first[63 ^ __builtin_clzll((unsigned long long) nanoseconds | 1)];

	return bucket + (nanoseconds > histogram_bounds[bucket]);
}

/* Count a duration whose bucket is known. */
static inline void
histogram_count(Histogram *histogram, unsigned bucket, int64_t nanoseconds)
{
	histogram->bucket[bucket]++;
	histogram->sum += nanoseconds;
}

static inline void
histogram_observe(Histogram *histogram, int64_t nanoseconds)
{
	histogram_count(histogram, histogram_bucket(nanoseconds), nanoseconds);
}

extern void histogram_add(Histogram *sum, const Histogram *term);
extern const char *histogram_le(int bucket);

#endif							/* PGNETLAT_HISTOGRAM_H */
