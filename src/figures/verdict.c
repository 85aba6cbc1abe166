/*-------------------------------------------------------------------------
 *
 * verdict.c
 *	  See verdict.h.
 *
 * One table has all rules.  Several may look at the same time of a subject;
 * then the first that applies has it, so that no time is lost twice: round
 * trips that repeat a statement are not chatty as well.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "verdict.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define NS_PER_SECOND	INT64_C(1000000000)

/* Which time of a subject a rule is about. */
typedef enum RuleTime
{
	TIME_OF_OTHERS = 0,			/* what others waited */
	TIME_OF_CLIENT,				/* thinking */
	TIME_OF_TRIPS,				/* round trips */
	TIME_OF_CONNECTING,
	TIME_OF_SENDING,
	TIME_OF_RECEIVING,
	TIME_OF_EXECUTION,
	TIME_OF_PROCESSORS,			/* waiting for one */
	NO_TIME,					/* what is lost is something else */
	NUM_RULE_TIMES
} RuleTime;

typedef struct Rule
{
	const char *name;
	RuleTime	time;
	unsigned	subjects;		/* of VerdictSubject */

	/* Does it apply?  Fills in what was lost, and the saving. */
	bool		(*applies) (const VerdictFigures *figures, VerdictFinding *finding);
	int			(*evidence) (const VerdictFigures *figures, const VerdictFinding *finding,
							 char *text, size_t size);

	/* What to do: it depends on the figures, or is the same for all. */
	const char *(*choose_advice) (const VerdictFigures *figures, const VerdictFinding *finding);
	const char *advice;

	/*
	 * What would be different then; returns which part of what that saves is
	 * this finding's, 0 if it is not that.  NULL: nothing that is predicted.
	 */
	double		(*cure) (const VerdictFigures *figures, const VerdictFinding *finding,
						 const Workload *workload, Change *change);
} Rule;

static inline int64_t
min64(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static inline int64_t
max64(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* ---------------------------------------------------------------------------
 * What the figures say
 * ---------------------------------------------------------------------------
 */

/* Is it so many percent of the whole, at least? */
static inline bool
has_share(int64_t part, int64_t whole, int percent)
{
	return whole > 0 && (double) part * 100 >= (double) whole * percent;
}

static inline int64_t
at_least_one(int64_t count)
{
	return max64(count, 1);
}

/*
 * Of waits in transactions, what was the client's.  One wait comes after each
 * transaction, the others are inside.
 */
static int64_t
think_in_xact(const VerdictFigures *figures)
{
	const LedgerTotals *totals = &figures->totals;
	double		inside = 1 - (double) totals->transactions / at_least_one(totals->requests);
	int64_t		network = inside > 0 ? (int64_t) (totals->network * inside) : 0;

	return max64(min64(totals->in_xact_wait - network, totals->client), 0);
}

/* The time of its work: neither idle nor between transactions. */
static int64_t
working_time(const VerdictFigures *figures)
{
	return ledger_busy_total(&figures->totals) - figures->totals.client +
		think_in_xact(figures);
}

/* Of the network's time in waits: round trips, and what findings have of them. */
static int64_t
trips_time(const VerdictFigures *figures)
{
	int64_t		network = figures->totals.network;

	if (figures->rtt > 0)
		network = min64(network, ledger_round_trips(&figures->totals) * figures->rtt);
	return max64(network - figures->explained, 0);
}

/* Of them, what took longer than the path: losses, and responses on their way. */
static int64_t
beyond_trips(const VerdictFigures *figures)
{
	if (figures->rtt <= 0)
		return 0;
	return max64(figures->totals.network -
				 ledger_round_trips(&figures->totals) * figures->rtt, 0);
}

/* Round trips that are not explained, for each transaction. */
static double
trips_per_xact(const VerdictFigures *figures)
{
	double		trips = ledger_round_trips(&figures->totals);

	if (figures->explained > 0 && figures->rtt > 0)
		trips = (double) trips_time(figures) / figures->rtt;
	return trips / at_least_one(figures->totals.transactions);
}

static int64_t
per_request(const VerdictFigures *figures, int64_t time)
{
	return time / at_least_one(figures->totals.requests);
}

static int64_t
per_xact(const VerdictFigures *figures, int64_t time)
{
	return time / at_least_one(figures->totals.transactions);
}

/* Bytes per second, of a stream that took so long. */
static int64_t
bytes_rate(int64_t bytes, int64_t time)
{
	return (int64_t) ((double) bytes * NS_PER_SECOND / at_least_one(time));
}

/*
 * What the client thinks, as far as it is sure that it does, and not explained
 * otherwise: one on this machine, which has no processor either while sessions have none, might just
 * be waiting for one.
 */
static int64_t
sure_think(const VerdictFigures *figures, int64_t think)
{
	think = max64(think - figures->explained_others, 0);
	if (figures->rtt >= VERDICT_MIN_RTT)
		return think;
	return max64(think - VERDICT_CLIENT_STARVED * figures->totals.run_queue, 0);
}

/* On a processor, and not just ready for one. */
static int64_t
cpu_time(const VerdictFigures *figures)
{
	const LedgerTotals *totals = &figures->totals;

	return max64(totals->exec_part[EXEC_CPU] -
				 max64(totals->run_queue - totals->run_queue_wait, 0), 0);
}

/* ---------------------------------------------------------------------------
 * Words
 * ---------------------------------------------------------------------------
 */

#define TEXT_SIZE		32
#define PART_SIZE		(2 * TEXT_SIZE + 8)

/* In three digits or so. */
static const char *
number_text(double value, const char *unit, char *text)
{
	int			decimals = value >= 99.5 ? 0 : value >= 9.95 ? 1 : 2;

	if (value == (int64_t) value)
		decimals = 0;
	snprintf(text, TEXT_SIZE, "%.*f%s", decimals, value, unit);
	return text;
}

static const char *
time_text(double time, char *text)
{
	if (time >= 10 * (double) NS_PER_SECOND)
		return number_text(time / NS_PER_SECOND, " s", text);
	return number_text(time / VERDICT_MS, " ms", text);
}

/* "80 of 95 ms", both in the unit of the second. */
static const char *
part_text(double part, double whole, char *text)
{
	char		first[TEXT_SIZE];
	char		second[TEXT_SIZE];
	bool		seconds = whole >= 10 * (double) NS_PER_SECOND;

	number_text(part / (seconds ? NS_PER_SECOND : VERDICT_MS), "", first);
	snprintf(text, PART_SIZE, "%s of %s", first, time_text(whole, second));
	return text;
}

/* In the scope of the block: to be used in the arguments of a call. */
#define NUMBER(value)		number_text((value), "", (char[TEXT_SIZE]) {0})
#define TIME(time)			time_text((time), (char[TEXT_SIZE]) {0})
#define PART(part, whole)	part_text((part), (whole), (char[PART_SIZE]) {0})
#define MEGABYTES(bytes)	number_text((bytes) / 1e6, " MB", (char[TEXT_SIZE]) {0})

/* ---------------------------------------------------------------------------
 * Locks
 * ---------------------------------------------------------------------------
 */

/* What of it would not be if the transaction only executed statements. */
static int64_t
held_avoidably(const VerdictFigures *figures)
{
	const VerdictHeld *held = &figures->held_while;
	int64_t		others = held->exec;
	int64_t		avoidable = held->send + held->recv + held->network + held->client;

	if (others + avoidable == 0)
		return VERDICT_UNKNOWN;
	return (int64_t) ((double) figures->held_up * avoidable / (others + avoidable));
}

static bool
holds_up(const VerdictFigures *figures, VerdictFinding *finding)
{
	finding->lost = figures->held_up;
	finding->saving = held_avoidably(figures);
	return true;
}

/* The most of what a holder did while others waited. */
static const char *
held_mostly(const VerdictHeld *held)
{
	int64_t		most = max64(max64(held->exec, held->client),
							 max64(held->network, max64(held->send, held->recv)));

	return most == 0 ? NULL :
		most == held->client ? "its client thought" :
		most == held->exec ? "it executed statements" :
		most == held->network ? "it waited for round trips" :
		most == held->send ? "it sent a result" : "it waited for data of its client";
}

static int
holds_up_evidence(const VerdictFigures *figures, const VerdictFinding *finding,
				  char *text, size_t size)
{
	const char *mostly = held_mostly(&figures->held_while);

	return snprintf(text, size, "others waited %s for its locks%s%s",
					TIME(figures->held_up), mostly ? ", mostly while " : "",
					mostly ? mostly : "");
}

static const char *
holds_up_advice(const VerdictFigures *figures, const VerdictFinding *finding)
{
	const VerdictHeld *held = &figures->held_while;

	if (held_mostly(held) == NULL)
		return "See pgnetlat_blockers for the statement, and commit as soon as the work is done.";
	if (held->client >= max64(held->exec, held->network))
		return "Let the application commit before it does anything else; "
			"idle_in_transaction_session_timeout ends transactions that are forgotten.";
	if (held->exec >= held->network)
		return "EXPLAIN the statement that pgnetlat_blockers shows, and take the lock as late in the transaction as possible.";
	return "Make fewer round trips after the lock has been taken: pipeline, batch, or move the transaction into one statement or function.";
}

/* There is somebody who holds the lock for long. */
static bool
held_up(const VerdictFigures *figures, VerdictFinding *finding)
{
	int64_t		lock = figures->totals.exec_part[EXEC_LOCK];
	bool		waits = figures->blocked_by != VERDICT_NOBODY;

	finding->lost = lock;
	finding->saving = VERDICT_UNKNOWN;
	return has_share(lock, working_time(figures), VERDICT_LOCK_SHARE) &&
		(waits || per_request(figures, lock) >= VERDICT_LONG_LOCK);
}

static int
held_up_evidence(const VerdictFigures *figures, const VerdictFinding *finding,
				 char *text, size_t size)
{
	int			used = snprintf(text, size, "waited %s for locks",
								PART(figures->totals.exec_part[EXEC_LOCK],
									 working_time(figures)));

	if (used < 0 || (size_t) used >= size)
		return used;
	if (figures->blocked_by > 0)
		used += snprintf(text + used, size - used, "; now for one of process %d",
						 figures->blocked_by);
	else if (figures->blocked_by == 0)
		used += snprintf(text + used, size - used, "; now for one of a prepared transaction");
	return used;
}

static const char *
held_up_advice(const VerdictFigures *figures, const VerdictFinding *finding)
{
	if (figures->blocked_by == 0)
		return "See pg_prepared_xacts: commit the prepared transaction, or roll it back.";
	return "Look at who holds the locks (pgnetlat_blockers, or the finding \"holds up others\"); "
		"lock_timeout limits how long this one waits.";
}

/* ---------------------------------------------------------------------------
 * The client thinks
 * ---------------------------------------------------------------------------
 */

static bool
idle_in_xact(const VerdictFigures *figures, VerdictFinding *finding)
{
	int64_t		think = sure_think(figures, think_in_xact(figures));
	int64_t		pause = per_request(figures, think);

	/* what has waited for so long already is a pause, whatever was before */
	if (figures->state == LEDGER_STATE_WAITING_IN_XACT)
		pause = max64(pause, min64(figures->state_age, think));
	finding->lost = finding->saving = think_in_xact(figures);
	return figures->held_up < think / 2 &&
		per_xact(figures, think) >= VERDICT_XACT_PAUSE &&
		(pause >= VERDICT_PAUSE ||
		 (pause >= VERDICT_THINK &&
		  has_share(think, working_time(figures), VERDICT_THINK_SHARE)));
}

static int
idle_in_xact_evidence(const VerdictFigures *figures, const VerdictFinding *finding,
					  char *text, size_t size)
{
	int			used = snprintf(text, size,
								"its client thinks for %s in each transaction, which takes %s; locks and snapshot are held",
								TIME(per_xact(figures, finding->lost)),
								TIME(per_xact(figures, working_time(figures))));

	if (used > 0 && (size_t) used < size && figures->state == LEDGER_STATE_WAITING_IN_XACT)
		used += snprintf(text + used, size - used, "; now for %s", TIME(figures->state_age));
	return used;
}

/* One connection, in a loop of statements and thinking. */
static bool
is_loop(const VerdictFigures *figures)
{
	const LedgerTotals *totals = &figures->totals;
	int64_t		think = sure_think(figures, totals->client);

	return figures->sessions == 1 && figures->ended_sessions == 0 &&
		has_share(ledger_busy_total(totals), figures->window, 90) &&
		has_share(think, ledger_busy_total(totals), VERDICT_LOOP_SHARE) &&
		per_request(figures, think) >= VERDICT_LOOP_THINK &&
		per_request(figures, totals->client) <= VERDICT_LOOP_PAUSE;
}

static bool
client_bound(const VerdictFigures *figures, VerdictFinding *finding)
{
	int64_t		think = sure_think(figures, think_in_xact(figures));

	if (figures->totals.requests < VERDICT_MIN_REQUESTS)
		return false;
	finding->lost = finding->saving = think_in_xact(figures);
	if (per_request(figures, think) >= VERDICT_THINK &&
		has_share(think, working_time(figures), VERDICT_THINK_SHARE))
		return true;
	finding->lost = figures->totals.client;
	finding->saving = VERDICT_UNKNOWN;
	return is_loop(figures);
}

static int
client_bound_evidence(const VerdictFigures *figures, const VerdictFinding *finding,
					  char *text, size_t size)
{
	bool		in_xact = finding->saving != VERDICT_UNKNOWN;
	int64_t		whole = in_xact ? working_time(figures) : ledger_busy_total(&figures->totals);

	return snprintf(text, size, "the client thinks %s per request%s, the server takes %s",
					PART(per_request(figures, finding->lost), per_request(figures, whole)),
					in_xact ? " in transactions" : "",
					TIME(per_request(figures, ledger_server_part(&figures->totals))));
}

/* ---------------------------------------------------------------------------
 * The network
 * ---------------------------------------------------------------------------
 */

/*
 * What is saved of the time that round trips (or connections) took, if only so
 * many of each number are left, or each takes only so long.
 */
static int64_t
saving_of_trips(int64_t time, double number, double left)
{
	return number <= left ? 0 : (int64_t) (time * (1 - left / number));
}

/*
 * What a request takes beside its round trip, of the server and the driver, and
 * what is spared with it, given the time of all; no more than a driver needs,
 * nor than the round trip: the rest would be there without it, too.
 *
 * That is for requests that are not made at all when they are cured: of which a
 * JOIN, an array, COPY, or a larger portion of rows takes the place.  A prediction
 * has nothing for that.  Its statements may share a round trip, but each of them
 * is still executed, and handled by the driver.
 */
static int64_t
overhead(int64_t time, int64_t requests, int64_t round_trip)
{
	return min64(max64(time, 0) / at_least_one(requests), min64(round_trip, VERDICT_THINK));
}

static int64_t
repeat_trip(const VerdictFigures *figures)
{
	return figures->repeat_network / at_least_one(figures->repeats);
}

static int64_t
repeat_overhead(const VerdictFigures *figures)
{
	return overhead(figures->time - figures->repeat_network, figures->calls,
					repeat_trip(figures));
}

static bool
repeated(const VerdictFigures *figures, VerdictFinding *finding)
{
	int64_t		bursts = at_least_one(figures->calls - figures->repeats);
	bool		in_xact = has_share(figures->in_xact_wait,
									figures->repeat_network + figures->client, 80);

	finding->lost = finding->saving = figures->repeat_network +
		figures->repeats * repeat_overhead(figures);
	return figures->repeats >= VERDICT_MIN_REQUESTS &&
		figures->repeats >= VERDICT_REPEATS * bursts &&
		figures->repeat_network >= figures->repeats * VERDICT_MIN_RTT &&
		figures->repeat_network >= bursts * VERDICT_CHATTY_TIME &&
		(in_xact || figures->client <= figures->calls * VERDICT_REPEAT_THINK);
}

static int
repeated_evidence(const VerdictFigures *figures, const VerdictFinding *finding,
				  char *text, size_t size)
{
	return snprintf(text, size,
					"%lld of %lld executions repeat an earlier one of the same burst: "
					"%s of round trip and %s of server and driver each = %s",
					(long long) figures->repeats, (long long) figures->calls,
					TIME(repeat_trip(figures)), TIME(repeat_overhead(figures)),
					PART(finding->lost, figures->time));
}

/* Round trips that fetch the rows of few statements. */
static bool
is_fetching(const VerdictFigures *figures)
{
	return ledger_round_trips(&figures->totals) >=
		VERDICT_FETCHES * at_least_one(figures->totals.statements);
}

static bool
chatty(const VerdictFigures *figures, VerdictFinding *finding)
{
	int64_t		time = trips_time(figures);
	double		trips = trips_per_xact(figures);

	finding->lost = time;
	finding->saving = VERDICT_UNKNOWN;
	/* the next rows are no work of their own, other statements are */
	if (is_fetching(figures))
	{
		finding->lost += figures->totals.requests *
			overhead(working_time(figures) - time, figures->totals.requests, figures->rtt);
		finding->saving = saving_of_trips(finding->lost, trips, VERDICT_TRIPS_KEPT);
	}
	return figures->totals.requests >= VERDICT_MIN_REQUESTS &&
		figures->rtt >= VERDICT_MIN_RTT && trips >= VERDICT_CHATTY_TRIPS &&
		per_xact(figures, time) >= VERDICT_CHATTY_TIME &&
		has_share(time, working_time(figures), VERDICT_CHATTY_SHARE);
}

static int
trips_evidence(const VerdictFigures *figures, const VerdictFinding *finding,
			   char *text, size_t size)
{
	return snprintf(text, size, "%s round trips per transaction x %s = %s%s",
					NUMBER(trips_per_xact(figures)), TIME(figures->rtt),
					PART(per_xact(figures, trips_time(figures)),
						 per_xact(figures, working_time(figures))),
					is_fetching(figures) ? "; most fetch further rows" : "");
}

static const char *
chatty_advice(const VerdictFigures *figures, const VerdictFinding *finding)
{
	if (is_fetching(figures))
		return "Fetch more rows at a time: raise the fetch size (setFetchSize, itersize, prefetch), or read the result as a whole.";
	return "Let statements travel together: pipeline or batch them, or put them into one statement or function. "
		"Otherwise, run the application closer to the server.";
}

/*
 * The statements of a transaction travel together, but for what has a finding of
 * its own.
 */
static double
chatty_cure(const VerdictFigures *figures, const VerdictFinding *finding,
			const Workload *workload, Change *change)
{
	double		spared = (trips_per_xact(figures) - VERDICT_TRIPS_KEPT) *
		at_least_one(figures->totals.transactions);

	if (is_fetching(figures))
		return 0;
	change->round_trips = workload->round_trips *
		(1 - spared / at_least_one(ledger_round_trips(&figures->totals)));
	return 1;
}

static bool
network_bound(const VerdictFigures *figures, VerdictFinding *finding)
{
	int64_t		time = trips_time(figures);

	finding->lost = time;
	finding->saving = VERDICT_UNKNOWN;
	return figures->totals.requests >= VERDICT_MIN_REQUESTS &&
		figures->rtt >= 2 * VERDICT_NEAR_RTT &&
		has_share(time, working_time(figures), VERDICT_NETWORK_SHARE);
}

/* A shorter path, for all of the round trips. */
static double
network_bound_cure(const VerdictFigures *figures, const VerdictFinding *finding,
				   const Workload *workload, Change *change)
{
	change->rtt = (double) VERDICT_NEAR_RTT / VERDICT_MS;
	return (double) finding->lost / (finding->lost + figures->explained);
}

/* With connecting, which is no part of the account. */
static int64_t
time_with_connecting(const VerdictFigures *figures)
{
	return ledger_busy_total(&figures->totals) + figures->connect_time;
}

static bool
reconnects(const VerdictFigures *figures, VerdictFinding *finding)
{
	finding->lost = figures->connect_time;
	/* those that are there now would have been enough */
	finding->saving = saving_of_trips(finding->lost, figures->connections,
									  at_least_one(figures->sessions));
	return figures->connections >= VERDICT_CONNECTIONS &&
		has_share(finding->lost, time_with_connecting(figures), VERDICT_CONNECT_SHARE);
}

static int
reconnects_evidence(const VerdictFigures *figures, const VerdictFinding *finding,
					char *text, size_t size)
{
	return snprintf(text, size, "%lld connections of %s each = %s, for %lld requests",
					(long long) figures->connections,
					TIME((double) figures->connect_time / at_least_one(figures->connections)),
					PART(finding->lost, time_with_connecting(figures)),
					(long long) figures->totals.requests);
}

/* What a path lost, and what that cost: responses that took longer than it. */
static bool
lossy_path(const VerdictFigures *figures, VerdictFinding *finding)
{
	finding->lost = beyond_trips(figures) + figures->totals.send_blocked -
		figures->totals.send_client;
	finding->saving = finding->lost;
	return figures->rtt > 0 && figures->retransmits >= VERDICT_LOSS_MIN &&
		figures->retransmits * 1000 >= figures->packets_sent * VERDICT_LOSS_PERMILLE;
}

static int
lossy_path_evidence(const VerdictFigures *figures, const VerdictFinding *finding,
					char *text, size_t size)
{
	return snprintf(text, size, "%lld of %lld packets were sent again; responses took %s longer than the path",
					(long long) figures->retransmits, (long long) figures->packets_sent,
					TIME(finding->lost));
}

/* ---------------------------------------------------------------------------
 * Streams
 * ---------------------------------------------------------------------------
 */

static bool
narrow_path(const VerdictFigures *figures, VerdictFinding *finding)
{
	int64_t		blocked = figures->totals.send_blocked - figures->totals.send_client;
	double		needed = (double) figures->totals.bytes_sent * NS_PER_SECOND / VERDICT_FAST_PATH;

	/* bandwidth is nothing that is predicted */
	finding->lost = blocked + (blocked > 0 ? beyond_trips(figures) : 0);
	finding->saving = needed < finding->lost ? finding->lost - (int64_t) needed : 0;
	return figures->rtt > 0 && blocked >= figures->totals.send_client &&
		has_share(finding->lost, working_time(figures), VERDICT_STREAM_SHARE) &&
		bytes_rate(figures->totals.bytes_sent, finding->lost) < VERDICT_FAST_PATH;
}

static int
narrow_path_evidence(const VerdictFigures *figures, const VerdictFinding *finding,
					 char *text, size_t size)
{
	return snprintf(text, size, "the network was the brake on sending for %s; %s went at %s/s",
					PART(finding->lost, working_time(figures)),
					MEGABYTES(figures->totals.bytes_sent),
					MEGABYTES(bytes_rate(figures->totals.bytes_sent, finding->lost)));
}

static bool
slow_reader(const VerdictFigures *figures, VerdictFinding *finding)
{
	const LedgerTotals *totals = &figures->totals;

	finding->lost = finding->saving = totals->send_client;
	return has_share(totals->send_client, working_time(figures), VERDICT_STREAM_SHARE) &&
		bytes_rate(totals->bytes_sent, totals->send_blocked) < VERDICT_FAST_READER;
}

static int
slow_reader_evidence(const VerdictFigures *figures, const VerdictFinding *finding,
					 char *text, size_t size)
{
	return snprintf(text, size, "the client would take no more for %s; it read %s at %s/s",
					PART(finding->lost, working_time(figures)),
					MEGABYTES(figures->totals.bytes_sent),
					MEGABYTES(bytes_rate(figures->totals.bytes_sent,
										 figures->totals.send_blocked)));
}

static bool
slow_loader(const VerdictFigures *figures, VerdictFinding *finding)
{
	const LedgerTotals *totals = &figures->totals;

	finding->lost = finding->saving = totals->recv;
	return has_share(totals->recv, working_time(figures), VERDICT_STREAM_SHARE) &&
		bytes_rate(figures->bytes_received, totals->recv) < VERDICT_FAST_LOADER;
}

static int
slow_loader_evidence(const VerdictFigures *figures, const VerdictFinding *finding,
					 char *text, size_t size)
{
	int			used = snprintf(text, size, "waited %s for more data of a request, as in COPY FROM STDIN",
								PART(finding->lost, working_time(figures)));

	if (used > 0 && (size_t) used < size && figures->bytes_received > 0)
		used += snprintf(text + used, size - used, "; %s came at %s/s",
						 MEGABYTES(figures->bytes_received),
						 MEGABYTES(bytes_rate(figures->bytes_received, finding->lost)));
	return used;
}

/* ---------------------------------------------------------------------------
 * The server
 * ---------------------------------------------------------------------------
 */

static const struct
{
	const char *name;
	int			share;			/* %: of the time in transactions */
	int64_t		request;		/* that it takes of a request */
	const char *advice;
}			causes[NUM_EXEC_PARTS] = {

	[EXEC_CPU] = {
		"CPU", VERDICT_SERVER_SHARE, VERDICT_SLOW_REQUEST,
		"EXPLAIN (ANALYZE, BUFFERS) the statements with the most exec_cpu_time in pgnetlat_statements (the saving is that of a server twice as fast)."
	},
	[EXEC_IO] = {
		"I/O", VERDICT_SERVER_SHARE, VERDICT_SLOW_REQUEST,
		"EXPLAIN (ANALYZE, BUFFERS) the statements with the most exec_io_time in pgnetlat_statements; see pg_stat_io, shared_buffers and the disks (the saving is that of a server twice as fast)."
	},
	[EXEC_LOCK] = {
		"locks", VERDICT_LOCK_SHARE, VERDICT_LOCK_REQUEST,
		"Transactions queue for the same rows or tables: make them shorter, or let them touch what is contended last."
	},
	[EXEC_REPLICATION] = {
		"replication", VERDICT_AWAY_SHARE, VERDICT_AWAY_REQUEST,
		"See pg_stat_replication and the network to the standby; synchronous_commit = local or off, where losing the last transactions is acceptable, does not wait."
	},
	[EXEC_REMOTE] = {
		"remote", VERDICT_AWAY_SHARE, VERDICT_AWAY_REQUEST,
		"Ask the other server what it does: EXPLAIN VERBOSE shows what it is sent; fetch_size and batch_size of postgres_fdw spare round trips to it."
	},
	[EXEC_OTHER] = {
		"other waits", VERDICT_SERVER_SHARE, VERDICT_SLOW_REQUEST,
		"pgnetlat_waits shows which wait events these are."
	},
};

static int64_t
part_time(const VerdictFigures *figures, ExecPart part)
{
	return part == EXEC_CPU ? cpu_time(figures) : figures->totals.exec_part[part];
}

static bool
server_bound(const VerdictFigures *figures, VerdictFinding *finding)
{
	if (figures->totals.requests < VERDICT_MIN_SERVED)
		return false;
	finding->lost = 0;
	for (int i = 0; i < NUM_EXEC_PARTS; i++)
	{
		int64_t		time = part_time(figures, i);

		if (time <= finding->lost || per_request(figures, time) < causes[i].request ||
			!has_share(time, working_time(figures), causes[i].share))
			continue;
		finding->lost = time;
		finding->part = i;
	}
	/* not to wait for a standby is nothing that is predicted */
	finding->saving = finding->part == EXEC_REPLICATION ? finding->lost : VERDICT_UNKNOWN;
	return finding->lost > 0;
}

/*
 * How much better a plan, or a disk, could be, nobody knows.  Waits for locks and
 * for others would not end sooner.
 */
static double
server_bound_cure(const VerdictFigures *figures, const VerdictFinding *finding,
				  const Workload *workload, Change *change)
{
	change->server_speed = VERDICT_SERVER_SPEED;
	return finding->part == EXEC_CPU || finding->part == EXEC_IO;
}

static int
server_bound_evidence(const VerdictFigures *figures, const VerdictFinding *finding,
					  char *text, size_t size)
{
	return snprintf(text, size, "%s: %s per request", causes[finding->part].name,
					PART(per_request(figures, part_time(figures, finding->part)),
						 per_request(figures, working_time(figures))));
}

static const char *
server_bound_advice(const VerdictFigures *figures, const VerdictFinding *finding)
{
	return causes[finding->part].advice;
}

static bool
starved(const VerdictFigures *figures, VerdictFinding *finding)
{
	int64_t		wanted = figures->totals.exec + figures->totals.run_queue_wait;

	finding->lost = finding->saving = figures->totals.run_queue;
	return figures->totals.requests >= VERDICT_MIN_SERVED &&
		has_share(finding->lost, wanted, VERDICT_STARVED_SHARE) &&
		per_request(figures, finding->lost) >= VERDICT_STARVED_REQUEST;
}

static int
starved_evidence(const VerdictFigures *figures, const VerdictFinding *finding,
				 char *text, size_t size)
{
	return snprintf(text, size, "ready to run, but without a processor for %s per request",
					PART(per_request(figures, finding->lost),
						 per_request(figures, figures->totals.exec +
									 figures->totals.run_queue_wait)));
}

/* None are left for others soon, and most are not needed. */
static bool
too_many(const VerdictFigures *figures, VerdictFinding *finding)
{
	finding->saving = VERDICT_UNKNOWN;
	return figures->pool_size > 0 && figures->pool_time >= VERDICT_POOL_TIME &&
		has_share(figures->sessions, figures->max_connections, VERDICT_HELD_SHARE) &&
		!has_share(figures->pool_size, figures->sessions, VERDICT_POOL_SHARE);
}

static int
too_many_evidence(const VerdictFigures *figures, const VerdictFinding *finding,
				  char *text, size_t size)
{
	return snprintf(text, size,
					"%lld of %lld connections are held; a pool of %lld would have served them for 99.9 %% of the time without a wait",
					(long long) figures->sessions, (long long) figures->max_connections,
					(long long) figures->pool_size);
}

static int
balanced_evidence(const VerdictFigures *figures, const VerdictFinding *finding,
				  char *text, size_t size)
{
	const LedgerTotals *totals = &figures->totals;
	double		whole = at_least_one(ledger_busy_total(totals));

	return snprintf(text, size, "%lld requests: server %.0f %%, network %.0f %%, client %.0f %%",
					(long long) totals->requests, 100 * ledger_server_part(totals) / whole,
					100 * ledger_network_part(totals) / whole,
					100 * ledger_client_part(totals) / whole);
}

/* ---------------------------------------------------------------------------
 * The table
 * ---------------------------------------------------------------------------
 */

#define OF_ACCOUNT		(VERDICT_OF_SESSION | VERDICT_OF_CLIENT)

static const Rule rules[NUM_VERDICTS] = {
	[VERDICT_HOLDS_UP] = {
		"holds up others", TIME_OF_OTHERS, OF_ACCOUNT,
		holds_up, holds_up_evidence,
		.choose_advice = holds_up_advice
	},
	[VERDICT_HELD_UP] = {
		"held up by others", TIME_OF_EXECUTION, OF_ACCOUNT,
		held_up, held_up_evidence,
		.choose_advice = held_up_advice
	},
	[VERDICT_IDLE_IN_XACT] = {
		"idle in transaction", TIME_OF_CLIENT, OF_ACCOUNT,
		idle_in_xact, idle_in_xact_evidence,
		.advice = "Let the application do what it does meanwhile before BEGIN or after COMMIT; "
		"idle_in_transaction_session_timeout ends transactions that are forgotten."
	},
	[VERDICT_REPEATED] = {
		"repeated statement", TIME_OF_TRIPS, VERDICT_OF_STATEMENT,
		repeated, repeated_evidence,
		.advice = "Ask once for all of them: a JOIN, = ANY(array), or eager loading in an ORM. "
		"For writes: COPY, many rows in one INSERT (reWriteBatchedInserts, executemany), or a pipeline."
	},
	[VERDICT_LOSSY_PATH] = {
		"lossy path", TIME_OF_SENDING, OF_ACCOUNT,
		lossy_path, lossy_path_evidence,
		.advice = "Have the path examined (cables, duplex, overloaded links, MTU): retransmits of other clients' groups tell which part of it they share."
	},
	[VERDICT_NARROW_PATH] = {
		"narrow path", TIME_OF_SENDING, OF_ACCOUNT,
		narrow_path, narrow_path_evidence,
		.advice = "Send less (fewer columns and rows, aggregates, COPY in binary), compress on the way, or get a path with more bandwidth."
	},
	[VERDICT_SLOW_READER] = {
		"slow reader", TIME_OF_SENDING, OF_ACCOUNT,
		slow_reader, slow_reader_evidence,
		.advice = "Let the client read the result before it works on the rows, or ask for fewer of them (LIMIT, a cursor); "
		"meanwhile the statement holds its snapshot."
	},
	[VERDICT_SLOW_LOADER] = {
		"slow loader", TIME_OF_RECEIVING, OF_ACCOUNT,
		slow_loader, slow_loader_evidence,
		.advice = "The server could load faster: prepare the data before COPY, load from several connections, or move the loader closer."
	},
	[VERDICT_CHATTY] = {
		"chatty", TIME_OF_TRIPS, OF_ACCOUNT,
		chatty, trips_evidence,
		.choose_advice = chatty_advice,
		.cure = chatty_cure
	},
	[VERDICT_NETWORK_BOUND] = {
		"network-bound", TIME_OF_TRIPS, OF_ACCOUNT,
		network_bound, trips_evidence,
		.advice = "Run the application closer to the server (the saving is that of a path of 0.5 ms), "
		"or let statements of several transactions travel together.",
		.cure = network_bound_cure
	},
	[VERDICT_RECONNECTS] = {
		"reconnects", TIME_OF_CONNECTING, VERDICT_OF_CLIENT,
		reconnects, reconnects_evidence,
		.advice = "Keep connections open: a pool in the application, or a pooler in front of the server."
	},
	[VERDICT_CLIENT_BOUND] = {
		"client-bound", TIME_OF_CLIENT, OF_ACCOUNT,
		client_bound, client_bound_evidence,
		.advice = "A faster server or network changes little: profile the application, or let several connections share its work."
	},
	[VERDICT_SERVER_BOUND] = {
		"server-bound", TIME_OF_EXECUTION, OF_ACCOUNT,
		server_bound, server_bound_evidence,
		.choose_advice = server_bound_advice,
		.cure = server_bound_cure
	},
	[VERDICT_STARVED] = {
		"starved", TIME_OF_PROCESSORS, VERDICT_OF_SESSION | VERDICT_OF_SERVER,
		starved, starved_evidence,
		.advice = "The machine has more work than processors: see what else runs on it, let fewer sessions be busy at a time (a pooler), or add processors."
	},
	[VERDICT_TOO_MANY] = {
		"too many connections", NO_TIME, VERDICT_OF_SERVER,
		too_many, too_many_evidence,
		.advice = "Put a pooler in front of the server, in transaction mode (pgnetlat_pools has the size of each pool), or make the applications' pools smaller."
	},
	[VERDICT_BALANCED] = {
		"balanced", NUM_RULE_TIMES, 0,
		.evidence = balanced_evidence
	},
};

/* Of some size? */
static bool
is_large(const VerdictFigures *figures, int64_t lost)
{
	return lost >= VERDICT_MIN_LOST && lost >= figures->window / VERDICT_MIN_LOST_PART;
}

/*
 * The time that savings are a share of: all that was neither idle nor pending,
 * and connecting; or of a statement all that it cost.
 */
int64_t
verdict_time(const VerdictFigures *figures)
{
	if (figures->subject == VERDICT_OF_STATEMENT)
		return figures->time;
	return time_with_connecting(figures);
}

/* Is there so much that something wrong would have been found? */
static bool
has_enough_data(const VerdictFigures *figures)
{
	return (figures->subject & OF_ACCOUNT) && figures->totals.requests >= VERDICT_MIN_SERVED &&
		is_large(figures, ledger_busy_total(&figures->totals));
}

/* In their place among those found so far, the most expensive first. */
static void
insert_finding(VerdictFinding *findings, int count, const VerdictFinding *finding)
{
	int			place = count;

	while (place > 0 && findings[place - 1].lost < finding->lost)
	{
		findings[place] = findings[place - 1];
		place--;
	}
	findings[place] = *finding;
}

/*
 * What is wrong with a subject, the most expensive first; VERDICT_BALANCED
 * alone if nothing is, none if that is not known.  Returns how many findings
 * there are, at most VERDICT_FINDINGS.
 */
int
verdict_find(const VerdictFigures *figures, VerdictFinding *findings)
{
	bool		taken[NUM_RULE_TIMES] = {false};
	VerdictFinding finding;
	int			count = 0;

	for (int i = VERDICT_NONE + 1; i < NUM_VERDICTS; i++)
	{
		const Rule *rule = &rules[i];

		if (!(rule->subjects & figures->subject) || taken[rule->time])
			continue;
		memset(&finding, 0, sizeof(finding));
		finding.verdict = i;
		if (!rule->applies(figures, &finding) ||
			(rule->time != NO_TIME && !is_large(figures, finding.lost)))
			continue;
		taken[rule->time] = true;
		insert_finding(findings, count++, &finding);
	}
	if (count == 0 && has_enough_data(figures))
	{
		memset(&findings[0], 0, sizeof(findings[0]));
		findings[count++].verdict = VERDICT_BALANCED;
	}
	return count;
}

/*
 * What the cure of a finding saves, where that is predicted.  "workload" is that
 * of the figures' totals.
 *
 * It is how much less time as many transactions take.  That may be more than the
 * waits that are spared, since who waits less finds its caches warm; and less,
 * since sessions that wait less for the network wait more for one another.  What
 * is saved was lost.
 */
void
verdict_predict(const VerdictFigures *figures, const Workload *workload,
				VerdictFinding *finding)
{
	const Rule *rule = &rules[finding->verdict];
	Change		change = NO_CHANGE;
	Prediction	prediction;
	double		part = rule->cure ? rule->cure(figures, finding, workload, &change) : 0;
	double		saved;

	if (part <= 0 || !predict(workload, &change, &prediction))
		return;
	saved = part * workload->transactions *
		(workload->transaction_time - prediction.transaction_time);
	finding->saving = (int64_t) (fmax(saved, 0) * VERDICT_MS);
	finding->lost = max64(finding->lost, finding->saving);
}

/*
 * The most expensive one alone.
 */
Verdict
verdict_short(const VerdictFigures *figures)
{
	VerdictFinding findings[VERDICT_FINDINGS];

	return verdict_find(figures, findings) > 0 ? findings[0].verdict : VERDICT_NONE;
}

/* NULL of VERDICT_NONE. */
const char *
verdict_name(Verdict verdict)
{
	return rules[verdict].name;
}

/* Is it about what a session does, rather than about how clients are made? */
bool
verdict_is_of_session(Verdict verdict)
{
	switch (verdict)
	{
		case VERDICT_HOLDS_UP:
		case VERDICT_HELD_UP:
		case VERDICT_IDLE_IN_XACT:
		case VERDICT_LOSSY_PATH:
		case VERDICT_NARROW_PATH:
		case VERDICT_SLOW_READER:
		case VERDICT_SLOW_LOADER:
			return true;
		default:
			return false;
	}
}

/* One sentence, in a buffer of VERDICT_EVIDENCE_SIZE. */
void
verdict_evidence(const VerdictFigures *figures, const VerdictFinding *finding, char *evidence)
{
	evidence[0] = '\0';
	(void) rules[finding->verdict].evidence(figures, finding, evidence, VERDICT_EVIDENCE_SIZE);
}

/* The next step, or NULL if there is nothing to do. */
const char *
verdict_advice(const VerdictFigures *figures, const VerdictFinding *finding)
{
	const Rule *rule = &rules[finding->verdict];

	return rule->choose_advice ? rule->choose_advice(figures, finding) : rule->advice;
}
