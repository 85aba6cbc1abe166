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

#include "settings.h"
#include "storage/s_lock.h"
#include "storage/shmem.h"
#include "tally.h"

OwnTally	my_tally;

/* Of this statement there is none: hints that lead nowhere lead here. */
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

static void
forget_hints(void)
{
	for (int i = 0; i < TALLY_HINTS; i++)
		my_tally.hint[i] = &no_statement;
}

/*
 * This session begins.  Nobody else looks at its tally yet.
 */
void
tally_attach(int slot)
{
	memset(&my_tally, 0, sizeof(my_tally));
	my_tally.tally = &tallies[slot];
	my_tally.state = &slot_get(slot)->tally_state;
	memset(my_tally.tally, 0, sizeof(Tally));
	pg_atomic_write_u32(my_tally.state, TALLY_KEPT);
	forget_hints();
}

static void
clear_counters(void)
{
	Tally	   *tally = my_tally.tally;

	memset(tally->histogram, 0, sizeof(tally->histogram));
	for (int i = 0; i < tally->count; i++)
		memset(&tally->statements[i].totals, 0, sizeof(StatementTotals));
}

static void
clear(void)
{
	memset(my_tally.tally, 0, sizeof(Tally));
	memset(&my_tally.burst, 0, sizeof(my_tally.burst));
	memset(&my_tally.all_known, 0, sizeof(my_tally.all_known));
	my_tally.current = NULL;
	forget_hints();
}

/*
 * Somebody has taken the tally or is about to, or there was a reset.  Makes it the
 * session's again.  True: it was void, and there is no current statement any more.
 */
bool
tally_settle(SessionSlot *slot)
{
	bool		was_void = false;
	uint32		state = pg_atomic_read_u32(my_tally.state);

	while (state != TALLY_KEPT)
	{
		if (state == TALLY_TAKEN)
			clear_counters();
		else if (state == TALLY_VOID)
		{
			clear();
			was_void = true;
		}
		/* a proposal is refused here, unless it has just been carried through */
		if (!pg_atomic_compare_exchange_u32(my_tally.state, &state, TALLY_KEPT))
			continue;
		/* since the session looked for a reset, there may have been one */
		if (!slot_reset_is_applied(slot))
			slot_apply_reset(slot);
		state = pg_atomic_read_u32(my_tally.state);
	}
	return was_void;
}

/*
 * A statement is not known: it is, from now on.  Where the others are may have
 * changed.
 */
static pg_noinline KnownStatement *
get_to_know(uint64 key)
{
	unsigned	count = my_tally.all_known.count;
	KnownStatement *known = known_add(&my_tally.all_known, key, my_tally.burst.number);

	if (my_tally.all_known.count == count + 1)
		return known;
	for (int i = 0; i < my_tally.tally->count; i++)
	{
		const CountedStatement *statement = &my_tally.tally->statements[i];

		my_tally.known[i] = known_find(&my_tally.all_known,
									   known_key(statement->queryid, statement->userid));
	}
	return known;
}

/* The next place is that of a statement which had none. */
static inline CountedStatement *
claim(KnownStatement *known, uint64 queryid, Oid userid)
{
	int			number = my_tally.tally->count;
	CountedStatement *statement = &my_tally.tally->statements[number];

	statement->queryid = queryid;
	statement->userid = userid;
	statement->executed_in = known->executed_in;
	my_tally.places[number] = known_table_place(known->where);
	my_tally.known[number] = known;
	known->where = known_in_tally(number);
	my_tally.tally->count = number + 1;
	if (number + 1 >= TALLY_STATEMENTS - TALLY_RESERVE)
		pgnetlat_housekeeping = true;
	return statement;
}

/* Is it this one's place, as somebody says? */
static inline bool
is_place_of(const CountedStatement *statement, uint64 queryid, Oid userid)
{
	return statement->queryid == queryid && statement->userid == userid;
}

/*
 * The place of a statement, when it is not where the hint says: the one that it
 * has, or the next one.  False if there is no place left.
 */
bool
tally_look_up(uint64 queryid, Oid userid)
{
	uint64		key = known_key(queryid, userid);
	KnownStatement *known = known_find(&my_tally.all_known, key);
	Tally	   *tally = my_tally.tally;
	CountedStatement *statement;

	if (known_is_in_tally(known->where) &&
		is_place_of(&tally->statements[known_tally_number(known->where)], queryid, userid))
		statement = &tally->statements[known_tally_number(known->where)];
	else
	{
		if (unlikely(tally->count == TALLY_STATEMENTS))
			return false;
		if (unlikely(known->key == 0))
			known = get_to_know(key);
		statement = claim(known, queryid, userid);
	}
	my_tally.current = my_tally.hint[queryid % TALLY_HINTS] = statement;
	return true;
}

/* A statement gives up its place: what is to be known of it when it comes again? */
static inline void
leave(CountedStatement *statement, int number)
{
	KnownStatement *known = my_tally.known[number];

	known->executed_in = statement->executed_in;
	known->where = known_in_table(my_tally.places[number]);
	/* hints are believed where the statement is theirs: so it is nobody's */
	*statement = no_statement;
}

/* A statement stays, in this place. */
static void
move(int number, int to)
{
	Tally	   *tally = my_tally.tally;

	if (number == to)
		return;
	tally->statements[to] = tally->statements[number];
	memset(&tally->statements[number], 0, sizeof(CountedStatement));
	my_tally.places[to] = my_tally.places[number];
	my_tally.known[to] = my_tally.known[number];
	my_tally.known[to]->where = known_in_tally(to);
}

/*
 * What the statements have counted has been added to the tables, but for those
 * whose bits are set in "left": all places but theirs and that of the current one
 * are free.
 */
void
tally_clear_statements(uint64 left)
{
	Tally	   *tally = my_tally.tally;
	CountedStatement *current = my_tally.current;
	int			stay = 0;

	for (int i = 0; i < tally->count; i++)
	{
		CountedStatement *statement = &tally->statements[i];
		bool		is_left = (left & UINT64CONST(1) << i) != 0;

		if (likely(!is_left && statement != current))
		{
			leave(statement, i);
			continue;
		}
		if (!is_left)
			memset(&statement->totals, 0, sizeof(statement->totals));
		if (statement == current)
			my_tally.current = &tally->statements[stay];
		move(i, stay++);
	}
	tally->count = stay;
}

/* ---------------------------------------------------------------------------
 * The taker's end
 * ---------------------------------------------------------------------------
 */

/*
 * Take what the session in a slot has in its tally; false if that is nothing, or
 * the session has been stopped while it was writing.  The caller holds the
 * session's accumulation lock, so that nobody else takes it, and the reset lock.
 */
bool
tally_take(int slot, Tally *taken)
{
	SessionSlot *source = slot_get(slot);
	const Tally *tally = &tallies[slot];
	int			attempts = 0;

	do
	{
		uint32		changecount = seqlock_read_begin(&source->lock);
		uint32		state = TALLY_KEPT;

		/* what is older than a reset, the session throws away */
		if (source->published.generation != slot_generation())
			return false;
		if (pg_atomic_read_u32(&source->tally_state) == TALLY_RESET)
			state = TALLY_RESET;
		memcpy(taken, tally, sizeof(Tally));
		if (!seqlock_read_valid(&source->lock, changecount))
			continue;
		if (!pg_atomic_compare_exchange_u32(&source->tally_state, &state, TALLY_PROPOSED))
			return false;
		/* not all machines have the exchange done before they read on */
		pg_memory_barrier();
		if (seqlock_count(&source->lock) != changecount)
		{
			/* or the session has refused it */
			state = TALLY_PROPOSED;
			pg_atomic_compare_exchange_u32(&source->tally_state, &state, TALLY_KEPT);
			continue;
		}
		state = TALLY_PROPOSED;
		if (pg_atomic_compare_exchange_u32(&source->tally_state, &state, TALLY_TAKEN))
			return true;
	} while (seqlock_try_again(&attempts));
	return false;
}

/*
 * It cannot be added to the tables after all.  False if the session has cleared it
 * by now.
 */
bool
tally_give_back(int slot)
{
	uint32		state = TALLY_TAKEN;

	return pg_atomic_compare_exchange_u32(&slot_get(slot)->tally_state, &state, TALLY_KEPT);
}

static void
add_histogram(const TallyHistogram *term, Histogram *histogram)
{
	Histogram	sum = {.sum = term->sum};

	for (int i = 0; i < HISTOGRAM_BUCKETS; i++)
		sum.bucket[i] = term->bucket[i];
	histogram_add(histogram, &sum);
}

/* Add what is in one of a tally's histograms to another. */
void
tally_histogram(const Tally *tally, ClientMetric metric, Histogram *histogram)
{
	const TallyHistogram *client_wait = &tally->histogram[TALLY_CLIENT_WAIT];

	add_histogram(&tally->histogram[metric], histogram);
	if (metric == METRIC_WAIT || metric == METRIC_CLIENT)
		add_histogram(client_wait, histogram);
	for (int i = 0; metric == METRIC_NETWORK && i < HISTOGRAM_BUCKETS; i++)
		histogram->bucket[0] += client_wait->bucket[i];
}
