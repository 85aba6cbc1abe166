/*-------------------------------------------------------------------------
 *
 * prediction.c
 *	  See prediction.h.
 *
 * The measured workload fits the model by construction.  What is counted tells
 * how long a transaction was at the processors, run queue included; which demand
 * causes that, with so many sessions and so much delay, is computed backwards
 * (mva_demand()).  So what else runs on the processors, and what the model does
 * not know of how they are shared, is in the demand, and a prediction without a
 * change is what was measured.
 *
 * Warm and cold.  Who has waited comes back to cold caches, and to a processor
 * that may have to wake up: the longer the wait, the more so.  Measured with
 * pgbench -S, over waits from 0.04 to 50 ms, an exchange takes
 *
 *		warm + COLD_COST * log10(1 + wait / COLD_WAIT)
 *
 * and a client's turn does likewise.  How much of what was measured is due to
 * that depends on the machine, and on the statement: large ones are slowed down
 * by no more than small ones, very small ones by no more than COLD_SHARE times
 * their warm time.  A prediction changes the waits, and so what is cold; and if
 * several statements share a round trip, only one of them is.
 *
 * What nobody can know from the account makes the difference between
 * throughput_low and throughput_high: how much is due to cold caches (nothing,
 * or COLD_DOUBT times as much as predicted), whether data under way takes longer
 * on a longer path (a window's worth of data for each round trip; or not at all,
 * where bandwidth is the limit), and whether waits for locks become shorter if
 * the server is faster.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "prediction.h"

#include <math.h>

#include "mva.h"

#define NS_PER_MS		1e6
#define MS_PER_S		1000.0

/* The law of cold caches: times in ms, per factor of ten. */
#define COLD_WAIT		0.25
#define COLD_COST		0.073
#define COLD_SHARE		1.83
#define COLD_DOUBT		1.5

/* So much of a response has been sent before the backend begins to wait. */
#define LARGE_RESPONSE	8192

/* An idle wait is at least this long, by default. */
#define IDLE_WAIT_NS	INT64_C(1000000000)

/* Throughput, and with it the waits, are found by iteration. */
#define ITERATIONS		50
#define PRECISION		1e-12

/* ---------------------------------------------------------------------------
 * What was measured
 * ---------------------------------------------------------------------------
 */

/* Execution by what the server did, unsampled time included: ns. */
typedef struct ExecParts
{
	double		processors;
	double		io;
	double		held_up;
} ExecParts;

/*
 * What no sample tells is distributed as what samples do tell, if these are a
 * tenth of the whole; otherwise it counts as work.
 */
static ExecParts
exec_parts(const LedgerTotals *totals)
{
	double		sampled = exec_parts_sum(totals->exec_part);
	double		cpu = totals->exec_part[EXEC_CPU];
	double		io = totals->exec_part[EXEC_IO];
	double		factor = 1;
	ExecParts	parts;

	if (sampled > 0 && sampled >= 0.1 * totals->exec)
		factor = totals->exec / sampled;
	else
		cpu += totals->exec - sampled;
	parts.processors = cpu * factor;
	parts.io = io * factor;
	parts.held_up = fmax(totals->exec - parts.processors - parts.io, 0);
	return parts;
}

/* The server's work: execution and system calls, without what follows. */
static double
work(const LedgerTotals *totals, const ExecParts *parts)
{
	return parts->processors + (totals->send - totals->send_blocked);
}

/* Time in the run queue that is in there: the rest was before requests were read. */
static double
run_queue_of_work(const LedgerTotals *totals, double work)
{
	return fmin(fmax(totals->run_queue - totals->run_queue_wait, 0), work);
}

/* The time that an account's sessions were on processors, as far as is known: ns. */
double
processor_time_of_totals(const LedgerTotals *totals)
{
	ExecParts	parts = exec_parts(totals);
	double		all = work(totals, &parts);

	return all - run_queue_of_work(totals, all);
}

/*
 * How many waits of an account had a round trip: all, but for those that were
 * idle, of which only the sum is known.
 */
static double
paid_round_trips(const LedgerTotals *totals, int64_t rtt)
{
	double		round_trips = ledger_round_trips(totals);
	double		idle = (double) (totals->idle / IDLE_WAIT_NS);

	if (rtt <= 0 || idle == 0)
		return round_trips;
	return fmin(fmax(totals->network / (double) rtt, fmax(round_trips - idle, 0)),
				round_trips);
}

/*
 * Of the network's time between exchanges, what is not round trips: large
 * responses, still on their way.
 */
static double
drain_time(const LedgerTotals *totals, double round_trips, int64_t rtt)
{
	if (totals->bytes_sent < round_trips * LARGE_RESPONSE)
		return 0;
	return fmax(totals->network - round_trips * rtt, 0);
}

/*
 * The mean transaction of an account, or the mean request if it has no
 * transactions; false if there is neither.
 *
 * "rtt" is the round-trip time in ns, 0 if it is not known; "has_network" is
 * false on a Unix-domain socket, where it is known to be none.  "busy_time" is
 * for how long at least one session was not idle, in ns: for a single session,
 * that is what the account adds up to.
 */
bool
workload_from_totals(Workload *workload, const LedgerTotals *totals,
					 int64_t rtt, bool has_network, int64_t busy_time)
{
	ExecParts	exec = exec_parts(totals);
	double		all = work(totals, &exec);
	double		in_run_queue = run_queue_of_work(totals, all);
	double		count;
	double		trips;
	double		drain;
	double		whole = ledger_busy_total(totals);
	double		ms;

	workload->per_request = totals->transactions <= 0;
	workload->transactions = workload->per_request ? totals->requests : totals->transactions;
	if (workload->transactions <= 0 || whole <= 0)
		return false;
	count = workload->transactions;
	ms = NS_PER_MS * count;
	trips = paid_round_trips(totals, rtt);
	drain = drain_time(totals, trips, rtt);

	workload->sessions = busy_time > 0 ? fmax(whole / busy_time, 1) : 1;
	workload->processors = 1;
	workload->statements = totals->statements / count;
	workload->round_trips = trips / count;
	workload->rtt_known = rtt > 0 || !has_network;
	workload->trip_time = (totals->network - drain) / ms;
	workload->stream_time = (ledger_network_part(totals) - totals->network + drain) / ms;
	workload->client_time = ledger_client_part(totals) / ms;
	workload->processor_time = (all - in_run_queue) / ms;
	workload->run_queue_time = (totals->run_queue_wait + in_run_queue) / ms;
	workload->io_time = exec.io / ms;
	workload->held_up_time = exec.held_up / ms;
	workload->transaction_time = whole / ms;
	workload->throughput = workload->sessions / workload->transaction_time * MS_PER_S;
	return true;
}

double
workload_server_time(const Workload *workload)
{
	return workload->processor_time + workload->run_queue_time + workload->io_time +
		workload->held_up_time;
}

double
workload_network_time(const Workload *workload)
{
	return workload->trip_time + workload->stream_time;
}

/* ---------------------------------------------------------------------------
 * What it would be
 * ---------------------------------------------------------------------------
 */

/* What the account does not tell. */
typedef struct Assumptions
{
	double		cold;			/* so many times what the law says */
	bool		window_limited; /* data under way takes as long as the path */
	bool		locks_are_work; /* waits for locks are for others' work */
} Assumptions;

/* What a turn of the server or the client takes, after which wait. */
typedef struct Turn
{
	double		warm;			/* in all of a transaction */
	double		cold;			/* for each round trip, and factor of ten */
} Turn;

static double
tens(double wait)
{
	return log10(1 + fmax(wait, 0) / COLD_WAIT);
}

static Turn
measured_turn(double time, double round_trips, double wait, double cold)
{
	double		each = time / round_trips;
	Turn		turn;

	turn.cold = fmin(cold * COLD_COST, cold * COLD_SHARE * each / (1 + cold * COLD_SHARE * tens(wait)));

	/*
	 * the smaller of the two: where the first is, this is more than the
	 * share's
	 */
	turn.warm = (each - turn.cold * tens(wait)) * round_trips;
	return turn;
}

static double
turn_time(const Turn *turn, double round_trips, double wait)
{
	return turn->warm + round_trips * turn->cold * tens(wait);
}

static double
changed_round_trips(const Workload *workload, const Change *change)
{
	double		shared = workload->statements / change->batch;

	if (!isnan(change->round_trips))
		return change->round_trips;
	if (isnan(change->batch) || change->batch <= 1)
		return workload->round_trips;
	return fmin(shared, workload->round_trips);
}

static double
changed_trip_time(const Workload *workload, const Change *change, double round_trips)
{
	if (!isnan(change->rtt))
		return round_trips * change->rtt;
	if (workload->round_trips > 0)
		return workload->trip_time * round_trips / workload->round_trips;
	return workload->trip_time;
}

static double
changed_stream_time(const Workload *workload, const Change *change,
					const Assumptions *assumptions)
{
	double		rtt = workload->trip_time / workload->round_trips;

	if (!assumptions->window_limited || isnan(change->rtt) || !(rtt > 0))
		return workload->stream_time;
	return workload->stream_time * change->rtt / rtt;
}

/* How many times the processors' work is what the sum of their time says. */
static double
fitted_demand(const Workload *workload)
{
	double		residence = workload->processor_time + workload->run_queue_time;
	MvaNetwork	measured = {
		.sessions = workload->sessions,
		.delay = workload->transaction_time - residence,
		.processors = workload->processors
	};

	return mva_demand(&measured, residence);
}

/*
 * Transaction time and throughput under some assumptions.
 *
 * How cold a turn is depends on how long the others take, and the other way
 * round.  The dependency is weak, and a few iterations settle it.  Time in the
 * run queue does not count: then somebody else is on the processor, and it is
 * not asleep.
 */
static MvaSolution
solve(const Workload *workload, const Change *change, const Assumptions *assumptions,
	  double demand, double *transaction_time)
{
	double		before = workload->round_trips;
	double		round_trips = changed_round_trips(workload, change);
	double		speed = isnan(change->server_speed) ? 1 : change->server_speed;
	double		io = workload->io_time / speed;
	double		held_up = workload->held_up_time / (assumptions->locks_are_work ? speed : 1);
	double		network = changed_trip_time(workload, change, round_trips) +
		changed_stream_time(workload, change, assumptions);
	double		server_wait = workload_network_time(workload) + workload->client_time;
	double		client_wait = workload_network_time(workload) + workload->processor_time +
		workload->io_time + workload->held_up_time;
	double		fit = workload->processor_time > 0 ? demand / workload->processor_time : 0;
	Turn		server = {.warm = workload->processor_time};
	Turn		client = {.warm = workload->client_time};
	MvaNetwork	network_of_queues = {
		.sessions = isnan(change->sessions) ? workload->sessions : change->sessions,
		.processors = workload->processors
	};
	MvaSolution solution;
	double		client_time;
	double		last = 0;

	if (before > 0)
	{
		server = measured_turn(workload->processor_time, before, server_wait / before, assumptions->cold);
		client = measured_turn(workload->client_time, before, client_wait / before, assumptions->cold);
		server_wait *= round_trips / before;
		client_wait *= round_trips / before;
	}
	for (int i = 0; i < ITERATIONS; i++)
	{
		double		work = server.warm;

		client_time = client.warm;
		if (round_trips > 0)
		{
			work = turn_time(&server, round_trips, server_wait / round_trips);
			client_time = turn_time(&client, round_trips, client_wait / round_trips);
		}
		network_of_queues.demand = fit > 0 ? work * fit / speed : demand / speed;
		network_of_queues.delay = network + client_time + io + held_up;
		solution = mva_solve(&network_of_queues);
		*transaction_time = network_of_queues.delay + solution.residence;
		if (fabs(*transaction_time - last) <= PRECISION * last)
			break;
		last = *transaction_time;
		server_wait = network + client_time;
		client_wait = network + work / speed + io + held_up;
	}
	return solution;
}

/* What the account does not tell, at its most likely and its extremes. */
static const Assumptions likely = {.cold = 1};
static const Assumptions extremes[] = {
	{.cold = 0},
	{.cold = COLD_DOUBT},
	{.cold = 0,.window_limited = true,.locks_are_work = true},
	{.cold = COLD_DOUBT,.window_limited = true,.locks_are_work = true},
};

/*
 * A transaction's time, and throughput, after a change; false if it is not
 * known: there were too few transactions, or the change is about what was not
 * measured.
 */
bool
predict(const Workload *workload, const Change *change, Prediction *prediction)
{
	double		demand;
	MvaSolution solution;

	if (workload->transactions < PREDICTION_LEAST)
		return false;
	if (!isnan(change->rtt) && !workload->rtt_known)
		return false;
	if (!isnan(change->batch) && change->batch > 1 && workload->statements <= 0)
		return false;

	demand = fitted_demand(workload);
	solution = solve(workload, change, &likely, demand, &prediction->transaction_time);
	prediction->throughput = solution.throughput * MS_PER_S;
	prediction->throughput_low = prediction->throughput;
	prediction->throughput_high = prediction->throughput;
	for (unsigned i = 0; i < sizeof(extremes) / sizeof(*extremes); i++)
	{
		double		time;

		solution = solve(workload, change, &extremes[i], demand, &time);
		prediction->throughput_low = fmin(prediction->throughput_low,
										  solution.throughput * MS_PER_S);
		prediction->throughput_high = fmax(prediction->throughput_high,
										   solution.throughput * MS_PER_S);
	}
	return isfinite(prediction->throughput_high);
}
