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

#include "miscadmin.h"
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

/* What has been counted does not count, and nothing is known of it. */
static void
forget_all(void)
{
	memset(my_tally.tally, 0, sizeof(Tally));
	memset(&my_tally.burst, 0, sizeof(my_tally.burst));
	memset(&my_tally.all_known, 0, sizeof(my_tally.all_known));
	my_tally.current = NULL;
	my_tally.guest = NULL;
	my_tally.unplaced = 0;
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
	my_tally.slot = slot_get(slot);
	my_tally.dbid = MyDatabaseId;
	for (int i = 0; i < TALLY_STATEMENTS; i++)
	{
		my_tally.place[i].statement = &my_tally.tally->statements[i];
		my_tally.place[i].where = known_in_tally(i);
	}
	forget_all();
	pg_atomic_write_u32(&my_tally.slot->tally_state, TALLY_KEPT);
}

static inline void
clear_totals(StatementTotals *totals)
{
	totals->calls = totals->rows = 0;
	totals->exec = totals->send = totals->recv = 0;
	totals->network = totals->client = totals->in_xact_wait = 0;
	totals->bytes = 0;
	totals->repeats = totals->repeat_network = 0;
}

static void
clear_counters(void)
{
	Tally	   *tally = my_tally.tally;

	memset(tally->histogram, 0, sizeof(tally->histogram));
	for (int i = 0; i < tally->count; i++)
		memset(&tally->statements[i].totals, 0, sizeof(StatementTotals));
}

/*
 * Somebody has taken the tally or is about to, or there was a reset.  Makes it the
 * session's again.  True: it was void, and there is no current statement any more.
 */
bool
tally_settle(SessionSlot *slot)
{
	bool		was_void = false;
	uint32		state = pg_atomic_read_u32(&slot->tally_state);

	while (state != TALLY_KEPT)
	{
		uint32		found = state;

		/* a proposal is refused here, unless it has just been carried through */
		if (!pg_atomic_compare_exchange_u32(&slot->tally_state, &state, TALLY_KEPT))
			continue;
		/* not before: what was taken may have been given back meanwhile */
		if (found == TALLY_TAKEN)
		{
			clear_counters();
			/* those that come most often now are to have places */
			if (my_tally.guest != NULL)
				tally_clear_statements(0);
		}
		else if (found == TALLY_VOID)
		{
			forget_all();
			was_void = true;
		}
		/* since the session looked for a reset, there may have been one */
		if (!slot_reset_is_applied(slot))
			slot_apply_reset(slot);
		state = pg_atomic_read_u32(&slot->tally_state);
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
		const CountedStatement *statement = my_tally.place[i].statement;

		my_tally.place[i].known = known_find(&my_tally.all_known,
											 known_key(statement->queryid, statement->userid));
	}
	return known;
}

/*
 * The statement that is about to be counted gets a place, until it leaves, which
 * says what is to be known of it when it comes again.
 */
static inline void
settle_in(TallyPlace *place, KnownStatement *known, uint64 queryid, Oid userid)
{
	CountedStatement *statement = place->statement;

	statement->queryid = queryid;
	statement->userid = userid;
	statement->executed_in = known->executed_in;
	place->known = known;
	place->where_in_table = known->where;
	known->where = place->where;
	my_tally.current = statement;
}

static inline void
leave(TallyPlace *place)
{
	place->known->executed_in = place->statement->executed_in;
	place->known->where = place->where_in_table;
}

/*
 * What has been counted of the statement in a place is added to its entry in the
 * table, and the place is free; unless that takes waiting, or the entry is gone.
 */
static pg_attribute_always_inline bool
make_way(TallyPlace *place)
{
	CountedStatement *statement = place->statement;
	SessionSlot *slot = my_tally.slot;
	bool		added;

	seqlock_write_begin(&slot->lock);
	added = statements_add_in_place(statement, &my_tally.dbid, place->where_in_table, slot);
	if (likely(added))
	{
		leave(place);
		clear_totals(&statement->totals);
	}
	seqlock_write_end(&slot->lock);
	return added;
}

/* Is this the place of a statement? */
static inline bool
is_place_of(const TallyPlace *place, uint64 queryid, Oid userid)
{
	return place->statement->queryid == queryid && place->statement->userid == userid;
}

/* A place from which a statement makes way for guests; NULL if none can. */
static TallyPlace *
find_guest_place(void)
{
	for (int i = TALLY_STATEMENTS - 1; i >= 0; i--)
	{
		TallyPlace *place = &my_tally.place[i];

		if (known_is_in_table(place->where_in_table) && make_way(place))
			return place;
	}
	return NULL;
}

/*
 * A statement has no place, and perhaps nobody knows it.  It gets one that is free,
 * or from which another statement makes way; false if there is none.
 */
static pg_noinline bool
find_place(uint64 queryid, Oid userid)
{
	uint64		key = known_key(queryid, userid);
	Tally	   *tally = my_tally.tally;
	KnownStatement *known;
	TallyPlace *place;

	if (tally->count < TALLY_STATEMENTS)
		place = &my_tally.place[tally->count++];
	else
		place = my_tally.guest = find_guest_place();
	if (place == NULL)
		return false;
	known = known_find(&my_tally.all_known, key);
	if (known->key == 0)
		known = get_to_know(key);
	/* two statements of one key: what is known is about the other one */
	if (known_is_in_tally(known->where))
		known->where = KNOWN_NOWHERE;
	if (known->where == KNOWN_NOWHERE)
	{
		/* it stays until it is in the table */
		my_tally.guest = NULL;
		my_tally.unplaced++;
		pgnetlat_housekeeping |= tally_wants_room();
	}
	settle_in(place, known, queryid, userid);
	my_tally.hint[queryid % TALLY_HINTS] = my_tally.current;
	return true;
}

/* A statement has been searched for among those that are known. */
static pg_attribute_always_inline bool
look_up(KnownStatement *known, uint64 queryid, Oid userid)
{
	if (likely(known_is_in_table(known->where)))
	{
		TallyPlace *place = my_tally.guest;

		if (likely(place != NULL) && likely(make_way(place)))
		{
			settle_in(place, known, queryid, userid);
			return true;
		}
	}
	else if (known_is_in_tally(known->where))
	{
		TallyPlace *place = &my_tally.place[known_tally_number(known->where)];

		if (likely(is_place_of(place, queryid, userid)))
		{
			my_tally.current = my_tally.hint[queryid % TALLY_HINTS] = place->statement;
			return true;
		}
	}
	return find_place(queryid, userid);
}

static pg_noinline bool
search_and_look_up(uint64 queryid, Oid userid)
{
	KnownStatement *known = known_find(&my_tally.all_known, known_key(queryid, userid));

	return look_up(known, queryid, userid);
}

/*
 * The place of a statement, when it is not where the hint says: the one that it
 * has, or another.  False if there is none to be had without waiting.
 *
 * Guests all take the same place, as long as that is possible: those statements that
 * come again and again are in the others, or will be when the tally has been taken.
 * (If the one that was used least recently had to go, a few more statements in a loop
 * than there are places would all have to.)
 *
 * Most statements are known, and where the search for them begins.
 */
pg_attribute_hot bool
tally_look_up(uint64 queryid, Oid userid)
{
	uint64		key = known_key(queryid, userid);
	KnownStatement *known = known_first(&my_tally.all_known, key);

	if (unlikely(known->key != key))
		return search_and_look_up(queryid, userid);
	return look_up(known, queryid, userid);
}

/*
 * Where the entries of the statements are in their table, as far as that is known;
 * whoever has added what they have counted knows it better.
 */
void
tally_get_where(int32 *where)
{
	for (int i = 0; i < my_tally.tally->count; i++)
		where[i] = my_tally.place[i].where_in_table;
}

void
tally_set_where(const int32 *where)
{
	for (int i = 0; i < my_tally.tally->count; i++)
		my_tally.place[i].where_in_table = where[i];
}

/* A statement stays, in this place. */
static void
move(int number, int to)
{
	TallyPlace *place = &my_tally.place[to];

	if (number == to)
		return;
	*place->statement = *my_tally.place[number].statement;
	memset(my_tally.place[number].statement, 0, sizeof(CountedStatement));
	place->known = my_tally.place[number].known;
	place->where_in_table = my_tally.place[number].where_in_table;
	place->known->where = place->where;
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

	my_tally.unplaced = 0;
	my_tally.guest = NULL;
	for (int i = 0; i < tally->count; i++)
	{
		CountedStatement *statement = &tally->statements[i];
		bool		is_left = (left & UINT64CONST(1) << i) != 0;

		if (likely(!is_left && statement != current))
		{
			leave(&my_tally.place[i]);
			*statement = no_statement;
			continue;
		}
		if (!is_left)
			memset(&statement->totals, 0, sizeof(statement->totals));
		if (statement == current)
			my_tally.current = &tally->statements[stay];
		my_tally.unplaced += my_tally.place[i].where_in_table == KNOWN_NOWHERE;
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
		uint32		state = pg_atomic_read_u32(&source->tally_state);

		/* what is older than a reset, the session throws away */
		if (source->published.generation != slot_generation())
			return false;
		/* an idle session's most often is: so much need not be read, then */
		if (state == TALLY_TAKEN)
			return false;
		if (state != TALLY_RESET)
			state = TALLY_KEPT;
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
