/*-------------------------------------------------------------------------
 *
 * paths.h
 *	  Round trips of connections, compared with those of others.
 *
 * The kernel's minimum for a connection can only be as short as the shortest
 * time between a response and the client's next packet.  Of a client that
 * thinks, and acknowledges with its next request, that is thinking plus the
 * path: if the path becomes shorter, its minimum does not.  When the
 * connection was set up, nobody thought: the kernel's first measurement is of
 * the path alone.
 *
 * So connections from the same address that were as long when they were set
 * up are taken to have the same path, and none of them is longer today than
 * most of them are.  A few that became shorter say nothing about the others:
 * behind one address (NAT) there may be clients at different distances, and
 * one that is near may have seemed far when it connected.
 *
 * A minimum that has become greater is right: the kernel lets that happen only
 * for acknowledgements that no client has delayed.
 *
 * Plain C, no server headers.  Times are nanoseconds.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_PATHS_H
#define PGNETLAT_PATHS_H

#include <stdint.h>

typedef struct Path
{
	int			family;			/* of the client's address */
	uint8_t		address[16];
	int64_t		first;			/* the kernel's minimum when it was set up */
	int64_t		least;			/* and today */
	int64_t		rtt;			/* set by paths_compare() */
	int			index;			/* the caller's */
	uint64_t	session;
} Path;

extern void paths_compare(Path *paths, int count);

#endif							/* PGNETLAT_PATHS_H */
