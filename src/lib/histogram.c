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

const HistogramScale histogram_scale = {
	.bound = {
		INT64_C(10000), INT64_C(25000), INT64_C(50000),
		INT64_C(100000), INT64_C(250000), INT64_C(500000),
		INT64_C(1000000), INT64_C(2500000), INT64_C(5000000),
		INT64_C(10000000), INT64_C(25000000), INT64_C(50000000),
		INT64_C(100000000), INT64_C(250000000), INT64_C(500000000),
		INT64_C(1000000000), INT64_C(2500000000), INT64_C(5000000000),
		INT64_C(10000000000), INT64_MAX,
	},
	.first = {
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2,
		3, 4, 5, 6, 7, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 16,
		17, 18, 19, 19, 19, 19, 19, 19, 19, 19, 19, 19, 19, 19, 19, 19,
		19, 19, 19, 19, 19, 19, 19, 19, 19, 19, 19, 19, 19, 19, 19, 19,
	},
};

/*
 * The bounds in seconds, as Prometheus spells them: shortest form, exponent
 * below 0.0001, ".0" on whole numbers.
 */
const char *const histogram_le[HISTOGRAM_BUCKETS] = {
	"1e-05", "2.5e-05", "5e-05",
	"0.0001", "0.00025", "0.0005",
	"0.001", "0.0025", "0.005",
	"0.01", "0.025", "0.05",
	"0.1", "0.25", "0.5",
	"1.0", "2.5", "5.0",
	"10.0", "+Inf",
};

/*
 * Most buckets of "term" are empty.  The sum's are left alone then, since
 * other processors may have just written to their cache lines.
 */
void
histogram_add(Histogram *sum, const Histogram *term)
{
	for (int i = 0; i < HISTOGRAM_BUCKETS; i++)
	{
		if (term->bucket[i] != 0)
			sum->bucket[i] += term->bucket[i];
	}
	if (term->sum == 0)
		return;
	sum->sum += term->sum;
}
