/*-------------------------------------------------------------------------
 *
 * client_key.h
 *	  The keys of client groups.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_CLIENT_KEY_H
#define PGNETLAT_CLIENT_KEY_H

#include "pooler_suffix.h"
#include "tcpinfo.h"

/* Hashed as bytes: no padding (see clients.c), and unused bytes are zero. */
typedef struct ClientKey
{
	Oid			datid;
	Oid			userid;
	int32		family;			/* AF_INET, AF_INET6; 0: Unix-domain socket */
	uint8		address[16];
	char		application_name[NAMEDATALEN];
} ClientKey;

/* The pooler that has opened a connection for a client. */
typedef struct ClientPooler
{
	int32		family;			/* as in ClientKey */
	uint8		address[16];
	int32		known;			/* 1; or all is zero: no pooler */
} ClientPooler;

extern void clients_set_address(ClientKey *key, const struct sockaddr_storage *address);
extern void clients_set_connection(ClientKey *key, const TcpEndpoints *endpoints);
extern void clients_set_name(ClientKey *key, const char *name, ClientPooler *pooler,
							 PoolerClient *client);
extern void client_key_of_session(ClientKey *key, const char *name, ClientPooler *pooler);

#endif							/* PGNETLAT_CLIENT_KEY_H */
