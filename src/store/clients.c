/*-------------------------------------------------------------------------
 *
 * clients.c
 *	  The table of client groups.
 *
 * When a partition of the table is full, its least used groups without live
 * sessions are evicted, each into a row for its database, so that a database's
 * sum never falls.  A group with live sessions stays: it would return at once,
 * from zero.  If all groups have live sessions, there is no room for another
 * one: its sessions are counted in its database's evicted row until there is.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "clients.h"
#include "persist.h"
#include "settings.h"
#include "table.h"

StaticAssertDecl(sizeof(ClientKey) == 2 * sizeof(Oid) + sizeof(int32) + 16 + NAMEDATALEN,
				 "ClientKey must not have padding: it is hashed as bytes");

/* Evicted rows: one each for some databases, and one for the others. */
#define CLIENTS_EVICTED		16

StaticAssertDecl(offsetof(ClientCounters, rtt) % sizeof(int64) == 0,
				 "fields before rtt in ClientCounters must be int64: windows subtract them");

/* Add what an entry has counted and, for an evicted row, its live sessions. */
static void
add_entry(void *to, const void *from)
{
	ClientEntry *sum = to;
	const ClientEntry *term = from;

	for (size_t i = 0; i < offsetof(ClientCounters, rtt) / sizeof(int64); i++)
		((int64 *) &sum->counters)[i] += ((const int64 *) &term->counters)[i];
	clients_limit_idle(&sum->counters);
	for (int i = 0; i < NUM_METRICS; i++)
		histogram_add(&sum->counters.histogram[i], &term->counters.histogram[i]);
	if (term->counters.rtt > 0)
		sum->counters.rtt = term->counters.rtt;
	sum->live.sessions += term->live.sessions;
	sum->live.pending += term->live.pending;
	if (sum->since == 0 || (term->since != 0 && term->since < sum->since))
		sum->since = term->since;
}

static bool
may_be_evicted(const void *entry)
{
	return ((const ClientEntry *) entry)->live.sessions == 0;
}

/* A saved evicted row for the other databases has no database. */
static bool
has_row(const void *row, const void *entry)
{
	const ClientEntry *evicted = row;
	Oid			datid = ((const ClientKey *) entry)->datid;

	return OidIsValid(datid) && (!evicted->is_evicted || evicted->key.datid == datid);
}

static void
begin_evicted(void *row, const void *entry)
{
	ClientEntry *evicted = row;

	evicted->is_evicted = true;
	if (entry)
		evicted->key.datid = ((const ClientKey *) entry)->datid;
}

static const TableSpec spec = {
	.lock = LOCK_CLIENTS,
	.key_size = sizeof(ClientKey),
	.entry_size = sizeof(ClientEntry),
	.usage_offset = offsetof(ClientEntry, usage),
	.since_offset = offsetof(ClientEntry, since),
	.counters_offset = offsetof(ClientEntry, counters),
	.counters_size = offsetof(ClientCounters, rtt),
	.evicted_rows = CLIENTS_EVICTED,
	.may_go = may_be_evicted,
	.add = add_entry,
	.belongs = has_row,
	.begin_row = begin_evicted,
};

static Table table;

Size
clients_shmem_size(void)
{
	return table_shmem_size(&spec, pgnetlat_max_clients);
}

void
clients_shmem_attach(void *memory, bool is_new)
{
	table_shmem_attach(&table, &spec, pgnetlat_max_clients, memory, is_new);
}

void
clients_counts(int64 *entries, int64 *evicted)
{
	*entries = table_entries(&table);
	*evicted = table_evicted(&table);
}

/* ---------------------------------------------------------------------------
 * Sessions and their groups
 * ---------------------------------------------------------------------------
 */

/* Join the group of a key, and leave its partition locked. */
static ClientEntry *
join(const ClientKey *key, ClientMember *member, TimestampTz now)
{
	uint32		hash = table_hash(&table, key);
	ClientEntry *entry;

	table_lock(&table, hash);
	member->joined = true;
	member->hash = hash;
	entry = table_find_or_add(&table, hash, key, now);
	member->in_evicted = entry == NULL;
	if (member->in_evicted)
		entry = table_evicted_row(&table, hash, key, now);
	member->entry = table_place_of(&table, entry);
	entry->live.sessions++;
	return entry;
}

ClientEntry *
clients_acquire(const ClientKey *key, ClientMember *member, TimestampTz now)
{
	ClientEntry *entry;

	if (likely(member->joined))
	{
		table_lock(&table, member->hash);
		entry = table_at(&table, member->entry);
	}
	else
	{
		entry = join(key, member, now);
		if (member->in_evicted)
			table_count_evicted(&table, member->hash);
	}
	Assert(entry->live.sessions > 0);
	return entry;
}

void
clients_release(const ClientMember *member)
{
	table_unlock(&table, member->hash);
}

/*
 * The session leaves its group, with no pending time there, and releases the
 * entry.
 */
void
clients_leave(ClientMember *member)
{
	uint32		hash = member->hash;
	ClientEntry *entry = table_at(&table, member->entry);

	Assert(member->joined && member->pending == 0);
	entry->live.sessions--;
	memset(member, 0, sizeof(*member));
	table_unlock(&table, hash);
}

/*
 * Whether the group of "key", which had no room when the session joined, has
 * room now; for the holder of the entry.
 */
bool
clients_have_room(const ClientKey *key, const ClientMember *member, TimestampTz now)
{
	return table_find_or_add(&table, member->hash, key, now) != NULL;
}

/*
 * The session leaves its group and joins the one of "key", which may be the
 * same if that had no room.  Returns the new entry, which is locked in place
 * of the old one.
 */
ClientEntry *
clients_move(const ClientKey *key, ClientMember *member, TimestampTz now)
{
	bool		had_no_room = member->in_evicted;
	ClientEntry *entry;

	clients_leave(member);
	entry = join(key, member, now);
	if (member->in_evicted && !had_no_room)
		table_count_evicted(&table, member->hash);
	return entry;
}

/* Put back a saved entry, without sessions; false if it is damaged. */
bool
clients_restore(const void *content)
{
	const ClientEntry *saved = content;
	const ClientCounters *counters = &saved->counters;
	ClientEntry entry = *saved;

	if (!persist_is_text(saved->key.application_name) ||
		!persist_are_figures(&saved->since, &saved->pooler) ||
		!persist_are_figures(counters, saved + 1) ||
		!persist_are_counts(&counters->totals.requests, &counters->totals.run_queue) ||
		!persist_are_counts(&counters->tcp, &counters->connect.time))
		return false;
	for (int i = 0; i < NUM_METRICS; i++)
	{
		if (!persist_are_counts(counters->histogram[i].bucket, &counters->histogram[i].sum))
			return false;
	}
	memset(&entry.live, 0, sizeof(entry.live));
	table_restore(&table, &entry, saved->is_evicted);
	return true;
}

/* ---------------------------------------------------------------------------
 * Resets of some groups
 * ---------------------------------------------------------------------------
 */

typedef struct PatternReset
{
	const ClientPattern *pattern;
	TimestampTz now;
	int64		count;			/* groups that matched */
} PatternReset;

static bool
matches(const ClientEntry *entry, const ClientPattern *pattern)
{
	const ClientKey *key = &entry->key;

	return !entry->is_evicted &&
		(!OidIsValid(pattern->datid) || pattern->datid == key->datid) &&
		(!OidIsValid(pattern->userid) || pattern->userid == key->userid) &&
		(pattern->application_name == NULL ||
		 strcmp(pattern->application_name, key->application_name) == 0) &&
		(pattern->family == 0 ||
		 (pattern->family == key->family &&
		  memcmp(pattern->address, key->address, sizeof(key->address)) == 0));
}

/*
 * Reset a group that matches.  Its sessions stay, with their pending time.
 * The sums of its database, which exporters read, must not fall.
 */
static void
reset_if_matching(void *visited, void *arg)
{
	ClientEntry *entry = visited;
	PatternReset *reset = arg;
	ClientEntry counted;

	if (!matches(entry, reset->pattern))
		return;
	counted = *entry;
	memset(&counted.live, 0, sizeof(counted.live));
	table_forget(&table, entry, &counted, reset->now);
	memset(&entry->counters, 0, sizeof(entry->counters));
	entry->since = reset->now;
	reset->count++;
}

/*
 * Forget what the matching groups have counted, after all sessions have been
 * accumulated.  Returns the number of groups.
 */
int64
clients_reset_matching(const ClientPattern *pattern, TimestampTz now)
{
	PatternReset reset = {.pattern = pattern,.now = now};

	table_visit(&table, reset_if_matching, &reset);
	return reset.count;
}

/* ---------------------------------------------------------------------------
 * Reading
 * ---------------------------------------------------------------------------
 */

/*
 * A palloc'd copy of all entries over a window: see table_copy().  Histograms
 * are not limited to the window.
 */
void *
clients_copy(int64 length, int *count)
{
	ClientEntry *copies = table_copy(&table, length, count);

	/* after a rename, a part may be in another group than its whole */
	for (int i = 0; i < *count; i++)
		ledger_totals_fit(&copies[i].counters.totals);
	return copies;
}
