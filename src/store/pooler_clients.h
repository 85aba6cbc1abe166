/*-------------------------------------------------------------------------
 *
 * pooler_clients.h
 *	  The round trips between poolers on this host and their clients.
 *
 * Where a pooler runs on the server's own host, the kernel that the server asks
 * about its connections knows the pooler's connections, too: those to its
 * clients.  Which one is meant says the suffix that the pooler has appended to
 * application_name (pooler_suffix.h).
 *
 * A session asks when its client changes, and now and then; the sampler finds
 * out, by socket diagnosis, at its next tick.  What is found is kept in a small
 * table in shared memory, by pooler and by the client's address: a client's
 * connections all take the same path, so one that is new, and may be gone before
 * anybody could have looked at it, is known by those before it.
 *
 * Which connection is meant is only what the suffix says, and anybody can say
 * that.  So the connection must belong to the user of the operating system that
 * the pooler runs as: to whom the other end of the server's own connection
 * belongs.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_POOLER_CLIENTS_H
#define PGNETLAT_POOLER_CLIENTS_H

#include "pooler_suffix.h"
#include "tcpinfo.h"

/* A client of whom somebody wants to know the round trip. */
typedef struct PoolerQuestion
{
	PoolerClient client;
	TcpEndpoints connection;	/* to the pooler; of TCP, or */
	uint32		owner;			/* the user at the other end of a Unix-domain
								 * socket, ... */
	bool		owner_known;	/* ... if known */
} PoolerQuestion;

extern Size pooler_clients_shmem_size(void);
extern void pooler_clients_shmem_init(void);

extern int64 pooler_clients_rtt(const PoolerClient *client, const TcpEndpoints *connection,
								int64 now);
extern int64 pooler_clients_ask(const PoolerQuestion *question, int64 interval, int64 now);

/* For the sampler */
extern void pooler_clients_tick(int64 now);

#endif							/* PGNETLAT_POOLER_CLIENTS_H */
