/*
 * test_burst.c: what is a repeat, against a list that forgets nothing; and what
 * else is known of statements.
 */
#include "burst.h"
#include "known.h"

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

/*
 * Who keeps some statements, as a tally does: when all places are taken, it
 * gives all of them up.
 */
#define KEPT				24

/* Of so many statements in one burst, all repeats are found. */
#define EXACT				KNOWN_STATEMENTS

typedef struct Keeper
{
	Burst		burst;
	Known		known;
	int			places;			/* at most KEPT */
	int			count;
	uint64_t	statement[KEPT];
	uint32_t	executed_in[KEPT];
} Keeper;

static KnownStatement *
known_of(Keeper *keeper, uint64_t statement)
{
	uint64_t	key = known_key(statement, 10);
	KnownStatement *known = known_find(&keeper->known, key);

	return known->key != 0 ? known : known_add(&keeper->known, key, keeper->burst.number);
}

static void
give_up(Keeper *keeper)
{
	for (int i = 0; i < keeper->count; i++)
	{
		KnownStatement *known = known_of(keeper, keeper->statement[i]);

		CHECK_EQUAL(known->where, known_in_tally(i), "where it is");
		known->executed_in = keeper->executed_in[i];
		known->where = known_in_table((int32_t) (keeper->statement[i] & 0xFFFF));
	}
	keeper->count = 0;
}

static uint32_t *
place_of(Keeper *keeper, uint64_t statement)
{
	KnownStatement *known = known_of(keeper, statement);

	if (known_is_in_tally(known->where))
	{
		int			number = known_tally_number(known->where);

		CHECK(number < keeper->count && keeper->statement[number] == statement, "it is there");
		return &keeper->executed_in[number];
	}
	if (known->where != 0)
		CHECK_EQUAL(known_table_place(known->where), (int32_t) (statement & 0xFFFF), "its place in the table");
	if (keeper->count == keeper->places)
	{
		give_up(keeper);
		known = known_of(keeper, statement);
	}
	keeper->statement[keeper->count] = statement;
	keeper->executed_in[keeper->count] = known->executed_in;
	known->where = known_in_tally(keeper->count);
	return &keeper->executed_in[keeper->count++];
}

static bool
repeats(Keeper *keeper, uint64_t statement)
{
	return burst_repeats(&keeper->burst, place_of(keeper, statement));
}

static bool
knows(Keeper *keeper, uint64_t statement)
{
	return *place_of(keeper, statement) == keeper->burst.number;
}

/* Repeats in so many rounds of so many different statements. */
static int
loop(int places, int different, int rounds, uint64_t (*name) (uint64_t number))
{
	Keeper		keeper = {.places = places};
	int			count = 0;

	for (int round = 0; round < rounds; round++)
	{
		for (int i = 0; i < different; i++)
		{
			burst_enter(&keeper.burst, true);
			count += repeats(&keeper, name(i));
		}
	}
	return count;
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
test_loops(int places)
{
	int			found;

	for (int different = 1; different <= EXACT; different++)
	{
		CHECK_EQUAL(loop(places, different, 5, statement), 4 * different, "repeats in five rounds");
		CHECK_EQUAL(loop(places, different, 2, small), different, "identifiers that are no hashes");
		CHECK_EQUAL(loop(places, different, 2, high), different, "identifiers that are no hashes");
	}
	found = loop(places, 2 * EXACT, 3, statement);
	CHECK(found < 2 * 2 * EXACT, "of too many only some are known, %d", found);
}

/* Long sessions: what is of former bursts never keeps a repeat from being found. */
static void
test_bursts(int places)
{
	Keeper		keeper = {.places = places};
	uint64_t	first = 0;

	for (int different = 1; different <= EXACT; different += 1 + different / 10)
	{
		for (int number = 0; number < 20; number++)
		{
			for (int round = 0; round < 3; round++)
			{
				for (int i = 0; i < different; i++)
				{
					burst_enter(&keeper.burst, true);
					CHECK(repeats(&keeper, statement(first + i)) == (round > 0),
						  "round %d, statement %d of %d", round, i, different);
				}
			}
			burst_leave_block(&keeper.burst, false);
			/* some are of the next burst as well */
			first += different - different / 3;
		}
	}
}

static void
test_forgets(void)
{
	Keeper		keeper = {.places = KEPT};

	/* one statement in a loop, after very many others */
	burst_enter(&keeper.burst, true);
	for (int i = 0; i < 10000; i++)
		CHECK(!repeats(&keeper, statement(i)), "statement %d was not there", i);
	repeats(&keeper, statement(20000));
	for (int i = 0; i < 100; i++)
		CHECK(repeats(&keeper, statement(20000)), "the loop is seen");

	/* a new burst knows nothing of the one before */
	burst_leave_block(&keeper.burst, false);
	burst_enter(&keeper.burst, true);
	for (int i = 0; i < EXACT; i++)
		CHECK(!repeats(&keeper, statement(i)), "statement %d of a new burst", i);
	burst_enter(&keeper.burst, false);
	CHECK(!repeats(&keeper, statement(0)), "in a block, then outside of one");
}

/* What ends a burst, and what does not. */
static void
test_ends(void)
{
	Keeper		keeper = {.places = KEPT};

	burst_enter(&keeper.burst, false);
	CHECK(!repeats(&keeper, statement(0)), "first");
	burst_enter(&keeper.burst, false);
	CHECK(repeats(&keeper, statement(0)), "again, outside of a block");
	burst_pause(&keeper.burst);
	burst_enter(&keeper.burst, false);
	CHECK(!repeats(&keeper, statement(0)), "after a pause");

	burst_enter(&keeper.burst, true);
	CHECK(!repeats(&keeper, statement(0)), "in a block");
	burst_leave_block(&keeper.burst, true);
	burst_pause(&keeper.burst);
	burst_enter(&keeper.burst, true);
	CHECK(repeats(&keeper, statement(0)), "in the same block, after a pause");
	burst_leave_block(&keeper.burst, false);
	burst_enter(&keeper.burst, true);
	CHECK(!repeats(&keeper, statement(0)), "in another block");
}

static void
test_prepares(void)
{
	Keeper		keeper = {.places = KEPT};

	burst_enter(&keeper.burst, true);
	CHECK(!knows(&keeper, statement(0)), "prepared before its first execution");
	CHECK(!repeats(&keeper, statement(0)), "which is no repeat");
	CHECK(knows(&keeper, statement(0)), "prepared again");
	CHECK(repeats(&keeper, statement(0)), "and repeated");
	for (int i = 1; i < 100; i++)
	{
		CHECK(!knows(&keeper, statement(i)), "%d prepared", i);
		CHECK(!repeats(&keeper, statement(i)), "%d executed", i);
		CHECK(knows(&keeper, statement(i)), "%d prepared again", i);
	}
}

/* Statements in any order. */
static void
test_random(int places)
{
	static bool known[EXACT];
	uint64_t	state = 1;

	for (int burst_number = 0; burst_number < 200; burst_number++)
	{
		Keeper		keeper = {.places = places};
		int			different = 1 + (int) (statement(burst_number) % EXACT);

		memset(known, 0, sizeof(known));
		for (int i = 0; i < 2000; i++)
		{
			int			one = (int) (statement(state++) % (unsigned) different);

			burst_enter(&keeper.burst, false);
			CHECK(repeats(&keeper, statement(one)) == known[one],
				  "statement %d of %d", one, different);
			known[one] = true;
		}
	}
}

/* When all numbers have been used, what was never executed is no repeat. */
static void
test_wraps(void)
{
	Burst		burst = {.number = UINT32_MAX - 1};

	for (int i = 0; i < 4; i++)
	{
		uint32_t	executed_in = 0;

		burst_enter(&burst, true);
		CHECK(!burst_repeats(&burst, &executed_in), "burst %u: the first time", burst.number);
		CHECK(burst_repeats(&burst, &executed_in), "burst %u: a repeat", burst.number);
		burst_leave_block(&burst, false);
	}
}

/* A statement is one role's. */
static void
test_keys(void)
{
	Known		known = {0};

	CHECK(known_key(0, 0) != 0, "no key is 0");
	CHECK_EQUAL(known_table_place(0), -1, "at first nobody knows");
	for (uint32_t userid = 10; userid < 20; userid++)
	{
		for (uint64_t queryid = 0; queryid < 20; queryid++)
		{
			uint64_t	key = known_key(queryid, userid);

			CHECK(known_find(&known, key)->key == 0, "%u has not run it", userid);
			known_add(&known, key, 1)->where = known_in_table((int32_t) (userid * 100 + queryid));
		}
	}
	for (uint32_t userid = 10; userid < 20; userid++)
	{
		for (uint64_t queryid = 0; queryid < 20; queryid++)
		{
			int32_t		where = known_find(&known, known_key(queryid, userid))->where;

			CHECK(!known_is_in_tally(where), "in the table");
			CHECK_EQUAL(known_table_place(where), (int32_t) (userid * 100 + queryid), "its own");
		}
	}
}

int
main(void)
{
	test_loops(1);
	test_loops(5);
	test_loops(KEPT);
	test_bursts(1);
	test_bursts(KEPT);
	test_keys();
	test_forgets();
	test_prepares();
	test_ends();
	test_wraps();
	test_random(1);
	test_random(KEPT);
	return CHECKS_DONE("burst");
}
