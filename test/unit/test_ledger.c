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
	CHECK_EQUAL(account.totals.exec, 20 * MS, "exec of an exchange");
	CHECK_EQUAL(account.totals.send, 1 * MS, "send of an exchange");
	CHECK_EQUAL(account.totals.network, 10 * MS, "network of an exchange");
	CHECK_EQUAL(account.totals.client, 20 * MS, "client of an exchange");
	CHECK_EQUAL(account.totals.requests, 1, "requests of an exchange");
	CHECK_EQUAL(account.pending, 0, "pending after an exchange");
	CHECK_EQUAL(ledger_total(&account), 51 * MS, "total after an exchange");
}

static void
test_wait_shorter_than_round_trip(void)
{
	Ledger		ledger = {0};

	ledger_start(&ledger, 0, false, &remote);
	exchange(&ledger, 4 * MS, 5 * MS, 5 * MS, &remote);
	CHECK_EQUAL(ledger.totals.network, 4 * MS, "network of a short wait");
	CHECK_EQUAL(ledger.totals.client, 0, "client of a short wait");
}

static void
test_idle(void)
{
	Ledger		ledger = {0};
	LedgerAccount account;

	ledger_start(&ledger, 0, false, &remote);
	account = project(&ledger, 1000 * MS);
	CHECK_EQUAL(account.pending, 1000 * MS, "pending of a wait at the threshold");
	CHECK_EQUAL(account.state, LEDGER_STATE_WAITING, "the state at the threshold");
	account = project(&ledger, 1000 * MS + 1);
	CHECK_EQUAL(account.totals.idle, 1000 * MS + 1, "idle of a wait beyond the threshold");
	CHECK_EQUAL(account.pending, 0, "pending of a wait beyond the threshold");
	CHECK_EQUAL(account.state, LEDGER_STATE_IDLE, "the state beyond the threshold");
	exchange(&ledger, 1500 * MS, 1500 * MS, 1500 * MS, &remote);
	CHECK_EQUAL(ledger.totals.idle, 1500 * MS, "idle after the wait");
	CHECK_EQUAL(ledger.totals.network + ledger.totals.client, 0,
				"network and client after an idle wait");
}

static void
test_wait_in_transaction(void)
{
	Ledger		ledger = {0};
	LedgerAccount account;

	ledger_start(&ledger, 0, false, &in_xact);
	account = project(&ledger, 13 * 60 * 1000 * MS);
	CHECK_EQUAL(account.totals.idle, 0, "idle of a wait in a transaction");
	CHECK_EQUAL(account.totals.network, 10 * MS, "network of a wait in a transaction");
	CHECK_EQUAL(account.totals.client, 13 * 60 * 1000 * MS - 10 * MS,
				"client of a wait in a transaction");
	CHECK_EQUAL(account.totals.in_xact_wait, 13 * 60 * 1000 * MS,
				"in_xact_wait of a wait in a transaction");
	CHECK_EQUAL(account.state, LEDGER_STATE_WAITING_IN_XACT, "the state in a transaction");
}

static void
test_run_queue(void)
{
	Ledger		ledger = {0};

	/* waking from idle time does not count, execution does */
	ledger_start(&ledger, 0, false, &local);
	ledger_wait_end(&ledger, 5000 * MS, true, NULL, &split);
	ledger_run_queue(&ledger, 8 * MS, 1, 4);
	CHECK_EQUAL(ledger.totals.run_queue, 6 * MS, "run_queue after idle time");
	CHECK_EQUAL(ledger.totals.run_queue_wait, 0, "run_queue_wait after idle time");

	/* a wait that is the client's has room for what came after it */
	exchange(&ledger, 5000 * MS, 5001 * MS, 5002 * MS, &local);
	ledger_wait_end(&ledger, 5005 * MS, true, NULL, &split);
	ledger_run_queue(&ledger, 4 * MS, 1, 1);
	CHECK_EQUAL(ledger.totals.run_queue, 9 * MS, "run_queue after a wait");
	CHECK_EQUAL(ledger.totals.run_queue_wait, 3 * MS, "run_queue_wait after a wait");

	/* one of four runs came after the wait, which has room for its share */
	exchange(&ledger, 5005 * MS, 5006 * MS, 5007 * MS, &local);
	ledger_wait_end(&ledger, 5107 * MS, true, NULL, &split);
	ledger_run_queue(&ledger, 8 * MS, 1, 4);
	CHECK_EQUAL(ledger.totals.run_queue, 17 * MS, "run_queue after a wait and other runs");
	CHECK_EQUAL(ledger.totals.run_queue_wait, 5 * MS,
				"run_queue_wait after a wait and other runs");

	/* two of four */
	ledger_run_queue(&ledger, 8 * MS, 2, 4);
	CHECK_EQUAL(ledger.totals.run_queue, 25 * MS, "run_queue after two waits and other runs");
	CHECK_EQUAL(ledger.totals.run_queue_wait, 9 * MS,
				"run_queue_wait after two waits and other runs");
	CHECK_EQUAL(ledger_server_part(&ledger.totals), 2 * MS + 9 * MS,
				"the server's part: execution and time in the run queue");
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
	CHECK_EQUAL(account.totals.recv, 35 * MS,
				"recv in progress, sampled and since the sampler's visit");
	CHECK_EQUAL(account.totals.exec, 50 * MS, "exec with recv in progress");
	CHECK_EQUAL(account.pending, 0, "pending with recv in progress");
	CHECK_EQUAL(account.state, LEDGER_STATE_RECEIVING, "the state while receiving");

	ledger_send_begin(&ledger, 100 * MS, true);
	ledger_exchange_end(&ledger, 100 * MS, &seen, 0, &local);
	CHECK_EQUAL(ledger.totals.recv, 30 * MS, "recv after the exchange");
	CHECK_EQUAL(ledger.totals.exec, 60 * MS, "exec after the exchange");
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
	CHECK_EQUAL(account.pending, 5000 * MS, "pending while the response drains");
	ledger_wait_end(&ledger, 400 * MS, true, &drain, &split);
	CHECK_EQUAL(ledger.totals.network, 200 * MS, "network of a wait with a drain");
	CHECK_EQUAL(ledger.totals.client, 200 * MS, "client of a wait with a drain");

	/* long after the drain: the drain is network, and the rest idle */
	memset(&ledger, 0, sizeof(ledger));
	ledger_start(&ledger, 0, false, &terms);
	ledger_wait_end(&ledger, 5000 * MS, true, &drain, &split);
	CHECK_EQUAL(ledger.totals.network, 200 * MS, "network of a long wait with a drain");
	CHECK_EQUAL(ledger.totals.client, 100 * MS, "client of a long wait with a drain");
	CHECK_EQUAL(ledger.totals.idle, 4700 * MS, "idle of a long wait with a drain");

	/* a drain longer than the threshold is not idle */
	memset(&ledger, 0, sizeof(ledger));
	ledger_start(&ledger, 0, false, &terms);
	drain.total = 3000 * MS;
	ledger_wait_end(&ledger, 3100 * MS, true, &drain, &split);
	CHECK_EQUAL(ledger.totals.idle, 0, "idle of a drain longer than the threshold");
	CHECK_EQUAL(ledger.totals.network, 2900 * MS, "network of a drain longer than the threshold");
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
	CHECK_EQUAL(account.totals.send, MS / 2, "send of a send that has just begun");
	CHECK_EQUAL(account.totals.send_blocked, 0, "send_blocked of a send that has just begun");
	CHECK_EQUAL(account.state, LEDGER_STATE_SENDING, "the state of a send that has just begun");
	account = project(&ledger, 2001 * MS);
	CHECK_EQUAL(account.totals.send, 2000 * MS, "send of a blocked send");
	CHECK_EQUAL(account.totals.send_blocked, 2000 * MS, "send_blocked of a blocked send");
	CHECK_EQUAL(account.pending, 0, "pending of a blocked send");
	CHECK_EQUAL(account.state, LEDGER_STATE_SENDING, "the state of a blocked send");
	ledger_project(&ledger, &seen, 2001 * MS, LEDGER_NOT_BLOCKED, &account);
	CHECK_EQUAL(account.totals.send_client, 700 * MS, "send_client that the sampler knows");
	ledger_send_end(&ledger, 2001 * MS, &seen, 500 * MS);
	CHECK_EQUAL(ledger.totals.send_client, 700 * MS, "send_client when less is known at the end");
	ledger_send_begin(&ledger, 2001 * MS, true);
	ledger_send_end(&ledger, 3001 * MS, NULL, 1500 * MS);
	CHECK_EQUAL(ledger.totals.send_client, 1700 * MS,
				"send_client when more is known than was sent");
}

/*
 * Gains: what has stepped back is not subtracted from a sum, and adds to it
 * again only beyond its earlier value.  All parts gain no more than their total.
 */
static void
test_gain(void)
{
	LedgerTotals added = {.exec = 100,.network = 20,.exec_part = {60, 30}};
	LedgerTotals account = {.exec = 90,.network = 30,.client = 10,.send = 5,.send_blocked = 9,
	.exec_part = {70, 20}};
	LedgerTotals gain;

	ledger_totals_gain(&added, &account, &gain);
	CHECK_EQUAL(gain.exec, 0, "the gain of what has stepped back");
	CHECK_EQUAL(gain.network, 10, "the gain of what has grown");
	CHECK_EQUAL(gain.exec_part[EXEC_CPU], 0, "the gain of a part added as unsampled");
	CHECK_EQUAL(gain.send_blocked, 5, "the gain of a part larger than its whole");
	account.exec = 120;
	ledger_totals_gain(&added, &account, &gain);
	CHECK_EQUAL(gain.exec, 20, "the gain beyond the earlier value");
	CHECK_EQUAL(gain.exec_part[EXEC_CPU], 10, "the gain of the part that catches up");
	CHECK_EQUAL(added.exec_part[EXEC_IO], 30, "what was added of a part that stepped back");
	CHECK_EQUAL(ledger_whole(&added), ledger_whole(&account), "the whole of what was added");
}

/*
 * A wait whose response was lost: seen as the client's while it lasts, and the
 * network's in the end.
 */
static void
test_lost_response(void)
{
	Ledger		ledger = {0};
	LedgerDrain lost = {.total = 200 * MS};
	LedgerTotals began = {.client = 190 * MS,.network = 10 * MS};
	LedgerSampled sampled = {.lost = true};
	LedgerTotals added = {0};
	LedgerTotals gain;
	LedgerAccount account;

	ledger_start(&ledger, 0, false, &in_xact);
	account = project(&ledger, 200 * MS);
	ledger_totals_gain(&added, &account.totals, &gain);
	CHECK_EQUAL(gain.client, 190 * MS, "client of a wait in progress");
	ledger_wait_end(&ledger, 210 * MS, true, &lost, &split);
	account = project(&ledger, 210 * MS);
	CHECK_EQUAL(account.totals.network, 200 * MS, "network of a wait whose response was lost");
	ledger_totals_gain(&added, &account.totals, &gain);
	CHECK_EQUAL(ledger_whole(&gain), 10 * MS, "gain of a wait whose response was lost");
	CHECK_EQUAL(ledger_whole(&added), 210 * MS, "sum of a wait whose response was lost");
	ledger_totals_subtract(&account.totals, &began);
	ledger_totals_fit(&account.totals);
	CHECK_EQUAL(ledger_whole(&account.totals), 10 * MS, "window of a wait whose response was lost");

	/* the sampler knows it */
	ledger_exchange_end(&ledger, 210 * MS, NULL, 0, &in_xact);
	ledger_project(&ledger, &sampled, 2210 * MS, LEDGER_NOT_BLOCKED, &account);
	CHECK_EQUAL(account.state, LEDGER_STATE_WAITING_IN_XACT, "the state while a response is lost");
	CHECK_EQUAL(account.pending, 2000 * MS, "pending while a response is lost");
	sampled.drained = true;
	sampled.drain.total = 1500 * MS;
	ledger_project(&ledger, &sampled, 3210 * MS, LEDGER_NOT_BLOCKED, &account);
	CHECK_EQUAL(account.pending, 0, "pending when a lost response has come");
	CHECK_EQUAL(account.totals.network, 1700 * MS, "network when a lost response has come");
	CHECK_EQUAL(account.totals.client, 1510 * MS, "client when a lost response has come");
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
	CHECK_EQUAL(account.state, LEDGER_STATE_SENDING, "the state of an unexpectedly blocked write");
	CHECK_EQUAL(account.totals.exec, 20 * MS, "exec up to the sampler's visit");
	CHECK_EQUAL(account.totals.send, 30 * MS, "send since the sampler's visit");
	ledger_response_plain(&ledger, 25 * MS, 60 * MS, &remote);
	CHECK_EQUAL(ledger.totals.exec, 25 * MS, "exec after an unexpectedly blocked write");
	CHECK_EQUAL(ledger.totals.send, 35 * MS, "send after an unexpectedly blocked write");
	CHECK_EQUAL(ledger.totals.send_blocked, 0, "send_blocked after an unexpectedly blocked write");
}

static void
test_whose_time(void)
{
	Ledger		ledger = {0};

	/* a system call is the server's, a blocked one is not */
	ledger_start(&ledger, 0, false, &remote);
	exchange(&ledger, 10 * MS, 20 * MS, 20 * MS + 30000, &remote);
	CHECK_EQUAL(ledger.totals.send_blocked, 0, "send_blocked of a system call of 30 us");
	CHECK_EQUAL(ledger_server_part(&ledger.totals), 10 * MS + 30000,
				"the server's part with a system call");
	exchange(&ledger, 30 * MS + 30000, 30 * MS + 30000, 50 * MS + 30000, &remote);
	CHECK_EQUAL(ledger.totals.send_blocked, 20 * MS, "send_blocked of a send of 20 ms");
	CHECK_EQUAL(ledger_network_part(&ledger.totals), 40 * MS,
				"the network's part with a blocked send");
	CHECK_EQUAL(ledger_client_part(&ledger.totals), 0, "the client's part with a blocked send");
	CHECK_EQUAL(ledger_server_part(&ledger.totals), 10 * MS + 30000,
				"the server's part with a blocked send");

	/* unless there was so little to send that it cannot have been blocked */
	ledger_wait_end(&ledger, 60 * MS, true, NULL, &split);
	ledger_send_begin(&ledger, 60 * MS, false);
	ledger_exchange_end(&ledger, 70 * MS, NULL, 0, &remote);
	CHECK_EQUAL(ledger.totals.send_blocked, 20 * MS,
				"send_blocked after a small send without a processor");

	/* without a network only the client can block */
	memset(&ledger, 0, sizeof(ledger));
	ledger_start(&ledger, 0, true, &local);
	exchange(&ledger, 0, 0, 20 * MS, &local);
	CHECK_EQUAL(ledger_client_part(&ledger.totals), 20 * MS,
				"the client's part of a blocked send without a network");
	CHECK_EQUAL(ledger_network_part(&ledger.totals), 0,
				"the network's part of a blocked send without a network");
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
	CHECK_EQUAL(ledger.totals.requests, 3, "requests of a pipeline");
	CHECK_EQUAL(ledger.totals.pipelined, 1, "pipelined requests");
}

static void
test_events_out_of_order(void)
{
	Ledger		ledger = {0};
	LedgerAccount account;

	ledger_start(&ledger, 100 * MS, false, &local);
	exchange(&ledger, 50 * MS, 40 * MS, 130 * MS, &local);
	account = project(&ledger, 120 * MS);
	CHECK_EQUAL(ledger_total(&account), 30 * MS, "the total of events out of order");
	CHECK(account.totals.exec >= 0 && account.totals.send >= 0,
		  "exec and send of events out of order are not negative");
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
	CHECK_EQUAL(ledger_total(&account), 25 * MS, "the total since a reset in a wait");
	CHECK_EQUAL(account.totals.network, 5 * MS, "network since a reset in a wait");
	CHECK_EQUAL(account.totals.client, 20 * MS, "client since a reset in a wait");

	/* a long wait is idle even if little of it counts */
	memset(&ledger, 0, sizeof(ledger));
	ledger_start(&ledger, 0, false, &local);
	ledger_reset(&ledger, 5000 * MS);
	exchange(&ledger, 5100 * MS, 5101 * MS, 5101 * MS, &local);
	CHECK_EQUAL(ledger.totals.idle, 100 * MS, "idle since a reset in a long wait");

	/* a reset while the session begins */
	memset(&ledger, 0, sizeof(ledger));
	ledger_reset(&ledger, 20 * MS);
	ledger_start(&ledger, 10 * MS, true, &local);
	CHECK(ledger_wait_is_plain(&ledger, 25 * MS), "the first wait begins with a reset before it");
	(void) ledger_wait_end_plain(&ledger, 25 * MS);
	CHECK_EQUAL(ledger.totals.client, 5 * MS, "client since a reset before the first wait");
}

static void
test_no_request(void)
{
	Ledger		ledger = {0};

	ledger_start(&ledger, 0, false, &local);
	ledger_wait_end(&ledger, 10 * MS, false, NULL, &split);
	ledger_stop(&ledger, 12 * MS, NULL, NULL, &split);
	CHECK_EQUAL(ledger.totals.requests, 0, "requests of a FATAL error");
	CHECK_EQUAL(ledger.totals.exec, 2 * MS, "exec of a FATAL error");
	CHECK_EQUAL(ledger.totals.client, 10 * MS, "client of a FATAL error");
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
	CHECK_EQUAL(ledger_total(&account), 7 * MS, "the total after the session's end");
	CHECK_EQUAL(account.totals.requests, 1, "requests of a session that ends in an exchange");
	CHECK_EQUAL(account.state, LEDGER_STATE_DISABLED, "the state after the session's end");
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
	CHECK_EQUAL(ledger.totals.exec, 9 * MS, "exec of what looked like a wait");
	CHECK_EQUAL(ledger.totals.requests, 1, "requests of what looked like a wait");
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
	CHECK_EQUAL(account.state, LEDGER_STATE_RECEIVING, "the state in a turn");
	CHECK_EQUAL(account.totals.network, 3 * MS, "network in a short turn");
	account = project(&ledger, 42 * MS);
	CHECK_EQUAL(account.totals.network, 10 * MS, "network in a turn");
	CHECK_EQUAL(account.totals.recv, 20 * MS, "recv in a turn");
	CHECK_EQUAL(account.pending, 0, "pending in a turn");
	ledger_turn_end(&ledger, 52 * MS, true);
	ledger_send_begin(&ledger, 70 * MS, true);
	ledger_exchange_end(&ledger, 70 * MS, &seen, 0, &local);
	CHECK_EQUAL(ledger.totals.exec, 15 * MS, "exec after a turn");
	CHECK_EQUAL(ledger.totals.network, 10 * MS, "network after a turn");
	CHECK_EQUAL(ledger.totals.recv, 35 * MS, "recv after a turn, with what was sampled later");
	CHECK_EQUAL(ledger_round_trips(&ledger.totals), 2, "round trips after a turn");

	/* a client that does not wait to be asked */
	ledger_wait_end(&ledger, 72 * MS, true, NULL, &split);
	ledger_turn_begin(&ledger, 72 * MS, 10 * MS);
	ledger_turn_end(&ledger, 73 * MS, false);
	ledger_send_begin(&ledger, 74 * MS, true);
	ledger_exchange_end(&ledger, 74 * MS, NULL, 0, &local);
	CHECK_EQUAL(ledger_round_trips(&ledger.totals), 3,
				"round trips after a turn that was not waited for");

	/* a reset in its middle, and the end of the session */
	ledger_wait_end(&ledger, 80 * MS, true, NULL, &split);
	ledger_turn_begin(&ledger, 80 * MS, 10 * MS);
	ledger_reset(&ledger, 85 * MS);
	ledger_stop(&ledger, 100 * MS, NULL, NULL, &split);
	CHECK_EQUAL(ledger.totals.network, 0, "network of a turn that the client has not ended");
	CHECK_EQUAL(ledger.totals.recv, 15 * MS, "recv since a reset in a turn");
	CHECK_EQUAL(ledger.totals.turns, 0, "turns that the client has not ended");
	CHECK_EQUAL(ledger_busy_total(&ledger.totals), 15 * MS, "the total since a reset in a turn");
}

/* The client is invited to copy: when its data comes is not seen. */
static void
test_invitation(void)
{
	Ledger		ledger = {0};
	LedgerSampled sampled = {.recv = 30 * MS,.visited = 90 * MS};
	LedgerAccount account;

	ledger_start(&ledger, 0, false, &remote);
	ledger_wait_end(&ledger, 10 * MS, true, NULL, &split);
	ledger_send_begin(&ledger, 12 * MS, true);
	ledger_send_end(&ledger, 13 * MS, NULL, 0);
	ledger_invite(&ledger, 12 * MS, 10 * MS);
	account = project(&ledger, 16 * MS);
	CHECK_EQUAL(account.totals.network, 10 * MS + 3 * MS, "network just after an invitation");
	CHECK_EQUAL(account.totals.exec, 2 * MS, "exec just after an invitation");
	CHECK_EQUAL(account.totals.turns, 0, "turns while it is not known");
	ledger_project(&ledger, NULL, 33 * MS, LEDGER_BLOCKED_READING, &account);
	CHECK_EQUAL(account.totals.network, 20 * MS, "network a round trip after an invitation");
	CHECK_EQUAL(account.totals.recv, 10 * MS, "recv a round trip after an invitation");
	CHECK_EQUAL(account.state, LEDGER_STATE_RECEIVING, "the state after an invitation");
	CHECK_EQUAL(ledger_total(&account), 33 * MS, "total after an invitation");
	ledger_send_begin(&ledger, 100 * MS, true);
	ledger_exchange_end(&ledger, 101 * MS, &sampled, 0, &remote);
	CHECK_EQUAL(ledger.totals.network, 20 * MS, "network of a COPY");
	CHECK_EQUAL(ledger.totals.recv, 30 * MS, "recv of a COPY");
	CHECK_EQUAL(ledger.totals.exec, 2 * MS + 77 * MS - 30 * MS, "exec of a COPY");
	CHECK_EQUAL(ledger_round_trips(&ledger.totals), 2, "round trips of a COPY");

	/* data that comes sooner than it can have been asked for */
	ledger_wait_end(&ledger, 120 * MS, true, NULL, &split);
	ledger_send_begin(&ledger, 122 * MS, true);
	ledger_send_end(&ledger, 123 * MS, NULL, 0);
	ledger_invite(&ledger, 122 * MS, 10 * MS);
	ledger_send_begin(&ledger, 126 * MS, true);
	ledger_exchange_end(&ledger, 127 * MS, NULL, 0, &remote);
	CHECK_EQUAL(ledger_round_trips(&ledger.totals), 3, "round trips of a COPY that has its data");
	CHECK_EQUAL(ledger.totals.network, 30 * MS, "network of a COPY that has its data");

	/* an error comes before any data */
	ledger_wait_end(&ledger, 140 * MS, true, NULL, &split);
	ledger_invite(&ledger, 140 * MS, 10 * MS);
	ledger_was_work(&ledger);
	ledger_send_begin(&ledger, 160 * MS, true);
	CHECK_EQUAL(ledger.totals.turns, 1, "turns if no data was read");
}

static void
test_last_wait(void)
{
	Ledger		ledger = {0};
	LedgerDrain drain = {.total = 4 * MS};

	/* nobody waited for the round trip of a request that never came */
	ledger_start(&ledger, 0, false, &remote);
	ledger_stop(&ledger, 30 * MS, NULL, NULL, &split);
	CHECK_EQUAL(ledger.totals.network, 0, "network of the last wait");
	CHECK_EQUAL(ledger.totals.idle, 10 * MS, "idle of the last wait");
	CHECK_EQUAL(ledger.totals.client, 20 * MS, "client of the last wait");

	/* but the client waited for the response */
	memset(&ledger, 0, sizeof(ledger));
	ledger_start(&ledger, 0, false, &remote);
	ledger_stop(&ledger, 30 * MS, NULL, &drain, &split);
	CHECK_EQUAL(ledger.totals.network, 4 * MS, "network of the last wait with a drain");
	CHECK_EQUAL(ledger.totals.idle, 6 * MS, "idle of the last wait with a drain");

	/* in a transaction nothing is idle */
	memset(&ledger, 0, sizeof(ledger));
	ledger_start(&ledger, 0, false, &in_xact);
	ledger_stop(&ledger, 30 * MS, NULL, NULL, &split);
	CHECK_EQUAL(ledger.totals.client, 30 * MS, "client of the last wait in a transaction");
}

static void
test_properties(void)
{
	for (uint64_t seed = 1; seed <= 20000; seed++)
	{
		ModelRandom random = {seed, 600};
		Model		model;

		model_begin(&model);
		while (model_step(&model, model_random_byte, &random))
			;
		CHECK(model.broken == NULL, "seed %llu, event %lld: %s",
			  (unsigned long long) seed, (long long) model.events, model.broken);
		if (model.broken)
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
	test_run_queue();
	test_copy_in();
	test_drain();
	test_blocked_send();
	test_gain();
	test_lost_response();
	test_unexpectedly_blocked();
	test_whose_time();
	test_pipelined();
	test_events_out_of_order();
	test_reset();
	test_no_request();
	test_stop_in_exchange();
	test_flush_in_the_middle();
	test_turn();
	test_invitation();
	test_last_wait();
	test_properties();
	return CHECKS_DONE("ledger");
}
