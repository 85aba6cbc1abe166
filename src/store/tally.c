/*-------------------------------------------------------------------------
 *
 * tally.c
 *	  See tally.h.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "storage/shmem.h"
#include "tally.h"

OwnTally	my_tally;

/* Ends each chain: no statement has neither query identifier nor role. */
static CountedStatement no_statement;

static Tally *tallies = NULL;

Size
tally_shmem_size(void)
{
	return mul_size(slot_count(), sizeof(Tally));
}

void
tally_shmem_init(void)
{
	bool		found;

	tallies = ShmemInitStruct("pgnetlat tallies", tally_shmem_size(), &found);
	if (!found)
		memset(tallies, 0, tally_shmem_size());
}

/* ---------------------------------------------------------------------------
 * The session's end
 * ---------------------------------------------------------------------------
 */

/* What has been counted does not count, and nothing is known of it. */
static void
forget_all(uint32 generation)
{
	memset(my_tally.tally, 0, sizeof(Tally));
	my_tally.tally->generation = generation;
	memset(&my_tally.burst, 0, sizeof(my_tally.burst));
	my_tally.current = NULL;
	my_tally.next_free = 0;
	for (int i = 0; i < TALLY_BUCKETS; i++)
		my_tally.first[i] = &no_statement;
}

/* This session begins.  Nobody else looks at its tally yet. */
void
tally_attach(int slot)
{
	my_tally.tally = &tallies[slot];
	forget_all(slot_get(slot)->published.generation);
	pg_atomic_write_u32(&slot_get(slot)->tally_state, TALLY_KEPT);
}

/* What the statements have counted is in their table. */
void
tally_clear_statements(void)
{
	Tally	   *tally = my_tally.tally;

	for (int i = 0; i < tally->count; i++)
		memset(&tally->statements[i].totals, 0, sizeof(StatementTotals));
	my_tally.next_free = 0;
}

/*
 * Somebody has taken the tally or is about to, or there was a reset.  Makes it the
 * session's again.  True: it was void, and there is no current statement any more.
 */
bool
tally_settle(SessionSlot *slot)
{
	uint32		state = pg_atomic_read_u32(&slot->tally_state);

	/* a proposal is refused here, unless it has just been carried through */
	while (state != TALLY_KEPT &&
		   !pg_atomic_compare_exchange_u32(&slot->tally_state, &state, TALLY_KEPT))
		;
	if (my_tally.tally->generation != slot->published.generation)
	{
		forget_all(slot->published.generation);
		return true;
	}
	if (state == TALLY_TAKEN)
	{
		memset(my_tally.tally->histogram, 0, sizeof(my_tally.tally->histogram));
		tally_clear_statements();
	}
	return false;
}

static bool
has_counted(const CountedStatement *statement)
{
	const StatementTotals *totals = &statement->totals;

	return (totals->calls | totals->rows | totals->exec | totals->send | totals->recv |
			totals->network | totals->client | totals->bytes) != 0;
}

/* Where the chain of a statement begins. */
static CountedStatement **
chain_of(uint64 queryid)
{
	return &my_tally.first[queryid % TALLY_BUCKETS];
}

static CountedStatement **
next_of(const CountedStatement *statement)
{
	return &my_tally.next[statement - my_tally.tally->statements];
}

/*
 * A place that is of no statement, not any more if it has counted nothing since the
 * tally was emptied; or NULL.
 */
static CountedStatement *
free_place(void)
{
	Tally	   *tally = my_tally.tally;
	CountedStatement *place;
	CountedStatement **chain;

	if (tally->count < TALLY_STATEMENTS)
		return &tally->statements[tally->count++];
	do
	{
		if (my_tally.next_free == TALLY_STATEMENTS)
			return NULL;
		place = &tally->statements[my_tally.next_free++];
	} while (has_counted(place));
	chain = chain_of(place->queryid);
	while (*chain != place)
		chain = next_of(*chain);
	*chain = *next_of(place);
	return place;
}

/*
 * Find the place of a statement, which is my_tally.current then, or give it one.
 * False if all are in use: the statements are to be added to their table first.
 */
pg_attribute_hot bool
tally_look_up(uint64 queryid, Oid userid)
{
	CountedStatement **chain = chain_of(queryid);
	CountedStatement *place = *chain;

	while (place != &no_statement && (place->queryid != queryid || place->userid != userid))
		place = *next_of(place);
	if (place == &no_statement)
	{
		place = free_place();
		if (place == NULL)
			return false;
		place->queryid = queryid;
		place->userid = userid;
		place->executed_in = 0;
		*next_of(place) = *chain;
		*chain = place;
	}
	my_tally.current = place;
	return true;
}

/* ---------------------------------------------------------------------------
 * The taker's end
 * ---------------------------------------------------------------------------
 */

/* Copy a tally that the session may be writing to. */
static void
copy_tally(const Tally *tally, Tally *copy)
{
	int			count = Min((unsigned) tally->count, TALLY_STATEMENTS);

	memcpy(copy, tally, offsetof(Tally, statements) + count * sizeof(CountedStatement));
	copy->count = count;
}

/*
 * Take what the session in a slot has in its tally; false if that is nothing, or
 * the session has been stopped while it was writing.  The caller holds the
 * session's accumulation lock, so that nobody else takes it, and the reset lock.
 */
bool
tally_take(int slot, Tally *taken)
{
	SessionSlot *source = slot_get(slot);
	int			attempts = 0;

	do
	{
		uint32		changecount = seqlock_read_begin(&source->lock);
		uint32		state = TALLY_KEPT;

		/* as is most often the case of a session that is idle */
		if (pg_atomic_read_u32(&source->tally_state) == TALLY_TAKEN)
			return false;
		copy_tally(&tallies[slot], taken);
		if (!seqlock_read_valid(&source->lock, changecount))
			continue;
		if (taken->generation != slot_generation())
			return false;
		if (!pg_atomic_compare_exchange_u32(&source->tally_state, &state, TALLY_PROPOSED))
			return false;
		/* not all machines have the exchange done before they read on */
		pg_memory_barrier();
		state = TALLY_PROPOSED;
		if (seqlock_count(&source->lock) != changecount)
			/* or the session has refused it */
			pg_atomic_compare_exchange_u32(&source->tally_state, &state, TALLY_KEPT);
		else if (pg_atomic_compare_exchange_u32(&source->tally_state, &state, TALLY_TAKEN))
			return true;
	} while (seqlock_try_again(&attempts));
	return false;
}

static void
add_histogram(const TallyHistogram *term, Histogram *histogram)
{
	for (int i = 0; i < HISTOGRAM_BUCKETS; i++)
		histogram->bucket[i] += term->bucket[i];
	histogram->sum += term->sum;
}

/* One of a tally's histograms; false if it is empty. */
bool
tally_histogram(const Tally *tally, ClientMetric metric, Histogram *histogram)
{
	const TallyHistogram *client_wait = &tally->histogram[TALLY_CLIENT_WAIT];
	int64		count = 0;

	memset(histogram, 0, sizeof(*histogram));
	add_histogram(&tally->histogram[metric], histogram);
	if (metric == METRIC_WAIT || metric == METRIC_CLIENT)
		add_histogram(client_wait, histogram);
	for (int i = 0; metric == METRIC_NETWORK && i < HISTOGRAM_BUCKETS; i++)
		histogram->bucket[0] += client_wait->bucket[i];
	for (int i = 0; i < HISTOGRAM_BUCKETS; i++)
		count += histogram->bucket[i];
	return count > 0;
}
