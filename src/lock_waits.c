/*-------------------------------------------------------------------------
 *
 * lock_waits.c
 *	  See lock_waits.h.
 *
 * What is known of the waits is in shared memory, protected by the blockers
 * lock, because readers bring it up to date as well.  Nothing in there is
 * believed without looking at the backend again: while PGPROC says that it
 * waits, and since the same moment, all of the time in between was waited.
 * When it does not, the wait ended at some time after the last look; it is
 * counted up to there.
 *
 * Finding a holder takes all of the lock manager's partition locks (core's
 * GetBlockerStatusData(), as in pg_blocking_pids()), so only the sampler does
 * that, and seldom: in rounds, each of which answers for all waits.  One
 * question answers for all who wait for the same lock.  Between rounds a holder
 * is one as long as its transaction lasts.  If that ends while others go on
 * waiting, the next round finds out whom for, and who that is cannot have held
 * them up before its transaction began, or its own wait ended: for what is
 * before that, if it is after the end of the former holder, nobody is blamed.
 *
 * The split.  Each wait keeps what the holder's account was when something was
 * booked last (at first: when the wait began, as far back as the holder's
 * account can tell), so that all of it is the difference of two observations.
 * What the holder has pending is not split yet; it is told apart when it is
 * attributed, if the wait has not ended by then.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <netinet/in.h>

#include "access/twophase.h"
#include "compat.h"
#include "lock_waits.h"
#include "locks.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "session_slot.h"
#include "storage/lock.h"
#include "storage/procarray.h"
#include "storage/shmem.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/* A holder is looked for again after so long, ... */
#define HOLDER_VALID_NS			NS_PER_S

/* ... and where it is not known, as often as this, ... */
#define ROUND_INTERVAL_NS		(250 * NS_PER_MS)

/* ... but for no more than this part of the time. */
#define ROUND_SHARE				1000

/* Questions to the lock manager in a round, and how long a chain may be. */
#define ROUND_QUESTIONS			64
#define CHAIN_MAX				256

/* What a holder did, of LedgerTotals: idle is its client's, too. */
typedef struct HolderParts
{
	int64		exec;
	int64		send;
	int64		recv;
	int64		network;
	int64		client;
} HolderParts;

/* A session's wait for a lock: the one in progress, or else the last one. */
typedef struct LockWait
{
	bool		waits;
	uint64		session;
	int			pid;
	PGPROC	   *proc;
	TimestampTz started;		/* as in PGPROC, which tells it from others */
	int64		began;			/* the same, monotonic */
	int64		counted;		/* up to here, in the session's own account */

	/* whom for: */
	bool		held;			/* by this one, as far as is known */
	int64		looked;			/* when the lock manager was asked */
	int64		booked;			/* up to here, on whoever it was */
	LockHolder	holder;			/* with the key under which it was booked last */
	PGPROC	   *holder_proc;	/* NULL: a prepared transaction */
	LocalTransactionId holder_lxid;
	int64		on_key;			/* so much is booked under that key ... */
	int64		unsplit;		/* ... of which so much is not told apart */
	uint32		generation;		/* of resets, of the following */
	HolderParts before;			/* the holder's account, as of then */
} LockWait;

/* protected by the blockers lock */
typedef struct LockWaitsShared
{
	int			count;			/* how many wait, ... */
	int		   *slots;			/* ... and which */
	LockWait   *waits;			/* one for each slot */
} LockWaitsShared;

static LockWaitsShared *shared = NULL;

/* Of the sampler alone: whom it has seen waiting in this tick. */
static int *noted = NULL;
static int	noted_count = 0;

/* Work space for the holder of the lock: a holder as just observed. */
typedef struct HolderView
{
	uint64		session;		/* 0: none */
	bool		found;
	SlotObservation observation;
	HolderParts parts;
	BlockerKey	key;
} HolderView;

static HolderView view;

Size
lock_waits_shmem_size(void)
{
	Size		size = MAXALIGN(sizeof(LockWaitsShared));

	size = add_size(size, MAXALIGN(mul_size(slot_count(), sizeof(int))));
	return add_size(size, mul_size(slot_count(), sizeof(LockWait)));
}

void
lock_waits_shmem_init(void)
{
	bool		found;
	char	   *base = ShmemInitStruct("pgnetlat lock waits", lock_waits_shmem_size(),
									   &found);

	shared = (LockWaitsShared *) base;
	if (found)
		return;
	memset(base, 0, lock_waits_shmem_size());
	base += MAXALIGN(sizeof(LockWaitsShared));
	shared->slots = (int *) base;
	base += MAXALIGN(slot_count() * sizeof(int));
	shared->waits = (LockWait *) base;
}

/* ---------------------------------------------------------------------------
 * Who waits
 * ---------------------------------------------------------------------------
 */

/* Does the wait go on?  Where it does, it has since it was looked at last. */
static bool
still_waits(const LockWait *wait)
{
	volatile PGPROC *proc = wait->proc;

	return slot_get((int) (wait - shared->waits))->published.session == wait->session &&
		proc->pid == wait->pid && proc->waitLock != NULL &&
		(TimestampTz) pg_atomic_read_u64(&wait->proc->waitStart) == wait->started;
}

/*
 * A session was seen waiting: since when?  False if it does not wait any more.
 * That it was before its exchange began, or is later than now, only the wall
 * clock believes.
 */
static bool
look_at_backend(int slot, int64 now, LockWait *fresh)
{
	SessionSlot *session = slot_get(slot);
	SlotPublished *published = &session->published;
	uint32		changecount = seqlock_read_begin(&session->lock);
	int64		since = published->ledger.since;
	int64		offset = published->clock_offset;

	memset(fresh, 0, sizeof(*fresh));
	fresh->session = published->session;
	fresh->pid = published->pid;
	fresh->proc = published->proc;
	if (!seqlock_read_valid(&session->lock, changecount) || fresh->session == 0 ||
		((volatile PGPROC *) fresh->proc)->waitLock == NULL)
		return false;
	fresh->started = (TimestampTz) pg_atomic_read_u64(&fresh->proc->waitStart);
	if (fresh->started == 0)
		return false;
	fresh->began = clock_from_timestamp(offset, fresh->started);
	fresh->began = Min(Max(fresh->began, since), now);
	fresh->counted = fresh->booked = fresh->began;
	fresh->waits = true;
	return true;
}

static void
begin_wait(int slot, int64 now)
{
	LockWait   *wait = &shared->waits[slot];
	LockWait	fresh;

	if (wait->waits || !look_at_backend(slot, now, &fresh))
		return;
	/* or has it only looked as if it had ended? */
	if (wait->session != fresh.session || wait->started != fresh.started)
		*wait = fresh;
	wait->waits = true;
	shared->slots[shared->count++] = slot;
}

/* The session's own account, and whom it waits for. */
static void
count_wait(int slot, LockWait *wait, int64 now)
{
	SlotLocks  *locks = slot_locks_begin(slot, wait->session);
	int64		from = Max(wait->counted, slot_control->reset_at);

	if (locks == NULL)
		return;
	locks->waited += Max(now - from, 0);
	locks->blocked = wait->held;
	locks->blocked_by = wait->holder.pid;
	slot_locks_end(slot);
	wait->counted = Max(wait->counted, now);
}

static void
end_wait(int slot, LockWait *wait)
{
	SlotLocks  *locks = slot_locks_begin(slot, wait->session);

	if (locks)
	{
		locks->blocked = false;
		slot_locks_end(slot);
	}
	wait->waits = wait->held = false;
}

/* ---------------------------------------------------------------------------
 * What the holder did
 * ---------------------------------------------------------------------------
 */

static HolderParts
parts_of(const LedgerTotals *totals)
{
	HolderParts parts = {
		.exec = totals->exec,
		.send = totals->send,
		.recv = totals->recv,
		.network = totals->network,
		.client = totals->client + totals->idle
	};

	return parts;
}

static void
session_key(const SlotObservation *observation, const SlotStatus *status, BlockerKey *key)
{
	const TcpEndpoints *endpoints = &observation->endpoints;

	memset(key, 0, sizeof(*key));
	key->client.datid = observation->datid;
	key->client.userid = observation->userid;
	key->client.family = endpoints->family;
	if (endpoints->family != 0)
		memcpy(key->client.address, endpoints->remote_address,
			   endpoints->family == AF_INET ? 4 : 16);
	strlcpy(key->client.application_name, status->application_name, NAMEDATALEN);
	strlcpy(key->backend_type, GetBackendTypeDesc(B_BACKEND), NAMEDATALEN);
	key->queryid = status->queryid;
}

/* Observe a holder; many waits in a row tend to have the same. */
static bool
observe_holder(const LockHolder *holder)
{
	SlotStatus	status;

	if (view.session == holder->session)
		return view.found;
	view.session = holder->session;
	view.found = slot_observe(holder->slot, &view.observation) &&
		view.observation.session == holder->session && !view.observation.closed;
	if (!view.found)
		return false;
	view.parts = parts_of(&view.observation.account.totals);
	slot_copy_status(&view.observation, &status);
	session_key(&view.observation, &status, &view.key);
	return true;
}

/* Take as much of what the holder's account has gained as there is to split. */
static int64
take(int64 *left, int64 after, int64 before)
{
	int64		part = Min(Max(after - before, 0), *left);

	*left -= part;
	return part;
}

/*
 * Split what is not told apart of a wait.  Its holder's client comes last: what
 * an idle session has pending lasts the longest, and may be of the time before.
 */
static void
split(LockWait *wait, BlockerCounters *delta)
{
	const HolderParts *after = &view.parts;
	HolderParts *before = &wait->before;

	if (wait->generation != view.observation.generation)
	{
		memset(before, 0, sizeof(*before));
		wait->generation = view.observation.generation;
	}
	delta->exec = take(&wait->unsplit, after->exec, before->exec);
	delta->send = take(&wait->unsplit, after->send, before->send);
	delta->recv = take(&wait->unsplit, after->recv, before->recv);
	delta->network = take(&wait->unsplit, after->network, before->network);
	delta->client = take(&wait->unsplit, after->client, before->client);
	*before = *after;
}

/* The key under which a session is booked: core may not know the query yet. */
static void
refresh_key(LockWait *wait)
{
	if (view.key.queryid == 0)
		view.key.queryid = wait->holder.key.queryid;
	if (memcmp(&view.key, &wait->holder.key, sizeof(BlockerKey)) == 0)
		return;
	wait->holder.key = view.key;
	wait->on_key = wait->unsplit = 0;
}

static bool
still_holds(const LockWait *wait)
{
	if (wait->holder_proc == NULL)
		return true;
	return ((volatile PGPROC *) wait->holder_proc)->pid == wait->holder.pid &&
		compat_lxid(wait->holder_proc) == wait->holder_lxid;
}

/*
 * Is somebody still holding up the wait?  If so, look at what that one has done
 * up to now, and say when that is.
 */
static bool
look_at_holder(LockWait *wait, int64 *now)
{
	wait->held = wait->held && still_holds(wait) &&
		(wait->holder.slot < 0 || observe_holder(&wait->holder));
	if (wait->held && wait->holder.slot >= 0)
		*now = view.observation.observed_at;
	return wait->held;
}

/* What was waited since the last time is the holder's. */
static void
book_wait(LockWait *wait, int64 now, TimestampTz timestamp)
{
	BlockerCounters delta = {0};
	LockHolder *holder = &wait->holder;

	delta.blocked = Max(now - Max(wait->booked, slot_control->reset_at), 0);
	if (holder->slot >= 0)
	{
		SlotLocks  *locks;

		refresh_key(wait);
		wait->unsplit += delta.blocked;
		split(wait, &delta);
		locks = slot_locks_begin(holder->slot, holder->session);
		if (locks)
		{
			locks->held_up += delta.blocked;
			slot_locks_end(holder->slot);
		}
	}
	wait->on_key += delta.blocked;
	delta.blocked_max = wait->on_key;
	blockers_add(&holder->key, &delta, timestamp);
	wait->booked = Max(wait->booked, now);
}

/*
 * Bring everything up to date.  The lock is held exclusively.
 */
static void
accumulate(void)
{
	int64		now = clock_now();
	TimestampTz timestamp = GetCurrentTimestamp();
	int			left = 0;

	blockers_begin_pass();
	view.session = 0;
	for (int i = 0; i < shared->count; i++)
	{
		int			slot = shared->slots[i];
		LockWait   *wait = &shared->waits[slot];
		int64		holder_now = now;
		bool		held = look_at_holder(wait, &holder_now);

		/* behind all looks at the clock: then it has waited up to there */
		if (!still_waits(wait))
		{
			end_wait(slot, wait);
			continue;
		}
		shared->slots[left++] = slot;
		if (held)
			book_wait(wait, holder_now, timestamp);
		count_wait(slot, wait, now);
	}
	shared->count = left;
}

/*
 * Count what is waited up to now, before it is shown.
 */
void
lock_waits_accumulate(void)
{
	if (*(volatile int *) &shared->count == 0)
		return;
	LWLockAcquire(locks_get(LOCK_BLOCKERS), LW_EXCLUSIVE);
	accumulate();
	LWLockRelease(locks_get(LOCK_BLOCKERS));
}

/*
 * Whom does a session wait for, as of when waits were accumulated last?  False
 * if for nobody, or nobody who is known.
 */
bool
lock_waits_holder(int slot, uint64 session, LockHolder *holder)
{
	LockWait   *wait = &shared->waits[slot];
	bool		held;

	if (*(volatile int *) &shared->count == 0)
		return false;
	LWLockAcquire(locks_get(LOCK_BLOCKERS), LW_SHARED);
	held = wait->waits && wait->held && wait->session == session;
	if (held)
		*holder = wait->holder;
	LWLockRelease(locks_get(LOCK_BLOCKERS));
	return held;
}

void
lock_waits_reset(void)
{
	LWLockAcquire(locks_get(LOCK_BLOCKERS), LW_EXCLUSIVE);
	blockers_forget();
	for (int i = 0; i < shared->count; i++)
	{
		LockWait   *wait = &shared->waits[shared->slots[i]];

		wait->on_key = wait->unsplit = 0;
	}
	accumulate();
	LWLockRelease(locks_get(LOCK_BLOCKERS));
}

/* ---------------------------------------------------------------------------
 * Whom for: rounds, which only the sampler makes
 * ---------------------------------------------------------------------------
 */

/* Who is behind whom, in the lock manager. */
typedef struct LockEdge
{
	int			pid;			/* must be first */
	bool		blocked;
	bool		advisory;		/* by a lock that may outlive a transaction */
	int			blocker;		/* leader of its lock group; 0: see below */
	int			vxid_backend;	/* of the prepared transaction that it is behind */
	LocalTransactionId vxid_local;
} LockEdge;

/* A wait for which a holder is looked for, and what is found. */
typedef struct LockQuestion
{
	int			slot;
	uint64		session;
	int			pid;
	TimestampTz started;
	bool		found;
	bool		advisory;
	LockHolder	holder;
	PGPROC	   *holder_proc;
	LocalTransactionId holder_lxid;
} LockQuestion;

typedef struct Round
{
	HTAB	   *edges;
	int			questions;		/* to the lock manager, so far */
	LockQuestion *waits;
	int			count;
} Round;

static MemoryContext round_context = NULL;
static int64 next_round = 0;

/* Among the locks on one object: does one hold up what another waits for? */
static bool
conflicts(const LockInstanceData *waiter, LOCKMASK mask)
{
	LockMethod	method = GetLockTagsMethodTable(&waiter->locktag);

	return (method->conflictTab[waiter->waitLockMode] & mask) != 0;
}

/*
 * Whom is one of those who wait for a lock behind?  The first in the list of
 * those who hold it in a conflicting way, who got it first; or else one who
 * waits for it in such a way, and longest.
 */
static const LockInstanceData *
find_blocker(const LockInstanceData *locks, int count, const LockInstanceData *waiter)
{
	const LockInstanceData *ahead = NULL;

	for (int i = 0; i < count; i++)
	{
		const LockInstanceData *other = &locks[i];

		if (other == waiter || (other->leaderPid == waiter->leaderPid && other->pid != 0))
			continue;
		if (conflicts(waiter, other->holdMask))
			return other;
		if (other->waitLockMode != NoLock &&
			conflicts(waiter, LOCKBIT_ON(other->waitLockMode)) &&
			other->waitStart < waiter->waitStart &&
			(ahead == NULL || other->waitStart < ahead->waitStart))
			ahead = other;
	}
	return ahead;
}

static LockEdge *
add_edge(Round *round, int pid)
{
	bool		found;
	LockEdge   *edge = hash_search(round->edges, &pid, HASH_ENTER, &found);

	if (!found)
		memset((char *) edge + sizeof(edge->pid), 0, sizeof(*edge) - sizeof(edge->pid));
	return edge;
}

static void
set_edge(LockEdge *edge, const LockInstanceData *blocker)
{
	if (blocker == NULL || edge->blocked)
		return;
	edge->blocked = true;
	edge->advisory = blocker->locktag.locktag_type == LOCKTAG_ADVISORY;
	edge->blocker = blocker->leaderPid;
	compat_lock_vxid(blocker, &edge->vxid_backend, &edge->vxid_local);
}

/*
 * Ask the lock manager about one process, and note down what that says of
 * others.  What a member of its lock group waits for, it waits for.
 */
static void
ask_lock_manager(Round *round, int pid)
{
	BlockedProcsData *data = GetBlockerStatusData(pid);

	round->questions++;
	add_edge(round, pid);
	for (int i = 0; i < data->nprocs; i++)
	{
		const BlockedProcData *proc = &data->procs[i];
		const LockInstanceData *locks = &data->locks[proc->first_lock];

		for (int j = 0; j < proc->num_locks; j++)
		{
			const LockInstanceData *waiter = &locks[j];

			if (waiter->waitLockMode != NoLock && waiter->pid != 0)
				set_edge(add_edge(round, waiter->leaderPid),
						 find_blocker(locks, proc->num_locks, waiter));
		}
	}
}

/* NULL if there have been too many questions. */
static const LockEdge *
edge_of(Round *round, int pid)
{
	const LockEdge *edge = hash_search(round->edges, &pid, HASH_FIND, NULL);

	if (edge)
		return edge;
	if (round->questions >= ROUND_QUESTIONS)
		return NULL;
	ask_lock_manager(round, pid);
	return hash_search(round->edges, &pid, HASH_FIND, NULL);
}

/*
 * From a process that waits to the root: the last edge of the chain.  NULL if it
 * does not wait any more, or nobody can tell (in a deadlock there is no root).
 */
static const LockEdge *
find_root(Round *round, int pid)
{
	const LockEdge *last = NULL;

	for (int i = 0; i < CHAIN_MAX; i++)
	{
		const LockEdge *edge = edge_of(round, pid);

		if (edge == NULL)
			return NULL;
		if (!edge->blocked)
			return last;
		last = edge;
		pid = edge->blocker;
		if (pid == 0)
			return last;
	}
	return NULL;
}

/* A prepared transaction has a PGPROC of its own, which says whose it is. */
static void
describe_prepared(const LockEdge *edge, BlockerKey *key)
{
	strlcpy(key->backend_type, "prepared transaction", NAMEDATALEN);
	for (int i = 0; i < max_prepared_xacts; i++)
	{
		const PGPROC *proc = &PreparedXactProcs[i];

		if (proc->pid == 0 && compat_proc_has_vxid(proc, edge->vxid_backend, edge->vxid_local))
		{
			key->client.datid = proc->databaseId;
			key->client.userid = proc->roleId;
		}
	}
}

/* Any process that is not a session of ours, by what core's status says. */
static void
describe_process(int pid, BlockerKey *key)
{
	int			count = pgstat_fetch_stat_numbackends();

	strlcpy(key->backend_type, "unknown", NAMEDATALEN);
	for (int i = 0; i < count; i++)
	{
		const PgBackendStatus *status = compat_local_beentry(i);
		const char *type = NULL;

		if (status == NULL || status->st_procpid != pid)
			continue;
		if (status->st_backendType == B_BG_WORKER)
			type = GetBackgroundWorkerTypeByPid(pid);
		if (type == NULL)
			type = GetBackendTypeDesc(status->st_backendType);
		strlcpy(key->backend_type, type, NAMEDATALEN);
		key->client.datid = status->st_databaseid;
		key->client.userid = status->st_userid;
		clients_set_address(&key->client, &status->st_clientaddr.addr);
		if (status->st_appname)
			strlcpy(key->client.application_name, status->st_appname, NAMEDATALEN);
		break;
	}
	pgstat_clear_backend_activity_snapshot();
}

static void
describe_holder(LockQuestion *wait, const LockEdge *edge)
{
	LockHolder *holder = &wait->holder;

	memset(holder, 0, sizeof(*holder));
	wait->advisory = edge->advisory;
	holder->pid = edge->blocker;
	holder->slot = -1;
	wait->holder_proc = NULL;
	if (holder->pid == 0)
	{
		describe_prepared(edge, &holder->key);
		return;
	}
	holder->slot = slot_find_pid(holder->pid);
	if (holder->slot >= 0)
	{
		holder->session = slot_get(holder->slot)->published.session;
		wait->holder_proc = slot_get(holder->slot)->published.proc;
	}
	else
	{
		describe_process(holder->pid, &holder->key);
		wait->holder_proc = BackendPidGetProc(holder->pid);
		if (wait->holder_proc == NULL)
			wait->holder_proc = AuxiliaryPidGetProc(holder->pid);
	}
	wait->found = wait->holder_proc != NULL;
	if (wait->found)
		wait->holder_lxid = compat_lxid(wait->holder_proc);
}

static void
find_holders(Round *round)
{
	const LockQuestion *previous = NULL;

	for (int i = 0; i < round->count; i++)
	{
		LockQuestion *wait = &round->waits[i];
		const LockEdge *edge = find_root(round, wait->pid);

		if (edge == NULL)
			continue;
		wait->found = true;
		if (previous && previous->holder.pid == edge->blocker && edge->blocker != 0)
		{
			wait->found = previous->found;
			wait->advisory = edge->advisory;
			wait->holder = previous->holder;
			wait->holder_proc = previous->holder_proc;
			wait->holder_lxid = previous->holder_lxid;
		}
		else
			describe_holder(wait, edge);
		previous = wait;
	}
}

/*
 * Since when may a holder have held up others?  Since it has been in this
 * transaction, unless its lock is one that may be older; and not while it
 * waited itself.
 */
static int64
holder_since(const LockQuestion *found, const SlotObservation *observation,
			 const SlotStatus *status)
{
	const LockWait *own = &shared->waits[found->holder.slot];
	int64		since = 0;

	if (!found->advisory && status->xact_start != 0)
		since = clock_from_timestamp(observation->clock_offset, status->xact_start);
	if (own->session == found->holder.session)
		since = Max(since, own->counted);
	return since;
}

/* Another holder than before. */
static void
change_holder(LockWait *wait, const LockQuestion *found)
{
	wait->holder = found->holder;
	wait->on_key = wait->unsplit = 0;
	if (found->holder.slot >= 0)
	{
		SlotObservation observation;
		SlotStatus	status;
		LedgerTotals then;

		if (!slot_observe(found->holder.slot, &observation) ||
			observation.session != found->holder.session)
			return;
		slot_copy_status(&observation, &status);
		wait->booked = Max(wait->booked, holder_since(found, &observation, &status));
		if (!slot_observe_since(found->holder.slot, wait->booked, &observation, &then) ||
			observation.session != found->holder.session)
			return;
		wait->generation = observation.generation;
		wait->before = parts_of(&then);
		session_key(&observation, &status, &wait->holder.key);
	}
	wait->held = true;
}

/* The answer to a question, unless the wait has ended since it was asked. */
static void
set_holder(const LockQuestion *found, int64 now)
{
	LockWait   *wait = &shared->waits[found->slot];
	bool		same = wait->holder.pid == found->holder.pid &&
		wait->holder.session == found->holder.session &&
		wait->holder_proc == found->holder_proc && wait->looked != 0 &&
		(found->advisory || wait->holder_lxid == found->holder_lxid);

	if (!wait->waits || wait->session != found->session || wait->started != found->started)
		return;
	wait->looked = now;
	wait->holder_proc = found->holder_proc;
	wait->holder_lxid = found->holder_lxid;
	if (same)
		wait->held = true;
	else
		change_holder(wait, found);
}

/* The waits for which a holder is to be found, if there are such. */
static void
collect_questions(Round *round, int64 now)
{
	LWLockAcquire(locks_get(LOCK_BLOCKERS), LW_SHARED);
	for (int i = 0; i < shared->count; i++)
	{
		int			slot = shared->slots[i];
		const LockWait *wait = &shared->waits[slot];
		LockQuestion *question = &round->waits[round->count];

		if (now - wait->began < LOCK_WAIT_BLAMED_NS)
			continue;
		question->slot = slot;
		question->session = wait->session;
		question->pid = wait->pid;
		question->started = wait->started;
		question->found = false;
		round->count++;
	}
	LWLockRelease(locks_get(LOCK_BLOCKERS));
}

static void
make_round(int64 now)
{
	Round		round = {0};
	HASHCTL		info;
	MemoryContext old;

	if (round_context == NULL)
		round_context = AllocSetContextCreate(TopMemoryContext, "pgnetlat lock waits",
											  ALLOCSET_DEFAULT_SIZES);
	MemoryContextReset(round_context);
	old = MemoryContextSwitchTo(round_context);
	memset(&info, 0, sizeof(info));
	info.keysize = sizeof(int);
	info.entrysize = sizeof(LockEdge);
	info.hcxt = round_context;
	round.edges = hash_create("pgnetlat lock waits", 64, &info,
							  HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	round.waits = palloc(slot_count() * sizeof(LockQuestion));
	collect_questions(&round, now);
	find_holders(&round);

	LWLockAcquire(locks_get(LOCK_BLOCKERS), LW_EXCLUSIVE);
	for (int i = 0; i < round.count; i++)
	{
		if (round.waits[i].found)
			set_holder(&round.waits[i], now);
	}
	accumulate();
	LWLockRelease(locks_get(LOCK_BLOCKERS));
	MemoryContextSwitchTo(old);
	MemoryContextReset(round_context);
}

/* Is there a wait that has been in progress for long and has no fresh holder? */
static bool
round_is_needed(int64 now)
{
	for (int i = 0; i < shared->count; i++)
	{
		const LockWait *wait = &shared->waits[shared->slots[i]];

		if (now - wait->began >= LOCK_WAIT_BLAMED_NS &&
			(!wait->held || now - wait->looked >= HOLDER_VALID_NS))
			return true;
	}
	return false;
}

/*
 * The session in a slot has just been seen waiting for a lock.
 */
void
lock_waits_note(int slot)
{
	if (noted == NULL)
		noted = MemoryContextAlloc(TopMemoryContext, slot_count() * sizeof(int));
	if (noted_count < slot_count())
		noted[noted_count++] = slot;
}

/*
 * All sessions that wait have been noted.
 */
void
lock_waits_tick(void)
{
	int64		now;
	bool		needed;

	if (noted_count == 0 && *(volatile int *) &shared->count == 0)
		return;
	LWLockAcquire(locks_get(LOCK_BLOCKERS), LW_EXCLUSIVE);
	now = clock_now();
	for (int i = 0; i < noted_count; i++)
		begin_wait(noted[i], now);
	noted_count = 0;
	accumulate();
	needed = now >= next_round && round_is_needed(now);
	LWLockRelease(locks_get(LOCK_BLOCKERS));
	if (!needed)
		return;

	next_round = now + ROUND_INTERVAL_NS;
	make_round(now);
	next_round = Max(next_round, now + ROUND_SHARE * (clock_now() - now));
}
