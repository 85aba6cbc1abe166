/*-------------------------------------------------------------------------
 *
 * pooler_clients.h
 *	  The round trips between poolers on this host and their clients.
 *
 * Where a pooler runs on the server's own host, the kernel that the server asks
 * about its connections knows the pooler's connections, too: those to its
 * clients.  The suffix that the pooler has appended to application_name
 * (pooler_suffix.h) says which one is meant.
 *
 * Anybody may choose such a name.  So the kernel is asked only about a connection
 * from exactly that address and port, to a port at which the pooler's system user
 * listens: the one who owns the other end of the server's own connection.  And what
 * was measured is known only to sessions of the same role.
 *
 * Sessions ask, and the sampler answers one question at each tick.  Round trips are
 * kept by the client's address: a client's connections all take the same path, so
 * one that is new, and may be gone before anybody could have looked at it, is known
 * by those before it.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_POOLER_CLIENTS_H
#define PGNETLAT_POOLER_CLIENTS_H

#include "pooler_suffix.h"
#include "tcpinfo.h"

/* The client of a session that wants to know its round trip. */
typedef struct PoolerQuestion
{
	PoolerClient client;
	Oid			role;			/* of the session */
	TcpEndpoints connection;	/* to the pooler; of TCP, or */
	uint32		owner;			/* the system user at the other end of a
								 * Unix-domain socket, ... */
	bool		owner_known;	/* ... if known */
} PoolerQuestion;

extern Size pooler_clients_shmem_size(void);
extern void pooler_clients_shmem_init(void);

/* For everybody */
extern int64 pooler_clients_rtt(Oid role, const PoolerClient *client,
								const TcpEndpoints *connection, int64 now, int64 *measured_at);

/* For the session itself */
extern bool pooler_clients_ask(const PoolerQuestion *question);

/* For the sampler */
extern void pooler_clients_tick(int64 now);

#endif							/* PGNETLAT_POOLER_CLIENTS_H */
