/*-------------------------------------------------------------------------
 *
 * walsender_wire.h
 *	  From what a walsender sends to the events of its account.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_WALSENDER_WIRE_H
#define PGNETLAT_WALSENDER_WIRE_H

#include "libpq/libpq.h"

extern void walsender_wire_install(PQcommMethods *methods, const PQcommMethods *next);

#endif							/* PGNETLAT_WALSENDER_WIRE_H */
