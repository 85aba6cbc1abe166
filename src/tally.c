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

/* Of this statement there is none: hints that lead nowhere lead here. */
static TallyStatement no_statement;

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

/*
 * Somebody has taken the tally or is about to, or a reset has voided it.  Makes
 * it the session's again.  True: it was void, and there is no current statement
 * any more.
 */
bool
tally_settle(void)
{
	uint32		state = TALLY_PROPOSED;

	/* refuse a proposal, unless it has just been carried through */
	if (pg_atomic_compare_exchange_u32(my_tally.state, &state, TALLY_KEPT))
		return false;
	if (state == TALLY_TAKEN)
		clear_counters();
	else if (state == TALLY_VOID)
	{
		memset(my_tally.tally, 0, sizeof(Tally));
		memset(&my_tally.burst, 0, sizeof(my_tally.burst));
		my_tally.current = NULL;
		forget_hints();
	}
	pg_atomic_write_u32(my_tally.state, TALLY_KEPT);
	return state == TALLY_VOID;
}

/* The place of a statement, when it is not where the hint says. */
bool
tally_look_up(uint64 queryid, Oid userid)
{
	Tally	   *tally = my_tally.tally;

	for (int i = 0; i < tally->count; i++)
	{
		TallyStatement *statement = &tally->statements[i];

		if (statement->queryid == queryid && statement->userid == userid)
		{
			my_tally.current = my_tally.hint[queryid % TALLY_HINTS] = statement;
			return true;
		}
	}
	return false;
}

/*
 * A statement that has no place gets one, and there is one left.
 */
void
tally_claim(uint64 queryid, Oid userid)
{
	Tally	   *tally = my_tally.tally;
	TallyStatement *statement = &tally->statements[tally->count++];

	Assert(tally->count <= TALLY_STATEMENTS);
	memset(statement, 0, sizeof(*statement));
	statement->queryid = queryid;
	statement->userid = userid;
	if (burst_knows(&my_tally.burst, queryid))
		statement->executed_in = my_tally.burst.number;
	my_tally.current = my_tally.hint[queryid % TALLY_HINTS] = statement;
}

/*
 * What the statements have counted has been added to the tables, but for some
 * that are "left": all places but theirs and that of the current one are free.
 */
void
tally_clear_statements(const StatementBatchItem *left, int count)
{
	Tally	   *tally = my_tally.tally;
	TallyStatement current = {0};

	if (my_tally.current != NULL)
		current = *my_tally.current;
	for (int i = 0; i < tally->count; i++)
	{
		if (tally->statements[i].executed_in == my_tally.burst.number)
			burst_remember(&my_tally.burst, tally->statements[i].queryid);
	}
	/* hints are believed where the statement is theirs: so none stays */
	memset(tally->statements, 0, sizeof(tally->statements));
	tally->count = 0;
	for (int i = 0; i < count; i++)
	{
		tally_claim(left[i].key.queryid, left[i].key.userid);
		my_tally.current->totals = left[i].delta;
	}
	my_tally.current = NULL;
	if (OidIsValid(current.userid) && !tally_look_up(current.queryid, current.userid))
		tally_claim(current.queryid, current.userid);
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
		if (pg_atomic_read_u32(&source->tally_state) != TALLY_KEPT ||
			source->published.generation != slot_generation())
			return false;
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

static inline bool
is_zero(const StatementTotals *totals)
{
	static const StatementTotals zero;

	return memcmp(totals, &zero, sizeof(zero)) == 0;
}

/*
 * What of statements is in a tally, as items for their table.  Returns how many
 * they are, at most TALLY_STATEMENTS.
 */
int
tally_statements(const Tally *tally, Oid dbid, StatementBatchItem *items)
{
	int			count = 0;

	for (int i = 0; i < tally->count; i++)
	{
		const TallyStatement *statement = &tally->statements[i];
		StatementBatchItem *item = &items[count];

		if (is_zero(&statement->totals))
			continue;
		item->key.userid = statement->userid;
		item->key.dbid = dbid;
		item->key.queryid = statement->queryid;
		item->hash = statements_hash(&item->key);
		item->delta = statement->totals;
		count++;
	}
	return count;
}

/* Add what is in one of a tally's histograms to another. */
void
tally_histogram(const Tally *tally, ClientMetric metric, Histogram *histogram)
{
	const TallyHistogram *term = &tally->histogram[metric];

	Histogram	sum = {.sum = term->sum};

	for (int i = 0; i < HISTOGRAM_BUCKETS; i++)
		sum.bucket[i] = term->bucket[i];
	histogram_add(histogram, &sum);
}
