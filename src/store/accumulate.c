/*-------------------------------------------------------------------------
 *
 * accumulate.c
 *	  Adds what sessions have counted to the tables.
 *
 * For each session we keep what has been added of it so far, field by field,
 * and add what its account has gained over that, where it has gained.  So sums
 * never fall, although an account may step back.  A group's pending time is
 * the part of its sessions' total time that was not attributed when they were
 * last accumulated.
 *
 * A session is in one client group at a time.  If it is renamed, what is in
 * progress goes to the new group, except for pending time that the old one has
 * already shown.
 *
 * Locks: the reset lock (shared), the session's accumulation lock, then one
 * partition's lock at a time.  Nothing here allocates or raises an error while
 * it holds them, since sessions call this at the end of an exchange and when
 * they exit.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "accumulate.h"
#include "client_key.h"
#include "history.h"
#include "locks.h"
#include "miscadmin.h"
#include "pools.h"
#include "recorder.h"
#include "table.h"
#include "utils/timestamp.h"

/* What has been accumulated of a session; protected by its accumulation lock. */
typedef struct Accumulated
{
	uint64		session;		/* 0: none */
	uint32		generation;
	ClientKey	key;
	ClientMember member;		/* of the group of that key */
	ClientPooler pooler;		/* the pooler in front of the session */
	LedgerTotals totals;		/* what has been added so far */
	TcpCounters tcp;
	ConnectTotals connect;		/* what its connection has cost, if not added
								 * yet */
} Accumulated;

static Accumulated *states = NULL;

Size
accumulate_shmem_size(void)
{
	return mul_size(slot_count(), sizeof(Accumulated));
}

void
accumulate_shmem_attach(void *memory, bool is_new)
{
	states = memory;
}

/*
 * Lock what has been accumulated of a session, and keep resets out, until
 * accumulate_end().  In between, nothing may raise an error.
 */
void
accumulate_begin(int index)
{
	locks_acquire(LOCK_RESET, 0, LW_SHARED);
	locks_acquire(LOCK_ACCUMULATE, index % LOCK_ACCUMULATE_PARTITIONS, LW_EXCLUSIVE);
}

void
accumulate_end(int index)
{
	locks_release(LOCK_ACCUMULATE, index % LOCK_ACCUMULATE_PARTITIONS);
	locks_release(LOCK_RESET, 0);
}

/* Add the tally's histograms and maxima to a locked group; "tally" may be NULL. */
static void
add_tally(ClientEntry *group, const Tally *tally)
{
	ClientCounters *counters = &group->counters;

	if (tally == NULL)
		return;
	for (int i = 0; i < NUM_TALLY_METRICS; i++)
	{
		Histogram	histogram;

		if (tally_histogram(tally, i, &histogram))
			histogram_add(&counters->histogram[i], &histogram);
	}
	counters->identified += tally->identified;
	clients_note_repeats(group, tally->repeats_max, tally->repeats_max_queryid);
	counters->round_trips_max = Max(counters->round_trips_max, tally->round_trips_max);
}

/* The session leaves its group. */
static void
leave_group(ClientEntry *group, ClientMember *member)
{
	clients_set_pending(group, member, 0);
	group->counters.ended_sessions++;
	clients_leave(member);
}

/*
 * The session joins the group of its key.  What is pending stays with the
 * group that has shown it, as the client's.
 */
static ClientEntry *
move_to_group(Accumulated *state, ClientEntry *group, TimestampTz now)
{
	int64		pending = state->member.pending;

	clients_set_pending(group, &state->member, 0);
	group->counters.totals.client += pending;
	state->totals.client += pending;
	return clients_move(&state->key, &state->member, now);
}

/* Add what the session has gained to its group, which it leaves if it ends. */
static void
accumulate_into_group(Accumulated *state, const SlotObservation *observation, const Tally *tally,
					  const LedgerTotals *gain, const TcpCounters *tcp, bool ends,
					  TimestampTz now)
{
	const LedgerAccount *account = &observation->account;
	int64		whole = ledger_whole(&account->totals) + account->pending;
	int64		pending = Max(whole - ledger_whole(&state->totals), 0);
	ClientEntry *group;
	ClientCounters *counters;

	/* a new group dates from when this gain began */
	group = clients_acquire(&state->key, &state->member,
							now - (ledger_whole(gain) + pending) / NS_PER_US);
	counters = &group->counters;
	group->usage += gain->requests;
	ledger_totals_add(&counters->totals, gain);
	clients_limit_idle(counters);
	tcpstate_counters_add(&counters->tcp, tcp);
	add_tally(group, tally);
	if (state->connect.connections > 0)
	{
		connect_totals_add(&counters->connect, &state->connect);
		histogram_count(&counters->histogram[METRIC_CONNECT], state->connect.time);
	}
	clients_set_pending(group, &state->member, pending);
	if (unlikely(state->member.no_room) && clients_have_room(&state->key, &state->member, now))
		group = move_to_group(state, group, now);
	if (observation->published.tcp.rtt > 0)
		group->counters.rtt = observation->published.tcp.rtt;
	if (unlikely(state->pooler.known))
		group->pooler = state->pooler;
	if (ends)
		leave_group(group, &state->member);
	else
		clients_release(&state->member);
}

/* Accumulate what the session's account has gained. */
static void
accumulate_account(Accumulated *state, const SlotObservation *observation,
				   const Tally *tally, bool ends, TimestampTz now)
{
	LedgerTotals gain;
	TcpCounters tcp = observation->tcp_counters;

	if (state->generation != observation->published.generation)
	{
		memset(&state->totals, 0, sizeof(state->totals));
		memset(&state->tcp, 0, sizeof(state->tcp));
		state->generation = observation->published.generation;
	}
	ledger_totals_gain(&state->totals, &observation->account.totals, &gain);
	tcpstate_counters_subtract(&tcp, &state->tcp);
	state->tcp = observation->tcp_counters;

	accumulate_into_group(state, observation, tally, &gain, &tcp, ends, now);
	history_add(state->key.datid, &gain, &tcp, &state->connect);
	memset(&state->connect, 0, sizeof(state->connect));
}

/*
 * Add the statements of this session's tally to their table; between
 * accumulate_begin() and accumulate_end().
 */
void
accumulate_own_statements(void)
{
	statements_accumulate(my_tally.tally->statements, my_tally.tally->count, MyDatabaseId);
}

/*
 * Accumulate the session in a slot whose lock is held; false if there is none.
 * If it ends, it leaves its group.  "observation" is set to what was
 * accumulated.
 */
static bool
accumulate_locked(int index, bool ends, SlotObservation *observation)
{
	Accumulated *state = &states[index];
	Tally		tally;
	bool		taken;

	if (state->session == 0 || state->session != slot_get(index)->published.session)
		return false;

	/*
	 * the tally comes first, since it must not have counted more than the
	 * account
	 */
	taken = tally_take(index, &tally);
	if (taken)
		statements_accumulate(tally.statements, tally.count, state->key.datid);
	if (!slot_observe(index, observation))
	{
		/* the session was stopped in a write section */
		if (taken)
		{
			add_tally(clients_acquire(&state->key, &state->member, GetCurrentTimestamp()),
					  &tally);
			clients_release(&state->member);
		}
		return false;
	}
	accumulate_account(state, observation, taken ? &tally : NULL, ends, GetCurrentTimestamp());
	return true;
}

/*
 * Accumulate the session in a slot, and set "observation" to all that has been
 * accumulated of it.  False if there is no session.
 */
bool
accumulate_and_observe(int index, SlotObservation *observation)
{
	bool		found;

	if (states[index].session == 0)
		return false;
	accumulate_begin(index);
	found = accumulate_locked(index, false, observation);
	accumulate_end(index);
	return found;
}

/* Accumulate all sessions, before the tables are read or an interval ends. */
void
accumulate_all(void)
{
	SlotObservation observation;

	for (int i = 0; i < slot_count(); i++)
		(void) accumulate_and_observe(i, &observation);
}

/*
 * A session has begun.  "connect" is what its connection has cost; zero if
 * that is not counted.
 */
void
accumulate_attach(int index, uint64 session, const ConnectTotals *connect)
{
	Accumulated *state = &states[index];
	ClientKey	key;
	ClientPooler pooler;

	client_key_of_session(&key, slot_get(index)->published.name, &pooler);
	accumulate_begin(index);
	memset(state, 0, sizeof(*state));
	state->key = key;
	state->pooler = pooler;
	state->generation = slot_control->generation;
	state->connect = *connect;
	state->session = session;
	pools_join(index, session, key.datid, key.userid);
	accumulate_end(index);
}

/*
 * The session may have another name, or another address behind a pooler.  What
 * it has done so far belongs to the old group.
 */
void
accumulate_rename(int index)
{
	Accumulated *state = &states[index];
	SlotObservation observation;
	ClientEntry *group;
	ClientKey	key;
	ClientPooler pooler;

	client_key_of_session(&key, slot_get(index)->published.name, &pooler);
	accumulate_begin(index);
	if (memcmp(&key, &state->key, sizeof(key)) != 0 &&
		accumulate_locked(index, false, &observation))
	{
		TimestampTz now = GetCurrentTimestamp();

		group = clients_acquire(&state->key, &state->member, now);
		state->key = key;
		group = move_to_group(state, group, now);
		if (pooler.known)
			group->pooler = pooler;
		clients_release(&state->member);
	}
	state->pooler = pooler;
	accumulate_end(index);
}

/*
 * The session ends.  Its ledger has been stopped, but it still has its slot.
 */
void
accumulate_detach(int index)
{
	Accumulated *state = &states[index];
	SlotObservation observation;

	accumulate_begin(index);
	if (!accumulate_locked(index, true, &observation))
	{
		ClientEntry *group = clients_acquire(&state->key, &state->member, GetCurrentTimestamp());

		leave_group(group, &state->member);
	}
	pools_leave(index);
	state->session = 0;
	accumulate_end(index);
}

/* Forget everything counted so far.  Returns the moment of the reset. */
TimestampTz
accumulate_reset(void)
{
	TimestampTz timestamp;

	locks_acquire(LOCK_RESET, 0, LW_EXCLUSIVE);
	timestamp = GetCurrentTimestamp();
	slot_announce_reset(clock_now(), timestamp);
	for (int i = 0; i < slot_count(); i++)
	{
		/* needs no lock: nobody accumulates under the exclusive reset lock */
		recorder_discard(i);
		memset(&states[i].member, 0, sizeof(states[i].member));
		memset(&states[i].totals, 0, sizeof(states[i].totals));
		memset(&states[i].tcp, 0, sizeof(states[i].tcp));
		memset(&states[i].connect, 0, sizeof(states[i].connect));
		states[i].generation = slot_control->generation;
	}
	tables_clear();
	pools_reset();
	history_reset(timestamp);
	locks_release(LOCK_RESET, 0);
	return timestamp;
}
