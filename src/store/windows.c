/*-------------------------------------------------------------------------
 *
 * windows.c
 *	  See windows.h.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "locks.h"
#include "miscadmin.h"
#include "prefetch.h"
#include "seqlock.h"
#include "storage/shmem.h"
#include "wait_events.h"
#include "windows.h"

/*
 * Snapshots take most of the memory that a session costs, and are only there to
 * be subtracted, a few minutes later.  So of what grows slowly they keep the
 * last 32 bits, in units: these last for hours.
 */
#define SNAPSHOT_UNIT_NS	4096
#define SNAPSHOT_LIFE_NS	(NS_PER_S * 4 * 3600)

/*
 * One takes a microsecond or two where there are thousands, so all of them are
 * further apart then: this long for each.
 */
#define SNAPSHOT_EACH_NS	(500 * NS_PER_US)

typedef struct WindowSnapshot
{
	int64		exec;
	int64		send;
	int64		recv;
	int64		network;
	int64		client;
	int64		idle;
	int64		bytes_sent;
	int64		bytes_received;
	uint32		requests;
	uint32		statements;
	uint32		transactions;
	uint32		pipelined;
	uint32		turns;
	uint32		pooler_requests;
	uint32		retransmits;
	uint32		packets_sent;
	uint32		packets_received;
	uint32		in_xact_wait;	/* units, as what follows */
	uint32		send_blocked;
	uint32		send_client;
	uint32		run_queue;
	uint32		run_queue_wait;
	uint32		exec_part[NUM_EXEC_PARTS];
	uint32		lock_held_up;
} WindowSnapshot;

/* A reset of one session. */
typedef struct WindowReset
{
	WindowStart start;
	TimestampTz since;			/* the same moment as start.at */
} WindowReset;

typedef struct SessionSnapshots
{
	/* written by the sampler alone, under the seqlock */
	SeqLock		lock;
	uint32		generation;		/* of these, as in WindowStart */
	uint64		session;
	SnapshotTimes times;
	WindowSnapshot snapshots[SNAPSHOTS_KEPT];

	/* written under the reset lock and the seqlock */
	SeqLock		reset_lock;
	WindowReset reset;
} SessionSnapshots;

/*
 * The schedule is of the sampler alone; here, because one that is started anew
 * goes on with it.
 */
typedef struct WindowsShared
{
	SnapshotSchedule schedule;
	SessionSnapshots sessions[FLEXIBLE_ARRAY_MEMBER];
} WindowsShared;

static WindowsShared *shared = NULL;

Size
windows_shmem_size(void)
{
	return add_size(offsetof(WindowsShared, sessions),
					mul_size(slot_count(), sizeof(SessionSnapshots)));
}

void
windows_shmem_init(void)
{
	bool		found;

	shared = ShmemInitStruct("pgnetlat windows", windows_shmem_size(), &found);
	if (!found)
		memset(shared, 0, windows_shmem_size());
}

SnapshotLevels
windows_due(int64 now)
{
	return snapshots_due(&shared->schedule, now);
}

/*
 * Snapshots of so many sessions have been taken.
 */
void
windows_were_taken(int sessions)
{
	snapshots_keep_apart(&shared->schedule, sessions * SNAPSHOT_EACH_NS);
}

/*
 * When snapshots are to be taken next.
 */
int64
windows_next_due(void)
{
	return snapshots_next_due(&shared->schedule);
}

static inline uint32
units(int64 time)
{
	return (uint32) (time / SNAPSHOT_UNIT_NS);
}

/* A count as it was when these were its last bits, not longer than 2^32 ago. */
static inline int64
count_before(int64 now, uint32 before)
{
	return now - (uint32) ((uint32) now - before);
}

/* The same for a time, to the unit; never more than now. */
static inline int64
time_before(int64 now, uint32 before)
{
	return now - (int64) (uint32) (units(now) - before) * SNAPSHOT_UNIT_NS;
}

static void
take_snapshot(WindowSnapshot *snapshot, const SlotObservation *observation)
{
	const LedgerTotals *totals = &observation->account.totals;
	const TcpCounters *tcp = &observation->tcp_counters;

	snapshot->exec = totals->exec;
	snapshot->send = totals->send;
	snapshot->recv = totals->recv;
	snapshot->network = totals->network;
	snapshot->client = totals->client;
	snapshot->idle = totals->idle;
	snapshot->in_xact_wait = units(totals->in_xact_wait);
	snapshot->send_blocked = units(totals->send_blocked);
	snapshot->send_client = units(totals->send_client);
	snapshot->bytes_sent = totals->bytes_sent;
	snapshot->bytes_received = tcp->bytes_received;
	snapshot->requests = (uint32) totals->requests;
	snapshot->statements = (uint32) totals->statements;
	snapshot->transactions = (uint32) totals->transactions;
	snapshot->pipelined = (uint32) totals->pipelined;
	snapshot->turns = (uint32) totals->turns;
	snapshot->pooler_requests = (uint32) totals->pooler_requests;
	snapshot->retransmits = (uint32) tcp->retransmits;
	snapshot->packets_sent = (uint32) tcp->packets_sent;
	snapshot->packets_received = (uint32) tcp->packets_received;
	snapshot->run_queue = units(totals->run_queue);
	snapshot->run_queue_wait = units(totals->run_queue_wait);
	for (int i = 0; i < NUM_EXEC_PARTS; i++)
		snapshot->exec_part[i] = units(totals->exec_part[i]);
	snapshot->lock_held_up = units(observation->locks.held_up);
}

/* What it was taken of, given a later account of the same. */
static void
read_snapshot(const WindowSnapshot *snapshot, const SlotObservation *observation,
			  WindowAccount *before)
{
	LedgerTotals *totals = &before->totals;
	TcpCounters *tcp = &before->tcp;
	const LedgerTotals *now = &observation->account.totals;
	const TcpCounters *tcp_now = &observation->tcp_counters;

	totals->exec = snapshot->exec;
	totals->send = snapshot->send;
	totals->recv = snapshot->recv;
	totals->network = snapshot->network;
	totals->client = snapshot->client;
	totals->idle = snapshot->idle;
	totals->in_xact_wait = time_before(now->in_xact_wait, snapshot->in_xact_wait);
	totals->send_blocked = time_before(now->send_blocked, snapshot->send_blocked);
	totals->send_client = time_before(now->send_client, snapshot->send_client);
	totals->bytes_sent = snapshot->bytes_sent;
	tcp->bytes_received = snapshot->bytes_received;
	totals->requests = count_before(now->requests, snapshot->requests);
	totals->statements = count_before(now->statements, snapshot->statements);
	totals->transactions = count_before(now->transactions, snapshot->transactions);
	totals->pipelined = count_before(now->pipelined, snapshot->pipelined);
	totals->turns = count_before(now->turns, snapshot->turns);
	totals->pooler_requests = count_before(now->pooler_requests, snapshot->pooler_requests);
	tcp->retransmits = count_before(tcp_now->retransmits, snapshot->retransmits);
	tcp->packets_sent = count_before(tcp_now->packets_sent, snapshot->packets_sent);
	tcp->packets_received = count_before(tcp_now->packets_received,
										 snapshot->packets_received);
	totals->run_queue = time_before(now->run_queue, snapshot->run_queue);
	totals->run_queue_wait = time_before(now->run_queue_wait, snapshot->run_queue_wait);
	totals->on_cpu = now->on_cpu;	/* not kept: nobody asks for it */
	for (int i = 0; i < NUM_EXEC_PARTS; i++)
		totals->exec_part[i] = time_before(now->exec_part[i], snapshot->exec_part[i]);
	before->lock_held_up = time_before(observation->locks.held_up, snapshot->lock_held_up);
}

/*
 * A snapshot of the session in a slot is soon to be kept: the snapshots of the
 * first level, in which most of them go.
 */
void
windows_prefetch(int slot)
{
	prefetch_to_write(&shared->sessions[slot], offsetof(SessionSnapshots, snapshots[SNAPSHOTS_PER_LEVEL]));
}

/*
 * Keep a snapshot of a session that was just observed.
 */
void
windows_add(int slot, const SlotObservation *observation, SnapshotLevels levels)
{
	SessionSnapshots *own = &shared->sessions[slot];
	int64		at = observation->observed_at - observation->account.pending;

	seqlock_write_begin(&own->lock);
	if (own->session != observation->session || own->generation != observation->generation)
	{
		own->session = observation->session;
		own->generation = observation->generation;
		memset(&own->times, 0, sizeof(own->times));
	}
	for (int level = 0; level < SNAPSHOT_LEVELS; level++)
	{
		int			place;

		if (!(levels & (1u << level)))
			continue;
		place = snapshots_place(&own->times, level);
		own->times.at[place] = at;
		take_snapshot(&own->snapshots[place], observation);
	}
	seqlock_write_end(&own->lock);
}

/*
 * Where the window begins that contains all since then; false if not known.  What
 * was counted before that is left to be read from the snapshot.
 */
static bool
find_start(int slot, int64 since, WindowStart *start, WindowSnapshot *snapshot)
{
	SessionSnapshots *own = &shared->sessions[slot];

	for (;;)
	{
		uint32		changecount = seqlock_read_begin(&own->lock);
		int			place = snapshots_find(&own->times, since);

		if (place >= 0)
		{
			start->session = own->session;
			start->generation = own->generation;
			start->at = own->times.at[place];
			*snapshot = own->snapshots[place];
		}
		if (seqlock_read_valid(&own->lock, changecount))
			return place >= 0 && clock_now() - start->at < SNAPSHOT_LIFE_NS;
		CHECK_FOR_INTERRUPTS();
	}
}

static void
copy_reset(int slot, WindowReset *reset)
{
	SessionSnapshots *own = &shared->sessions[slot];

	for (;;)
	{
		uint32		changecount = seqlock_read_begin(&own->reset_lock);

		*reset = own->reset;
		if (seqlock_read_valid(&own->reset_lock, changecount))
			break;
		CHECK_FOR_INTERRUPTS();
	}
}

static bool
is_start_of(const WindowStart *start, const SlotObservation *observation)
{
	return start->session == observation->session && start->generation == observation->generation;
}

/* What a session has counted in the window, instead of all it has. */
static void
subtract_start(SlotObservation *observation, const WindowStart *start)
{
	const WindowAccount *before = &start->before;

	ledger_totals_subtract(&observation->account.totals, &before->totals);
	ledger_totals_fit(&observation->account.totals);
	/* of what was found late to be the client's, some is of the time before */
	(void) ledger_totals_cut_late(&observation->account.totals);
	tcpstate_counters_subtract(&observation->tcp_counters, &before->tcp);
	observation->locks.held_up -= before->lock_held_up;
	observation->stats_since = clock_to_timestamp(observation->clock_offset, start->at);
}

/* Where a window might begin, as known before the session is observed. */
typedef struct WindowCandidate
{
	bool		found;
	WindowStart start;
	WindowSnapshot snapshot;
} WindowCandidate;

static void
find_candidate(int slot, int64 length, WindowCandidate *candidate)
{
	candidate->found = length != WINDOW_WHOLE &&
		find_start(slot, clock_now() - length, &candidate->start, &candidate->snapshot);
}

/* Leave of an observation what is in the window. */
static void
cut_to_window(SlotObservation *observation, WindowCandidate *candidate,
			  const WindowReset *reset)
{
	WindowStart *start = &candidate->start;
	bool		found = candidate->found && is_start_of(start, observation);

	if (is_start_of(&reset->start, observation) && !(found && start->at > reset->start.at))
	{
		subtract_start(observation, &reset->start);
		observation->stats_since = reset->since;
	}
	else if (found)
	{
		read_snapshot(&candidate->snapshot, observation, &start->before);
		subtract_start(observation, start);
	}
}

/*
 * Like slot_observe(), but only what was counted in a window: the shortest one
 * that contains the last "length" nanoseconds, or all since the session began
 * or was reset if no snapshot is as old as that, or WINDOW_WHOLE was asked for.
 * The observation's stats_since is when the window began.
 */
bool
windows_observe(int slot, int64 length, SlotObservation *observation)
{
	WindowCandidate candidate;
	WindowReset reset;

	/* first, so that no snapshot is later than the observation */
	find_candidate(slot, length, &candidate);
	copy_reset(slot, &reset);
	if (!slot_observe(slot, observation))
		return false;
	cut_to_window(observation, &candidate, &reset);
	return true;
}

/*
 * The same over two windows at once, as of the same moment.
 */
bool
windows_observe_both(int slot, int64 length, SlotObservation *observation,
					 int64 other_length, SlotObservation *other)
{
	WindowCandidate candidate;
	WindowCandidate other_candidate;
	WindowReset reset;

	find_candidate(slot, length, &candidate);
	find_candidate(slot, other_length, &other_candidate);
	copy_reset(slot, &reset);
	if (!slot_observe(slot, observation))
		return false;
	*other = *observation;
	cut_to_window(observation, &candidate, &reset);
	cut_to_window(other, &other_candidate, &reset);
	return true;
}

/*
 * Forget what the session with this process ID has counted so far; false if it
 * is not there.  "since" is the moment from which it counts again.
 */
bool
windows_reset(int slot, int pid, TimestampTz *since)
{
	SessionSnapshots *own = &shared->sessions[slot];
	WindowReset reset;
	SlotObservation observation;
	bool		found;

	memset(&reset, 0, sizeof(reset));
	locks_acquire(LOCK_RESET, 0, LW_EXCLUSIVE);
	found = slot_observe(slot, &observation) && observation.pid == pid && !observation.closed;
	if (found)
	{
		reset.start.session = observation.session;
		reset.start.generation = observation.generation;
		reset.start.at = observation.observed_at - observation.account.pending;
		reset.start.before.totals = observation.account.totals;
		reset.start.before.tcp = observation.tcp_counters;
		reset.start.before.lock_held_up = observation.locks.held_up;
		reset.since = clock_to_timestamp(observation.clock_offset, reset.start.at);
		*since = reset.since;
		seqlock_write_begin(&own->reset_lock);
		own->reset = reset;
		seqlock_write_end(&own->reset_lock);
		wait_events_reset(slot);
	}
	locks_release(LOCK_RESET, 0);
	return found;
}
