/* Sources: exec_split.c ledger.c mva.c prediction.c verdict.c */
/*
 * test_verdict.c: each rule applies where it should, at its threshold, and to
 * nothing that is healthy; evidence adds up.
 */
#include "verdict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

#define MS		INT64_C(1000000)
#define SECOND	(1000 * MS)

static VerdictFigures f;
static VerdictFinding findings[VERDICT_FINDINGS];
static int	count;
static char evidence[VERDICT_EVIDENCE_SIZE];

/* A client group of some sessions over ten seconds. */
static void
begin(VerdictSubject subject)
{
	memset(&f, 0, sizeof(f));
	f.subject = subject;
	f.window = 10 * SECOND;
	f.sessions = 4;
	f.blocked_by = VERDICT_NOBODY;
}

static void
find(void)
{
	count = verdict_find(&f, findings);
}

static const VerdictFinding *
finding_of(Verdict verdict)
{
	for (int i = 0; i < count; i++)
	{
		if (findings[i].verdict == verdict)
			return &findings[i];
	}
	return NULL;
}

static const char *
first(void)
{
	find();
	return count > 0 ? verdict_name(findings[0].verdict) : "nothing";
}

static void
expect(const char *expected, const char *what)
{
	const char *got = first();

	CHECK(strcmp(got, expected) == 0, "%s: %s, expected %s", what, got, expected);
}

static void
expect_evidence(const char *expected)
{
	find();
	verdict_evidence(&f, &findings[0], evidence);
	CHECK(strcmp(evidence, expected) == 0, "\"%s\", expected \"%s\"", evidence, expected);
}

/* What predictions start from: per transaction, or per request. */
static Workload
workload(bool per_request)
{
	LedgerTotals totals = f.totals;
	Workload	result;

	if (per_request)
		totals.transactions = 0;
	CHECK(workload_from_totals(&result, &totals, f.rtt, true, f.window), "a workload");
	result.processors = 2;
	return result;
}

static Change
changed(double rtt, double round_trips, double batch, double server_speed)
{
	Change		change = NO_CHANGE;

	change.rtt = rtt;
	change.round_trips = round_trips;
	change.batch = batch;
	change.server_speed = server_speed;
	return change;
}

/* The first finding saves what is predicted of its transactions after a change. */
static void
expect_predicted(Change change, const char *what)
{
	Workload	requests = workload(true);
	Workload	transactions = workload(false);
	Prediction	prediction;
	double		saving;
	int64_t		lost = findings[0].lost;

	verdict_predict(&f, &requests, &findings[0]);
	CHECK(predict(&transactions, &change, &prediction), "%s is predicted", what);
	saving = (transactions.transaction_time - prediction.transaction_time) *
		transactions.transactions * MS;
	CHECK(fabs(findings[0].saving - saving) <= 1e-6 * saving, "%s: %.0f, predicted %.0f", what,
		  (double) findings[0].saving, saving);
	CHECK(saving > 0 && findings[0].saving <= findings[0].lost && findings[0].lost >= lost,
		  "%s: what is saved was lost", what);
}

/* Whatever an account is, what is predicted to be saved was lost. */
static void
expect_possible(const VerdictFinding *found)
{
	VerdictFinding predicted = *found;
	VerdictFinding *finding = &predicted;
	LedgerTotals totals = f.totals;
	Workload	requests;

	totals.transactions = 0;
	if (!workload_from_totals(&requests, &totals, f.rtt, true, f.window))
		return;
	requests.processors = 2;
	verdict_predict(&f, &requests, finding);
	if (finding->saving != found->saving)
		CHECK(finding->saving >= 0 && finding->saving <= finding->lost &&
			  finding->lost >= found->lost, "saving of %lld", (long long) finding->saving);
}

/* So many requests, each of which takes so long; all in all. */
static void
requests(int64_t number, int64_t transactions, int64_t exec, int64_t rtt, int64_t think,
		 bool in_xact)
{
	f.totals.requests = f.totals.statements = number;
	f.totals.transactions = transactions;
	f.totals.exec = number * exec;
	f.totals.network = number * rtt;
	f.totals.client = number * think;
	if (in_xact)
		f.totals.in_xact_wait = f.totals.network + f.totals.client;
	f.rtt = rtt;
}

static void
test_nothing(void)
{
	begin(VERDICT_OF_SESSION);
	expect("nothing", "no data");
	requests(VERDICT_MIN_SERVED - 1, 19, MS, 0, 30 * MS, false);
	expect("nothing", "not enough requests");
	requests(1000, 1000, MS, 0, MS, false);
	expect("balanced", "enough");
	CHECK_EQUAL(findings[0].lost, 0, "balanced: lost");
	CHECK_EQUAL(findings[0].saving, 0, "balanced: saving");
	expect_evidence("1000 requests: server 50 %, network 0 %, client 50 %");
	CHECK(verdict_advice(&f, &findings[0]) == NULL, "there is nothing to do");
	f.window = 1000 * SECOND;
	expect("nothing", "of that much time it is too little");
}

static void
test_trips(void)
{
	begin(VERDICT_OF_CLIENT);
	requests(42 * 50, 50, MS * 15 / 42, MS * 19 / 10, 0, true);
	expect("chatty", "42 round trips");
	expect_evidence("42 round trips per transaction x 1.90 ms = 79.8 of 94.8 ms");
	CHECK(finding_of(VERDICT_NETWORK_BOUND) == NULL, "no time is lost twice");
	CHECK_EQUAL(findings[0].lost, 42 * 50 * MS * 19 / 10, "all round trips");
	CHECK_EQUAL(findings[0].saving, VERDICT_UNKNOWN, "what is saved has to be predicted");
	expect_predicted(changed(NAN, NAN, 21, NAN), "all but two");
	CHECK(findings[0].saving >= 40 * 50 * MS * 19 / 10, "with what is done cold after each");
	CHECK(strstr(verdict_advice(&f, &findings[0]), "pipeline") != NULL, "what to do");

	f.totals.statements = 50;
	expect("chatty", "of few statements");
	CHECK(strstr(verdict_advice(&f, &findings[0]), "fetch size") != NULL, "they fetch rows");
	{
		Workload	requests = workload(true);
		int64_t		saving = findings[0].saving;

		verdict_predict(&f, &requests, &findings[0]);
		CHECK_EQUAL(findings[0].saving, saving, "which are not made any more");
		CHECK_EQUAL(saving, (42 - 2) * 50 * (MS * 19 / 10 + MS * 15 / 42), "nor what they take beside");
	}

	requests(2000, 500, MS / 10, 10 * MS, 0, true);
	expect("network-bound", "four round trips");
	expect_predicted(changed(0.5, NAN, NAN, NAN), "nearer");
	CHECK(findings[0].saving >= 2000 * (10 * MS - VERDICT_NEAR_RTT), "with what is done cold");
	find();
	f.explained = 500 * 10 * MS;
	find();
	{
		Workload	requests = workload(true);
		int64_t		part;

		verdict_predict(&f, &requests, &findings[0]);
		part = findings[0].saving;
		f.explained = 0;
		find();
		verdict_predict(&f, &requests, &findings[0]);
		CHECK(llabs(findings[0].saving * 3 / 4 - part) <= 2, "of what is not explained, its part");
	}
	find();
	expect_evidence("4 round trips per transaction x 10 ms = 40 of 40.4 ms");
	requests(10000, 10000, MS / 10, VERDICT_NEAR_RTT, 0, false);
	expect("balanced", "near enough");
	requests(42000, 1000, MS / 100, VERDICT_MIN_RTT - 1, 0, true);
	expect("balanced", "on one machine");
	requests(10000, 1000, MS / 100, VERDICT_CHATTY_TIME / 10 - 1, 0, true);
	expect("balanced", "too short for anybody to notice");
	requests(10000, 1000, MS / 100, VERDICT_CHATTY_TIME / 10, 0, true);
	expect("chatty", "just long enough");
	requests(2000, 1000, 100 * MS, 2 * MS, 0, false);
	expect("balanced", "not the network's");

	/* a statement has its round trips */
	requests(1001, 1, MS, 10 * MS, 0, true);
	f.explained = 1000 * 10 * MS;
	expect("balanced", "what is left is nothing");
	f.explained = 500 * 10 * MS;
	expect("chatty", "half is left");
	CHECK_EQUAL(findings[0].lost, 501 * 10 * MS, "the half");
	requests(1001 * 20, 20, MS, 10 * MS, 0, true);
	f.explained = 500 * 20 * 10 * MS;
	find();
	expect_predicted(changed(NAN, 502, NAN, NAN), "its statements together, not the others");
}

static void
test_repeated(void)
{
	begin(VERDICT_OF_STATEMENT);
	f.calls = 1000;
	f.repeats = 999;
	f.repeat_network = 999 * 10 * MS;
	f.client = 1000 * MS;
	f.time = 11500 * MS;
	expect("repeated statement", "N+1");
	CHECK_EQUAL(findings[0].saving, f.repeat_network + f.repeats * 1510000, "the round trips, and 1.51 ms each");
	f.time += 60 * SECOND;
	find();
	CHECK_EQUAL(findings[0].saving, f.repeat_network + f.repeats * VERDICT_THINK, "but no more");
	f.time -= 60 * SECOND;
	f.repeat_network /= 10;
	find();
	CHECK_EQUAL(findings[0].saving, 2 * f.repeat_network, "nor more than the round trips");
	f.repeat_network *= 10;
	expect_evidence("999 of 1000 executions repeat an earlier one of the same burst: "
					"10 ms of round trip and 1.51 ms of server and driver each = 11.5 of 11.5 s");
	CHECK_EQUAL(verdict_time(&f), f.time, "of its own time");

	f.client = f.calls * VERDICT_REPEAT_THINK + 1;
	expect("nothing", "a client that pauses");
	f.in_xact_wait = f.client + f.repeat_network;
	expect("repeated statement", "unless in a transaction");
	f.in_xact_wait = f.client = 0;
	f.repeats = 750;
	f.repeat_network = 750 * 10 * MS;
	expect("nothing", "three in a burst");
	f.repeats = 800;
	f.repeat_network = 800 * 10 * MS;
	expect("repeated statement", "four");
	f.repeat_network = 800 * (VERDICT_MIN_RTT - 1);
	f.window = SECOND;
	expect("nothing", "over loopback");
}

static void
test_client(void)
{
	begin(VERDICT_OF_SESSION);
	f.sessions = 1;
	requests(30, 10, MS, 0, 100 * MS, true);
	expect("idle in transaction", "300 ms in each transaction");
	CHECK_EQUAL(findings[0].saving, 30 * 100 * MS, "all of it");
	expect_evidence("its client thinks for 300 ms in each transaction, which takes 303 ms; "
					"locks and snapshot are held");
	requests(300, 100, MS, 0, 20 * MS, true);
	f.explained_others = f.totals.client;
	expect("balanced", "the driver of a repeated statement");
	f.explained_others = 0;
	expect("client-bound", "60 ms");
	expect_evidence("the client thinks 20 of 21 ms per request in transactions, the server takes 1 ms");
	requests(1500, 500, 2 * MS, 0, VERDICT_THINK - 1, true);
	expect("balanced", "a driver");

	/* a dump: one transaction, many requests, no pauses */
	requests(300, 1, 5 * MS, 0, 2 * MS, true);
	expect("balanced", "one transaction without pauses");

	/* the first pause of a session that was busy before */
	requests(2000, 1, 3 * MS, 0, 0, false);
	f.totals.client = f.totals.in_xact_wait = 3 * SECOND;
	expect("balanced", "many short ones");
	f.state = LEDGER_STATE_WAITING_IN_XACT;
	f.state_age = 3 * SECOND;
	expect("idle in transaction", "one that lasts");
	CHECK(strstr(evidence, "now for") == NULL, "not said yet");
	verdict_evidence(&f, &findings[0], evidence);
	CHECK(strstr(evidence, "now for 3000 ms") != NULL, "%s", evidence);

	/* outside of transactions */
	begin(VERDICT_OF_CLIENT);
	requests(450, 450, MS, 0, 20 * MS, false);
	expect("balanced", "a pool that is not full");
	f.sessions = 1;
	expect("client-bound", "one connection in a loop");
	CHECK_EQUAL(findings[0].saving, VERDICT_UNKNOWN, "of which nobody knows what it does");
	requests(160, 160, MS, 0, 60 * MS, false);
	expect("balanced", "one that is asked now and then");
	requests(450, 450, MS, 0, 20 * MS, false);
	f.totals.run_queue = 450 * 9 * MS + 450 * MS;
	expect("balanced", "one that may wait for a processor");
	f.rtt = MS;
	expect("client-bound", "but not if it is on another machine");
}

static void
test_locks(void)
{
	begin(VERDICT_OF_SESSION);
	f.totals.requests = 10;
	f.totals.exec = f.totals.exec_part[EXEC_LOCK] = 5 * SECOND;
	expect("held up by others", "half a second each");
	CHECK_EQUAL(findings[0].saving, VERDICT_UNKNOWN, "not its to save");
	f.blocked_by = 4711;
	expect_evidence("waited 5000 of 5000 ms for locks; now for one of process 4711");
	f.blocked_by = 0;
	expect_evidence("waited 5000 of 5000 ms for locks; now for one of a prepared transaction");
	f.blocked_by = VERDICT_NOBODY;
	f.totals.requests = 100;
	expect("server-bound", "50 ms each");
	expect_evidence("locks: 50 of 50 ms per request");
	f.totals.requests = 1000;
	expect("balanced", "5 ms each");

	begin(VERDICT_OF_SESSION);
	f.held_up = 8 * SECOND;
	requests(2, 1, MS, 0, 2 * SECOND, true);
	expect("holds up others", "it is waited for");
	CHECK(finding_of(VERDICT_IDLE_IN_XACT) == NULL, "which says it all");
	CHECK_EQUAL(findings[0].saving, VERDICT_UNKNOWN, "who knows");
	f.held_while.client = 3 * SECOND;
	f.held_while.exec = SECOND;
	find();
	CHECK_EQUAL(findings[0].saving, 6 * SECOND, "what it did not execute");
	expect_evidence("others waited 8000 ms for its locks, mostly while its client thought");
	f.held_up = SECOND / 2;
	expect("idle in transaction", "hardly waited for");
	CHECK(finding_of(VERDICT_HOLDS_UP) != NULL, "as well");
}

static void
test_streams(void)
{
	begin(VERDICT_OF_SESSION);
	f.totals.requests = 1;
	f.totals.exec = SECOND;
	f.totals.send = f.totals.send_blocked = f.totals.send_client = 9 * SECOND;
	f.totals.bytes_sent = 9000000;
	expect("slow reader", "a megabyte per second");
	CHECK_EQUAL(findings[0].saving, 9 * SECOND, "all of it");
	expect_evidence("the client would take no more for 9 of 10 s; it read 9 MB at 1 MB/s");
	f.totals.bytes_sent = 9 * VERDICT_FAST_READER;
	expect("nothing", "a dump");
	f.totals.bytes_sent = 9000000;
	f.totals.send_client = SECOND;
	expect("nothing", "on a socket it is nobody else");
	f.rtt = 20 * MS;
	expect("narrow path", "over a network it is that");
	CHECK_EQUAL(findings[0].saving,
				findings[0].lost - f.totals.bytes_sent * SECOND / VERDICT_FAST_PATH, "but for the time on a wider one");
	f.totals.bytes_sent = 9 * VERDICT_FAST_PATH;
	expect("nothing", "a fast one");

	f.totals.bytes_sent = 9000000;
	f.retransmits = VERDICT_LOSS_MIN;
	f.packets_sent = 1000;
	expect("lossy path", "one packet in a hundred");
	f.packets_sent = 1001;
	expect("narrow path", "less");

	begin(VERDICT_OF_CLIENT);
	f.totals.requests = 3;
	f.totals.exec = SECOND;
	f.totals.recv = 9 * SECOND;
	f.bytes_received = 9000000;
	expect("slow loader", "a megabyte per second");
	expect_evidence("waited 9 of 10 s for more data of a request, as in COPY FROM STDIN; 9 MB came at 1 MB/s");
	f.bytes_received = 9 * VERDICT_FAST_LOADER;
	expect("nothing", "a fast one");
}

static void
test_connections(void)
{
	begin(VERDICT_OF_CLIENT);
	f.sessions = 0;
	requests(1703, 1703, 2 * MS, 0, 0, false);
	f.connections = 1703;
	f.connect_time = 1703 * 517 * MS / 100;
	f.window = 6 * SECOND;
	expect("reconnects", "pgbench -C");
	expect_evidence("1703 connections of 5.17 ms each = 8.80 of 12.2 s, for 1703 requests");
	CHECK_EQUAL(findings[0].saving, f.connect_time - f.connect_time / 1703, "but for the first");
	CHECK_EQUAL(verdict_time(&f), f.connect_time + f.totals.exec, "of the time with connecting");
	f.totals.exec = 40 * SECOND;
	expect("balanced", "little of what there is to do");
	f.totals.exec = 0;
	f.connections = VERDICT_CONNECTIONS - 1;
	CHECK(finding_of(VERDICT_RECONNECTS) == NULL, "a few");
}

static void
test_server(void)
{
	static const char *const names[NUM_EXEC_PARTS] = {
		"CPU", "I/O", "locks", "replication", "remote", "other waits"
	};

	for (int part = 0; part < NUM_EXEC_PARTS; part++)
	{
		begin(VERDICT_OF_CLIENT);
		requests(100, 100, 50 * MS, 0, MS, false);
		f.totals.exec_part[part] = f.totals.exec;
		expect("server-bound", names[part]);
		verdict_evidence(&f, &findings[0], evidence);
		CHECK(strncmp(evidence, names[part], strlen(names[part])) == 0, "%s", evidence);
		CHECK(verdict_advice(&f, &findings[0]) != NULL, "and what to do");
		if (part == EXEC_CPU || part == EXEC_IO)
		{
			CHECK_EQUAL(findings[0].saving, VERDICT_UNKNOWN, "has to be predicted");
			expect_predicted(changed(NAN, NAN, NAN, 2), names[part]);
		}
		else
		{
			Workload	requests = workload(true);

			verdict_predict(&f, &requests, &findings[0]);
			CHECK_EQUAL(findings[0].saving,
						part == EXEC_REPLICATION ? findings[0].lost : VERDICT_UNKNOWN, names[part]);
		}
		f.totals.requests = VERDICT_MIN_SERVED - 1;
		if (part != EXEC_LOCK)
			expect("nothing", "a batch");
		f.totals.requests = 10000;
		f.totals.exec_part[part] = f.totals.exec;
		expect("balanced", "short requests");
	}

	/* ready to run is not on a processor */
	begin(VERDICT_OF_SERVER);
	requests(1000, 1000, 12 * MS, 0, 0, false);
	f.totals.exec_part[EXEC_CPU] = f.totals.exec;
	f.totals.run_queue = f.totals.exec / 2;
	expect("starved", "half of the time");
	CHECK_EQUAL(findings[0].lost, f.totals.run_queue, "that");
	f.subject = VERDICT_OF_CLIENT;
	expect("balanced", "of which the machine is to blame");
	f.subject = VERDICT_OF_SERVER;
	f.totals.requests = 100000;
	expect("nothing", "as a benchmark has it");
}

static void
test_pool(void)
{
	begin(VERDICT_OF_SERVER);
	f.sessions = 180;
	f.max_connections = 200;
	f.pool_size = 12;
	f.pool_time = VERDICT_POOL_TIME;
	expect("too many connections", "twelve would do");
	CHECK_EQUAL(findings[0].lost, 0, "no time");
	CHECK_EQUAL(findings[0].saving, VERDICT_UNKNOWN, "nor is any saved");
	expect_evidence("180 of 200 connections are held; a pool of 12 would have served them for 99.9 % of the time without a wait");
	f.pool_size = 36;
	expect("nothing", "a fifth is busy");
	f.pool_size = 12;
	f.max_connections = 300;
	expect("nothing", "many are left");
	f.max_connections = 200;
	f.pool_time--;
	expect("nothing", "not known for long");
}

/* Whatever the figures are, nothing breaks, and nothing is lost twice. */
static void
test_any(void)
{
	static const int64_t values[] = {0, 1, -1, MS, SECOND, INT64_C(1) << 60};
	uint64_t	seed = 1;

	for (int i = 0; i < 100000; i++)
	{
		int64_t    *fields = (int64_t *) &f.totals;

		begin((VerdictSubject) (1 << (i % 4)));
		for (size_t j = 0; j < sizeof(f.totals) / sizeof(int64_t); j++)
		{
			seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
			fields[j] = values[(seed >> 33) % 5];
		}
		f.rtt = values[(seed >> 40) % 5];
		f.calls = values[(seed >> 42) % 5];
		f.repeats = values[(seed >> 44) % 5];
		f.repeat_network = values[(seed >> 46) % 5];
		f.held_up = values[(seed >> 48) % 5];
		find();
		CHECK(count >= 0 && count <= VERDICT_FINDINGS, "so many findings");
		for (int j = 0; j < count && i % 100 == 0; j++)
			expect_possible(&findings[j]);
		for (int j = 0; j < count; j++)
		{
			verdict_evidence(&f, &findings[j], evidence);
			if (evidence[0] == '\0' || strlen(evidence) >= sizeof(evidence) - 1 ||
				(j > 0 && findings[j].lost > findings[j - 1].lost) ||
				verdict_name(findings[j].verdict) == NULL)
				CHECK(false, "finding %d: \"%s\"", findings[j].verdict, evidence);
		}
	}
}

int
main(void)
{
	test_nothing();
	test_trips();
	test_repeated();
	test_client();
	test_locks();
	test_streams();
	test_connections();
	test_server();
	test_pool();
	test_any();
	return CHECKS_DONE("verdict");
}
