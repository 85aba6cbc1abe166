/*-------------------------------------------------------------------------
 *
 * clients.c
 *	  See clients.h.
 *
 * One lock protects the table.  When it is full the least used groups without
 * live sessions are removed, and each is folded into one for its database, so
 * that a database's sum never falls.  A group that has live sessions stays:
 * it would come back at once, from zero.  Where all groups have some, there is
 * no room for another: its sessions are counted in the row of their database's
 * evicted groups, until there is.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "bounded.h"
#include "clients.h"
#include "compat.h"
#include "guc.h"
#include "locks.h"
#include "storage/shmem.h"

StaticAssertDecl(sizeof(ClientKey) == 2 * sizeof(Oid) + sizeof(int32) + 16 + NAMEDATALEN,
				 "ClientKey must not have padding: it is hashed as bytes");

/* Databases that have a row of their own for what was evicted, and one more. */
#define CLIENTS_OTHERS		16

/* protected by the clients lock, as the table is */
typedef struct ClientsShared
{
	ClientEntry others[CLIENTS_OTHERS]; /* what was evicted, by database; the
										 * last one: of any further ones */
	int64		evicted;
	int64		live_groups;	/* entries of the table that have live sessions */
} ClientsShared;

static ClientsShared *shared = NULL;
static HTAB *table = NULL;

Size
clients_shmem_size(void)
{
	return add_size(MAXALIGN(sizeof(ClientsShared)),
					hash_estimate_size(pgnetlat_max_clients, sizeof(ClientEntry)));
}

void
clients_shmem_init(void)
{
	bool		found;
	HASHCTL		info;

	shared = ShmemInitStruct("pgnetlat clients", sizeof(ClientsShared), &found);
	if (!found)
		memset(shared, 0, sizeof(*shared));

	memset(&info, 0, sizeof(info));
	info.keysize = sizeof(ClientKey);
	info.entrysize = sizeof(ClientEntry);
	table = compat_shmem_hash("pgnetlat clients hash", pgnetlat_max_clients,
							  &info, HASH_ELEM | HASH_BLOBS);
}

/*
 * Where what is evicted of a database goes: into a place of its own, or, as
 * what is of no database (it has been there before, and was saved), into the
 * last one.
 */
static ClientEntry *
other_for(Oid datid)
{
	ClientEntry *last = &shared->others[CLIENTS_OTHERS - 1];

	for (ClientEntry *other = shared->others; OidIsValid(datid) && other < last; other++)
	{
		if (!other->is_other)
		{
			other->is_other = true;
			other->key.datid = datid;
		}
		if (other->key.datid == datid)
			return other;
	}
	last->is_other = true;
	return last;
}

static void
fold_into_other(const void *evicted)
{
	const ClientEntry *entry = evicted;
	ClientEntry *other = other_for(entry->key.datid);
	ClientCounters *sum = &other->counters;
	const ClientCounters *term = &entry->counters;

	ledger_totals_add(&sum->totals, &term->totals);
	sum->tcp.retransmits += term->tcp.retransmits;
	sum->tcp.bytes_received += term->tcp.bytes_received;
	sum->tcp.packets_sent += term->tcp.packets_sent;
	sum->tcp.packets_received += term->tcp.packets_received;
	sum->ended_sessions += term->ended_sessions;
	for (int i = 0; i < NUM_METRICS; i++)
		histogram_add(&sum->histogram[i], &term->histogram[i]);
	if (other->since == 0 || entry->since < other->since)
		other->since = entry->since;
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
										 may_be_evicted, fold_into_other);
	}
	entry = hash_search(table, key, HASH_ENTER_NULL, NULL);
	if (entry == NULL)
		return NULL;
	entry->is_other = false;
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
	member->in_other = entry == NULL;
	if (entry == NULL)
	{
		entry = other_for(key->datid);
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
		shared->evicted += member->in_other;
	}
	else if (member->in_other)
		entry = other_for(key->datid);
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
	if (!member->in_other && entry->live.sessions == 0)
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
	bool		had_no_room = member->in_other;
	ClientEntry *entry;

	clients_leave(from, member);
	entry = join(key, member, now);
	shared->evicted += member->in_other && !had_no_room;
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
	if (!saved->is_other && hash_get_num_entries(table) < pgnetlat_max_clients)
		entry = find_or_create(&saved->key, saved->since);
	if (entry)
	{
		entry->since = saved->since;
		entry->usage = saved->usage;
		entry->counters = saved->counters;
	}
	else
		fold_into_other(saved);
	LWLockRelease(locks_get(LOCK_CLIENTS));
}

void
clients_reset(TimestampTz now)
{
	LWLockAcquire(locks_get(LOCK_CLIENTS), LW_EXCLUSIVE);
	bounded_clear(table);
	memset(shared, 0, sizeof(*shared));
	LWLockRelease(locks_get(LOCK_CLIENTS));
}

void
clients_counts(int64 *entries, int64 *evicted)
{
	LWLockAcquire(locks_get(LOCK_CLIENTS), LW_SHARED);
	*entries = hash_get_num_entries(table);
	*evicted = shared->evicted;
	LWLockRelease(locks_get(LOCK_CLIENTS));
}

/* A palloc'd copy of all entries, the ones of evicted groups last. */
ClientEntry *
clients_copy(int *count)
{
	HASH_SEQ_STATUS scan;
	ClientEntry *entry;
	ClientEntry *copies = NULL;
	long		room = 0;

	/* as many as there are, and some that may come until we have the lock */
	LWLockAcquire(locks_get(LOCK_CLIENTS), LW_SHARED);
	for (;;)
	{
		long		needed = hash_get_num_entries(table) + CLIENTS_OTHERS;

		if (needed <= room)
			break;
		LWLockRelease(locks_get(LOCK_CLIENTS));
		if (copies)
			pfree(copies);
		room = needed + CLIENTS_OTHERS;
		copies = palloc_extended((Size) room * sizeof(ClientEntry), MCXT_ALLOC_HUGE);
		LWLockAcquire(locks_get(LOCK_CLIENTS), LW_SHARED);
	}
	*count = 0;
	hash_seq_init(&scan, table);
	while ((entry = hash_seq_search(&scan)) != NULL)
		copies[(*count)++] = *entry;
	for (int i = 0; i < CLIENTS_OTHERS; i++)
	{
		if (shared->others[i].is_other)
			copies[(*count)++] = shared->others[i];
	}
	LWLockRelease(locks_get(LOCK_CLIENTS));
	return copies;
}
