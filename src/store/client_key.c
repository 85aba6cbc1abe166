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

#include "client_key.h"
#include "libpq/libpq-be.h"
#include "miscadmin.h"
#include "utils/backend_status.h"
#include "utils/guc.h"

/*
 * The key of the group of this session, as of now (it may change its
 * application_name), and the pooler that it comes from.
 */
void
client_key_of_session(ClientKey *key, ClientPooler *pooler)
{
	memset(key, 0, sizeof(*key));
	key->datid = MyDatabaseId;
	key->userid = MyBEEntry->st_userid;
	clients_set_address(key, &MyProcPort->raddr.addr);
	clients_set_name(key, application_name ? application_name : "", pooler, NULL);
}
