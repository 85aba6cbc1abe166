/*-------------------------------------------------------------------------
 *
 * tally.h
 *	  What each session has counted by statement and for histograms.
 *
 * A session adds up what it counts: its tally has the statements that it is
 * using, and the histograms, since the tally was last taken.  Whoever needs
 * the tables takes it and adds it to them (accumulate.h).
 *
 * A session may use more statements than its tally has places for.  When all of them
 * are in use, one place is for guests: what has been counted of the one that is there
 * goes to its entry in the table of statements when the next one comes.  That takes
 * no lock but the entry's, and no waiting, but it has to be known where the entry is.
 * Statements that nobody has looked up yet stay, and when these are so many that places
 * run short, the session looks all of them up.
 *
 * The session writes its tally within the same write sections as its ledger
 * (session_slot.h): a tally always agrees with the account beside it.  (Only to
 * give a place to a statement takes none: what has no statement yet has counted
 * nothing, whoever copies it.)
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
 * when it applies the reset, and what it counted before is discarded.  RESET is as
 * KEPT, and tells a session on the hot path, which looks at nothing else, that there
 * was a reset; it has seen that already, perhaps.
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
#include "known.h"
#include "session_slot.h"
#include "statements.h"

/* Statements of which a session counts at the same time. */
#define TALLY_STATEMENTS		24

/*
 * When there are so few places left but those of statements whose entry in the table
 * is not known, the session takes its tally itself.
 */
#define TALLY_RESERVE			1

typedef struct TallyHistogram
{
	int64		sum;
	uint32		bucket[HISTOGRAM_BUCKETS];
} TallyHistogram;

/* Behind the metrics' histograms: waits that are all the client's. */
#define TALLY_CLIENT_WAIT		NUM_TALLY_METRICS

typedef struct Tally
{
	int			count;			/* of statements in use */
	TallyHistogram histogram[NUM_TALLY_METRICS + 1];
	CountedStatement statements[TALLY_STATEMENTS];	/* others have counted
													 * nothing */
} Tally;

/* What the session itself keeps of a place in its tally. */
typedef struct TallyPlace
{
	CountedStatement *statement;	/* the place */
	KnownStatement *known;		/* the statement that is there, in all_known */
	int32		where_in_table; /* its entry is, as in known */
	int32		where;			/* and where this place is */
} TallyPlace;

/* The session's own view of it, in its own memory. */
#define TALLY_HINTS				128

typedef struct OwnTally
{
	Tally	   *tally;
	SessionSlot *slot;
	Oid			dbid;
	CountedStatement *current;	/* of the exchange in progress, or the one
								 * before the wait in progress */
	Burst		burst;
	CountedStatement *hint[TALLY_HINTS];	/* where a statement may be; never
											 * NULL */

	TallyPlace	place[TALLY_STATEMENTS];	/* of those in use */
	TallyPlace *guest;			/* if all are: the one for guests, if there is
								 * one; else NULL */
	int			unplaced;		/* statements whose entry is not known */

	Known		all_known;		/* the statements that were run lately */
} OwnTally;

/* read in the hot path: not through the table of exported symbols */
#pragma GCC visibility push(hidden)
extern OwnTally my_tally;
#pragma GCC visibility pop

extern Size tally_shmem_size(void);
extern void tally_shmem_init(void);

/* Functions for the session itself */
extern void tally_attach(int slot);
extern void tally_get_where(int32 *where);
extern void tally_set_where(const int32 *where);
extern bool tally_look_up(uint64 queryid, Oid userid);

/* ... in a write section */
extern bool tally_settle(SessionSlot *slot);
extern void tally_clear_statements(uint64 left);

/* Functions for the holder of the accumulation lock */
extern bool tally_take(int slot, Tally *taken);
extern bool tally_give_back(int slot);
extern bool tally_histogram(const Tally *tally, ClientMetric metric, Histogram *histogram);

/* Should the statements be added to their table, so that places are free? */
static inline bool
tally_wants_room(void)
{
	return my_tally.unplaced >= TALLY_STATEMENTS - TALLY_RESERVE;
}

/*
 * The place of a statement, which is my_tally.current then, if it is where it was the
 * last time; else NULL: it must be looked up.
 */
static inline CountedStatement *
tally_at_hint(uint64 queryid, Oid userid)
{
	CountedStatement *hint = my_tally.hint[queryid % TALLY_HINTS];

	if (unlikely(hint->queryid != queryid || hint->userid != userid))
		return NULL;
	return my_tally.current = hint;
}

static inline void
tally_count(int metric, unsigned bucket, int64 nanoseconds)
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

/*
 * A wait that is not idle, split.  Where the client is all of it, as always without
 * a network, it is the same in three histograms: see tally_histogram().
 */
static pg_attribute_always_inline void
tally_observe_wait(int64 network, int64 client)
{
	int64		wait = network + client;
	unsigned	bucket = histogram_bucket(wait);

	if (network == 0)
	{
		tally_count(TALLY_CLIENT_WAIT, bucket, wait);
		return;
	}
	tally_count(METRIC_WAIT, bucket, wait);
	tally_observe(METRIC_CLIENT, client);
	tally_observe(METRIC_NETWORK, network);
}

#endif							/* PGNETLAT_TALLY_H */
