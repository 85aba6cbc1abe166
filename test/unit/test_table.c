/* Sources: table.c */
/*
 * Unit tests of table.c, with a server of one process (server/): whenever it has
 * released a lock, others may do anything to the table.  So whatever can come
 * between two steps of a copy does, many times over.
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

#define CAPACITY	1500
#define PARTITIONS	3
#define KEYS		4000

typedef struct Entry
{
	uint64		key;
	double		usage;
	TimestampTz since;
	int64		count;
	bool		stays;
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
};

static Table table;
static int64 added;				/* since the latest reset */

static void
set_up_with(int capacity)
{
	free(locks_of_kind[LOCK_STATEMENTS]);
	locks_of_kind[LOCK_STATEMENTS] = calloc(table_partitions(capacity), sizeof(LWLockPadded));
	table_shmem_init(&table, &spec, capacity);
	added = 0;
	between_locks = NULL;
	srand(1);
}

static void
set_up(void)
{
	set_up_with(CAPACITY);
}

static void
add(uint64 number, bool stays)
{
	uint64		key = number + 1;
	uint32		hash = table_hash(&table, &key);
	Entry	   *entry;

	table_lock(&table, hash);
	entry = table_find_or_add(&table, hash, &key, 42);
	if (entry)
	{
		CHECK_EQUAL(entry->key, key, "key");
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
}

static void
read_own(const void *own, void *sum)
{
	*(int64 *) sum += ((const Own *) own)->count;
}

/* A copy's sum; each key must be there once. */
static int64
sum_of_copy(int *count)
{
	static const TableReader reader = {
		.copy_size = sizeof(Entry),
		.own = read_own,
		.extra = 1,
	};
	bool		is_there[KEYS] = {false};
	int64		sum = 0;
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
	CHECK_EQUAL(table.partitions, PARTITIONS, "partitions");
	CHECK_EQUAL(table_partitions(CAPACITY), PARTITIONS, "partitions, before there are any");
	for (int i = 0; i < KEYS; i++)
	{
		add(i, false);
		CHECK(table_entries(&table) <= CAPACITY, "entries");
		CHECK_EQUAL(table_entries(&table) + table_evicted(&table), i + 1, "all there were");
	}
	CHECK(table_entries(&table) > CAPACITY * 95 / 100, "few have gone");
	CHECK_EQUAL(sum_of_copy(&count), KEYS, "sum");
	CHECK_EQUAL(count, table_entries(&table), "copies");
}

/* A table that is too small to be divided has exactly as many entries as it may. */
static void
test_small(void)
{
	set_up_with(100);
	for (int i = 0; i < 100; i++)
		add(i, false);
	CHECK_EQUAL(table_entries(&table), 100, "entries");
	CHECK_EQUAL(table_evicted(&table), 0, "evicted");
	add(100, false);
	CHECK_EQUAL(table_entries(&table), 96, "a twentieth has gone for another one");
	CHECK_EQUAL(table_evicted(&table), 5, "evicted");
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
		uint32		hash = table_hash(&table, &key);

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

	set_up_with(100);
	for (int i = 0; i < 100; i++)
		add(i, true);
	add(100, false);
	CHECK_EQUAL(table_entries(&table), 100, "entries");
	CHECK_EQUAL(table_evicted(&table), 1, "found no room");
	CHECK_EQUAL(sum_of_copy(&count), 101, "sum");
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

static void
test_reset(void)
{
	int			count;

	set_up();
	for (int i = 0; i < KEYS; i++)
		add(i, false);
	table_clear(&table);
	added = 0;
	CHECK_EQUAL(table_entries(&table), 0, "entries");
	CHECK_EQUAL(table_evicted(&table), 0, "evicted");
	CHECK_EQUAL(sum_of_copy(&count), 0, "sum");
	for (int i = 0; i < KEYS; i++)
		add(i, false);
	CHECK_EQUAL(sum_of_copy(&count), KEYS, "sum");
}

int
main(void)
{
	test_limit();
	test_small();
	test_usage();
	test_must_stay();
	test_copies();
	test_reset();
	return CHECKS_DONE("table");
}
