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
#include "table.h"
#include "utils/timestamp.h"

#define MAX_FAILED_CONNECTIONS	128

StaticAssertDecl(sizeof(FailedKey) == offsetof(FailedKey, address) + 16,
				 "FailedKey must not have padding: it is hashed as bytes");

#define SLICE_LENGTH	(10 * USECS_PER_SEC)

static void
add_entry(void *to, const void *from)
{
	FailedConnections *sum = to;
	const FailedConnections *term = from;

	sum->count += term->count;
	if (term->latest >= sum->latest)
	{
		sum->latest = term->latest;
		sum->sqlstate = term->sqlstate;
	}
	if (sum->since == 0 || term->since < sum->since)
		sum->since = term->since;
}

static const TableSpec spec = {
	.lock = LOCK_FAILED_CONNECTIONS,
	.key_size = sizeof(FailedKey),
	.entry_size = sizeof(FailedConnections),
	.usage_offset = offsetof(FailedConnections, usage),
	.since_offset = offsetof(FailedConnections, since),
	.evicted_rows = 1,
	.add = add_entry,
};

static Table table;

Size
failed_connections_shmem_size(void)
{
	return table_shmem_size(&spec, MAX_FAILED_CONNECTIONS);
}

void
failed_connections_shmem_attach(void *memory, bool is_new)
{
	table_shmem_attach(&table, &spec, MAX_FAILED_CONNECTIONS, memory, is_new);
}

/* Empty the slices that began after the latest failure. */
static void
begin_slices(FailedConnections *entry, TimestampTz now)
{
	int64		current = now / SLICE_LENGTH;
	int64		first = Max(entry->latest / SLICE_LENGTH + 1, current - FAILED_SLICES + 1);

	for (int64 slice = first; slice <= current; slice++)
		entry->recent[slice % FAILED_SLICES] = 0;
}

/*
 * Count a failed connection.  Called by a process that is about to exit: no
 * errors, no catalog access.
 */
void
failed_connections_count(const char *database, const char *role, const ClientKey *address,
						 int sqlstate)
{
	TimestampTz now = GetCurrentTimestamp();
	FailedConnections *entry;
	FailedKey	key;
	uint32		hash;

	memset(&key, 0, sizeof(key));
	strlcpy(key.database, database ? database : "", NAMEDATALEN);
	strlcpy(key.role, role ? role : "", NAMEDATALEN);
	key.family = address->family;
	memcpy(key.address, address->address, sizeof(key.address));
	hash = table_hash(&table, &key);

	table_lock(&table, hash);
	entry = table_enter(&table, hash, &key, now);
	entry->count++;
	entry->usage++;
	begin_slices(entry, now);
	entry->recent[now / SLICE_LENGTH % FAILED_SLICES]++;
	entry->latest = now;
	entry->sqlstate = sqlstate;
	table_unlock(&table, hash);
}

/*
 * A palloc'd copy of all entries.   The evicted row, if there is one, is the
 * last.
 */
FailedConnections *
failed_connections_copy(int *count)
{
	return table_copy(&table, 0, count);
}

/*
 * The number of failures in the minute before "now", right to ten seconds.
 * "entry" is a copy.
 */
int64
failed_connections_of_last_minute(FailedConnections *entry, TimestampTz now)
{
	int64		sum = 0;

	begin_slices(entry, now);
	for (int slice = 0; slice < FAILED_SLICES; slice++)
		sum += entry->recent[slice];
	return sum;
}
