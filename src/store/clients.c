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
 * A window is what was counted since a snapshot.  All groups of a partition have
 * theirs as of the same moments.  A group that did not exist then had counted
 * nothing: its snapshot is zero.  A group that was evicted since takes its
 * snapshots along to the row that it is added to: there, too, the difference is
 * what was counted in the window.  What was saved by an earlier server is in all
 * snapshots, which all begin as of the server's start.
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

/* The beginning of ClientCounters: what windows are about, all of it int64. */
typedef struct ClientSnapshot
{
	LedgerTotals totals;
	TcpCounters tcp;
	int64		ended_sessions;
	ConnectTotals connect;
} ClientSnapshot;

StaticAssertDecl(offsetof(ClientCounters, rtt) == sizeof(ClientSnapshot),
				 "ClientSnapshot must be how ClientCounters begins");

/* An entry of the table, and a row of evicted ones. */
typedef struct ClientGroup
{
	ClientEntry entry;			/* must be first, as its key is in it */
	ClientSnapshot kept[SNAPSHOTS_KEPT];
} ClientGroup;

/* What each partition has besides, under its lock. */
typedef struct ClientsPartition
{
	int			live_groups;	/* that have live sessions */
	SnapshotTimes times;		/* of its groups' snapshots */
	ClientGroup evicted[CLIENTS_EVICTED];	/* by database; the last one is of
											 * any further ones */
} ClientsPartition;

static void
snapshot_add(ClientSnapshot *sum, const ClientSnapshot *term)
{
	for (size_t i = 0; i < sizeof(*sum) / sizeof(int64); i++)
		((int64 *) sum)[i] += ((const int64 *) term)[i];
}

static void
snapshot_subtract(ClientSnapshot *difference, const ClientSnapshot *term)
{
	for (size_t i = 0; i < sizeof(*difference) / sizeof(int64); i++)
		((int64 *) difference)[i] -= ((const int64 *) term)[i];
}

/* ---------------------------------------------------------------------------
 * What was evicted
 * ---------------------------------------------------------------------------
 */

/*
 * The row to which what is evicted of a database is added; of no database, if it
 * was evicted before and has been saved.
 */
static ClientGroup *
evicted_row_for(ClientsPartition *partition, Oid datid)
{
	ClientGroup *row = partition->evicted;
	ClientGroup *last = &partition->evicted[CLIENTS_EVICTED - 1];

	while (row < last && (!OidIsValid(datid) ||
						  (row->entry.is_evicted && row->entry.key.datid != datid)))
		row++;
	if (!row->entry.is_evicted && row < last)
		row->entry.key.datid = datid;
	row->entry.is_evicted = true;
	return row;
}

/* "since" of the sum becomes that of the older one. */
static void
add_entry(ClientEntry *sum, const ClientEntry *term)
{
	snapshot_add((ClientSnapshot *) &sum->counters, (const ClientSnapshot *) &term->counters);
	for (int i = 0; i < NUM_METRICS; i++)
		histogram_add(&sum->counters.histogram[i], &term->counters.histogram[i]);
	if (sum->since == 0 || (term->since != 0 && term->since < sum->since))
		sum->since = term->since;
}

static void
evict_group(void *own, const void *evicted)
{
	const ClientGroup *group = evicted;
	ClientsPartition *partition = own;
	ClientGroup *row = evicted_row_for(partition, group->entry.key.datid);

	add_entry(&row->entry, &group->entry);
	for (int i = 0; i < SNAPSHOTS_KEPT; i++)
		snapshot_add(&row->kept[i], &group->kept[i]);
}

static bool
may_be_evicted(const void *entry)
{
	return ((const ClientEntry *) entry)->live.sessions == 0;
}

/* ---------------------------------------------------------------------------
 * The table
 * ---------------------------------------------------------------------------
 */

/* Nothing has been counted: snapshots of that are as of now. */
static void
begin_snapshots(void *own)
{
	for (int i = 0; i < SNAPSHOTS_KEPT; i++)
		((ClientsPartition *) own)->times.at[i] = clock_now();
}

static const TableSpec spec = {
	.name = "pgnetlat clients",
	.lock = LOCK_CLIENTS,
	.key_size = sizeof(ClientKey),
	.entry_size = sizeof(ClientGroup),
	.usage_offset = offsetof(ClientEntry, usage),
	.since_offset = offsetof(ClientEntry, since),
	.own_size = sizeof(ClientsPartition),
	.may_go = may_be_evicted,
	.evict = evict_group,
	.begin = begin_snapshots,
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
	ClientsPartition *partition = table_own(&table, hash);
	ClientGroup *group;

	table_lock(&table, hash);
	if (partition->live_groups < table.partition_capacity)
		group = table_find_or_add(&table, hash, key, now);
	else
		group = table_find(&table, hash, key);
	member->joined = true;
	member->hash = hash;
	member->in_evicted = group == NULL;
	if (group == NULL)
	{
		group = evicted_row_for(partition, key->datid);
		if (group->entry.since == 0)
			group->entry.since = now;
	}
	else if (group->entry.live.sessions == 0)
		partition->live_groups++;
	member->entry = &group->entry;
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
	if (!member->in_evicted && member->entry->live.sessions == 0)
		((ClientsPartition *) table_own(&table, hash))->live_groups--;
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
 * Put back a saved entry, of which there are no live sessions.  Where there is
 * no room it goes to the evicted.
 */
void
clients_restore(const ClientEntry *saved)
{
	uint32		hash = table_hash(&table, &saved->key);
	ClientsPartition *partition = table_own(&table, hash);
	ClientGroup *group = NULL;

	table_lock(&table, hash);
	if (!saved->is_evicted)
		group = table_find_or_add(&table, hash, &saved->key, saved->since);
	if (group)
		group->entry = *saved;
	else
	{
		group = evicted_row_for(partition, saved->key.datid);
		add_entry(&group->entry, saved);
	}
	memset(&group->entry.live, 0, sizeof(group->entry.live));
	for (int i = 0; i < SNAPSHOTS_KEPT; i++)
		snapshot_add(&group->kept[i], (const ClientSnapshot *) &saved->counters);
	table_unlock(&table, hash);
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
	bool		evicted[CLIENTS_EVICTED];	/* ... rows of evicted ones */
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
static bool
reset_if_matching(ClientGroup *group, const PatternReset *reset)
{
	if (!matches(&group->entry, reset->pattern))
		return false;
	memset(&group->entry.counters, 0, sizeof(group->entry.counters));
	memset(group->kept, 0, sizeof(group->kept));
	group->entry.since = reset->now;
	return true;
}

static void
reset_entry(void *entry, void *own, void *arg)
{
	PatternReset *reset = arg;

	reset->count += reset_if_matching(entry, reset);
}

static void
reset_evicted(void *own, void *arg)
{
	PatternReset *reset = arg;
	ClientsPartition *partition = own;

	for (int i = 0; i < CLIENTS_EVICTED; i++)
	{
		if (partition->evicted[i].entry.is_evicted)
			reset->evicted[i] |= reset_if_matching(&partition->evicted[i], reset);
	}
}

/*
 * Forget what some groups, into which all sessions have just been accumulated,
 * have counted.  Returns how many they were.
 */
int64
clients_reset_matching(const ClientPattern *pattern, TimestampTz now)
{
	static const TableVisitor visitor = {.entry = reset_entry,.own = reset_evicted};
	PatternReset reset = {.pattern = pattern,.now = now};

	table_visit(&table, LW_EXCLUSIVE, &visitor, &reset);
	for (int i = 0; i < CLIENTS_EVICTED; i++)
		reset.count += reset.evicted[i];
	return reset.count;
}

/* ---------------------------------------------------------------------------
 * Reading
 * ---------------------------------------------------------------------------
 */

static void
take_snapshot(void *entry, void *own, void *arg)
{
	ClientGroup *group = entry;
	const SnapshotTimes *times = &((ClientsPartition *) own)->times;
	SnapshotLevels levels = *(SnapshotLevels *) arg;

	for (int level = 0; level < SNAPSHOT_LEVELS; level++)
	{
		if (levels & (1u << level))
			memcpy(&group->kept[snapshots_place(times, level)], &group->entry.counters,
				   sizeof(ClientSnapshot));
	}
}

/* The last ones of a partition, whose snapshots then are as of now. */
static void
take_snapshots_of_evicted(void *own, void *arg)
{
	ClientsPartition *partition = own;

	for (int i = 0; i < CLIENTS_EVICTED; i++)
	{
		if (partition->evicted[i].entry.is_evicted)
			take_snapshot(&partition->evicted[i], own, arg);
	}
	snapshots_date(&partition->times, *(SnapshotLevels *) arg, clock_now());
}

/*
 * Keep a snapshot of all groups, which have just been accumulated into.
 */
void
clients_take_snapshots(SnapshotLevels levels)
{
	static const TableVisitor visitor = {
		.entry = take_snapshot,
		.own = take_snapshots_of_evicted,
	};

	table_visit(&table, LW_EXCLUSIVE, &visitor, &levels);
}

typedef struct ClientsReading
{
	int64		length;			/* of the window, ns; 0: all that was counted */
	int64		now;			/* monotonic, and ... */
	TimestampTz timestamp;		/* ... the same moment */
	ClientEntry evicted[CLIENTS_EVICTED];	/* of all partitions */
} ClientsReading;

static void
copy_group(void *copy, const void *entry, const void *own, void *arg)
{
	const ClientsReading *reading = arg;
	const ClientGroup *group = entry;
	const SnapshotTimes *times = &((const ClientsPartition *) own)->times;
	ClientEntry *result = copy;
	int			place;

	memcpy(result, &group->entry, sizeof(ClientEntry));
	if (reading->length > 0)
	{
		place = snapshots_begin_window(times, reading->now - reading->length);
		result->since = Max(result->since, reading->timestamp -
							(reading->now - times->at[place]) / NS_PER_US);
		snapshot_subtract((ClientSnapshot *) &result->counters, &group->kept[place]);
	}
	/* a part may have come to another group than the time that it is a part of */
	ledger_totals_fit(&result->counters.totals);
}

static void
copy_evicted(const void *own, void *arg)
{
	ClientsReading *reading = arg;
	const ClientsPartition *partition = own;

	for (int i = 0; i < CLIENTS_EVICTED; i++)
	{
		const ClientEntry *entry = &partition->evicted[i].entry;
		ClientEntry *sum = reading->evicted;
		ClientEntry row;

		if (!entry->is_evicted)
			continue;
		copy_group(&row, entry, own, arg);
		/* the partitions may have met the databases in different order */
		while (sum < &reading->evicted[CLIENTS_EVICTED - 1] &&
			   (i == CLIENTS_EVICTED - 1 ||
				(sum->is_evicted && sum->key.datid != entry->key.datid)))
			sum++;
		if (sum < &reading->evicted[CLIENTS_EVICTED - 1])
			sum->key = row.key;
		sum->is_evicted = true;
		sum->usage += row.usage;
		sum->live.sessions += row.live.sessions;
		sum->live.pending += row.live.pending;
		if (row.counters.rtt > 0)
			sum->counters.rtt = row.counters.rtt;
		add_entry(sum, &row);
	}
}

/*
 * A palloc'd copy of all entries over a window that contains the last "length"
 * nanoseconds, if there is one, or else the longest there is.  It began when "since"
 * of the copies says: if not before that, when the group came.  Histograms are not
 * over the window.  The rows of evicted groups are the last ones.
 */
ClientEntry *
clients_copy_window(int64 length, int *count)
{
	static const TableReader reader = {
		.copy_size = sizeof(ClientEntry),
		.copy = copy_group,
		.own = copy_evicted,
		.extra = CLIENTS_EVICTED,
	};
	ClientsReading reading = {
		.length = length,
		.now = clock_now(),
		.timestamp = GetCurrentTimestamp()
	};
	ClientEntry *copies = table_copy(&table, &reader, &reading, count);

	for (int i = 0; i < CLIENTS_EVICTED; i++)
	{
		if (reading.evicted[i].is_evicted)
			copies[(*count)++] = reading.evicted[i];
	}
	return copies;
}

/* The same of all that was counted. */
ClientEntry *
clients_copy(int *count)
{
	return clients_copy_window(0, count);
}
