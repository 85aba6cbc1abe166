/*-------------------------------------------------------------------------
 *
 * lock_waits.c
 *	  Finds out for whom sessions wait, and books their waits on the
 *	  holders.
 *
 * A round is one call of GetLockStatusData(), which is behind pg_locks and
 * briefly takes all partition locks of the lock manager in shared mode.
 * (GetBlockerStatusData(), which is behind pg_blocking_pids(), answers for one
 * process: calling it for all processes takes quadratic time, and it does not
 * say when their waits began.)
 *
 * All data here is in the sampler's private memory.  PGPROCs and core's status
 * entries stay valid memory after their processes have ended, so they may be
 * read at any time; we check that they still belong to the same process.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/twophase.h"
#include "blockers.h"
#include "compat.h"
#include "lib/ilist.h"
#include "lock_graph.h"
#include "lock_waits.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "session_slot.h"
#include "storage/lock.h"
#include "storage/procarray.h"
#include "utils/memutils.h"

/*
 * Rounds are at least this far apart, and in the long run take no more than
 * 1/ROUND_SHARE of the time.
 */
#define ROUND_INTERVAL_NS		(250 * NS_PER_MS)
#define ROUND_SHARE				1000
#define RETRY_INTERVAL_NS		(10 * NS_PER_S) /* after an error */

#define FLUSH_INTERVAL_NS		(250 * NS_PER_MS)

/* Unattributed time is dropped if no session waits for this long. */
#define UNATTRIBUTED_NS			(10 * NS_PER_S)

/* A process or prepared transaction that others wait for. */
typedef struct Holder
{
	PGPROC	   *proc;			/* must be first: the key */
	int			pid;			/* 0: a prepared transaction */
	volatile PgBackendStatus *status;	/* NULL: none */
	int			status_changecount; /* when the key was made */
	int			index;			/* -1: not a session of ours */
	uint64		session;
	BlockerKey	key;
	int64		looked_at;		/* latest tick at which anybody waited for it */
	int64		sessions;		/* sessions that waited for it at that tick */
	int64	   *part;			/* the part of "fresh" for what it was doing;
								 * NULL: not known */
	BlockerCounters fresh;		/* not flushed yet, for the current key ... */
	int64		blocking;		/* ...  and for all keys */
} Holder;

/* The lock wait of the session in a slot. */
typedef struct LockWait
{
	dlist_node	node;			/* in the list "waiting" */
	bool		listed;
	bool		noted;			/* seen waiting in this tick */
	bool		in_circle;		/* in a deadlock so far, so booked on nobody */
	uint64		session;
	TimestampTz started;		/* as in PGPROC; 0: not waiting */
	int64		booked;			/* the wait is booked up to here */
	int64		blamed_from;	/* and on this holder since then: */
	Holder	   *holder;			/* NULL: not known */
	LocalTransactionId lxid;	/* transaction in which it holds the lock */
	bool		outlives;		/* the lock may outlive that transaction */
} LockWait;

static LockWait *waits = NULL;	/* by slot */
static dlist_head waiting = DLIST_STATIC_INIT(waiting);
static HTAB *holders = NULL;
static int	unknown = 0;		/* waits without a known holder */
static int64 unattributed = 0;	/* time waited for unknown holders */
static int64 latest_tick = 0;	/* latest tick at which any session waited */
static int64 next_round = 0;
static int64 round_cost = 0;	/* CPU time of a round */
static int64 next_flush = 0;
static uint32 generation = 0;	/* reset generation of what is not flushed */
static int64 booked_before = 0; /* a previous sampler has booked up to here */
static MemoryContext round_context = NULL;

/* Publish in a session's slot for whom it waits. */
static void
publish_blocker(int index, uint64 session, int blocked_by)
{
	SlotSampled *sampled = slot_sampled_begin(index, session, generation);

	if (sampled == NULL)
		return;
	sampled->blocked_by = blocked_by;
	slot_sampled_end(index);
}

/*
 * Start with no waits: what a previous sampler has published is void, but what
 * it has booked is not.
 */
void
lock_waits_init(void)
{
	HASHCTL		info = {.keysize = sizeof(PGPROC *),.entrysize = sizeof(Holder)};

	waits = MemoryContextAllocZero(TopMemoryContext, slot_count() * sizeof(LockWait));
	holders = hash_create("pgnetlat holders", 64, &info, HASH_ELEM | HASH_BLOBS);
	round_context = AllocSetContextCreate(TopMemoryContext, "pgnetlat lock waits",
										  ALLOCSET_DEFAULT_SIZES);
	generation = slot_control->generation;
	booked_before = slot_control->last_tick;
	for (int i = 0; i < slot_count(); i++)
		publish_blocker(i, slot_get(i)->sampled.session, SLOT_NOT_BLOCKED);
	blockers_begin_pass();
}

/* Note that the session in a slot has just been seen waiting for a lock. */
void
lock_waits_note(int index)
{
	LockWait   *wait = &waits[index];

	wait->noted = true;
	if (wait->listed)
		return;
	wait->listed = true;
	dlist_push_tail(&waiting, &wait->node);
}

/* ---------------------------------------------------------------------------
 * Holders
 * ---------------------------------------------------------------------------
 */

/* Add what was counted for a holder's current key to the shared table. */
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
}

/*
 * Update a holder's key from core's status of its process, if that has
 * changed.  If it is changing just now, that is done at the next tick.  A
 * statement whose identifier is not known yet is booked under the previous
 * one.
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
		/* a prepared transaction's PGPROC has its database and role */
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
	/* a session's name may have been replaced by a tracer's */
	if (holder->index >= 0)
		(void) slot_name(holder->index, holder->session, name);
	clients_set_name(&key.client, name, NULL, NULL);
	if (key.queryid == 0)
		key.queryid = holder->key.queryid;
	set_key(holder, &key);
}

/* The part for which a session blocks others at this tick. */
static int64 *
part_of_session(Holder *holder, int64 now)
{
	const SessionSlot *slot = slot_get(holder->index);
	const Ledger *ledger = &slot->published.ledger;
	BlockerCounters *fresh = &holder->fresh;

	if (slot->sampled.session != holder->session)
		return NULL;
	switch (slot->sampled.doing.state)
	{
		case LEDGER_STATE_EXECUTING:
			return &fresh->exec;
		case LEDGER_STATE_SENDING:
			return &fresh->send;
		case LEDGER_STATE_RECEIVING:
			return &fresh->recv;
		case LEDGER_STATE_WAITING:
		case LEDGER_STATE_WAITING_IN_XACT:
		case LEDGER_STATE_IDLE:
			return now < ledger->since + ledger->wait.rtt ? &fresh->network : &fresh->client;
		case LEDGER_STATE_DISABLED:
			break;
	}
	return NULL;
}

/* Find out who a holder is, and what it is doing at this tick. */
static void
look_at_holder(Holder *holder, int64 now)
{
	if (holder->looked_at == now)
		return;
	holder->looked_at = now;
	holder->sessions = 0;
	describe_process(holder);
	holder->part = holder->index >= 0 ? part_of_session(holder, now) : NULL;
}

static void
add_time(Holder *holder, int64 time)
{
	holder->fresh.blocked += time;
	holder->blocking += time;
	if (holder->part)
		*holder->part += time;
}

/* Find core's status entry of a process; NULL if there is none. */
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

/* Find the process or prepared transaction of a lock; NULL if it has ended. */
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

/* Find or make the holder of a lock; NULL if it has ended. */
static Holder *
find_holder(const LockInstanceData *lock)
{
	PGPROC	   *proc = find_proc(lock);
	Holder	   *holder;
	bool		found;

	if (proc == NULL)
		return NULL;
	holder = hash_search(holders, &proc, HASH_ENTER, &found);
	if (found && holder->pid == lock->leaderPid)
		return holder;
	if (found)
		flush_counters(holder, 0);
	memset(holder, 0, sizeof(*holder));
	holder->proc = proc;
	holder->pid = lock->leaderPid;
	holder->status = holder->pid == 0 ? NULL : find_status(holder->pid);
	holder->status_changecount = -1;
	holder->index = holder->pid == 0 ? -1 : slot_find_pid(holder->pid);
	if (holder->index >= 0)
		holder->session = slot_get(holder->index)->published.session;
	strlcpy(holder->key.backend_type, holder->pid == 0 ? "prepared transaction" : "unknown",
			NAMEDATALEN);
	return holder;
}

/* ---------------------------------------------------------------------------
 * Waits
 * ---------------------------------------------------------------------------
 */

/* End a wait that was last seen at the previous tick. */
static void
end_wait(LockWait *wait, int64 seen_at)
{
	if (wait->started == 0)
		return;
	if (wait->holder == NULL && !wait->in_circle)
		unattributed += Max(seen_at - wait->booked, 0);
	publish_blocker(wait - waits, wait->session, SLOT_NOT_BLOCKED);
	wait->started = 0;
	wait->holder = NULL;
}

/* Does the known holder still hold the lock? */
static bool
is_held(const LockWait *wait)
{
	const Holder *holder = wait->holder;

	return holder && ((volatile PGPROC *) holder->proc)->pid == holder->pid &&
		(wait->outlives || compat_lxid(holder->proc) == wait->lxid);
}

/* Book the time that is not booked yet on the holder. */
static void
book_wait(LockWait *wait, int64 now)
{
	Holder	   *holder = wait->holder;

	look_at_holder(holder, now);
	add_time(holder, Max(now - wait->booked, 0));
	wait->booked = Max(wait->booked, now);	/* there may be a reset since then */
	holder->sessions++;
	holder->fresh.blocked_max = Max(holder->fresh.blocked_max, now - wait->blamed_from);
	holder->fresh.sessions_max = Max(holder->fresh.sessions_max, holder->sessions);
}

/*
 * Continue or begin the wait of a session that was seen waiting at this tick
 * or at the previous one.  It counts from the previous tick, or from its own
 * beginning if that was earlier.  (The wall clock may put the beginning before
 * the exchange, or after now.)  Returns false if the wait is over.
 *
 * A session that checks for a deadlock shows another wait event or none, but
 * its wait goes on.  (After a cancelled wait, waitStart remains set, but
 * waitLock is NULL.)
 */
static bool
go_on_waiting(LockWait *wait, int64 now, int64 before, int64 clock_offset)
{
	const SlotPublished *published = &slot_get(wait - waits)->published;
	uint64		session = published->session;
	PGPROC	   *proc = published->proc;
	TimestampTz started;
	int64		began;

	if (session == 0 || proc == NULL)
		return false;
	started = (TimestampTz) pg_atomic_read_u64(&proc->waitStart);
	if (started == 0 || (!wait->noted && ((volatile PGPROC *) proc)->waitLock == NULL))
		return false;
	if (wait->session != session || wait->started != started)
	{
		end_wait(wait, before);
		began = clock_from_timestamp(clock_offset, started);
		began = Min(Max(began, published->ledger.since), before);
		wait->session = session;
		wait->started = started;
		wait->in_circle = false;
		wait->booked = Max(began, Max(slot_control->reset_at, booked_before));
	}
	if (is_held(wait))
		book_wait(wait, now);
	else
		wait->holder = NULL;
	unknown += wait->holder == NULL;
	return true;
}

/* ---------------------------------------------------------------------------
 * Rounds
 * ---------------------------------------------------------------------------
 */

/* The locks that are waited for, numbered. */
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

		/* locks granted by the fast path have no waiters */
		if (lock == NULL || source->fastpath)
			continue;
		count++;
		instance->lock = lock->number;
		instance->process = source->leaderPid;
		instance->held = source->holdMask;
		instance->awaited = source->waitLockMode;
		instance->conflicts = source->waitLockMode == NoLock ? 0 :
			GetLockTagsMethodTable(&source->locktag)->conflictTab[source->waitLockMode];
		/* 0: not set yet, since the wait has just begun */
		instance->since = source->waitStart == 0 ? PG_INT64_MAX : source->waitStart;
		instance->source = i;
		instance->holder = NULL;
	}
	return lock_graph_build(instances, count);
}

/*
 * Set a wait's holder, which may be the known one.  If none was known, the
 * holder also gets its share of the unattributed time.  Time in a deadlock's
 * circle is not booked on anybody.
 */
static void
set_holder(LockWait *wait, Holder *holder, const LockInstanceData *lock, int64 share, int64 now)
{
	bool		was_unknown = wait->holder == NULL;

	wait->outlives = lock->locktag.locktag_type == LOCKTAG_ADVISORY;
	/* a parallel worker's transaction is its leader's */
	wait->lxid = lock->pid == lock->leaderPid ? COMPAT_LOCK_LXID(lock) :
		compat_lxid(holder->proc);
	publish_blocker(wait - waits, wait->session, holder->pid);
	if (wait->holder == holder)
		return;
	wait->holder = holder;
	if (wait->in_circle)
		wait->booked = Max(wait->booked, now);
	wait->in_circle = false;
	wait->blamed_from = wait->booked;
	book_wait(wait, now);
	if (!was_unknown)
		return;
	add_time(holder, share);
	unattributed -= share;
}

static void
do_round(int64 now)
{
	MemoryContext old = MemoryContextSwitchTo(round_context);
	int64		cpu_time = clock_read(CLOCK_PROCESS_CPUTIME_ID);
	int64		share = unknown > 0 ? unattributed / unknown : 0;
	LockData   *data;
	LockGraph  *graph;
	dlist_iter	iter;

	next_round = now + RETRY_INTERVAL_NS;
	data = GetLockStatusData();
	graph = build_graph(data);
	dlist_foreach(iter, &waiting)
	{
		LockWait   *wait = dlist_container(LockWait, node, iter.cur);
		bool		in_circle;
		LockInstance *root = lock_graph_root(graph, slot_get(wait - waits)->published.pid,
											 &in_circle);

		if (in_circle)
		{
			wait->in_circle = true;
			wait->holder = NULL;
		}
		if (root == NULL)
			continue;
		if (root->holder == NULL)
			root->holder = find_holder(&data->locks[root->source]);
		if (root->holder)
			set_holder(wait, root->holder, &data->locks[root->source], share, now);
	}
	MemoryContextSwitchTo(old);
	MemoryContextReset(round_context);
	cpu_time = clock_read(CLOCK_PROCESS_CPUTIME_ID) - cpu_time;

	/*
	 * What a round costs is believed step by step: when a hypervisor takes
	 * the CPU away, that looks like CPU time.
	 */
	round_cost = Min(cpu_time, 2 * round_cost + ROUND_INTERVAL_NS / ROUND_SHARE);
	next_round = now + Max(ROUND_INTERVAL_NS, ROUND_SHARE * round_cost);
}

/* ---------------------------------------------------------------------------
 * Ticks
 * ---------------------------------------------------------------------------
 */

/* Flush all holders, and forget those for which no session waits. */
static void
flush_holders(int64 now)
{
	HASH_SEQ_STATUS scan;
	Holder	   *holder;

	blockers_begin_pass();
	hash_seq_init(&scan, holders);
	while ((holder = hash_seq_search(&scan)) != NULL)
	{
		int64		sessions = holder->looked_at == now ? holder->sessions : 0;
		SlotSampled *sampled = holder->index >= 0 && holder->blocking != 0 ?
			slot_sampled_begin(holder->index, holder->session, generation) : NULL;

		if (sampled)
		{
			sampled->blocking += holder->blocking;
			slot_sampled_end(holder->index);
		}
		flush_counters(holder, sessions);
		holder->blocking = 0;
		if (sessions == 0)
			hash_search(holders, &holder->proc, HASH_REMOVE, NULL);
	}
	next_flush = now + FLUSH_INTERVAL_NS;
}

/* Apply a reset of everything: waits count from then on. */
static void
apply_reset(void)
{
	int64		reset_at = slot_control->reset_at;
	HASH_SEQ_STATUS scan;
	Holder	   *holder;
	dlist_iter	iter;

	generation = slot_control->generation;
	unattributed = 0;
	hash_seq_init(&scan, holders);
	while ((holder = hash_seq_search(&scan)) != NULL)
	{
		memset(&holder->fresh, 0, sizeof(holder->fresh));
		holder->blocking = 0;
	}
	dlist_foreach(iter, &waiting)
	{
		LockWait   *wait = dlist_container(LockWait, node, iter.cur);

		wait->booked = Max(wait->booked, reset_at);
		wait->blamed_from = Max(wait->blamed_from, reset_at);
	}
}

/*
 * Do a tick, which began at "now", after all waiting sessions have been noted;
 * the previous one was at "before".
 */
void
lock_waits_tick(int64 now, int64 before, int64 clock_offset)
{
	dlist_mutable_iter iter;

	if (dlist_is_empty(&waiting))
		return;
	if (latest_tick < now - UNATTRIBUTED_NS)
		unattributed = 0;
	latest_tick = now;
	if (generation != slot_control->generation)
		apply_reset();
	unknown = 0;
	dlist_foreach_modify(iter, &waiting)
	{
		LockWait   *wait = dlist_container(LockWait, node, iter.cur);

		wait->listed = go_on_waiting(wait, now, before, clock_offset);
		wait->noted = false;
		if (wait->listed)
			continue;
		end_wait(wait, before);
		dlist_delete(&wait->node);
	}
	if (!dlist_is_empty(&waiting) && now >= next_round)
		do_round(now);
	if (now >= next_flush || dlist_is_empty(&waiting))
		flush_holders(now);
}
