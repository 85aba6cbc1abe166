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
 * Names may change with each request (a job's number, a test's).  So that they
 * evict no others, a database, role and address has room for so many names
 * only: the least used ones are added to a group of other names.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "clients.h"
#include "saved.h"
#include "settings.h"
#include "table.h"

StaticAssertDecl(sizeof(ClientKey) == 2 * sizeof(Oid) + sizeof(int32) + 16 + NAMEDATALEN,
				 "ClientKey must not have padding: it is hashed as bytes");

/* Evicted rows: one each for some databases, and one for the others. */
#define CLIENTS_EVICTED		16

/* Names of a database, role and address, and the group of the other names. */
#define MAX_NAMES			50
#define OTHER_NAMES			"(other names)"

StaticAssertDecl(offsetof(ClientCounters, rtt) % sizeof(int64) == 0,
				 "fields before rtt in ClientCounters must be int64: windows subtract them");

/* A statement was repeated that often in one burst. */
void
clients_note_repeats(ClientEntry *entry, int64 repeats, uint64 queryid)
{
	if (repeats <= entry->counters.repeats_max)
		return;
	entry->counters.repeats_max = repeats;
	entry->repeats_max_queryid = queryid;
}

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
	clients_note_repeats(sum, term->counters.repeats_max, term->repeats_max_queryid);
	sum->counters.round_trips_max = Max(sum->counters.round_trips_max, term->counters.round_trips_max);
	sum->live.sessions += term->live.sessions;
	sum->live.pending += term->live.pending;
	sum->usage += term->usage;
	if (sum->since == 0 || (term->since != 0 && term->since < sum->since))
		sum->since = term->since;
}

/* The same database, role and address have the same upper half. */
static uint32
hash_client(const void *key)
{
	const ClientKey *client = key;
	uint32		kin = hash_bytes(key, offsetof(ClientKey, application_name));
	uint32		name = hash_bytes((const unsigned char *) client->application_name, NAMEDATALEN);

	return (kin & 0xFFFF0000) | ((kin ^ name) & 0xFFFF);
}

static const void *
other_names(const void *key)
{
	static ClientKey others;

	others = *(const ClientKey *) key;
	memset(others.application_name, 0, sizeof(others.application_name));
	strcpy(others.application_name, OTHER_NAMES);
	return &others;
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
	.kin_size = offsetof(ClientKey, application_name),
	.kin_most = MAX_NAMES,
	.others_key = other_names,
	.hash = hash_client,
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

/*
 * Join the group of a key, and leave its partition locked.  If it has no room,
 * and was not in the evicted row before, that is counted.
 */
static ClientEntry *
join(const ClientKey *key, ClientMember *member, bool was_evicted, TimestampTz now)
{
	uint32		hash = table_hash(&table, key);
	const void *others = other_names(key);
	ClientEntry *entry;

	table_lock(&table, hash);
	member->joined = true;
	member->hash = hash;
	entry = table_find_or_add(&table, hash, key, now);
	member->no_room = entry == NULL;
	if (member->no_room)
		entry = table_find_or_add(&table, table_hash(&table, others), others, now);
	if (entry == NULL)
	{
		entry = table_evicted_row(&table, hash, key, now);
		if (!was_evicted)
			table_count_evicted(&table, hash);
	}
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
		entry = join(key, member, false, now);
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
	const ClientEntry *left = table_at(&table, member->entry);
	bool		was_evicted = left->is_evicted;

	clients_leave(member);
	return join(key, member, was_evicted, now);
}

/* Put back a saved entry, without sessions; false if it is damaged. */
bool
clients_restore(const void *content, double *sum)
{
	const ClientEntry *saved = content;
	const ClientCounters *counters = &saved->counters;
	ClientEntry entry = *saved;

	if (!saved_is_text(saved->key.application_name) ||
		!saved_are_figures(&saved->since, &saved->pooler) ||
		!saved_are_figures(counters, saved + 1) ||
		!saved_add_totals(sum, &counters->totals) ||
		!saved_add_counts(sum, &counters->tcp, &counters->connect.time))
		return false;
	for (int i = 0; i < NUM_METRICS; i++)
	{
		if (!saved_add_counts(sum, counters->histogram[i].bucket, &counters->histogram[i].sum))
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

/* An evicted row has no role, name or address. */
static bool
matches(const ClientEntry *entry, const ClientPattern *pattern)
{
	const ClientKey *key = &entry->key;

	return (!OidIsValid(pattern->datid) || pattern->datid == key->datid) &&
		(!OidIsValid(pattern->userid) || pattern->userid == key->userid) &&
		(pattern->application_name == NULL ||
		 strcmp(pattern->application_name, key->application_name) == 0) &&
		(pattern->family == 0 ||
		 (pattern->family == key->family &&
		  memcmp(pattern->address, key->address, sizeof(key->address)) == 0));
}

/*
 * Reset a group that matches.  Its sessions stay, with their pending time.
 * The sums of its database, which exporters read, must not fall: they stay in
 * the evicted row, which has only its maxima reset.
 */
static void
reset_if_matching(void *visited, void *arg)
{
	ClientEntry *entry = visited;
	PatternReset *reset = arg;
	ClientEntry counted;

	if (!matches(entry, reset->pattern))
		return;
	entry->counters.repeats_max = entry->counters.round_trips_max = 0;
	entry->repeats_max_queryid = 0;
	if (entry->is_evicted)
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
