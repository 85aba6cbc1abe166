/*-------------------------------------------------------------------------
 *
 * tally.h
 *	  What each session has counted by statement and for histograms.
 *
 * A session adds up what it counts: its tally has the statements that it is
 * using, and the histograms, since the tally was last taken.  Whoever needs
 * the tables takes it and adds it to them (accumulate.h), and so does the
 * session itself when it needs the place of a statement for another one.
 *
 * The session writes its tally within the same write sections as its ledger
 * (session_slot.h): a tally always agrees with the account beside it.  No lock
 * is needed for counting, and nothing is ever full: before it needs a place that
 * is not there, the session has taken its tally to the tables.
 *
 * Taking.  To take a tally is to copy it and have it cleared, but only the
 * session may write it.  So the taker copies it and leaves a note,
 * tally_state, at which the session clears its tally before it counts anything
 * else.  The two agree on whether the copy was up to date:
 *
 *		session						taker (one at a time: accumulation lock)
 *		count of lock: odd			copy, with an even count of the lock
 *		full barrier				state: KEPT -> PROPOSED (full barrier)
 *		read state:					count still the same? else -> KEPT, again
 *			PROPOSED -> KEPT		state: PROPOSED -> TAKEN
 *			TAKEN: clear, -> KEPT
 *		write the tally
 *		count of lock: even
 *
 * Either the session sees the proposal, or the taker sees that the session has
 * moved on, or neither: then nothing was written in between.  If both do, the
 * first one to change PROPOSED wins.  If the state is TAKEN, there is nothing
 * to take.  VOID says that a reset has come in between: the session sets it
 * when it applies the reset, and what it counted before is discarded.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_TALLY_H
#define PGNETLAT_TALLY_H

#include "burst.h"
#include "clients.h"
#include "histogram.h"
#include "session_slot.h"
#include "statements.h"

/* Statements of which a session counts at the same time. */
#define TALLY_STATEMENTS		24

/* When there are so few places left, the session takes its tally itself. */
#define TALLY_RESERVE			1

/* Of one statement; of what has no identifier, too. */
typedef struct TallyStatement
{
	uint64		queryid;
	Oid			userid;
	uint32		executed_in;	/* number of the burst in which it was, last */
	StatementTotals totals;
} TallyStatement;

typedef struct TallyHistogram
{
	int64		sum;
	uint32		bucket[HISTOGRAM_BUCKETS];
} TallyHistogram;

typedef struct Tally
{
	int			count;			/* of statements in use */
	TallyHistogram histogram[NUM_TALLY_METRICS];
	TallyStatement statements[TALLY_STATEMENTS];
} Tally;

/* The session's own view of it, in its own memory. */
#define TALLY_HINTS				256

typedef struct OwnTally
{
	Tally	   *tally;
	pg_atomic_uint32 *state;	/* in the slot */
	TallyStatement *current;	/* of the exchange in progress, or the one
								 * before the wait in progress */
	Burst		burst;
	TallyStatement *hint[TALLY_HINTS];	/* where a statement may be; never
										 * NULL */
} OwnTally;

/* read in the hot path: not through the table of exported symbols */
#pragma GCC visibility push(hidden)
extern OwnTally my_tally;
#pragma GCC visibility pop

extern Size tally_shmem_size(void);
extern void tally_shmem_init(void);

/* Functions for the session itself */
extern void tally_attach(int slot);
extern bool tally_look_up(uint64 queryid, Oid userid);

/* ... in a write section */
extern bool tally_settle(void);
extern void tally_claim(uint64 queryid, Oid userid);
extern void tally_clear_statements(const StatementBatchItem *left, int count);

/* Functions for the holder of the accumulation lock */
extern bool tally_take(int slot, Tally *taken);
extern int	tally_statements(const Tally *tally, Oid dbid, StatementBatchItem *items);
extern void tally_histogram(const Tally *tally, ClientMetric metric, Histogram *histogram);

/* Places for further statements */
static inline int
tally_room(void)
{
	return TALLY_STATEMENTS - my_tally.tally->count;
}

/*
 * Find the place of a statement: it is my_tally.current, then.  False: there
 * is none, it must be claimed.
 */
static inline bool
tally_find(uint64 queryid, Oid userid)
{
	TallyStatement *hint = my_tally.hint[queryid % TALLY_HINTS];

	if (unlikely(hint->queryid != queryid || hint->userid != userid))
		return tally_look_up(queryid, userid);
	my_tally.current = hint;
	return true;
}

static inline void
tally_count(ClientMetric metric, unsigned bucket, int64 nanoseconds)
{
	TallyHistogram *histogram = &my_tally.tally->histogram[metric];

	histogram->bucket[bucket]++;
	histogram->sum += nanoseconds;
}

static inline void
tally_observe(ClientMetric metric, int64 nanoseconds)
{
	tally_count(metric, histogram_bucket(nanoseconds), nanoseconds);
}

/* A wait that is not idle, split. */
static inline void
tally_observe_wait(int64 network, int64 client)
{
	int64		wait = network + client;
	unsigned	bucket = histogram_bucket(wait);

	tally_count(METRIC_WAIT, bucket, wait);
	if (network == 0)
	{
		/* the client is all of it */
		tally_count(METRIC_CLIENT, bucket, wait);
		tally_count(METRIC_NETWORK, 0, 0);
		return;
	}
	tally_observe(METRIC_CLIENT, client);
	tally_observe(METRIC_NETWORK, network);
}

#endif							/* PGNETLAT_TALLY_H */
