/*-------------------------------------------------------------------------
 *
 * pools.c
 *	  Counts how many sessions are busy at once.
 *
 * The table (table.h) first evicts the pool that has been without sessions for
 * longest.  A pool with sessions stays.  If all pools have sessions, a session
 * of another pool is counted in the evicted row.  A distribution over several
 * pools means nothing, so the pool of all sessions is an entry of its own.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "clock.h"
#include "pools.h"
#include "saved.h"
#include "session_slot.h"
#include "settings.h"
#include "table.h"
#include "utils/timestamp.h"

StaticAssertDecl(offsetof(Pool, userid) == sizeof(Oid), "a pool's key must not have padding");

/* A session's membership in a pool. */
typedef struct PoolPlace
{
	uint32		hash;			/* of the pool's key */
	Size		pool;			/* see table_at() */
} PoolPlace;

/* The session in a slot; protected by its accumulation lock. */
typedef struct PoolMember
{
	uint64		session;		/* 0: none */
	Oid			datid;
	Oid			userid;
	bool		busy;			/* at the latest tick */
	PoolPlace	places[2];		/* in its own pool, and among all sessions */
} PoolMember;

static PoolMember *members = NULL;	/* by slot */

static bool
may_go(const void *entry)
{
	const Pool *pool = entry;

	return pool->sessions == 0 && OidIsValid(pool->datid);
}

/* Add one pool to another.  Only the evicted row has added sessions. */
static void
add_entry(void *to, const void *from)
{
	Pool	   *sum = to;
	const Pool *term = from;

	sum->sessions += term->sessions;
	sum->sessions_max = Max(sum->sessions_max, term->sessions_max);
	sum->busy += term->busy;
	sum->busy_max = Max(sum->busy_max, term->busy_max);
	if (sum->since == 0 || term->since < sum->since)
		sum->since = term->since;
}

static void
begin_evicted(void *row, const void *entry)
{
	((Pool *) row)->is_evicted = true;
}

static const TableSpec spec = {
	.lock = LOCK_POOLS,
	.key_size = 2 * sizeof(Oid),
	.entry_size = sizeof(Pool),
	.usage_offset = offsetof(Pool, usage),
	.since_offset = offsetof(Pool, since),
	.counters_offset = offsetof(Pool, counters),
	.counters_size = sizeof(PoolCounters),
	.evicted_rows = 1,
	.may_go = may_go,
	.add = add_entry,
	.begin_row = begin_evicted,
};

static Table table;

static Size
members_size(void)
{
	return CACHELINEALIGN(mul_size(slot_count(), sizeof(PoolMember)));
}

/* One more entry is for all sessions. */
Size
pools_shmem_size(void)
{
	return add_size(members_size(), table_shmem_size(&spec, pgnetlat_max_pools + 1));
}

void
pools_shmem_attach(void *memory, bool is_new)
{
	members = memory;
	table_shmem_attach(&table, &spec, pgnetlat_max_pools + 1, (char *) memory + members_size(),
					   is_new);
}

/* ---------------------------------------------------------------------------
 * Sessions
 * ---------------------------------------------------------------------------
 */

/* Add to the numbers of sessions and of busy sessions in a locked pool. */
static void
change(Pool *pool, int sessions, int busy)
{
	pool->sessions += sessions;
	pool->sessions_max = Max(pool->sessions_max, pool->sessions);
	pool->busy += busy;
	if (sessions < 0)
		pool->usage = (double) GetCurrentTimestamp();
}

static void
change_pools(const PoolMember *member, int sessions, int busy)
{
	for (size_t i = 0; i < lengthof(member->places); i++)
	{
		table_lock(&table, member->places[i].hash);
		change(table_at(&table, member->places[i].pool), sessions, busy);
		table_unlock(&table, member->places[i].hash);
	}
}

/* Enter a member in its two pools. */
static void
enter_pools(PoolMember *member)
{
	const Oid	keys[][2] = {{member->datid, member->userid}, {InvalidOid, InvalidOid}};

	for (size_t i = 0; i < lengthof(member->places); i++)
	{
		PoolPlace  *place = &member->places[i];
		Pool	   *pool;

		place->hash = table_hash(&table, keys[i]);
		table_lock(&table, place->hash);
		pool = table_enter(&table, place->hash, keys[i], GetCurrentTimestamp());
		place->pool = table_place_of(&table, pool);
		change(pool, 1, member->busy);
		table_unlock(&table, place->hash);
	}
}

void
pools_join(int index, uint64 session, Oid datid, Oid userid)
{
	PoolMember *member = &members[index];

	member->datid = datid;
	member->userid = userid;
	member->busy = false;
	enter_pools(member);
	member->session = session;
}

void
pools_leave(int index)
{
	PoolMember *member = &members[index];

	if (member->session != 0)
		change_pools(member, -1, -(int) member->busy);
	member->session = 0;
}

/* After the table was cleared: enter all sessions again, busy ones as busy. */
void
pools_reset(void)
{
	for (int i = 0; i < slot_count(); i++)
	{
		if (members[i].session != 0)
			enter_pools(&members[i]);
	}
}

/* ---------------------------------------------------------------------------
 * Sampling
 * ---------------------------------------------------------------------------
 */

/*
 * Was the session in a slot busy at the latest tick?  Takes no lock, so this
 * is a hint.
 */
bool
pools_saw_busy(int index)
{
	return *(volatile bool *) &members[index].busy;
}

/*
 * Note that a session has become busy, or is no longer busy, in this tick.
 * Does nothing if the session has ended since, or has not joined yet.
 */
void
pools_see(int index, uint64 session, bool busy)
{
	PoolMember *member = &members[index];

	if (member->session != session || member->busy == busy)
		return;
	member->busy = busy;
	change_pools(member, 0, busy ? 1 : -1);
}

static void
book_time(void *entry, void *arg)
{
	Pool	   *pool = entry;
	int64		time = *(const int64 *) arg;

	pool->counters.distribution.weight[concurrency_bucket((int) pool->busy)] += time;
	pool->counters.busy_time += pool->busy * time / NS_PER_US;
	pool->busy_max = Max(pool->busy_max, pool->busy);
}

/*
 * Begin a tick.  What the previous tick saw lasted until "before"; what this
 * one sees has lasted since then.  Time without a sampler is not booked.
 */
void
pools_tick(int64 before)
{
	static int64 booked_to = 0;
	int64		time = before - booked_to;

	if (booked_to != 0 && time > 0)
		table_visit(&table, book_time, &time);
	booked_to = Max(booked_to, before);
}

/* ---------------------------------------------------------------------------
 * Reading
 * ---------------------------------------------------------------------------
 */

/*
 * A palloc'd copy of all pools over a window: see table_copy().  Maxima are
 * not limited to the window, except busy_max, which comes from the
 * distribution.
 */
void *
pools_copy(int64 length, int *count)
{
	Pool	   *copies = table_copy(&table, length, count);

	for (int i = 0; length > 0 && i < *count; i++)
		copies[i].busy_max = Max(concurrency_quantile(&copies[i].counters.distribution, 1000,
													  copies[i].busy_max), 0);
	return copies;
}

/* Put back a saved pool, without sessions; false if it is damaged. */
bool
pools_restore(const void *content, double *sum)
{
	const Pool *saved = content;
	Pool		pool = *saved;

	if (!saved_are_figures(&saved->since, saved + 1) ||
		!saved_are_parts(&saved->counters.distribution, saved + 1, PG_INT64_MAX / 2) ||
		saved->sessions_max > INT_MAX || saved->busy_max > INT_MAX)
		return false;
	pool.sessions = pool.busy = 0;
	table_restore(&table, &pool, saved->is_evicted);
	return true;
}
