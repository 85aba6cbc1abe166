/* Sources: connect_cost.c */
/*
 * test_connect_cost.c: the parts of what a connection costs add up, in both
 * ways, whatever is said of it.
 */
#include "connect_cost.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"

#define MS	INT64_C(1000000)

static void
test_trust(void)
{
	ConnectEvents events = {
		.accepted = 1000 * MS,.started = 1001 * MS,.negotiated = 1002 * MS,
		.auth_began = 1003 * MS,.auth_ended = 1004 * MS,.ready = 1007 * MS,
		.is_tcp = true,.rtt = 10 * MS
	};
	ConnectTotals cost;

	connect_cost(&events, &cost);
	CHECK_EQUAL(cost.connections, 1, "connections");
	CHECK_EQUAL(cost.time, 7 * MS, "time");
	CHECK_EQUAL(cost.start, 3 * MS, "start, with the start-up packet");
	CHECK_EQUAL(cost.tls, 0, "nothing was encrypted");
	CHECK_EQUAL(cost.auth, 1 * MS, "authentication");
	CHECK_EQUAL(connect_other_part(&cost), 3 * MS, "the rest");
	CHECK_EQUAL(cost.round_trips, 2, "TCP's and the last one");
	CHECK_EQUAL(cost.network, 0, "neither of them lies in its time");
	CHECK_EQUAL(connect_server_part(&cost), 7 * MS, "all of it was the server");

	events.is_tcp = false;
	connect_cost(&events, &cost);
	CHECK_EQUAL(cost.round_trips, 1, "a Unix-domain socket has no handshake");
}

/* TLS 1.3 and SCRAM at 10 ms; the client thinks for 3 ms in each. */
static void
test_encrypted(void)
{
	ConnectEvents events = {
		.accepted = 0,.started = 1 * MS,.negotiated = 26 * MS,.auth_began = 27 * MS,
		.auth_ended = 51 * MS,.ready = 53 * MS,
		.is_tcp = true,.encrypted = true,.rtt = 10 * MS,
		.trips = 2,.blocked = 24 * MS,.run_queue = 1 * MS,
		.auth_trips = 2,.auth_wait = 23 * MS
	};
	ConnectTotals cost;

	connect_cost(&events, &cost);
	CHECK_EQUAL(cost.time, 53 * MS, "time");
	CHECK_EQUAL(cost.start, 2 * MS, "start, around the handshake");
	CHECK_EQUAL(cost.tls, 25 * MS, "encryption");
	CHECK_EQUAL(cost.auth, 24 * MS, "authentication");
	CHECK_EQUAL(connect_other_part(&cost), 2 * MS, "the rest");
	CHECK_EQUAL(cost.round_trips, 6, "round trips");
	CHECK_EQUAL(cost.network, 40 * MS, "four of them");
	CHECK_EQUAL(cost.client, 6 * MS, "without the wait for a processor");
	CHECK_EQUAL(connect_server_part(&cost), 7 * MS, "what is left");

	/* what is in the noise was not the client */
	events.blocked = 20 * MS + CONNECT_SHORTEST_WAIT_NS + events.run_queue - 1;
	events.auth_wait = 20 * MS;
	connect_cost(&events, &cost);
	CHECK_EQUAL(cost.client, 0, "shorter than a client's wait");
	/* what the server was late to read is its own */
	events.auth_wait = 25 * MS;
	events.auth_run_queue = 3 * MS;
	connect_cost(&events, &cost);
	CHECK_EQUAL(cost.client, 2 * MS, "without the wait for a processor, here too");
	events.auth_run_queue = 0;
	/* no round trip fits into a wait that is shorter */
	events.auth_wait = 15 * MS;
	connect_cost(&events, &cost);
	CHECK_EQUAL(cost.network, 35 * MS, "never more than the wait");
}

/* Clocks may step, and processes' clocks disagree. */
static void
test_anything(void)
{
	srandom(1);
	for (int i = 0; i < 200000; i++)
	{
		int64_t		value[11];
		ConnectEvents events;
		ConnectTotals cost;

		for (int j = 0; j < 11; j++)
			value[j] = random() % 20 - 3;
		events = (ConnectEvents)
		{
			.accepted = value[0] * MS,.started = value[1] * MS,.negotiated = value[2] * MS,
				.auth_began = value[3] * MS,.auth_ended = value[4] * MS,.ready = value[5] * MS,
				.is_tcp = value[0] & 1,.encrypted = value[1] & 1,.rtt = value[6] > 0 ? value[6] * MS : 0,
				.trips = i % 5,.blocked = value[7] * MS,.run_queue = value[8] * MS,
				.auth_trips = i % 3,.auth_wait = value[9] * MS,.auth_run_queue = value[10] * MS
		};
		connect_cost(&events, &cost);
		if (cost.time < 0 || cost.start < 0 || cost.tls < 0 || cost.auth < 0 ||
			cost.network < 0 || cost.client < 0 || connect_other_part(&cost) < 0 ||
			connect_server_part(&cost) < 0)
		{
			CHECK(false, "a negative part in connection %d", i);
			return;
		}
	}
	CHECK(true, "no part is negative");
}

static void
test_add(void)
{
	ConnectTotals sum = {.connections = 1,.failed = 2,.time = 3,.round_trips = 4};
	ConnectTotals term = {.connections = 10,.failed = 20,.time = 30,.round_trips = 40};

	connect_totals_add(&sum, &term);
	CHECK_EQUAL(sum.connections, 11, "the first one");
	CHECK_EQUAL(sum.failed, 22, "failed ones");
	CHECK_EQUAL(sum.time, 33, "time");
	CHECK_EQUAL(sum.round_trips, 44, "the last one");
}

int
main(void)
{
	test_trust();
	test_encrypted();
	test_anything();
	test_add();
	return CHECKS_DONE("connect_cost");
}
