/* Sources: known.c */
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
		known->where = (int32_t) (keeper->statement[i] & 0xFFFF) + 1;
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
	if (known->where != KNOWN_NOWHERE)
		CHECK_EQUAL(known->where, (int32_t) (statement & 0xFFFF) + 1, "its place in the table");
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

/* Outside of a block: a statement with so many rows, after so much thinking. */
static bool
repeats_outside(Burst *burst, uint64_t number, int64_t rows, int64_t think)
{
	if (think > BURST_THINK_NS)
		burst_pause(burst);
	burst_wait(burst, 0, think);
	burst_enter(burst, false);
	return burst_repeats_outside(burst, statement(number), rows, false);
}

/* So many executions of one statement, one after the other; how many repeat. */
static int
loop_outside(Burst *burst, uint64_t number, int count, int64_t think)
{
	int			found = 0;

	for (int i = 0; i < count; i++)
		found += repeats_outside(burst, number, 1, think);
	return found;
}

/* One for each row of the statement before. */
static void
test_rows(void)
{
	static const int64_t thinks[] = {0, BURST_LOOP_THINK_NS + 1, BURST_THINK_NS};

	for (int i = 0; i < 3; i++)
	{
		Burst		burst = {0};

		CHECK(!repeats_outside(&burst, 0, 20, 0), "the statement with the rows");
		CHECK_EQUAL(loop_outside(&burst, 1, 20, thinks[i]), 19, "one for each of 20 rows");
		CHECK_EQUAL(loop_outside(&burst, 1, 5, BURST_LOOP_THINK_NS + 1), 0, "more than rows");

		CHECK(!repeats_outside(&burst, 0, 1, 0), "one row");
		CHECK_EQUAL(loop_outside(&burst, 1, 20, BURST_LOOP_THINK_NS + 1), 0, "are not for it");
		CHECK(!repeats_outside(&burst, 0, 20, 0), "20 rows");
		CHECK(!repeats_outside(&burst, 2, 1, 0), "something else");
		CHECK_EQUAL(loop_outside(&burst, 1, 20, BURST_LOOP_THINK_NS + 1), 0, "are for nothing");
		CHECK(!repeats_outside(&burst, 0, 20, 0), "20 rows");
		CHECK_EQUAL(loop_outside(&burst, 1, 20, BURST_THINK_NS + 1), 0, "each after a pause");
	}
}

/* A loop that no rows account for. */
static void
test_close(void)
{
	Burst		burst = {0};

	CHECK_EQUAL(loop_outside(&burst, 1, BURST_LOOP, 0), 0, "not yet a loop");
	CHECK_EQUAL(loop_outside(&burst, 1, 100, BURST_LOOP_THINK_NS), 100, "a loop");
	CHECK(!repeats_outside(&burst, 1, 1, BURST_LOOP_THINK_NS + 1), "which ends when it is slow");
	CHECK_EQUAL(loop_outside(&burst, 1, BURST_LOOP - 1, 0), 0, "and begins");
	CHECK_EQUAL(loop_outside(&burst, 1, 10, 0), 10, "again");
	CHECK(!repeats_outside(&burst, 2, 1, 0), "something in between");
	CHECK_EQUAL(loop_outside(&burst, 1, BURST_LOOP + 1, 0), 1, "so does that");
}

/* Requests of many users, of one statement or of several, at random moments. */
static void
test_requests(void)
{
	for (int statements = 1; statements <= 4; statements++)
	{
		Burst		burst = {0};
		int			found = 0;

		for (int i = 0; i < 10000; i++)
		{
			/* on average 2 ms between requests, 0.2 ms within one */
			int64_t		think = (int64_t) (statement(i) % 1000) *
				(i % statements == 0 ? 4000 : 400);

			found += repeats_outside(&burst, i % statements, 1, think);
		}
		CHECK_EQUAL(found, 0, "requests taken for loops");
	}
}

/* Under one Sync. */
static void
test_exchange(void)
{
	Burst		burst = {0};

	CHECK(!repeats_outside(&burst, 1, 1, 0), "first of an exchange");
	for (int i = 0; i < 5; i++)
	{
		burst_enter(&burst, false);
		CHECK(burst_repeats_outside(&burst, statement(1), 1, true), "again in it");
	}
	burst_enter(&burst, false);
	CHECK(!burst_repeats_outside(&burst, statement(2), 1, true), "another one in it");
	CHECK(!repeats_outside(&burst, 2, 1, 0), "the same in the next exchange");
}

/* Blocks and what is outside of them have nothing in common. */
static void
test_outside_and_in(void)
{
	Keeper		keeper = {.places = KEPT};

	CHECK(!repeats_outside(&keeper.burst, 0, 20, 0), "20 rows");
	CHECK(!repeats_outside(&keeper.burst, 1, 1, 0), "outside");
	burst_enter(&keeper.burst, true);
	CHECK(!repeats(&keeper, statement(1)), "in a block, then");
	burst_leave_block(&keeper.burst, false);
	CHECK(!repeats_outside(&keeper.burst, 1, 1, 0), "outside again");

	/* prepared anew each time */
	CHECK(!repeats_outside(&keeper.burst, 0, 3, 0), "3 rows");
	CHECK(!burst_would_repeat_outside(&keeper.burst, statement(1)), "the first of them");
	for (int i = 0; i < 3; i++)
	{
		bool		would = burst_would_repeat_outside(&keeper.burst, statement(1));

		CHECK(repeats_outside(&keeper.burst, 1, 1, 0) == would, "number %d", i);
		CHECK(would == (i > 0), "number %d", i);
	}
	CHECK(!burst_would_repeat_outside(&keeper.burst, statement(1)), "a fourth one");
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

			burst_enter(&keeper.burst, true);
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
	CHECK(!known_is_in_tally(KNOWN_NOWHERE) && !known_is_in_table(KNOWN_NOWHERE), "at first nobody knows");
	for (uint32_t userid = 10; userid < 20; userid++)
	{
		for (uint64_t queryid = 0; queryid < 20; queryid++)
		{
			uint64_t	key = known_key(queryid, userid);

			CHECK(known_find(&known, key)->key == 0, "%u has not run it", userid);
			known_add(&known, key, 1)->where = (int32_t) (userid * 100 + queryid);
		}
	}
	for (uint32_t userid = 10; userid < 20; userid++)
	{
		for (uint64_t queryid = 0; queryid < 20; queryid++)
		{
			int32_t		where = known_find(&known, known_key(queryid, userid))->where;

			CHECK(known_is_in_table(where) && !known_is_in_tally(where), "in the table");
			CHECK_EQUAL(where, (int32_t) (userid * 100 + queryid), "its own");
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
	test_rows();
	test_close();
	test_requests();
	test_exchange();
	test_outside_and_in();
	test_prepares();
	test_ends();
	test_wraps();
	test_random(1);
	test_random(KEPT);
	return CHECKS_DONE("burst");
}
