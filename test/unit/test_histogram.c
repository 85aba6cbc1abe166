/* Sources: histogram.c */
/* test_histogram.c: buckets and their names. */
#include <stdlib.h>
#include <string.h>

#include "histogram.h"

#include "check.h"

static void
test_bounds(void)
{
	CHECK_EQUAL(histogram_bucket(0), 0, "bucket of zero");
	CHECK_EQUAL(histogram_bucket(10000), 0, "bucket of the first bound");
	CHECK_EQUAL(histogram_bucket(10001), 1, "bucket of what is just above the first bound");
	CHECK_EQUAL(histogram_bucket(INT64_MAX), HISTOGRAM_BUCKETS - 1, "bucket of the greatest time");
	CHECK(strcmp(histogram_le[HISTOGRAM_BUCKETS - 1], "+Inf") == 0,
		  "le of the last bucket is +Inf");
	for (int i = 0; i + 1 < HISTOGRAM_BUCKETS; i++)
	{
		double		le = atof(histogram_le[i]);

		CHECK_EQUAL((int) histogram_bucket((int64_t) (le * 1e9 + 0.5)), i, histogram_le[i]);
		CHECK_EQUAL((int) histogram_bucket((int64_t) (le * 1e9 + 0.5) + 1), i + 1, histogram_le[i]);
	}
}

static void
test_sums(void)
{
	Histogram	a = {{0}, 0};
	Histogram	b = {{0}, 0};
	int64_t		count = 0;

	histogram_count(&a, 5000);
	histogram_count(&a, 600000);
	histogram_count(&b, INT64_C(20000000000));
	histogram_add(&a, &b);
	for (int i = 0; i < HISTOGRAM_BUCKETS; i++)
		count += a.bucket[i];
	CHECK_EQUAL(count, 3, "count of three observations");
	CHECK_EQUAL(a.sum, INT64_C(20000605000), "sum of three observations");
	CHECK_EQUAL(a.bucket[HISTOGRAM_BUCKETS - 1], 1, "count of the last bucket");
}

int
main(void)
{
	test_bounds();
	test_sums();
	return CHECKS_DONE("histogram");
}
