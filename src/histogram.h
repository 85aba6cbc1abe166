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

extern int	histogram_bucket(int64_t nanoseconds);
extern void histogram_observe(Histogram *histogram, int64_t nanoseconds);
extern void histogram_add(Histogram *sum, const Histogram *term);
extern const char *histogram_le(int bucket);

#endif							/* PGNETLAT_HISTOGRAM_H */
