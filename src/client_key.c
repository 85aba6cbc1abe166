/*-------------------------------------------------------------------------
 *
 * client_key.c
 *	  See client_key.h.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <netinet/in.h>

#include "client_key.h"
#include "libpq/libpq-be.h"
#include "miscadmin.h"
#include "utils/backend_status.h"
#include "utils/guc.h"

/*
 * The key of the group of this session, as of now: it may change its
 * application_name.
 */
void
client_key_of_session(ClientKey *key)
{
	const struct sockaddr_storage *address = &MyProcPort->raddr.addr;

	memset(key, 0, sizeof(*key));
	key->datid = MyDatabaseId;
	key->userid = MyBEEntry->st_userid;
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
	if (application_name)
		strlcpy(key->application_name, application_name, sizeof(key->application_name));
}
