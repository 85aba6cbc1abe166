/*-------------------------------------------------------------------------
 *
 * clients.c
 *	  See clients.h.
 *
 * When the table is full the least used groups without live sessions are
 * removed, and each is added to a row for its database, so that a database's
 * sum never falls.  A group that has live sessions stays: it would come back
 * at once, from zero.  Where all groups have some, there is no room for
 * another: its sessions are counted in the row of their database's evicted
 * groups, until there is.
 *
 * A connection that fails belongs to the group that it would have been in, if
 * there is one.  It makes none: whoever cannot log in could make up as many
 * application_names as he likes.  Otherwise it goes to a group that stands for
 * all failed ones of its database, role and address.  There are few such groups,
 * they evict no others, and are evicted first; what is beyond that, or of a
 * database or role that does not exist, goes to the row of evicted groups.
 *
 * Windows begin with snapshots, as those over sessions do (snapshots.h), but
 * all groups of a partition have theirs as of the same moments.  A group that
 * did not exist then had counted nothing: its snapshot is zero.  A group that
 * was evicted since takes its snapshots along to the row that it is added to:
 * there, too, the difference is what was counted in the window.  Snapshots are
 * not saved, and what was saved is older than any window: no window begins
 * before the server was started.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include "clients.h"
#include "clock.h"
#include "common/hashfn.h"
#include "port/atomics.h"
#include "settings.h"
#include "storage/shmem.h"
#include "table.h"
#include "utils/timestamp.h"

StaticAssertDecl(sizeof(ClientKey) == 2 * sizeof(Oid) + sizeof(int32) + 16 + NAMEDATALEN,
				 "ClientKey must not have padding: it is hashed as bytes");

/* Databases that have a row of their own for what was evicted, and one more. */
#define CLIENTS_EVICTED		16

/* How often to make room for a group that others have taken then. */
#define MAX_TRIES			3

/* The application_name of groups of failed connections, and how many there are. */
#define FAILED_NAME			"(failed)"
#define MAX_FAILED_GROUPS	((uint32) pgnetlat_max_clients / 8)

/* The beginning of ClientCounters: what windows are about, all of it int64. */
typedef struct ClientSnapshot
{
	LedgerTotals totals;
	TcpCounters tcp;
	int64		ended_sessions;
	ConnectTotals connect;
	int64		occupied;
} ClientSnapshot;

StaticAssertDecl(offsetof(ClientCounters, rtt) == sizeof(ClientSnapshot),
				 "ClientSnapshot must be how ClientCounters begins");

/* An entry of the table, and a row of evicted ones. */
typedef struct ClientGroup
{
	ClientEntry entry;			/* must be first, as its key is in it */
	bool		is_of_failed;	/* made for failed connections */
	ClientSnapshot kept[SNAPSHOTS_KEPT];
} ClientGroup;

/* What each partition has besides, under its lock. */
typedef struct ClientsPartition
{
	SnapshotTimes times;		/* of its groups' snapshots */
	ClientGroup evicted[CLIENTS_EVICTED];	/* as in ClientsShared.databases;
											 * the last one: of any further
											 * ones */
} ClientsPartition;

typedef struct ClientsShared
{
	pg_atomic_uint64 began;		/* monotonic: the server's start, or the
								 * latest reset; no window begins before */
	pg_atomic_uint32 live_groups;	/* entries that have live sessions */
	pg_atomic_uint32 failed_groups; /* entries made for failed connections */
	pg_atomic_uint32 databases[CLIENTS_EVICTED - 1];	/* whose groups were
														 * evicted, in order;
														 * else 0 */
} ClientsShared;

static ClientsShared *shared = NULL;
static Table table;

/* ---------------------------------------------------------------------------
 * Snapshots
 * ---------------------------------------------------------------------------
 */

#define SNAPSHOT_FIELDS		(sizeof(ClientSnapshot) / sizeof(int64))

static void
snapshot_add(ClientSnapshot *sum, const ClientSnapshot *term)
{
	for (size_t i = 0; i < SNAPSHOT_FIELDS; i++)
		((int64 *) sum)[i] += ((const int64 *) term)[i];
}

static void
snapshot_subtract(ClientSnapshot *difference, const ClientSnapshot *term)
{
	for (size_t i = 0; i < SNAPSHOT_FIELDS; i++)
		((int64 *) difference)[i] -= ((const int64 *) term)[i];
}

/* What has just been restored, on top of what was there, is older than all. */
static void
restore_snapshots(ClientGroup *group, const ClientEntry *saved)
{
	for (int i = 0; i < SNAPSHOTS_KEPT; i++)
		snapshot_add(&group->kept[i], (const ClientSnapshot *) &saved->counters);
}

static void
take_snapshot(ClientGroup *group, const SnapshotTimes *times, SnapshotLevels levels)
{
	for (int level = 0; level < SNAPSHOT_LEVELS; level++)
	{
		if (levels & (1u << level))
			memcpy(&group->kept[snapshots_place(times, level)], &group->entry.counters,
				   sizeof(ClientSnapshot));
	}
}

static void
take_snapshot_of_entry(void *entry, void *own, void *levels)
{
	take_snapshot(entry, &((ClientsPartition *) own)->times, *(SnapshotLevels *) levels);
}

/* The last ones of a partition, whose snapshots then are as of now. */
static void
take_snapshots_of_evicted(void *own, void *arg)
{
	ClientsPartition *partition = own;
	SnapshotLevels levels = *(SnapshotLevels *) arg;
	int64		now = clock_now();

	for (int i = 0; i < CLIENTS_EVICTED; i++)
	{
		if (partition->evicted[i].entry.is_evicted)
			take_snapshot(&partition->evicted[i], &partition->times, levels);
	}
	for (int level = 0; level < SNAPSHOT_LEVELS; level++)
	{
		if (levels & (1u << level))
			partition->times.at[snapshots_place(&partition->times, level)] = now;
	}
}

/*
 * Keep a snapshot of all groups, which have just been accumulated into.
 */
void
clients_take_snapshots(SnapshotLevels levels)
{
	static const TableVisitor visitor = {
		.entry = take_snapshot_of_entry,
		.own = take_snapshots_of_evicted,
	};

	table_visit(&table, LW_EXCLUSIVE, &visitor, &levels);
}

/* ---------------------------------------------------------------------------
 * What was evicted
 * ---------------------------------------------------------------------------
 */

/*
 * Where what is evicted of a database goes: into a place of its own, or, as
 * what is of no database (it has been there before, and was saved), into the
 * last one.  Databases keep their places until a reset.
 */
static int
place_of_evicted(Oid datid)
{
	if (!OidIsValid(datid))
		return CLIENTS_EVICTED - 1;
	for (int i = 0; i < CLIENTS_EVICTED - 1; i++)
	{
		uint32		found = 0;

		/* where none was found, it is ours now */
		if (pg_atomic_compare_exchange_u32(&shared->databases[i], &found, datid) ||
			found == datid)
			return i;
	}
	return CLIENTS_EVICTED - 1;
}

static ClientGroup *
evicted_row_for(ClientsPartition *partition, Oid datid)
{
	int			place = place_of_evicted(datid);
	ClientGroup *row = &partition->evicted[place];

	if (!row->entry.is_evicted)
	{
		row->entry.is_evicted = true;
		row->entry.key.datid = place < CLIENTS_EVICTED - 1 ? datid : InvalidOid;
	}
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
add_up_evicted(void *own, const void *evicted)
{
	const ClientGroup *group = evicted;
	ClientGroup *row = evicted_row_for(own, group->entry.key.datid);

	add_entry(&row->entry, &group->entry);
	for (int i = 0; i < SNAPSHOTS_KEPT; i++)
		snapshot_add(&row->kept[i], &group->kept[i]);
	if (group->is_of_failed)
		pg_atomic_fetch_sub_u32(&shared->failed_groups, 1);
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

static const TableSpec spec = {
	.name = "pgnetlat clients",
	.lock = LOCK_CLIENTS,
	.key_size = sizeof(ClientKey),
	.entry_size = sizeof(ClientGroup),
	.usage_offset = offsetof(ClientEntry, usage),
	.since_offset = offsetof(ClientEntry, since),
	.own_size = sizeof(ClientsPartition),
	.may_go = may_be_evicted,
	.evict = add_up_evicted,
};

Size
clients_shmem_size(void)
{
	return add_size(MAXALIGN(sizeof(ClientsShared)),
					table_shmem_size(&spec, pgnetlat_max_clients));
}

static void
begin(void)
{
	pg_atomic_write_u64(&shared->began, clock_now());
	pg_atomic_write_u32(&shared->live_groups, 0);
	pg_atomic_write_u32(&shared->failed_groups, 0);
	for (int i = 0; i < CLIENTS_EVICTED - 1; i++)
		pg_atomic_write_u32(&shared->databases[i], 0);
}

void
clients_shmem_init(void)
{
	bool		found;

	shared = ShmemInitStruct("pgnetlat clients control", sizeof(ClientsShared), &found);
	if (!found)
	{
		pg_atomic_init_u64(&shared->began, 0);
		pg_atomic_init_u32(&shared->live_groups, 0);
		pg_atomic_init_u32(&shared->failed_groups, 0);
		for (int i = 0; i < CLIENTS_EVICTED - 1; i++)
			pg_atomic_init_u32(&shared->databases[i], 0);
		begin();
	}
	table_shmem_init(&table, &spec, pgnetlat_max_clients);
}

void
clients_reset(void)
{
	table_clear(&table);
	begin();
}

void
clients_counts(int64 *entries, int64 *evicted)
{
	*entries = table_entries(&table);
	*evicted = table_evicted(&table);
}

/* The address of a key; none on a Unix-domain socket. */
void
clients_set_address(ClientKey *key, const struct sockaddr_storage *address)
{
	if (address->ss_family == AF_INET)
	{
		key->family = AF_INET;
		memcpy(key->address, &((const struct sockaddr_in *) address)->sin_addr, 4);
	}
	else if (address->ss_family == AF_INET6)
	{
		key->family = AF_INET6;
		memcpy(key->address, &((const struct sockaddr_in6 *) address)->sin6_addr, 16);
	}
}

/* A key of which nothing is known yet but the connection. */
void
clients_set_connection(ClientKey *key, const TcpEndpoints *endpoints)
{
	memset(key, 0, sizeof(*key));
	key->family = endpoints->family;
	if (endpoints->family != 0)
		memcpy(key->address, endpoints->remote_address,
			   endpoints->family == AF_INET ? 4 : 16);
}

/*
 * The application_name of a key that has the address of the connection.  Behind
 * a pooler that says so, the address becomes the client's, and the connection is
 * from "pooler"; both it and what the suffix says ("client") may be NULL.
 */
void
clients_set_name(ClientKey *key, const char *name, ClientPooler *pooler, PoolerClient *client)
{
	PoolerClient found = {0};
	size_t		length = strnlen(name, NAMEDATALEN - 1);

	if (pooler)
		memset(pooler, 0, sizeof(*pooler));
	if (pgnetlat_pooler_suffix)
		length = pooler_suffix_read(name, length, NAMEDATALEN - 1, &found);
	memset(key->application_name, 0, sizeof(key->application_name));
	memcpy(key->application_name, name, length);
	if (client)
		*client = found;
	if (found.poolers == 0)
		return;
	if (pooler)
	{
		pooler->known = 1;
		pooler->family = key->family;
		memcpy(pooler->address, key->address, sizeof(key->address));
	}
	key->family = found.family;
	memcpy(key->address, found.address, sizeof(key->address));
}

static uint32
hash_of(const ClientKey *key)
{
	return hash_bytes((const unsigned char *) key, sizeof(*key));
}

/* ---------------------------------------------------------------------------
 * Sessions and their groups
 * ---------------------------------------------------------------------------
 */

static bool
lock_partition(uint32 hash, bool wait)
{
	if (!wait)
		return table_lock_if_free(&table, hash);
	table_lock(&table, hash);
	return true;
}

/* Is there nothing that could be evicted? */
static bool
all_have_sessions(void)
{
	return pg_atomic_read_u32(&shared->live_groups) >= table_entries(&table);
}

/*
 * The group of a key, its partition locked; NULL if there is no room for it,
 * or, if the caller does not want to wait for the lock, with *locked false.
 */
static ClientGroup *
find_or_make_group(const ClientKey *key, uint32 hash, TimestampTz now, bool wait,
				   bool *locked)
{
	for (int try = 0;; try++)
	{
		ClientGroup *group;

		*locked = lock_partition(hash, wait);
		if (!*locked)
			return NULL;
		group = table_find_or_add(&table, hash, key, now);
		if (group || try == MAX_TRIES || all_have_sessions())
			return group;
		table_unlock(&table, hash);
		if (!table_make_room(&table, wait))
			try = MAX_TRIES - 1;
	}
}

/* Returns false, with nothing changed, if the lock is not free. */
static bool
join(const ClientKey *key, ClientMember *member, TimestampTz now, bool wait)
{
	uint32		hash = hash_of(key);
	bool		locked;
	ClientGroup *group = find_or_make_group(key, hash, now, wait, &locked);

	if (!locked)
		return false;
	member->joined = true;
	member->hash = hash;
	member->in_evicted = group == NULL;
	if (group == NULL)
	{
		group = evicted_row_for(table_own(&table, hash), key->datid);
		if (group->entry.since == 0)
			group->entry.since = now;
	}
	else if (group->entry.live.sessions == 0)
		pg_atomic_fetch_add_u32(&shared->live_groups, 1);
	member->entry = &group->entry;
	member->entry->live.sessions++;
	return true;
}

static ClientEntry *
acquire(const ClientKey *key, ClientMember *member, TimestampTz now, bool wait)
{
	if (likely(member->joined))
	{
		if (!lock_partition(member->hash, wait))
			return NULL;
	}
	else
	{
		if (!join(key, member, now, wait))
			return NULL;
		if (member->in_evicted)
			table_count_evicted(&table, member->hash);
	}
	Assert(member->entry->live.sessions > 0);
	return member->entry;
}

ClientEntry *
clients_acquire(const ClientKey *key, ClientMember *member, TimestampTz now)
{
	return acquire(key, member, now, true);
}

ClientEntry *
clients_acquire_if_free(const ClientKey *key, ClientMember *member, TimestampTz now)
{
	return acquire(key, member, now, false);
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
		pg_atomic_fetch_sub_u32(&shared->live_groups, 1);
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
	(void) join(key, member, now, true);
	if (member->in_evicted && !had_no_room)
		table_count_evicted(&table, member->hash);
	return member->entry;
}

/* ---------------------------------------------------------------------------
 * Failed connections
 * ---------------------------------------------------------------------------
 */

static void
mark_as_of_failed(ClientGroup *group)
{
	group->is_of_failed = true;
	pg_atomic_fetch_add_u32(&shared->failed_groups, 1);
}

/* The group of a key; or that of failed ones, which it may make. */
static ClientGroup *
find_for_failed(const ClientKey *key, uint32 hash, bool may_make, TimestampTz now)
{
	ClientGroup *group = table_find(&table, hash, key);

	if (group == NULL && may_make &&
		pg_atomic_read_u32(&shared->failed_groups) < MAX_FAILED_GROUPS)
	{
		group = table_find_or_add(&table, hash, key, now);
		if (group)
			mark_as_of_failed(group);
	}
	return group;
}

/* Returns false if there is no group for it. */
static bool
count_failed_in_group(const ClientKey *key, bool may_make, TimestampTz now)
{
	uint32		hash = hash_of(key);
	ClientGroup *group;

	table_lock(&table, hash);
	group = find_for_failed(key, hash, may_make, now);
	if (group)
		group->entry.counters.connect.failed++;
	table_unlock(&table, hash);
	return group != NULL;
}

/*
 * A connection has failed, which would have been in the group of this key; what
 * of it does not exist is not set.
 */
void
clients_count_failed(const ClientKey *key, TimestampTz now)
{
	ClientKey	failed = *key;
	uint32		hash;
	ClientGroup *group;

	memset(failed.application_name, 0, sizeof(failed.application_name));
	strlcpy(failed.application_name, FAILED_NAME, sizeof(failed.application_name));
	if (OidIsValid(key->datid) && OidIsValid(key->userid) &&
		(count_failed_in_group(key, false, now) || count_failed_in_group(&failed, true, now)))
		return;

	hash = hash_of(&failed);
	table_lock(&table, hash);
	group = evicted_row_for(table_own(&table, hash), key->datid);
	if (group->entry.since == 0)
		group->entry.since = now;
	group->entry.counters.connect.failed++;
	table_unlock(&table, hash);
}

/*
 * A group is occupied while at least one of its sessions is not idle.  One of
 * them, which is accumulated, was not for "busy" of "length" nanoseconds, which
 * ended at "until".
 *
 * Which of them, nobody knows, but sessions are accumulated every few seconds,
 * and mostly idle or not idle at all meanwhile.  So it counts as the same share
 * of the time for which no other session is known to have occupied the group.
 */
void
clients_occupy(ClientEntry *entry, int64 until, int64 length, int64 busy)
{
	ClientLive *live = &entry->live;
	int64		from = Max(until - length, live->known_before);
	int64		occupied;

	if (length <= 0 || until <= from)
		return;
	if (from > live->known_until)
	{
		live->known_before = live->known_until;
		live->known_from = from;
		live->known_until = from;
		live->unoccupied = 0;
	}
	if (from < live->known_from)
	{
		live->unoccupied += live->known_from - from;
		live->known_from = from;
	}
	if (until > live->known_until)
	{
		live->unoccupied += until - live->known_until;
		live->known_until = until;
	}
	/* what is older is not this session's to occupy */
	live->unoccupied = Min(live->unoccupied, length);
	occupied = (int64) ((double) live->unoccupied * Min(busy, length) / length);
	live->unoccupied -= occupied;
	entry->counters.occupied += occupied;
}

/*
 * Put back a saved entry, of which there are no live sessions.  Where there is
 * no room it goes to the evicted.
 */
void
clients_restore(const ClientEntry *saved)
{
	uint32		hash = hash_of(&saved->key);
	ClientGroup *group = NULL;

	table_lock(&table, hash);
	if (!saved->is_evicted)
		group = table_find_or_add(&table, hash, &saved->key, saved->since);
	if (group)
	{
		group->entry = *saved;
		if (saved->counters.connect.failed > 0 && saved->counters.connect.connections == 0 &&
			strcmp(saved->key.application_name, FAILED_NAME) == 0)
			mark_as_of_failed(group);
	}
	else
	{
		group = evicted_row_for(table_own(&table, hash), saved->key.datid);
		add_entry(&group->entry, saved);
	}
	restore_snapshots(group, saved);
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

typedef struct ClientsReading
{
	bool		windowed;
	int64		length;			/* of the window, ns */
	int64		now;			/* monotonic, and ... */
	TimestampTz timestamp;		/* ... the same moment */
	ClientEntry evicted[CLIENTS_EVICTED];	/* of all partitions */
} ClientsReading;

/*
 * When the window began that contains all since a moment, and which snapshots
 * begin it: where there are none as old as that, the oldest, or none at all,
 * and the window has all since the start.
 */
static int64
window_began(const SnapshotTimes *times, int64 since, int *place)
{
	*place = snapshots_find(times, since);
	if (*place < 0)
		*place = snapshots_oldest(times);
	return Max(times->at[*place], (int64) pg_atomic_read_u64(&shared->began));
}

/* What a group has counted in a window, instead of all it has. */
static void
subtract_snapshot(ClientEntry *copy, const ClientGroup *group,
				  const SnapshotTimes *times, const ClientsReading *reading)
{
	int			place;
	int64		at = window_began(times, reading->now - reading->length, &place);

	copy->since = Max(copy->since, reading->timestamp - (reading->now - at) / NS_PER_US);

	snapshot_subtract((ClientSnapshot *) &copy->counters, &group->kept[place]);
	ledger_totals_fit(&copy->counters.totals);
}

static void
copy_entry(void *copy, const void *entry, const void *own, void *arg)
{
	const ClientsReading *reading = arg;

	memcpy(copy, entry, sizeof(ClientEntry));
	if (reading->windowed)
		subtract_snapshot(copy, entry, &((const ClientsPartition *) own)->times, reading);
}

static void
copy_evicted(const void *own, void *arg)
{
	ClientsReading *reading = arg;
	const ClientsPartition *partition = own;

	for (int i = 0; i < CLIENTS_EVICTED; i++)
	{
		ClientEntry *sum = &reading->evicted[i];
		ClientEntry row;

		if (!partition->evicted[i].entry.is_evicted)
			continue;
		copy_entry(&row, &partition->evicted[i], own, arg);
		sum->is_evicted = true;
		sum->key = row.key;
		sum->usage += row.usage;
		sum->live.sessions += row.live.sessions;
		sum->live.pending += row.live.pending;
		if (row.counters.rtt > 0)
			sum->counters.rtt = row.counters.rtt;
		add_entry(sum, &row);
	}
}

static void
restart(void *arg)
{
	ClientsReading *reading = arg;

	memset(reading->evicted, 0, sizeof(reading->evicted));
	reading->now = clock_now();
	reading->timestamp = GetCurrentTimestamp();
}

static ClientEntry *
copy_entries(ClientsReading *reading, int *count)
{
	static const TableReader reader = {
		.copy_size = sizeof(ClientEntry),
		.copy = copy_entry,
		.own = copy_evicted,
		.restart = restart,
		.extra = CLIENTS_EVICTED,
	};
	ClientEntry *copies = table_copy(&table, &reader, reading, count);

	for (int i = 0; i < CLIENTS_EVICTED; i++)
	{
		if (reading->evicted[i].is_evicted)
			copies[(*count)++] = reading->evicted[i];
	}
	return copies;
}

/* A palloc'd copy of all entries, the ones of evicted groups last. */
ClientEntry *
clients_copy(int *count)
{
	ClientsReading reading = {.windowed = false};

	return copy_entries(&reading, count);
}

/*
 * The same over a window that contains the last "length" nanoseconds, if there
 * is one, or else the longest there is.  It began when "since" of the copies
 * says: if not before that, when the group came.  Histograms are not over the
 * window.
 */
ClientEntry *
clients_copy_window(int64 length, int *count)
{
	ClientsReading reading = {.windowed = true,.length = length};

	return copy_entries(&reading, count);
}

typedef struct WindowBegin
{
	int64		since;			/* what the window must contain */
	int64		began;			/* of all partitions, the latest */
} WindowBegin;

static void
note_window(void *own, void *arg)
{
	WindowBegin *begin = arg;
	int			place;

	begin->began = Max(begin->began,
					   window_began(&((ClientsPartition *) own)->times, begin->since, &place));
}

/*
 * How long is the window over a group that has been there all the time?  In
 * nanoseconds; at least 1.
 */
int64
clients_window_length(int64 length)
{
	static const TableVisitor visitor = {.own = note_window};
	int64		now = clock_now();
	WindowBegin begin = {.since = now - length};

	table_visit(&table, LW_SHARED, &visitor, &begin);
	return Max(now - begin.began, 1);
}
