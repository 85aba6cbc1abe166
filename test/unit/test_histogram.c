/* Sources: histogram.c */
/*
 * test_histogram.c: buckets and their names; choosing what to evict.
 */
#include <stdlib.h>
#include <string.h>

#include "eviction.h"
#include "histogram.h"

#include "check.h"

static void
test_bounds(void)
{
	CHECK_EQUAL(histogram_bucket(0), 0, "bucket of zero");
	CHECK_EQUAL(histogram_bucket(10000), 0, "a bound belongs to its bucket");
	CHECK_EQUAL(histogram_bucket(10001), 1, "what is above goes to the next");
	CHECK_EQUAL(histogram_bucket(INT64_MAX), HISTOGRAM_BUCKETS - 1, "the last one is open");
	CHECK(strcmp(histogram_le(HISTOGRAM_BUCKETS - 1), "+Inf") == 0, "last le");
	for (int i = 0; i + 1 < HISTOGRAM_BUCKETS; i++)
	{
		double		le = atof(histogram_le(i));

		CHECK_EQUAL((int) histogram_bucket((int64_t) (le * 1e9 + 0.5)), i, histogram_le(i));
		CHECK_EQUAL((int) histogram_bucket((int64_t) (le * 1e9 + 0.5) + 1), i + 1, histogram_le(i));
	}
}

static void
test_sums(void)
{
	Histogram	a = {{0}, 0};
	Histogram	b = {{0}, 0};
	int64_t		count = 0;

	histogram_observe(&a, 5000);
	histogram_observe(&a, 600000);
	histogram_observe(&b, INT64_C(20000000000));
	histogram_add(&a, &b);
	for (int i = 0; i < HISTOGRAM_BUCKETS; i++)
		count += a.bucket[i];
	CHECK_EQUAL(count, 3, "count");
	CHECK_EQUAL(a.sum, INT64_C(20000605000), "sum");
	CHECK_EQUAL(a.bucket[HISTOGRAM_BUCKETS - 1], 1, "+Inf");
}

static void
test_eviction(void)
{
	Eviction	eviction = {{0}, 0, 0};
	double		usage[100];
	int			gone = 0;
	double		greatest_gone = 0;
	double		least_left = 1e300;

	for (int i = 0; i < 100; i++)
	{
		usage[i] = (i * 37) % 100 + 0.5;
		eviction_note(&eviction, usage[i]);
	}
	eviction_choose(&eviction, 20);
	for (int i = 0; i < 100; i++)
	{
		if (eviction_wants(&eviction, usage[i]))
		{
			gone++;
			if (usage[i] > greatest_gone)
				greatest_gone = usage[i];
		}
		else if (usage[i] < least_left)
			least_left = usage[i];
	}
	CHECK_EQUAL(gone, 20, "as many go as were wanted");
	CHECK(eviction_magnitude(greatest_gone) <= eviction_magnitude(least_left),
		  "evicted %f, kept %f", greatest_gone, least_left);
}

int
main(void)
{
	test_bounds();
	test_sums();
	test_eviction();
	return CHECKS_DONE("histogram, eviction");
}
