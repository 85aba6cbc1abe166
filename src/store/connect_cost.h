/*-------------------------------------------------------------------------
 *
 * connect_cost.h
 *	  What setting up a connection costs.
 *
 * A connection is set up from the moment at which the server has accepted its
 * socket until the first ReadyForQuery has been handed over.  That time has
 * parts by what was going on, which add up to it:
 *
 *		start	fork, the start of the process, the start-up packet
 *		tls		on an encrypted connection, until the start-up packet has come.
 *				Where the TLS library does not tell when that was, until the
 *				process is about to look at the catalogs, some tenths of a
 *				millisecond later
 *		auth	authentication
 *		other	the rest: catalogs, caches, settings, the first ReadyForQuery
 *
 * and others, which add up to it as well, by who was waited for: the network,
 * for so many round trips; the client; and the server, for all the rest.
 *
 * A client counts two round trips that do not lie in this time: TCP's own
 * handshake, which is over when the socket is accepted, and the one of its
 * last message and the ReadyForQuery.  They are in round_trips all the same,
 * but not in network.
 *
 * Plain C, no server headers.  All times are nanoseconds of one monotonic
 * clock.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_CONNECT_COST_H
#define PGNETLAT_CONNECT_COST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Sums only, as in LedgerTotals: added up and subtracted as one array. */
typedef struct ConnectTotals
{
	int64_t		connections;
	int64_t		failed;			/* not among them, and without a time */
	int64_t		time;
	int64_t		start;			/* of time, as tls and auth */
	int64_t		tls;
	int64_t		auth;
	int64_t		network;		/* of time, as client */
	int64_t		client;
	int64_t		round_trips;
} ConnectTotals;

/* What is known of one connection when it has been set up. */
typedef struct ConnectEvents
{
	/* moments, in this order; any that seems to be out of it is moved */
	int64_t		accepted;
	int64_t		started;		/* the process */
	int64_t		negotiated;		/* the start-up packet was there */
	int64_t		auth_began;
	int64_t		auth_ended;
	int64_t		ready;

	bool		is_tcp;
	bool		encrypted;
	int64_t		rtt;			/* 0: none, or not known */

	/* from started until the server's first message */
	int			trips;			/* round trips: for encryption, granted or not */
	int64_t		blocked;		/* not on a processor ... */
	int64_t		run_queue;		/* ... for want of one: part of blocked */

	/* in authentication */
	int			auth_trips;		/* how often the client was asked for
								 * something */
	int64_t		auth_wait;		/* for its answers; there may be in it ... */
	int64_t		auth_run_queue; /* ... what the server was late to read them */
} ConnectEvents;

/*
 * What is shorter than this was not spent waiting for a client: the processes'
 * clocks do not agree to the microsecond.
 */
#define CONNECT_SHORTEST_WAIT_NS	INT64_C(100000)

extern void connect_cost(const ConnectEvents *events, ConnectTotals *cost);
extern void connect_totals_add(ConnectTotals *sum, const ConnectTotals *term);

static inline int64_t
connect_other_part(const ConnectTotals *totals)
{
	return totals->time - totals->start - totals->tls - totals->auth;
}

static inline int64_t
connect_server_part(const ConnectTotals *totals)
{
	return totals->time - totals->network - totals->client;
}

#endif							/* PGNETLAT_CONNECT_COST_H */
