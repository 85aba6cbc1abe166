/*-------------------------------------------------------------------------
 *
 * statements.c
 *	  The table of statements.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "saved.h"
#include "session_slot.h"
#include "settings.h"
#include "statements.h"
#include "table.h"
#include "utils/timestamp.h"

StaticAssertDecl(sizeof(StatementKey) == 2 * sizeof(Oid) + sizeof(uint64),
				 "StatementKey must not have padding: it is compared as bytes");

static void
add_entry(void *to, const void *from)
{
	StatementEntry *sum = to;
	const StatementEntry *term = from;

	statements_totals_add(&sum->counters.totals, &term->counters.totals);
	for (int i = 0; i < NUM_EXEC_PARTS; i++)
		sum->counters.exec_part[i] += term->counters.exec_part[i];
	if (sum->since == 0 || (term->since != 0 && term->since < sum->since))
		sum->since = term->since;
}

/*
 * Query identifiers are hashes, unless a module other than core computes them.
 */
static inline uint32
hash_key(const StatementKey *key)
{
	uint64		hash = (key->queryid ^ ((uint64) key->dbid << 32 | key->userid)) *
		UINT64CONST(0x9E3779B97F4A7C15);

	return (uint32) ((hash ^ (hash >> 29)) * UINT64CONST(0xBF58476D1CE4E5B9) >> 32);
}

static uint32
hash_statement(const void *key)
{
	return hash_key(key);
}

static const TableSpec spec = {
	.lock = LOCK_STATEMENTS,
	.key_size = sizeof(StatementKey),
	.entry_size = sizeof(StatementEntry),
	.usage_offset = offsetof(StatementEntry, usage),
	.since_offset = offsetof(StatementEntry, since),
	.counters_offset = offsetof(StatementEntry, counters.totals),
	.counters_size = sizeof(StatementTotals),
	.evicted_rows = 1,
	.hash = hash_statement,
	.add = add_entry,
};

static Table table;

Size
statements_shmem_size(void)
{
	return table_shmem_size(&spec, pgnetlat_max_statements);
}

void
statements_shmem_attach(void *memory, bool is_new)
{
	table_shmem_attach(&table, &spec, pgnetlat_max_statements, memory, is_new);
}

void
statements_counts(int64 *entries, int64 *evicted)
{
	*entries = table_entries(&table);
	*evicted = table_evicted(&table);
}

/* ---------------------------------------------------------------------------
 * Adding
 * ---------------------------------------------------------------------------
 */

/*
 * Book samples that came before their execution, if that has been added by
 * now.
 */
static void
book_early(StatementEntry *entry)
{
	int64		early = 0;

	for (int i = 0; i < NUM_EXEC_PARTS; i++)
		early |= entry->early[i];
	if (likely(early == 0))
		return;
	for (int i = 0; i < NUM_EXEC_PARTS; i++)
		entry->early[i] -= exec_parts_book(entry->counters.exec_part,
										   entry->counters.totals.exec, i, entry->early[i]);
}

/* The lists by which a batch is sorted by partition. */
#define BATCH_LISTS		16

/*
 * Add a tally's statements, all in one database, normally with each partition
 * locked once.
 */
void
statements_accumulate(const CountedStatement *counted, int count, Oid dbid)
{
	StatementKey keys[TALLY_STATEMENTS];
	uint32		hashes[TALLY_STATEMENTS];
	int			next[TALLY_STATEMENTS];
	int			first[BATCH_LISTS];
	TimestampTz now = GetCurrentTimestamp();

	Assert(count <= TALLY_STATEMENTS);
	memset(first, -1, sizeof(first));
	for (int i = 0; i < count; i++)
	{
		int		   *list;

		if (!statements_has_counted(&counted[i]))
			continue;
		keys[i].userid = counted[i].userid;
		keys[i].dbid = dbid;
		keys[i].queryid = counted[i].queryid;
		hashes[i] = hash_key(&keys[i]);
		list = &first[(unsigned) table_partition_of(&table, hashes[i]) % BATCH_LISTS];
		next[i] = *list;
		*list = i;
	}
	for (int list = 0; list < BATCH_LISTS; list++)
	{
		int			locked = -1;

		for (int i = first[list]; i >= 0; i = next[i])
		{
			StatementEntry *entry;

			if (locked < 0 || table_partition_of(&table, hashes[i]) !=
				table_partition_of(&table, hashes[locked]))
			{
				if (locked >= 0)
					table_unlock(&table, hashes[locked]);
				table_lock(&table, hashes[i]);
				locked = i;
			}
			entry = table_enter(&table, hashes[i], &keys[i], now);
			/* a statement that never completes is in use, too */
			entry->usage += Max(counted[i].totals.calls, 1);
			statements_totals_add(&entry->counters.totals, &counted[i].totals);
			book_early(entry);
		}
		if (locked >= 0)
			table_unlock(&table, hashes[locked]);
	}
}

/*
 * Add what was sampled of a statement, and "exec" of its execution in
 * progress, unless it was sampled before the latest reset.  The check under
 * the partition's lock suffices: a reset announces its generation before it
 * takes that lock to clear the partition.
 */
void
statements_add_sampled(const StatementKey *key, int64 exec, const int64 *part,
					   uint32 generation)
{
	uint32		hash = hash_key(key);
	StatementEntry *entry;

	table_lock(&table, hash);
	if (generation == slot_control->generation)
	{
		entry = table_enter(&table, hash, key, GetCurrentTimestamp());
		entry->counters.totals.exec += exec;
		for (int i = 0; i < NUM_EXEC_PARTS; i++)
			entry->early[i] += part[i];
		book_early(entry);
	}
	table_unlock(&table, hash);
}

/* Put back a saved entry; false if it is damaged. */
bool
statements_restore(const void *content, double *sum)
{
	const StatementEntry *saved = content;
	static const StatementKey none;
	const StatementTotals *totals = &saved->counters.totals;

	if (!saved_are_figures(&saved->since, saved + 1) ||
		!saved_add_counts(sum, &totals->calls, &totals->exec) ||
		!saved_add_counts(sum, &totals->bytes, &totals->repeat_network) ||
		!saved_are_parts(saved->counters.exec_part, saved->early, totals->exec))
		return false;
	table_restore(&table, saved, memcmp(&saved->key, &none, sizeof(none)) == 0);
	return true;
}

/* ---------------------------------------------------------------------------
 * Reading
 * ---------------------------------------------------------------------------
 */

/*
 * A palloc'd copy of all entries over a window: see table_copy().  The evicted
 * row, whose key is all zero, is the last if there is one.
 */
void *
statements_copy(int64 length, int *count)
{
	return table_copy(&table, length, count);
}
