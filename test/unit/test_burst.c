/*
 * Unit tests of burst.h: which statements are repeats, when each entry of a
 * tally keeps the burst of its last execution.
 */
#include <string.h>

#include "burst.h"

#include "check.h"

#define MS	INT64_C(1000000)

/* A session's statements. */
#define STATEMENTS			1000

static Burst burst;
static uint32_t executed_in[STATEMENTS];

static void
begin(void)
{
	memset(&burst, 0, sizeof(burst));
	memset(executed_in, 0, sizeof(executed_in));
}

/* Identifiers that look like hashes. */
static uint64_t
statement(uint64_t number)
{
	uint64_t	z = (number + 1) * UINT64_C(0x9E3779B97F4A7C15);

	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

static int64_t found_network;

/* Outside a block. */
static int64_t
executes(uint64_t number, int64_t rows, bool same_exchange)
{
	return burst_repeats(&burst, false, NULL, statement(number), rows, same_exchange,
						 &found_network);
}

/* In a block. */
static bool
repeats(int number)
{
	burst_enter(&burst, true);
	return burst_repeats(&burst, true, &executed_in[number], 0, 1, false, &found_network) > 0;
}

/* ---------------------------------------------------------------------------
 * In transaction blocks
 * ---------------------------------------------------------------------------
 */

static void
test_block(void)
{
	begin();
	for (int number = 0; number < 20; number++)
	{
		for (int round = 0; round < 3; round++)
		{
			for (int i = 0; i < STATEMENTS; i++)
				CHECK(repeats(i) == (round > 0),
					  "round %d, statement %d: repeats from the second round on", round, i);
			burst_leave_block(&burst, true);
			burst_pause(&burst);
		}
		burst_leave_block(&burst, false);
	}
}

/*
 * When the numbers wrap around, a statement that was never executed is not a
 * repeat.
 */
static void
test_wraps(void)
{
	begin();
	burst.number = UINT32_MAX - 1;
	for (int i = 0; i < 4; i++)
	{
		CHECK(!repeats(i), "burst %u: the first execution is no repeat", burst.number);
		CHECK(repeats(i), "burst %u: the second execution is a repeat", burst.number);
		burst_leave_block(&burst, false);
	}
}

/* ---------------------------------------------------------------------------
 * Outside of them
 * ---------------------------------------------------------------------------
 */

/* A statement that returns "rows", after thinking and a round trip of 7. */
static int64_t
outside(uint64_t number, int64_t rows, int64_t think)
{
	burst_think(&burst, think);
	burst_wait(&burst, 7, think);
	burst_enter(&burst, false);
	return executes(number, rows, false);
}

/*
 * Execute one statement "count" times in a row.   Returns the number of
 * repeats.
 */
static int64_t
loop(uint64_t number, int count, int64_t think)
{
	int64_t		found = 0;

	for (int i = 0; i < count; i++)
		found += outside(number, 1, think);
	return found;
}

/* One execution for each row of the previous statement. */
static void
test_rows(void)
{
	static const int64_t thinks[] = {0, BURST_LOOP_THINK_NS + 1, BURST_THINK_NS};

	for (int i = 0; i < 3; i++)
	{
		begin();
		found_network = 0;
		CHECK_EQUAL(outside(0, 20, 0), 0, "repeats of the statement with the rows");
		CHECK_EQUAL(loop(1, BURST_FEWEST - 1, thinks[i]), 0, "repeats of calls too few to tell");
		CHECK_EQUAL(outside(1, 1, thinks[i]), BURST_FEWEST - 1,
					"repeats once there are enough calls to tell");
		CHECK_EQUAL(loop(1, 20 - BURST_FEWEST, thinks[i]), 20 - BURST_FEWEST,
					"repeats of one call for each row");
		CHECK_EQUAL(found_network, 19 * 7, "network time of all repeats");
		CHECK_EQUAL(loop(1, 5, BURST_LOOP_THINK_NS + 1), 0, "repeats of calls beyond the rows");

		CHECK_EQUAL(outside(0, 1, 0), 0, "repeats of a statement with one row");
		CHECK_EQUAL(loop(1, 20, BURST_LOOP_THINK_NS + 1), 0,
					"repeats of calls after a statement with one row");
		CHECK_EQUAL(outside(0, 20, 0), 0,
					"repeats of a statement with 20 rows, before another one");
		CHECK_EQUAL(outside(2, 1, 0), 0, "repeats of another statement after the rows");
		CHECK_EQUAL(loop(1, 20, BURST_LOOP_THINK_NS + 1), 0,
					"repeats of calls after another statement");
		CHECK_EQUAL(outside(0, 20, 0), 0, "repeats of a statement with 20 rows, before pauses");
		CHECK_EQUAL(loop(1, 20, BURST_THINK_NS + 1), 0,
					"repeats of calls with a pause before each");
		CHECK_EQUAL(outside(0, 100, 0), 0, "repeats of a statement with 100 rows");
		CHECK_EQUAL(loop(1, 24, BURST_LOOP_THINK_NS + 1), 0,
					"repeats of calls for fewer than a quarter of the rows");
		CHECK_EQUAL(outside(1, 1, BURST_LOOP_THINK_NS + 1), 24,
					"repeats once there are calls for a quarter of the rows");
	}
}

/* Another application's statements come in between, on the same connection. */
static void
test_mixed(void)
{
	for (int others = 1; others < BURST_RUNS; others++)
	{
		int64_t		found = 0;

		begin();
		outside(0, 20, 0);
		for (int i = 0; i < 20; i++)
		{
			found += outside(1, 1, MS);
			for (int other = 0; other < others; other++)
				CHECK_EQUAL(outside(10 + other, 1, MS), 0,
							"repeats of a single call within a loop");
		}
		CHECK_EQUAL(found, 19, "repeats of a loop mixed with single calls");
	}

	/* single calls, mixed with a list that many users request */
	begin();
	for (int i = 0; i < 1000; i++)
	{
		CHECK_EQUAL(outside(0, 20, MS), 0, "repeats of a list that many users request");
		CHECK_EQUAL(outside(1, 1, MS), 0, "repeats of a single call after the list");
		CHECK_EQUAL(outside(2, 1, MS), 0, "repeats of another single call after the list");
	}
}

/* A loop that is not for rows. */
static void
test_close(void)
{
	begin();
	CHECK_EQUAL(loop(1, BURST_LOOP, 0), 0, "repeats of calls before they are a loop");
	CHECK_EQUAL(loop(1, 100, BURST_LOOP_THINK_NS), 100, "repeats of a loop");
	CHECK_EQUAL(outside(1, 1, BURST_LOOP_THINK_NS + 1), 0,
				"repeats of a slow call, which ends the loop");
	CHECK_EQUAL(loop(1, BURST_LOOP - 1, 0), 0, "repeats of calls before they are a loop again");
	CHECK_EQUAL(loop(1, 10, 0), 10, "repeats of a second loop");
	CHECK_EQUAL(outside(2, 1, 0), 0, "repeats of another statement, which ends the loop");
	CHECK_EQUAL(loop(1, BURST_LOOP + 1, 0), 1, "repeats of a third loop");
}

/* Requests of many users, of one statement or of several, at random moments. */
static void
test_requests(void)
{
	for (int statements = 1; statements <= 6; statements++)
	{
		int64_t		found = 0;

		begin();
		for (int i = 0; i < 10000; i++)
		{
			/* on average 2 ms between requests, 0.2 ms within one */
			int64_t		think = (int64_t) (statement(i) % 1000) *
				(i % statements == 0 ? 4000 : 400);

			found += outside(i % statements, 1, think);
		}
		CHECK_EQUAL(found, 0, "repeats of requests of many users");
	}
}

/* Under one Sync. */
static void
test_exchange(void)
{
	begin();
	CHECK_EQUAL(outside(1, 1, 0), 0, "repeats of the first execution in an exchange");
	for (int i = 0; i < 5; i++)
	{
		burst_enter(&burst, false);
		CHECK_EQUAL(executes(1, 1, true), 1,
					"repeats of the same statement in the exchange");
	}
	CHECK_EQUAL(executes(2, 1, true), 0,
				"repeats of another statement in the exchange");
	CHECK_EQUAL(outside(2, 1, 0), 0, "repeats of that statement in the next exchange");
}

/* Statements in blocks and outside do not affect each other. */
static void
test_outside_and_in(void)
{
	begin();
	outside(0, 20, 0);
	CHECK_EQUAL(loop(1, 10, 0), 9, "repeats of a loop outside a block");
	CHECK(!repeats(1), "the first execution in a block is no repeat");
	burst_leave_block(&burst, false);
	CHECK_EQUAL(loop(1, 10, 0), 0, "repeats of calls outside again");
}

/* Prepared anew each time: those round trips count like those of a repeat. */
static void
test_prepares(void)
{
	begin();
	outside(0, 20, 0);
	found_network = 0;
	for (int i = 0; i < 25; i++)
	{
		burst_wait(&burst, 3, 0);
		burst_enter(&burst, false);
		found_network += burst_prepares(&burst, false, 0, statement(1));
		outside(1, 1, 0);
	}
	CHECK_EQUAL(found_network, 19 * (3 + 7), "network time of 19 repeats that are prepared anew");
}

int
main(void)
{
	test_block();
	test_wraps();
	test_rows();
	test_mixed();
	test_close();
	test_requests();
	test_exchange();
	test_outside_and_in();
	test_prepares();
	return CHECKS_DONE("burst");
}
