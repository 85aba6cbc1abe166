/*-------------------------------------------------------------------------
 *
 * connect_cost.h
 *	  What it costs to set up connections, as capture/connecting.c measures
 *	  it.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_CONNECT_COST_H
#define PGNETLAT_CONNECT_COST_H

#include <stdint.h>

/* Only sums, as in LedgerTotals: added and subtracted as one array. */
typedef struct ConnectTotals
{
	int64_t		connections;
	int64_t		time;			/* ns; the next two are parts of it */
	int64_t		tls;
	int64_t		auth;
	int64_t		round_trips;
} ConnectTotals;

static inline void
connect_totals_add(ConnectTotals *sum, const ConnectTotals *term)
{
	sum->connections += term->connections;
	sum->time += term->time;
	sum->tls += term->tls;
	sum->auth += term->auth;
	sum->round_trips += term->round_trips;
}

#endif							/* PGNETLAT_CONNECT_COST_H */
