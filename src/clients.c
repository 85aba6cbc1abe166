/*-------------------------------------------------------------------------
 *
 * clients.c
 *	  See clients.h.
 *
 * One lock protects the table.  When it is full the least used groups without
 * live sessions are removed, and each is accumulated into one for its database, so
 * that a database's sum never falls.  A group that has live sessions stays:
 * it would come back at once, from zero.  Where all groups have some, there is
 * no room for another: its sessions are counted in the row of their database's
 * evicted groups, until there is.
 *
 * Windows begin with snapshots, as those over sessions do (snapshots.h), but
 * all groups' are of the same moments.  A group that was not there then had
 * counted nothing, so it needs no snapshot.  What was evicted since takes its
 * snapshots along to the row that it is added to: there, too, the difference
 * is what was counted in the window.  Snapshots are not saved, and what was
 * saved is older than any window: there is nothing before the server's start.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "bounded.h"
#include "clients.h"
#include "clock.h"
#include "compat.h"
#include "settings.h"
#include "locks.h"
#include "storage/shmem.h"
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
} ClientSnapshot;

StaticAssertDecl(offsetof(ClientCounters, rtt) == sizeof(ClientSnapshot),
				 "ClientSnapshot must be how ClientCounters begins");

typedef struct ClientSnapshots
{
	ClientKey	key;			/* must be first */
	ClientSnapshot kept[SNAPSHOTS_KEPT];
} ClientSnapshots;

/* protected by the clients lock, as the tables are */
typedef struct ClientsShared
{
	SnapshotTimes times;		/* of all snapshots */
	ClientSnapshots evicted_snapshots[CLIENTS_EVICTED];
	ClientEntry evicted_rows[CLIENTS_EVICTED]; /* what was evicted, by database; the
										 * last one: of any further ones */
	int64		evicted;
	int64		live_groups;	/* entries of the table that have live sessions */
} ClientsShared;

static ClientsShared *shared = NULL;
static HTAB *table = NULL;
static HTAB *snapshots = NULL;	/* of groups that had counted something */

Size
clients_shmem_size(void)
{
	Size		size = MAXALIGN(sizeof(ClientsShared));

	size = add_size(size, hash_estimate_size(pgnetlat_max_clients, sizeof(ClientEntry)));
	return add_size(size, hash_estimate_size(pgnetlat_max_clients, sizeof(ClientSnapshots)));
}

/* There is nothing before now: where no snapshot is as old, windows begin here. */
static void
begin_windows(void)
{
	int64		now = clock_now();

	for (int i = 0; i < SNAPSHOTS_KEPT; i++)
		shared->times.at[i] = now;
}

void
clients_shmem_init(void)
{
	bool		found;
	HASHCTL		info;

	shared = ShmemInitStruct("pgnetlat clients", sizeof(ClientsShared), &found);
	if (!found)
	{
		memset(shared, 0, sizeof(*shared));
		begin_windows();
	}

	memset(&info, 0, sizeof(info));
	info.keysize = sizeof(ClientKey);
	info.entrysize = sizeof(ClientEntry);
	table = compat_shmem_hash("pgnetlat clients hash", pgnetlat_max_clients,
							  &info, HASH_ELEM | HASH_BLOBS);
	info.entrysize = sizeof(ClientSnapshots);
	snapshots = compat_shmem_hash("pgnetlat clients snapshots hash", pgnetlat_max_clients,
								  &info, HASH_ELEM | HASH_BLOBS);
}

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

/* The snapshots of a group; NULL if there is none, or no room for any. */
static ClientSnapshots *
snapshots_of(const ClientEntry *entry, bool create)
{
	ClientSnapshots *own;
	bool		found;

	if (entry->is_evicted)
		return &shared->evicted_snapshots[entry - shared->evicted_rows];
	own = hash_search(snapshots, &entry->key, create ? HASH_ENTER_NULL : HASH_FIND, &found);
	if (own && !found)
		memset(own->kept, 0, sizeof(own->kept));
	return own;
}

/* What has just been restored, on top of what was there, is older than all. */
static void
restore_snapshots(const ClientEntry *entry, const ClientEntry *saved)
{
	ClientSnapshots *own = snapshots_of(entry, true);

	for (int i = 0; own && i < SNAPSHOTS_KEPT; i++)
		snapshot_add(&own->kept[i], (const ClientSnapshot *) &saved->counters);
}

/* The group is about to be added to "other". */
static void
evict_snapshots(const ClientEntry *entry, ClientEntry *other)
{
	ClientSnapshots *own = snapshots_of(entry, false);
	ClientSnapshots *sum = snapshots_of(other, true);

	if (own == NULL)
		return;
	for (int i = 0; i < SNAPSHOTS_KEPT; i++)
		snapshot_add(&sum->kept[i], &own->kept[i]);
	hash_search(snapshots, &entry->key, HASH_REMOVE, NULL);
}

static void
take_snapshot(const ClientEntry *entry, SnapshotLevels levels)
{
	ClientSnapshots *own = snapshots_of(entry, true);

	for (int level = 0; own && level < SNAPSHOT_LEVELS; level++)
	{
		if (levels & (1u << level))
			memcpy(&own->kept[snapshots_place(&shared->times, level)], &entry->counters,
				   sizeof(ClientSnapshot));
	}
}

/*
 * Keep a snapshot of all groups, which have just been accumulated into.
 */
void
clients_take_snapshots(SnapshotLevels levels)
{
	HASH_SEQ_STATUS scan;
	ClientEntry *entry;
	int64		now;

	LWLockAcquire(locks_get(LOCK_CLIENTS), LW_EXCLUSIVE);
	hash_seq_init(&scan, table);
	while ((entry = hash_seq_search(&scan)) != NULL)
		take_snapshot(entry, levels);
	for (int i = 0; i < CLIENTS_EVICTED; i++)
	{
		if (shared->evicted_rows[i].is_evicted)
			take_snapshot(&shared->evicted_rows[i], levels);
	}
	now = clock_now();
	for (int level = 0; level < SNAPSHOT_LEVELS; level++)
	{
		if (levels & (1u << level))
			shared->times.at[snapshots_place(&shared->times, level)] = now;
	}
	LWLockRelease(locks_get(LOCK_CLIENTS));
}

/* ---------------------------------------------------------------------------
 * Groups
 * ---------------------------------------------------------------------------
 */

/*
 * Where what is evicted of a database goes: into a place of its own, or, as
 * what is of no database (it has been there before, and was saved), into the
 * last one.
 */
static ClientEntry *
evicted_row_for(Oid datid)
{
	ClientEntry *last = &shared->evicted_rows[CLIENTS_EVICTED - 1];

	for (ClientEntry *other = shared->evicted_rows; OidIsValid(datid) && other < last; other++)
	{
		if (!other->is_evicted)
		{
			other->is_evicted = true;
			other->key.datid = datid;
		}
		if (other->key.datid == datid)
			return other;
	}
	last->is_evicted = true;
	return last;
}

static void
add_to_evicted(ClientEntry *other, const ClientEntry *entry)
{
	ClientCounters *sum = &other->counters;
	const ClientCounters *term = &entry->counters;

	snapshot_add((ClientSnapshot *) sum, (const ClientSnapshot *) term);
	for (int i = 0; i < NUM_METRICS; i++)
		histogram_add(&sum->histogram[i], &term->histogram[i]);
	if (other->since == 0 || entry->since < other->since)
		other->since = entry->since;
}

static void
add_up_evicted(const void *evicted)
{
	const ClientEntry *entry = evicted;
	ClientEntry *other = evicted_row_for(entry->key.datid);

	add_to_evicted(other, entry);
	evict_snapshots(entry, other);
}

static bool
may_be_evicted(const void *entry)
{
	return ((const ClientEntry *) entry)->live.sessions == 0;
}

/* NULL if there is no room. */
static ClientEntry *
find_or_create(const ClientKey *key, TimestampTz now)
{
	ClientEntry *entry = hash_search(table, key, HASH_FIND, NULL);

	if (entry)
		return entry;
	if (hash_get_num_entries(table) >= pgnetlat_max_clients)
	{
		if (shared->live_groups >= hash_get_num_entries(table))
			return NULL;
		shared->evicted += bounded_evict(table, pgnetlat_max_clients,
										 offsetof(ClientEntry, usage),
										 may_be_evicted, add_up_evicted);
	}
	entry = hash_search(table, key, HASH_ENTER_NULL, NULL);
	if (entry == NULL)
		return NULL;
	entry->is_evicted = false;
	entry->usage = 0;
	entry->since = now;
	memset(&entry->live, 0, sizeof(entry->live));
	memset(&entry->counters, 0, sizeof(entry->counters));
	return entry;
}

/* The session becomes one of the group's, if there is room for that. */
static ClientEntry *
join(const ClientKey *key, ClientMember *member, TimestampTz now)
{
	ClientEntry *entry = find_or_create(key, now);

	member->joined = true;
	member->in_evicted = entry == NULL;
	if (entry == NULL)
	{
		entry = evicted_row_for(key->datid);
		if (entry->since == 0)
			entry->since = now;
	}
	else if (entry->live.sessions == 0)
		shared->live_groups++;
	entry->live.sessions++;
	return entry;
}

ClientEntry *
clients_acquire(const ClientKey *key, ClientMember *member, TimestampTz now)
{
	ClientEntry *entry;

	LWLockAcquire(locks_get(LOCK_CLIENTS), LW_EXCLUSIVE);
	if (!member->joined)
	{
		entry = join(key, member, now);
		shared->evicted += member->in_evicted;
	}
	else if (member->in_evicted)
		entry = evicted_row_for(key->datid);
	else
		entry = hash_search(table, key, HASH_FIND, NULL);
	Assert(entry != NULL && entry->live.sessions > 0);
	return entry;
}

/*
 * The session, whose pending time is zero, leaves its group.
 */
void
clients_leave(ClientEntry *entry, ClientMember *member)
{
	Assert(member->joined && member->pending == 0);
	entry->live.sessions--;
	if (!member->in_evicted && entry->live.sessions == 0)
		shared->live_groups--;
	memset(member, 0, sizeof(*member));
}

/*
 * The session leaves a group and joins the one of another key, or of the same
 * if that had no room.  Returns the entry in which it is then.
 */
ClientEntry *
clients_move(ClientEntry *from, const ClientKey *key, ClientMember *member,
			 TimestampTz now)
{
	bool		had_no_room = member->in_evicted;
	ClientEntry *entry;

	clients_leave(from, member);
	entry = join(key, member, now);
	shared->evicted += member->in_evicted && !had_no_room;
	return entry;
}

void
clients_release(void)
{
	LWLockRelease(locks_get(LOCK_CLIENTS));
}

/*
 * Put back a saved entry, of which there are no live sessions.  Where there is
 * no room it goes to the evicted.
 */
void
clients_restore(const ClientEntry *saved)
{
	ClientEntry *entry = NULL;

	LWLockAcquire(locks_get(LOCK_CLIENTS), LW_EXCLUSIVE);
	if (!saved->is_evicted && hash_get_num_entries(table) < pgnetlat_max_clients)
		entry = find_or_create(&saved->key, saved->since);
	if (entry)
	{
		entry->since = saved->since;
		entry->usage = saved->usage;
		entry->counters = saved->counters;
	}
	else
	{
		entry = evicted_row_for(saved->key.datid);
		add_to_evicted(entry, saved);
	}
	restore_snapshots(entry, saved);
	LWLockRelease(locks_get(LOCK_CLIENTS));
}

void
clients_reset(TimestampTz now)
{
	LWLockAcquire(locks_get(LOCK_CLIENTS), LW_EXCLUSIVE);
	bounded_clear(table);
	bounded_clear(snapshots);
	memset(shared, 0, sizeof(*shared));
	begin_windows();
	LWLockRelease(locks_get(LOCK_CLIENTS));
}

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
reset_if_matching(ClientEntry *entry, const ClientPattern *pattern, TimestampTz now)
{
	ClientSnapshots *own;

	if (!matches(entry, pattern))
		return false;
	memset(&entry->counters, 0, sizeof(entry->counters));
	entry->since = now;
	own = snapshots_of(entry, false);
	if (own)
		memset(own->kept, 0, sizeof(own->kept));
	return true;
}

/*
 * Forget what some groups, into which all sessions have just been accumulated, have
 * counted.  Returns how many they were.
 */
int64
clients_reset_matching(const ClientPattern *pattern, TimestampTz now)
{
	HASH_SEQ_STATUS scan;
	ClientEntry *entry;
	int64		count = 0;

	LWLockAcquire(locks_get(LOCK_CLIENTS), LW_EXCLUSIVE);
	hash_seq_init(&scan, table);
	while ((entry = hash_seq_search(&scan)) != NULL)
		count += reset_if_matching(entry, pattern, now);
	for (int i = 0; i < CLIENTS_EVICTED; i++)
	{
		if (shared->evicted_rows[i].is_evicted)
			count += reset_if_matching(&shared->evicted_rows[i], pattern, now);
	}
	LWLockRelease(locks_get(LOCK_CLIENTS));
	return count;
}

void
clients_counts(int64 *entries, int64 *evicted)
{
	LWLockAcquire(locks_get(LOCK_CLIENTS), LW_SHARED);
	*entries = hash_get_num_entries(table);
	*evicted = shared->evicted;
	LWLockRelease(locks_get(LOCK_CLIENTS));
}

/* What a group has counted since a snapshot, instead of all it has. */
static void
subtract_snapshot(ClientEntry *copy, const ClientEntry *entry, int place)
{
	ClientSnapshots *own = snapshots_of(entry, false);

	if (own)
		snapshot_subtract((ClientSnapshot *) &copy->counters, &own->kept[place]);
	/* of what was found late to be the client's, some is of the time before */
	(void) ledger_totals_cut_late(&copy->counters.totals);
}

static void
copy_entry(ClientEntry *copy, const ClientEntry *entry, int place)
{
	*copy = *entry;
	if (place >= 0)
		subtract_snapshot(copy, entry, place);
}

/*
 * The snapshot that begins the shortest window with all of the last "length"
 * nanoseconds, or else the oldest one: nothing was before that.
 */
static int
find_window(int64 length, TimestampTz *began)
{
	int64		now = clock_now();
	int			place = snapshots_find(&shared->times, now - length);

	if (place < 0)
		place = snapshots_oldest(&shared->times);
	*began = GetCurrentTimestamp() - (now - shared->times.at[place]) / NS_PER_US;
	return place;
}

/* As below; only what was counted in a window, if "began" is not NULL. */
static ClientEntry *
copy_entries(int64 length, TimestampTz *began, int *count)
{
	int			place = -1;
	HASH_SEQ_STATUS scan;
	ClientEntry *entry;
	ClientEntry *copies = NULL;
	long		room = 0;

	/* as many as there are, and some that may come until we have the lock */
	LWLockAcquire(locks_get(LOCK_CLIENTS), LW_SHARED);
	for (;;)
	{
		long		needed = hash_get_num_entries(table) + CLIENTS_EVICTED;

		if (copies && needed <= room)
			break;
		LWLockRelease(locks_get(LOCK_CLIENTS));
		if (copies)
			pfree(copies);
		room = needed + CLIENTS_EVICTED;
		copies = palloc_extended((Size) room * sizeof(ClientEntry), MCXT_ALLOC_HUGE);
		LWLockAcquire(locks_get(LOCK_CLIENTS), LW_SHARED);
	}
	*count = 0;
	if (began)
		place = find_window(length, began);
	hash_seq_init(&scan, table);
	while ((entry = hash_seq_search(&scan)) != NULL)
		copy_entry(&copies[(*count)++], entry, place);
	for (int i = 0; i < CLIENTS_EVICTED; i++)
	{
		if (shared->evicted_rows[i].is_evicted)
			copy_entry(&copies[(*count)++], &shared->evicted_rows[i], place);
	}
	LWLockRelease(locks_get(LOCK_CLIENTS));
	return copies;
}

/* A palloc'd copy of all entries, the ones of evicted groups last. */
ClientEntry *
clients_copy(int *count)
{
	return copy_entries(0, NULL, count);
}

/*
 * The same over a window that contains the last "length" nanoseconds, if there
 * is one, or else the longest there is.  "began" is when it did.  Histograms are
 * not over the window.
 */
ClientEntry *
clients_copy_window(int64 length, TimestampTz *began, int *count)
{
	return copy_entries(length, began, count);
}
