/* Sources: exec_split.c ledger.c mva.c prediction.c */
/*
 * test_prediction.c: workloads from accounts, and what becomes of them.
 */
#include "prediction.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

#define MS	INT64_C(1000000)

static int
close_to(double a, double b, double tolerance)
{
	return fabs(a - b) <= tolerance * fmax(fmax(fabs(a), fabs(b)), 1e-6);
}

/*
 * 1000 transactions of 4 round trips of 5 ms, one session: 0.4 ms on processors,
 * 0.1 ms in files, 0.2 ms for locks, 0.3 ms of sending, 2 ms of thinking.
 */
static LedgerTotals
plain_totals(void)
{
	LedgerTotals totals;

	memset(&totals, 0, sizeof(totals));
	totals.transactions = 1000;
	totals.requests = 4000;
	totals.statements = 4000;
	totals.bytes_sent = 400000;
	totals.network = 20000 * MS;
	totals.client = 2000 * MS;
	totals.exec = 700 * MS;
	totals.exec_part[EXEC_CPU] = 400 * MS;
	totals.exec_part[EXEC_IO] = 100 * MS;
	totals.exec_part[EXEC_LOCK] = 200 * MS;
	totals.send = 300 * MS;
	return totals;
}

static Workload
workload_of(const LedgerTotals *totals, double sessions)
{
	Workload	workload;

	CHECK(workload_from_totals(&workload, totals, 5 * MS, true,
							   (int64_t) (ledger_busy_total(totals) / sessions)), "there is something");
	workload.processors = 2;
	return workload;
}

static Prediction
predicted(const Workload *workload, Change change)
{
	Prediction	prediction;

	CHECK(predict(workload, &change, &prediction), "it can be predicted");
	CHECK(prediction.throughput_low <= prediction.throughput &&
		  prediction.throughput <= prediction.throughput_high, "low, likely, high");
	return prediction;
}

static Prediction
predicted_rtt(const Workload *workload, double rtt)
{
	Change		change = NO_CHANGE;

	change.rtt = rtt;
	return predicted(workload, change);
}

static void
test_workload(void)
{
	LedgerTotals totals = plain_totals();
	Workload	workload = workload_of(&totals, 1);

	CHECK_EQUAL(workload.transactions, 1000, "transactions");
	CHECK(!workload.per_request, "per transaction");
	CHECK(workload.round_trips == 4 && workload.statements == 4, "round trips");
	CHECK(close_to(workload.trip_time, 20, 1e-12), "trips");
	CHECK(workload.stream_time == 0, "small responses");
	CHECK(close_to(workload.client_time, 2, 1e-12), "client");
	CHECK(close_to(workload.processor_time, 0.7, 1e-12), "processors");
	CHECK(close_to(workload.io_time, 0.1, 1e-12), "io");
	CHECK(close_to(workload.held_up_time, 0.2, 1e-12), "locks");
	CHECK(close_to(workload.transaction_time, 23, 1e-12), "all");
	CHECK(close_to(workload.throughput, 1000 / 23.0, 1e-12), "throughput");

	/* the run queue is no demand, wherever it was */
	totals.run_queue = 300 * MS;
	totals.run_queue_wait = 100 * MS;
	workload = workload_of(&totals, 1);
	CHECK(close_to(workload.processor_time, 0.5, 1e-12), "demand");
	CHECK(close_to(workload.run_queue_time, 0.3, 1e-12), "run queue");
	CHECK(close_to(workload.client_time, 1.9, 1e-12), "client");
	CHECK(close_to(workload_server_time(&workload), 1.1, 1e-12), "server");
	CHECK(close_to(workload.transaction_time, 23, 1e-12), "all");

	/* more of it than there was work */
	totals.run_queue = 5000 * MS;
	workload = workload_of(&totals, 1);
	CHECK(close_to(workload.processor_time, 0.14, 1e-12), "some demand is left");
	CHECK(close_to(workload.run_queue_time, 2.56, 1e-12), "the rest was in waits");
	CHECK(close_to(workload.client_time, 0, 1e-12), "all of them");
	CHECK(close_to(workload.transaction_time, workload_server_time(&workload) +
				   workload_network_time(&workload) + workload.client_time, 1e-12), "it adds up");
}

static void
test_unsampled(void)
{
	LedgerTotals totals = plain_totals();
	Workload	workload;

	/* distributed as what was sampled */
	totals.exec = 1400 * MS;
	workload = workload_of(&totals, 1);
	CHECK(close_to(workload.processor_time, 1.1, 1e-12), "processors");
	CHECK(close_to(workload.io_time, 0.2, 1e-12), "io");
	CHECK(close_to(workload.held_up_time, 0.4, 1e-12), "locks");
	/* unless that is next to nothing */
	memset(totals.exec_part, 0, sizeof(totals.exec_part));
	totals.exec_part[EXEC_LOCK] = 10 * MS;
	workload = workload_of(&totals, 1);
	CHECK(close_to(workload.processor_time, 1.69, 1e-12), "processors");
	CHECK(close_to(workload.held_up_time, 0.01, 1e-12), "locks");
}

static void
test_network(void)
{
	LedgerTotals totals = plain_totals();
	Workload	workload;

	/*
	 * large responses that are still leaving, blocked sends, a client that
	 * does not read
	 */
	totals.bytes_sent = INT64_C(1000000000);
	totals.network += 1000 * MS;
	totals.send += 700 * MS;
	totals.send_blocked = 700 * MS;
	totals.send_client = 300 * MS;
	workload = workload_of(&totals, 1);
	CHECK(close_to(workload.trip_time, 20, 1e-12), "trips");
	CHECK(close_to(workload.stream_time, 1.4, 1e-12), "data under way");
	CHECK(close_to(workload.client_time, 2.3, 1e-12), "client");
	CHECK(close_to(workload.processor_time, 0.7, 1e-12), "processors");

	/* small ones: the round trip has changed meanwhile */
	totals = plain_totals();
	totals.network += 1000 * MS;
	workload = workload_of(&totals, 1);
	CHECK(close_to(workload.trip_time, 21, 1e-12), "trips");
	CHECK(workload.stream_time == 0, "nothing else");

	/* idle waits have no round trip */
	totals = plain_totals();
	totals.idle = 3000000 * MS;
	totals.network = 10000 * MS;
	workload = workload_of(&totals, 1);
	CHECK(close_to(workload.round_trips, 2, 1e-12), "half of them");
	totals.idle = 1000 * MS;
	workload = workload_of(&totals, 1);
	CHECK(close_to(workload.round_trips, 3.999, 1e-12), "all but one");
}

static void
test_nothing(void)
{
	LedgerTotals totals;
	Workload	workload;
	Prediction	prediction;
	Change		change = NO_CHANGE;

	memset(&totals, 0, sizeof(totals));
	CHECK(!workload_from_totals(&workload, &totals, 0, true, 0), "nothing");
	totals.client = 100 * MS;
	CHECK(!workload_from_totals(&workload, &totals, 0, true, 0), "no request");
	totals.requests = PREDICTION_LEAST - 1;
	CHECK(workload_from_totals(&workload, &totals, 5 * MS, true, 0), "requests");
	CHECK(workload.per_request, "per request");
	CHECK(!predict(&workload, &change, &prediction), "too few");
	totals.requests = PREDICTION_LEAST;
	CHECK(workload_from_totals(&workload, &totals, 5 * MS, true, 0), "requests");
	CHECK(predict(&workload, &change, &prediction), "enough");
	change.batch = 10;
	CHECK(!predict(&workload, &change, &prediction), "no statements to share a round trip");

	/* the round trip is not known */
	change = NO_CHANGE;
	change.rtt = 5;
	CHECK(workload_from_totals(&workload, &totals, 0, true, 0), "requests");
	CHECK(!predict(&workload, &change, &prediction), "who knows");
	CHECK(workload_from_totals(&workload, &totals, 0, false, 0), "requests");
	CHECK(predict(&workload, &change, &prediction), "there is none");
	CHECK(prediction.transaction_time > workload.transaction_time + 4.9, "so it is added");
}

/* What is not changed is as it was. */
static void
test_identity(void)
{
	for (double sessions = 1; sessions <= 3000; sessions *= 1.7)
	{
		LedgerTotals totals = plain_totals();
		Workload	workload;
		Prediction	prediction;
		Change		same = NO_CHANGE;

		totals.run_queue = random() % 2000 * MS;
		totals.run_queue_wait = totals.run_queue / 3;
		totals.on_cpu = random() % 1000 * MS;
		workload = workload_of(&totals, sessions);
		prediction = predicted(&workload, NO_CHANGE);
		CHECK(close_to(prediction.transaction_time, workload.transaction_time, 1e-6), "time");
		CHECK(close_to(prediction.throughput, workload.throughput, 1e-6), "throughput");
		CHECK(close_to(prediction.throughput_low, workload.throughput, 1e-6), "low");
		CHECK(close_to(prediction.throughput_high, workload.throughput, 1e-6), "high");
		same.rtt = 5;
		same.batch = 1;
		same.server_speed = 1;
		same.sessions = workload.sessions;
		same.round_trips = 4;
		prediction = predicted(&workload, same);
		CHECK(close_to(prediction.throughput, workload.throughput, 1e-6), "the same, in words");
	}
}

/* One session: the parts that change, change. */
static void
test_changes(void)
{
	LedgerTotals totals = plain_totals();
	Workload	workload = workload_of(&totals, 1);
	Change		change = NO_CHANGE;
	Prediction	prediction = predicted_rtt(&workload, 50);

	/* cold caches take no more than 0.5 ms for each round trip */
	CHECK(prediction.transaction_time > 203 && prediction.transaction_time < 205,
		  "%g", prediction.transaction_time);
	prediction = predicted_rtt(&workload, 0.5);
	CHECK(prediction.transaction_time < 5 && prediction.transaction_time > 3,
		  "%g", prediction.transaction_time);
	CHECK(prediction.throughput_low > 200 && prediction.throughput_low < 0.9 * prediction.throughput,
		  "less gets warmer: %g", prediction.throughput_low);
	CHECK(prediction.throughput_high > 1.02 * prediction.throughput, "or more does");
	CHECK(prediction.throughput_high < 350, "%g", prediction.throughput_high);

	change.round_trips = 2;
	prediction = predicted(&workload, change);
	CHECK(prediction.transaction_time <= 13 && prediction.transaction_time > 11,
		  "%g", prediction.transaction_time);
	change.batch = 4;
	CHECK(close_to(predicted(&workload, change).throughput, prediction.throughput, 1e-12),
		  "that goes first");
	change = NO_CHANGE;
	change.batch = 2;
	CHECK(close_to(predicted(&workload, change).throughput, prediction.throughput, 1e-9),
		  "two statements in each");
	change.batch = 4000;
	prediction = predicted(&workload, change);
	CHECK(prediction.transaction_time < 3.02 && prediction.transaction_time > 0.3,
		  "%g", prediction.transaction_time);

	change = NO_CHANGE;
	change.server_speed = 2;
	prediction = predicted(&workload, change);
	/* and the client waits less, which is worth some microseconds */
	CHECK(close_to(prediction.transaction_time, 23 - 0.4, 1e-3), "processors and files: %g",
		  prediction.transaction_time);
	CHECK(close_to(prediction.throughput_high, 1000 / (23 - 0.5), 1e-3), "and locks");
	change.server_speed = 1000;
	prediction = predicted(&workload, change);
	CHECK(prediction.transaction_time > 22.1, "the rest stays: %g", prediction.transaction_time);

	change = NO_CHANGE;
	change.sessions = 2;
	CHECK(close_to(predicted(&workload, change).throughput, 2 * workload.throughput, 1e-9),
		  "two processors");
	change.sessions = 100000;
	prediction = predicted(&workload, change);
	CHECK(prediction.throughput > 2 / 0.7 * 1000, "saturated: %g", prediction.throughput);
	CHECK(prediction.throughput < 7 * 2 / 0.7 * 1000, "and as warm as can be: %g",
		  prediction.throughput);
}

/*
 * 64 clients of pgbench on the server's two processors, 0.56 ms away, as they were
 * measured; and what their transactions took on longer paths.
 */
static void
test_together(void)
{
	static const struct
	{
		double		rtt;
		double		transaction_time;
	}			measured[] = {{1.053, 2.73}, {2.05, 3.12}, {5.055, 5.35}, {50.07, 50.74}};
	Workload	workload = {
		.transactions = 78122,
		.sessions = 63.23,
		.processors = 2,
		.statements = 1,
		.round_trips = 1,
		.rtt_known = true,
		.trip_time = 0.5664,
		.client_time = 0.7395,
		.processor_time = 0.0210,
		.run_queue_time = 1.2233,
		.on_cpu = 0.0429,
		.transaction_time = 2.5502,
		.throughput = 24794
	};

	for (unsigned i = 0; i < sizeof(measured) / sizeof(*measured); i++)
	{
		Prediction	prediction = predicted_rtt(&workload, measured[i].rtt);

		CHECK(close_to(prediction.transaction_time, measured[i].transaction_time, 0.05),
			  "%g ms away: %g", measured[i].rtt, prediction.transaction_time);
		CHECK(prediction.throughput_high > prediction.throughput &&
			  prediction.throughput_low < prediction.throughput, "what nobody knows");
	}
}

/*
 * Sessions that wait for one another on processors that are hardly used: the
 * demand is what the kernel has counted, and the wait is not for more work.
 */
static void
test_platoons(void)
{
	LedgerTotals totals = plain_totals();
	Workload	workload;
	Prediction	with;
	Prediction	without;
	Change		change = NO_CHANGE;

	totals.network *= 10;
	totals.run_queue = 5000 * MS;
	totals.run_queue_wait = 1900 * MS;
	workload = workload_of(&totals, 16);
	without = predicted_rtt(&workload, 0);
	totals.on_cpu = 500 * MS;
	workload = workload_of(&totals, 16);
	with = predicted_rtt(&workload, 0);
	CHECK(close_to(predicted(&workload, change).throughput, workload.throughput, 1e-6), "as it is");
	CHECK(with.throughput > 1.2 * without.throughput, "%g, %g", with.throughput, without.throughput);
	CHECK(with.throughput_low <= without.throughput * (1 + 1e-6), "or it is work: %g, %g",
		  with.throughput_low, without.throughput);
	/* as if they were one after the other */
	totals.on_cpu = 500000 * MS;
	workload = workload_of(&totals, 16);
	CHECK(close_to(predicted_rtt(&workload, 0).throughput, without.throughput, 1e-9),
		  "more than it can have been says nothing");
}

static double
any(double low, double high)
{
	return low * pow(high / low, random() / (double) RAND_MAX);
}

/*
 * 64 sessions of a program with one thread, which has 0.05 ms to do for each
 * transaction: all of its time, at 0.5 ms, and half of it at 10 ms.
 */
static void
test_clients_queue(void)
{
	double		alone = 0.05;
	double		rtt[] = {0.5, 10};
	Workload	workload[2];
	double		truth[2];

	for (int i = 0; i < 2; i++)
	{
		LedgerTotals totals;
		double		server = 0.01;
		double		time = fmax(64 * alone, rtt[i] + server + 2 * alone);

		truth[i] = 64 / time * 1000;
		memset(&totals, 0, sizeof(totals));
		totals.transactions = totals.requests = totals.statements = 1000;
		totals.network = (int64_t) (1000 * MS * rtt[i]);
		totals.exec = totals.exec_part[EXEC_CPU] = (int64_t) (1000 * MS * server);
		totals.client = (int64_t) (1000 * MS * (time - server - rtt[i]));
		CHECK(workload_from_totals(&workload[i], &totals, (int64_t) (rtt[i] * MS), true,
								   ledger_busy_total(&totals) / 64), "there is something");
		workload[i].processors = 2;
	}
	for (int i = 0; i < 2; i++)
	{
		Prediction	prediction = predicted_rtt(&workload[i], rtt[!i]);

		CHECK(prediction.throughput_low <= truth[!i] && truth[!i] <= prediction.throughput_high,
			  "it may be");
	}
	CHECK(predicted_rtt(&workload[0], 10).throughput < truth[1] / 1.1, "nobody can know");
}

/*
 * 64 sessions, 2 processors, always in use: 0.09 ms of them for a transaction, of
 * which the server has some, and the client, or somebody it needs, the rest.
 */
static void
test_clients_at_processors(void)
{
	double		needed = 0.09;
	double		time = 64 * needed / 2;
	LedgerTotals totals;
	Workload	workload;
	Prediction	shared;
	Prediction	apart;

	memset(&totals, 0, sizeof(totals));
	totals.transactions = totals.requests = totals.statements = 1000;
	totals.network = 500 * MS;
	totals.client = (int64_t) (1000 * MS * (time - 0.5) * 0.4);
	totals.exec = totals.exec_part[EXEC_CPU] = (int64_t) (1000 * MS * (time - 0.5) * 0.6);
	totals.run_queue = totals.exec * 9 / 10;
	CHECK(workload_from_totals(&workload, &totals, MS / 2, true,
							   ledger_busy_total(&totals) / 64), "there is something");
	workload.processors = 2;

	workload.on_cpu = needed / 2;
	shared = predicted_rtt(&workload, 10);
	CHECK(close_to(shared.transaction_time, 10 + needed, 0.05), "the client's wait was for processors");

	/* all of it the server's: then the client thinks, wherever it is */
	workload.on_cpu = needed;
	apart = predicted_rtt(&workload, 10);
	CHECK(apart.transaction_time > 10 + 0.9 * workload.client_time, "the client thinks");
	CHECK(shared.throughput_low < apart.throughput * 1.03, "so it may have done before");
}

/*
 * On a Unix-domain socket a round may take no time but at the processors, however
 * the parts are rounded.
 */
static void
test_no_delay(void)
{
	for (int i = 0; i < 1000; i++)
	{
		LedgerTotals totals;
		Workload	workload;
		Prediction	prediction;

		memset(&totals, 0, sizeof(totals));
		totals.transactions = totals.requests = totals.statements = 1000 + random() % 1000;
		totals.client = (int64_t) (any(1, 10000) * MS);
		totals.exec = totals.exec_part[EXEC_CPU] = (int64_t) (any(1, 10000) * MS);
		totals.run_queue = totals.client + totals.exec;
		CHECK(workload_from_totals(&workload, &totals, 0, false,
								   ledger_busy_total(&totals) / 64), "there is something");
		workload.processors = 2;
		/* of the client's own process, or not known */
		workload.on_cpu = i % 2 * workload.processor_time / 10;
		prediction = predicted(&workload, NO_CHANGE);
		CHECK(close_to(prediction.throughput, workload.throughput, 1e-3), "%g, not %g",
			  prediction.throughput, workload.throughput);
	}
}

/* Relations that hold of any workload. */
static void
test_relations(void)
{
	LedgerTotals totals = plain_totals();
	Workload	workload;
	Change		less = NO_CHANGE;
	Change		more;
	double		slack = 1 + 1e-6;

	totals.client = (int64_t) (any(1, 10000) * MS);
	totals.exec = (int64_t) (any(1, 10000) * MS);
	totals.exec_part[EXEC_CPU] = totals.exec * (random() % 100) / 100;
	totals.exec_part[EXEC_IO] = (totals.exec - totals.exec_part[EXEC_CPU]) * (random() % 100) / 100;
	totals.exec_part[EXEC_LOCK] = 0;
	totals.run_queue = (int64_t) (any(1, 10000) * MS);
	totals.run_queue_wait = totals.run_queue < totals.client ? totals.run_queue : totals.client;
	totals.on_cpu = random() % 1000 * MS;
	totals.bytes_sent = random() % 2 * INT64_C(1000000000);
	totals.network = (int64_t) (any(10000, 40000) * MS);
	workload = workload_of(&totals, any(1, 300));

	less.rtt = any(0.01, 20);
	more = less;
	more.rtt *= any(1.01, 100);
	CHECK(predicted(&workload, more).throughput <= predicted(&workload, less).throughput * slack,
		  "a longer path, not more throughput");
	CHECK(predicted(&workload, more).transaction_time * slack >= predicted(&workload, less).transaction_time,
		  "nor shorter transactions");
	more = less;
	more.batch = any(1, 1000);
	CHECK(predicted(&workload, more).throughput * slack >= predicted(&workload, less).throughput,
		  "fewer round trips, not less throughput");
	more = less;
	more.server_speed = any(1, 1000);
	CHECK(predicted(&workload, more).throughput * slack >= predicted(&workload, less).throughput,
		  "a faster server, not less throughput");
	less.sessions = any(1, 1000);
	more = less;
	more.sessions *= any(1, 10);
	CHECK(predicted(&workload, more).throughput * slack >= predicted(&workload, less).throughput,
		  "more sessions, not less throughput");
}

int
main(void)
{
	srandom(1);
	test_workload();
	test_unsampled();
	test_network();
	test_nothing();
	test_identity();
	test_changes();
	test_together();
	test_platoons();
	test_clients_queue();
	test_clients_at_processors();
	test_no_delay();
	for (int i = 0; i < 300; i++)
		test_relations();
	return CHECKS_DONE("prediction");
}
