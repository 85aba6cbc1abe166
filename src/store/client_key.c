/*-------------------------------------------------------------------------
 *
 * client_key.c
 *	  Builds the keys of client groups.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include "client_key.h"
#include "libpq/libpq-be.h"
#include "miscadmin.h"
#include "settings.h"
#include "utils/backend_status.h"

/* Set the address of a key; none on a Unix-domain socket. */
void
clients_set_address(ClientKey *key, const struct sockaddr_storage *address)
{
	if (address->ss_family == AF_INET)
	{
		key->family = AF_INET;
		memcpy(key->address, &((const struct sockaddr_in *) address)->sin_addr, 4);
	}
	else if (address->ss_family == AF_INET6)
	{
		key->family = AF_INET6;
		memcpy(key->address, &((const struct sockaddr_in6 *) address)->sin6_addr, 16);
	}
}

/* Make a key from a connection only. */
void
clients_set_connection(ClientKey *key, const TcpEndpoints *endpoints)
{
	memset(key, 0, sizeof(*key));
	key->family = endpoints->family;
	if (endpoints->family != 0)
		memcpy(key->address, endpoints->remote_address,
			   endpoints->family == AF_INET ? 4 : 16);
}

/*
 * Set the application_name of a key that has the connection's address.  If the
 * name has a pooler's suffix, the address becomes the client's, the
 * connection's goes to "pooler", and the suffix to "client"; both may be NULL.
 */
void
clients_set_name(ClientKey *key, const char *name, ClientPooler *pooler, PoolerClient *client)
{
	PoolerClient found = {0};
	size_t		length = strnlen(name, NAMEDATALEN - 1);

	if (pooler)
		memset(pooler, 0, sizeof(*pooler));
	if (pgnetlat_pooler_suffix)
		length = pooler_suffix_read(name, length, NAMEDATALEN - 1, &found);
	memset(key->application_name, 0, sizeof(key->application_name));
	memcpy(key->application_name, name, length);
	if (client)
		*client = found;
	if (found.poolers == 0)
		return;
	if (pooler)
	{
		pooler->known = 1;
		pooler->family = key->family;
		memcpy(pooler->address, key->address, sizeof(key->address));
	}
	key->family = found.family;
	memcpy(key->address, found.address, sizeof(key->address));
}

/*
 * Make the key of the group of this session, which has that name now, and the
 * pooler in front of it.
 */
void
client_key_of_session(ClientKey *key, const char *name, ClientPooler *pooler)
{
	memset(key, 0, sizeof(*key));
	key->datid = MyDatabaseId;
	key->userid = MyBEEntry->st_userid;
	clients_set_address(key, &MyProcPort->raddr.addr);
	clients_set_name(key, name, pooler, NULL);
}
