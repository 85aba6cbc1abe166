/* Sources: concurrency.c */
/*
 * test_concurrency.c: the distribution of a level over time, against a list of
 * all moments.
 */
#include "concurrency.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"

#define SECOND		INT64_C(1000000000)

static void
test_buckets(void)
{
	int			bucket = 0;

	for (int level = 0; level < CONCURRENCY_LIMIT; level++)
	{
		int			own = concurrency_bucket(level);

		CHECK(own == bucket || own == bucket + 1,
			  "level %d is in bucket %d, after %d: none is skipped",
			  level, own, bucket);
		bucket = own;
		CHECK(concurrency_greatest(own) >= level, "bucket %d does not end before %d", own, level);
		CHECK(concurrency_bucket(concurrency_greatest(own)) == own,
			  "the greatest level of bucket %d is in it", own);
		/* at most a sixteenth too high, and exact for low levels */
		CHECK((concurrency_greatest(own) - level) * CONCURRENCY_STEPS <=
			  (level < CONCURRENCY_EXACT ? 0 : level), "bucket %d is not too wide for %d",
			  own, level);
	}
	CHECK_EQUAL(bucket, CONCURRENCY_BUCKETS - 2, "the bucket of the last level below the limit");
	CHECK_EQUAL(concurrency_bucket(CONCURRENCY_LIMIT), CONCURRENCY_BUCKETS - 1,
				"the bucket of the limit");
	CHECK_EQUAL(concurrency_bucket(INT32_MAX), CONCURRENCY_BUCKETS - 1,
				"the bucket of the greatest level");
	CHECK_EQUAL(concurrency_greatest(CONCURRENCY_BUCKETS - 1), INT32_MAX,
				"the end of the last bucket");
}

static void
add(Concurrency *distribution, int level, int64_t time)
{
	distribution->weight[concurrency_bucket(level)] += time;
}

static int
quantile(const Concurrency *distribution, int per_mille)
{
	return concurrency_quantile(distribution, per_mille, INT32_MAX);
}

/* Known answers. */
static void
test_answers(void)
{
	Concurrency one = {{0}};

	CHECK_EQUAL(quantile(&one, 999), -1, "p99.9 of no time");

	add(&one, 0, 0);
	CHECK_EQUAL(quantile(&one, 500), -1, "p50 of a level that took no time");

	/*
	 * 98.9 s without sessions, 1 s with three, 0.1 s with thirty: exactly 0.1
	 * %
	 */
	add(&one, 0, 989 * SECOND / 10);
	add(&one, 3, SECOND);
	add(&one, 30, SECOND / 10);
	CHECK_EQUAL(quantile(&one, 500), 0, "p50 of three levels");
	CHECK_EQUAL(quantile(&one, 950), 0, "p95 of three levels");
	CHECK_EQUAL(quantile(&one, 990), 3, "p99 of three levels");
	CHECK_EQUAL(quantile(&one, 999), 3, "p99.9 of a level exceeded for exactly 0.1 %");
	CHECK_EQUAL(quantile(&one, 1000), 30, "p100 of three levels");
	CHECK_EQUAL(concurrency_time(&one), 100 * SECOND, "time of three levels");

	/* one more nanosecond is too much */
	add(&one, 31, 1);
	CHECK_EQUAL(quantile(&one, 999), 30, "p99.9 of a level exceeded for longer");
	CHECK_EQUAL(concurrency_quantile(&one, 1000, 25), 25, "a quantile above the caller's maximum");

	/* weights count, not the number of additions */
	memset(&one, 0, sizeof(one));
	for (int i = 0; i < 1000; i++)
		add(&one, 5, SECOND / 1000);
	add(&one, 2, 10 * SECOND);
	CHECK_EQUAL(quantile(&one, 500), 2, "p50 by time");
	CHECK_EQUAL(quantile(&one, 950), 5, "p95 by time");

	/* a hundred years do not overflow */
	memset(&one, 0, sizeof(one));
	add(&one, 7, SECOND * 100 * 365 * 86400);
	add(&one, 9, SECOND * 86400);
	CHECK_EQUAL(quantile(&one, 1), 7, "p0.1 of a hundred years");
	CHECK_EQUAL(quantile(&one, 999), 7, "p99.9 of a hundred years");
	CHECK_EQUAL(quantile(&one, 1000), 9, "p100 of a hundred years");

	/* beyond the last bound, the caller's maximum */
	memset(&one, 0, sizeof(one));
	add(&one, 9000, SECOND);
	CHECK_EQUAL(concurrency_quantile(&one, 500, 9100), 9100, "p50 beyond the last bound");
}

static int
compare(const void *a, const void *b)
{
	return *(const int *) a - *(const int *) b;
}

/* Random levels, each of which lasts for one unit. */
static void
test_random(void)
{
	static const int per_mille[] = {1, 500, 900, 950, 990, 999, 1000};
	static int	levels[5000];
	unsigned	state = 1;

	for (int round = 0; round < 200; round++)
	{
		Concurrency one = {{0}};
		int			count = 1 + round * 23 % 5000;
		int			range = 1 + round * round % CONCURRENCY_LIMIT;

		for (int i = 0; i < count; i++)
		{
			state = state * 1664525 + 1013904223;
			levels[i] = (int) ((state >> 8) % (unsigned) range);
			add(&one, levels[i], 1000);
		}
		qsort(levels, (size_t) count, sizeof(int), compare);
		for (unsigned i = 0; i < sizeof(per_mille) / sizeof(per_mille[0]); i++)
		{
			/* the lowest level with at most this many above it */
			int			above = count * (1000 - per_mille[i]) / 1000;
			int			exact = levels[count - 1 - above];
			int			got = concurrency_quantile(&one, per_mille[i], levels[count - 1]);

			CHECK(got >= exact && (got - exact) * CONCURRENCY_STEPS <= exact,
				  "p%d of %d is %d, which is not too far above %d", per_mille[i], count, got,
				  exact);
			CHECK(got == exact || exact >= CONCURRENCY_EXACT,
				  "p%d is %d, which for low levels is exactly %d",
				  per_mille[i], got, exact);
		}
	}
}

int
main(void)
{
	test_buckets();
	test_answers();
	test_random();
	return CHECKS_DONE("concurrency");
}
