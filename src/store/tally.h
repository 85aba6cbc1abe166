/*-------------------------------------------------------------------------
 *
 * tally.h
 *	  Tallies: what each session has counted by statement and for
 *	  histograms.
 *
 * A session counts in its tally in the same write sections in which it
 * publishes its account, so that the two agree.  Accumulating a session takes
 * its tally and adds it to the tables (accumulate.h).  A session whose tally
 * is full adds the statements to their table itself (exchange.c).
 *
 * A statement keeps its entry, with what is known for finding repeats, until
 * another statement needs the entry and this one has not been executed since
 * the tally was emptied.  (Reusing an entry takes no write section: in any
 * copy, both statements have counted nothing.)
 *
 * Taking.  To take a tally is to copy it and have it cleared, but only the
 * session may write to it.  So the taker copies it and sets tally_state, which
 * tells the session to clear its tally before it counts anything else.  The
 * two agree on whether the copy was up to date:
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
 * to take.
 *
 * Resets.  A tally has the generation in which it was counted.  A tally of an
 * older generation than the latest reset's is void: nobody takes it, and the
 * session clears it when it has applied the reset to its account.
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

typedef struct TallyHistogram
{
	int64		sum;
	uint32		bucket[HISTOGRAM_BUCKETS];
} TallyHistogram;

/* After the metrics' histograms: waits that are wholly the client's. */
#define TALLY_CLIENT_WAIT		NUM_TALLY_METRICS

typedef struct Tally
{
	uint32		generation;		/* of the latest reset applied */
	int			count;			/* entries that have ever been used */
	TallyHistogram histogram[NUM_TALLY_METRICS + 1];
	int64		identified;		/* statements with an identifier */
	int64		repeats_max;	/* of one statement in one burst ... */
	uint64		repeats_max_queryid;	/* ... and its identifier */
	int64		round_trips_max;	/* of a transaction block */
	CountedStatement statements[TALLY_STATEMENTS];
} Tally;

/* The session's own view of its tally, in private memory. */
#define TALLY_BUCKETS			128

/* How often a statement was repeated in a burst. */
typedef struct BurstRepeats
{
	uint32		burst;			/* its number */
	uint32		repeats;
} BurstRepeats;

typedef struct OwnTally
{
	Tally	   *tally;
	CountedStatement *current;	/* of the exchange in progress, or of the one
								 * before the wait */
	Burst		burst;
	BurstRepeats repeats[TALLY_STATEMENTS];
	int64		trips_before;	/* round trips before the transaction block;
								 * PG_INT64_MAX: nobody saw it begin */

	/* chains of entries, by query identifier */
	CountedStatement *first[TALLY_BUCKETS];
	CountedStatement *next[TALLY_STATEMENTS];
	int			next_free;		/* all entries before it are in use */
} OwnTally;

/* hidden: it is read in the hot path */
#pragma GCC visibility push(hidden)
extern OwnTally my_tally;
#pragma GCC visibility pop

extern Size tally_shmem_size(void);
extern void tally_shmem_attach(void *memory, bool is_new);

/* Functions for the session itself */
extern void tally_attach(int index);
extern bool tally_look_up(uint64 queryid, Oid userid);

/* ... in a write section */
extern bool tally_settle(SessionSlot *slot);
extern void tally_clear_statements(void);

/* Functions for the holder of the accumulation lock */
extern bool tally_take(int index, Tally *taken);
extern bool tally_histogram(const Tally *tally, ClientMetric metric, Histogram *histogram);

/*
 * Has another process changed tally_state, or was there a reset?  In a write
 * section.
 */
static inline bool
tally_was_touched(SessionSlot *slot)
{
	return pg_atomic_read_u32(&slot->tally_state) != TALLY_KEPT ||
		my_tally.tally->generation != slot_control->generation;
}

/*
 * Make a statement's entry my_tally.current if it is the first one in its
 * chain; else NULL, and tally_look_up() must be called.
 */
static inline CountedStatement *
tally_at_hint(uint64 queryid, Oid userid)
{
	CountedStatement *hint = my_tally.first[queryid % TALLY_BUCKETS];

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
 * The statement was repeated in the burst in progress; in a write section.
 */
static inline void
tally_note_repeats(const CountedStatement *statement, int64 repeats)
{
	Tally	   *tally = my_tally.tally;
	BurstRepeats *own = &my_tally.repeats[statement - tally->statements];

	if (unlikely(own->burst != my_tally.burst.number))
	{
		own->burst = my_tally.burst.number;
		own->repeats = 0;
	}
	own->repeats += repeats;
	if (own->repeats <= tally->repeats_max)
		return;
	tally->repeats_max = own->repeats;
	tally->repeats_max_queryid = statement->queryid;
}

/*
 * An exchange in a transaction block is over, which goes on if "in_xact"; in a
 * write section.  "trips" is the session's number of round trips so far.
 */
static inline void
tally_leave_block(bool began_in_block, bool in_xact, int64 trips)
{
	Tally	   *tally = my_tally.tally;

	if (!began_in_block)
		my_tally.trips_before = trips - 1;
	if (!in_xact)
	{
		tally->round_trips_max = Max(tally->round_trips_max, trips - my_tally.trips_before);
		my_tally.trips_before = PG_INT64_MAX;
	}
	burst_leave_block(&my_tally.burst, in_xact);
}

/*
 * Count a wait that is not idle.  One that is wholly the client's, as always
 * without a network, is counted once for three histograms: see
 * tally_histogram().
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
