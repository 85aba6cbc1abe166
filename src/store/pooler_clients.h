/*-------------------------------------------------------------------------
 *
 * pooler_clients.h
 *	  Knows the round trips between poolers on this host and their clients.
 *
 * If a pooler runs on the server's host, the server's kernel also knows the
 * pooler's connections to its clients.  The suffix that the pooler has
 * appended to application_name (pooler_suffix.h) identifies the client's
 * connection.
 *
 * Any client may choose such a name.  So the kernel is asked only about a
 * connection from exactly that address and port to a port at which the
 * pooler's system user listens, who is the owner of the other end of the
 * server's own connection.  And only sessions of the same role and the same system
 * user see what was measured; where that user is not known, nobody asks.
 *
 * Sessions ask, and the sampler answers one question per tick.  Round trips
 * are kept by the client's address.  A client's connections all take the same
 * path, so the round trip of a new connection, which may not last long enough
 * to be measured, is known from earlier ones; that is why its port is no part of the
 * key, and why the least of them counts.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_POOLER_CLIENTS_H
#define PGNETLAT_POOLER_CLIENTS_H

#include "pooler_suffix.h"
#include "tcpinfo.h"

/* A session's question for its client's round trip. */
typedef struct PoolerQuestion
{
	PoolerClient client;
	Oid			role;			/* of the session */
	uint32		owner;			/* system user at the other end of ... */
	TcpEndpoints connection;	/* ... the connection to the pooler */
} PoolerQuestion;

extern Size pooler_clients_shmem_size(void);
extern void pooler_clients_shmem_attach(void *memory, bool is_new);

/* Functions for any process */
extern int64 pooler_clients_rtt(Oid role, uint32 owner, const PoolerClient *client,
								const TcpEndpoints *connection, int64 now, int64 *measured_at);

/* Functions for the session itself */
extern bool pooler_clients_ask(const PoolerQuestion *question);

/* Functions for the sampler */
extern void pooler_clients_tick(int64 now);

#endif							/* PGNETLAT_POOLER_CLIENTS_H */
