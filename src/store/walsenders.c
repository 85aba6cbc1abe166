/*-------------------------------------------------------------------------
 *
 * walsenders.c
 *	  See walsenders.h.
 *
 * Who blocks a walsender, the kernel tells; and whoever is blocked in a system
 * call cannot ask it.  So the sampler does that for walsenders that are blocked,
 * and each look books what has passed.  The walsender asks when the blocking
 * begins and ends.
 *
 * A reset writes nothing into an account: it keeps what was counted until then,
 * and readers subtract that.
 *
 * Sums over groups come from those that have ended and those that live.  A
 * walsender changes from the one to the other under the lock of the groups.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat.h"
#include "ledger.h"
#include "locks.h"
#include "port/atomics.h"
#include "replication/walsender.h"
#include "replication/walsender_private.h"
#include "settings.h"
#include "storage/shmem.h"
#include "storage/spin.h"
#include "utils/timestamp.h"
#include "walsenders.h"

/* So often walsenders are looked at of which none is active. */
#define QUIET_LOOK_NS		(250 * NS_PER_MS)

struct WalsenderSlot
{
	slock_t		mutex;			/* protects all that follows */
	uint64		session;		/* unique while the server runs; 0: nobody is
								 * here */
	WalsenderIdentity identity;
	PGPROC	   *proc;
	int64		clock_offset;
	TimestampTz stats_since;
	bool		idle;			/* by the latest sample */
	WalsenderAccount account;
	TcpInfo		tcp;			/* continued */

	/* at the latest reset */
	WalsenderTotals base;
	TcpCounters tcp_base;
};

/* All slots have lines of their own. */
typedef union PaddedSlot
{
	WalsenderSlot slot;
	char		padding[TYPEALIGN(PG_CACHE_LINE_SIZE, sizeof(WalsenderSlot))];
} PaddedSlot;

typedef struct WalsendersShared
{
	pg_atomic_uint64 sessions;	/* attached so far */
	pg_atomic_uint32 attached;	/* now */

	/* protected by the lock of the groups */
	int			group_count;
	WalsenderGroup groups[WALSENDER_GROUPS];
} WalsendersShared;

static WalsendersShared *shared = NULL;
static PaddedSlot *slots = NULL;

/* The sampler's own: was somebody active, and when did it look last? */
static bool somebody_is_active = false;
static int64 latest_look = 0;

int
walsenders_count(void)
{
	return max_wal_senders;
}

Size
walsenders_shmem_size(void)
{
	return add_size(CACHELINEALIGN(sizeof(WalsendersShared)) + PG_CACHE_LINE_SIZE,
					mul_size(walsenders_count(), sizeof(PaddedSlot)));
}

void
walsenders_shmem_init(void)
{
	bool		found;
	char	   *base = ShmemInitStruct("pgnetlat walsenders", walsenders_shmem_size(), &found);

	shared = (WalsendersShared *) CACHELINEALIGN(base);
	slots = (PaddedSlot *) ((char *) shared + CACHELINEALIGN(sizeof(WalsendersShared)));
	if (found)
		return;
	memset(base, 0, walsenders_shmem_size());
	pg_atomic_init_u64(&shared->sessions, 0);
	pg_atomic_init_u32(&shared->attached, 0);
	for (int i = 0; i < walsenders_count(); i++)
		SpinLockInit(&slots[i].slot.mutex);
}

/* ---------------------------------------------------------------------------
 * The walsender itself
 * ---------------------------------------------------------------------------
 */

/*
 * Take the place with this number.  NULL if there is none.  The account is off.
 */
WalsenderSlot *
walsenders_attach(int index, const WalsenderIdentity *identity)
{
	WalsenderSlot *slot;
	WalsenderSlot fresh;

	if (slots == NULL || index < 0 || index >= walsenders_count())
		return NULL;
	slot = &slots[index].slot;
	memset(&fresh, 0, sizeof(fresh));
	fresh.session = pg_atomic_add_fetch_u64(&shared->sessions, 1);
	fresh.identity = *identity;
	fresh.proc = MyProc;
	fresh.clock_offset = clock_measure_offset();
	fresh.stats_since = GetCurrentTimestamp();

	SpinLockAcquire(&slot->mutex);
	memcpy((char *) slot + offsetof(WalsenderSlot, session),
		   (char *) &fresh + offsetof(WalsenderSlot, session),
		   sizeof(fresh) - offsetof(WalsenderSlot, session));
	SpinLockRelease(&slot->mutex);
	pg_atomic_fetch_add_u32(&shared->attached, 1);
	return slot;
}

/* The walsender's account, which is its until walsenders_unlock(). */
WalsenderAccount *
walsenders_lock(WalsenderSlot *slot)
{
	SpinLockAcquire(&slot->mutex);
	return &slot->account;
}

void
walsenders_unlock(WalsenderSlot *slot)
{
	SpinLockRelease(&slot->mutex);
}

/* What is known of its connection. */
void
walsenders_get_tcp(WalsenderSlot *slot, TcpInfo *tcp)
{
	SpinLockAcquire(&slot->mutex);
	*tcp = slot->tcp;
	SpinLockRelease(&slot->mutex);
}

/* What the kernel has said of it; while the account is locked. */
void
walsenders_set_tcp(WalsenderSlot *slot, const TcpInfo *tcp)
{
	tcpstate_latest(&slot->tcp, tcp);
}

/*
 * It begins what it is for.
 */
void
walsenders_set_kind(WalsenderSlot *slot, WalsenderKind kind, const char *application_name)
{
	SpinLockAcquire(&slot->mutex);
	slot->identity.kind = kind;
	strlcpy(slot->identity.application_name, application_name, NAMEDATALEN);
	SpinLockRelease(&slot->mutex);
}

/* ---------------------------------------------------------------------------
 * Looking at them
 * ---------------------------------------------------------------------------
 */

/*
 * Does a walsender with this wait event wait for something to do?  A base backup
 * does where it was asked to take its time.
 */
static bool
waits_for_work(uint32 wait_event)
{
	return wait_event == WAIT_EVENT_CLIENT_READ ||
		wait_event == WAIT_EVENT_BASE_BACKUP_THROTTLE || compat_walsender_waits(wait_event);
}

static inline uint32
wait_event_of(const PGPROC *proc)
{
	return *(const volatile uint32 *) &proc->wait_event_info;
}

/* What to see to in a slot. */
typedef struct Glance
{
	uint64		session;
	WalsenderPhase phase;
	int64		send_began;
	bool		blocked;
	bool		local;
	TcpEndpoints endpoints;
	TcpInfo		tcp;
	PGPROC	   *proc;
	int64		bytes_sent;
} Glance;

static bool
glance(WalsenderSlot *slot, int64 now, Glance *result)
{
	SpinLockAcquire(&slot->mutex);
	result->session = slot->session;
	result->phase = slot->account.phase;
	result->send_began = slot->account.send_began;
	result->blocked = walsender_is_blocked(&slot->account, now);
	result->local = slot->account.local;
	result->endpoints = slot->identity.endpoints;
	result->tcp = slot->tcp;
	result->proc = slot->proc;
	result->bytes_sent = slot->account.totals.bytes_sent;
	SpinLockRelease(&slot->mutex);
	return result->session != 0 && result->phase != WALSENDER_OFF;
}

/* Is it still what the glance has seen?  While it is locked. */
static bool
is_unmoved(const WalsenderSlot *slot, const Glance *seen)
{
	return slot->session == seen->session && slot->account.phase == seen->phase &&
		(seen->phase != WALSENDER_SENDING || slot->account.send_began == seen->send_began);
}

/* It is blocked: book what has passed, if the kernel says by whom. */
static void
look_at_blocked(WalsenderSlot *slot, const Glance *seen, TcpDiag *diag)
{
	TcpInfo		info = {.measured_at = 0};
	int64		window = WINDOW_UNKNOWN;
	int64		now = clock_now();

	if (!seen->local)
	{
		if (pgnetlat_rtt_interval < 0 || seen->endpoints.family == 0 ||
			tcpinfo_diag_query(diag, &seen->endpoints, &seen->tcp, now,
							   &info) != TCP_REPLY_VALID)
			return;
		window = info.rwnd_limited;
	}
	SpinLockAcquire(&slot->mutex);
	if (is_unmoved(slot, seen))
	{
		if (info.measured_at != 0)
			tcpstate_latest(&slot->tcp, &info);
		walsender_send_look(&slot->account, now, window);
	}
	SpinLockRelease(&slot->mutex);
}

/* It works, or waits for something to do: which of the two? */
static bool
sample(WalsenderSlot *slot, const Glance *seen, int64 now)
{
	bool		idle = waits_for_work(wait_event_of(seen->proc));

	SpinLockAcquire(&slot->mutex);
	if (is_unmoved(slot, seen))
	{
		slot->idle = idle;
		walsender_sample(&slot->account, now, idle);
	}
	SpinLockRelease(&slot->mutex);
	return idle;
}

/* One look at a walsender; is it active? */
static bool
look_at(WalsenderSlot *slot, int64 now, TcpDiag *diag)
{
	Glance		seen;

	if (!glance(slot, now, &seen))
		return false;
	if (seen.phase == WALSENDER_AT_WORK)
		return !sample(slot, &seen, now);
	if (seen.blocked)
		look_at_blocked(slot, &seen, diag);
	return true;
}

/*
 * The sampler's look at all of them.
 */
void
walsenders_tick(int64 now, TcpDiag *diag)
{
	somebody_is_active = false;
	latest_look = now;
	if (pg_atomic_read_u32(&shared->attached) == 0)
		return;
	for (int i = 0; i < walsenders_count(); i++)
	{
		if (look_at(&slots[i].slot, now, diag))
			somebody_is_active = true;
	}
}

/*
 * When the sampler, which ticks each "interval", should look at them next.
 */
int64
walsenders_next_due(int64 now, int64 interval)
{
	if (pg_atomic_read_u32(&shared->attached) == 0)
		return PG_INT64_MAX;
	return somebody_is_active ? now + interval : latest_look + QUIET_LOOK_NS;
}

/* What core knows of the walsender in this place. */
static void
ask_core(int index, WalsenderObservation *observation)
{
	WalSnd	   *walsnd = &WalSndCtl->walsnds[index];

	observation->flush_lag = -1;
	observation->sync_priority = 0;
	SpinLockAcquire(&walsnd->mutex);
	if (walsnd->pid == observation->identity.pid)
	{
		if (walsnd->flushLag >= 0)
			observation->flush_lag = walsnd->flushLag * NS_PER_US;
		observation->sync_priority = walsnd->sync_standby_priority;
	}
	SpinLockRelease(&walsnd->mutex);
}

/* What has been counted since the latest reset; while the slot is locked. */
static void
copy_counted(const WalsenderSlot *slot, WalsenderTotals *totals, TcpCounters *tcp)
{
	*totals = slot->account.totals;
	walsender_totals_subtract(totals, &slot->base);
	*tcp = slot->tcp.counters;
	tcpstate_counters_subtract(tcp, &slot->tcp_base);
}

/*
 * The walsender in this place; false if there is none.
 */
bool
walsenders_observe(int index, WalsenderObservation *observation)
{
	WalsenderSlot *slot = &slots[index].slot;
	bool		found;

	SpinLockAcquire(&slot->mutex);
	found = slot->session != 0;
	if (found)
	{
		observation->identity = slot->identity;
		observation->stats_since = slot->stats_since;
		observation->clock_offset = slot->clock_offset;
		observation->phase = slot->account.phase;
		observation->idle = slot->idle;
		copy_counted(slot, &observation->totals, &observation->tcp_counters);
		observation->pending = walsender_pending(&slot->account, clock_now());
		observation->tcp = slot->tcp;
	}
	SpinLockRelease(&slot->mutex);
	if (found)
		ask_core(index, observation);
	return found;
}

/* ---------------------------------------------------------------------------
 * Groups
 * ---------------------------------------------------------------------------
 */

static bool
is_of_group(const WalsenderGroup *group, const WalsenderIdentity *identity)
{
	return group->kind == identity->kind &&
		group->family == identity->endpoints.family &&
		memcmp(group->address, identity->endpoints.remote_address,
			   sizeof(group->address)) == 0 &&
		strcmp(group->application_name, identity->application_name) == 0;
}

/*
 * The group of a walsender, among "count" of them, to which it is added where
 * there is room: the last place is for all that find no other.
 */
static WalsenderGroup *
find_group(WalsenderGroup *groups, int *count, const WalsenderIdentity *identity)
{
	WalsenderGroup *group;

	for (int i = 0; i < Min(*count, WALSENDER_GROUPS - 1); i++)
	{
		if (is_of_group(&groups[i], identity))
			return &groups[i];
	}
	group = &groups[Min(*count, WALSENDER_GROUPS - 1)];
	if (*count == WALSENDER_GROUPS)
		return group;
	memset(group, 0, sizeof(*group));
	if (++*count < WALSENDER_GROUPS)
	{
		group->kind = identity->kind;
		group->family = identity->endpoints.family;
		memcpy(group->address, identity->endpoints.remote_address, sizeof(group->address));
		strlcpy(group->application_name, identity->application_name, NAMEDATALEN);
	}
	return group;
}

/*
 * The walsender ends; its account has been stopped.
 */
void
walsenders_detach(WalsenderSlot *slot)
{
	WalsenderTotals totals;
	TcpCounters tcp;
	WalsenderGroup *group;

	locks_acquire(LOCK_WALSENDERS, 0, LW_EXCLUSIVE);
	SpinLockAcquire(&slot->mutex);
	copy_counted(slot, &totals, &tcp);
	slot->session = 0;
	SpinLockRelease(&slot->mutex);
	/* nobody else writes to it now */
	group = find_group(shared->groups, &shared->group_count, &slot->identity);
	group->ended++;
	walsender_totals_add(&group->totals, &totals);
	tcpstate_counters_add(&group->tcp_counters, &tcp);
	locks_release(LOCK_WALSENDERS, 0);
	pg_atomic_fetch_sub_u32(&shared->attached, 1);
}

/*
 * A palloc'd copy of all groups, with those that live.  One that has not begun
 * what it is for is in no group yet.
 */
WalsenderGroup *
walsenders_groups(int *count)
{
	WalsenderGroup *groups = palloc(WALSENDER_GROUPS * sizeof(WalsenderGroup));
	WalsenderObservation one;

	locks_acquire(LOCK_WALSENDERS, 0, LW_SHARED);
	*count = shared->group_count;
	memcpy(groups, shared->groups, *count * sizeof(WalsenderGroup));
	for (int i = 0; i < walsenders_count(); i++)
	{
		WalsenderGroup *group;

		if (!walsenders_observe(i, &one) || one.identity.kind == WALSENDER_COMMANDS)
			continue;
		group = find_group(groups, count, &one.identity);
		group->live++;
		group->pending += one.pending;
		walsender_totals_add(&group->totals, &one.totals);
		tcpstate_counters_add(&group->tcp_counters, &one.tcp_counters);
	}
	locks_release(LOCK_WALSENDERS, 0);
	return groups;
}

/*
 * Forget what was counted so far.  What is pending of it is booked before.
 */
void
walsenders_reset(TimestampTz timestamp)
{
	locks_acquire(LOCK_WALSENDERS, 0, LW_EXCLUSIVE);
	shared->group_count = 0;
	for (int i = 0; i < walsenders_count(); i++)
	{
		WalsenderSlot *slot = &slots[i].slot;

		SpinLockAcquire(&slot->mutex);
		if (slot->session != 0)
		{
			walsender_settle(&slot->account, clock_now(),
							 waits_for_work(wait_event_of(slot->proc)));
			slot->base = slot->account.totals;
			slot->tcp_base = slot->tcp.counters;
			slot->stats_since = timestamp;
		}
		SpinLockRelease(&slot->mutex);
	}
	locks_release(LOCK_WALSENDERS, 0);
}
