/*-------------------------------------------------------------------------
 *
 * session_slot.c
 *	  The session slots, and how their readers observe a session.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat.h"
#include "late_memory.h"
#include "libpq/libpq-be.h"
#include "miscadmin.h"
#include "session_slot.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

SlotControl *slot_control = NULL;
static SessionSlot *slots = NULL;

/* The parts of core's status entry of a backend that we use. */
typedef struct CoreStatus
{
	int			pid;
	BackendState state;
	TimestampTz activity_start;
	TimestampTz state_start;
} CoreStatus;

/* Private copies of a session's slot, and what else was seen with it. */
typedef struct Look
{
	SlotPublished published;
	SlotSampled sampled;		/* zero if not valid */
	int64		now;
	uint32		wait_event;
	bool		request_began;	/* in a wait, and not published yet */
	int64		request_at;
	int64		doing_until;	/* as in SlotObservation */
} Look;

/*
 * Client backends take their PGPROC from the first MaxConnections of the array
 * (InitProcGlobal() in proc.c); other processes need no slot.
 */
int
slot_count(void)
{
	return MaxConnections;
}

Size
slot_shmem_size(void)
{
	return add_size(CACHELINEALIGN(sizeof(SlotControl)),
					mul_size(slot_count(), sizeof(SessionSlot)));
}

void
slot_shmem_attach(void *memory, bool is_new)
{
	slot_control = memory;
	slots = (SessionSlot *) ((char *) memory + CACHELINEALIGN(sizeof(SlotControl)));
	if (!is_new)
		return;
	pg_atomic_init_u64(&slot_control->sessions, 0);
	slot_control->reset_at = clock_now();
	slot_control->reset_timestamp = GetCurrentTimestamp();
	for (int i = 0; i < slot_count(); i++)
		pg_atomic_init_u32(&slots[i].tally_state, TALLY_KEPT);
}

SessionSlot *
slot_get(int index)
{
	return &slots[index];
}

int
slot_my_index(void)
{
	return MyProc ? MyProcNumber : -1;
}

/* How this process's client is connected. */
SessionTransport
slot_my_transport(void)
{
	if (MyProcPort->raddr.addr.ss_family == AF_UNIX)
		return TRANSPORT_UNIX;
	if (MyProcPort->ssl_in_use)
		return TRANSPORT_TLS;
#ifdef ENABLE_GSS
	if (MyProcPort->gss && MyProcPort->gss->enc)
		return TRANSPORT_GSS;
#endif
	return TRANSPORT_TCP;
}

/*
 * Take this backend's slot; NULL if it has none.  No reader sees it before
 * slot_open().
 */
SessionSlot *
slot_attach(void)
{
	int			index = slot_my_index();
	SessionSlot *slot;
	SlotPublished fresh;

	if (slots == NULL || index < 0 || index >= slot_count())
		return NULL;
	slot = &slots[index];

	memset(&fresh, 0, sizeof(fresh));
	fresh.pid = MyProcPid;
	fresh.datid = MyDatabaseId;
	fresh.userid = MyBEEntry->st_userid;
	fresh.transport = slot_my_transport();
	if (fresh.transport != TRANSPORT_UNIX)
		tcpinfo_endpoints(MyProcPort->sock, &MyProcPort->laddr.addr,
						  &MyProcPort->raddr.addr, &fresh.endpoints);
	fresh.pooler_owner = OWNER_UNKNOWN;
	fresh.proc = MyProc;
	fresh.status = MyBEEntry;
	fresh.backend_start = MyStartTimestamp;
	fresh.stats_since = GetCurrentTimestamp();
	fresh.generation = slot_control->generation;
	fresh.clock_offset = clock_measure_offset();

	seqlock_write_begin(&slot->lock);
	slot->published = fresh;
	seqlock_write_end(&slot->lock);
	return slot;
}

/*
 * Make the slot visible, with what the connection has cost; zero if not known.
 * Returns the session's number.
 */
uint64
slot_open(SessionSlot *slot, const ConnectTotals *connect)
{
	uint64		session = pg_atomic_add_fetch_u64(&slot_control->sessions, 1);

	seqlock_write_begin(&slot->lock);
	if (slot->published.ledger.phase != LEDGER_OFF)
		slot->published.stats_since =
			clock_to_timestamp(slot->published.clock_offset,
							   slot->published.ledger.counted_from);
	slot->published.connect = *connect;
	slot->published.session = session;
	seqlock_write_end(&slot->lock);
	return session;
}

/*
 * The session is about to stop its ledger and to leave.  It is still
 * accumulated, but has no row any more.
 */
void
slot_close(SessionSlot *slot)
{
	seqlock_write_begin(&slot->lock);
	slot->published.closed = true;
	seqlock_write_end(&slot->lock);
}

/*
 * Free the slot.  The ledger must have been stopped.
 */
void
slot_detach(SessionSlot *slot)
{
	seqlock_write_begin(&slot->lock);
	slot->published.session = 0;
	seqlock_write_end(&slot->lock);
}

/*
 * Apply the latest reset to what is published: by the session, in a write
 * section, or in a private copy.
 */
void
slot_apply_reset(SlotPublished *published)
{
	SlotControl control;
	uint32		changecount;

	if (!seqlock_copy(&slot_control->reset_lock, &control, slot_control,
					  sizeof(control), &changecount) ||
		control.generation == published->generation)
		return;
	ledger_reset(&published->ledger, control.reset_at);
	published->tcp_base = published->tcp.counters;
	/* unless there was an event after the reset, see ledger_reset() */
	published->stats_since = published->ledger.counted_from == control.reset_at ?
		control.reset_timestamp :
		clock_to_timestamp(published->clock_offset, published->ledger.counted_from);
	published->generation = control.generation;
}

/*
 * Copy what the sampler knows of a session since its latest reset; zero if the
 * sampler was stopped while it was writing.
 */
static void
copy_sampled(SessionSlot *slot, const SlotPublished *published, SlotSampled *copy)
{
	uint32		changecount;

	if (!seqlock_copy(&slot->sampled_lock, copy, &slot->sampled, sizeof(*copy), &changecount))
		memset(copy, 0, sizeof(*copy));
	if (copy->session == published->session && copy->generation == published->generation)
		return;
	memset(copy, 0, offsetof(SlotSampled, tcp_session));
	copy->blocked_by = SLOT_NOT_BLOCKED;
}

/*
 * What the sampler has seen of the exchange in progress, or of the wait after
 * it; or NULL.
 */
static const LedgerSampled *
sampled_of_exchange(const SlotSampled *sampled, const Ledger *ledger)
{
	return sampled->session != 0 && sampled->exchange_number == ledger->exchange_number ?
		&sampled->ledger : NULL;
}

/* The same for the session itself.  Cheap if the sampler has seen nothing. */
bool
slot_sampled_of_exchange(SessionSlot *slot, LedgerSampled *sampled)
{
	SlotSampled copy;

	if (likely(slot->sampled.exchange_number != slot->published.ledger.exchange_number))
		return false;
	copy_sampled(slot, &slot->published, &copy);
	if (!sampled_of_exchange(&copy, &slot->published.ledger))
		return false;
	*sampled = copy.ledger;
	return true;
}

/*
 * How much execution of the session's record with this number the sampler has
 * added to its statement's entry.  For the session itself, in a write section.
 */
int64
slot_added_exec(SessionSlot *slot, uint64 record)
{
	SlotSampled copy;

	if (likely(slot->sampled.added_record != record))
		return 0;
	copy_sampled(slot, &slot->published, &copy);
	return copy.added_record == record ? copy.added_exec : 0;
}

/* What the kernel had counted before the latest reset.  For the session itself. */
int64
slot_run_queue_base(SessionSlot *slot)
{
	SlotSampled copy;

	copy_sampled(slot, &slot->published, &copy);
	return copy.run_queue_base;
}

/*
 * Copy what we need of core's status of a backend, by core's protocol.
 * Returns false if the backend was stopped while it was writing, or is another
 * process.
 */
static bool
copy_core_status(volatile PgBackendStatus *status, int pid, CoreStatus *copy)
{
	int			attempts = 0;

	do
	{
		int			before;
		int			after;

		pgstat_begin_read_activity(status, before);
		copy->pid = status->st_procpid;
		copy->state = status->st_state;
		copy->activity_start = status->st_activity_start_timestamp;
		copy->state_start = status->st_state_start_timestamp;
		pgstat_end_read_activity(status, after);
		if (pgstat_read_activity_complete(before, after))
			return copy->pid == pid;
	} while (seqlock_try_again(&attempts));
	return false;
}

/*
 * Has a request been read that the session has not published yet?
 *
 * A request shows on the wire only when the first message of its response is
 * sent, which for a long statement may be late.  But before that, core has set
 * the activity's start to the statement timestamp.
 */
static bool
request_has_begun(const SlotPublished *published, int64 *at)
{
	CoreStatus	status;

	if (!copy_core_status(published->status, published->pid, &status))
		return false;
	/* core sets only the state's start for a fast-path function call */
	if (status.state == STATE_FASTPATH)
		status.activity_start = Max(status.activity_start, status.state_start);
	if (status.activity_start <= published->request_stamp ||
		(status.state != STATE_RUNNING && status.state != STATE_FASTPATH))
		return false;
	*at = clock_from_timestamp(published->clock_offset, status.activity_start);
	return true;
}

/*
 * Note how long the session has done what the sampler sees it doing.  If it is
 * blocked in something else, that has begun after the latest tick.
 */
static void
note_last_tick(Look *look, uint32 changecount, int64 last_tick)
{
	SlotSampled *sampled = &look->sampled;
	bool		goes_on = sampled->doing.changecount == changecount;
	int64		blocked_since = goes_on && sampled->doing.event == look->wait_event ?
		sampled->doing.from : last_tick;

	look->doing_until = Max(goes_on ? look->now : last_tick, sampled->doing.from);
	if (sampled->exchange_number != look->published.ledger.exchange_number)
		memset(&sampled->ledger, 0, sizeof(sampled->ledger));
	sampled->exchange_number = look->published.ledger.exchange_number;
	sampled->ledger.visited = Max(sampled->ledger.visited, blocked_since);
}

/*
 * Copy what the session has published, and look at its backend and at the
 * clock while the copy is valid.  Returns false if there is no session, or it
 * was stopped while it was writing.
 */
static bool
look_at(SessionSlot *slot, Look *look)
{
	SlotPublished *published = &look->published;
	uint32		changecount;
	int64		last_tick;
	int			attempts = 0;

	do
	{
		last_tick = slot_control->last_tick;
		pg_read_barrier();
		if (slot->published.session == 0 ||
			!seqlock_copy(&slot->lock, published, &slot->published, sizeof(*published),
						  &changecount) ||
			published->session == 0)
			return false;
		copy_sampled(slot, published, &look->sampled);
		look->request_began = published->ledger.phase == LEDGER_WAITING &&
			request_has_begun(published, &look->request_at);
		look->wait_event = *(volatile uint32 *) &published->proc->wait_event_info;
		look->now = clock_now();
	} while (!seqlock_read_valid(&slot->lock, changecount) && seqlock_try_again(&attempts));
	if (published->generation != slot_control->generation)
	{
		slot_apply_reset(published);
		copy_sampled(slot, published, &look->sampled);
	}
	note_last_tick(look, changecount, last_tick);
	return true;
}

/*
 * Compute the account as of the look.  A request that the session has not
 * published begins an exchange in the private copy of its ledger; but until it
 * is known how the wait before it drained, all of that is pending.
 */
static void
account_of(Look *look, LedgerAccount *account)
{
	Ledger	   *ledger = &look->published.ledger;
	const LedgerSampled *sampled = sampled_of_exchange(&look->sampled, ledger);
	const LedgerDrain *drain = sampled && sampled->drained ? &sampled->drain : NULL;
	const SlotDoing *doing = &look->sampled.doing;
	LedgerTotals *totals = &account->totals;
	int64		request_at = Min(look->request_at, look->now);
	int64		unbooked;
	int64		whole;
	LedgerWait	wait;

	if (look->request_began && (!ledger->wait.draining || drain))
	{
		ledger_wait_end(ledger, request_at, true, drain, &wait);
		sampled = NULL;
	}
	ledger_project(ledger, sampled, look->now, slot_blocked_in(look->wait_event), account);
	if (look->request_began)
	{
		account->state = LEDGER_STATE_EXECUTING;
		account->state_since = Max(request_at, look->published.ledger.since);
	}
	memcpy(totals->exec_part, look->sampled.exec_part, sizeof(totals->exec_part));
	exec_parts_fit(totals->exec_part, totals->exec);
	if (doing->from != 0 && doing->part != NUM_EXEC_PARTS)
		exec_parts_book(totals->exec_part, totals->exec, doing->part,
						look->doing_until - doing->from);
	unbooked = Max(look->sampled.run_queue - Max(look->published.run_queue_booked,
												 look->sampled.run_queue_base), 0);
	whole = ledger_busy_total(totals) + totals->idle + account->pending;
	totals->run_queue += Max(Min(unbooked, whole - totals->run_queue), 0);
}

/* Fill in everything but the account. */
static void
fill_observation(const Look *look, SlotObservation *observation)
{
	SlotPublished *copy = &observation->published;

	*copy = look->published;
	if (look->sampled.tcp_session == copy->session)
		tcpstate_latest(&copy->tcp, &look->sampled.tcp);
	observation->observed_at = look->now;
	observation->tcp_counters = copy->tcp.counters;
	tcpstate_counters_subtract(&observation->tcp_counters, &copy->tcp_base);
	observation->doing_until = look->doing_until;
	observation->blocked_by = look->sampled.blocked_by;
	observation->blocking = look->sampled.blocking;
}

/* Observe the session in a slot as of now; false if there is none. */
bool
slot_observe(int index, SlotObservation *observation)
{
	Look		look;

	if (!look_at(&slots[index], &look))
		return false;
	account_of(&look, &observation->account);
	fill_observation(&look, observation);
	return true;
}

/*
 * Get the name of the session in a slot, NAMEDATALEN bytes.  Returns false if
 * it is gone, or was stopped while it was writing.
 */
bool
slot_name(int index, uint64 session, char *name)
{
	SlotPublished copy;
	uint32		changecount;

	if (!seqlock_copy(&slots[index].lock, &copy, &slots[index].published, sizeof(copy),
					  &changecount) || copy.session != session)
		return false;
	strlcpy(name, copy.name, NAMEDATALEN);
	return true;
}

/*
 * Begin to write what the sampler knows of the session in a slot, which is zero
 * for a new session or reset generation.  Returns NULL if the session is gone.
 */
SlotSampled *
slot_sampled_begin(int index, uint64 session, uint32 generation)
{
	SessionSlot *slot = &slots[index];
	SlotSampled *sampled = &slot->sampled;

	if (slot->published.session != session)
		return NULL;
	seqlock_write_begin(&slot->sampled_lock);
	if (sampled->session != session || sampled->generation != generation)
	{
		memset(sampled, 0, offsetof(SlotSampled, tcp_session));
		sampled->session = session;
		sampled->generation = generation;
		sampled->blocked_by = SLOT_NOT_BLOCKED;
	}
	return sampled;
}

void
slot_sampled_end(int index)
{
	seqlock_write_end(&slots[index].sampled_lock);
}

/*
 * Has the session in a slot begun to work on a request, although it has
 * published a wait?  If so, "at" is when.
 */
bool
slot_request_began(int index, int64 *at)
{
	SlotPublished copy;
	uint32		changecount;

	return seqlock_copy(&slots[index].lock, &copy, &slots[index].published, sizeof(copy),
						&changecount) &&
		copy.session != 0 && copy.ledger.phase == LEDGER_WAITING && request_has_begun(&copy, at);
}

/* Find the slot of the session with this process ID; -1 if there is none. */
int
slot_find_pid(int pid)
{
	for (int i = 0; i < slot_count(); i++)
	{
		if (slots[i].published.pid == pid && slots[i].published.session != 0)
			return i;
	}
	return -1;
}

/*
 * The next client backend after this one of core's list (begin with 0) that has
 * no slot, because it has not loaded the library; NULL if there is none.  Whoever
 * has left its slot is about to end.
 */
PgBackendStatus *
slot_next_uncounted(int *number)
{
	while (late_is_used && *number < pgstat_fetch_stat_numbackends())
	{
		int			index;
		PgBackendStatus *status = compat_client_backend(++*number, &index);

		if (status && OidIsValid(status->st_userid) && slots[index].published.session == 0 &&
			slots[index].published.pid != status->st_procpid)
			return status;
	}
	return NULL;
}

/*
 * Announce a reset of everything before "at".  The caller holds the reset
 * lock.
 */
void
slot_announce_reset(int64 at, TimestampTz timestamp)
{
	seqlock_write_begin(&slot_control->reset_lock);
	slot_control->reset_at = at;
	slot_control->reset_timestamp = timestamp;
	slot_control->generation++;
	seqlock_write_end(&slot_control->reset_lock);
}
