/* Sources: exec_split.c */
/*
 * test_exec_split.c: whatever is sampled, shown and executed in whatever order,
 * the parts sum to the whole, and none of them falls.
 */
#include "exec_split.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"

#define MS	INT64_C(1000000)

static void
test_booking(void)
{
	ExecSplit	split = {0};

	CHECK_EQUAL(exec_split_book(&split, 3 * MS, EXEC_CPU, 10 * MS), 3 * MS,
				"never more than there was");
	CHECK_EQUAL(exec_split_book(&split, 3 * MS, EXEC_IO, 10 * MS), 0, "nothing is left");
	CHECK_EQUAL(exec_split_book(&split, 15 * MS, EXEC_IO, 10 * MS), 10 * MS, "a sample");
	CHECK_EQUAL(exec_split_sum(&split), 13 * MS, "sum");
	CHECK_EQUAL(exec_split_book(&split, 15 * MS, EXEC_LOCK, -5), 0, "time does not go back");
	CHECK_EQUAL(exec_split_book(&split, 15 * MS, EXEC_LOCK, 10 * MS), 2 * MS,
				"what was not sampled when it was executed");
	exec_split_show(&split, 20 * MS);
	CHECK_EQUAL(split.unsampled, 5 * MS, "what is shown as not sampled");
	CHECK_EQUAL(exec_split_book(&split, 24 * MS, EXEC_CPU, 10 * MS), 4 * MS, "stays so");
	exec_split_show(&split, 24 * MS);
	CHECK_EQUAL(split.unsampled, 5 * MS, "all of it was sampled");
}

/* A tick every 10 ms hits one exchange of 2 ms out of five: none is lost. */
static void
test_short_exchanges(void)
{
	ExecSplit	split = {0};
	int64_t		exec = 0;

	for (int i = 0; i < 1000; i++)
	{
		exec += 2 * MS;
		if (i % 5 == 4)
			exec_split_book(&split, exec, i % 50 == 49 ? EXEC_IO : EXEC_CPU, 10 * MS);
	}
	CHECK_EQUAL(split.part[EXEC_CPU], 1800 * MS, "processor");
	CHECK_EQUAL(split.part[EXEC_IO], 200 * MS, "files");
}

static void
test_add(void)
{
	ExecSplit	sum = {.part = {1, 2, 3, 4, 5, 6},.unsampled = 7};
	ExecSplit	term = {.part = {10, 20, 30, 40, 50, 60},.unsampled = 70};

	exec_split_add(&sum, &term);
	CHECK_EQUAL(sum.part[EXEC_CPU], 11, "the first part");
	CHECK_EQUAL(sum.part[EXEC_OTHER], 66, "the last one");
	CHECK_EQUAL(sum.unsampled, 77, "what was not sampled");
	CHECK_EQUAL(exec_split_sum(&sum), 308, "the sum of the sums");
}

static void
test_lock_wait(void)
{
	ExecLockWait wait = {0};

	CHECK_EQUAL(exec_lock_time(&wait, 0, 100, 7), 7, "nobody says since when");
	CHECK_EQUAL(exec_lock_time(&wait, 98, 100, 7), 7, "the first sample is one like all");
	wait.booked = 7;
	CHECK_EQUAL(exec_lock_time(&wait, 98, 101, 1), 0, "it was too much");
	CHECK_EQUAL(exec_lock_time(&wait, 98, 120, 2), 15, "from then on it is exact");
	wait.booked += 15;
	CHECK_EQUAL(exec_lock_time(&wait, 98, 150, 2), 30, "however rarely somebody looks");
	CHECK_EQUAL(exec_lock_time(&wait, 160, 200, 7), 40, "another one, which began before");
}

static void
test_fit(void)
{
	int64_t		part[NUM_EXEC_PARTS] = {4, 3, -2, 5, 0, 1};
	int64_t		sum[NUM_EXEC_PARTS] = {1, 2};
	const int64_t term[NUM_EXEC_PARTS] = {0, 3, 0, -1, 4};

	exec_parts_fit(part, 10);
	CHECK_EQUAL(exec_parts_sum(part), 10, "what does not fit is cut");
	CHECK_EQUAL(part[2], 0, "nothing is negative");
	CHECK_EQUAL(part[3], 3, "from the last");
	exec_parts_fit(part, -1);
	CHECK_EQUAL(exec_parts_sum(part), 0, "nothing fits into nothing");

	exec_parts_add_fitting(sum, term, 8);
	CHECK_EQUAL(sum[0], 1, "what was there stays");
	CHECK_EQUAL(sum[1], 5, "what fits is added");
	CHECK_EQUAL(sum[4], 2, "as much as fits");
	exec_parts_add_fitting(sum, term, 5);
	CHECK_EQUAL(exec_parts_sum(sum), 8, "nothing is taken away");
}

static void
test_anything(void)
{
	srand(1);
	for (int run = 0; run < 1000; run++)
	{
		ExecSplit	split = {0};
		ExecLockWait wait = {0};
		int64_t		exec = 0;
		int64_t		now = 1;

		for (int i = 0; i < 100; i++)
		{
			ExecSplit	before = split;
			ExecPart	part = rand() % NUM_EXEC_PARTS;
			int64_t		time = rand() % 30;

			now += rand() % 20;
			exec += rand() % 20;
			if (part == EXEC_LOCK)
				time = exec_lock_time(&wait, rand() % 2 ? now - rand() % 50 : wait.since,
									  now, time);
			CHECK(time >= 0, "a sample stands for no time");
			time = exec_split_book(&split, exec, part, time);
			if (part == EXEC_LOCK)
				wait.booked += time;
			if (rand() % 3 == 0)
			{
				exec_split_show(&split, exec);
				CHECK_EQUAL(exec_split_sum(&split), exec, "what is shown");
			}
			CHECK(exec_split_sum(&split) <= exec, "more than there was");
			for (int j = 0; j < NUM_EXEC_PARTS; j++)
				CHECK(split.part[j] >= before.part[j], "part %d fell", j);
			CHECK(split.unsampled >= before.unsampled, "what is not sampled fell");
		}
	}
}

int
main(void)
{
	test_booking();
	test_short_exchanges();
	test_add();
	test_lock_wait();
	test_fit();
	test_anything();
	return CHECKS_DONE("exec_split");
}
