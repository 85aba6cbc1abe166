/*-------------------------------------------------------------------------
 *
 * pooler.h
 *	  What a session knows of the connection pooler in front of it.
 *
 * A pooler appends the address of the client it serves to application_name
 * (pooler_suffix.h).  The name and its changes show:
 *
 * - Which exchanges are the pooler's own: those in which the connection
 *	 gets another client, and those between two clients.
 * - Whether a wait outside a transaction belongs to the client.  A
 *	 connection that gets another client without a cleanup (DISCARD ALL) is
 *	 handed on between transactions: then its waits outside a transaction
 *	 belong to the pool.
 * - How far away the client is, if the pooler is on this host.
 *
 * It affects only this session's own account, since any client may choose such
 * a name.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_POOLER_H
#define PGNETLAT_POOLER_H

#include "tcpinfo.h"

extern void pooler_attach(const char *name);
extern bool pooler_is_watched(void);
extern bool pooler_ends_exchange(const char *new_name, bool in_block);
extern bool pooler_has_wait(char xact_status);
extern uint32 pooler_owner(void);
extern int64 pooler_client_rtt(const TcpEndpoints *connection, int64 now, int64 *again);

#endif							/* PGNETLAT_POOLER_H */
