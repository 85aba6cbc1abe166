/*-------------------------------------------------------------------------
 *
 * clients.c
 *	  See clients.h.
 *
 * When a partition of the table is full, its least used groups without live
 * sessions are evicted, each into a row for its database, so that a database's
 * sum never falls.  A group that has live sessions stays: it would come back at
 * once, from zero.  Where all groups have some, there is no room for another:
 * its sessions are counted in the row of their database's evicted groups, until
 * there is.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "clients.h"
#include "clock.h"
#include "settings.h"
#include "table.h"
#include "utils/timestamp.h"

StaticAssertDecl(sizeof(ClientKey) == 2 * sizeof(Oid) + sizeof(int32) + 16 + NAMEDATALEN,
				 "ClientKey must not have padding: it is hashed as bytes");

/* Databases that have a row of their own for what was evicted, and one more. */
#define CLIENTS_EVICTED		16

StaticAssertDecl(offsetof(ClientCounters, rtt) % sizeof(int64) == 0,
				 "what is before rtt in ClientCounters must be int64: windows are about it");

/* What an entry has counted, and for a row of evicted ones also its live sessions. */
static void
add_entry(void *to, const void *from)
{
	ClientEntry *sum = to;
	const ClientEntry *term = from;

	for (size_t i = 0; i < offsetof(ClientCounters, rtt) / sizeof(int64); i++)
		((int64 *) &sum->counters)[i] += ((const int64 *) &term->counters)[i];
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

/* What is of no database was evicted before, with others, and has been saved. */
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
	.name = "pgnetlat clients",
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
clients_shmem_init(void)
{
	table_shmem_init(&table, &spec, pgnetlat_max_clients);
}

void
clients_reset(void)
{
	table_clear(&table);
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

/* Join the group of a key, whose partition is locked then. */
static void
join(const ClientKey *key, ClientMember *member, TimestampTz now)
{
	uint32		hash = table_hash(&table, key);

	table_lock(&table, hash);
	member->joined = true;
	member->hash = hash;
	member->entry = table_find_or_add(&table, hash, key, now);
	member->in_evicted = member->entry == NULL;
	if (member->in_evicted)
		member->entry = table_evicted_row(&table, hash, key, now);
	member->entry->live.sessions++;
}

ClientEntry *
clients_acquire(const ClientKey *key, ClientMember *member, TimestampTz now)
{
	if (likely(member->joined))
		table_lock(&table, member->hash);
	else
	{
		join(key, member, now);
		if (member->in_evicted)
			table_count_evicted(&table, member->hash);
	}
	Assert(member->entry->live.sessions > 0);
	return member->entry;
}

void
clients_release(const ClientMember *member)
{
	table_unlock(&table, member->hash);
}

/*
 * The session, whose pending time is zero, leaves its group, and its entry is
 * released.
 */
void
clients_leave(ClientMember *member)
{
	uint32		hash = member->hash;

	Assert(member->joined && member->pending == 0);
	member->entry->live.sessions--;
	memset(member, 0, sizeof(*member));
	table_unlock(&table, hash);
}

/*
 * The session leaves its group and joins the one of another key, or of the same
 * if that had no room.  Returns the entry in which it is then, locked instead.
 */
ClientEntry *
clients_move(const ClientKey *key, ClientMember *member, TimestampTz now)
{
	bool		had_no_room = member->in_evicted;

	clients_leave(member);
	join(key, member, now);
	if (member->in_evicted && !had_no_room)
		table_count_evicted(&table, member->hash);
	return member->entry;
}

/*
 * Put back a saved entry, of which there are no live sessions.
 */
void
clients_restore(const ClientEntry *saved)
{
	table_restore(&table, saved, saved->is_evicted);
}

/* ---------------------------------------------------------------------------
 * Resets of some groups
 * ---------------------------------------------------------------------------
 */

typedef struct PatternReset
{
	const ClientPattern *pattern;
	TimestampTz now;
	int64		count;			/* groups that matched, and ... */
	Oid			evicted[CLIENTS_EVICTED];	/* ... databases' rows of evicted
											 * ones */
	int			evicted_count;
} PatternReset;

static bool
matches(const ClientEntry *entry, const ClientPattern *pattern)
{
	const ClientKey *key = &entry->key;

	return (!OidIsValid(pattern->datid) || pattern->datid == key->datid) &&
		(!OidIsValid(pattern->userid) || pattern->userid == key->userid) &&
		(pattern->application_name == NULL ||
		 (!entry->is_evicted && strcmp(pattern->application_name, key->application_name) == 0)) &&
		(pattern->family == 0 ||
		 (pattern->family == key->family &&
		  memcmp(pattern->address, key->address, sizeof(key->address)) == 0));
}

/* Its sessions stay, and with them what they have pending. */
static void
reset_if_matching(void *visited, void *arg)
{
	ClientEntry *entry = visited;
	PatternReset *reset = arg;
	int			i = 0;

	if (!matches(entry, reset->pattern))
		return;
	table_forget(&table, entry);
	memset(&entry->counters, 0, sizeof(entry->counters));
	entry->since = reset->now;
	/* each partition has rows of evicted ones, which are shown as one */
	while (entry->is_evicted && i < reset->evicted_count && reset->evicted[i] != entry->key.datid)
		i++;
	if (!entry->is_evicted)
		reset->count++;
	else if (i == reset->evicted_count && i < CLIENTS_EVICTED)
		reset->evicted[reset->evicted_count++] = entry->key.datid;
}

/*
 * Forget what some groups, into which all sessions have just been accumulated,
 * have counted.  Returns how many they were.
 */
int64
clients_reset_matching(const ClientPattern *pattern, TimestampTz now)
{
	PatternReset reset = {.pattern = pattern,.now = now};

	table_visit(&table, reset_if_matching, &reset);
	return reset.count + reset.evicted_count;
}

/* ---------------------------------------------------------------------------
 * Reading
 * ---------------------------------------------------------------------------
 */

/*
 * Keep a snapshot of all groups, which have just been accumulated into.
 */
void
clients_take_snapshots(SnapshotLevels levels)
{
	table_take_snapshots(&table, levels);
}

/*
 * A palloc'd copy of all entries over a window: see table_copy().  Histograms are not
 * over the window.
 */
ClientEntry *
clients_copy_window(int64 length, int *count)
{
	ClientEntry *copies = table_copy(&table, length, count);

	/*
	 * a part may have come to another group than the time that it is a part
	 * of
	 */
	for (int i = 0; i < *count; i++)
		ledger_totals_fit(&copies[i].counters.totals);
	return copies;
}

/* The same of all that was counted. */
ClientEntry *
clients_copy(int *count)
{
	return clients_copy_window(0, count);
}
