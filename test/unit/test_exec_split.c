/* Sources: exec_split.c */
/*
 * test_exec_split.c: for any order of samples and execution, the parts do not
 * exceed the whole, and none of them falls.
 */
#include "exec_split.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"

#define MS	INT64_C(1000000)

static void
test_booking(void)
{
	int64_t		part[NUM_EXEC_PARTS] = {0};

	CHECK_EQUAL(exec_parts_book(part, 3 * MS, EXEC_CPU, 10 * MS), 3 * MS,
				"time booked by a sample of more than the execution");
	CHECK_EQUAL(exec_parts_book(part, 3 * MS, EXEC_IO, 10 * MS), 0,
				"time booked when nothing is left");
	CHECK_EQUAL(exec_parts_book(part, 15 * MS, EXEC_IO, 10 * MS), 10 * MS,
				"time booked by a sample");
	CHECK_EQUAL(exec_parts_sum(part), 13 * MS, "the sum of the parts");
	CHECK_EQUAL(exec_parts_book(part, 15 * MS, EXEC_LOCK, -5), 0,
				"time booked by a negative sample");
	CHECK_EQUAL(exec_parts_book(part, 15 * MS, EXEC_LOCK, 10 * MS), 2 * MS,
				"time booked of what was unsampled");
}

/* A tick every 10 ms hits one of five exchanges of 2 ms: no time is lost. */
static void
test_short_exchanges(void)
{
	int64_t		part[NUM_EXEC_PARTS] = {0};
	int64_t		exec = 0;

	for (int i = 0; i < 1000; i++)
	{
		exec += 2 * MS;
		if (i % 5 == 4)
			exec_parts_book(part, exec, i % 50 == 49 ? EXEC_IO : EXEC_CPU, 10 * MS);
	}
	CHECK_EQUAL(part[EXEC_CPU], 1800 * MS, "CPU time of short exchanges");
	CHECK_EQUAL(part[EXEC_IO], 200 * MS, "I/O time of short exchanges");
}

static void
test_fit(void)
{
	int64_t		part[NUM_EXEC_PARTS] = {4, 3, -2, 5, 0, 1};

	exec_parts_fit(part, 10);
	CHECK_EQUAL(exec_parts_sum(part), 10, "the sum of parts that did not fit");
	CHECK_EQUAL(part[2], 0, "a part that was negative");
	CHECK_EQUAL(part[3], 3, "the last part that was cut");
	exec_parts_fit(part, -1);
	CHECK_EQUAL(exec_parts_sum(part), 0, "the sum of parts that fit into nothing");
}

static void
test_anything(void)
{
	srand(1);
	for (int run = 0; run < 1000; run++)
	{
		int64_t		part[NUM_EXEC_PARTS] = {0};
		int64_t		exec = 0;

		for (int i = 0; i < 100; i++)
		{
			int64_t		before = exec_parts_sum(part);
			int64_t		time;

			exec += rand() % 20;
			time = exec_parts_book(part, exec, rand() % NUM_EXEC_PARTS, rand() % 30);
			CHECK(time >= 0, "a sample does not book negative time");
			CHECK_EQUAL(exec_parts_sum(part), before + time, "the sum after a sample");
			CHECK(exec_parts_sum(part) <= exec, "the parts do not exceed the execution");
		}
	}
}

int
main(void)
{
	test_booking();
	test_short_exchanges();
	test_fit();
	test_anything();
	return CHECKS_DONE("exec_split");
}
