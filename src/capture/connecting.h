/*-------------------------------------------------------------------------
 *
 * connecting.h
 *	  What it costs to set up this backend's connection, and whether it
 *	  fails.
 *
 * connect_time lasts from the accepted socket until the first ReadyForQuery,
 * where the session's account begins.  Its parts are what came before the
 * start-up packet, on an encrypted connection, and authentication.
 * connect_round_trips is what the client counts: TCP's handshake, those for
 * encryption, granted or not, those of authentication, and a last one from the
 * client's last message to the ReadyForQuery.
 *
 * wire.c passes the server's messages until then.  No request of a session
 * comes here.
 *
 * A connection that ends before the ReadyForQuery has failed.  It is counted
 * only if authentication has begun: before that, the process has no access to
 * shared memory, and does not know whose connection it is.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_CONNECTING_H
#define PGNETLAT_CONNECTING_H

#include "connect_cost.h"

/* True until the session is attached, or is known never to be. */
#pragma GCC visibility push(hidden)
extern bool connecting_in_progress;
#pragma GCC visibility pop

extern void connecting_install(void);
extern void connecting_note_message(char type, const char *body, size_t length);
extern void connecting_done(int64 ready, int64 clock_offset, ConnectTotals *cost);

#endif							/* PGNETLAT_CONNECTING_H */
