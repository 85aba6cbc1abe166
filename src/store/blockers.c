/*-------------------------------------------------------------------------
 *
 * blockers.c
 *	  The table of holders of locks.
 *
 * Only the sampler writes to the table (table.h), a few times a second while
 * sessions wait for locks, and resets do.  The holders evicted are those for
 * which others have waited least, but none for which sessions are waiting:
 * such a holder would return at once, from zero.
 *
 * Each pass of the sampler over the holders counts anew how many sessions are
 * waiting for each; nobody waits for an entry that the latest pass did not
 * touch.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "blockers.h"
#include "saved.h"
#include "session_slot.h"
#include "settings.h"
#include "table.h"
#include "utils/timestamp.h"

StaticAssertDecl(sizeof(BlockerKey) ==
				 sizeof(ClientKey) + NAMEDATALEN + sizeof(uint32) + sizeof(uint64),
				 "BlockerKey must not have padding: it is hashed as bytes");

/*
 * The number of the current pass.  Only the sampler writes it; restored entries
 * have 0.
 */
static volatile uint64 *current_pass = NULL;

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
	sum->blocked_max = Min(Max(sum->blocked_max, term->blocked_max), sum->blocked);
	sum->sessions_max = Max(sum->sessions_max, term->sessions_max);
}

/*
 * Is nobody waiting for this holder?  The current pass may not have reached it
 * yet.
 */
static bool
may_go(const void *entry)
{
	return ((const BlockerEntry *) entry)->pass + 1 < *current_pass;
}

/*
 * Nobody waits for an evicted holder, but somebody may for the evicted row's.
 */
static void
add_entry(void *to, const void *from)
{
	BlockerEntry *sum = to;
	const BlockerEntry *term = from;

	add_counters(sum, &term->counters, term->since);
	if (term->pass == *current_pass)
	{
		sum->sessions += term->sessions;
		sum->pass = term->pass;
	}
}

static const TableSpec spec = {
	.lock = LOCK_BLOCKERS,
	.key_size = sizeof(BlockerKey),
	.entry_size = sizeof(BlockerEntry),
	.usage_offset = offsetof(BlockerEntry, usage),
	.since_offset = offsetof(BlockerEntry, since),
	.counters_offset = offsetof(BlockerEntry, counters),
	.counters_size = offsetof(BlockerCounters, blocked_max),
	.evicted_rows = 1,
	.may_go = may_go,
	.add = add_entry,
};

static Table table;

Size
blockers_shmem_size(void)
{
	return add_size(PG_CACHE_LINE_SIZE, table_shmem_size(&spec, pgnetlat_max_blockers));
}

void
blockers_shmem_attach(void *memory, bool is_new)
{
	current_pass = memory;
	if (is_new)
		*current_pass = 2;
	table_shmem_attach(&table, &spec, pgnetlat_max_blockers,
					   (char *) memory + PG_CACHE_LINE_SIZE, is_new);
}

/* Begin a pass: nobody waits for any holder until it is added. */
void
blockers_begin_pass(void)
{
	++*current_pass;
}

/*
 * Add "new" to a holder for which "sessions" are waiting now, or to the
 * evicted row if there is no room.  Figures from before the latest reset are
 * dropped: a reset announces its generation before it takes the lock.
 */
void
blockers_add(const BlockerKey *key, const BlockerCounters *new, int64 sessions,
			 uint32 generation)
{
	TimestampTz now = GetCurrentTimestamp();
	uint32		hash = table_hash(&table, key);
	BlockerEntry *entry;

	table_lock(&table, hash);
	if (generation == slot_control->generation)
	{
		entry = table_find_or_add(&table, hash, key, now);
		if (entry == NULL)
			entry = table_evicted_row(&table, hash, key, now);
		add_counters(entry, new, now);
		entry->usage += (double) new->blocked;
		if (entry->pass != *current_pass)
			entry->sessions = 0;
		entry->pass = *current_pass;
		entry->sessions += sessions;
		entry->counters.sessions_max = Max(entry->counters.sessions_max, entry->sessions);
	}
	table_unlock(&table, hash);
}

/* Put back a saved entry; false if it is damaged. */
bool
blockers_restore(const void *content, double *sum)
{
	const BlockerEntry *saved = content;
	BlockerEntry entry = *saved;

	if (!saved_is_text(saved->key.client.application_name) ||
		!saved_is_text(saved->key.backend_type) ||
		!saved_are_figures(&saved->since, &saved->usage) ||
		!saved_are_figures(&saved->counters, saved + 1) ||
		!saved_are_parts(&saved->counters.exec, &saved->counters.blocked_max,
						 saved->counters.blocked))
		return false;
	entry.pass = 0;
	entry.sessions = 0;
	table_restore(&table, &entry, saved->key.backend_type[0] == '\0');
	return true;
}

/*
 * A palloc'd copy of all entries over a window: see table_copy().  The evicted
 * row, if there is one, is the last.
 */
void *
blockers_copy(int64 length, int *count)
{
	BlockerEntry *copies = table_copy(&table, length, count);

	for (int i = 0; i < *count; i++)
	{
		if (copies[i].pass != *current_pass)
			copies[i].sessions = 0;
	}
	return copies;
}

void
blockers_counts(int64 *entries, int64 *evicted)
{
	*entries = table_entries(&table);
	*evicted = table_evicted(&table);
}
