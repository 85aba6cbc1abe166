/*-------------------------------------------------------------------------
 *
 * accumulate.c
 *	  See accumulate.h.
 *
 * Groups.  A session is in one client group at a time, and its pending time
 * with it.  It leaves a group only when all that the group has been shown of
 * it is attributed, so that the group's whole does not fall: normally at once,
 * but if a reader was quick enough to accumulate the wait in which application_name
 * has changed, with the first accumulate after that wait.
 *
 * Locks: the reset lock (shared), the session's accumulation lock, then one table's
 * lock at a time.  Nothing here allocates or raises an error while it holds
 * them: sessions come here from the end of an exchange, and on their way out.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "burst.h"
#include "clients.h"
#include "accumulate.h"
#include "history.h"
#include "libpq/libpq-be.h"
#include "lock_waits.h"
#include "locks.h"
#include "miscadmin.h"
#include "statements.h"
#include "storage/shmem.h"
#include "utils/guc.h"
#include "utils/timestamp.h"

/* What has been accumulated of a session; protected by its accumulation lock. */
typedef struct Accumulated
{
	uint64		session;		/* 0: none */
	uint32		generation;
	ClientKey	key;
	ClientMember member;		/* of the group of that key */
	bool		renamed;		/* next_key is to be its key */
	ClientKey	next_key;
	LedgerTotals totals;
	TcpCounters tcp;
	Burst		burst;
	int64		exchange;		/* exec + send + recv of the one whose records
								 * are being read */
} Accumulated;

static Accumulated *states = NULL;

Size
accumulate_shmem_size(void)
{
	return mul_size(slot_count(), sizeof(Accumulated));
}

void
accumulate_shmem_init(void)
{
	bool		found;

	states = ShmemInitStruct("pgnetlat accumulated", accumulate_shmem_size(), &found);
	if (!found)
		memset(states, 0, accumulate_shmem_size());
}

static void
lock_session(int slot)
{
	locks_acquire(LOCK_RESET, 0, LW_SHARED);
	locks_acquire(LOCK_ACCUMULATE, slot % LOCK_ACCUMULATE_PARTITIONS, LW_EXCLUSIVE);
}

/* The same, if that does not take any waiting. */
static bool
lock_session_if_free(int slot)
{
	if (!locks_acquire_if_free(LOCK_RESET, 0, LW_SHARED))
		return false;
	if (locks_acquire_if_free(LOCK_ACCUMULATE, slot % LOCK_ACCUMULATE_PARTITIONS,
							  LW_EXCLUSIVE))
		return true;
	locks_release(LOCK_RESET, 0);
	return false;
}

static void
unlock_session(int slot)
{
	locks_release(LOCK_ACCUMULATE, slot % LOCK_ACCUMULATE_PARTITIONS);
	locks_release(LOCK_RESET, 0);
}

static void
my_client_key(ClientKey *key)
{
	memset(key, 0, sizeof(*key));
	key->datid = MyDatabaseId;
	key->userid = MyBEEntry->st_userid;
	clients_set_address(key, &MyProcPort->raddr.addr);
	if (application_name)
		strlcpy(key->application_name, application_name, sizeof(key->application_name));
}

/* After a record: can the next one belong to the same burst, and what brought it? */
static inline void
burst_leave(Burst *burst, const FlightRecord *record)
{
	if (record->flags & RECORD_ENDS_EXCHANGE)
	{
		burst->trip = record->network;
		if (burst->in_block)
			burst->open = (record->flags & RECORD_WAIT_IN_XACT) != 0;
		else
			burst->open = record->idle == 0 && record->client <= BURST_THINK_NS;
	}
	else if (record->flags & RECORD_TURN)
		burst->trip += record->network;
	else
		burst->trip = 0;
}

/*
 * What the records of one accumulate add up to, before any table is locked: few
 * statements run often, so that the tables see one addition for many records.
 */
#define BATCH_STATEMENTS	8

typedef struct Batch
{
	StatementBatchItem statements[BATCH_STATEMENTS];
	int			count;
	int			guess;			/* statements tend to come in the same order */
	Histogram	histogram[NUM_METRICS];
	bool		has_records;
} Batch;

/* Is this the place in the batch for the record's statement? */
static inline bool
batch_item_matches(const StatementBatchItem *item, uint64 queryid, Oid userid)
{
	return item->key.queryid == queryid && item->key.userid == userid;
}

/* The place in the batch for a record's statement; makes room if need be. */
static StatementCounters *
batch_find_or_add(Batch *batch, Oid dbid, uint64 queryid, Oid userid, TimestampTz now)
{
	StatementBatchItem *item;

	for (int i = 0; i < batch->count; i++)
	{
		item = &batch->statements[i];
		if (batch_item_matches(item, queryid, userid))
		{
			batch->guess = i + 1;
			return &item->delta;
		}
	}
	if (batch->count == BATCH_STATEMENTS)
	{
		statements_accumulate(batch->statements, batch->count, now);
		batch->count = 0;
	}
	item = &batch->statements[batch->count++];
	item->key.userid = userid;
	item->key.dbid = dbid;
	item->key.queryid = queryid;
	item->hash = statements_hash(&item->key);
	memset(&item->delta, 0, sizeof(item->delta));
	batch->guess = 0;
	return &item->delta;
}

static inline StatementCounters *
batch_statement(Batch *batch, const Accumulated *state, const FlightRecord *record,
				TimestampTz now)
{
	Oid			userid = OidIsValid(record->userid) ? record->userid : state->key.userid;
	int			guess = batch->guess < batch->count ? batch->guess : 0;
	StatementBatchItem *item = &batch->statements[guess];

	if (unlikely(guess >= batch->count ||
				 !batch_item_matches(item, record->queryid, userid)))
		return batch_find_or_add(batch, state->key.datid, record->queryid, userid, now);
	batch->guess = guess + 1;
	return &item->delta;
}

static inline void
batch_add_statement(StatementCounters *delta, const FlightRecord *record)
{
	delta->calls += record->statements;
	delta->rows += record->rows;
	delta->exec += record->exec;
	delta->send += record->send;
	delta->recv += record->recv;
	delta->network += record->network;
	delta->client += record->client;
	if (record->flags & RECORD_WAIT_IN_XACT)
		delta->in_xact_wait += record->network + record->client;
	delta->bytes += record->bytes;
}

/* "exchange" is what the parts of the exchange before this one add up to. */
static inline void
batch_observe_exchange(Batch *batch, int64 *exchange, const FlightRecord *record,
					   bool ends)
{
	Histogram  *histogram = batch->histogram;

	*exchange += record->exec + record->send + record->recv;
	if (record->rtt_us > 0)
		histogram_observe(&histogram[METRIC_RTT], (int64) record->rtt_us * NS_PER_US);
	if (!ends)
		return;
	histogram_observe(&histogram[METRIC_REQUEST], *exchange);
	*exchange = 0;
}

static inline void
batch_observe_wait(Batch *batch, const FlightRecord *record)
{
	Histogram  *histogram = batch->histogram;
	int64		wait = record->network + record->client;
	unsigned	bucket;

	bucket = histogram_bucket(wait);
	histogram_count(&histogram[METRIC_WAIT], bucket, wait);
	/* where there is no network, the client is all of it */
	if (record->network > 0)
		bucket = histogram_bucket(record->client);
	histogram_count(&histogram[METRIC_CLIENT], bucket, record->client);
	histogram_observe(&histogram[METRIC_NETWORK], record->network);
}

static inline void
accumulate_record(Accumulated *state, Batch *batch, const FlightRecord *record, TimestampTz now)
{
	StatementCounters *delta = batch_statement(batch, state, record, now);

	burst_enter(&state->burst, (record->flags & RECORD_IN_BLOCK) != 0);
	if (record->queryid != 0)
	{
		if (record->statements > 0)
		{
			if (burst_repeats(&state->burst, record->queryid))
			{
				delta->repeats++;
				delta->repeat_network += state->burst.trip;
			}
		}
		else if ((record->flags & RECORD_PREPARES) &&
				 burst_knows(&state->burst, record->queryid))
			delta->repeat_network += state->burst.trip;
	}
	batch_add_statement(delta, record);
	if (likely(!(record->flags & RECORD_NO_EXCHANGE)))
		batch_observe_exchange(batch, &state->exchange, record,
							   (record->flags & RECORD_ENDS_EXCHANGE) != 0);
	if ((record->flags & (RECORD_ENDS_EXCHANGE | RECORD_ABANDONED)) == RECORD_ENDS_EXCHANGE &&
		record->idle == 0)
		batch_observe_wait(batch, record);
	burst_leave(&state->burst, record);
}

/* What was sampled of a statement whose execution is in the table by now. */
static void
add_samples_of_statement(int slot, const Accumulated *state)
{
	ExecStatement sampled;
	StatementKey key;

	if (!exec_samples_take_statement(slot, recorder_consumed(slot), &sampled))
		return;
	key.userid = OidIsValid(sampled.record.userid) ? sampled.record.userid : state->key.userid;
	key.dbid = state->key.datid;
	key.queryid = sampled.record.queryid;
	statements_add_samples(&key, sampled.part);
}

/* Consume the flight recorder: statements now, histograms into the batch. */
static void
consume_records(int slot, Accumulated *state, Batch *batch, TimestampTz now)
{
	const FlightRecord *records;
	int			left = recorder_capacity();
	int			count;

	/* what comes while we are here can wait */
	while (left > 0 && (count = recorder_unread(slot, &records)) > 0)
	{
		for (int i = 0; i < count; i++)
			accumulate_record(state, batch, &records[i], now);
		recorder_consume(slot, count);
		batch->has_records = true;
		left -= count;
	}
	if (batch->has_records)
		statements_accumulate(batch->statements, batch->count, now);
	add_samples_of_statement(slot, state);
}

/*
 * The exchange of a record whose wait is still in progress, and which is not
 * to be seen in the recorder before that is over.
 */
static void
accumulate_open_record(Accumulated *state, Batch *batch, FlightRecord *open)
{
	batch_observe_exchange(batch, &state->exchange, open, true);
	batch->has_records = true;
	open->flags |= RECORD_NO_EXCHANGE;
}

/* What of an account is attributed. */
static inline int64
attributed(const LedgerTotals *totals)
{
	return ledger_busy_total(totals) + totals->idle;
}

/* What the session has counted goes to its group, on which it may leave that. */
static void
accumulate_into_group(Accumulated *state, const SlotObservation *observation, const Batch *batch,
					  const LedgerTotals *totals, const TcpCounters *tcp, bool may_leave,
					  TimestampTz now)
{
	ClientEntry *group = clients_acquire(&state->key, &state->member, now);
	ClientCounters *counters = &group->counters;

	group->usage += totals->requests;
	ledger_totals_add_fitting(&counters->totals, totals);
	tcpstate_counters_add(&counters->tcp, tcp);
	if (batch->has_records)
	{
		for (int i = 0; i < NUM_METRICS; i++)
			histogram_add(&counters->histogram[i], &batch->histogram[i]);
	}
	if (unlikely(may_leave && (state->renamed || state->member.in_evicted)))
	{
		clients_set_pending(group, &state->member, 0);
		if (state->renamed)
			state->key = state->next_key;
		state->renamed = false;
		group = clients_move(&state->key, &state->member, now);
	}
	clients_set_pending(group, &state->member, observation->account.pending);
	if (observation->tcp.rtt > 0)
		group->counters.rtt = observation->tcp.rtt;
	clients_release(&state->member);
}

/* Accumulate what the session has counted since the last time. */
static void
accumulate_account(Accumulated *state, const SlotObservation *observation,
				   const Batch *batch, TimestampTz now)
{
	LedgerTotals totals = observation->account.totals;
	TcpCounters tcp = observation->tcp_counters;
	bool		may_leave;

	if (state->generation != observation->generation)
	{
		memset(&state->totals, 0, sizeof(state->totals));
		memset(&state->tcp, 0, sizeof(state->tcp));
		state->generation = observation->generation;
	}
	may_leave = attributed(&totals) >= attributed(&state->totals) + state->member.pending;
	ledger_totals_subtract(&totals, &state->totals);
	tcpstate_counters_subtract(&tcp, &state->tcp);
	state->totals = observation->account.totals;
	state->tcp = observation->tcp_counters;

	accumulate_into_group(state, observation, batch, &totals, &tcp, may_leave, now);
	history_add(state->key.datid, &totals, &tcp);
}

/*
 * Accumulate a session whose lock is held, if there is one; "open" is the record of
 * its latest exchange, where that is to be accumulated before its wait is over, or
 * NULL.
 */
static void
accumulate_locked(int slot, FlightRecord *open, ExecPurpose purpose)
{
	Accumulated *state = &states[slot];
	SlotObservation observation;
	Batch		batch;
	TimestampTz now;

	if (state->session == 0 || !slot_observe_for(slot, purpose, 0, &observation) ||
		observation.session != state->session)
		return;
	batch.count = 0;
	batch.guess = 0;
	batch.has_records = false;
	memset(batch.histogram, 0, sizeof(batch.histogram));
	now = GetCurrentTimestamp();
	consume_records(slot, state, &batch, now);
	if (open)
		accumulate_open_record(state, &batch, open);
	accumulate_account(state, &observation, &batch, now);
}

/*
 * Accumulate what the session in a slot, if there is one, has counted since it was
 * accumulated last.
 */
void
accumulate_session(int slot)
{
	if (states[slot].session == 0)
		return;
	lock_session(slot);
	accumulate_locked(slot, NULL, EXEC_ACCUMULATE);
	unlock_session(slot);
}

/*
 * The same for a session that accumulates itself, unless somebody is just doing it:
 * the time for which it waits for that would look like its client's.
 */
void
accumulate_session_if_free(int slot)
{
	if (!lock_session_if_free(slot))
		return;
	accumulate_locked(slot, NULL, EXEC_ACCUMULATE);
	unlock_session(slot);
}

/*
 * Accumulate all sessions, for somebody to show the tables, or to keep a snapshot.
 */
void
accumulate_all(void)
{
	for (int i = 0; i < slot_count(); i++)
	{
		if (states[i].session == 0)
			continue;
		lock_session(i);
		accumulate_locked(i, NULL, EXEC_SHOW);
		unlock_session(i);
	}
}

/*
 * A session has begun.
 */
void
accumulate_attach(int slot, uint64 session)
{
	Accumulated *state = &states[slot];

	lock_session(slot);
	memset(state, 0, sizeof(*state));
	my_client_key(&state->key);
	state->generation = slot_generation();
	state->session = session;
	recorder_attach(slot);
	unlock_session(slot);
}

/*
 * The session's application_name may have changed.  If so, what it did so far
 * belongs to the old group, the exchange of the "open" record (or NULL) with
 * it; the wait in progress belongs to the new one.
 */
void
accumulate_rename(int slot, FlightRecord *open)
{
	Accumulated *state = &states[slot];
	ClientKey	key;

	my_client_key(&key);
	lock_session(slot);
	state->renamed = memcmp(&key, &state->key, sizeof(key)) != 0;
	if (state->renamed)
	{
		state->next_key = key;
		accumulate_locked(slot, open, EXEC_ACCUMULATE);
	}
	unlock_session(slot);
}

/*
 * The session ends; its ledger has been stopped and its slot is still there.
 */
void
accumulate_detach(int slot)
{
	Accumulated *state = &states[slot];
	ClientEntry *group;

	lock_session(slot);
	accumulate_locked(slot, NULL, EXEC_ACCUMULATE);
	group = clients_acquire(&state->key, &state->member, GetCurrentTimestamp());
	clients_set_pending(group, &state->member, 0);
	group->counters.ended_sessions++;
	clients_leave(&state->member);
	state->session = 0;
	unlock_session(slot);
}

/*
 * Forget everything counted so far.  Returns the moment from which things
 * count again.
 */
TimestampTz
accumulate_reset(void)
{
	TimestampTz timestamp;

	locks_acquire(LOCK_RESET, 0, LW_EXCLUSIVE);
	timestamp = GetCurrentTimestamp();
	slot_announce_reset(clock_now(), timestamp);
	for (int i = 0; i < slot_count(); i++)
	{
		/* nobody accumulates while the reset lock is held exclusively */
		recorder_discard(i);
		exec_samples_forget_statement(i);
		memset(&states[i].member, 0, sizeof(states[i].member));
		memset(&states[i].totals, 0, sizeof(states[i].totals));
		memset(&states[i].tcp, 0, sizeof(states[i].tcp));
		memset(&states[i].burst, 0, sizeof(states[i].burst));
		states[i].exchange = 0;
		states[i].generation = slot_generation();
	}
	clients_reset();
	statements_reset();
	history_reset(timestamp);
	lock_waits_reset();
	locks_release(LOCK_RESET, 0);
	return timestamp;
}
