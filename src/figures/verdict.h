/*-------------------------------------------------------------------------
 *
 * verdict.h
 *	  From figures to findings: what is wrong, how that is known, what to do
 *	  about it, and what that would bring.
 *
 * A subject (a session, a client group, a statement, or the server) has
 * figures over a window: differences of its account, and a few others.  Each
 * rule of verdict.c looks for one thing in them.  It says how much time was
 * lost to it and, where the figures tell, how much of that would be saved;
 * evidence is a sentence with the figures by which it applies, advice the next
 * step.
 *
 * Where the cure is something that can be changed in a prediction (prediction.h),
 * the saving is what is predicted, so that it is what pgnetlat_what_if() says.
 * That takes a workload, and some time: verdict_predict() does it for who wants to
 * know, after verdict_find().  Other savings are parts of what was lost.
 *
 * A rule applies only where there is enough data, and where what was lost is
 * of some size.  The thresholds are here, in one place, because they are what
 * people will want to argue about.  Waits outside of a transaction are
 * nobody's loss: whether the client was computing or had nothing to do, the
 * server cannot tell.
 *
 * Plain C, no server headers.  Times are nanoseconds.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_VERDICT_H
#define PGNETLAT_VERDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ledger.h"
#include "prediction.h"

#define VERDICT_MS				INT64_C(1000000)

/* Size: nothing below 10 ms of each second, nor below this in all. */
#define VERDICT_MIN_LOST_PART	100 /* of the window, one part in so many */
#define VERDICT_MIN_LOST		(250 * VERDICT_MS)

/*
 * Data: a mean, of round trips per transaction, say, is of at least so many
 * requests.  What the server spends on requests takes more: a nightly batch of
 * a few dozen long statements is what a server is for.
 */
#define VERDICT_MIN_REQUESTS	20
#define VERDICT_MIN_SERVED		50

/*
 * The network.  Round trips on one machine, or within a rack, are as short as
 * they can be; those in one zone of a cloud take half a millisecond, and that
 * is what moving the application would bring.  Chatty is who needs many round
 * trips for a transaction, of a length that somebody notices.
 */
#define VERDICT_MIN_RTT			(VERDICT_MS / 10)
#define VERDICT_NEAR_RTT		(VERDICT_MS / 2)
#define VERDICT_CHATTY_TRIPS	5	/* in a transaction, or a burst */
#define VERDICT_CHATTY_TIME		(5 * VERDICT_MS)	/* that they take */
#define VERDICT_CHATTY_SHARE	30	/* %: of the time in transactions */
#define VERDICT_NETWORK_SHARE	50	/* % */
#define VERDICT_TRIPS_KEPT		2	/* of a transaction whose statements
									 * travel together: those, and COMMIT */
#define VERDICT_FETCHES			3	/* round trips for each statement: these
									 * fetch its rows in small portions */
#define VERDICT_LOSS_PERMILLE	10	/* of the packets, sent again ... */
#define VERDICT_LOSS_MIN		10	/* ... and so many at least */

/*
 * Repeated statements: so many executions for each burst, and a client that
 * goes on at once, unless it is in a transaction.  A pooled connection that
 * serves one web request after the other has pauses.
 */
#define VERDICT_REPEATS			4
#define VERDICT_REPEAT_THINK	(3 * VERDICT_MS)

/* Streams: faster ones are not slow, whoever limits them; bytes per second. */
#define VERDICT_FAST_READER		INT64_C(8000000)
#define VERDICT_FAST_PATH		INT64_C(13000000)	/* and what another path
													 * would bring */
#define VERDICT_FAST_LOADER		INT64_C(8000000)
#define VERDICT_STREAM_SHARE	30	/* %: of the time in transactions */

/* Connections: so many at least, and this part of the time with them. */
#define VERDICT_CONNECTIONS		20
#define VERDICT_CONNECT_SHARE	20	/* % */

/*
 * Connections that are held, %: of max_connections so many at least, when so
 * few of them would have been enough; as seen for so long.
 */
#define VERDICT_HELD_SHARE		66
#define VERDICT_POOL_SHARE		20
#define VERDICT_POOL_TIME		(5000 * VERDICT_MS)

/* The client, inside of transactions; a driver needs less than the second. */
#define VERDICT_PAUSE			(20 * VERDICT_MS)
#define VERDICT_THINK			(5 * VERDICT_MS)
#define VERDICT_CLIENT_STARVED	4	/* a client on this machine may have
									 * waited so many times as long for a
									 * processor as the server did */
#define VERDICT_THINK_SHARE		50	/* %: of the time in transactions */
#define VERDICT_XACT_PAUSE		(100 * VERDICT_MS)	/* in one transaction */
/* ... and one connection that never pauses, in a loop with much else to do */
#define VERDICT_LOOP_SHARE		80	/* %: of its time */
#define VERDICT_LOOP_THINK		VERDICT_MS
#define VERDICT_LOOP_PAUSE		(50 * VERDICT_MS)

/* The server: its part, %, and what it takes for a request. */
#define VERDICT_SERVER_SHARE	50
#define VERDICT_SLOW_REQUEST	(10 * VERDICT_MS)
#define VERDICT_SERVER_SPEED	2	/* what would be saved if it were so many
									 * times as fast */
#define VERDICT_AWAY_SHARE		30	/* for a standby, for another server */
#define VERDICT_AWAY_REQUEST	(5 * VERDICT_MS)
#define VERDICT_LOCK_SHARE		20
#define VERDICT_LOCK_REQUEST	(20 * VERDICT_MS)
#define VERDICT_LONG_LOCK		(100 * VERDICT_MS)	/* there is somebody to
													 * blame */
#define VERDICT_STARVED_SHARE	40
#define VERDICT_STARVED_REQUEST (2 * VERDICT_MS)

/* In the order of precedence, among those that cost the same. */
typedef enum Verdict
{
	VERDICT_NONE = 0,			/* there is too little data */
	VERDICT_HOLDS_UP,
	VERDICT_HELD_UP,
	VERDICT_IDLE_IN_XACT,
	VERDICT_REPEATED,
	VERDICT_LOSSY_PATH,
	VERDICT_NARROW_PATH,
	VERDICT_SLOW_READER,
	VERDICT_SLOW_LOADER,
	VERDICT_CHATTY,
	VERDICT_NETWORK_BOUND,
	VERDICT_RECONNECTS,
	VERDICT_CLIENT_BOUND,
	VERDICT_SERVER_BOUND,
	VERDICT_STARVED,
	VERDICT_TOO_MANY,
	VERDICT_BALANCED,
	NUM_VERDICTS
} Verdict;

typedef enum VerdictSubject
{
	VERDICT_OF_SESSION = 1 << 0,
	VERDICT_OF_CLIENT = 1 << 1,
	VERDICT_OF_STATEMENT = 1 << 2,
	VERDICT_OF_SERVER = 1 << 3
} VerdictSubject;

/* What a holder of locks did while others waited. */
typedef struct VerdictHeld
{
	int64_t		exec;
	int64_t		send;
	int64_t		recv;
	int64_t		network;
	int64_t		client;
} VerdictHeld;

/* Whom does a session wait for? */
#define VERDICT_NOBODY			(-1)

/* What is known of a subject.  All that does not apply is zero. */
typedef struct VerdictFigures
{
	VerdictSubject subject;
	int64_t		window;			/* in which all that follows was counted */
	LedgerTotals totals;
	int64_t		rtt;			/* 0: none, or not known */
	int64_t		retransmits;
	int64_t		packets_sent;
	int64_t		bytes_received; /* 0: not known */
	int64_t		sessions;		/* that there are, ... */
	int64_t		ended_sessions; /* ... and were */
	int64_t		connections;	/* that were set up, ... */
	int64_t		connect_time;	/* ... as long as the clients saw it take */
	int64_t		held_up;		/* others waited so long for its locks ... */
	VerdictHeld held_while;		/* ... and in a part of that it did this */

	/* repeated statements took this, which have findings of their own: */
	int64_t		explained;		/* of the network's time */
	int64_t		explained_others;	/* of the client's, and of the server's */

	/* of the server */
	int64_t		max_connections;
	int64_t		pool_size;		/* as in pgnetlat_pools; 0: not known */
	int64_t		pool_time;		/* for which it was sampled */

	/* of a session */
	LedgerState state;
	int64_t		state_age;
	int			blocked_by;		/* as in pgnetlat_sessions */

	/* of a statement */
	int64_t		calls;
	int64_t		repeats;
	int64_t		repeat_network;
	int64_t		client;
	int64_t		in_xact_wait;
	int64_t		time;			/* executions, and waits after them */
} VerdictFigures;

#define VERDICT_UNKNOWN			INT64_C(-1)

typedef struct VerdictFinding
{
	Verdict		verdict;
	int64_t		lost;			/* in the window */
	int64_t		saving;			/* of that, or VERDICT_UNKNOWN */
	ExecPart	part;			/* of VERDICT_SERVER_BOUND: by what */
} VerdictFinding;

/* More than these cannot apply to one subject. */
#define VERDICT_FINDINGS		NUM_VERDICTS

#define VERDICT_EVIDENCE_SIZE	320

extern int	verdict_find(const VerdictFigures *figures, VerdictFinding *findings);
extern void verdict_predict(const VerdictFigures *figures, const Workload *workload,
							VerdictFinding *finding);
extern Verdict verdict_short(const VerdictFigures *figures);
extern const char *verdict_name(Verdict verdict);
extern bool verdict_is_of_session(Verdict verdict);
extern void verdict_evidence(const VerdictFigures *figures, const VerdictFinding *finding,
							 char *evidence);
extern const char *verdict_advice(const VerdictFigures *figures, const VerdictFinding *finding);
extern int64_t verdict_time(const VerdictFigures *figures);

#endif							/* PGNETLAT_VERDICT_H */
