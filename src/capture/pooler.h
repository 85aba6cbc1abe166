/*-------------------------------------------------------------------------
 *
 * pooler.h
 *	  What this session knows of the connection pooler that it comes from.
 *
 * A pooler says by application_name for whom it uses the connection
 * (pooler_suffix.h).  From that, and from when it changes, follow:
 *
 * - Which exchanges are the pooler's own: those in which the connection gets
 *	 another client, and what it runs between two of them.
 * - Whose a wait outside a transaction is.  A connection that gets another
 *	 client without having been cleaned up (DISCARD ALL) is handed on between
 *	 two transactions: while it waits outside of one it belongs to nobody.
 * - How far away the client is, if the pooler is on this host.
 *
 * All of it is about this session's own account only, for anybody may choose
 * such names.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_POOLER_H
#define PGNETLAT_POOLER_H

#include "tcpinfo.h"

extern void pooler_attach(void);
extern bool pooler_is_watched(void);
extern bool pooler_ends_exchange(bool renamed, bool in_block);
extern bool pooler_has_wait(char xact_status);
extern int64 pooler_client_rtt(const TcpEndpoints *connection, int64 now, int64 *again);

#endif							/* PGNETLAT_POOLER_H */
