/* Sources: table.c */
/*
 * Unit tests of table.c, with a server of one process (server/): whenever it
 * has released a lock, others may do to the table what they like.  So whatever
 * can come between two steps of a copy does, many times over.
 */
#include "postgres.h"

#include "check.h"
#include "table.h"

/* ---------------------------------------------------------------------------
 * The server
 * ---------------------------------------------------------------------------
 */

LWLockPadded *locks_of_kind[LOCK_KINDS];

static void (*between_locks) (void) = NULL;
static int	locks_held = 0;
static int	most_places_under_lock = 0;

void *
ShmemInitStruct(const char *name, Size size, bool *found)
{
	*found = false;
	return calloc(1, size);
}

void
LWLockAcquire(LWLock *lock, LWLockMode mode)
{
	CHECK(lock->held == 0 && locks_held == 0, "one lock at a time");
	lock->held = 1;
	locks_held++;
}

bool
LWLockConditionalAcquire(LWLock *lock, LWLockMode mode)
{
	if (lock->held)
		return false;
	LWLockAcquire(lock, mode);
	return true;
}

void
LWLockRelease(LWLock *lock)
{
	static bool within = false;

	CHECK(lock->held == 1, "held when it is released");
	lock->held = 0;
	locks_held--;
	if (between_locks == NULL || within)
		return;
	within = true;
	between_locks();
	within = false;
}

/* ---------------------------------------------------------------------------
 * A table of numbers
 * ---------------------------------------------------------------------------
 */

#define CAPACITY	1000
#define KEYS		3000

typedef struct Entry
{
	uint64		key;
	double		usage;
	TimestampTz since;
	int64		count;
	bool		stays;
	int			prepared;		/* behind what make() makes */
} Entry;

typedef struct Own
{
	int64		count;			/* of what was evicted */
} Own;

static bool
may_go(const void *entry)
{
	return !((const Entry *) entry)->stays;
}

static void
evict(void *own, const void *entry)
{
	((Own *) own)->count += ((const Entry *) entry)->count;
}

/* As an owner does who has a lock in each entry. */
static void
init(void *entry)
{
	((Entry *) entry)->prepared++;
}

static void
make(void *entry, const void *key)
{
	CHECK_EQUAL(((Entry *) entry)->key, 0, "key of a place that is made an entry");
	memset(entry, 0, offsetof(Entry, prepared));
	memcpy(entry, key, sizeof(uint64));
}

static const TableSpec spec = {
	.name = "numbers",
	.lock = LOCK_STATEMENTS,
	.key_size = sizeof(uint64),
	.entry_size = sizeof(Entry),
	.usage_offset = offsetof(Entry, usage),
	.since_offset = offsetof(Entry, since),
	.own_size = sizeof(Own),
	.may_go = may_go,
	.evict = evict,
	.init = init,
	.make = make,
};

static Table table;
static int64 added;				/* since the latest reset */

static void
set_up(void)
{
	free(locks_of_kind[LOCK_STATEMENTS]);
	locks_of_kind[LOCK_STATEMENTS] = calloc(table_partitions(CAPACITY), sizeof(LWLockPadded));
	if (locks_of_kind[LOCK_RESET] == NULL)
		locks_of_kind[LOCK_RESET] = calloc(1, sizeof(LWLockPadded));
	table_shmem_init(&table, &spec, CAPACITY);
	added = 0;
	between_locks = NULL;
	srand(1);
}

/* As accumulating does it; the number of times that room was made. */
static int
add(uint64 number, bool stays)
{
	uint64		key = number + 1;	/* never zero */
	uint32		hash = chains_hash(key, 1);
	int			made_room = 0;
	Entry	   *entry;

	for (;;)
	{
		table_lock(&table, hash);
		entry = table_find_or_add(&table, hash, &key, 42);
		if (entry || made_room == 3)
			break;
		table_unlock(&table, hash);
		if (!table_make_room(&table, true))
			made_room = 2;
		made_room++;
	}
	if (entry)
	{
		entry->count++;
		entry->usage++;
		entry->stays |= stays;
	}
	else
	{
		((Own *) table_own(&table, hash))->count++;
		table_count_evicted(&table, hash);
	}
	added++;
	table_unlock(&table, hash);
	return made_room;
}

static void
read_own(const void *own, void *sum)
{
	*(int64 *) sum += ((const Own *) own)->count;
}

static void
restart(void *sum)
{
	*(int64 *) sum = 0;
}

/* A copy's sum; each key must be there once. */
static int64
sum_of_copy(int *count)
{
	static const TableReader reader = {
		.copy_size = sizeof(Entry),
		.own = read_own,
		.restart = restart,
		.extra = 1,
	};
	bool		is_there[KEYS] = {false};
	int64		sum = -1;
	Entry	   *copies = table_copy(&table, &reader, &sum, count);

	for (int i = 0; i < *count; i++)
	{
		uint64		number = copies[i].key - 1;

		CHECK(number < KEYS, "number %llu", (unsigned long long) number);
		CHECK(!is_there[number], "number %llu is there twice", (unsigned long long) number);
		is_there[number] = true;
		CHECK(copies[i].count > 0 && copies[i].since == 42, "an entry is complete");
		sum += copies[i].count;
	}
	free(copies);
	return sum;
}

/* ---------------------------------------------------------------------------
 * Tests
 * ---------------------------------------------------------------------------
 */

static void
test_limit(void)
{
	int			count;

	set_up();
	for (int i = 0; i < CAPACITY; i++)
		CHECK_EQUAL(add(i, false), 0, "room was made");
	CHECK_EQUAL(table_entries(&table), CAPACITY, "entries");
	CHECK_EQUAL(table_evicted(&table), 0, "evicted");
	CHECK_EQUAL(add(CAPACITY, false), 1, "room was made");
	CHECK(table_entries(&table) > CAPACITY * 95 / 100, "few have gone");
	CHECK_EQUAL(table_entries(&table) + table_evicted(&table), CAPACITY + 1, "all there were");
	CHECK_EQUAL(sum_of_copy(&count), CAPACITY + 1, "sum");
	CHECK_EQUAL(count, table_entries(&table), "copies");
}

/*
 * Who knows in which place an entry was sees by its key whether it still is: that
 * of a free place is zero.
 */
static void
check_places(void)
{
	const Entry *places = (const Entry *) table.entries;
	int			used = 0;

	for (int i = 0; i < CAPACITY; i++)
	{
		CHECK_EQUAL(places[i].prepared, 1, "times that a place was prepared");
		used += places[i].key != 0;
	}
	CHECK_EQUAL(used, table_entries(&table), "places with a key");
}

static void
test_places(void)
{
	set_up();
	check_places();
	for (int i = 0; i < KEYS; i++)
	{
		add(i, false);
		if (i % 100 == 0)
			check_places();
	}
	table_clear(&table);
	check_places();
	for (int i = 0; i < CAPACITY; i++)
		add(i, false);
	check_places();
}

/* What is used often stays. */
static void
test_usage(void)
{
	set_up();
	for (int round = 0; round < 50; round++)
	{
		for (int i = 0; i < 100; i++)
			add(i, false);
	}
	for (int i = 100; i < KEYS; i++)
		add(i, false);
	for (uint64 key = 1; key <= 100; key++)
	{
		uint32		hash = chains_hash(key, 1);

		table_lock(&table, hash);
		CHECK(table_find(&table, hash, &key) != NULL, "key %d", (int) key);
		table_unlock(&table, hash);
	}
}

/* What must stay does, and where nothing may go there is no room. */
static void
test_must_stay(void)
{
	int			count;

	set_up();
	for (int i = 0; i < CAPACITY; i++)
		add(i, true);
	CHECK(!table_make_room(&table, true), "nothing may go");
	CHECK_EQUAL(add(CAPACITY, false), 3, "in vain");
	CHECK_EQUAL(table_entries(&table), CAPACITY, "entries");
	CHECK_EQUAL(table_evicted(&table), 1, "found no room");
	CHECK_EQUAL(sum_of_copy(&count), CAPACITY + 1, "sum");
}

/* Who does not want to wait gets by without the partition that is locked. */
static void
test_without_waiting(void)
{
	set_up();
	for (int i = 0; i < CAPACITY; i++)
		add(i, false);
	for (int i = 0; i < table_partitions(CAPACITY); i++)
		locks_of_kind[LOCK_STATEMENTS][i].lock.held = 1;
	CHECK(!table_make_room(&table, false), "all are locked");
	CHECK(!table_lock_if_free(&table, 5), "is locked");
	locks_of_kind[LOCK_STATEMENTS][3].lock.held = 0;
	CHECK(table_make_room(&table, false), "one is free");
	CHECK(table_entries(&table) < CAPACITY, "some have gone");
}

static void
add_some(void)
{
	for (int i = 0; i < 40; i++)
		add(rand() % KEYS, false);
}

/*
 * A copy has all that was there when it began and nothing that was not when it
 * ended, whatever comes and goes in between.
 */
static void
test_copies(void)
{
	set_up();
	for (int i = 0; i < 5 * KEYS; i++)
		add(rand() % KEYS, false);
	for (int i = 0; i < 2000; i++)
	{
		int64		before = added;
		int64		evicted = table_evicted(&table);
		int64		sum;
		int			count;

		between_locks = add_some;
		sum = sum_of_copy(&count);
		between_locks = NULL;
		CHECK(sum >= before && sum <= added, "%lld of %lld to %lld", (long long) sum,
			  (long long) before, (long long) added);
		/* some of those in the copy may have gone before others came */
		evicted = table_evicted(&table) - evicted;
		CHECK(count <= CAPACITY + evicted, "%d, %d evicted", count, (int) evicted);
	}
	CHECK(table_evicted(&table) > 10000, "much was evicted");
}

static bool was_reset;

static void
reset_once(void)
{
	add_some();
	if (was_reset || rand() % 5 != 0)
		return;
	was_reset = true;
	table_clear(&table);
	added = 0;
	add_some();
}

/* If a reset comes in between, nothing of the time before it is in the copy. */
static void
test_resets(void)
{
	set_up();
	for (int i = 0; i < 500; i++)
	{
		int64		sum;
		int			count;

		for (int j = 0; j < KEYS; j++)
			add(rand() % KEYS, false);
		was_reset = false;
		between_locks = reset_once;
		sum = sum_of_copy(&count);
		between_locks = NULL;
		CHECK(sum <= added || !was_reset, "%lld of %lld", (long long) sum, (long long) added);
	}
	table_clear(&table);
	CHECK_EQUAL(table_entries(&table), 0, "entries");
	CHECK_EQUAL(table_evicted(&table), 0, "evicted");
}

static void
count_places(void *entry, void *own, void *count)
{
	(*(int *) count)++;
}

static void
note_most(void *own, void *count)
{
	most_places_under_lock = Max(most_places_under_lock, *(int *) count);
	*(int *) count = 0;
}

/* However large the table, what somebody looks at under one lock is little. */
static void
test_partitions(void)
{
	static const TableVisitor visitor = {.entry = count_places,.own = note_most};
	int			count = 0;

	set_up();
	for (int i = 0; i < CAPACITY; i++)
		add(i, false);
	table_visit(&table, LW_SHARED, &visitor, &count);
	CHECK_EQUAL(table_partitions(CAPACITY), 8, "partitions");
	CHECK(most_places_under_lock < 200, "%d", most_places_under_lock);
}

int
main(void)
{
	test_limit();
	test_places();
	test_usage();
	test_must_stay();
	test_without_waiting();
	test_copies();
	test_resets();
	test_partitions();
	return CHECKS_DONE("table");
}
