/*-------------------------------------------------------------------------
 *
 * ledger.h
 *	  The account of one session's wall-clock time.
 *
 * A ledger is told what the wire shows (a request was read, a response is
 * being handed to the socket, it has been handed over), each with the time at
 * which it happened, and keeps where the time went.  It is plain C: it knows
 * no server, reads no clock and takes no lock, so that it can be tested and
 * fuzzed on its own, and so that a reader can let a private copy run ahead.
 *
 *		OFF --start--> WAITING -----wait_end----> EXECUTING --turn_begin--> TURNING
 *						  ^							|   ^	^					|
 *						  |					 send_begin  send_end +---turn_end---+
 *						  |							v   |
 *						  +-----exchange_end------ SENDING
 *
 * A small response is sent without being seen in SENDING (ledger_response_plain).
 * A turn is a round trip inside an exchange: the server has asked its client
 * for data (COPY FROM STDIN) and waits for the first of it.
 * stop() leads back to OFF from everywhere.  A wait may end for work that no
 * request asked for (a FATAL error); was_work() takes back a wait or a turn that
 * turned out to be none, wait_notified() lets a wait begin anew.
 *
 * All times are nanoseconds of one monotonic clock.  An event that claims to
 * be older than the one before it counts as simultaneous with that.  Every
 * nanosecond between start and stop lands in exactly one of the parts exec,
 * send, recv, network, client and idle.  What has ended is booked, in totals that
 * never fall; what is in progress is projected by today's best knowledge, and may
 * turn out otherwise.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_LEDGER_H
#define PGNETLAT_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exec_split.h"

typedef enum LedgerPhase
{
	LEDGER_OFF = 0,				/* nothing is being counted */
	LEDGER_EXECUTING,			/* in an exchange: the server works */
	LEDGER_SENDING,				/* in an exchange: bytes go to the socket */
	LEDGER_TURNING,				/* in an exchange: the client was asked for
								 * data, and nothing of it has come */
	LEDGER_WAITING				/* between exchanges */
} LedgerPhase;

/* What a session is doing, as shown to users. */
typedef enum LedgerState
{
	LEDGER_STATE_DISABLED = 0,
	LEDGER_STATE_EXECUTING,
	LEDGER_STATE_SENDING,
	LEDGER_STATE_RECEIVING,
	LEDGER_STATE_WAITING,
	LEDGER_STATE_WAITING_IN_XACT,
	LEDGER_STATE_IDLE
} LedgerState;

/* In an exchange, or in a transaction. */
static inline bool
ledger_state_is_busy(LedgerState state)
{
	return state == LEDGER_STATE_EXECUTING || state == LEDGER_STATE_SENDING ||
		state == LEDGER_STATE_RECEIVING || state == LEDGER_STATE_WAITING_IN_XACT;
}

#define LEDGER_NUM_STATES	(LEDGER_STATE_IDLE + 1)

/*
 * Handing bytes to the socket is a system call, which is the server's work.
 * One that takes longer than this was blocked, unless there was so little to send that
 * the kernel always has room for it: then the backend just got no processor.
 */
#define LEDGER_BLOCKED_NS	INT64_C(1000000)

/*
 * What has been counted.  Times in nanoseconds.  send_blocked, send_client,
 * in_xact_wait, run_queue_wait and exec_part are "of which" columns: parts of
 * send, of send_blocked, of network + client, of client, and of exec.  exec_part is
 * what samples say: whoever observes a session fills it in.
 *
 * Sums only: all fields are added up (over sessions into groups, intervals and
 * databases) and subtracted (windows, resets) as one array.  What is no sum takes the
 * way of the round-trip time: a field of its own wherever the totals go.
 */
typedef struct LedgerTotals
{
	int64_t		exec;
	int64_t		send;
	int64_t		recv;
	int64_t		network;
	int64_t		client;
	int64_t		idle;
	int64_t		in_xact_wait;
	int64_t		send_blocked;	/* of send: it took longer than a system call */
	int64_t		send_client;	/* of that: the client would take no more */
	int64_t		requests;
	int64_t		statements;
	int64_t		transactions;
	int64_t		pipelined;
	int64_t		turns;			/* round trips inside exchanges */
	int64_t		pooler_requests;	/* of the requests: a pooler's own */
	int64_t		bytes_sent;		/* handed to the socket, before encryption */
	int64_t		run_queue;		/* ready to run, without getting a processor */
	int64_t		run_queue_wait; /* of that, estimated: after a request had
								 * come */
	int64_t		exec_part[NUM_EXEC_PARTS];
} LedgerTotals;

/* How a wait will be split, as far as is known when it begins. */
typedef struct LedgerWaitTerms
{
	int64_t		rtt;			/* one round trip; 0 where there is none */
	int64_t		idle_threshold; /* longer waits outside a transaction are idle */
	bool		in_xact;		/* inside a transaction: never idle */
	bool		pipelined;		/* the next request has already arrived */
	bool		draining;		/* the kernel still has much to send: how the
								 * wait splits is known only when it is done */
} LedgerWaitTerms;

/*
 * How long the kernel went on sending the response after the wait had begun,
 * its last acknowledgement included, and for how much of that the client's
 * receive window was closed.
 */
typedef struct LedgerDrain
{
	int64_t		total;
	int64_t		client;
} LedgerDrain;

typedef struct Ledger
{
	LedgerPhase phase;
	bool		counts;			/* the exchange in progress is a request */
	bool		local;			/* no network: who blocks a send is the client */
	bool		may_block;		/* the sending in progress is of more than
								 * what always finds room in the kernel */
	LedgerWaitTerms wait;		/* of the wait in progress */
	uint64_t	exchange_number;	/* number of the latest exchange; never
									 * reset */
	int64_t		since;			/* when the current phase began */
	int64_t		counted_from;	/* nothing before this counts */
	int64_t		exec;			/* closed execution of this exchange: becomes
								 * exec and recv when the exchange ends */
	int64_t		turn_rtt;		/* of the turn in progress: one round trip */
	LedgerTotals totals;		/* closed intervals only */
} Ledger;

/*
 * What the sampler has seen of the exchange in progress, or of the wait after
 * it: what no event shows.  Valid for one exchange and one reset generation
 * only; the caller checks both and passes NULL where they differ.
 */
typedef struct LedgerSampled
{
	int64_t		recv;			/* waited for the client inside the exchange */
	int64_t		visited;		/* recv is known up to here */
	int64_t		send_began;		/* send_client is of the sending that began
								 * then */
	int64_t		send_client;	/* of it, the client's window was closed */
	bool		drained;		/* drain below is known */
	LedgerDrain drain;
} LedgerSampled;

/* What an executing backend is seen to be blocked in, by who looks at it. */
typedef enum LedgerBlocked
{
	LEDGER_NOT_BLOCKED = 0,
	LEDGER_BLOCKED_READING,		/* from its client */
	LEDGER_BLOCKED_WRITING		/* to it, although that seemed impossible */
} LedgerBlocked;

/* An account up to a moment: intervals in progress included. */
typedef struct LedgerAccount
{
	LedgerTotals totals;
	int64_t		pending;		/* in progress, and not yet attributable */
	LedgerState state;
	int64_t		state_since;
} LedgerAccount;

/* How one wait was split: what ledger_wait_end() booked. */
typedef struct LedgerWait
{
	int64_t		length;
	int64_t		network;
	int64_t		client;
	int64_t		idle;
	bool		in_xact;
} LedgerWait;

extern void ledger_start(Ledger *ledger, int64_t now, bool local,
						 const LedgerWaitTerms *terms);
extern void ledger_stop(Ledger *ledger, int64_t now, const LedgerSampled *sampled,
						const LedgerDrain *drain, LedgerWait *wait);
extern void ledger_reset(Ledger *ledger, int64_t at);

extern void ledger_wait_end(Ledger *ledger, int64_t at, bool is_request,
							const LedgerDrain *drain, LedgerWait *wait);
extern int64_t ledger_wait_notified(Ledger *ledger, int64_t at);
extern void ledger_was_work(Ledger *ledger);
extern void ledger_send_begin(Ledger *ledger, int64_t at, bool may_block);
extern void ledger_send_end(Ledger *ledger, int64_t at, const LedgerSampled *sampled,
							int64_t client);
extern void ledger_turn_begin(Ledger *ledger, int64_t at, int64_t rtt);
extern int64_t ledger_turn_end(Ledger *ledger, int64_t at, bool is_turn);
extern void ledger_exchange_end(Ledger *ledger, int64_t at, const LedgerSampled *sampled,
								int64_t client, const LedgerWaitTerms *terms);

extern void ledger_run_queue(Ledger *ledger, int64_t time, int64_t waits, int64_t runs);
extern int64_t ledger_round_trips(const LedgerTotals *totals);
extern void ledger_project(const Ledger *ledger, const LedgerSampled *sampled,
						   int64_t now, LedgerBlocked blocked, LedgerAccount *account);
extern LedgerState ledger_executing_state(LedgerBlocked blocked);
extern int64_t ledger_busy_total(const LedgerTotals *totals);
extern int64_t ledger_server_part(const LedgerTotals *totals);
extern int64_t ledger_network_part(const LedgerTotals *totals);
extern int64_t ledger_client_part(const LedgerTotals *totals);
extern int64_t ledger_exec_unsampled(const LedgerTotals *totals);
extern void ledger_totals_add(LedgerTotals *sum, const LedgerTotals *term);
extern void ledger_totals_subtract(LedgerTotals *difference, const LedgerTotals *term);
extern void ledger_totals_fit(LedgerTotals *difference);
extern void ledger_totals_gain(LedgerTotals *added, const LedgerTotals *account,
							   LedgerTotals *gain);

/* ---------------------------------------------------------------------------
 * The plain exchange: a wait that is not idle and whose response had left, of
 * one request, and a response so small that sending it cannot block.  That is
 * most of them, and what the hot path pays for.  The shortcuts do what the
 * functions above do.
 * ---------------------------------------------------------------------------
 */

/* The phase in progress is wholly after the latest reset, and before "at". */
static inline bool
ledger_phase_is_plain(const Ledger *ledger, int64_t at)
{
	return ledger->since >= ledger->counted_from && at >= ledger->since;
}

/* May ledger_wait_end_plain() be told that the wait ended at "at"? */
static inline bool
ledger_wait_is_plain(const Ledger *ledger, int64_t at)
{
	return ledger_phase_is_plain(ledger, at) && !ledger->wait.draining &&
		at - ledger->since <= ledger->wait.idle_threshold;
}

/* ledger_wait_end() for a plain wait.  Returns how it was split. */
static inline LedgerWait
ledger_wait_end_plain(Ledger *ledger, int64_t at)
{
	LedgerWait	wait;

	wait.in_xact = ledger->wait.in_xact;
	wait.length = at - ledger->since;
	wait.network = wait.length < ledger->wait.rtt ? wait.length : ledger->wait.rtt;
	wait.client = wait.length - wait.network;
	wait.idle = 0;
	ledger->totals.network += wait.network;
	ledger->totals.client += wait.client;
	if (wait.in_xact)
		ledger->totals.in_xact_wait += wait.length;
	ledger->phase = LEDGER_EXECUTING;
	ledger->since = at;
	ledger->exchange_number++;
	ledger->counts = true;
	return wait;
}

/* May ledger_response_plain() be told that sending began at "sending_since"? */
static inline bool
ledger_response_is_plain(const Ledger *ledger, int64_t sending_since)
{
	return ledger_phase_is_plain(ledger, sending_since) && ledger->counts &&
		ledger->exec == 0 && !ledger->wait.pipelined && !ledger->wait.draining;
}

/*
 * ledger_send_begin() and ledger_exchange_end() in one, for a response that
 * could not block, of an exchange of which the sampler has seen nothing.  The
 * wait that begins is neither pipelined nor draining.
 */
static inline void
ledger_response_plain(Ledger *ledger, int64_t sending_since, int64_t at,
					  const LedgerWaitTerms *terms)
{
	ledger->totals.exec += sending_since - ledger->since;
	ledger->totals.send += at - sending_since;
	ledger->totals.requests++;
	ledger->counts = false;
	ledger->phase = LEDGER_WAITING;
	ledger->since = at;
	ledger->wait.rtt = terms->rtt;
	ledger->wait.idle_threshold = terms->idle_threshold;
	ledger->wait.in_xact = terms->in_xact;
}

#endif							/* PGNETLAT_LEDGER_H */
