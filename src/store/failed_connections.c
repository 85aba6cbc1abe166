/*-------------------------------------------------------------------------
 *
 * failed_connections.c
 *	  Counts connections that failed.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "failed_connections.h"
#include "locks.h"
#include "storage/shmem.h"
#include "utils/timestamp.h"

typedef struct FailedShared
{
	/* protected by LOCK_FAILED_CONNECTIONS; the last entry is the overflow */
	int			used;
	FailedConnections entries[FAILED_CONNECTIONS_ENTRIES + 1];
} FailedShared;

static FailedShared *shared = NULL;

Size
failed_connections_shmem_size(void)
{
	return sizeof(FailedShared);
}

void
failed_connections_shmem_init(void)
{
	bool		found;

	shared = ShmemInitStruct("pgnetlat failed connections", sizeof(FailedShared), &found);
	if (!found)
		memset(shared, 0, sizeof(FailedShared));
}

static FailedConnections *
find_or_add(const FailedConnections *wanted)
{
	FailedConnections *entry;

	for (int i = 0; i < shared->used; i++)
	{
		entry = &shared->entries[i];
		if (strcmp(entry->database, wanted->database) == 0 &&
			strcmp(entry->role, wanted->role) == 0 &&
			entry->family == wanted->family &&
			memcmp(entry->address, wanted->address, sizeof(entry->address)) == 0)
			return entry;
	}
	if (shared->used == FAILED_CONNECTIONS_ENTRIES)
		return &shared->entries[FAILED_CONNECTIONS_ENTRIES];
	entry = &shared->entries[shared->used++];
	*entry = *wanted;
	return entry;
}

/*
 * Count a failed connection from this address.  Called by a process that is
 * about to exit: no errors, no catalog access.
 */
void
failed_connections_count(const char *database, const char *role, const ClientKey *address)
{
	FailedConnections failed;
	FailedConnections *entry;

	memset(&failed, 0, sizeof(failed));
	strlcpy(failed.database, database ? database : "", NAMEDATALEN);
	strlcpy(failed.role, role ? role : "", NAMEDATALEN);
	failed.family = address->family;
	memcpy(failed.address, address->address, sizeof(failed.address));

	locks_acquire(LOCK_FAILED_CONNECTIONS, 0, LW_EXCLUSIVE);
	entry = find_or_add(&failed);
	entry->count++;
	entry->latest = GetCurrentTimestamp();
	if (entry->since == 0)
		entry->since = entry->latest;
	locks_release(LOCK_FAILED_CONNECTIONS, 0);
}

/* A palloc'd copy of all entries. */
FailedConnections *
failed_connections_copy(int *count)
{
	FailedConnections *copy = palloc(sizeof(shared->entries));

	locks_acquire(LOCK_FAILED_CONNECTIONS, 0, LW_SHARED);
	*count = shared->used;
	memcpy(copy, shared->entries, shared->used * sizeof(FailedConnections));
	if (shared->entries[FAILED_CONNECTIONS_ENTRIES].count > 0)
		copy[(*count)++] = shared->entries[FAILED_CONNECTIONS_ENTRIES];
	locks_release(LOCK_FAILED_CONNECTIONS, 0);
	return copy;
}

void
failed_connections_reset(void)
{
	locks_acquire(LOCK_FAILED_CONNECTIONS, 0, LW_EXCLUSIVE);
	memset(shared, 0, sizeof(FailedShared));
	locks_release(LOCK_FAILED_CONNECTIONS, 0);
}
