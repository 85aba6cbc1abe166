/*-------------------------------------------------------------------------
 *
 * tally.c
 *	  The session's side and the taker's side of tallies.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "tally.h"

OwnTally	my_tally;

/* Ends each chain: every statement has a query identifier or a role. */
static CountedStatement no_statement;

static Tally *tallies = NULL;

Size
tally_shmem_size(void)
{
	return mul_size(slot_count(), sizeof(Tally));
}

void
tally_shmem_attach(void *memory, bool is_new)
{
	tallies = memory;
}

/* ---------------------------------------------------------------------------
 * The session's side
 * ---------------------------------------------------------------------------
 */

/* Empty the tally, and forget what is known of statements. */
static void
forget_all(uint32 generation)
{
	memset(my_tally.tally, 0, sizeof(Tally));
	my_tally.tally->generation = generation;
	memset(&my_tally.burst, 0, sizeof(my_tally.burst));
	memset(my_tally.repeats, 0, sizeof(my_tally.repeats));
	my_tally.trips_before = PG_INT64_MAX;
	my_tally.current = NULL;
	my_tally.next_free = 0;
	for (int i = 0; i < TALLY_BUCKETS; i++)
		my_tally.first[i] = &no_statement;
}

/* This session begins.  No other process looks at its tally yet. */
void
tally_attach(int index)
{
	my_tally.tally = &tallies[index];
	forget_all(slot_get(index)->published.generation);
	pg_atomic_write_u32(&slot_get(index)->tally_state, TALLY_KEPT);
}

/* Clear what the statements have counted, which is in their table. */
void
tally_clear_statements(void)
{
	Tally	   *tally = my_tally.tally;

	for (int i = 0; i < tally->count; i++)
		memset(&tally->statements[i].totals, 0, sizeof(StatementTotals));
	my_tally.next_free = 0;
}

/*
 * Make the tally the session's again, after another process has taken it or is
 * about to, or after a reset.  Returns true if it was void: then there is no
 * current statement.
 */
bool
tally_settle(SessionSlot *slot)
{
	uint32		state = pg_atomic_read_u32(&slot->tally_state);

	/* this refuses a proposal, unless the taker has just completed it */
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
		memset(my_tally.tally->histogram, 0,
			   offsetof(Tally, statements) - offsetof(Tally, histogram));
		tally_clear_statements();
	}
	return false;
}

/* The head of a statement's chain. */
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
 * Get an entry that is unused, or whose statement has counted nothing since
 * the tally was emptied; NULL if there is none.
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
	} while (statements_has_counted(place));
	chain = chain_of(place->queryid);
	while (*chain != place)
		chain = next_of(*chain);
	*chain = *next_of(place);
	return place;
}

/*
 * Find or make the entry of a statement, and make it my_tally.current.
 * Returns false if all are in use: then add the statements to their table
 * first.
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
		my_tally.repeats[place - my_tally.tally->statements].burst = 0;
		*next_of(place) = *chain;
		*chain = place;
	}
	my_tally.current = place;
	return true;
}

/* ---------------------------------------------------------------------------
 * The taker's side
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
 * Take the tally of the session in a slot.  Returns false if it is empty, or
 * if the session was stopped while it was writing.  The caller holds the
 * session's accumulation lock, so that only one process takes the tally, and
 * the reset lock.
 */
bool
tally_take(int index, Tally *taken)
{
	SessionSlot *source = slot_get(index);
	int			attempts = 0;

	do
	{
		uint32		changecount = seqlock_read_begin(&source->lock);
		uint32		state = TALLY_KEPT;

		/* as usual for an idle session */
		if (pg_atomic_read_u32(&source->tally_state) == TALLY_TAKEN)
			return false;
		copy_tally(&tallies[index], taken);
		if (!seqlock_read_valid(&source->lock, changecount))
			continue;
		if (taken->generation != slot_control->generation)
			return false;
		if (!pg_atomic_compare_exchange_u32(&source->tally_state, &state, TALLY_PROPOSED))
			return false;

		/*
		 * on some machines, later reads may overtake the compare-and-exchange
		 */
		pg_memory_barrier();
		state = TALLY_PROPOSED;
		if (seqlock_count(&source->lock) != changecount)
			/* withdraw the proposal, unless the session has refused it */
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

/* Get one of a tally's histograms; false if it is empty. */
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
