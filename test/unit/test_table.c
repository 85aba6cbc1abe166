/* Sources: table.c snapshots.c */
/*
 * Unit tests of table.c, with a server of one process (server/): whenever it
 * has released a lock, others may do anything to the table.  So everything
 * that can happen between two steps of a copy happens, many times over.
 */
#include "postgres.h"

#include "check.h"
#include "table.h"

/* ---------------------------------------------------------------------------
 * The server
 * ---------------------------------------------------------------------------
 */

static LWLockPadded reset_lock;

LWLockPadded *locks_of_kind[LOCK_KINDS] = {[LOCK_RESET] = &reset_lock};

static void (*between_locks) (void) = NULL;
static int	locks_held = 0;

TimestampTz
GetCurrentTimestamp(void)
{
	return 42;
}

void
LWLockAcquire(LWLock *lock, LWLockMode mode)
{
	CHECK(lock->held == 0 && locks_held == 0, "one partition is locked at a time");
	lock->held = 1;
	if (lock != &reset_lock.lock)
		locks_held++;
}

void
LWLockRelease(LWLock *lock)
{
	static bool within = false;

	CHECK(lock->held == 1, "the lock is held when it is released");
	lock->held = 0;
	if (lock == &reset_lock.lock)
		return;
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

/* Keys of evicted rows: two by remainder, and the last one. */
#define ROW_OF(key)	(10000 + (key) % 4)
#define LAST_ROW	20000

typedef struct Entry
{
	uint64		key;
	double		usage;
	TimestampTz since;
	int64		count;
	bool		stays;
} Entry;

static bool
may_go(const void *entry)
{
	return !((const Entry *) entry)->stays;
}

static void
add_entry(void *sum, const void *entry)
{
	((Entry *) sum)->count += ((const Entry *) entry)->count;
	((Entry *) sum)->since = ((const Entry *) entry)->since;
}

/* Keys are odd or even; those of some are in the last row. */
static bool
belongs(const void *row, const void *entry)
{
	uint64		key = ((const Entry *) row)->key;

	return key == 0 || key == ROW_OF(*(const uint64 *) entry);
}

static void
begin_row(void *row, const void *entry)
{
	((Entry *) row)->key = entry ? ROW_OF(*(const uint64 *) entry) : LAST_ROW;
}

static const TableSpec spec = {
	.lock = LOCK_STATEMENTS,
	.key_size = sizeof(uint64),
	.entry_size = sizeof(Entry),
	.usage_offset = offsetof(Entry, usage),
	.since_offset = offsetof(Entry, since),
	.counters_offset = offsetof(Entry, count),
	.counters_size = sizeof(int64),
	.evicted_rows = 3,
	.may_go = may_go,
	.add = add_entry,
	.belongs = belongs,
	.begin_row = begin_row,
};

static Table table;
static void *memory;
static int64 added;				/* added since the latest reset */

static void
set_up_as(const TableSpec *as, int capacity)
{
	free(locks_of_kind[LOCK_STATEMENTS]);
	locks_of_kind[LOCK_STATEMENTS] = calloc(table_partitions(capacity), sizeof(LWLockPadded));
	free(memory);
	memory = calloc(1, table_shmem_size(as, capacity));
	table_shmem_attach(&table, as, capacity, memory, true);
	added = 0;
	between_locks = NULL;
	srand(1);
}

static void
set_up_with(int capacity)
{
	set_up_as(&spec, capacity);
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
	entry = table_enter(&table, hash, &key, 42);
	CHECK(entry->key == key || entry->key == ROW_OF(key) || entry->key == LAST_ROW,
		  "an entry has its own key, or that of an evicted row");
	entry->count++;
	entry->usage++;
	entry->stays |= stays;
	added++;
	table_unlock(&table, hash);
}

/*
 * The sum of a copy, in which each key must occur once.  Evicted rows come
 * last, and are not in "count".
 */
static int64
sum_of_window(int64 length, int *count)
{
	bool		is_there[KEYS] = {false};
	int64		sum = 0;
	Entry	   *copies = table_copy(&table, length, count);
	int			rows = 0;

	while (*count > 0 && copies[*count - 1].key > KEYS)
	{
		sum += copies[--*count].count;
		rows++;
	}
	CHECK(rows <= 3, "there are %d rows of evicted entries", rows);
	for (int i = 0; i < *count; i++)
	{
		uint64		number = copies[i].key - 1;

		CHECK(number < KEYS, "number %llu is one that was added", (unsigned long long) number);
		CHECK(!is_there[number], "number %llu is there once", (unsigned long long) number);
		is_there[number] = true;
		CHECK(length > 0 || (copies[i].count > 0 && copies[i].since == 42),
			  "a copied entry is complete");
		sum += copies[i].count;
	}
	free(copies);
	return sum;
}

static int64
sum_of_copy(int *count)
{
	return sum_of_window(0, count);
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
	CHECK_EQUAL(table.partitions, PARTITIONS, "the table's partitions");
	CHECK_EQUAL(table_partitions(CAPACITY), PARTITIONS, "the partitions of that capacity");
	for (int i = 0; i < KEYS; i++)
	{
		add(i, false);
		CHECK(table_entries(&table) <= CAPACITY, "the entries do not exceed the capacity");
		CHECK_EQUAL(table_entries(&table) + table_evicted(&table), i + 1, "entries and evictions");
	}
	CHECK(table_entries(&table) > CAPACITY * 95 / 100, "few entries are evicted early");
	CHECK_EQUAL(sum_of_copy(&count), KEYS, "the sum of a copy after evictions");
	CHECK_EQUAL(count, table_entries(&table), "the number of copied entries");
}

/* A table too small for several partitions has exactly its capacity. */
static void
test_small(void)
{
	set_up_with(100);
	for (int i = 0; i < 100; i++)
		add(i, false);
	CHECK_EQUAL(table_entries(&table), 100, "the number of entries of a small table");
	CHECK_EQUAL(table_evicted(&table), 0, "the number of evictions before it is full");
	add(100, false);
	CHECK_EQUAL(table_entries(&table), 96, "the number of entries after an eviction");
	CHECK_EQUAL(table_evicted(&table), 5, "the number of evictions of a small table");
}

/* Frequently used entries stay. */
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
		CHECK_EQUAL(((Entry *) table_find_or_add(&table, hash, &key, 42))->count, 50,
					"the count of a frequently used entry");
		table_unlock(&table, hash);
	}
}

/* Entries that must stay do, and if none may be evicted there is no room. */
static void
test_must_stay(void)
{
	int			count;

	set_up_with(100);
	for (int i = 0; i < 100; i++)
		add(i, true);
	add(100, false);
	CHECK_EQUAL(table_entries(&table), 100, "the number of entries that must stay");
	CHECK_EQUAL(table_evicted(&table), 1, "the number of additions without room");
	CHECK_EQUAL(sum_of_copy(&count), 101, "the sum of a copy without room");
}

static void
add_some(void)
{
	for (int i = 0; i < 40; i++)
		add(rand() % KEYS, false);
}

/*
 * A copy has everything that was there when it began, and nothing that was not
 * when it ended, whatever is added and evicted in between.
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
		CHECK(sum >= before && sum <= added,
			  "the sum %lld of a copy is from %lld to %lld", (long long) sum,
			  (long long) before, (long long) added);

		/*
		 * some entries in the copy may have been evicted before others were
		 * added
		 */
		evicted = table_evicted(&table) - evicted;
		CHECK(count <= CAPACITY + evicted,
			  "a copy has %d entries, %d were evicted meanwhile", count, (int) evicted);
	}
	CHECK(table_evicted(&table) > 10000, "many entries were evicted");
}

static void
clear_unless_kept_out(void)
{
	if (!reset_lock.lock.held)
		tables_clear();
}

/* A copy has everything of before a reset, which leaves nothing. */
static void
test_reset(void)
{
	int			count;

	set_up();
	for (int i = 0; i < KEYS; i++)
		add(i, false);
	between_locks = clear_unless_kept_out;
	CHECK_EQUAL(sum_of_copy(&count), added, "the sum of a copy during which a reset comes");
	between_locks = NULL;
	tables_clear();
	added = 0;
	CHECK_EQUAL(table_entries(&table), 0, "the number of entries after a reset");
	CHECK_EQUAL(table_evicted(&table), 0, "the number of evictions after a reset");
	CHECK_EQUAL(sum_of_copy(&count), 0, "the sum of a copy after a reset");
	for (int i = 0; i < KEYS; i++)
		add(i, false);
	CHECK_EQUAL(sum_of_copy(&count), KEYS, "the sum of a copy filled again");
}

/*
 * What was counted since a snapshot, wherever it is now, and nothing from
 * before it.
 */
static void
test_windows(void)
{
	int			count;

	set_up();
	for (int i = 0; i < KEYS; i++)
		add(i, false);
	tables_take_snapshots(1);
	CHECK_EQUAL(sum_of_window(1, &count), 0, "the sum of a window without additions");
	for (int i = KEYS - 1; i >= 0; i -= 2)
		add(i, false);
	CHECK_EQUAL(sum_of_window(1, &count), KEYS / 2, "the sum of a window after additions");
	CHECK_EQUAL(sum_of_window(0, &count), KEYS + KEYS / 2, "the sum of all counts");
}

/* Restored entries are as they were saved, but not in any window. */
static void
test_restored(void)
{
	Entry		saved = {.key = 7,.since = 42,.count = 1000};
	Entry		row = {.key = ROW_OF(7),.since = 42,.count = 500};
	int			count;

	set_up_with(100);
	table_restore(&table, &saved, false);
	table_restore(&table, &row, true);
	CHECK_EQUAL(sum_of_copy(&count), 1500, "the sum of restored entries");
	CHECK_EQUAL(count, 1, "the number of restored entries");
	add(6, false);
	CHECK_EQUAL(sum_of_window(1, &count), 1, "the sum of a window after a restore");

	set_up_with(100);
	for (int i = 0; i < 2; i++)
		table_restore(&table, &saved, false);
	CHECK_EQUAL(sum_of_window(1, &count), 0, "the sum of a window after two restores of an entry");
}

/*
 * Another process sees the table at another address; entries and evicted rows
 * have the same places there.
 */
static void
test_elsewhere(void)
{
	Size		size = table_shmem_size(&spec, CAPACITY);
	void	   *elsewhere = malloc(size);
	uint64		key = KEYS;
	uint32		hash;
	Size		place;
	int			count;

	set_up();
	for (int i = 0; i < KEYS; i++)
		add(i, false);
	hash = table_hash(&table, &key);
	table_lock(&table, hash);
	place = table_place_of(&table, table_find_or_add(&table, hash, &key, 42));
	table_unlock(&table, hash);

	memcpy(elsewhere, memory, size);
	memset(memory, 0xFF, size);
	free(memory);
	memory = elsewhere;
	table_shmem_attach(&table, &spec, CAPACITY, memory, false);
	CHECK_EQUAL(((Entry *) table_at(&table, place))->key, key, "the key at an entry's place");
	CHECK_EQUAL(sum_of_copy(&count), added, "the sum of a copy at another address");
	for (int i = 0; i < 5 * KEYS; i++)
		add(rand() % KEYS, false);
	CHECK_EQUAL(sum_of_copy(&count), added, "the sum after evictions there");
}

/* ---------------------------------------------------------------------------
 * Kin: keys with a family, which is what they begin with, and a name
 * ---------------------------------------------------------------------------
 */

#define KIN_MOST	12
#define OTHERS		UINT32_MAX

typedef struct KinKey
{
	uint32		family;
	uint32		name;
} KinKey;

static uint32
hash_kin(const void *key)
{
	const KinKey *kin = key;

	return ((kin->family * 0x9E3779B9) & 0xFFFF0000) | ((kin->name * 0x9E3779B9) >> 16);
}

static const void *
others_of(const void *key)
{
	static KinKey others;

	others = *(const KinKey *) key;
	others.name = OTHERS;
	return &others;
}

static void
set_up_kin(int capacity)
{
	static TableSpec kin_spec;

	kin_spec = spec;
	kin_spec.hash = hash_kin;
	kin_spec.kin_size = offsetof(KinKey, name);
	kin_spec.kin_most = KIN_MOST;
	kin_spec.others_key = others_of;
	set_up_as(&kin_spec, capacity);
}

/* The entry of a key, made if there is room. */
static Entry *
find_kin(uint32 family, uint32 name)
{
	KinKey		key = {family, name};
	uint32		hash = table_hash(&table, &key);
	Entry	   *entry;

	table_lock(&table, hash);
	entry = table_find_or_add(&table, hash, &key, 42);
	table_unlock(&table, hash);
	return entry;
}

/* Count something; false if there is no room. */
static bool
add_kin(uint32 family, uint32 name, bool stays)
{
	Entry	   *entry = find_kin(family, name);

	if (entry == NULL)
		return false;
	entry->count++;
	entry->usage++;
	entry->stays |= stays;
	added++;
	return true;
}

/* The sum over a window of a family, or of all, and the number of entries. */
static int64
sum_of_kin(int64 length, int family, int *entries)
{
	int			count;
	Entry	   *copies = table_copy(&table, length, &count);
	int64		sum = 0;

	*entries = 0;
	for (int i = 0; i < count; i++)
	{
		const KinKey *key = (const KinKey *) &copies[i].key;

		if (family >= 0 && key->family != (uint32) family)
			continue;
		sum += copies[i].count;
		++*entries;
	}
	free(copies);
	return sum;
}

/* The entries that a table of one partition has counted as kin. */
static int64
kin_counted(void)
{
	int64		sum = 0;

	for (int i = 0; i < KIN_COUNTERS; i++)
		sum += ((const TablePartition *) table.memory)->kin[i];
	return sum;
}

/* However many kin come, there are only so many, and others have their room. */
static void
test_kin(void)
{
	int			entries;

	set_up_kin(100);
	for (int family = 1; family <= 20; family++)
		add_kin(family, 1, false);
	for (uint32 name = 1; name <= 10000; name++)
	{
		CHECK(add_kin(0, 0, false) && add_kin(0, name, false), "there is room for another one of the kin");
		CHECK_EQUAL(find_kin(0, name)->count, 1, "the count of the latest one");
		CHECK_EQUAL(sum_of_kin(0, 0, &entries), 2 * name, "the sum over the kin");
		CHECK(entries <= KIN_MOST + 1, "there are %d of the kin", entries);
		CHECK_EQUAL(kin_counted(), table_entries(&table), "the entries that are counted as kin");
	}
	CHECK_EQUAL(table_evicted(&table), 0, "the number of evictions");
	CHECK_EQUAL(table_entries(&table), 20 + entries, "the number of entries");
	CHECK_EQUAL(sum_of_kin(0, -1, &entries), added, "the sum over all");
	CHECK_EQUAL(find_kin(0, 0)->count, 10000, "the count of one that is used again and again");
	CHECK(find_kin(0, OTHERS)->count > 9000, "the others have the rest");
	tables_clear();
	CHECK_EQUAL(kin_counted(), 0, "the entries that are counted as kin after a reset");
}

/* What was counted since a snapshot, also of those that were added to others. */
static void
test_kin_windows(void)
{
	int			entries;

	set_up_kin(100);
	for (uint32 name = 1; name <= 500; name++)
		add_kin(0, name, false);
	tables_take_snapshots(1);
	CHECK_EQUAL(sum_of_kin(1, 0, &entries), 0, "the sum of a window without additions");
	for (uint32 name = 400; name <= 700; name++)
		add_kin(0, name, false);
	CHECK_EQUAL(sum_of_kin(1, 0, &entries), 301, "the sum of a window after additions");
	CHECK_EQUAL(sum_of_kin(0, 0, &entries), added, "the sum of all counts");
}

/* Where all kin must stay there is room for the others only, until one may go. */
static void
test_kin_stay(void)
{
	set_up_kin(100);
	for (uint32 name = 1; name <= KIN_MOST; name++)
		CHECK(add_kin(0, name, true), "there is room");
	CHECK(!add_kin(0, 1000, false), "there is no room for another one");
	CHECK(add_kin(0, OTHERS, false), "there is room for the others");
	CHECK(add_kin(1, 1000, false), "there is room for another family");
	find_kin(0, 5)->stays = false;
	CHECK(add_kin(0, 1000, false), "there is room when one may go");
	CHECK_EQUAL(find_kin(0, OTHERS)->count, 2, "the count of the others with the one that went");
}

/* A table that is full of other entries evicts some of them, as ever. */
static void
test_kin_full(void)
{
	int			entries;

	set_up_kin(100);
	for (int round = 0; round < 5000; round++)
	{
		(void) add_kin(rand() % 300, rand() % 40, rand() % 50 == 0 && added < 200);
		CHECK(table_entries(&table) <= 100, "the entries do not exceed the capacity");
		CHECK_EQUAL(kin_counted(), table_entries(&table), "the entries that are counted as kin");
	}
	for (uint32 name = 1; name <= 500; name++)
		(void) add_kin(7, name, false);
	CHECK_EQUAL(sum_of_kin(0, -1, &entries), added, "the sum over all with evictions");
	CHECK(table_evicted(&table) > 1000, "entries were evicted");
}

int
main(void)
{
	test_kin();
	test_kin_windows();
	test_kin_stay();
	test_kin_full();
	test_elsewhere();
	test_windows();
	test_restored();
	test_limit();
	test_small();
	test_usage();
	test_must_stay();
	test_copies();
	test_reset();
	return CHECKS_DONE("table");
}
