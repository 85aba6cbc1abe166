/*-------------------------------------------------------------------------
 *
 * ledger.c
 *	  Turns timed events into an account.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "ledger.h"

#include <string.h>

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

/* The part of [from, to] after the latest reset. */
static inline int64_t
counted(const Ledger *ledger, int64_t from, int64_t to)
{
	from = max64(from, ledger->counted_from);
	return to > from ? to - from : 0;
}

/* No event happens before the one that began the current phase. */
static inline int64_t
event_time(const Ledger *ledger, int64_t at)
{
	return max64(at, ledger->since);
}

/*
 * Split the wait in progress as if it ended at "until", with a request or, if
 * "abandoned", without one.
 *
 * Its first part is network: one round trip or, for a response that had not
 * left the kernel, the time until it had left, minus the time for which the
 * client's window was closed.  The rest is client or idle.  The idle threshold
 * applies to the time after the response has left, since somebody was waiting
 * for it until then.
 *
 * If no request came, nobody waited for a round trip: that part is idle or, in
 * a transaction, where nothing is idle, client.
 */
static LedgerWait
split_wait(const Ledger *ledger, int64_t until, const LedgerDrain *drain, bool abandoned)
{
	LedgerWait	split = {0};
	int64_t		since = ledger->since;
	int64_t		length = max64(until - since, 0);
	int64_t		drained = drain ? min64(max64(drain->total, 0), length) : 0;
	int64_t		closed = drain ? min64(max64(drain->client, 0), drained) : 0;
	int64_t		sent = drained - closed;
	int64_t		trip = min64(length, max64(sent, ledger->wait.rtt));
	bool		idle = !ledger->wait.in_xact &&
		length - drained > ledger->wait.idle_threshold;

	split.in_xact = ledger->wait.in_xact;
	split.length = counted(ledger, since, until);
	/* nobody waited for the round trip of an idle wait, only for its drain */
	split.network = counted(ledger, since, since + (idle || abandoned ? sent : trip));
	if (idle)
		split.idle = counted(ledger, since + drained, until);
	else if (abandoned && !split.in_xact)
		split.idle = counted(ledger, since + sent, since + trip);
	split.client = split.length - split.network - split.idle;
	return split;
}

static void
book_wait(LedgerTotals *totals, const LedgerWait *wait)
{
	totals->network += wait->network;
	totals->client += wait->client;
	totals->idle += wait->idle;
	if (wait->in_xact)
		totals->in_xact_wait += wait->network + wait->client;
}

/* Book execution as exec, except what the sampler saw as recv. */
static void
book_execution(LedgerTotals *totals, int64_t exec, const LedgerSampled *sampled)
{
	int64_t		recv = sampled ? min64(max64(sampled->recv, 0), exec) : 0;

	totals->exec += exec - recv;
	totals->recv += recv;
}

/* Close the exchange in progress, after its last phase. */
static void
book_exchange(Ledger *ledger, const LedgerSampled *sampled)
{
	book_execution(&ledger->totals, ledger->exec, sampled);
	ledger->exec = 0;
	if (ledger->is_request)
	{
		ledger->totals.requests++;
		if (ledger->wait.pipelined)
			ledger->totals.pipelined++;
	}
	ledger->is_request = false;
}

/*
 * How long the client's window was closed in the send in progress, as far as
 * the sampler knows.
 */
static int64_t
sampled_send_client(const Ledger *ledger, const LedgerSampled *sampled)
{
	if (sampled == NULL || sampled->send_began != ledger->since)
		return 0;
	return max64(sampled->send_client, 0);
}

/*
 * Book a send from ledger->since to "at"; "client" is how long the client's
 * window is known to have been closed in it.
 */
static void
book_sending(const Ledger *ledger, LedgerTotals *totals, int64_t at, int64_t client)
{
	int64_t		time = counted(ledger, ledger->since, at);
	bool		was_blocked = ledger->may_block && at - ledger->since >= LEDGER_BLOCKED_NS;
	int64_t		blocked = was_blocked ? time : 0;

	totals->send += time;
	if (blocked > 0)
	{
		totals->send_blocked += blocked;
		totals->send_client += ledger->local ? blocked : min64(client, blocked);
	}
}

/*
 * Book the turn with which the execution in progress begins, up to "until".
 * Returns when the execution proper begins.
 */
static int64_t
book_invitation(const Ledger *ledger, LedgerTotals *totals, int64_t until)
{
	int64_t		from = min64(ledger_executes_from(ledger), until);

	totals->network += counted(ledger, ledger->since, from);
	return from;
}

static void
close_execution(Ledger *ledger, int64_t at)
{
	int64_t		from = ledger->since;

	/* sooner than that, the data had been sent without being asked for */
	if (ledger->answered_from != 0 && at >= ledger->answered_from)
	{
		ledger->totals.turns++;
		from = book_invitation(ledger, &ledger->totals, at);
	}
	ledger->answered_from = 0;
	ledger->exec += counted(ledger, from, at);
}

/*
 * Close the phase in progress, other than a wait.  "client" is the client's
 * part of a send as the session itself has measured it.
 */
static void
close_phase(Ledger *ledger, int64_t at, const LedgerSampled *sampled, int64_t client)
{
	if (ledger->phase == LEDGER_EXECUTING)
		close_execution(ledger, at);
	else if (ledger->phase == LEDGER_SENDING)
		book_sending(ledger, &ledger->totals, at,
					 max64(client, sampled_send_client(ledger, sampled)));
}

/*
 * Book the turn in progress as if it ended at "until": one round trip as
 * network, and the rest as recv.  Returns the network part.
 */
static int64_t
book_turn(const Ledger *ledger, LedgerTotals *totals, int64_t until)
{
	int64_t		trip = min64(max64(until - ledger->since, 0), ledger->turn_rtt);
	int64_t		network = counted(ledger, ledger->since, ledger->since + trip);

	totals->network += network;
	totals->recv += counted(ledger, ledger->since + trip, until);
	return network;
}

/* Start counting, between two exchanges.  "local": there is no network. */
void
ledger_start(Ledger *ledger, int64_t now, bool local, const LedgerWaitTerms *terms)
{
	now = event_time(ledger, now);
	if (ledger->phase != LEDGER_OFF)
		return;
	ledger->phase = LEDGER_WAITING;
	ledger->exchange_number++;	/* samples from before are of another wait */
	/* a reset may have come after "now" */
	ledger->counted_from = max64(ledger->counted_from, now);
	ledger->since = ledger->counted_from;
	ledger->wait = *terms;
	ledger->is_request = false;
	ledger->local = local;
}

/*
 * Stop counting, in any phase.  "wait" is set to how the wait in progress was
 * split; zero if there was none.
 */
void
ledger_stop(Ledger *ledger, int64_t now, const LedgerSampled *sampled,
			const LedgerDrain *drain, LedgerWait *wait)
{
	memset(wait, 0, sizeof(*wait));
	now = event_time(ledger, now);
	switch (ledger->phase)
	{
		case LEDGER_OFF:
			break;
		case LEDGER_WAITING:
			*wait = split_wait(ledger, now, drain, true);
			book_wait(&ledger->totals, wait);
			break;
		case LEDGER_TURNING:
			(void) ledger_turn_end(ledger, now, false);
			book_exchange(ledger, sampled);
			break;
		case LEDGER_EXECUTING:
		case LEDGER_SENDING:
			close_phase(ledger, now, sampled, 0);
			book_exchange(ledger, sampled);
			break;
	}
	ledger->phase = LEDGER_OFF;
	ledger->since = now;
}

/*
 * Forget everything before "at"; what is in progress goes on.  If there was an
 * event after "at", the account begins with that.
 */
void
ledger_reset(Ledger *ledger, int64_t at)
{
	memset(&ledger->totals, 0, sizeof(ledger->totals));
	ledger->exec = 0;
	ledger->counted_from = max64(ledger->counted_from, max64(at, ledger->since));
}

/*
 * The wait in progress ended at "at": the first message of a request was read,
 * or the session works of its own accord, normally because it is about to end.
 * "wait" is set to how the wait was split.
 */
void
ledger_wait_end(Ledger *ledger, int64_t at, bool is_request, const LedgerDrain *drain,
				LedgerWait *wait)
{
	at = event_time(ledger, at);
	*wait = split_wait(ledger, at, drain, !is_request);
	book_wait(&ledger->totals, wait);
	ledger->phase = LEDGER_EXECUTING;
	ledger->since = at;
	ledger->exchange_number++;
	ledger->is_request = is_request;
}

/*
 * A notification is sent at "at" in the wait in progress.  The client was
 * listening, so the time until then is idle, and a new wait begins.  Returns
 * the idle time.
 */
int64_t
ledger_wait_notified(Ledger *ledger, int64_t at)
{
	int64_t		idle;

	/*
	 * not if the last response is still leaving, or the next request has
	 * arrived
	 */
	if (ledger->phase != LEDGER_WAITING || ledger->wait.in_xact ||
		ledger->wait.draining || ledger->wait.pipelined)
		return 0;
	at = event_time(ledger, at);
	idle = counted(ledger, ledger->since, at);
	ledger->totals.idle += idle;
	ledger->since = at;
	return idle;
}

/*
 * What looked like a turn, or like the end of an exchange, was neither: the
 * time since then was execution.  If the exchange seemed to end, it has been
 * counted.
 */
void
ledger_was_work(Ledger *ledger)
{
	if (ledger->phase == LEDGER_WAITING)
	{
		ledger->exchange_number++;
		ledger->is_request = false;
	}
	ledger->phase = LEDGER_EXECUTING;
	ledger->answered_from = 0;
}

/* The session begins to hand bytes to the socket at "at". */
void
ledger_send_begin(Ledger *ledger, int64_t at, bool may_block)
{
	ledger->may_block = may_block;
	at = event_time(ledger, at);
	close_phase(ledger, at, NULL, 0);
	ledger->phase = LEDGER_SENDING;
	ledger->since = at;
}

/*
 * The socket has taken the bytes; the exchange goes on.  "client" is how long
 * the client's window is known to have been closed.
 */
void
ledger_send_end(Ledger *ledger, int64_t at, const LedgerSampled *sampled, int64_t client)
{
	at = event_time(ledger, at);
	close_phase(ledger, at, sampled, client);
	ledger->phase = LEDGER_EXECUTING;
	ledger->since = at;
}

/*
 * The execution in progress has begun with an invitation to copy, which was
 * sent from "asked_at" on, and the client's data had not arrived before.  When
 * it comes shows in nothing but samples, but the client has waited for one
 * round trip, which is network.
 */
void
ledger_invite(Ledger *ledger, int64_t asked_at, int64_t rtt)
{
	if (ledger->phase != LEDGER_EXECUTING)
		return;
	ledger->turn_rtt = rtt;
	ledger->answered_from = max64(asked_at + rtt / 2, 1);
}

/* The client was asked for Sync at "at", and it has not come yet. */
void
ledger_turn_begin(Ledger *ledger, int64_t at, int64_t rtt)
{
	at = event_time(ledger, at);
	close_phase(ledger, at, NULL, 0);
	ledger->phase = LEDGER_TURNING;
	ledger->since = at;
	ledger->turn_rtt = rtt;
}

/*
 * Sync has come, or the wait for it has ended.  It is a turn, with a round trip,
 * only if the client sent Sync because it was asked.  Returns the network part.
 */
int64_t
ledger_turn_end(Ledger *ledger, int64_t at, bool is_turn)
{
	int64_t		network;

	at = event_time(ledger, at);
	if (is_turn)
		ledger->totals.turns++;
	else
		ledger->turn_rtt = 0;
	network = book_turn(ledger, &ledger->totals, at);
	ledger->phase = LEDGER_EXECUTING;
	ledger->since = at;
	return network;
}

/*
 * The socket has taken the last byte of the response.  "client" as above.
 */
void
ledger_exchange_end(Ledger *ledger, int64_t at, const LedgerSampled *sampled,
					int64_t client, const LedgerWaitTerms *terms)
{
	at = event_time(ledger, at);
	close_phase(ledger, at, sampled, client);
	book_exchange(ledger, sampled);
	ledger->phase = LEDGER_WAITING;
	ledger->since = at;
	ledger->wait = *terms;
}

static void
project_wait(const Ledger *ledger, const LedgerSampled *sampled, int64_t now,
			 LedgerAccount *account)
{
	const LedgerDrain *drain = sampled && sampled->drained ? &sampled->drain : NULL;
	LedgerWait	wait = split_wait(ledger, now, drain, false);
	bool		undecided = drain == NULL &&
		(ledger->wait.draining || (sampled && sampled->lost));

	if (ledger->wait.in_xact)
		account->state = LEDGER_STATE_WAITING_IN_XACT;
	else if (wait.idle > 0 && !undecided)
		account->state = LEDGER_STATE_IDLE;
	else
		account->state = LEDGER_STATE_WAITING;

	if (undecided || account->state == LEDGER_STATE_WAITING)
		account->pending = wait.length;
	else
		book_wait(&account->totals, &wait);
}

/* The state to show for an executing backend. */
LedgerState
ledger_executing_state(LedgerBlocked blocked)
{
	if (blocked == LEDGER_NOT_BLOCKED)
		return LEDGER_STATE_EXECUTING;
	return blocked == LEDGER_BLOCKED_READING ? LEDGER_STATE_RECEIVING : LEDGER_STATE_SENDING;
}

/*
 * Add the execution in progress.  If the backend is blocked, it has been since
 * the sampler's latest visit.
 */
static void
project_execution(const Ledger *ledger, const LedgerSampled *sampled, int64_t now,
				  LedgerBlocked blocked, LedgerAccount *account)
{
	int64_t		from = book_invitation(ledger, &account->totals, now);
	int64_t		since = blocked ? max64(from, sampled ? sampled->visited : 0) : now;
	int64_t		time = counted(ledger, since, now);

	book_execution(&account->totals,
				   ledger->exec + counted(ledger, from, min64(since, now)), sampled);
	if (blocked == LEDGER_BLOCKED_READING)
		account->totals.recv += time;
	else
		account->totals.send += time;
	account->state = ledger_executing_state(blocked);
}

/*
 * The account up to "now": what is in progress is added as well as it can be
 * known.  A wait that may become idle, or whose response is still leaving the
 * kernel, is pending.
 *
 * "sampled" is what the sampler knows of this exchange, or NULL.  "blocked"
 * says what an executing backend is blocked in.
 */
void
ledger_project(const Ledger *ledger, const LedgerSampled *sampled, int64_t now,
			   LedgerBlocked blocked, LedgerAccount *account)
{
	now = event_time(ledger, now);
	account->totals = ledger->totals;
	account->pending = 0;
	account->state = LEDGER_STATE_DISABLED;
	account->state_since = ledger->since;

	switch (ledger->phase)
	{
		case LEDGER_OFF:
			break;
		case LEDGER_WAITING:
			project_wait(ledger, sampled, now, account);
			break;
		case LEDGER_EXECUTING:
			project_execution(ledger, sampled, now, blocked, account);
			break;
		case LEDGER_SENDING:
			book_execution(&account->totals, ledger->exec, sampled);
			book_sending(ledger, &account->totals, now, sampled_send_client(ledger, sampled));
			account->state = LEDGER_STATE_SENDING;
			break;
		case LEDGER_TURNING:
			book_execution(&account->totals, ledger->exec, sampled);
			(void) book_turn(ledger, &account->totals, now);
			account->state = LEDGER_STATE_RECEIVING;
			break;
	}
}

/*
 * The session was ready to run, but not running, for "time" before its latest
 * "runs" runs, "waits" of which began because a request had come.
 *
 * The kernel reports only the sum, so the runs after waits get their share by
 * number.  That is client time at most, since a wait's round trip was over
 * when the request came; what a session took to wake from idle time does not
 * count.
 */
void
ledger_run_queue(Ledger *ledger, int64_t time, int64_t waits, int64_t runs)
{
	LedgerTotals *totals = &ledger->totals;
	int64_t		after_waits = 0;
	int64_t		in_client;

	if (time <= 0)
		return;
	if (waits > 0)
		after_waits = waits >= runs ? time : (int64_t) ((double) time * waits / runs);
	in_client = min64(after_waits, max64(totals->client - totals->run_queue_wait, 0));
	totals->run_queue_wait += in_client;
	totals->run_queue += time - after_waits + in_client;
}

/* The number of round trips. */
int64_t
ledger_round_trips(const LedgerTotals *totals)
{
	return totals->requests - totals->pipelined + totals->turns;
}

/* The total of the shares: all time but idle and pending. */
int64_t
ledger_busy_total(const LedgerTotals *totals)
{
	return totals->exec + totals->send + totals->recv + totals->network +
		totals->client;
}

/*
 * The server's, the network's and the client's parts of the time that was not
 * idle.  Blocked sending is the network's, except for what is known to be the
 * client's.  Sending that did not block is a system call, and so the server's,
 * as is the time for which a session with a request got no processor to read
 * it.
 */
int64_t
ledger_server_part(const LedgerTotals *totals)
{
	return totals->exec + totals->send - totals->send_blocked + totals->run_queue_wait;
}

int64_t
ledger_network_part(const LedgerTotals *totals)
{
	return totals->network + totals->send_blocked - totals->send_client;
}

int64_t
ledger_client_part(const LedgerTotals *totals)
{
	return totals->client - totals->run_queue_wait + totals->recv + totals->send_client;
}

/* All time that has been attributed. */
int64_t
ledger_whole(const LedgerTotals *totals)
{
	return ledger_busy_total(totals) + totals->idle;
}

#define TOTALS_FIELDS	(sizeof(LedgerTotals) / sizeof(int64_t))

/* The fields that ledger_whole() adds come first. */
#define WHOLE_FIELDS	(offsetof(LedgerTotals, in_xact_wait) / sizeof(int64_t))

void
ledger_totals_add(LedgerTotals *sum, const LedgerTotals *term)
{
	int64_t    *to = (int64_t *) sum;
	const int64_t *from = (const int64_t *) term;

	for (unsigned i = 0; i < TOTALS_FIELDS; i++)
		to[i] += from[i];
}

void
ledger_totals_subtract(LedgerTotals *difference, const LedgerTotals *term)
{
	int64_t    *to = (int64_t *) difference;
	const int64_t *from = (const int64_t *) term;

	for (unsigned i = 0; i < TOTALS_FIELDS; i++)
		to[i] -= from[i];
}

/*
 * Make a difference of two accounts that of times that have passed.  What was
 * in progress may have turned out to be something else, so a field may have
 * fallen, and another one has gained more than the whole: it keeps what the
 * whole has room for.
 */
static void
cut_to_whole(LedgerTotals *difference)
{
	int64_t    *field = (int64_t *) difference;
	int64_t		room = max64(ledger_whole(difference), 0);

	for (unsigned i = 0; i < TOTALS_FIELDS; i++)
		field[i] = max64(field[i], 0);
	for (unsigned i = 0; i < WHOLE_FIELDS; i++)
	{
		field[i] = min64(field[i], room);
		room -= field[i];
	}
}

/*
 * Clamp a difference of two accounts, also each part to its whole: what is
 * sampled, estimated or asked of the kernel may be known a moment later than
 * its whole.
 */
void
ledger_totals_fit(LedgerTotals *difference)
{
	cut_to_whole(difference);
	exec_parts_fit(difference->exec_part, difference->exec);
	difference->in_xact_wait = min64(difference->in_xact_wait,
									 difference->network + difference->client);
	difference->send_blocked = min64(difference->send_blocked, difference->send);
	difference->send_client = min64(difference->send_client, difference->send_blocked);
	difference->run_queue_wait = min64(difference->run_queue_wait,
									   min64(difference->client, difference->run_queue));
}

/*
 * Compute what an account has gained over what was "added" of it so far, field
 * by field where that is positive, and add it to "added".  Time that was added
 * as one part, and has turned out to be another, is not added again: the parts
 * gain no more than their total.  What that cuts off is added when the part
 * that has fallen rises again.
 *
 * Parts are cut to their wholes, which may have stepped back; the parts of
 * exec are cut to its gain, so that what was added as unsampled stays so.
 */
void
ledger_totals_gain(LedgerTotals *added, const LedgerTotals *account,
				   LedgerTotals *gain)
{
	LedgerTotals before = *added;

	*gain = *account;
	ledger_totals_subtract(gain, &before);
	cut_to_whole(gain);
	exec_parts_fit(gain->exec_part, gain->exec);
	ledger_totals_add(added, gain);
	ledger_totals_fit(added);
	*gain = *added;
	ledger_totals_subtract(gain, &before);
}
