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
 * The bucket for a duration.  Bounds grow about as powers of two do, so the
 * magnitude tells where to begin, and two or three comparisons find it.
 */
static inline unsigned
histogram_bucket(int64_t nanoseconds)
{
	unsigned	bucket = nanoseconds > 0 ?
		histogram_first[63 ^ __builtin_clzll((unsigned long long) nanoseconds)] : 0;

	while (nanoseconds > histogram_bounds[bucket])
		bucket++;
	return bucket;
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
