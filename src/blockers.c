/*-------------------------------------------------------------------------
 *
 * blockers.c
 *	  See blockers.h.
 *
 * One lock protects the table, and what is known of the waits (lock_waits.c).
 * When the table is full, the entries for which others waited least are removed
 * and their counters added to one that has no key, so that the sums stay true.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "blockers.h"
#include "bounded.h"
#include "clock.h"
#include "compat.h"
#include "settings.h"
#include "locks.h"
#include "storage/shmem.h"
#include "utils/hsearch.h"

StaticAssertDecl(sizeof(BlockerKey) ==
				 sizeof(ClientKey) + NAMEDATALEN + sizeof(uint32) + sizeof(uint64),
				 "BlockerKey must not have padding: it is hashed as bytes");

/* protected by the blockers lock, as the table is */
typedef struct BlockersShared
{
	BlockerEntry evicted_entries;	/* the sum of them; its key stays zero */
	int64		evicted;
	uint64		pass;
} BlockersShared;

static BlockersShared *shared = NULL;
static HTAB *table = NULL;

Size
blockers_shmem_size(void)
{
	return add_size(MAXALIGN(sizeof(BlockersShared)),
					hash_estimate_size(pgnetlat_max_blockers, sizeof(BlockerEntry)));
}

void
blockers_shmem_init(void)
{
	bool		found;
	HASHCTL		info;

	shared = ShmemInitStruct("pgnetlat blockers", sizeof(BlockersShared), &found);
	if (!found)
	{
		memset(shared, 0, sizeof(*shared));
		shared->pass = 1;
	}

	memset(&info, 0, sizeof(info));
	info.keysize = sizeof(BlockerKey);
	info.entrysize = sizeof(BlockerEntry);
	table = compat_shmem_hash("pgnetlat blockers hash", pgnetlat_max_blockers,
							  &info, HASH_ELEM | HASH_BLOBS);
}

static void
counters_add(BlockerCounters *sum, const BlockerCounters *term)
{
	sum->blocked += term->blocked;
	sum->exec += term->exec;
	sum->send += term->send;
	sum->recv += term->recv;
	sum->network += term->network;
	sum->client += term->client;
	sum->blocked_max = Max(sum->blocked_max, term->blocked_max);
	sum->sessions_max = Max(sum->sessions_max, term->sessions_max);
}

static void
add_to_evicted(const void *evicted)
{
	const BlockerEntry *entry = evicted;
	BlockerEntry *sum = &shared->evicted_entries;

	counters_add(&sum->counters, &entry->counters);
	if (sum->since == 0 || entry->since < sum->since)
		sum->since = entry->since;
}

/* Whom others wait for now stays: it would come back at once, from zero. */
static bool
may_be_evicted(const void *entry)
{
	return ((const BlockerEntry *) entry)->live.pass + 1 < shared->pass;
}

/* The entry for a key, new if need be; the lock is held exclusively. */
static BlockerEntry *
find_or_create(const BlockerKey *key, TimestampTz now)
{
	BlockerEntry *entry = hash_search(table, key, HASH_FIND, NULL);

	if (entry)
		return entry;
	if (hash_get_num_entries(table) >= pgnetlat_max_blockers)
	{
		shared->evicted += bounded_evict(table, pgnetlat_max_blockers,
										 offsetof(BlockerEntry, usage),
										 may_be_evicted, add_to_evicted);
		if (hash_get_num_entries(table) >= pgnetlat_max_blockers)
			return NULL;
	}
	entry = hash_search(table, key, HASH_ENTER_NULL, NULL);
	if (entry == NULL)
		return NULL;
	entry->usage = 0;
	entry->since = now;
	memset(&entry->live, 0, sizeof(entry->live));
	memset(&entry->counters, 0, sizeof(entry->counters));
	return entry;
}

/*
 * The waits are gone through once more: from now on none is in progress.
 */
void
blockers_begin_pass(void)
{
	shared->pass++;
}

/*
 * A wait is in progress, and "delta" is what is new of it; blocked_max in there
 * is how long it has been in progress for this key.  What has no room goes to
 * the evicted.
 */
void
blockers_add(const BlockerKey *key, const BlockerCounters *delta, TimestampTz now)
{
	BlockerEntry *entry = find_or_create(key, now);

	if (entry == NULL)
		entry = &shared->evicted_entries;
	if (entry->live.pass != shared->pass)
	{
		entry->live.pass = shared->pass;
		entry->live.sessions = 0;
	}
	entry->live.sessions++;
	counters_add(&entry->counters, delta);
	entry->counters.sessions_max = Max(entry->counters.sessions_max, entry->live.sessions);
	entry->usage += delta->blocked / (double) NS_PER_S;
	if (entry->since == 0)
		entry->since = now;
}

/* Forget everything, for a reset. */
void
blockers_forget(void)
{
	uint64		pass = shared->pass;

	bounded_clear(table);
	memset(shared, 0, sizeof(*shared));
	shared->pass = pass + 1;
}

/*
 * Put back a saved entry.  Where there is no room it goes to the evicted.
 */
void
blockers_restore(const BlockerEntry *saved)
{
	BlockerEntry *entry = NULL;

	LWLockAcquire(locks_get(LOCK_BLOCKERS), LW_EXCLUSIVE);
	if (saved->key.backend_type[0] != '\0' &&
		hash_get_num_entries(table) < pgnetlat_max_blockers)
		entry = find_or_create(&saved->key, saved->since);
	if (entry)
	{
		entry->since = saved->since;
		entry->usage = saved->usage;
		entry->counters = saved->counters;
	}
	else
		add_to_evicted(saved);
	LWLockRelease(locks_get(LOCK_BLOCKERS));
}

void
blockers_counts(int64 *entries, int64 *evicted)
{
	LWLockAcquire(locks_get(LOCK_BLOCKERS), LW_SHARED);
	*entries = hash_get_num_entries(table);
	*evicted = shared->evicted;
	LWLockRelease(locks_get(LOCK_BLOCKERS));
}

/* A copy, in which nobody waits who does not any more. */
static void
copy_entry(BlockerEntry *copy, const BlockerEntry *entry)
{
	*copy = *entry;
	if (copy->live.pass != shared->pass)
		copy->live.sessions = 0;
}

void
blockers_iterate(void (*callback) (const BlockerEntry *entry, void *arg), void *arg)
{
	HASH_SEQ_STATUS scan;
	BlockerEntry *entry;
	BlockerEntry *copies;
	int			count = 0;

	/* copy under the lock, format outside of it */
	copies = palloc_extended(((Size) pgnetlat_max_blockers + 1) * sizeof(BlockerEntry),
							 MCXT_ALLOC_HUGE);
	LWLockAcquire(locks_get(LOCK_BLOCKERS), LW_SHARED);
	hash_seq_init(&scan, table);
	while ((entry = hash_seq_search(&scan)) != NULL)
		copy_entry(&copies[count++], entry);
	if (shared->evicted_entries.since != 0)
		copy_entry(&copies[count++], &shared->evicted_entries);
	LWLockRelease(locks_get(LOCK_BLOCKERS));

	for (int i = 0; i < count; i++)
		callback(&copies[i], arg);
	pfree(copies);
}
