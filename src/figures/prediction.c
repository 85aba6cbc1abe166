/*-------------------------------------------------------------------------
 *
 * prediction.c
 *	  See prediction.h.
 *
 * The measured workload fits the model by construction: a prediction without a
 * change is what was measured.  What is counted tells how long a transaction was
 * at the processors, run queue included; which demand on them causes that, with so
 * many sessions and so much delay, is computed backwards (mva_demand()).  See
 * measured_station().
 *
 * Warm and cold.  Who has waited comes back to cold caches, and to a processor
 * that may have to wake up: the longer the wait, the more so.  Measured with
 * pgbench, prepared and not, SELECT 1 and index scans, one at a time and up to 100
 * of them in a pipeline, after waits from 0.1 to 50 ms, with processors that were
 * awake and others that were not, an exchange takes, with
 * t = log10(1 + wait / 0.25 ms),
 *
 *		0.02 ms						for being an exchange: messages, a transaction
 *		statement * (1 + 2 * t)		for its first statement
 *		statement					for each further one
 *
 * and a client's turn up to 0.15 ms * (1 + t), which is for being a turn, however
 * many responses there are: being woken up, and a process's own caches.  What it
 * takes beyond that is for its statements, the first one 1 + 3.7 * t times as much.
 * Sessions of one client keep it warm for each other.  So most of what a small statement
 * takes after a wait is not there if it shares a round trip with others, nor if
 * the wait is short.  How much colder it can become does not depend on what it
 * does for long: the caches have the same size for all (0.2 ms for the server, and
 * 0.05 for the client, for each factor of ten).
 * And what counts is the processor's wait: other sessions keep it awake, and warm.
 *
 * Together.  What is done at the processors beside the sessions (by clients on the
 * same machine, a pooler, the kernel's network) is done for several transactions at
 * once where these wait for each other.  Measured with 16 to 64 clients of pgbench
 * on the same two processors, it takes of each 1 / (1 + queue) ^ 0.2 as much.
 *
 * What nobody can know from the account makes the difference between
 * throughput_low and throughput_high: how much the law applies to this machine
 * and these statements, whether sessions share a client's process, and wait for
 * each other there, what they wait for at the processors, whether data under way
 * takes longer on a longer path (a window's worth of data for each round trip; or
 * not at all, where bandwidth is the limit), and whether waits for locks become
 * shorter if the server is faster.
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

/* Waits are counted in factors of ten of this: ms. */
#define WAIT_UNIT		0.25

/* However much the law says, some of a turn is for the statement. */
#define FIXED_MOST		0.98

/* However long the run queue is, some of the work is work. */
#define WORK_QUEUED_MOST	0.8

/* How fast platoons vanish, the more processors are in use; as it was measured. */
#define IN_USE_POWER	2.5

/* How much less others do for each transaction, the more wait; as it was measured. */
#define TOGETHER_POWER	0.2

/*
 * The law applies less, or more, than it says.  How much colder a turn gets for
 * being one applies by the square of that.
 */
#define LAW_LEAST		(1.0 / 3)
#define LAW_MOST		2.0

/* So much of a response has been sent before the backend begins to wait. */
#define LARGE_RESPONSE	8192

/* An idle wait is at least this long, by default. */
#define IDLE_WAIT_NS	INT64_C(1000000000)

/* Throughput, and with it the waits, are found by iteration. */
#define HALVINGS		60
#define ITERATIONS		100
#define PRECISION		1e-10

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

/*
 * Time in the run queue that is in there.  run_queue_wait is the part of it that
 * is surely not, but less than the whole: what there was beyond that and all the
 * work was in waits, too.
 */
static double
run_queue_of_work(const LedgerTotals *totals, double work)
{
	return fmin(fmax(totals->run_queue - totals->run_queue_wait, 0), WORK_QUEUED_MOST * work);
}

/* Time in the run queue that was in the client's time. */
static double
run_queue_of_waits(const LedgerTotals *totals, double in_work)
{
	return fmax(fmin(totals->run_queue - in_work, totals->client), totals->run_queue_wait);
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
	int64_t		idle_waits = totals->idle / IDLE_WAIT_NS;
	double		idle = (double) idle_waits;

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
	double		in_work = run_queue_of_work(totals, all);
	double		in_waits = run_queue_of_waits(totals, in_work);
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
	workload->client_time = (ledger_client_part(totals) + totals->run_queue_wait - in_waits) / ms;
	workload->processor_time = (all - in_work) / ms;
	workload->run_queue_time = (in_waits + in_work) / ms;
	workload->on_cpu = totals->on_cpu / ms;
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
	double		law;			/* applies to this degree */
	double		together;		/* TOGETHER_POWER, or another */
	bool		window_limited; /* data under way takes as long as the path */
	bool		locks_are_work; /* waits for locks are for others' work */
	bool		clients_share;	/* the sessions are of one program, which the
								 * others keep warm */
	bool		no_platoons;	/* what sessions wait for is work */
	bool		clients_queue;	/* clients wait for each other: a program with
								 * one thread, or no processor to spare */
} Assumptions;

/* What turns cost: ms, and what they cost more after waits, for each factor of ten. */
typedef struct Law
{
	double		fixed;			/* each turn ... */
	double		fixed_cold;		/* ... so many times as much more */
	double		cold;			/* its first statement, likewise ... */
	double		cold_most;		/* ... but so much at most: ms */
} Law;

static const Law server_law = {0.02, 0, 2, 0.2};
static const Law client_law = {0.15, 1, 3.7, 0.05};

/* What the turns of the server, or of the client, take in a transaction. */
typedef struct Turns
{
	double		statements;		/* for all statements, if it was warm */
	double		each;			/* and for each turn, ... */
	double		cold;			/* ... and that, after each factor of ten of
								 * waiting */
} Turns;

static double
tens(double wait)
{
	return log10(1 + fmax(wait, 0) / WAIT_UNIT);
}

/*
 * Takes apart what so many turns with so many statements took, if the law
 * applies to some degree.
 */
static Turns
measured_turns(const Law *law, double degree, double time, double round_trips,
			   double statements, double wait)
{
	double		turn = time / round_trips;
	double		in_turn = fmax(statements / round_trips, 1);
	double		fixed_cold = degree * law->fixed_cold;
	double		cold = degree * law->cold;
	double		fixed = fmin(degree * law->fixed * (1 + fixed_cold * tens(wait)), FIXED_MOST * turn);
	double		statement = (turn - fixed) / (in_turn + cold * tens(wait));
	Turns		turns;

	cold *= statement;
	if (cold > degree * law->cold_most)
	{
		cold = degree * law->cold_most;
		statement = (turn - fixed - cold * tens(wait)) / in_turn;
	}
	turns.statements = statement * in_turn * round_trips;
	turns.each = fixed / (1 + fixed_cold * tens(wait));
	turns.cold = turns.each * fixed_cold + cold;
	return turns;
}

static double
turns_time(const Turns *turns, double round_trips, double wait)
{
	if (!(round_trips > 0))
		return turns->statements;
	return turns->statements + round_trips * (turns->each + turns->cold * tens(wait));
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

/* What a transaction does at the processors. */
typedef struct Station
{
	double		demand;
	double		platoon;		/* how much longer it is there than it would
								 * be if sessions did not come in platoons */
	double		client;			/* the part of the client's time that is spent
								 * there, too */
	double		beside;			/* the share of the demand that is not the
								 * sessions' own */
	double		queue;			/* sessions there, for each processor */
} Station;

static double
residence_beside(const Workload *workload, double delay, double demand)
{
	MvaNetwork	network = {workload->sessions, delay, demand, workload->processors};

	return mva_solve(&network).residence;
}

/* How many sessions are at each processor, if that is where they are for so long. */
static double
queue_of(double sessions, double processors, double residence, double transaction_time)
{
	return sessions * residence / transaction_time / processors;
}

/*
 * How long sessions wait for each other beyond what the network of queues says:
 * so that all of it takes as long as it did.
 */
static double
measured_platoon(const Workload *workload, double residence, double demand)
{
	double		delay = workload->transaction_time - residence;
	double		low = 0;
	double		high = residence;

	if (residence_beside(workload, delay, demand) >= residence)
		return 0;
	for (int i = 0; i < HALVINGS; i++)
	{
		double		middle = (low + high) / 2;

		if (residence_beside(workload, delay + middle, demand) + middle > residence)
			high = middle;
		else
			low = middle;
	}
	return (low + high) / 2;
}

/*
 * How much of the client's time is waiting for the same processors.  If these are
 * always in use, and by the sessions for half of that or less, then who else uses
 * them does so because of the sessions: clients on the same machine, or a pooler.
 * What other client groups take has been left out beforehand.
 */
static double
client_at_processors(const Workload *workload, double demand, double in_use)
{
	double		unexplained = 1 - workload->on_cpu / demand;

	return workload->client_time * in_use * fmin(2 * unexplained, 1);
}

/*
 * The demand on processors in each transaction, and what it does not explain.
 *
 * With a demand as large as this network of queues needs it, transactions take as
 * long at the processors as they did.  That contains what takes the processors'
 * time beside the sessions, and is right where processors are always in use.
 * Where they hardly are, what sessions wait for is one another, after they have
 * come in a platoon (they do so for long where each of them is delayed by the same
 * time); then the demand is what the kernel has counted.  Between the two, some of
 * the time is a platoon's, and the demand is what explains the rest.
 */
static Station
measured_station(const Workload *workload, const Assumptions *assumptions)
{
	double		residence = workload->processor_time + workload->run_queue_time;
	MvaNetwork	measured = {
		.sessions = workload->sessions,
		.delay = workload->transaction_time - residence,
		.processors = workload->processors
	};
	Station		station = {.demand = mva_demand(&measured, residence)};
	double		in_use;

	if (assumptions->no_platoons || workload->sessions <= 1 ||
		workload->on_cpu <= 0 || workload->on_cpu >= station.demand)
		return station;
	in_use = fmin(workload->throughput / MS_PER_S * station.demand / workload->processors, 1);
	in_use = pow(in_use, IN_USE_POWER);
	station.client = client_at_processors(workload, station.demand, in_use);
	residence += station.client;
	station.platoon = (1 - in_use) * measured_platoon(workload, residence, workload->on_cpu);
	measured.delay += station.platoon - station.client;
	station.demand = mva_demand(&measured, residence - station.platoon);
	station.beside = fmax(1 - workload->on_cpu / station.demand, 0);
	station.queue = queue_of(workload->sessions, workload->processors, residence - station.platoon,
							 workload->transaction_time);
	return station;
}

/* The demand where so many wait: what is done beside the sessions is done for several at once. */
static double
changed_demand(const Station *station, const Assumptions *assumptions, double demand, double queue)
{
	if (station->beside <= 0)
		return demand;
	return demand * (1 - station->beside +
					 station->beside * pow((1 + station->queue) / (1 + queue), assumptions->together));
}

/* Who comes in a platoon waits for the others' work. */
static double
changed_platoon(const Workload *workload, const Station *station, double demand, double sessions)
{
	if (station->platoon <= 0)
		return 0;
	return station->platoon * demand / station->demand *
		fmin(fmax(sessions - 1, 0) / (workload->sessions - 1), sessions / workload->sessions);
}

/*
 * For how long a processor, and what is in its caches, has not been used when a
 * session needs it that has waited for some time in each transaction.
 */
static double
processor_wait(double wait, double round_trips, double sessions, double processors)
{
	return wait / round_trips / fmax(sessions / processors, 1);
}

/* How the account comes apart under some assumptions. */
typedef struct Model
{
	Turns		server;
	Turns		client;
	double		server_wait;	/* in a transaction */
	double		client_wait;
} Model;

/*
 * What the client itself does in a transaction.  If it is one for all sessions, the
 * rest of its time is waiting for what it does for the others.
 */
static double
measured_client(const Workload *workload, const Assumptions *assumptions, double client_time)
{
	MvaNetwork	measured = {
		.sessions = workload->sessions,
		.delay = workload->transaction_time - client_time,
		.processors = 1
	};

	return assumptions->clients_queue ? mva_demand(&measured, client_time) : client_time;
}

/* How long a transaction takes at its client, if that does so much for it. */
static double
time_at_client(const Assumptions *assumptions, double sessions, double elsewhere, double demand)
{
	MvaNetwork	client = {sessions, elsewhere, demand, 1};

	return assumptions->clients_queue ? mva_solve(&client).residence : demand;
}

static Model
measured_model(const Workload *workload, const Assumptions *assumptions, const Station *station)
{
	double		demand = station->demand;
	double		own_time = workload->client_time - station->client;
	double		client_time = measured_client(workload, assumptions, own_time);
	double		trips = workload->round_trips;
	double		network = workload_network_time(workload);
	double		clients = assumptions->clients_share ? fmax(workload->sessions, 1) : 1;
	Model		model = {
		.server = {.statements = demand},
		.client = {.statements = client_time},
		.server_wait = network + own_time,
		.client_wait = network + demand + workload->io_time + workload->held_up_time
	};

	if (trips > 0)
	{
		model.server = measured_turns(&server_law, assumptions->law, demand, trips, workload->statements,
									  processor_wait(model.server_wait, trips, workload->sessions,
													 workload->processors));
		model.client = measured_turns(&client_law, assumptions->law / clients, client_time, trips,
									  workload->statements, model.client_wait / trips);
	}
	return model;
}

/*
 * Transaction time and throughput under some assumptions.
 *
 * How cold a turn is depends on how long the others take, and the other way
 * round.  The dependency is weak, and some iterations settle it.  Time in the run
 * queue does not count: then somebody else is on the processor.
 */
static MvaSolution
solve(const Workload *workload, const Change *change, const Assumptions *assumptions,
	  double *transaction_time)
{
	double		round_trips = changed_round_trips(workload, change);
	double		speed = isnan(change->server_speed) ? 1 : change->server_speed;
	double		network = changed_trip_time(workload, change, round_trips) +
		changed_stream_time(workload, change, assumptions);
	double		held_up = workload->io_time / speed +
		workload->held_up_time / (assumptions->locks_are_work ? speed : 1);
	Station		station = measured_station(workload, assumptions);
	Model		model = measured_model(workload, assumptions, &station);
	MvaNetwork	queues = {
		.sessions = isnan(change->sessions) ? workload->sessions : change->sessions,
		.processors = workload->processors
	};
	MvaSolution solution;
	double		client = workload->client_time - station.client;
	double		elsewhere = workload->transaction_time - client;
	double		queue = station.queue;
	double		last = 0;

	for (int i = 0; i < ITERATIONS; i++)
	{
		double		client_demand = turns_time(&model.client, round_trips, model.client_wait / round_trips);
		double		wait = processor_wait(model.server_wait, round_trips, queues.sessions,
										  queues.processors);

		/* half of the way: each station's time depends on the other's */
		client = (client + time_at_client(assumptions, queues.sessions, elsewhere, client_demand)) / 2;
		queues.demand = changed_demand(&station, assumptions,
									   turns_time(&model.server, round_trips, wait) / speed, queue);
		queues.delay = network + client + held_up +
			changed_platoon(workload, &station, queues.demand, queues.sessions);
		solution = mva_solve(&queues);
		*transaction_time = queues.delay + solution.residence;
		elsewhere = *transaction_time - client;
		queue = (queue + queue_of(queues.sessions, queues.processors, solution.residence,
								  *transaction_time)) / 2;
		if (fabs(*transaction_time - last) <= PRECISION * last)
			break;
		last = *transaction_time;
		model.server_wait = network + client;
		model.client_wait = network + queues.demand + held_up;
	}
	return solution;
}

/* What the account does not tell, at its most likely and its extremes. */
#define LIKELY	.together = TOGETHER_POWER, .clients_share = true

static const Assumptions likely = {.law = 1, LIKELY};
static const Assumptions extremes[] = {
	{.law = LAW_LEAST, LIKELY},
	{.law = LAW_MOST, LIKELY},
	{.law = LAW_MOST,.together = TOGETHER_POWER},
	{.law = 1,.clients_share = true},
	{.law = 1,.together = 2 * TOGETHER_POWER,.clients_share = true},
	{.law = 1, LIKELY,.no_platoons = true},
	{.law = 1, LIKELY,.clients_queue = true},
	{.law = LAW_LEAST, LIKELY,.window_limited = true,.locks_are_work = true},
	{.law = LAW_MOST, LIKELY,.window_limited = true,.locks_are_work = true},
	{.law = LAW_MOST,.together = TOGETHER_POWER,.window_limited = true,.locks_are_work = true},
};

/*
 * A transaction's time, and throughput, after a change; false if it is not
 * known: there were too few transactions, or the change is about what was not
 * measured.
 */
bool
predict(const Workload *workload, const Change *change, Prediction *prediction)
{
	MvaSolution solution;

	if (workload->transactions < PREDICTION_LEAST)
		return false;
	if (!isnan(change->rtt) && !workload->rtt_known)
		return false;
	if (!isnan(change->batch) && change->batch > 1 && workload->statements <= 0)
		return false;

	solution = solve(workload, change, &likely, &prediction->transaction_time);
	prediction->throughput = solution.throughput * MS_PER_S;
	prediction->throughput_low = prediction->throughput;
	prediction->throughput_high = prediction->throughput;
	for (unsigned i = 0; i < sizeof(extremes) / sizeof(*extremes); i++)
	{
		double		time;

		solution = solve(workload, change, &extremes[i], &time);
		prediction->throughput_low = fmin(prediction->throughput_low,
										  solution.throughput * MS_PER_S);
		prediction->throughput_high = fmax(prediction->throughput_high,
										   solution.throughput * MS_PER_S);
	}
	return isfinite(prediction->throughput_high);
}
