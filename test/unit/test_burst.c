/*
 * test_burst.c: what is a repeat, against a list that forgets nothing.
 */
#include "burst.h"

#include <string.h>

#include "check.h"

/* An identifier as core computes them: a hash. */
static uint64_t
statement(uint64_t number)
{
	uint64_t	z = (number + 1) * UINT64_C(0x9E3779B97F4A7C15);

	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

/* Repeats in so many rounds of so many different statements. */
static int
loop(int different, int rounds, uint64_t (*name) (uint64_t number))
{
	Burst		burst = {0};
	int			repeats = 0;

	for (int round = 0; round < rounds; round++)
	{
		for (int i = 0; i < different; i++)
		{
			burst_enter(&burst, true);
			repeats += burst_repeats(&burst, name(i));
		}
	}
	return repeats;
}

static uint64_t
small(uint64_t number)
{
	return number + 1;
}

static uint64_t
high(uint64_t number)
{
	return (number + 1) << 48;
}

static void
test_loops(void)
{
	for (int different = 1; different <= BURST_STATEMENTS; different++)
	{
		CHECK_EQUAL(loop(different, 5, statement), 4 * different, "repeats in five rounds");
		CHECK_EQUAL(loop(different, 2, small), different, "identifiers that are no hashes");
		CHECK_EQUAL(loop(different, 2, high), different, "identifiers that are no hashes");
	}
	CHECK_EQUAL(loop(BURST_STATEMENTS + 50, 3, statement), 2 * BURST_FEW,
				"of too many only the first are known");
}

static void
test_forgets(void)
{
	Burst		burst = {0};

	/* one statement in a loop, after very many others */
	burst_enter(&burst, true);
	for (int i = 0; i < 10000; i++)
		CHECK(!burst_repeats(&burst, statement(i)), "statement %d was not there", i);
	burst_repeats(&burst, statement(20000));
	for (int i = 0; i < 100; i++)
		CHECK(burst_repeats(&burst, statement(20000)), "the loop is seen");

	/* a new burst knows nothing of the one before */
	burst.open = false;
	burst_enter(&burst, true);
	for (int i = 0; i < BURST_STATEMENTS; i++)
		CHECK(!burst_repeats(&burst, statement(i)), "statement %d of a new burst", i);
	burst_enter(&burst, false);
	CHECK(!burst_repeats(&burst, statement(0)), "in a block, then outside of one");
}

static void
test_prepares(void)
{
	Burst		burst = {0};

	burst_enter(&burst, true);
	CHECK(!burst_knows(&burst, statement(0)), "prepared before its first execution");
	CHECK(!burst_repeats(&burst, statement(0)), "which is no repeat");
	CHECK(burst_knows(&burst, statement(0)), "prepared again");
	CHECK(burst_repeats(&burst, statement(0)), "and repeated");
	for (int i = 1; i < 100; i++)
	{
		CHECK(!burst_knows(&burst, statement(i)), "%d prepared", i);
		CHECK(!burst_repeats(&burst, statement(i)), "%d executed", i);
		CHECK(burst_knows(&burst, statement(i)), "%d prepared again", i);
	}
}

/* Statements in any order. */
static void
test_random(void)
{
	static bool known[BURST_STATEMENTS];
	uint64_t	state = 1;

	for (int burst_number = 0; burst_number < 200; burst_number++)
	{
		Burst		burst = {0};
		int			different = 1 + (int) (statement(burst_number) % BURST_STATEMENTS);

		memset(known, 0, sizeof(known));
		for (int i = 0; i < 2000; i++)
		{
			int			one = (int) (statement(state++) % (unsigned) different);

			burst_enter(&burst, false);
			CHECK(burst_repeats(&burst, statement(one)) == known[one],
				  "statement %d of %d", one, different);
			known[one] = true;
		}
	}
}

int
main(void)
{
	test_loops();
	test_forgets();
	test_prepares();
	test_random();
	return CHECKS_DONE("burst");
}
