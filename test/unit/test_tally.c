/* Sources: tally.c statements.c table.c histogram.c exec_split.c snapshots.c */
/*
 * test_tally.c: nothing that a session counts is lost or counted twice, while
 * others take its tally, evict entries of the table of statements, or reset
 * everything.
 *
 * The server is one process (server/) that simulates several, each with its
 * own stack.  At a barrier, an atomic operation or a lock, chance decides
 * which one runs next.
 */
#include "postgres.h"

#include <ucontext.h>

#include "check.h"
#include "miscadmin.h"
#include "settings.h"
#include "statements.h"
#include "table.h"
#include "tally.h"
#include "utils/timestamp.h"

/* ---------------------------------------------------------------------------
 * Processes
 * ---------------------------------------------------------------------------
 */

#define PROCESSES		3
#define STACK_SIZE		(256 * 1024)

typedef struct TestProcess
{
	ucontext_t	context;
	void		(*main) (void);
	bool		runs;
	char		stack[STACK_SIZE];
} TestProcess;

static TestProcess processes[PROCESSES];
static TestProcess *running = NULL; /* NULL: the test itself */
static ucontext_t test_context;
static int	step_chance;		/* after 1 in this many steps, another one
								 * runs */

static uint64
random_number(uint64 below)
{
	static uint64 state = 1;
	uint64		z = (state += UINT64CONST(0x9E3779B97F4A7C15));

	z = (z ^ (z >> 30)) * UINT64CONST(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64CONST(0x94D049BB133111EB);
	return (z ^ (z >> 31)) % below;
}

/* Perhaps let another process run. */
static void
yield(void)
{
	TestProcess *before = running;
	TestProcess *next = &processes[random_number(PROCESSES)];

	if (before == NULL || next == before || !next->runs)
		return;
	running = next;
	swapcontext(&before->context, &next->context);
}

void
server_step(void)
{
	if (running != NULL && random_number(step_chance) == 0)
		yield();
}

static void
run_process(int number)
{
	processes[number].main();
	processes[number].runs = false;
	for (int i = 0; i < PROCESSES; i++)
	{
		if (!processes[i].runs)
			continue;
		running = &processes[i];
		setcontext(&running->context);
	}
	running = NULL;
	setcontext(&test_context);
}

static void
begin_process(int number, void (*process_main) (void))
{
	TestProcess *process = &processes[number];

	process->main = process_main;
	process->runs = true;
	getcontext(&process->context);
	process->context.uc_stack.ss_sp = process->stack;
	process->context.uc_stack.ss_size = STACK_SIZE;
	process->context.uc_link = NULL;
	makecontext(&process->context, (void (*) (void)) run_process, 1, number);
}

/* Run all of them to their ends. */
static void
run_all(void (*const mains[PROCESSES]) (void), int chance)
{
	step_chance = chance;
	for (int i = 0; i < PROCESSES; i++)
		begin_process(i, mains[i]);
	running = &processes[0];
	swapcontext(&test_context, &running->context);
}

/* ---------------------------------------------------------------------------
 * The server
 * ---------------------------------------------------------------------------
 */

#define CAPACITY		60
#define DATABASE		5
#define USER			10
#define OTHER_USER		11

LWLockPadded *locks_of_kind[LOCK_KINDS];
Oid			MyDatabaseId = DATABASE;
int			pgnetlat_max_statements = CAPACITY;
SlotControl *slot_control = NULL;

static SessionSlot *slot = NULL;

TimestampTz
GetCurrentTimestamp(void)
{
	return 1;
}

static bool
try_lock(LWLock *lock, LWLockMode mode)
{
	if (lock->held < 0 || (mode == LW_EXCLUSIVE && lock->held > 0))
		return false;
	lock->held = mode == LW_EXCLUSIVE ? -1 : lock->held + 1;
	return true;
}

void
LWLockAcquire(LWLock *lock, LWLockMode mode)
{
	server_step();
	while (!try_lock(lock, mode))
		yield();
	server_step();
}

void
LWLockRelease(LWLock *lock)
{
	server_step();
	lock->held = lock->held < 0 ? 0 : lock->held - 1;
	server_step();
}

int
slot_count(void)
{
	return 1;
}

SessionSlot *
slot_get(int index)
{
	return slot;
}

/* ---------------------------------------------------------------------------
 * What was counted, and where it is
 * ---------------------------------------------------------------------------
 */

#define MOST_STATEMENTS	80

static int64 expected[MOST_STATEMENTS]; /* executions since the latest reset,
										 * as the session sees it */
static int64 expected_requests;
static int64 expected_waits;
static int64 taken_requests;	/* requests that are in the tables */
static int64 taken_waits;
static int64 taken_networks;
static int	takes;
static int	flushes;
static int	resets;

static void
forget_expected(void)
{
	memset(expected, 0, sizeof(expected));
	expected_requests = expected_waits = 0;
}

/* As session_slot.c does. */
void
slot_apply_reset(SlotPublished *published)
{
	published->generation = slot_control->generation;
	server_step();
	forget_expected();
}

/* ---------------------------------------------------------------------------
 * The session
 * ---------------------------------------------------------------------------
 */

static int	different;			/* statements that it executes */
static int	exchanges;
static bool in_turn;			/* one after another; else by chance */

/* Query identifiers, two of which have the same hint. */
static uint64
queryid_of(int number)
{
	return (number / 2 + 1) * UINT64CONST(0x9E3779B97F4A7C15) / TALLY_BUCKETS * TALLY_BUCKETS +
		(uint64) (number / 2) % TALLY_BUCKETS + (number % 2) * UINT64CONST(0x100000000) * TALLY_BUCKETS;
}

static void
write_begin(void)
{
	slot_write_begin(slot);
	if (tally_was_touched(slot))
		(void) tally_settle(slot);
}

/* As exchange.c does. */
static void
flush(void)
{
	locks_acquire(LOCK_RESET, 0, LW_SHARED);
	locks_acquire(LOCK_ACCUMULATE, 0, LW_EXCLUSIVE);
	write_begin();
	slot_write_end(slot);
	statements_accumulate(my_tally.tally->statements, my_tally.tally->count, MyDatabaseId);
	write_begin();
	tally_clear_statements();
	slot_write_end(slot);
	locks_release(LOCK_ACCUMULATE, 0);
	locks_release(LOCK_RESET, 0);
	flushes++;
}

static void
execute(int number)
{
	uint64		queryid = queryid_of(number);

	server_step();
	if (tally_at_hint(queryid, USER) == NULL && !tally_look_up(queryid, USER))
	{
		flush();
		CHECK(tally_look_up(queryid, USER), "there is room after a flush");
	}
	CHECK(my_tally.current->queryid == queryid && my_tally.current->userid == USER,
		  "the current place is that of the statement");
	server_step();
	write_begin();
	if (my_tally.current != NULL)
	{
		StatementTotals *totals = &my_tally.current->totals;

		totals->calls++;
		totals->rows += number;
		totals->exec += 1000 + number;
		totals->repeat_network += 7;
		tally_observe(METRIC_REQUEST, 1000 + number);
		expected[number]++;
		expected_requests++;
	}
	slot_write_end(slot);
	server_step();
	write_begin();
	if (my_tally.current != NULL)
	{
		my_tally.current->totals.client += 5;
		tally_observe_wait(random_number(2) * 100, 5);
		expected_waits++;
	}
	slot_write_end(slot);
}

/* Check that each statement has only one entry. */
static void
check_places(void)
{
	const Tally *tally = my_tally.tally;

	for (int i = 0; i < tally->count; i++)
	{
		for (int other = 0; other < i; other++)
			CHECK(tally->statements[i].queryid != tally->statements[other].queryid,
				  "places %d and %d are not of one statement", i, other);
	}
}

static void
session(void)
{
	for (int i = 0; i < exchanges; i++)
		execute(in_turn ? i % different :
				(int) random_number(1 + random_number(different)));
}

/* ---------------------------------------------------------------------------
 * Others
 * ---------------------------------------------------------------------------
 */

static int64
count_of(const Histogram *histogram)
{
	int64		count = 0;

	for (int i = 0; i < HISTOGRAM_BUCKETS; i++)
		count += histogram->bucket[i];
	return count;
}

static void
add_histograms(const Tally *tally)
{
	Histogram	histogram;
	int64		network;

	(void) tally_histogram(tally, METRIC_REQUEST, &histogram);
	taken_requests += count_of(&histogram);
	(void) tally_histogram(tally, METRIC_WAIT, &histogram);
	taken_waits += count_of(&histogram);
	(void) tally_histogram(tally, METRIC_NETWORK, &histogram);
	network = count_of(&histogram);
	taken_networks += network;
	(void) tally_histogram(tally, METRIC_CLIENT, &histogram);
	CHECK_EQUAL(count_of(&histogram), network, "the number of waits in the histogram of clients");
	CHECK(!tally_histogram(tally, METRIC_RTT, &histogram),
		  "there is no histogram of what was not measured");
}

static void
add_tally(const Tally *tally)
{
	statements_accumulate(tally->statements, tally->count, DATABASE);
	add_histograms(tally);
}

/* The session goes on meanwhile. */
static void
take(void)
{
	Tally		tally;

	locks_acquire(LOCK_RESET, 0, LW_SHARED);
	locks_acquire(LOCK_ACCUMULATE, 0, LW_EXCLUSIVE);
	if (tally_take(0, &tally))
	{
		takes++;
		yield();
		add_tally(&tally);
	}
	locks_release(LOCK_ACCUMULATE, 0);
	locks_release(LOCK_RESET, 0);
}

/* As accumulate_reset() does. */
static void
reset(void)
{
	locks_acquire(LOCK_RESET, 0, LW_EXCLUSIVE);
	slot_control->generation++;
	server_step();
	tables_clear();
	taken_requests = taken_waits = taken_networks = 0;
	locks_release(LOCK_RESET, 0);
	resets++;
}

static bool with_resets;

static void
taker(void)
{
	while (processes[0].runs)
	{
		if (random_number(2) == 0)
			take();
		else if (with_resets && random_number(20) == 0)
			reset();
		yield();
	}
}

/* Another session, whose statements fill the table. */
static bool with_others;

static void
other(void)
{
	while (processes[0].runs && with_others)
	{
		CountedStatement counted = {0};

		counted.queryid = 1000000 + random_number(2 * CAPACITY);
		counted.userid = OTHER_USER;
		counted.totals.calls = 1;
		locks_acquire(LOCK_RESET, 0, LW_SHARED);
		statements_accumulate(&counted, 1, DATABASE);
		locks_release(LOCK_RESET, 0);
		yield();
	}
}

/* ---------------------------------------------------------------------------
 * The sum
 * ---------------------------------------------------------------------------
 */

static void
check_sums(void)
{
	static int64 found[MOST_STATEMENTS];
	int64		evicted = 0;
	int64		all = 0;
	int			count;
	StatementEntry *entries;
	Tally		tally;

	/* add what is not in the tables yet, but nothing from before a reset */
	write_begin();
	slot_write_end(slot);
	CHECK(tally_take(0, &tally), "the tally can be taken");
	CHECK(!tally_take(0, &tally), "the tally can be taken only once");
	add_tally(&tally);
	entries = statements_copy(0, &count);
	memset(found, 0, sizeof(found));
	for (int i = 0; i < count; i++)
	{
		const StatementEntry *entry = &entries[i];

		if (entry->key.queryid == 0)
			evicted += entry->counters.totals.client / 5;
		for (int number = 0; number < different; number++)
		{
			if (entry->key.queryid != queryid_of(number) || entry->key.userid != USER)
				continue;
			found[number] += entry->counters.totals.calls;
			CHECK_EQUAL(entry->counters.totals.rows, found[number] * number,
						"the rows of a statement");
			CHECK_EQUAL(entry->counters.totals.exec, found[number] * (1000 + number),
						"the execution time of a statement");
			CHECK_EQUAL(entry->counters.totals.repeat_network, 7 * found[number],
						"the repeats' network time of a statement");
		}
	}
	for (int number = 0; number < different; number++)
	{
		if (!with_others)
			CHECK_EQUAL(found[number], expected[number], "the calls of a statement");
		CHECK(found[number] <= expected[number],
			  "statement %d: no more than %lld calls of %lld", number,
			  (long long) found[number], (long long) expected[number]);
		all += found[number];
	}
	if (!with_others)
		CHECK_EQUAL(all, expected_requests, "the calls of all statements");
	else
	{
		int64		clients = 0;

		for (int i = 0; i < count; i++)
			clients += entries[i].counters.totals.client / 5;
		CHECK_EQUAL(clients, expected_waits, "waits after statements, including evicted ones");
		CHECK(evicted <= clients, "waits of evicted statements do not exceed all waits");
	}
	CHECK_EQUAL(taken_requests, expected_requests, "requests in the histogram");
	CHECK_EQUAL(taken_waits, expected_waits, "waits in the histogram");
	CHECK_EQUAL(taken_networks, expected_waits, "waits in the histogram of the network");
	free(entries);
}

static void
begin(void)
{
	static SlotControl control;
	static void *tallies;
	static void *table;

	memset(&control, 0, sizeof(control));
	slot_control = &control;
	free(slot);
	slot = aligned_alloc(PG_CACHE_LINE_SIZE, CACHELINEALIGN(sizeof(SessionSlot)));
	memset(slot, 0, sizeof(SessionSlot));
	for (int kind = 0; kind < LOCK_KINDS; kind++)
	{
		free(locks_of_kind[kind]);
		locks_of_kind[kind] = calloc(64, sizeof(LWLockPadded));
	}
	free(tallies);
	tallies = calloc(1, tally_shmem_size());
	tally_shmem_attach(tallies, true);
	free(table);
	table = calloc(1, statements_shmem_size());
	statements_shmem_attach(table, true);
	tally_attach(0);
	forget_expected();
	taken_requests = taken_waits = taken_networks = 0;
}

static void
test(int statements, bool turn, int chance, bool resetting, bool others)
{
	static void (*const mains[PROCESSES]) (void) = {session, taker, other};

	begin();
	different = statements;
	in_turn = turn;
	exchanges = 3000;
	with_resets = resetting;
	with_others = others;
	run_all(mains, chance);
	check_places();
	check_sums();
}

int
main(void)
{
	static const int numbers[] = {1, 2, TALLY_STATEMENTS - 1, TALLY_STATEMENTS, TALLY_STATEMENTS + 1, 50};

	for (int series = 0; series < 4; series++)
	{
		for (size_t i = 0; i < lengthof(numbers); i++)
		{
			for (int chance = 1; chance <= 100; chance *= 10)
			{
				for (int which = 0; which < 4; which++)
					test(numbers[i], series % 2 == 0, chance, (which & 1) != 0, (which & 2) != 0);
			}
		}
	}
	CHECK(takes > 1000, "the tally was taken often (%d)", takes);
	CHECK(flushes > 100, "the tally was flushed often (%d)", flushes);
	CHECK(resets > 100, "there were many resets (%d)", resets);
	return CHECKS_DONE("tally");
}
