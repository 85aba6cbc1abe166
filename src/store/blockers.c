/*-------------------------------------------------------------------------
 *
 * blockers.c
 *	  See blockers.h.
 *
 * One lightweight lock protects the table.  Its only writers are the worker, a
 * few times a second and only while sessions wait for locks, and resets.
 *
 * When the table is full, the entry for which others waited least is removed,
 * and its counters are added to one that has no key, so that the sums stay
 * true.  An entry for which sessions wait now stays: it would come back at
 * once, from zero.
 *
 * How many sessions wait for a holder now is counted anew in each pass of the
 * worker over the holders; entries that the latest pass did not touch have none.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "blockers.h"
#include "compat.h"
#include "locks.h"
#include "session_slot.h"
#include "settings.h"
#include "storage/shmem.h"
#include "utils/timestamp.h"

StaticAssertDecl(sizeof(BlockerKey) ==
				 sizeof(ClientKey) + NAMEDATALEN + sizeof(uint32) + sizeof(uint64),
				 "BlockerKey must not have padding: it is hashed as bytes");

/* By how much the usage of all entries falls when one is evicted. */
#define USAGE_DECREASE_FACTOR	0.99

/* All of it, and the table, is protected by the lock of blockers. */
typedef struct BlockersControl
{
	uint64		pass;
	int64		evicted_count;
	BlockerEntry evicted;		/* what evicted entries had; since 0: nothing */
} BlockersControl;

static BlockersControl *control = NULL;
static HTAB *table = NULL;

Size
blockers_shmem_size(void)
{
	return add_size(MAXALIGN(sizeof(BlockersControl)),
					hash_estimate_size(pgnetlat_max_blockers, sizeof(BlockerEntry)));
}

void
blockers_shmem_init(void)
{
	bool		found;
	HASHCTL		info = {.keysize = sizeof(BlockerKey),.entrysize = sizeof(BlockerEntry)};

	control = ShmemInitStruct("pgnetlat blockers control", sizeof(BlockersControl), &found);
	if (!found)
	{
		memset(control, 0, sizeof(*control));
		control->pass = 2;		/* entries that are restored are of pass 0 */
	}
	table = compat_shmem_hash("pgnetlat blockers", pgnetlat_max_blockers, &info,
							  HASH_ELEM | HASH_BLOBS);
}

static void
add_counters(BlockerEntry *entry, const BlockerCounters *term, TimestampTz since)
{
	BlockerCounters *sum = &entry->counters;

	if (entry->since == 0 || since < entry->since)
		entry->since = since;
	sum->blocked += term->blocked;
	sum->exec += term->exec;
	sum->send += term->send;
	sum->recv += term->recv;
	sum->network += term->network;
	sum->client += term->client;
	sum->blocked_max = Max(sum->blocked_max, term->blocked_max);
	sum->sessions_max = Max(sum->sessions_max, term->sessions_max);
}

/* False if sessions wait for each of the holders. */
static bool
evict_one(void)
{
	HASH_SEQ_STATUS scan;
	BlockerEntry *entry;
	BlockerEntry *least = NULL;

	hash_seq_init(&scan, table);
	while ((entry = hash_seq_search(&scan)) != NULL)
	{
		entry->usage *= USAGE_DECREASE_FACTOR;
		/* the present pass may not have come to it yet */
		if (entry->pass + 1 < control->pass && (least == NULL || entry->usage < least->usage))
			least = entry;
	}
	if (least == NULL)
		return false;
	add_counters(&control->evicted, &least->counters, least->since);
	control->evicted_count++;
	hash_search(table, &least->key, HASH_REMOVE, NULL);
	return true;
}

/* The entry of a key; NULL if there is no room for it. */
static BlockerEntry *
find_or_add(const BlockerKey *key)
{
	BlockerEntry *entry = hash_search(table, key, HASH_FIND, NULL);

	if (entry)
		return entry;
	if (hash_get_num_entries(table) >= pgnetlat_max_blockers && !evict_one())
		return NULL;
	entry = hash_search(table, key, HASH_ENTER_NULL, NULL);
	if (entry)
		memset((char *) entry + sizeof(entry->key), 0, sizeof(*entry) - sizeof(entry->key));
	return entry;
}

/*
 * The holders are gone through once more: from now on nobody waits.
 */
void
blockers_begin_pass(void)
{
	locks_acquire(LOCK_BLOCKERS, 0, LW_EXCLUSIVE);
	control->pass++;
	locks_release(LOCK_BLOCKERS, 0);
}

/*
 * Add what is new of a holder, for which so many sessions wait now.  What has no room
 * goes to the evicted.  What is older than the latest reset of all is forgotten: a
 * reset announces its generation before it takes the lock.
 */
void
blockers_add(const BlockerKey *key, const BlockerCounters *new, int64 sessions,
			 uint32 generation)
{
	TimestampTz now = GetCurrentTimestamp();
	BlockerEntry *entry;

	locks_acquire(LOCK_BLOCKERS, 0, LW_EXCLUSIVE);
	if (generation == slot_generation())
	{
		entry = find_or_add(key);
		if (entry == NULL)
			entry = &control->evicted;
		add_counters(entry, new, now);
		entry->usage += (double) new->blocked;
		if (entry->pass != control->pass)
			entry->sessions = 0;
		entry->pass = control->pass;
		entry->sessions += sessions;
		entry->counters.sessions_max = Max(entry->counters.sessions_max, entry->sessions);
	}
	locks_release(LOCK_BLOCKERS, 0);
}

void
blockers_reset(void)
{
	HASH_SEQ_STATUS scan;
	BlockerEntry *entry;

	locks_acquire(LOCK_BLOCKERS, 0, LW_EXCLUSIVE);
	hash_seq_init(&scan, table);
	while ((entry = hash_seq_search(&scan)) != NULL)
		hash_search(table, &entry->key, HASH_REMOVE, NULL);
	control->evicted_count = 0;
	memset(&control->evicted, 0, sizeof(control->evicted));
	locks_release(LOCK_BLOCKERS, 0);
}

/*
 * Put back a saved entry.  Where there is no room it goes to the evicted.
 */
void
blockers_restore(const BlockerEntry *saved)
{
	BlockerEntry *entry = NULL;

	locks_acquire(LOCK_BLOCKERS, 0, LW_EXCLUSIVE);
	if (saved->key.backend_type[0] != '\0' &&
		hash_get_num_entries(table) < pgnetlat_max_blockers)
		entry = find_or_add(&saved->key);
	if (entry)
	{
		*entry = *saved;
		entry->pass = 0;
		entry->sessions = 0;
	}
	else
		add_counters(&control->evicted, &saved->counters, saved->since);
	locks_release(LOCK_BLOCKERS, 0);
}

static void
copy_entry(BlockerEntry *copy, const BlockerEntry *entry)
{
	*copy = *entry;
	if (copy->pass != control->pass)
		copy->sessions = 0;
}

/*
 * A palloc'd copy of all entries; the one of evicted entries, if there is any, is
 * the last.
 */
BlockerEntry *
blockers_copy(int *count)
{
	BlockerEntry *copies = palloc(mul_size(pgnetlat_max_blockers + 1, sizeof(BlockerEntry)));
	HASH_SEQ_STATUS scan;
	BlockerEntry *entry;

	*count = 0;
	locks_acquire(LOCK_BLOCKERS, 0, LW_SHARED);
	hash_seq_init(&scan, table);
	while ((entry = hash_seq_search(&scan)) != NULL)
		copy_entry(&copies[(*count)++], entry);
	if (control->evicted.since != 0)
		copy_entry(&copies[(*count)++], &control->evicted);
	locks_release(LOCK_BLOCKERS, 0);
	return copies;
}

void
blockers_counts(int64 *entries, int64 *evicted)
{
	locks_acquire(LOCK_BLOCKERS, 0, LW_SHARED);
	*entries = hash_get_num_entries(table);
	*evicted = control->evicted_count;
	locks_release(LOCK_BLOCKERS, 0);
}
