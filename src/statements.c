/*-------------------------------------------------------------------------
 *
 * statements.c
 *	  See statements.h.
 *
 * When the table is full the least used entries are removed, and their
 * counters added to one that has no key, so that the sums stay true.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "settings.h"
#include "statements.h"
#include "table.h"

StaticAssertDecl(sizeof(StatementKey) == 2 * sizeof(Oid) + sizeof(uint64),
				 "StatementKey must not have padding: it is compared as bytes");

/* What of a batch is added in one go: the bits of a word. */
#define BATCH_STEP		64

/* How often to make room for an entry that others have taken then. */
#define MAX_TRIES		3

static void
totals_add(StatementTotals *sum, const StatementTotals *term)
{
	sum->calls += term->calls;
	sum->rows += term->rows;
	sum->exec += term->exec;
	sum->send += term->send;
	sum->recv += term->recv;
	sum->network += term->network;
	sum->client += term->client;
	sum->in_xact_wait += term->in_xact_wait;
	sum->bytes += term->bytes;
	sum->repeats += term->repeats;
	sum->repeat_network += term->repeat_network;
}

/* "own" is the row of what was evicted of a partition; its key stays zero. */
static void
add_up_evicted(void *own, const void *evicted)
{
	StatementEntry *sum = own;
	const StatementEntry *entry = evicted;

	totals_add(&sum->counters.totals, &entry->counters.totals);
	exec_split_add(&sum->counters.split, &entry->counters.split);
	if (entry->since != 0 && (sum->since == 0 || entry->since < sum->since))
		sum->since = entry->since;
}

static const TableSpec spec = {
	.name = "pgnetlat statements",
	.lock = LOCK_STATEMENTS,
	.key_size = sizeof(StatementKey),
	.entry_size = sizeof(StatementEntry),
	.usage_offset = offsetof(StatementEntry, usage),
	.since_offset = offsetof(StatementEntry, since),
	.own_size = sizeof(StatementEntry),
	.evict = add_up_evicted,
};

static Table table;

Size
statements_shmem_size(void)
{
	return table_shmem_size(&spec, pgnetlat_max_statements);
}

void
statements_shmem_init(void)
{
	table_shmem_init(&table, &spec, pgnetlat_max_statements);
}

static void
add_to_entry(StatementEntry *entry, const StatementTotals *delta, TimestampTz now)
{
	totals_add(&entry->counters.totals, delta);
	entry->usage += Max(delta->calls, 1);
	if (entry->since == 0)
		entry->since = now;
}

static inline bool
same_partition(const StatementBatchItem *a, const StatementBatchItem *b)
{
	return table_partition_of(&table, a->hash) == table_partition_of(&table, b->hash);
}

/*
 * Of the items from the first on whose bits are set in "left", add those of
 * the first one's partition, whose lock is held.  Returns what is left then,
 * with those for which there was no room among them, unless "anyway": then
 * they are added to what was evicted.
 */
static uint64
add_to_partition(const StatementBatchItem *items, int first, int count, uint64 left,
				 bool anyway, TimestampTz now)
{
	uint32		hash = items[first].hash;

	for (int i = first; i < count; i++)
	{
		const StatementBatchItem *item = &items[i];
		StatementEntry *entry;

		if (!(left & UINT64CONST(1) << i) || !same_partition(item, &items[first]))
			continue;
		entry = table_find_or_add(&table, item->hash, &item->key, now);
		if (unlikely(entry == NULL && anyway))
		{
			entry = table_own(&table, hash);
			table_count_evicted(&table, hash);
		}
		if (likely(entry != NULL))
		{
			add_to_entry(entry, &item->delta, now);
			left &= ~(UINT64CONST(1) << i);
		}
	}
	return left;
}

static inline uint64
all_of(int count)
{
	return count == BATCH_STEP ? ~UINT64CONST(0) : (UINT64CONST(1) << count) - 1;
}

/*
 * Add items, at most BATCH_STEP of them.  Returns which are left, if the caller
 * does not want to wait, for locks or while room is made.
 */
static uint64
add_step(const StatementBatchItem *items, int count, TimestampTz now, bool wait)
{
	uint64		left = all_of(count);

	for (int first = 0; first < count; first++)
	{
		uint32		hash = items[first].hash;

		/* others may be quicker to take what was made free: do not insist */
		for (int try = 0; left & UINT64CONST(1) << first; try++)
		{
			bool		last_try = try == MAX_TRIES ||
				(try > 0 && wait && !table_make_room(&table, true));

			if (try > 0 && !wait)
				break;
			if (wait)
				table_lock(&table, hash);
			else if (!table_lock_if_free(&table, hash))
				break;
			left = add_to_partition(items, first, count, left, last_try, now);
			table_unlock(&table, hash);
		}
	}
	return left;
}

/*
 * Add to the counters of some statements.  No lock is held while another one
 * is waited for.
 */
void
statements_accumulate(const StatementBatchItem *items, int count, TimestampTz now)
{
	for (int i = 0; i < count; i += BATCH_STEP)
		(void) add_step(items + i, Min(count - i, BATCH_STEP), now, true);
}

/*
 * The same, but only as far as that takes no waiting, and there is room.  What is
 * left is moved to the front; returns how many items that is.
 */
int
statements_accumulate_if_free(StatementBatchItem *items, int count, TimestampTz now)
{
	int			kept = 0;

	for (int i = 0; i < count; i += BATCH_STEP)
	{
		int			step = Min(count - i, BATCH_STEP);
		uint64		left = add_step(items + i, step, now, false);

		for (int j = 0; left != 0; j++, left >>= 1)
		{
			if (left & 1)
				items[kept++] = items[i + j];
		}
	}
	return kept;
}

/*
 * Make room for so many statements, as far as that takes no waiting, while no lock
 * is held.  False if there is that much already, or there is none to be made.
 */
bool
statements_make_room(int count)
{
	bool		made = false;

	while (pgnetlat_max_statements - table_entries(&table) < count &&
		   table_make_room(&table, false))
		made = true;
	return made;
}

/*
 * Statements are about to be accumulated, which may make room, by a process that
 * holds the locks of sessions meanwhile.
 */
void
statements_prepare(int count)
{
	if (pgnetlat_max_statements - table_entries(&table) < count)
		table_map(&table);
}

/*
 * Add what was sampled of a statement, as far as it fits into its execution.
 */
void
statements_add_samples(const StatementKey *key, const int64 *part)
{
	uint32		hash = statements_hash(key);
	StatementEntry *entry;

	table_lock(&table, hash);
	entry = table_find(&table, hash, key);
	for (int i = 0; entry && i < NUM_EXEC_PARTS; i++)
		exec_split_book(&entry->counters.split, entry->counters.totals.exec, i, part[i]);
	table_unlock(&table, hash);
}

/*
 * Put back a saved entry.  Where there is no room it goes to the evicted.
 */
void
statements_restore(const StatementEntry *saved)
{
	static const StatementKey none;
	uint32		hash = statements_hash(&saved->key);
	StatementEntry *entry = NULL;

	table_lock(&table, hash);
	if (memcmp(&saved->key, &none, sizeof(none)) != 0)
		entry = table_find_or_add(&table, hash, &saved->key, saved->since);
	if (entry)
		*entry = *saved;
	else
		add_up_evicted(table_own(&table, hash), saved);
	table_unlock(&table, hash);
}

void
statements_reset(void)
{
	table_clear(&table);
}

void
statements_counts(int64 *entries, int64 *evicted)
{
	*entries = table_entries(&table);
	*evicted = table_evicted(&table);
}

/*
 * All that was executed is about to be shown, and what is not sampled by now
 * stays so.  Of a row that others may be reading, in shared mode, too: they
 * all write the same.
 */
static void
show(const StatementEntry *entry)
{
	exec_split_show((ExecSplit *) &entry->counters.split, entry->counters.totals.exec);
}

static void
copy_entry(void *copy, const void *entry, const void *own, void *arg)
{
	show(entry);
	memcpy(copy, entry, sizeof(StatementEntry));
}

static void
read_evicted(const void *own, void *sum)
{
	show(own);
	add_up_evicted(sum, own);
}

static void
forget_evicted(void *sum)
{
	memset(sum, 0, sizeof(StatementEntry));
}

static const TableReader reader = {
	.copy_size = sizeof(StatementEntry),
	.copy = copy_entry,
	.own = read_evicted,
	.restart = forget_evicted,
	.extra = 1,
};

/*
 * A palloc'd copy of all entries; the one of evicted entries (all zero key), if
 * there is any, is the last.
 */
StatementEntry *
statements_copy(int *count)
{
	StatementEntry evicted;
	StatementEntry *copies = table_copy(&table, &reader, &evicted, count);

	if (evicted.since != 0)
		copies[(*count)++] = evicted;
	return copies;
}
