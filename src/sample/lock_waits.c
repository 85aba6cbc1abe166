/*-------------------------------------------------------------------------
 *
 * lock_waits.c
 *	  See lock_waits.h.
 *
 * What is known of the waits is in shared memory, protected by a lock, because
 * readers bring it up to date as well.  Nothing in there is believed without
 * looking at the backend again: as long as PGPROC says that it is waiting, and
 * since the same moment, it has waited all the time in between.  Otherwise the
 * wait ended at some time after the last look; it is counted up to that look.
 *
 * Finding a holder takes all of the lock manager's partition locks (core's
 * GetBlockerStatusData(), as in pg_blocking_pids()), so only the sampler does
 * that, and seldom: in rounds, each of which covers all waits.  One question
 * is enough for all sessions that wait for the same lock.  Between rounds a
 * holder remains one as long as its transaction lasts.  If that ends while
 * others go on waiting, the next round finds the new holder, which cannot have
 * held them up before its transaction began or its own wait ended: for the
 * time between the end of the former holder and that moment, nobody is blamed.
 *
 * Most often nothing changes from one tick to the next: the same sessions wait,
 * and their holders have not moved.  Then the sampler only notes that it has seen
 * this (seen_at), and whoever goes through the waits the next time, which is no
 * later than PASS_INTERVAL_NS, first books up to there what was known of the
 * holders when that was done before.  This comes to the same as booking at each
 * tick.
 *
 * The split.  Each wait keeps the holder's account as of when something was
 * last booked (at first: when the wait began, as far back as the holder's
 * account can tell), so that all of it is the difference of two observations.
 * What the holder has pending is not split yet; it is split when it is
 * attributed, if the wait has not ended by then.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/socket.h>

#include "compat.h"
#include "lock_waits.h"
#include "locks.h"
#include "miscadmin.h"
#include "prefetch.h"
#include "session_slot.h"
#include "storage/shmem.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/* A holder is looked for again after so long, ... */
#define HOLDER_VALID_NS			NS_PER_S

/* ... and where it is not known, as often as this, ... */
#define ROUND_INTERVAL_NS		(250 * NS_PER_MS)

/* ... but for no more than this part of the time. */
#define ROUND_SHARE				1000

/* So many waits ahead memory is asked for. */
#define PREFETCH_AHEAD			4

/* What a holder does: as in BlockerCounters. */
typedef enum HolderPart
{
	HOLDER_EXEC,
	HOLDER_SEND,
	HOLDER_RECV,
	HOLDER_NETWORK,
	HOLDER_CLIENT,
	NUM_HOLDER_PARTS,
	HOLDER_UNKNOWN = NUM_HOLDER_PARTS	/* cannot be told yet */
} HolderPart;

/* What it did, of LedgerTotals: idle is its client's, too. */
typedef struct HolderParts
{
	int64		time[NUM_HOLDER_PARTS];
} HolderParts;

StaticAssertDecl((int) NUM_HOLDER_PARTS == (int) BLOCKER_PARTS,
				 "a holder's parts are those of what was waited for it");

/*
 * A session's wait for a lock: the one in progress, or else the last one.  There
 * is one for each possible session: keep it small.
 */
typedef struct LockWait
{
	uint64		session;
	PGPROC	   *proc;			/* of the session */
	TimestampTz started;		/* as in PGPROC, which tells it from others */
	int64		began;			/* the same, monotonic */
	bool		waits;
	bool		held;			/* by a holder, as far as is known */
	bool		is_told;		/* the session's slot ... */
	int16		other;			/* the holder's place, if it is no session; or
								 * -1 */
	int16		known;			/* the holder's place among those known; or -1 */
	int			told;			/* ... by whom it is blocked, ... */
	uint32		told_generation;	/* ... in this generation of resets */

	/* the holder: */
	int			holder_slot;	/* if it is a session */
	int			holder_pid;		/* 0: a prepared transaction */
	LocalTransactionId holder_lxid;
	uint64		holder_session;
	PGPROC	   *holder_proc;	/* NULL: a prepared transaction */
	int64		looked;			/* when the lock manager was asked; 0: never */
	int64		booked;			/* up to here, on whoever it was; or when it
								 * ended */

	/* what is booked on a session under one key: */
	uint64		queryid;
	uint32		key_hash;		/* with the queryid, enough to tell it from
								 * others */
	uint32		generation;		/* of resets, of what follows */
	int64		on_key;			/* so much is booked ... */
	int64		unsplit;		/* ... of which so much is not told apart */
	HolderParts before;			/* the holder's account, as of then */
} LockWait;

/* Holders that are no sessions: the key is kept, as nothing else tells it. */
#define OTHER_HOLDERS	64

typedef struct OtherHolder
{
	int			waits;			/* that refer to it, also if they have ended */
	BlockerKey	key;
} OtherHolder;

/* If there are more holders than that, they are looked at in each tick. */
#define KNOWN_HOLDERS	64

/* A holder as of when the waits were gone through. */
typedef struct KnownHolder
{
	int			pid;
	LocalTransactionId lxid;
	PGPROC	   *proc;			/* NULL: a prepared transaction */
	int			other;			/* its place, if it is no session; or -1 */

	/* what follows is of a session */
	uint64		session;
	int			slot;
	uint32		changecount;	/* of what it had published, ... */
	PgBackendStatus *status;
	int			status_changecount; /* ... and of its status in core */
	LedgerBlocked blocked;
	HolderPart	doing;
	BlockerKey	key;
} KnownHolder;

/* protected by its lock */
typedef struct LockWaitsShared
{
	int64		seen_at;		/* at this moment all of those who wait did
								 * so, and their holders were as known;
								 * written by the sampler, with the lock
								 * shared */
	bool		all_known;		/* each of them has a holder that is known */
	int			known_count;
	KnownHolder known[KNOWN_HOLDERS];
	OtherHolder others[OTHER_HOLDERS];
	int			count;			/* how many wait, ... */
	int		   *slots;			/* ... and which */
	LockWait   *waits;			/* one for each slot */
} LockWaitsShared;

static LockWaitsShared *shared = NULL;

/*
 * Of the sampler alone: whom it has seen waiting in this tick, and how many of
 * those who go on waiting; for each slot, since when the wait lasts that is among
 * those gone through, as in PGPROC.
 */
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
	uint32		hash;			/* of the key */
	int			known;			/* its place among those known; or -1 */
} HolderView;

static HolderView view;

/* ... and what is booked on it, of waits one behind the other. */
typedef struct Batch
{
	int64		waits;
	BlockerKey	key;
	uint32		hash;
	BlockerDelta delta;			/* summed up */
	int			other;			/* the holder's place, if it is no session; or
								 * -1 */
	int			slot;
	uint64		session;
} Batch;

static Batch batch;

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
	for (int i = 0; i < slot_count(); i++)
		shared->waits[i].other = shared->waits[i].known = -1;
}

/* ---------------------------------------------------------------------------
 * Who waits
 * ---------------------------------------------------------------------------
 */

/* Does the wait go on?  Where it does, it has since it was looked at last. */
static bool
still_waits(int slot, const LockWait *wait)
{
	return slot_get(slot)->published.session == wait->session &&
		((volatile PGPROC *) wait->proc)->waitLock != NULL &&
		(TimestampTz) pg_atomic_read_u64(&wait->proc->waitStart) == wait->started;
}

/* A wait forgets its holder. */
static void
leave_holder(LockWait *wait)
{
	if (wait->other >= 0)
		shared->others[wait->other].waits--;
	wait->other = wait->known = -1;
	wait->held = false;
	wait->looked = 0;
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
	PGPROC	   *proc = published->proc;

	memset(fresh, 0, sizeof(*fresh));
	fresh->session = published->session;
	fresh->proc = proc;
	if (!seqlock_read_valid(&session->lock, changecount) || fresh->session == 0 ||
		((volatile PGPROC *) proc)->waitLock == NULL)
		return false;
	fresh->started = (TimestampTz) pg_atomic_read_u64(&proc->waitStart);
	if (fresh->started == 0)
		return false;
	fresh->began = clock_from_timestamp(offset, fresh->started);
	fresh->began = Min(Max(fresh->began, since), now);
	fresh->booked = fresh->began;
	fresh->other = fresh->known = -1;
	return true;
}

static void
begin_wait(int slot, int64 now)
{
	LockWait   *wait = &shared->waits[slot];
	LockWait	fresh;

	if (!wait->waits)
	{
		if (!look_at_backend(slot, now, &fresh))
			return;
		/* or has it only looked as if it had ended? */
		if (wait->session != fresh.session || wait->started != fresh.started)
		{
			leave_holder(wait);
			*wait = fresh;
		}
		wait->waits = true;
		shared->slots[shared->count++] = slot;
		shared->all_known = false;
	}
}

/* The session's slot says whom it waits for; most often it does already. */
static void
tell_session(int slot, LockWait *wait)
{
	int			blocked_by = wait->held ? wait->holder_pid : SLOT_NOT_BLOCKED;
	uint32		generation = slot_generation();
	SlotSampled *sampled;

	if (wait->is_told && wait->told == blocked_by && wait->told_generation == generation)
		return;
	sampled = slot_sampled_begin(slot, wait->session, generation);
	if (sampled == NULL)
		return;
	sampled->blocked_by = blocked_by;
	slot_sampled_end(slot);
	wait->is_told = true;
	wait->told = blocked_by;
	wait->told_generation = generation;
}

/*
 * It waits no more.  Since the latest look at it, that is; but before now it is
 * not to be blamed for what others wait.
 */
static void
end_wait(int slot, LockWait *wait, int64 now)
{
	wait->waits = wait->held = false;
	wait->booked = Max(wait->booked, now);
	tell_session(slot, wait);
}

/* ---------------------------------------------------------------------------
 * What the holder did
 * ---------------------------------------------------------------------------
 */

static HolderParts
parts_of(const LedgerTotals *totals)
{
	HolderParts parts = {{
			[HOLDER_EXEC] = totals->exec,
			[HOLDER_SEND] = totals->send,
			[HOLDER_RECV] = totals->recv,
			[HOLDER_NETWORK] = totals->network,
			[HOLDER_CLIENT] = totals->client + totals->idle
	}};

	return parts;
}

/* To which part goes all that passes until the holder does something else? */
static HolderPart
part_in_progress(const SlotObservation *holder)
{
	switch (holder->account.state)
	{
		case LEDGER_STATE_EXECUTING:
			return HOLDER_EXEC;
		case LEDGER_STATE_SENDING:
			return holder->account.pending == 0 ? HOLDER_SEND : HOLDER_UNKNOWN;
		case LEDGER_STATE_RECEIVING:
			return HOLDER_RECV;
		case LEDGER_STATE_WAITING_IN_XACT:
			/* the round trip of the wait comes first */
			return holder->account.pending == 0 &&
				holder->observed_at - holder->account.state_since > holder->tcp.rtt + NS_PER_MS ?
				HOLDER_CLIENT : HOLDER_UNKNOWN;
		case LEDGER_STATE_IDLE:
			return HOLDER_CLIENT;
		default:
			return HOLDER_UNKNOWN;
	}
}

static void
session_key(const SlotObservation *observation, const SlotStatus *status, BlockerKey *key)
{
	memset(key, 0, sizeof(*key));
	clients_set_connection(&key->client, &observation->endpoints);
	key->client.datid = observation->datid;
	key->client.userid = observation->userid;
	clients_set_name(&key->client, status->application_name, NULL, NULL);
	strlcpy(key->backend_type, GetBackendTypeDesc(B_BACKEND), NAMEDATALEN);
	key->queryid = status->queryid;
}

/* Book what has been collected. */
static void
book_batch(void)
{
	SlotSampled *sampled;

	if (batch.waits == 0)
		return;
	blockers_add(&batch.key, batch.hash, &batch.delta, GetCurrentTimestamp());
	batch.waits = 0;
	if (batch.other >= 0)
		return;
	sampled = slot_sampled_begin(batch.slot, batch.session, slot_generation());
	if (sampled == NULL)
		return;
	sampled->held_up += batch.delta.counters.blocked;
	slot_sampled_end(batch.slot);
}

/* One wait more, of which "new" is new, and now under this key. */
static void
add_to_batch(LockWait *wait, const BlockerKey *key, BlockerCounters *new, bool in_progress)
{
	if (batch.waits > 0 &&
		(batch.other != wait->other || batch.hash != wait->key_hash ||
		 (batch.other < 0 && batch.session != wait->holder_session)))
		book_batch();
	if (batch.waits++ == 0)
	{
		batch.key = *key;
		batch.hash = wait->key_hash;
		batch.other = wait->other;
		batch.slot = wait->holder_slot;
		batch.session = wait->holder_session;
		memset(&batch.delta, 0, sizeof(batch.delta));
	}
	batch.delta.in_progress += in_progress;
	batch.delta.begun += wait->on_key == 0 && new->blocked > 0;
	wait->on_key += new->blocked;
	new->blocked_max = wait->on_key;
	blockers_sum(&batch.delta.counters, new);
}

/* A place for one more holder that is known; NULL if there is none. */
static KnownHolder *
add_known(const LockWait *wait)
{
	KnownHolder *known;

	if (shared->known_count == KNOWN_HOLDERS)
		return NULL;
	known = &shared->known[shared->known_count++];
	memset(known, 0, sizeof(*known));
	known->pid = wait->holder_pid;
	known->lxid = wait->holder_lxid;
	known->proc = wait->holder_proc;
	known->other = wait->other;
	return known;
}

/* The place of the latest one; -1 if there was none left for it. */
static int
place_of_known(const KnownHolder *known)
{
	return known ? known - shared->known : -1;
}

/*
 * Observe a holder; many waits in a row have the same.  Core may not know its
 * query yet: then it is booked under the one before.
 */
static bool
observe_holder(const LockWait *wait)
{
	SlotStatus	status;
	KnownHolder *known;
	uint32		changecount;

	if (view.session == wait->holder_session)
		return view.found;
	book_batch();
	view.session = wait->holder_session;
	/* before anything else is: what changes later has changed */
	changecount = seqlock_read_begin(&slot_get(wait->holder_slot)->lock);
	view.found = slot_observe(wait->holder_slot, &view.observation) &&
		view.observation.session == wait->holder_session && !view.observation.closed;
	if (!view.found)
		return false;
	known = add_known(wait);
	if (known)
		known->status_changecount = view.observation.status->st_changecount;
	pg_read_barrier();
	view.parts = parts_of(&view.observation.account.totals);
	slot_copy_status(&view.observation, &status);
	session_key(&view.observation, &status, &view.key);
	if (view.key.queryid == 0)
		view.key.queryid = wait->queryid;
	view.hash = blockers_hash(&view.key);
	view.known = place_of_known(known);
	if (known)
	{
		known->session = wait->holder_session;
		known->slot = wait->holder_slot;
		known->changecount = changecount;
		known->status = view.observation.status;
		known->blocked = slot_blocked_in(view.observation.wait_event);
		known->doing = part_in_progress(&view.observation);
		known->key = view.key;
	}
	return true;
}

/* The same for one that is no session: there is nothing to be observed. */
static int
note_other_holder(const LockWait *wait)
{
	int			latest = shared->known_count - 1;

	if (latest >= 0 && shared->known[latest].other == wait->other)
		return latest;
	return place_of_known(add_known(wait));
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
	const int64 *after = view.parts.time;
	int64	   *before = wait->before.time;
	int64	   *gain = &delta->exec;

	if (wait->generation != view.observation.generation)
	{
		memset(&wait->before, 0, sizeof(wait->before));
		wait->generation = view.observation.generation;
	}
	for (int i = 0; i < NUM_HOLDER_PARTS; i++)
		gain[i] = take(&wait->unsplit, after[i], before[i]);
	wait->before = view.parts;
}

/* The key under which a session is booked may be another one than before. */
static void
refresh_key(LockWait *wait)
{
	if (view.key.queryid == wait->queryid && view.hash == wait->key_hash)
		return;
	wait->queryid = view.key.queryid;
	wait->key_hash = view.hash;
	wait->on_key = wait->unsplit = 0;
}

static bool
still_holds(PGPROC *proc, int pid, LocalTransactionId lxid)
{
	if (proc == NULL)
		return true;
	return ((volatile PGPROC *) proc)->pid == pid && compat_lxid(proc) == lxid;
}

/*
 * Is somebody still holding up the wait?  If so, look at what that one has done
 * up to now, and say when that is.
 */
static bool
look_at_holder(LockWait *wait, int64 *now)
{
	wait->known = -1;
	wait->held = wait->held &&
		still_holds(wait->holder_proc, wait->holder_pid, wait->holder_lxid) &&
		(wait->other >= 0 || observe_holder(wait));
	if (!wait->held)
		return false;
	wait->known = wait->other >= 0 ? note_other_holder(wait) : view.known;
	if (wait->other < 0)
		*now = view.observation.observed_at;
	return true;
}

/* What is not booked of a wait begins then. */
static int64
counted_from(const LockWait *wait)
{
	int64		reset_at = slot_control->reset_at;

	return Max(wait->booked, reset_at);
}

/* What was waited since the last time is the holder's. */
static void
book_wait(LockWait *wait, int64 now)
{
	BlockerCounters delta = {0};
	const BlockerKey *key = &view.key;
	int64		time = now - counted_from(wait);

	delta.blocked = Max(time, 0);
	if (wait->other < 0)
	{
		refresh_key(wait);
		wait->unsplit += delta.blocked;
		split(wait, &delta);
	}
	else
		key = &shared->others[wait->other].key;
	add_to_batch(wait, key, &delta, true);
	wait->booked = Max(wait->booked, now);
}

/* What was waited up to then, when the holder was doing what is known. */
static void
book_known(LockWait *wait, int64 until)
{
	const KnownHolder *known = &shared->known[wait->known];
	BlockerCounters delta = {0};
	int64		time = until - counted_from(wait);

	if (time <= 0)
		return;
	delta.blocked = time;
	if (known->other < 0 && known->doing != HOLDER_UNKNOWN)
	{
		(&delta.exec)[known->doing] = time;
		wait->before.time[known->doing] += time;
	}
	else if (known->other < 0)
		wait->unsplit += time;
	add_to_batch(wait, known->other < 0 ? &known->key : &shared->others[known->other].key,
				 &delta, false);
	wait->booked = until;
}

/* Most of a pass would be spent waiting for memory. */
static void
prefetch_wait(int place)
{
	if (place < shared->count)
		prefetch_to_write(&shared->waits[shared->slots[place]], sizeof(LockWait));
}

/*
 * Bring everything up to date.  The lock is held exclusively.
 */
static void
accumulate(void)
{
	int64		now = clock_now();
	int			left = 0;

	batch.waits = 0;
	for (int i = 0; i < shared->count; i++)
	{
		LockWait   *wait = &shared->waits[shared->slots[i]];

		prefetch_wait(i + PREFETCH_AHEAD);
		if (wait->held && wait->known >= 0)
			book_known(wait, shared->seen_at);
	}
	book_batch();

	blockers_begin_pass();
	view.session = 0;
	shared->known_count = 0;
	shared->all_known = true;
	for (int i = 0; i < shared->count; i++)
	{
		int			slot = shared->slots[i];
		LockWait   *wait = &shared->waits[slot];
		int64		holder_now = now;
		bool		held;

		prefetch_wait(i + PREFETCH_AHEAD);
		held = look_at_holder(wait, &holder_now);
		/* behind all looks at the clock: then it has waited up to there */
		if (!still_waits(slot, wait))
		{
			end_wait(slot, wait, now);
			continue;
		}
		shared->slots[left++] = slot;
		if (held)
			book_wait(wait, holder_now);
		shared->all_known = shared->all_known && wait->known >= 0;
		tell_session(slot, wait);
	}
	shared->count = left;
	book_batch();
}

/*
 * A palloc'd copy of all blockers.  Nobody goes through the waits
 * while it is made: so all who wait are in it.
 */
BlockerEntry *
lock_waits_copy_blockers(int *count)
{
	BlockersCopy copy = {0};
	bool		complete;

	do
	{
		/* nothing allocates while the lock is held, nor waits for a reset */
		blockers_prepare_copy(&copy);
		locks_acquire(LOCK_LOCK_WAITS, 0, LW_SHARED);
		complete = blockers_copy_prepared(&copy);
		locks_release(LOCK_LOCK_WAITS, 0);
	} while (!complete);
	return blockers_finish_copy(&copy, count);
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
	locks_acquire(LOCK_LOCK_WAITS, 0, LW_SHARED);
	held = wait->waits && wait->held && wait->session == session;
	if (held)
	{
		memset(holder, 0, sizeof(*holder));
		holder->pid = wait->holder_pid;
		holder->slot = wait->holder_slot;
		holder->session = wait->holder_session;
		if (wait->other >= 0)
			holder->key = shared->others[wait->other].key;
	}
	locks_release(LOCK_LOCK_WAITS, 0);
	return held;
}

void
lock_waits_reset(void)
{
	locks_acquire(LOCK_LOCK_WAITS, 0, LW_EXCLUSIVE);
	blockers_reset();
	for (int i = 0; i < shared->count; i++)
	{
		LockWait   *wait = &shared->waits[shared->slots[i]];

		wait->on_key = wait->unsplit = 0;
	}
	locks_release(LOCK_LOCK_WAITS, 0);
}

/* ---------------------------------------------------------------------------
 * Whom for: rounds, which only the sampler makes
 * ---------------------------------------------------------------------------
 */

/* A wait for which a holder is looked for, and what is found. */
typedef struct LockQuestion
{
	int			slot;
	uint64		session;
	int			pid;
	TimestampTz started;
	bool		found;
	LockRoot	root;
} LockQuestion;

static MemoryContext round_context = NULL;
static int64 next_round = 0;

/*
 * Since when may a holder have held up others?  Since it has been in this
 * transaction, unless its lock is one that may be older; and not while it
 * waited itself.
 */
static int64
holder_since(const LockQuestion *found, const SlotObservation *observation,
			 const SlotStatus *status)
{
	const LockWait *own = &shared->waits[found->root.holder.slot];
	int64		since = 0;

	if (!found->root.advisory && status->xact_start != 0)
		since = clock_from_timestamp(observation->clock_offset, status->xact_start);
	if (own->session == found->root.holder.session)
		since = Max(since, own->booked);
	return since;
}

/* The place of a holder that is no session, or a free one; -1 if there is none. */
static int
find_place_of_other(const BlockerKey *key)
{
	int			place = -1;

	for (int i = 0; i < OTHER_HOLDERS; i++)
	{
		const OtherHolder *other = &shared->others[i];

		if (other->waits > 0 && memcmp(&other->key, key, sizeof(*key)) == 0)
			return i;
		if (other->waits == 0 && place < 0)
			place = i;
	}
	return place;
}

/* Waits that have ended refer to their holders no more, to free the places. */
static void
forget_holders_of_ended(void)
{
	for (int i = 0; i < slot_count(); i++)
	{
		if (!shared->waits[i].waits)
			leave_holder(&shared->waits[i]);
	}
}

/* A holder that is no session; false if there is no place for another. */
static bool
join_other(LockWait *wait, const BlockerKey *key)
{
	int			place = find_place_of_other(key);

	if (place < 0)
	{
		forget_holders_of_ended();
		place = find_place_of_other(key);
	}
	if (place < 0)
		return false;
	shared->others[place].key = *key;
	shared->others[place].waits++;
	wait->other = place;
	wait->queryid = key->queryid;
	wait->key_hash = blockers_hash(key);
	return true;
}

/* A session that holds up the wait: what has it done since? */
static bool
join_session(LockWait *wait, const LockQuestion *found)
{
	const LockHolder *holder = &found->root.holder;
	SlotObservation observation;
	SlotStatus	status;
	LedgerTotals then;
	BlockerKey	key;

	if (!slot_observe(holder->slot, &observation) || observation.session != holder->session)
		return false;
	slot_copy_status(&observation, &status);
	wait->booked = Max(wait->booked, holder_since(found, &observation, &status));
	if (!slot_observe_since(holder->slot, wait->booked, &observation, &then) ||
		observation.session != holder->session)
		return false;
	wait->generation = observation.generation;
	wait->before = parts_of(&then);
	session_key(&observation, &status, &key);
	wait->queryid = key.queryid;
	wait->key_hash = blockers_hash(&key);
	return true;
}

/* Another holder than before. */
static void
change_holder(LockWait *wait, const LockQuestion *found, int64 now)
{
	const LockHolder *holder = &found->root.holder;

	leave_holder(wait);
	wait->holder_pid = holder->pid;
	wait->holder_slot = holder->slot;
	wait->holder_session = holder->session;
	wait->holder_proc = found->root.proc;
	wait->on_key = wait->unsplit = 0;
	wait->held = holder->slot >= 0 ? join_session(wait, found) :
		join_other(wait, &holder->key);
	wait->looked = now;
}

/* Is the holder that was found the one that is known? */
static bool
is_same_holder(const LockWait *wait, const LockRoot *root)
{
	return wait->looked != 0 && wait->holder_pid == root->holder.pid &&
		wait->holder_session == root->holder.session && wait->holder_proc == root->proc &&
		(root->holder.slot < 0) == (wait->other >= 0) &&
		(wait->other < 0 || memcmp(&shared->others[wait->other].key, &root->holder.key,
								   sizeof(BlockerKey)) == 0) &&
		(root->advisory || wait->holder_lxid == root->lxid);
}

/* The reply to a question, unless the wait has ended since it was asked. */
static void
set_holder(const LockQuestion *found, int64 now)
{
	LockWait   *wait = &shared->waits[found->slot];

	if (!wait->waits || wait->session != found->session || wait->started != found->started)
		return;
	if (is_same_holder(wait, &found->root))
	{
		wait->looked = now;
		wait->held = true;
	}
	else
		change_holder(wait, found, now);
	wait->holder_lxid = found->root.lxid;
}

/* Has a wait been in progress for long, so that there is to be a holder? */
static bool
is_long(const LockWait *wait, int64 now)
{
	return now - wait->began >= LOCK_WAIT_BLAMED_NS;
}

/* ... but no fresh one? */
static bool
needs_holder(const LockWait *wait, int64 now)
{
	return is_long(wait, now) && (!wait->held || now - wait->looked >= HOLDER_VALID_NS);
}

/* Append the waits in progress for long that need a holder, or those that do not. */
static int
append_questions(LockQuestion *waits, int count, bool needed, int64 now)
{
	for (int i = 0; i < shared->count; i++)
	{
		int			slot = shared->slots[i];
		const LockWait *wait = &shared->waits[slot];
		LockQuestion *question = &waits[count];

		if (!is_long(wait, now) || needs_holder(wait, now) != needed)
			continue;
		question->slot = slot;
		question->session = wait->session;
		question->pid = slot_get(slot)->published.pid;
		question->started = wait->started;
		count++;
	}
	return count;
}

/*
 * The waits for which a holder is to be found; returns how many there are.
 * Where that takes more questions than a round has, those that need one most
 * must not come last in each round.
 */
static int
collect_questions(LockQuestion *waits, int64 now)
{
	int			count;

	locks_acquire(LOCK_LOCK_WAITS, 0, LW_SHARED);
	count = append_questions(waits, 0, true, now);
	count = append_questions(waits, count, false, now);
	locks_release(LOCK_LOCK_WAITS, 0);
	return count;
}

/* Waits for the same holder are to be neighbours: see observe_holder(). */
static int
compare_holders(const void *a, const void *b)
{
	const LockWait *one = &shared->waits[*(const int *) a];
	const LockWait *two = &shared->waits[*(const int *) b];

	if (one->holder_session != two->holder_session)
		return one->holder_session < two->holder_session ? -1 : 1;
	if (one->other != two->other)
		return one->other < two->other ? -1 : 1;
	return 0;
}

static void
sort_by_holder(void)
{
	for (int i = 1; i < shared->count; i++)
	{
		if (compare_holders(&shared->slots[i - 1], &shared->slots[i]) > 0)
		{
			qsort(shared->slots, shared->count, sizeof(int), compare_holders);
			break;
		}
	}
}

static void
make_round(int64 now)
{
	LockQuestion *waits;
	int			count;
	MemoryContext old;

	if (round_context == NULL)
		round_context = AllocSetContextCreate(TopMemoryContext, "pgnetlat lock waits",
											  ALLOCSET_DEFAULT_SIZES);
	MemoryContextReset(round_context);
	old = MemoryContextSwitchTo(round_context);
	waits = palloc_extended(mul_size(slot_count(), sizeof(LockQuestion)), MCXT_ALLOC_HUGE);
	count = collect_questions(waits, now);
	lock_graph_begin_round(round_context);
	for (int i = 0; i < count; i++)
		waits[i].found = lock_graph_root(waits[i].pid, &waits[i].root);

	locks_acquire(LOCK_LOCK_WAITS, 0, LW_EXCLUSIVE);
	for (int i = 0; i < count; i++)
	{
		if (waits[i].found)
			set_holder(&waits[i], now);
	}
	sort_by_holder();
	accumulate();
	locks_release(LOCK_LOCK_WAITS, 0);
	MemoryContextSwitchTo(old);
	MemoryContextReset(round_context);
}

/* Is there a wait that has been in progress for long and has no fresh holder? */
static bool
round_is_needed(int64 now)
{
	for (int i = 0; i < shared->count; i++)
	{
		if (needs_holder(&shared->waits[shared->slots[i]], now))
			return true;
	}
	return false;
}

static void
allocate_notes(void)
{
	if (noted)
		return;
	noted = MemoryContextAlloc(TopMemoryContext, slot_count() * sizeof(int));
}

/*
 * The session in a slot has just been seen waiting for a lock.
 */
void
lock_waits_note(int slot)
{
	allocate_notes();
	if (noted_count < slot_count())
		noted[noted_count++] = slot;
}

/*
 * All sessions that wait have been noted, at a tick that began then.
 */
void
lock_waits_tick(int64 tick)
{
	int64		now;
	bool		needed;

	if (noted_count == 0 && *(volatile int *) &shared->count == 0)
		return;
	allocate_notes();
	locks_acquire(LOCK_LOCK_WAITS, 0, LW_EXCLUSIVE);
	now = clock_now();
	/* at first what has ended, of the same sessions */
	accumulate();
	for (int i = 0; i < noted_count; i++)
		begin_wait(noted[i], now);
	noted_count = 0;
	needed = now >= next_round && round_is_needed(now);
	locks_release(LOCK_LOCK_WAITS, 0);
	if (!needed)
		return;

	next_round = now + ROUND_INTERVAL_NS;
	make_round(now);
	next_round = Max(next_round, now + ROUND_SHARE * (clock_now() - now));
}
