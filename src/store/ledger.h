/*-------------------------------------------------------------------------
 *
 * ledger.h
 *	  A state machine that accounts for one session's wall-clock time.
 *
 * A ledger takes the events on the wire (a request was read, a response is
 * being handed to the socket, it has been handed over), each with its time,
 * and keeps where the time went.  It is plain C: it uses no server code, reads
 * no clock and takes no lock, so that it can be tested and fuzzed on its own,
 * and so that a reader can let a private copy run ahead.
 *
 *		OFF --start--> WAITING -----wait_end----> EXECUTING --turn_begin--> TURNING
 *						  ^							|   ^	^					|
 *						  |					 send_begin  send_end +---turn_end---+
 *						  |							v   |
 *						  +-----exchange_end------ SENDING
 *
 * A small response skips SENDING (ledger_response_plain).  A turn is a round
 * trip inside an exchange: the server has asked its client for something, and
 * waits for it.  Where nothing shows when the answer comes (COPY FROM STDIN),
 * the turn is the beginning of EXECUTING: see ledger_invite().  stop() leads
 * back to OFF from any phase.  A wait may end for work that no request asked
 * for (a FATAL error).  was_work() undoes what was no wait or turn after all,
 * and wait_notified() begins a wait anew.
 *
 * All times are nanoseconds of one monotonic clock.  An event with an earlier
 * time than the one before it counts as simultaneous with that one.  Every
 * nanosecond between start and stop is in exactly one of the parts exec, send,
 * recv, network, client and idle.  What has ended is booked, in totals that
 * never fall; what is in progress is projected as well as it can be known, and
 * may turn out otherwise.
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
								 * Sync, which has not come */
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

/*
 * Handing bytes to the socket is a system call, which is the server's work.
 * If it takes longer than this, it was blocked, unless there was so little to
 * send that the kernel always has room: then the backend just got no
 * processor.
 */
#define LEDGER_BLOCKED_NS	INT64_C(1000000)

/*
 * What has been counted; times in nanoseconds.  send_blocked, send_client,
 * in_xact_wait, run_queue_wait and exec_part are parts of send, of
 * send_blocked, of network + client, of client, and of exec.  exec_part is
 * sampled: slot_observe() fills it in.
 *
 * Only sums: all fields are added (over sessions into groups, intervals and
 * databases) and subtracted (windows, resets) as one array.  A figure that is
 * not a sum, such as the round-trip time, is a field of its own beside the
 * totals.
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
	int64_t		send_blocked;	/* part of send: blocked */
	int64_t		send_client;	/* part of that: the client's window was
								 * closed */
	int64_t		requests;
	int64_t		statements;
	int64_t		transactions;
	int64_t		pipelined;
	int64_t		turns;			/* round trips inside exchanges */
	int64_t		pooler_requests;	/* part of requests: a pooler's own */
	int64_t		bytes_sent;		/* handed to the socket, before encryption */
	int64_t		run_queue;		/* ready to run, but not running */
	int64_t		run_queue_wait; /* part of that, estimated: after a request
								 * had come */
	int64_t		exec_part[NUM_EXEC_PARTS];
} LedgerTotals;

/* How a wait will be split, as known when it begins. */
typedef struct LedgerWaitTerms
{
	int64_t		rtt;			/* one round trip; 0 where there is none */
	int64_t		idle_threshold; /* longer waits outside a transaction are idle */
	bool		in_xact;		/* inside a transaction: never idle */
	bool		pipelined;		/* the next request has arrived */
	bool		draining;		/* the kernel still has much to send: how the
								 * wait is split is known only when that is
								 * done */
} LedgerWaitTerms;

/*
 * How long the kernel went on sending the response after the wait began, until
 * the last acknowledgement, and how long of that the client's receive window
 * was closed.
 */
typedef struct LedgerDrain
{
	int64_t		total;
	int64_t		client;
} LedgerDrain;

typedef struct Ledger
{
	LedgerPhase phase;
	bool		is_request;		/* the exchange in progress is a request */
	bool		local;			/* no network: only the client can block a
								 * send */
	bool		may_block;		/* the send in progress is more than the
								 * kernel always has room for */
	LedgerWaitTerms wait;		/* of the latest wait */
	uint64_t	exchange_number;	/* number of the latest exchange; never
									 * reset */
	int64_t		since;			/* when the current phase began */
	int64_t		counted_from;	/* nothing before this counts */
	int64_t		exec;			/* execution in this exchange so far; booked
								 * as exec and recv when it ends */
	int64_t		turn_rtt;		/* one round trip, for the turn in progress */
	int64_t		answered_from;	/* if the execution in progress lasts longer,
								 * it begins with a turn; 0: it does not */
	LedgerTotals totals;		/* booked */
} Ledger;

/*
 * What the sampler has seen of the exchange in progress, or of the wait after
 * it, and what no event shows.  It is valid for one exchange and one reset
 * generation: the caller checks both, and passes NULL where they differ.
 */
typedef struct LedgerSampled
{
	int64_t		recv;			/* time that the exchange waited for its
								 * client */
	int64_t		visited;		/* recv is known up to here */
	int64_t		send_began;		/* send_client is of the send that began then */
	int64_t		send_client;	/* how long the client's window was closed in
								 * it */
	bool		lost;			/* the response was lost, and has not been
								 * acknowledged */
	bool		drained;		/* "drain" is known */
	LedgerDrain drain;
} LedgerSampled;

/* What an executing backend is blocked in, by its wait event. */
typedef enum LedgerBlocked
{
	LEDGER_NOT_BLOCKED = 0,
	LEDGER_BLOCKED_READING,		/* reading from its client */
	LEDGER_BLOCKED_WRITING		/* writing to it, although that seemed
								 * impossible */
} LedgerBlocked;

/* An account up to a moment, with what is in progress. */
typedef struct LedgerAccount
{
	LedgerTotals totals;
	int64_t		pending;		/* in progress, and not yet attributable */
	LedgerState state;
	int64_t		state_since;
} LedgerAccount;

/* How ledger_wait_end() has split and booked a wait. */
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
extern void ledger_invite(Ledger *ledger, int64_t asked_at, int64_t rtt);
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
extern int64_t ledger_whole(const LedgerTotals *totals);
extern int64_t ledger_server_part(const LedgerTotals *totals);
extern int64_t ledger_network_part(const LedgerTotals *totals);
extern int64_t ledger_client_part(const LedgerTotals *totals);
extern void ledger_totals_add(LedgerTotals *sum, const LedgerTotals *term);
extern void ledger_totals_subtract(LedgerTotals *difference, const LedgerTotals *term);
extern void ledger_totals_fit(LedgerTotals *difference);
extern void ledger_totals_gain(LedgerTotals *added, const LedgerTotals *account,
							   LedgerTotals *gain);

/* When the execution in progress began, after the turn that it begins with. */
static inline int64_t
ledger_executes_from(const Ledger *ledger)
{
	return ledger->answered_from == 0 ? ledger->since : ledger->since + ledger->turn_rtt;
}

/* ---------------------------------------------------------------------------
 * The plain exchange: one request, after a wait that was not idle and whose
 * response had left the kernel, with a response so small that sending it
 * cannot block.  Most exchanges are plain.  These functions do the same as
 * those above, only faster.
 * ---------------------------------------------------------------------------
 */

/* Is the phase in progress wholly after the latest reset, and before "at"? */
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
	ledger->is_request = true;
	return wait;
}

/* May ledger_response_plain() be told that sending began at "sending_since"? */
static inline bool
ledger_response_is_plain(const Ledger *ledger, int64_t sending_since)
{
	return ledger_phase_is_plain(ledger, sending_since) && ledger->is_request &&
		ledger->exec == 0 && ledger->answered_from == 0 && !ledger->wait.pipelined &&
		!ledger->wait.draining;
}

/*
 * ledger_send_begin() and ledger_exchange_end() in one, for a response that
 * could not block in an exchange that the sampler has not seen.  The wait that
 * begins is neither pipelined nor draining.
 */
static inline void
ledger_response_plain(Ledger *ledger, int64_t sending_since, int64_t at,
					  const LedgerWaitTerms *terms)
{
	ledger->totals.exec += sending_since - ledger->since;
	ledger->totals.send += at - sending_since;
	ledger->totals.requests++;
	ledger->is_request = false;
	ledger->phase = LEDGER_WAITING;
	ledger->since = at;
	ledger->wait.rtt = terms->rtt;
	ledger->wait.idle_threshold = terms->idle_threshold;
	ledger->wait.in_xact = terms->in_xact;
}

#endif							/* PGNETLAT_LEDGER_H */
