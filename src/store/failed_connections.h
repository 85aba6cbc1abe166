/*-------------------------------------------------------------------------
 *
 * failed_connections.h
 *	  Who tried to connect in vain: by the names of database and role that were
 *	  asked for, and the address that it came from.
 *
 * The names are those of the start-up packet.  Nobody looks them up when the
 * connection fails: that needs the catalogs, which may be locked, in a process
 * that is about to end.  Whoever reads the counts can resolve them.
 *
 * There is a fixed number of entries, and one more for all that find none: who
 * cannot log in can make up as many names as he likes.  The application_name
 * is not among them for that reason.  Nothing is evicted or saved.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_FAILED_CONNECTIONS_H
#define PGNETLAT_FAILED_CONNECTIONS_H

#include "clients.h"
#include "datatype/timestamp.h"

typedef struct FailedConnections
{
	char		database[NAMEDATALEN];
	char		role[NAMEDATALEN];	/* both empty: all that found no place */
	int32		family;			/* as in ClientKey */
	uint8		address[16];
	int64		count;
	TimestampTz since;
	TimestampTz latest;
} FailedConnections;

#define FAILED_CONNECTIONS_ENTRIES	128

extern Size failed_connections_shmem_size(void);
extern void failed_connections_shmem_init(void);

extern void failed_connections_count(const char *database, const char *role,
									 const ClientKey *address);
extern FailedConnections *failed_connections_copy(int *count);
extern void failed_connections_reset(void);

#endif							/* PGNETLAT_FAILED_CONNECTIONS_H */
