/*-------------------------------------------------------------------------
 *
 * connect_cost.c
 *	  See connect_cost.h.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "connect_cost.h"

static int64_t
lesser(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* What lies between two moments, the latest of which so far is moved on. */
static int64_t
step(int64_t *latest, int64_t moment, int64_t end)
{
	int64_t		length;

	moment = lesser(moment, end);
	if (moment <= *latest)
		return 0;
	length = moment - *latest;
	*latest = moment;
	return length;
}

/*
 * How a wait of so many round trips splits.  Its length, and for how long of it the
 * process was ready to run, are differences of clocks that do not agree.
 */
static void
split_wait(int64_t wait, int64_t queued, int trips, int64_t rtt, ConnectTotals *cost)
{
	int64_t		network = lesser(wait, trips * rtt);
	int64_t		client = wait - network - (queued > 0 ? queued : 0);

	if (wait <= 0)
		return;
	cost->network += network;
	if (client >= CONNECT_SHORTEST_WAIT_NS)
		cost->client += client;
}

/*
 * What one connection has cost.
 */
void
connect_cost(const ConnectEvents *events, ConnectTotals *cost)
{
	int64_t		latest = events->accepted;
	int64_t		end = events->ready > latest ? events->ready : latest;
	int64_t		encryption;

	*cost = (ConnectTotals)
	{
		.connections = 1,.time = end - latest
	};
	cost->start = step(&latest, events->started, end);
	encryption = step(&latest, events->negotiated, end);
	if (events->encrypted)
		cost->tls = encryption;
	else
		cost->start += encryption;
	cost->start += step(&latest, events->auth_began, end);
	cost->auth = step(&latest, events->auth_ended, end);

	cost->round_trips = (events->is_tcp ? 1 : 0) + events->trips + events->auth_trips + 1;
	split_wait(lesser(events->blocked, cost->time), events->run_queue, events->trips,
			   events->rtt, cost);
	split_wait(lesser(events->auth_wait, cost->time - cost->network - cost->client),
			   events->auth_run_queue, events->auth_trips, events->rtt, cost);
}

void
connect_totals_add(ConnectTotals *sum, const ConnectTotals *term)
{
	for (size_t i = 0; i < sizeof(*sum) / sizeof(int64_t); i++)
		((int64_t *) sum)[i] += ((const int64_t *) term)[i];
}
