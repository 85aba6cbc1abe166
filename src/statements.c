/*-------------------------------------------------------------------------
 *
 * statements.c
 *	  See statements.h.
 *
 * One lock protects the table: it is taken once per batch of exchanges, by
 * whoever empties a session's ring, so there is little to contend for.  When
 * the table is full the least used entries are removed and their counters
 * accumulated into one that has no key, so that the sums stay true.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "bounded.h"
#include "compat.h"
#include "settings.h"
#include "locks.h"
#include "statements.h"
#include "storage/shmem.h"
#include "utils/hsearch.h"

StaticAssertDecl(sizeof(StatementKey) == 2 * sizeof(Oid) + sizeof(uint64),
				 "StatementKey must not have padding: it is hashed as bytes");

/* protected by the statements lock, as the table is */
typedef struct StatementsShared
{
	StatementEntry other;		/* what was evicted; its key stays zero */
	int64		evicted;
} StatementsShared;

static StatementsShared *shared = NULL;
static HTAB *table = NULL;

Size
statements_shmem_size(void)
{
	return add_size(MAXALIGN(sizeof(StatementsShared)),
					hash_estimate_size(pgnetlat_max_statements, sizeof(StatementEntry)));
}

void
statements_shmem_init(void)
{
	bool		found;
	HASHCTL		info;

	shared = ShmemInitStruct("pgnetlat statements", sizeof(StatementsShared), &found);
	if (!found)
		memset(shared, 0, sizeof(*shared));

	memset(&info, 0, sizeof(info));
	info.keysize = sizeof(StatementKey);
	info.entrysize = sizeof(StatementEntry);
	table = compat_shmem_hash("pgnetlat statements hash", pgnetlat_max_statements,
							  &info, HASH_ELEM | HASH_BLOBS);
}

static void
counters_add(StatementCounters *sum, const StatementCounters *term)
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

static void
add_up_evicted(const void *evicted)
{
	const StatementEntry *entry = evicted;

	counters_add(&shared->other.counters, &entry->counters);
	if (shared->other.since == 0 || entry->since < shared->other.since)
		shared->other.since = entry->since;
}

/* The entry for a key, new if need be; the lock is held exclusively. */
static StatementEntry *
find_or_create(const StatementKey *key, TimestampTz now)
{
	StatementEntry *entry = hash_search(table, key, HASH_FIND, NULL);

	if (entry)
		return entry;
	if (hash_get_num_entries(table) >= pgnetlat_max_statements)
		shared->evicted += bounded_evict(table, pgnetlat_max_statements,
										 offsetof(StatementEntry, usage), NULL, add_up_evicted);
	entry = hash_search(table, key, HASH_ENTER_NULL, NULL);
	if (entry == NULL)
		return NULL;
	entry->usage = 0;
	entry->since = now;
	memset(&entry->counters, 0, sizeof(entry->counters));
	return entry;
}

/*
 * Add to the counters of some statements.
 */
void
statements_accumulate(const StatementBatchItem *items, int count, TimestampTz now)
{
	LWLockAcquire(locks_get(LOCK_STATEMENTS), LW_EXCLUSIVE);
	for (int i = 0; i < count; i++)
	{
		StatementEntry *entry = find_or_create(&items[i].key, now);

		/* no memory for another entry, although there should be */
		if (entry == NULL)
			entry = &shared->other;
		counters_add(&entry->counters, &items[i].delta);
		entry->usage += Max(items[i].delta.calls, 1);
		if (entry->since == 0)
			entry->since = now;
	}
	LWLockRelease(locks_get(LOCK_STATEMENTS));
}

/*
 * Put back a saved entry.  Where there is no room it goes to the evicted.
 */
void
statements_restore(const StatementEntry *saved)
{
	StatementKey none = {0};

	LWLockAcquire(locks_get(LOCK_STATEMENTS), LW_EXCLUSIVE);
	if (memcmp(&saved->key, &none, sizeof(none)) != 0 &&
		hash_get_num_entries(table) < pgnetlat_max_statements)
	{
		StatementEntry *entry = find_or_create(&saved->key, saved->since);

		entry->since = saved->since;
		entry->usage = saved->usage;
		entry->counters = saved->counters;
	}
	else
		add_up_evicted(saved);
	LWLockRelease(locks_get(LOCK_STATEMENTS));
}

void
statements_reset(TimestampTz now)
{
	LWLockAcquire(locks_get(LOCK_STATEMENTS), LW_EXCLUSIVE);
	bounded_clear(table);
	memset(shared, 0, sizeof(*shared));
	LWLockRelease(locks_get(LOCK_STATEMENTS));
}

void
statements_counts(int64 *entries, int64 *evicted)
{
	LWLockAcquire(locks_get(LOCK_STATEMENTS), LW_SHARED);
	*entries = hash_get_num_entries(table);
	*evicted = shared->evicted;
	LWLockRelease(locks_get(LOCK_STATEMENTS));
}

void
statements_iterate(void (*callback) (const StatementEntry *entry, void *arg), void *arg)
{
	HASH_SEQ_STATUS scan;
	StatementEntry *entry;
	StatementEntry *copies;
	int			count = 0;

	/* copy under the lock, format outside of it */
	copies = palloc_extended(((Size) pgnetlat_max_statements + 1) * sizeof(StatementEntry),
							 MCXT_ALLOC_HUGE);
	LWLockAcquire(locks_get(LOCK_STATEMENTS), LW_SHARED);
	hash_seq_init(&scan, table);
	while ((entry = hash_seq_search(&scan)) != NULL)
		copies[count++] = *entry;
	if (shared->other.since != 0)
		copies[count++] = shared->other;
	LWLockRelease(locks_get(LOCK_STATEMENTS));

	for (int i = 0; i < count; i++)
		callback(&copies[i], arg);
	pfree(copies);
}
