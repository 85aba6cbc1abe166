/*-------------------------------------------------------------------------
 *
 * lock_waits.c
 *	  See lock_waits.h.
 *
 * A round is one call of core's GetLockStatusData(), behind pg_locks, which
 * shares all partition locks of the lock manager for a moment.
 * (GetBlockerStatusData(), behind pg_blocking_pids(), answers for one process:
 * to ask it about all takes time in proportion to the square of their number,
 * and it does not say when their waits began.)
 *
 * Everything here is the worker's own memory.  PGPROCs and core's entries of
 * backends' status are in shared memory for good, so those of processes that
 * have ended may be looked at; whose they are is checked.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/twophase.h"
#include "blockers.h"
#include "compat.h"
#include "lock_graph.h"
#include "lock_waits.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "session_slot.h"
#include "storage/lock.h"
#include "storage/procarray.h"
#include "utils/memutils.h"

/* Rounds are at least this far apart, and take no more than this part of the time. */
#define ROUND_INTERVAL_NS		(250 * NS_PER_MS)
#define ROUND_SHARE				1000

#define FLUSH_INTERVAL_NS		(250 * NS_PER_MS)

/* Time that is attributed to nobody is forgotten if nobody waits for so long. */
#define UNATTRIBUTED_NS			(10 * NS_PER_S)

StaticAssertDecl(MAX_LOCKMODES <= LOCK_GRAPH_MODES, "all lock modes are known");

/* A process, or a prepared transaction, that others wait for. */
typedef struct Holder
{
	bool		used;			/* this place is taken */
	int			pid;			/* 0: a prepared transaction */
	PGPROC	   *proc;
	volatile PgBackendStatus *status;	/* NULL: there is none */
	int			status_changecount; /* as of when the key was made */
	int			slot;			/* -1: not a session of ours */
	uint64		session;
	BlockerKey	key;
	uint32		key_number;		/* counts the keys that it has had */
	int64		looked_at;		/* the latest tick at which it was looked at */
	int64	   *part;			/* of "fresh", what it was doing; NULL: not
								 * known */
	int64		sessions;		/* so many waited for it at that tick */
	BlockerCounters fresh;		/* not flushed yet, under this key ... */
	int64		held_up;		/* ... and in all */
} Holder;

/* The wait for a lock of the session in a slot. */
typedef struct LockWait
{
	uint64		session;
	TimestampTz started;		/* as in PGPROC; 0: it does not wait */
	int64		booked;			/* up to here it is, on whoever held the lock */
	int64		seen_at;		/* the latest tick at which it was seen */
	Holder	   *holder;			/* NULL: not known */
	LocalTransactionId lxid;	/* of the transaction in which it holds the
								 * lock */
	bool		outlives;		/* a lock that may outlive that */
	bool		is_new;			/* its holder was found by this round, and
								 * none was known before */
	uint32		key_number;		/* of the holder's key, ... */
	int64		on_key;			/* ... under which so much is booked */
} LockWait;

static LockWait *waits = NULL;	/* by slot */
static Holder *holders = NULL;	/* no more than there are waits */
static int	holder_count = 0;	/* places that have ever been taken */
static int *noted = NULL;		/* slots of those seen waiting in this tick,
								 * ... */
static int	noted_count = 0;
static int *waiting = NULL;		/* ... and in the tick before */
static int	waiting_count = 0;
static int64 unattributed = 0;	/* waited for somebody who is not known */
static int64 latest_tick = 0;	/* at which somebody waited */
static int64 next_round = 0;
static int64 next_flush = 0;
static uint32 generation = 0;	/* of resets, of all that is not flushed */
static MemoryContext round_context = NULL;

/* The session's slot says whom it waits for; most often it does already. */
static void
tell_session(int slot, uint64 session, int blocked_by)
{
	SlotSampled *sampled = &slot_get(slot)->sampled;

	if (sampled->session == session && sampled->generation == generation &&
		sampled->blocked_by == blocked_by)
		return;
	sampled = slot_sampled_begin(slot, session, generation);
	if (sampled == NULL)
		return;
	sampled->blocked_by = blocked_by;
	slot_sampled_end(slot);
}

/* What the worker before this one has told is over. */
static void
start(void)
{
	waits = MemoryContextAllocZero(TopMemoryContext, slot_count() * sizeof(LockWait));
	holders = MemoryContextAllocZero(TopMemoryContext, slot_count() * sizeof(Holder));
	noted = MemoryContextAlloc(TopMemoryContext, slot_count() * sizeof(int));
	waiting = MemoryContextAlloc(TopMemoryContext, slot_count() * sizeof(int));
	round_context = AllocSetContextCreate(TopMemoryContext, "pgnetlat lock waits",
										  ALLOCSET_DEFAULT_SIZES);
	generation = slot_generation();
	for (int i = 0; i < slot_count(); i++)
		tell_session(i, slot_get(i)->sampled.session, SLOT_NOT_BLOCKED);
	blockers_begin_pass();
}

/*
 * The session in a slot has just been seen waiting for a lock.
 */
void
lock_waits_note(int slot)
{
	if (waits == NULL)
		start();
	if (noted_count < slot_count())
		noted[noted_count++] = slot;
}

/* ---------------------------------------------------------------------------
 * Holders
 * ---------------------------------------------------------------------------
 */

/* Add what a holder has kept under its present key to the shared table. */
static void
flush_counters(Holder *holder, int64 sessions)
{
	if (holder->fresh.blocked == 0 && sessions == 0)
		return;
	blockers_add(&holder->key, &holder->fresh, sessions, generation);
	memset(&holder->fresh, 0, sizeof(holder->fresh));
}

static void
set_key(Holder *holder, const BlockerKey *key)
{
	if (memcmp(&holder->key, key, sizeof(*key)) == 0)
		return;
	flush_counters(holder, 0);
	holder->key = *key;
	holder->key_number++;
}

/*
 * What core's status says of a process, if that has changed; where it is just
 * changing, at the next tick.  While a statement's identifier is not known yet, it is
 * booked under the one before.
 */
static void
describe_process(Holder *holder)
{
	volatile PgBackendStatus *status = holder->status;
	BackendType type;
	BlockerKey	key = {0};
	char		name[NAMEDATALEN];
	const char *worker_type = NULL;
	int			before;
	int			after;

	if (status == NULL)
	{
		/* a prepared transaction's PGPROC says whose it is */
		key = holder->key;
		key.client.datid = holder->proc->databaseId;
		key.client.userid = holder->proc->roleId;
		set_key(holder, &key);
		return;
	}
	pgstat_begin_read_activity(status, before);
	if (before == holder->status_changecount || status->st_procpid != holder->pid)
		return;
	type = status->st_backendType;
	key.client.datid = status->st_databaseid;
	key.client.userid = status->st_userid;
	key.queryid = (uint64) status->st_query_id;
	clients_set_address(&key.client, (const struct sockaddr_storage *) &status->st_clientaddr.addr);
	strlcpy(name, (const char *) status->st_appname, NAMEDATALEN);
	pgstat_end_read_activity(status, after);
	if (!pgstat_read_activity_complete(before, after))
		return;
	holder->status_changecount = before;
	if (type == B_BG_WORKER)
		worker_type = GetBackgroundWorkerTypeByPid(holder->pid);
	strlcpy(key.backend_type, worker_type ? worker_type : GetBackendTypeDesc(type), NAMEDATALEN);
	clients_set_name(&key.client, name, NULL, NULL);
	if (key.queryid == 0)
		key.queryid = holder->key.queryid;
	set_key(holder, &key);
}

/* Which part of what is waited for it does a session account for now? */
static int64 *
part_of_session(Holder *holder, int64 now)
{
	SessionSlot *slot = slot_get(holder->slot);
	LedgerBlocked blocked = slot_blocked_in(*(volatile uint32 *) &holder->proc->wait_event_info);
	BlockerCounters *fresh = &holder->fresh;
	uint32		changecount = seqlock_read_begin(&slot->lock);
	LedgerPhase phase = slot->published.ledger.phase;
	int64		round_trip_ends = slot->published.ledger.since + slot->published.ledger.wait.rtt;

	/* as at the tick before, then */
	if (!seqlock_read_valid(&slot->lock, changecount))
		return holder->part;
	switch (phase)
	{
		case LEDGER_SENDING:
			return &fresh->send;
		case LEDGER_TURNING:
			return &fresh->recv;
		case LEDGER_EXECUTING:
			return blocked == LEDGER_BLOCKED_READING ? &fresh->recv :
				blocked == LEDGER_BLOCKED_WRITING ? &fresh->send : &fresh->exec;
		case LEDGER_WAITING:
			/* or has it read a request, and nothing has been sent yet? */
			return blocked != LEDGER_BLOCKED_READING ? &fresh->exec :
				now < round_trip_ends ? &fresh->network : &fresh->client;
		case LEDGER_OFF:
			break;
	}
	return NULL;
}

/* Who is it, and what is it doing at this tick? */
static void
look_at_holder(Holder *holder, int64 now)
{
	if (holder->looked_at == now)
		return;
	holder->looked_at = now;
	holder->sessions = 0;
	describe_process(holder);
	holder->part = holder->slot >= 0 ? part_of_session(holder, now) : NULL;
}

static void
add_time(Holder *holder, int64 time)
{
	holder->fresh.blocked += time;
	holder->held_up += time;
	if (holder->part)
		*holder->part += time;
}

static bool
is_process(const Holder *holder, int pid, const PGPROC *proc)
{
	if (!holder->used || holder->pid != pid)
		return false;
	if (pid == 0)
		return holder->proc == proc;
	return ((volatile PGPROC *) holder->proc)->pid == pid &&
		(holder->slot < 0 || slot_get(holder->slot)->published.session == holder->session);
}

/* Core's status of a process; NULL if there is none. */
static volatile PgBackendStatus *
find_status(int pid)
{
	volatile PgBackendStatus *all = compat_backend_status();

	for (int i = 0; i < MaxBackends + NUM_AUXILIARY_PROCS; i++)
	{
		if (all[i].st_procpid == pid)
			return &all[i];
	}
	return NULL;
}

/* Whose lock is it?  NULL if that one has ended. */
static PGPROC *
find_proc(const LockInstanceData *lock)
{
	PGPROC	   *proc;

	if (lock->leaderPid != 0)
	{
		proc = BackendPidGetProc(lock->leaderPid);
		return proc ? proc : AuxiliaryPidGetProc(lock->leaderPid);
	}
	for (int i = 0; i < max_prepared_xacts; i++)
	{
		proc = &PreparedXactProcs[i];
		if (proc->pid == 0 && compat_holds_lock(proc, lock))
			return proc;
	}
	return NULL;
}

/* Who holds a lock; NULL if nobody any more. */
static Holder *
find_holder(const LockInstanceData *lock)
{
	int			pid = lock->leaderPid;
	PGPROC	   *proc = pid == 0 ? find_proc(lock) : NULL;
	int			place = 0;
	Holder	   *holder;

	for (int i = 0; i < holder_count; i++)
	{
		if (is_process(&holders[i], pid, proc))
			return &holders[i];
	}
	proc = find_proc(lock);
	while (place < holder_count && holders[place].used)
		place++;
	if (proc == NULL || place == slot_count())
		return NULL;
	holder_count = Max(holder_count, place + 1);
	holder = &holders[place];
	memset(holder, 0, sizeof(*holder));
	holder->used = true;
	holder->pid = pid;
	holder->proc = proc;
	holder->status = pid == 0 ? NULL : find_status(pid);
	holder->status_changecount = -1;
	holder->slot = pid == 0 ? -1 : slot_find_pid(pid);
	if (holder->slot >= 0)
		holder->session = slot_get(holder->slot)->published.session;
	strlcpy(holder->key.backend_type, pid == 0 ? "prepared transaction" : "unknown",
			NAMEDATALEN);
	return holder;
}

/* ---------------------------------------------------------------------------
 * Waits
 * ---------------------------------------------------------------------------
 */

static void
end_wait(int slot)
{
	LockWait   *wait = &waits[slot];

	if (wait->started == 0)
		return;
	if (wait->holder == NULL)
		unattributed += Max(wait->seen_at - wait->booked, 0);
	tell_session(slot, wait->session, SLOT_NOT_BLOCKED);
	wait->started = 0;
	wait->holder = NULL;
}

/* Does the holder that is known still hold the lock? */
static bool
is_held(const LockWait *wait)
{
	const Holder *holder = wait->holder;

	return holder && is_process(holder, holder->pid, holder->proc) &&
		(wait->outlives || compat_lxid(holder->proc) == wait->lxid);
}

/* What was waited since it was booked is the holder's. */
static void
book_wait(LockWait *wait, int64 now)
{
	Holder	   *holder = wait->holder;
	int64		time = Max(now - wait->booked, 0);

	look_at_holder(holder, now);
	if (wait->key_number != holder->key_number)
		wait->on_key = 0;
	wait->key_number = holder->key_number;
	wait->on_key += time;
	wait->booked = now;
	add_time(holder, time);
	holder->sessions++;
	holder->fresh.blocked_max = Max(holder->fresh.blocked_max, wait->on_key);
	holder->fresh.sessions_max = Max(holder->fresh.sessions_max, holder->sessions);
}

/*
 * A session has been seen waiting at this tick.  What it waits for is a sample,
 * which stands for the time since the tick before, unless it has waited for
 * longer.  (That it did before its exchange began, or will later than now, only
 * the wall clock believes.)  False if it waits no more.
 */
static bool
go_on_waiting(int slot, int64 now, int64 before, int64 clock_offset)
{
	LockWait   *wait = &waits[slot];
	const SlotPublished *published = &slot_get(slot)->published;
	uint64		session = published->session;
	PGPROC	   *proc = published->proc;
	TimestampTz started;
	int64		began;

	if (session == 0 || proc == NULL || wait->seen_at == now)
		return false;
	started = (TimestampTz) pg_atomic_read_u64(&proc->waitStart);
	if (started == 0)
		return false;
	if (wait->session != session || wait->started != started)
	{
		end_wait(slot);
		began = clock_from_timestamp(clock_offset, started);
		began = Min(Max(began, published->ledger.since), before);
		wait->session = session;
		wait->started = started;
		wait->booked = Max(began, slot_control->reset_at);
		wait->on_key = 0;
	}
	wait->seen_at = now;
	if (is_held(wait))
		book_wait(wait, now);
	else
		wait->holder = NULL;
	return true;
}

/* ---------------------------------------------------------------------------
 * Rounds
 * ---------------------------------------------------------------------------
 */

/* The locks that somebody waits for, with a number each. */
typedef struct AwaitedLock
{
	LOCKTAG		tag;			/* must be first */
	int			number;
} AwaitedLock;

static LockGraph *
build_graph(const LockData *data)
{
	HASHCTL		info = {.keysize = sizeof(LOCKTAG),.entrysize = sizeof(AwaitedLock)};
	HTAB	   *awaited;
	LockInstance *instances;
	int			count = 0;

	info.hcxt = CurrentMemoryContext;
	awaited = hash_create("pgnetlat awaited locks", 64, &info,
						  HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	for (int i = 0; i < data->nelements; i++)
	{
		bool		found;
		AwaitedLock *lock;

		if (data->locks[i].waitLockMode == NoLock)
			continue;
		lock = hash_search(awaited, &data->locks[i].locktag, HASH_ENTER, &found);
		if (!found)
			lock->number = hash_get_num_entries(awaited) - 1;
	}
	instances = palloc_extended(mul_size(data->nelements + 1, sizeof(LockInstance)),
								MCXT_ALLOC_HUGE);
	for (int i = 0; i < data->nelements; i++)
	{
		const LockInstanceData *source = &data->locks[i];
		AwaitedLock *lock = hash_search(awaited, &source->locktag, HASH_FIND, NULL);
		LockInstance *instance = &instances[count];

		/* nobody waits for what the fast path has granted */
		if (lock == NULL || source->fastpath)
			continue;
		count++;
		instance->lock = lock->number;
		instance->process = source->leaderPid;
		instance->held = source->holdMask;
		instance->awaited = source->waitLockMode;
		instance->conflicts = source->waitLockMode == NoLock ? 0 :
			GetLockTagsMethodTable(&source->locktag)->conflictTab[source->waitLockMode];
		/* not set yet: it has just begun */
		instance->since = source->waitStart == 0 ? PG_INT64_MAX : source->waitStart;
		instance->source = i;
	}
	return lock_graph_build(instances, count, hash_get_num_entries(awaited));
}

/* A wait has a root, which may be the holder that is known. */
static void
set_holder(LockWait *wait, const LockInstanceData *lock, int64 now)
{
	Holder	   *holder = find_holder(lock);

	if (holder == NULL)
		return;
	wait->outlives = lock->locktag.locktag_type == LOCKTAG_ADVISORY;
	/* that of a parallel worker is its leader's */
	wait->lxid = lock->pid == lock->leaderPid ? COMPAT_LOCK_LXID(lock) :
		compat_lxid(holder->proc);
	wait->is_new = wait->holder == NULL;
	if (wait->holder == holder)
		return;
	wait->holder = holder;
	wait->on_key = 0;
	book_wait(wait, now);
}

static void
make_round(int64 now)
{
	MemoryContext old = MemoryContextSwitchTo(round_context);
	int64		cpu_time = clock_read(CLOCK_PROCESS_CPUTIME_ID);
	LockData   *data;
	LockGraph  *graph;
	int64		new = 0;
	int64		share;

	next_round = now + ROUND_INTERVAL_NS;	/* also after an error */
	data = GetLockStatusData();
	graph = build_graph(data);
	for (int i = 0; i < waiting_count; i++)
	{
		LockWait   *wait = &waits[waiting[i]];
		const LockInstance *root =
			lock_graph_root(graph, slot_get(waiting[i])->published.pid);

		wait->is_new = false;
		if (root)
			set_holder(wait, &data->locks[root->source], now);
		new += wait->is_new;
		if (root && wait->holder)
			tell_session(waiting[i], wait->session, wait->holder->pid);
	}
	share = new > 0 ? unattributed / new : 0;
	for (int i = 0; i < waiting_count && new > 0; i++)
	{
		if (waits[waiting[i]].is_new)
			add_time(waits[waiting[i]].holder, share);
	}
	unattributed -= share * new;
	MemoryContextSwitchTo(old);
	MemoryContextReset(round_context);
	cpu_time = clock_read(CLOCK_PROCESS_CPUTIME_ID) - cpu_time;
	next_round = Max(next_round, now + ROUND_SHARE * cpu_time);
}

/* ---------------------------------------------------------------------------
 * Ticks
 * ---------------------------------------------------------------------------
 */

/* Whom nobody waited for at this tick has no more to tell. */
static void
flush(int64 now)
{
	blockers_begin_pass();
	for (int i = 0; i < holder_count; i++)
	{
		Holder	   *holder = &holders[i];
		SlotSampled *sampled;

		if (!holder->used)
			continue;
		holder->used = holder->looked_at == now && holder->sessions > 0;
		flush_counters(holder, holder->used ? holder->sessions : 0);
		if (holder->slot < 0 || holder->held_up == 0)
			continue;
		sampled = slot_sampled_begin(holder->slot, holder->session, generation);
		if (sampled)
		{
			sampled->held_up += holder->held_up;
			slot_sampled_end(holder->slot);
		}
		holder->held_up = 0;
	}
	while (holder_count > 0 && !holders[holder_count - 1].used)
		holder_count--;
	next_flush = now + FLUSH_INTERVAL_NS;
}

/* Everything has been reset: waits go on, from then on. */
static void
apply_reset(void)
{
	int64		reset_at = slot_control->reset_at;

	generation = slot_generation();
	unattributed = 0;
	for (int i = 0; i < holder_count; i++)
	{
		memset(&holders[i].fresh, 0, sizeof(holders[i].fresh));
		holders[i].held_up = 0;
	}
	for (int i = 0; i < waiting_count; i++)
	{
		waits[waiting[i]].booked = Max(waits[waiting[i]].booked, reset_at);
		waits[waiting[i]].on_key = 0;
	}
}

/*
 * All sessions that wait have been noted, at a tick that began "now"; the one before
 * was at "before".
 */
void
lock_waits_tick(int64 now, int64 before, int64 clock_offset)
{
	int		   *slots = noted;
	int			count = 0;

	if (waits == NULL)
		start();
	if (noted_count == 0 && waiting_count == 0)
		return;
	if (latest_tick < now - UNATTRIBUTED_NS)
		unattributed = 0;
	latest_tick = now;
	if (generation != slot_generation())
		apply_reset();
	for (int i = 0; i < noted_count; i++)
	{
		if (go_on_waiting(noted[i], now, before, clock_offset))
			noted[count++] = noted[i];
	}
	for (int i = 0; i < waiting_count; i++)
	{
		if (waits[waiting[i]].seen_at != now)
			end_wait(waiting[i]);
	}
	noted = waiting;
	waiting = slots;
	waiting_count = count;
	noted_count = 0;
	if (waiting_count > 0 && now >= next_round)
		make_round(now);
	if (now >= next_flush || waiting_count == 0)
		flush(now);
}
