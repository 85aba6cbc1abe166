/*-------------------------------------------------------------------------
 *
 * failed_connections.h
 *	  Counts failed connections, by the requested names of database and role
 *	  and by the client's address.
 *
 * The names are those of the start-up packet.  They are not looked up when the
 * connection fails: that needs the catalogs, which may be locked, in a process
 * that is about to exit.  A reader of the counts can resolve them.
 *
 * A client that cannot log in can make up any number of names, so there are
 * few entries, and the application_name is not part of the key.  Nothing is
 * saved.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_FAILED_CONNECTIONS_H
#define PGNETLAT_FAILED_CONNECTIONS_H

#include "client_key.h"
#include "datatype/timestamp.h"

typedef struct FailedKey
{
	char		database[NAMEDATALEN];
	char		role[NAMEDATALEN];	/* empty: evicted row */
	int32		family;			/* as in ClientKey */
	uint8		address[16];
} FailedKey;

/* The last minute, in slices of ten seconds. */
#define FAILED_SLICES	6

/* An entry of a table (table.h). */
typedef struct FailedConnections
{
	FailedKey	key;
	double		usage;			/* aging count, for eviction */
	int64		count;
	TimestampTz since;
	TimestampTz latest;
	int			sqlstate;		/* of the latest error; 0: the client
								 * disconnected */
	int32		recent[FAILED_SLICES];	/* counts, as of latest; none in the
										 * evicted row */
} FailedConnections;

extern Size failed_connections_shmem_size(void);
extern void failed_connections_shmem_attach(void *memory, bool is_new);

extern void failed_connections_count(const char *database, const char *role,
									 const ClientKey *address, int sqlstate);
extern int64 failed_connections_of_last_minute(FailedConnections *entry, TimestampTz now);
extern FailedConnections *failed_connections_copy(int *count);

#endif							/* PGNETLAT_FAILED_CONNECTIONS_H */
