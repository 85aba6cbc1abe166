/*-------------------------------------------------------------------------
 *
 * prediction.h
 *	  What an account would be like if the network, the client's way of asking,
 *	  or the server were different.
 *
 *		workload_from_totals()	what a transaction took, and consists of
 *		predict()				how long it would take, and how many of them
 *								there would be
 *
 * A workload is that of sessions which go on as soon as they can: a closed
 * queueing network (mva.h), in which a transaction consists of
 *
 *		network			round trips, which are as long as the path, and data
 *						that is under way, which is not
 *		client			what it thinks
 *		processors		the server's work, and waiting for a processor with it
 *		io				files
 *		held up			locks, standbys, other servers, and other waits
 *
 * All but the processors is delay.  Idle time is no part of a transaction, nor
 * is what was pending when the account was read.
 *
 * Plain C, no server headers.  Times are milliseconds, throughput is per second.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_PREDICTION_H
#define PGNETLAT_PREDICTION_H

#include <stdbool.h>
#include <stdint.h>

#include "ledger.h"

/* With fewer transactions there is no mean to speak of. */
#define PREDICTION_LEAST	20

/* One transaction of a client group, or of a session, on average. */
typedef struct Workload
{
	int64_t		transactions;	/* so many were counted ... */
	bool		per_request;	/* ... or, for lack of any, requests */
	double		sessions;		/* not idle at the same time */
	double		processors;		/* that they could have; set by the caller */

	double		statements;
	double		round_trips;
	bool		rtt_known;		/* else, round trips are part of the client's
								 * time */
	double		trip_time;		/* round trips ... */
	double		stream_time;	/* ... and the rest of the network's part */
	double		client_time;
	double		processor_time; /* on processors */
	double		run_queue_time; /* waiting for them */
	double		on_cpu;			/* as the kernel knows it: of all the process
								 * does; 0: unknown.  Not in the sum */
	double		io_time;
	double		held_up_time;

	double		transaction_time;	/* the sum of all times above */
	double		throughput;		/* of all sessions */
} Workload;

/* What is to be different; NAN: as it is. */
typedef struct Change
{
	double		rtt;			/* one round trip takes so long */
	double		round_trips;	/* of a transaction */
	double		batch;			/* so many statements share a round trip; 1:
								 * as it is */
	double		server_speed;	/* so many times as fast */
	double		sessions;
} Change;

#define NO_CHANGE	((Change) {NAN, NAN, NAN, NAN, NAN})

typedef struct Prediction
{
	double		transaction_time;
	double		throughput;
	double		throughput_low; /* what is not known (prediction.c), at worst */
	double		throughput_high;	/* ... and at best */
} Prediction;

extern bool workload_from_totals(Workload *workload, const LedgerTotals *totals,
								 int64_t rtt, bool has_network, int64_t busy_time);
extern bool predict(const Workload *workload, const Change *change,
					Prediction *prediction);

extern double workload_server_time(const Workload *workload);
extern double workload_network_time(const Workload *workload);
extern double processor_time_of_totals(const LedgerTotals *totals);

#endif							/* PGNETLAT_PREDICTION_H */
