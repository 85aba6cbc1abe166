/*-------------------------------------------------------------------------
 *
 * connecting.h
 *	  This backend's connection while it is being set up: what that costs, and
 *	  whether it fails.
 *
 * connect_time goes from the accepted socket until the server tells its client
 * that it is ready, the first ReadyForQuery, where the session's account begins.
 * Parts of it are what came before the start-up packet, on an encrypted connection,
 * and authentication.  connect_round_trips is what the client counts: TCP's own
 * handshake, those for encryption, granted or not, those of authentication, and
 * the last one, of its last message and the ReadyForQuery.
 *
 * wire.c shows the server's messages until then.  Nothing here is on the path of
 * a session's requests.
 *
 * A connection that ends before that has failed.  It is counted once
 * authentication has begun, for before that the process has no access to
 * shared memory, and nobody knows who it was.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_CONNECTING_H
#define PGNETLAT_CONNECTING_H

#include "connect_cost.h"

/* Until the session is attached, or it is clear that it never will be. */
#pragma GCC visibility push(hidden)
extern bool connecting_in_progress;
#pragma GCC visibility pop

extern void connecting_install(void);
extern void connecting_note_message(char type, const char *body, size_t length);
extern void connecting_done(int64 ready, int64 clock_offset, ConnectTotals *cost);

#endif							/* PGNETLAT_CONNECTING_H */
