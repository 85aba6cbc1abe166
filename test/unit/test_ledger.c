/* Sources: exec_split.c ledger.c */
/*
 * test_ledger.c: the accounts of known sequences of events, and the properties
 * of ledger_model.h over random sequences.
 */
#include "ledger.h"

#include "check.h"
#include "ledger_model.h"

#define MS	INT64_C(1000000)

static const LedgerWaitTerms local = {.idle_threshold = 1000 * MS};
static const LedgerWaitTerms remote = {.rtt = 10 * MS,.idle_threshold = 1000 * MS};
static const LedgerWaitTerms in_xact = {.rtt = 10 * MS,.idle_threshold = 1000 * MS,.in_xact = true};

static LedgerWait split;		/* how the latest wait was split */

static LedgerAccount
project(const Ledger *ledger, int64_t now)
{
	LedgerAccount account;

	ledger_project(ledger, NULL, now, LEDGER_NOT_BLOCKED, &account);
	return account;
}

/* One exchange from a wait that began at 0: read, worked, sent, done. */
static void
exchange(Ledger *ledger, int64_t read, int64_t worked, int64_t sent,
		 const LedgerWaitTerms *next)
{
	ledger_wait_end(ledger, read, true, NULL, &split);
	ledger_send_begin(ledger, worked, true);
	ledger_exchange_end(ledger, sent, NULL, 0, next);
}

static void
test_exchange(void)
{
	Ledger		ledger = {0};
	LedgerAccount account;

	ledger_start(&ledger, 0, false, &remote);
	exchange(&ledger, 30 * MS, 50 * MS, 51 * MS, &remote);
	account = project(&ledger, 51 * MS);
	CHECK_EQUAL(account.totals.exec, 20 * MS, "exec");
	CHECK_EQUAL(account.totals.send, 1 * MS, "send");
	CHECK_EQUAL(account.totals.network, 10 * MS, "network is one round trip");
	CHECK_EQUAL(account.totals.client, 20 * MS, "client is the rest of the wait");
	CHECK_EQUAL(account.totals.requests, 1, "requests");
	CHECK_EQUAL(account.pending, 0, "pending");
	CHECK_EQUAL(ledger_total(&account), 51 * MS, "total");
}

static void
test_wait_shorter_than_round_trip(void)
{
	Ledger		ledger = {0};

	ledger_start(&ledger, 0, false, &remote);
	exchange(&ledger, 4 * MS, 5 * MS, 5 * MS, &remote);
	CHECK_EQUAL(ledger.totals.network, 4 * MS, "network is at most the wait");
	CHECK_EQUAL(ledger.totals.client, 0, "client");
}

static void
test_idle(void)
{
	Ledger		ledger = {0};
	LedgerAccount account;

	ledger_start(&ledger, 0, false, &remote);
	account = project(&ledger, 1000 * MS);
	CHECK_EQUAL(account.pending, 1000 * MS, "a wait up to the threshold is pending");
	CHECK_EQUAL(account.state, LEDGER_STATE_WAITING, "state");
	account = project(&ledger, 1000 * MS + 1);
	CHECK_EQUAL(account.totals.idle, 1000 * MS + 1, "a longer one is idle from its beginning");
	CHECK_EQUAL(account.pending, 0, "pending");
	CHECK_EQUAL(account.state, LEDGER_STATE_IDLE, "state");
	exchange(&ledger, 1500 * MS, 1500 * MS, 1500 * MS, &remote);
	CHECK_EQUAL(ledger.totals.idle, 1500 * MS, "idle");
	CHECK_EQUAL(ledger.totals.network + ledger.totals.client, 0, "nothing else");
}

static void
test_wait_in_transaction(void)
{
	Ledger		ledger = {0};
	LedgerAccount account;

	ledger_start(&ledger, 0, false, &in_xact);
	account = project(&ledger, 13 * 60 * 1000 * MS);
	CHECK_EQUAL(account.totals.idle, 0, "a wait in a transaction is never idle");
	CHECK_EQUAL(account.totals.network, 10 * MS, "network");
	CHECK_EQUAL(account.totals.client, 13 * 60 * 1000 * MS - 10 * MS, "client, while it lasts");
	CHECK_EQUAL(account.totals.in_xact_wait, 13 * 60 * 1000 * MS, "in_xact_wait");
	CHECK_EQUAL(account.state, LEDGER_STATE_WAITING_IN_XACT, "state");
}

static void
test_copy_in(void)
{
	Ledger		ledger = {0};
	LedgerSampled seen = {.recv = 30 * MS,.visited = 90 * MS};
	LedgerAccount account;

	ledger_start(&ledger, 0, false, &local);
	ledger_wait_end(&ledger, 10 * MS, true, NULL, &split);
	ledger_project(&ledger, &seen, 95 * MS, LEDGER_BLOCKED_READING, &account);
	CHECK_EQUAL(account.totals.recv, 35 * MS, "recv is what the sampler saw, and since its visit");
	CHECK_EQUAL(account.totals.exec, 50 * MS, "exec is the rest up to that");
	CHECK_EQUAL(account.pending, 0, "pending");
	CHECK_EQUAL(account.state, LEDGER_STATE_RECEIVING, "state");

	ledger_send_begin(&ledger, 100 * MS, true);
	ledger_exchange_end(&ledger, 100 * MS, &seen, 0, &local);
	CHECK_EQUAL(ledger.totals.recv, 30 * MS, "recv");
	CHECK_EQUAL(ledger.totals.exec, 60 * MS, "exec");
}

static void
test_drain(void)
{
	LedgerWaitTerms terms = remote;
	LedgerDrain drain = {.total = 300 * MS,.client = 100 * MS};
	Ledger		ledger = {0};
	LedgerAccount account;

	terms.draining = true;
	ledger_start(&ledger, 0, false, &terms);
	account = project(&ledger, 5000 * MS);
	CHECK_EQUAL(account.pending, 5000 * MS, "while the response drains nothing is decided");
	ledger_wait_end(&ledger, 400 * MS, true, &drain, &split);
	CHECK_EQUAL(ledger.totals.network, 200 * MS, "the drain is network, ...");
	CHECK_EQUAL(ledger.totals.client, 200 * MS, "... but for the closed window; then the client");

	/* long after the drain: the drain is network, and the rest idle */
	memset(&ledger, 0, sizeof(ledger));
	ledger_start(&ledger, 0, false, &terms);
	ledger_wait_end(&ledger, 5000 * MS, true, &drain, &split);
	CHECK_EQUAL(ledger.totals.network, 200 * MS, "network");
	CHECK_EQUAL(ledger.totals.client, 100 * MS, "client");
	CHECK_EQUAL(ledger.totals.idle, 4700 * MS, "idle");

	/* a drain longer than the threshold is not idle */
	memset(&ledger, 0, sizeof(ledger));
	ledger_start(&ledger, 0, false, &terms);
	drain.total = 3000 * MS;
	ledger_wait_end(&ledger, 3100 * MS, true, &drain, &split);
	CHECK_EQUAL(ledger.totals.idle, 0, "idle");
	CHECK_EQUAL(ledger.totals.network, 2900 * MS, "network");
}

static void
test_blocked_send(void)
{
	Ledger		ledger = {0};
	LedgerSampled seen = {.send_began = 1 * MS,.send_client = 700 * MS};
	LedgerAccount account;

	ledger_start(&ledger, 0, false, &local);
	ledger_wait_end(&ledger, 0, true, NULL, &split);
	ledger_send_begin(&ledger, 1 * MS, true);
	account = project(&ledger, 1 * MS + MS / 2);
	CHECK_EQUAL(account.totals.send, MS / 2, "a system call, or is it stuck?");
	CHECK_EQUAL(account.totals.send_blocked, 0, "not yet");
	CHECK_EQUAL(account.state, LEDGER_STATE_SENDING, "state");
	account = project(&ledger, 2001 * MS);
	CHECK_EQUAL(account.totals.send, 2000 * MS, "send, while it is stuck");
	CHECK_EQUAL(account.totals.send_blocked, 2000 * MS, "blocked, from the beginning");
	CHECK_EQUAL(account.pending, 0, "nothing is pending");
	CHECK_EQUAL(account.state, LEDGER_STATE_SENDING, "state");
	ledger_project(&ledger, &seen, 2001 * MS, LEDGER_NOT_BLOCKED, &account);
	CHECK_EQUAL(account.totals.send_client, 700 * MS, "what the sampler knows is shown");
	ledger_send_end(&ledger, 2001 * MS, &seen, 500 * MS);
	CHECK_EQUAL(ledger.totals.send_client, 700 * MS, "and stays");
	ledger_send_begin(&ledger, 2001 * MS, true);
	ledger_send_end(&ledger, 3001 * MS, NULL, 1500 * MS);
	CHECK_EQUAL(ledger.totals.send_client, 1700 * MS, "it is at most the sending");
}

/*
 * Gains: what has stepped back is not subtracted from a sum, and adds to it
 * again only beyond its earlier value.
 */
static void
test_gain(void)
{
	LedgerTotals added = {.exec = 100,.network = 20,.exec_part = {60, 30}};
	LedgerTotals account = {.exec = 90,.network = 30,.send = 5,.send_blocked = 9,.exec_part = {70, 20}};
	LedgerTotals gain;

	ledger_totals_gain(&added, &account, &gain);
	CHECK_EQUAL(gain.exec, 0, "it has stepped back");
	CHECK_EQUAL(gain.network, 10, "it has grown");
	CHECK_EQUAL(gain.exec_part[EXEC_CPU], 0, "what was added as unsampled stays so");
	CHECK_EQUAL(gain.send_blocked, 5, "a part is not more than its whole");
	account.exec = 120;
	ledger_totals_gain(&added, &account, &gain);
	CHECK_EQUAL(gain.exec, 20, "beyond where it was");
	CHECK_EQUAL(gain.exec_part[EXEC_CPU], 10, "and the part catches up");
	CHECK_EQUAL(added.exec_part[EXEC_IO], 30, "none has fallen");
}

static void
test_unexpectedly_blocked(void)
{
	Ledger		ledger = {0};
	LedgerSampled seen = {.visited = 20 * MS};
	LedgerAccount account;

	/*
	 * since the sampler's latest visit, as far as is known before it is over
	 */
	ledger_start(&ledger, 0, false, &remote);
	ledger_wait_end(&ledger, 0, true, NULL, &split);
	ledger_project(&ledger, &seen, 50 * MS, LEDGER_BLOCKED_WRITING, &account);
	CHECK_EQUAL(account.state, LEDGER_STATE_SENDING, "state");
	CHECK_EQUAL(account.totals.exec, 20 * MS, "exec");
	CHECK_EQUAL(account.totals.send, 30 * MS, "the rest is sending");
	ledger_response_plain(&ledger, 25 * MS, 60 * MS, &remote);
	CHECK_EQUAL(ledger.totals.exec, 25 * MS, "exec");
	CHECK_EQUAL(ledger.totals.send, 35 * MS, "send");
	CHECK_EQUAL(ledger.totals.send_blocked, 0, "and it is the server's");
}

static void
test_whose_time(void)
{
	Ledger		ledger = {0};

	/* a system call is the server's, a blocked one is not */
	ledger_start(&ledger, 0, false, &remote);
	exchange(&ledger, 10 * MS, 20 * MS, 20 * MS + 30000, &remote);
	CHECK_EQUAL(ledger.totals.send_blocked, 0, "30 us are a system call");
	CHECK_EQUAL(ledger_server_part(&ledger.totals), 10 * MS + 30000, "server");
	exchange(&ledger, 30 * MS + 30000, 30 * MS + 30000, 50 * MS + 30000, &remote);
	CHECK_EQUAL(ledger.totals.send_blocked, 20 * MS, "20 ms are not");
	CHECK_EQUAL(ledger_network_part(&ledger.totals), 40 * MS, "network");
	CHECK_EQUAL(ledger_client_part(&ledger.totals), 0, "client");

	/* unless there was so little to send that it cannot have been blocked */
	ledger_wait_end(&ledger, 60 * MS, true, NULL, &split);
	ledger_send_begin(&ledger, 60 * MS, false);
	ledger_exchange_end(&ledger, 70 * MS, NULL, 0, &remote);
	CHECK_EQUAL(ledger.totals.send_blocked, 20 * MS, "a process that got no processor");

	/* without a network only the client can block */
	memset(&ledger, 0, sizeof(ledger));
	ledger_start(&ledger, 0, true, &local);
	exchange(&ledger, 0, 0, 20 * MS, &local);
	CHECK_EQUAL(ledger_client_part(&ledger.totals), 20 * MS, "client");
	CHECK_EQUAL(ledger_network_part(&ledger.totals), 0, "network");
}

static void
test_pipelined(void)
{
	LedgerWaitTerms queued = remote;
	Ledger		ledger = {0};

	queued.pipelined = true;
	ledger_start(&ledger, 0, false, &remote);
	exchange(&ledger, 10 * MS, 11 * MS, 11 * MS, &queued);
	exchange(&ledger, 11 * MS, 12 * MS, 12 * MS, &remote);
	exchange(&ledger, 30 * MS, 31 * MS, 31 * MS, &remote);
	CHECK_EQUAL(ledger.totals.requests, 3, "requests");
	CHECK_EQUAL(ledger.totals.pipelined, 1, "the one whose request was there already");
}

static void
test_events_out_of_order(void)
{
	Ledger		ledger = {0};
	LedgerAccount account;

	ledger_start(&ledger, 100 * MS, false, &local);
	exchange(&ledger, 50 * MS, 40 * MS, 130 * MS, &local);
	account = project(&ledger, 120 * MS);
	CHECK_EQUAL(ledger_total(&account), 30 * MS, "total");
	CHECK(account.totals.exec >= 0 && account.totals.send >= 0, "nothing is negative");
}

static void
test_reset(void)
{
	Ledger		ledger = {0};
	LedgerAccount account;

	/* in the middle of a wait: the time after the reset counts */
	ledger_start(&ledger, 0, false, &in_xact);
	ledger_reset(&ledger, 5 * MS);
	account = project(&ledger, 30 * MS);
	CHECK_EQUAL(ledger_total(&account), 25 * MS, "total since the reset");
	CHECK_EQUAL(account.totals.network, 5 * MS, "the rest of the round trip");
	CHECK_EQUAL(account.totals.client, 20 * MS, "client");

	/* a long wait is idle even if little of it counts */
	memset(&ledger, 0, sizeof(ledger));
	ledger_start(&ledger, 0, false, &local);
	ledger_reset(&ledger, 5000 * MS);
	exchange(&ledger, 5100 * MS, 5101 * MS, 5101 * MS, &local);
	CHECK_EQUAL(ledger.totals.idle, 100 * MS, "idle");

	/* a reset while the session begins */
	memset(&ledger, 0, sizeof(ledger));
	ledger_reset(&ledger, 20 * MS);
	ledger_start(&ledger, 10 * MS, true, &local);
	CHECK(ledger_wait_is_plain(&ledger, 25 * MS), "the first wait begins with it");
	(void) ledger_wait_end_plain(&ledger, 25 * MS);
	CHECK_EQUAL(ledger.totals.client, 5 * MS, "nothing before it counts");
}

static void
test_no_request(void)
{
	Ledger		ledger = {0};

	ledger_start(&ledger, 0, false, &local);
	ledger_wait_end(&ledger, 10 * MS, false, NULL, &split);
	ledger_stop(&ledger, 12 * MS, NULL, NULL, &split);
	CHECK_EQUAL(ledger.totals.requests, 0, "a FATAL error is no request");
	CHECK_EQUAL(ledger.totals.exec, 2 * MS, "exec");
	CHECK_EQUAL(ledger.totals.client, 10 * MS, "client");
}

static void
test_stop_in_exchange(void)
{
	Ledger		ledger = {0};
	LedgerAccount account;

	ledger_start(&ledger, 0, false, &local);
	ledger_wait_end(&ledger, 1 * MS, true, NULL, &split);
	ledger_send_begin(&ledger, 3 * MS, true);
	ledger_stop(&ledger, 7 * MS, NULL, NULL, &split);
	account = project(&ledger, 1000 * MS);
	CHECK_EQUAL(ledger_total(&account), 7 * MS, "nothing counts after the end");
	CHECK_EQUAL(account.totals.requests, 1, "a session that ends in an exchange had a request");
	CHECK_EQUAL(account.state, LEDGER_STATE_DISABLED, "state");
}

static void
test_flush_in_the_middle(void)
{
	Ledger		ledger = {0};

	ledger_start(&ledger, 0, false, &local);
	exchange(&ledger, 0, 1 * MS, 1 * MS, &in_xact);
	ledger_was_work(&ledger);
	ledger_send_begin(&ledger, 9 * MS, true);
	ledger_exchange_end(&ledger, 9 * MS, NULL, 0, &local);
	CHECK_EQUAL(ledger.totals.exec, 9 * MS, "what looked like a wait was execution");
	CHECK_EQUAL(ledger.totals.requests, 1, "of one request");
}

static void
test_turn(void)
{
	Ledger		ledger = {0};
	LedgerSampled seen = {.recv = 5 * MS,.visited = 65 * MS};
	LedgerAccount account;

	/*
	 * COPY FROM STDIN: the client is asked at 12 ms, its first data comes at
	 * 52
	 */
	ledger_start(&ledger, 0, false, &local);
	ledger_wait_end(&ledger, 10 * MS, true, NULL, &split);
	ledger_turn_begin(&ledger, 12 * MS, 10 * MS);
	account = project(&ledger, 15 * MS);
	CHECK_EQUAL(account.state, LEDGER_STATE_RECEIVING, "state");
	CHECK_EQUAL(account.totals.network, 3 * MS, "network, while it lasts");
	account = project(&ledger, 42 * MS);
	CHECK_EQUAL(account.totals.network, 10 * MS, "network is one round trip");
	CHECK_EQUAL(account.totals.recv, 20 * MS, "recv is the rest");
	CHECK_EQUAL(account.pending, 0, "pending");
	ledger_turn_end(&ledger, 52 * MS, true);
	ledger_send_begin(&ledger, 70 * MS, true);
	ledger_exchange_end(&ledger, 70 * MS, &seen, 0, &local);
	CHECK_EQUAL(ledger.totals.exec, 15 * MS, "exec");
	CHECK_EQUAL(ledger.totals.network, 10 * MS, "network");
	CHECK_EQUAL(ledger.totals.recv, 35 * MS, "recv, with what was sampled later");
	CHECK_EQUAL(ledger_round_trips(&ledger.totals), 2, "of two round trips");

	/* a client that does not wait to be asked */
	ledger_wait_end(&ledger, 72 * MS, true, NULL, &split);
	ledger_turn_begin(&ledger, 72 * MS, 10 * MS);
	ledger_turn_end(&ledger, 73 * MS, false);
	ledger_send_begin(&ledger, 74 * MS, true);
	ledger_exchange_end(&ledger, 74 * MS, NULL, 0, &local);
	CHECK_EQUAL(ledger_round_trips(&ledger.totals), 3, "one round trip more");

	/* a reset in its middle, and the end of the session */
	ledger_wait_end(&ledger, 80 * MS, true, NULL, &split);
	ledger_turn_begin(&ledger, 80 * MS, 10 * MS);
	ledger_reset(&ledger, 85 * MS);
	ledger_stop(&ledger, 100 * MS, NULL, NULL, &split);
	CHECK_EQUAL(ledger.totals.network, 5 * MS, "the rest of the round trip");
	CHECK_EQUAL(ledger.totals.recv, 10 * MS, "recv");
	CHECK_EQUAL(ledger_busy_total(&ledger.totals), 15 * MS, "total since the reset");
}

static void
test_last_wait(void)
{
	Ledger		ledger = {0};
	LedgerDrain drain = {.total = 4 * MS};

	/* nobody waited for the round trip of a request that never came */
	ledger_start(&ledger, 0, false, &remote);
	ledger_stop(&ledger, 30 * MS, NULL, NULL, &split);
	CHECK_EQUAL(ledger.totals.network, 0, "network");
	CHECK_EQUAL(ledger.totals.idle, 10 * MS, "idle");
	CHECK_EQUAL(ledger.totals.client, 20 * MS, "client");

	/* but the client waited for the response */
	memset(&ledger, 0, sizeof(ledger));
	ledger_start(&ledger, 0, false, &remote);
	ledger_stop(&ledger, 30 * MS, NULL, &drain, &split);
	CHECK_EQUAL(ledger.totals.network, 4 * MS, "network");
	CHECK_EQUAL(ledger.totals.idle, 6 * MS, "idle");

	/* in a transaction nothing is idle */
	memset(&ledger, 0, sizeof(ledger));
	ledger_start(&ledger, 0, false, &in_xact);
	ledger_stop(&ledger, 30 * MS, NULL, NULL, &split);
	CHECK_EQUAL(ledger.totals.client, 30 * MS, "client");
}

/* splitmix64: small, and the same everywhere */
static uint64_t random_state;

static int
random_byte(void *source)
{
	uint64_t	z = (random_state += UINT64_C(0x9E3779B97F4A7C15));
	int		   *left = source;

	if ((*left)-- <= 0)
		return -1;
	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return (z ^ (z >> 31)) & 255;
}

static void
test_properties(void)
{
	for (uint64_t seed = 1; seed <= 20000; seed++)
	{
		int			left = 600;
		const char *broken;

		random_state = seed;
		broken = model_run(random_byte, &left);
		CHECK(broken == NULL, "seed %llu, %d bytes left: %s",
			  (unsigned long long) seed, left, broken);
		if (broken)
			break;
	}
}

int
main(void)
{
	test_exchange();
	test_wait_shorter_than_round_trip();
	test_idle();
	test_wait_in_transaction();
	test_copy_in();
	test_drain();
	test_blocked_send();
	test_gain();
	test_unexpectedly_blocked();
	test_whose_time();
	test_pipelined();
	test_events_out_of_order();
	test_reset();
	test_no_request();
	test_stop_in_exchange();
	test_flush_in_the_middle();
	test_turn();
	test_last_wait();
	test_properties();
	return CHECKS_DONE("ledger");
}
