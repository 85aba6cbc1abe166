/*-------------------------------------------------------------------------
 *
 * connecting.h
 *	  This backend's connection while it is being set up: what it costs, and
 *	  what becomes of it if it fails.
 *
 * wire.c shows the messages of authentication and says when the client's
 * answers come; exchange.c says when the session is attached, which is when
 * the first ReadyForQuery has left.  What it has cost (connect_cost.h) is then
 * counted with the session's client group.
 *
 * A connection that ends before that has failed.  It is counted once
 * authentication has begun, for before that the process has no access to
 * shared memory, and nobody knows who it was.
 *
 * Nothing here is on the path of a session's requests.
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
extern bool connecting_has_asked(void);
extern bool connecting_asked(int64 now);
extern void connecting_answered(int64 now);
extern bool connecting_done(int64 now, int64 clock_offset, int64 rtt, ConnectTotals *cost);

#endif							/* PGNETLAT_CONNECTING_H */
