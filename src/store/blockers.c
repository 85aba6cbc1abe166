/*-------------------------------------------------------------------------
 *
 * blockers.c
 *	  See blockers.h.
 *
 * When the table is full, the entries for which others waited least are
 * removed, and their counters added to one that has no key, so that the sums
 * stay true.
 *
 * How many sessions wait for a holder now is counted anew in each pass over
 * the waits, without going through the entries for that: an entry that the
 * latest pass did not touch has none.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "blockers.h"
#include "clock.h"
#include "common/hashfn.h"
#include "port/atomics.h"
#include "settings.h"
#include "storage/shmem.h"
#include "table.h"

StaticAssertDecl(sizeof(BlockerKey) ==
				 sizeof(ClientKey) + NAMEDATALEN + sizeof(uint32) + sizeof(uint64),
				 "BlockerKey must not have padding: it is compared as bytes");

/* How often to make room for an entry that others have taken then. */
#define MAX_TRIES		3

static pg_atomic_uint64 *latest_pass = NULL;

/* Add up two of the same holder. */
void
blockers_sum(BlockerCounters *sum, const BlockerCounters *term)
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

/* "own" is the row of what was evicted of a partition; its key stays zero. */
static void
add_up_evicted(void *own, const void *evicted)
{
	BlockerEntry *sum = own;
	const BlockerEntry *entry = evicted;

	blockers_sum(&sum->counters, &entry->counters);
	if (entry->since != 0 && (sum->since == 0 || entry->since < sum->since))
		sum->since = entry->since;
}

/* Whom others wait for stays: it would come back at once, from zero. */
static bool
may_be_evicted(const void *entry)
{
	return ((const BlockerEntry *) entry)->live.pass + 1 < pg_atomic_read_u64(latest_pass);
}

static const TableSpec spec = {
	.name = "pgnetlat blockers",
	.lock = LOCK_BLOCKERS,
	.key_size = sizeof(BlockerKey),
	.entry_size = sizeof(BlockerEntry),
	.usage_offset = offsetof(BlockerEntry, usage),
	.since_offset = offsetof(BlockerEntry, since),
	.own_size = sizeof(BlockerEntry),
	.may_go = may_be_evicted,
	.evict = add_up_evicted,
};

static Table table;

Size
blockers_shmem_size(void)
{
	return add_size(MAXALIGN(sizeof(pg_atomic_uint64)),
					table_shmem_size(&spec, pgnetlat_max_blockers));
}

void
blockers_shmem_init(void)
{
	bool		found;

	latest_pass = ShmemInitStruct("pgnetlat blockers control", sizeof(pg_atomic_uint64),
								  &found);
	if (!found)
		pg_atomic_init_u64(latest_pass, 1);
	table_shmem_init(&table, &spec, pgnetlat_max_blockers);
}

uint32
blockers_hash(const BlockerKey *key)
{
	return hash_bytes((const unsigned char *) key, sizeof(*key));
}

/*
 * The waits are gone through once more: from now on none is in progress.
 */
void
blockers_begin_pass(void)
{
	pg_atomic_fetch_add_u64(latest_pass, 1);
}

/* The entry of a key; NULL if there is no room.  Its partition is locked. */
static BlockerEntry *
lock_entry(const BlockerKey *key, uint32 hash, TimestampTz now)
{
	for (int try = 0;; try++)
	{
		BlockerEntry *entry;

		table_lock(&table, hash);
		entry = table_find_or_add(&table, hash, key, now);
		if (entry || try == MAX_TRIES)
			return entry;
		table_unlock(&table, hash);
		if (!table_make_room(&table, true))
			try = MAX_TRIES - 1;
	}
}

/* That of evicted ones, to which so many waits are added that begin. */
static BlockerEntry *
evicted_entry(uint32 hash, int64 begun, TimestampTz now)
{
	BlockerEntry *entry = table_own(&table, hash);

	for (int64 i = 0; i < begun; i++)
		table_count_evicted(&table, hash);
	if (entry->since == 0)
		entry->since = now;
	return entry;
}

/*
 * Add what is new.  A part may be found late, of what was waited while the holder
 * found no room and its waits went to the evicted: then it has no place here.
 */
static void
add_fitting(BlockerCounters *sum, const BlockerCounters *new)
{
	BlockerCounters fitting = *new;
	const int64 *booked = &sum->exec;
	int64	   *part = &fitting.exec;
	int64		room = sum->blocked + new->blocked;

	for (int i = 0; i < BLOCKER_PARTS; i++)
		room -= booked[i];
	for (int i = 0; i < BLOCKER_PARTS; i++)
	{
		part[i] = Min(part[i], room);
		room -= part[i];
	}
	blockers_sum(sum, &fitting);
}

/*
 * Add to the counters of a holder.  What has no room goes to the evicted.
 */
void
blockers_add(const BlockerKey *key, uint32 hash, const BlockerDelta *delta, TimestampTz now)
{
	BlockerEntry *entry = lock_entry(key, hash, now);
	uint64		pass = pg_atomic_read_u64(latest_pass);

	if (entry == NULL)
		entry = evicted_entry(hash, delta->begun, now);
	if (entry->live.pass != pass)
	{
		entry->live.pass = pass;
		entry->live.sessions = 0;
	}
	entry->live.sessions += delta->in_progress;
	add_fitting(&entry->counters, &delta->counters);
	entry->counters.sessions_max = Max(entry->counters.sessions_max, entry->live.sessions);
	entry->usage += delta->counters.blocked / (double) NS_PER_S;
	table_unlock(&table, hash);
}

void
blockers_reset(void)
{
	table_clear(&table);
}

/*
 * Put back a saved entry.  Where there is no room it goes to the evicted.
 */
void
blockers_restore(const BlockerEntry *saved)
{
	uint32		hash = blockers_hash(&saved->key);
	BlockerEntry *entry = NULL;

	table_lock(&table, hash);
	if (saved->key.backend_type[0] != '\0')
		entry = table_find_or_add(&table, hash, &saved->key, saved->since);
	if (entry)
		*entry = *saved;
	else
		add_up_evicted(table_own(&table, hash), saved);
	table_unlock(&table, hash);
}

/* Nobody waits in a copy who does not any more. */
static void
copy_entry(void *copy, const void *entry, const void *own, void *arg)
{
	BlockerEntry *result = copy;

	memcpy(result, entry, sizeof(*result));
	if (result->live.pass != pg_atomic_read_u64(latest_pass))
		result->live.sessions = 0;
}

static void
read_evicted(const void *own, void *sum)
{
	BlockerEntry row;

	copy_entry(&row, own, own, NULL);
	add_up_evicted(sum, &row);
	((BlockerEntry *) sum)->live.sessions += row.live.sessions;
}

static void
forget_evicted(void *sum)
{
	memset(sum, 0, sizeof(BlockerEntry));
}

static const TableReader reader = {
	.copy_size = sizeof(BlockerEntry),
	.copy = copy_entry,
	.own = read_evicted,
	.restart = forget_evicted,
	.extra = 1,
};

static BlockerEntry *
append_evicted(BlockerEntry *copies, const BlockerEntry *evicted, int *count)
{
	if (evicted->since != 0)
		copies[(*count)++] = *evicted;
	return copies;
}

/*
 * A palloc'd copy of all entries; the one of evicted entries (all zero key), if
 * there is any, is the last.
 */
BlockerEntry *
blockers_copy(int *count)
{
	BlockerEntry evicted;
	BlockerEntry *copies = table_copy(&table, &reader, &evicted, count);

	return append_evicted(copies, &evicted, count);
}

/*
 * Make room for a copy, which is all zero at first.  If it was not enough the last
 * time, or a reset was under way then, that is over.
 */
void
blockers_prepare_copy(BlockersCopy *copy)
{
	locks_acquire(LOCK_RESET, 0, LW_SHARED);
	locks_release(LOCK_RESET, 0);
	table_prepare_copy(&table, &reader, &copy->entries);
}

bool
blockers_copy_prepared(BlockersCopy *copy)
{
	return table_copy_prepared(&table, &reader, &copy->evicted, &copy->entries);
}

BlockerEntry *
blockers_finish_copy(BlockersCopy *copy, int *count)
{
	*count = (int) copy->entries.count;
	return append_evicted((BlockerEntry *) copy->entries.at, &copy->evicted, count);
}

void
blockers_counts(int64 *entries, int64 *evicted)
{
	*entries = table_entries(&table);
	*evicted = table_evicted(&table);
}
