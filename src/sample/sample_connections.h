/*-------------------------------------------------------------------------
 *
 * sample_connections.h
 *	  Asking the kernel about connections whose backend cannot.
 *
 * A backend that is blocked in sending cannot ask why, and one that waits while its
 * last response is still leaving the kernel does not know that.  The worker asks for
 * them, over socket diagnosis.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_SAMPLE_CONNECTIONS_H
#define PGNETLAT_SAMPLE_CONNECTIONS_H

#include "sample_sessions.h"

extern void sample_connections_begin_tick(const Tick *tick);
extern void sample_connection(int index, const SlotPublished *view, Tick *tick);

#endif							/* PGNETLAT_SAMPLE_CONNECTIONS_H */
