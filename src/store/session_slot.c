/*-------------------------------------------------------------------------
 *
 * session_slot.c
 *	  See session_slot.h.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat.h"
#include "libpq/libpq-be.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "prefetch.h"
#include "session_slot.h"
#include "storage/shmem.h"
#include "utils/wait_event.h"

/*
 * So often an observation is repeated because others have seen more of the
 * execution than there is.
 */
#define OBSERVE_ATTEMPTS	1000

SlotControl *slot_control = NULL;
static SessionSlot *slots = NULL;

/*
 * Client backends take their PGPROC from the first MaxConnections of the
 * array (InitProcGlobal() in proc.c); slots for the others would only cost
 * memory.
 */
int
slot_count(void)
{
	return MaxConnections;
}

Size
slot_shmem_size(void)
{
	return add_size(CACHELINEALIGN(sizeof(SlotControl)) + PG_CACHE_LINE_SIZE,
					mul_size(slot_count(), sizeof(SessionSlot)));
}

void
slot_shmem_init(void)
{
	bool		found;
	char	   *base = ShmemInitStruct("pgnetlat sessions", slot_shmem_size(), &found);

	slot_control = (SlotControl *) CACHELINEALIGN(base);
	slots = (SessionSlot *) ((char *) slot_control + CACHELINEALIGN(sizeof(SlotControl)));
	if (found)
		return;
	memset(base, 0, slot_shmem_size());
	pg_atomic_init_u64(&slot_control->sessions, 0);
	slot_control->reset_at = clock_now();
	slot_control->reset_timestamp = GetCurrentTimestamp();
	for (int i = 0; i < slot_count(); i++)
	{
		pg_atomic_init_u64(&slots[i].wait_shown, 0);
		pg_atomic_init_u64(&slots[i].busy_shown, 0);
		pg_atomic_init_u32(&slots[i].tally_state, TALLY_KEPT);
	}
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
 * Take this backend's slot.  NULL if there is none for it.  Nobody sees it
 * before slot_open().
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
 * What the connection has cost; between slot_attach() and slot_open().
 */
void
slot_set_connect(SessionSlot *slot, const ConnectTotals *connect)
{
	seqlock_write_begin(&slot->lock);
	slot->published.connect = *connect;
	seqlock_write_end(&slot->lock);
}

/*
 * Show the slot to others.  Returns the session's number.
 */
uint64
slot_open(SessionSlot *slot)
{
	uint64		session = pg_atomic_add_fetch_u64(&slot_control->sessions, 1);

	seqlock_write_begin(&slot->lock);
	if (slot->published.ledger.phase != LEDGER_OFF)
		slot->published.stats_since =
			clock_to_timestamp(slot->published.clock_offset,
							   slot->published.ledger.counted_from);
	slot->published.session = session;
	seqlock_write_end(&slot->lock);
	return session;
}

/*
 * The session is about to stop its ledger and to leave: its account goes on
 * being accumulated, but is not shown as that of a session any more.
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
	slot->published.pid = 0;
	seqlock_write_end(&slot->lock);
}

/*
 * Bring what is published to the latest reset: by its owner, inside a write
 * section, or a private copy.
 */
static void
apply_reset(SlotPublished *published)
{
	uint32		changecount;
	uint32		generation;
	int64		at;
	TimestampTz timestamp;

	do
	{
		changecount = seqlock_read_begin(&slot_control->reset_lock);
		generation = slot_control->generation;
		at = slot_control->reset_at;
		timestamp = slot_control->reset_timestamp;
	} while (!seqlock_read_valid(&slot_control->reset_lock, changecount));

	if (generation == published->generation)
		return;
	ledger_reset(&published->ledger, at);
	published->tcp_base = published->tcp.counters;
	/* an event may have slipped in between, see ledger_reset() */
	published->stats_since = published->ledger.counted_from == at ? timestamp :
		clock_to_timestamp(published->clock_offset, published->ledger.counted_from);
	published->generation = generation;
}

void
slot_apply_reset(SessionSlot *slot)
{
	apply_reset(&slot->published);
	pg_atomic_write_u32(&slot->tally_state, TALLY_VOID);
}

/*
 * What the sampler knows of an exchange, if it is of that exchange.  Nothing, if
 * it has been stopped while it was writing.
 */
static bool
copy_sampled(SessionSlot *slot, const SlotPublished *published, SlotSampled *copy,
			 uint32 *changecount)
{
	int			attempts = 0;

	for (;;)
	{
		*changecount = seqlock_read_begin(&slot->sampled_lock);
		*copy = slot->sampled;
		if (seqlock_read_valid(&slot->sampled_lock, *changecount))
			break;
		if (!seqlock_try_again(&attempts))
		{
			memset(copy, 0, sizeof(*copy));
			return false;
		}
	}
	return copy->session == published->session &&
		copy->exchange_number == published->ledger.exchange_number &&
		copy->generation == published->generation;
}

/*
 * For the session itself: what the sampler has seen of the exchange (or of
 * the wait after it) in progress.  Cheap where it has seen nothing.
 */
bool
slot_sampled_of_exchange(SessionSlot *slot, LedgerSampled *sampled)
{
	SlotSampled copy;
	uint32		changecount;

	if (likely(slot->sampled.exchange_number != slot->published.ledger.exchange_number))
		return false;
	if (!copy_sampled(slot, &slot->published, &copy, &changecount))
		return false;
	*sampled = copy.ledger;
	return true;
}

static void
raise_watermark(pg_atomic_uint64 *watermark, int64 to)
{
	uint64		old = pg_atomic_read_u64(watermark);

	while (old < (uint64) to &&
		   !pg_atomic_compare_exchange_u64(watermark, &old, (uint64) to))
		;
}

/*
 * Has a request been read of which the session has published nothing yet?
 *
 * A request shows on the wire only when the first message of its response is
 * put together, which for a long statement may be late.  But core has set the
 * activity's start before anything else, to the statement timestamp.
 */
static bool
request_has_begun(const SlotPublished *published, int64 *at)
{
	volatile PgBackendStatus *status = published->status;
	BackendState state;
	TimestampTz start;
	int			pid;

	for (;;)
	{
		int			before;
		int			after;

		pgstat_begin_read_activity(status, before);
		state = status->st_state;
		start = status->st_activity_start_timestamp;
		/* a function call has no text, and core sets only this for it */
		if (state == STATE_FASTPATH)
			start = Max(start, status->st_state_start_timestamp);
		pid = status->st_procpid;
		pgstat_end_read_activity(status, after);
		if (pgstat_read_activity_complete(before, after))
			break;
		CHECK_FOR_INTERRUPTS();
	}
	if (pid != published->pid || start <= published->request_stamp ||
		(state != STATE_RUNNING && state != STATE_FASTPATH))
		return false;
	*at = clock_from_timestamp(published->clock_offset, start);
	return true;
}

/* Who looks at a session, and what for. */
typedef struct Viewer
{
	ExecPurpose purpose;
	int64		sampled_before; /* when the sampler sampled it before */
	int64		moment;			/* what was the account then? */
	LedgerTotals *then;			/* NULL: never mind */
} Viewer;

/*
 * An observation in the making: private copies of what a session has published
 * and what was sampled of it, and what is to be shown of that.
 */
typedef struct Look
{
	SlotPublished published;
	uint32		changecount;
	SlotSampled sampled;
	uint32		sampled_changecount;
	const LedgerSampled *sampled_exchange;	/* what is of the exchange in
											 * progress, or NULL */
	int64		now;
	uint32		wait_event;
	Ledger		before;			/* as it was published, if the viewer asks for
								 * then */

	/* in a wait */
	bool		request_began;	/* but nothing has been published of it */
	int64		request_at;

	/* in an exchange */
	LedgerBlocked blocked;
	int64		exec_known;		/* up to here it has been shown as executing */
} Look;

/* False if there is no session, or it has been stopped while it was writing. */
static bool
copy_published(SessionSlot *slot, SlotPublished *copy, uint32 *changecount)
{
	int			attempts = 0;

	for (;;)
	{
		*changecount = seqlock_read_begin(&slot->lock);
		if (slot->published.session == 0)
			return false;
		*copy = slot->published;
		if (seqlock_read_valid(&slot->lock, *changecount))
			break;
		if (!seqlock_try_again(&attempts))
			return false;
		CHECK_FOR_INTERRUPTS();
	}
	return copy->session != 0;
}

/* What is not told by "published" alone. */
static void
copy_locks(SessionSlot *slot, const SlotPublished *published, SlotLocks *copy)
{
	int			attempts = 0;

	for (;;)
	{
		uint32		changecount = seqlock_read_begin(&slot->locks_lock);

		*copy = slot->locks;
		if (seqlock_read_valid(&slot->locks_lock, changecount))
			break;
		if (!seqlock_try_again(&attempts))
		{
			copy->session = 0;
			break;
		}
		CHECK_FOR_INTERRUPTS();
	}
	if (copy->session != published->session || copy->generation != published->generation)
	{
		memset(copy, 0, sizeof(*copy));
		copy->blocked_by = SLOT_NOT_BLOCKED;
	}
}

/* Step 1: copy, and say as of when.  False if there is no session. */
static bool
look_at(SessionSlot *slot, const Viewer *viewer, Look *look)
{
	bool		matches;

	if (!copy_published(slot, &look->published, &look->changecount))
		return false;
	apply_reset(&look->published);
	if (viewer->then)
		look->before = look->published.ledger;
	matches = copy_sampled(slot, &look->published, &look->sampled,
						   &look->sampled_changecount);
	look->sampled_exchange = matches ? &look->sampled.ledger : NULL;
	look->now = clock_now();
	look->wait_event = *(volatile uint32 *) &look->published.proc->wait_event_info;
	return true;
}

/* The session waits, or has just read a request: when will it say that was? */
static void
promise_wait(SessionSlot *slot, Look *look)
{
	look->request_began = request_has_begun(&look->published, &look->request_at);
	if (!look->request_began)
	{
		raise_watermark(&slot->wait_shown, look->now);
		return;
	}
	/* the same rule by which the session will date the event */
	look->request_at = Max(look->request_at,
						   (int64) pg_atomic_read_u64(&slot->wait_shown));
	look->request_at = Min(look->request_at, look->now);
	raise_watermark(&slot->wait_shown, look->request_at);
	raise_watermark(&slot->busy_shown, look->now);
}

/* The session executes, as far as it has published; perhaps it is blocked. */
static void
promise_execution(SessionSlot *slot, Look *look)
{
	look->blocked = slot_blocked_in(look->wait_event);
	if (!look->blocked)
	{
		raise_watermark(&slot->busy_shown, look->now);
		return;
	}
	/* what the sampler has told apart, or has seen executing, will be shown */
	if (look->sampled_exchange)
		raise_watermark(&slot->busy_shown,
						Min(look->sampled_exchange->visited, look->now));
	raise_watermark(&slot->busy_shown,
					Min(exec_samples_run_until(slot - slots, look->published.session),
						look->now));
	look->exec_known = pg_atomic_read_u64(&slot->busy_shown);
}

/* Step 2: leave the watermarks for what will be shown. */
static void
promise(SessionSlot *slot, Look *look)
{
	look->request_began = false;
	look->blocked = LEDGER_NOT_BLOCKED;
	look->exec_known = 0;
	switch (look->published.ledger.phase)
	{
		case LEDGER_WAITING:
			promise_wait(slot, look);
			break;
		case LEDGER_EXECUTING:
			promise_execution(slot, look);
			break;
		case LEDGER_SENDING:
		case LEDGER_TURNING:
			raise_watermark(&slot->busy_shown, look->now);
			break;
		case LEDGER_OFF:
			break;
	}
	/* they must be out before it is checked that the session has not moved on */
	pg_memory_barrier();
}

/*
 * Step 3: is what was copied still what there is?  If so, the session has met
 * the watermarks, or will.
 */
static bool
is_unmoved(SessionSlot *slot, const Look *look)
{
	int64		at;

	if (look->published.ledger.phase == LEDGER_WAITING &&
		request_has_begun(&look->published, &at) != look->request_began)
		return false;
	if (!seqlock_read_valid(&slot->lock, look->changecount))
		return false;
	/* odd: it has been stopped in the middle of that, and nothing was read */
	return (look->sampled_changecount & 1) != 0 ||
		seqlock_read_valid(&slot->sampled_lock, look->sampled_changecount);
}

/*
 * Let the private ledger begin the exchange of which the session has published
 * nothing.  As long as it is not known how the wait before it drained, all of
 * that is pending, and so is the exchange.
 */
static void
begin_request(Look *look)
{
	Ledger	   *ledger = &look->published.ledger;
	const LedgerSampled *sampled = look->sampled_exchange;
	const LedgerDrain *drain = sampled && sampled->drained ? &sampled->drain : NULL;
	LedgerWait	wait;

	if (ledger->wait.draining && drain == NULL)
		return;
	ledger_request_begin(ledger, look->request_at, drain, &wait);
	/* that was of the wait */
	look->sampled_exchange = NULL;
}

/* Step 4: the account as of the moment of the look. */
static void
account_of(Look *look, LedgerAccount *account)
{
	if (look->request_began)
		begin_request(look);
	ledger_project(&look->published.ledger, look->sampled_exchange, look->now,
				   look->blocked, look->exec_known, account);
	if (look->request_began)
	{
		account->state = LEDGER_STATE_EXECUTING;
		account->state_since = look->request_at;
	}
}

/*
 * Step 5: what the session's execution consists of; false if that is known of more of it
 * than was seen now.  That others have seen more is over with the next look; but
 * should it ever not be, nobody hangs here.
 */
static bool
observe_execution(int index, const Look *look, const Viewer *viewer, int attempts,
				  LedgerAccount *account)
{
	ExecLook	execution = {
		.session = look->published.session,
		.generation = look->published.generation,
		.now = look->now,
		.exec = account->totals.exec,
		.executing = account->state == LEDGER_STATE_EXECUTING,
		.wait_event = look->wait_event,
		.sampled_before = viewer->sampled_before,
		.proc = look->published.proc,
		.clock_offset = look->published.clock_offset
	};

	if (exec_samples_look(index, &execution, viewer->purpose, account->totals.exec_part))
		return true;
	if (attempts < OBSERVE_ATTEMPTS)
		return false;
	memset(account->totals.exec_part, 0, sizeof(account->totals.exec_part));
	return true;
}

/* Step 6: the kernel's counters, and the rest, as they were copied. */
static void
fill_observation(SessionSlot *slot, const Look *look, SlotObservation *observation)
{
	const SlotPublished *copy = &look->published;

	observation->session = copy->session;
	observation->pid = copy->pid;
	observation->datid = copy->datid;
	observation->userid = copy->userid;
	observation->transport = copy->transport;
	observation->endpoints = copy->endpoints;
	observation->status = copy->status;
	observation->backend_start = copy->backend_start;
	observation->stats_since = copy->stats_since;
	observation->closed = copy->closed;
	observation->generation = copy->generation;
	observation->clock_offset = copy->clock_offset;
	observation->observed_at = look->now;
	observation->wait_event = look->wait_event;
	observation->run_queue_known = copy->run_queue_known;
	observation->connect = copy->connect;
	observation->tcp = copy->tcp;
	if (look->sampled.tcp_session == copy->session)
		tcpstate_latest(&observation->tcp, &look->sampled.tcp);
	observation->tcp_counters = observation->tcp.counters;
	tcpstate_counters_subtract(&observation->tcp_counters, &copy->tcp_base);
	copy_locks(slot, copy, &observation->locks);
}

/*
 * What the account was at an earlier moment, or when the present phase began if
 * that was later; "ledger" is the one published, and "before" that of before a
 * request had begun that is not published yet.
 */
static void
account_at(const Ledger *ledger, const Ledger *before, int64 moment, LedgerTotals *then)
{
	LedgerAccount account;

	ledger_project(moment >= ledger->since ? ledger : before, NULL, moment,
				   LEDGER_NOT_BLOCKED, 0, &account);
	*then = account.totals;
}


static bool
observe(int index, const Viewer *viewer, SlotObservation *observation)
{
	SessionSlot *slot = &slots[index];
	Look		look;
	int			attempts = 0;

	for (;;)
	{
		if (!look_at(slot, viewer, &look))
			return false;
		promise(slot, &look);
		if (is_unmoved(slot, &look))
		{
			account_of(&look, &observation->account);
			if (observe_execution(index, &look, viewer, ++attempts, &observation->account))
				break;
		}
		CHECK_FOR_INTERRUPTS();
	}
	fill_observation(slot, &look, observation);
	if (viewer->then)
		account_at(&look.published.ledger, &look.before, Min(viewer->moment, look.now),
				   viewer->then);
	return true;
}

/*
 * The session in a slot is soon to be observed.
 */
void
slot_prefetch(int index)
{
	prefetch_to_read(&slots[index], sizeof(SessionSlot));
}

/*
 * The session in a slot as of now; false if there is none.  Every time in it
 * is at least what any earlier observation showed, except pending.
 */
bool
slot_observe(int index, SlotObservation *observation)
{
	Viewer		viewer = {.purpose = EXEC_SHOW};

	return observe(index, &viewer, observation);
}

/*
 * The same, for who does not show it.  The sampler says when it sampled the
 * session before.
 */
bool
slot_observe_for(int index, ExecPurpose purpose, int64 sampled_before,
				 SlotObservation *observation)
{
	Viewer		viewer = {.purpose = purpose,.sampled_before = sampled_before};

	return observe(index, &viewer, observation);
}

/*
 * As slot_observe(), and what its account was at an earlier moment: as far as
 * that is known, which is back to the beginning of what the session is doing
 * now.
 */
bool
slot_observe_since(int index, int64 moment, SlotObservation *observation,
				   LedgerTotals *then)
{
	Viewer		viewer = {.purpose = EXEC_SHOW,.moment = moment,.then = then};

	return observe(index, &viewer, observation);
}

/*
 * What core's status says of a session that was observed, copied by core's
 * protocol.
 */
void
slot_copy_status(const SlotObservation *observation, SlotStatus *copy)
{
	volatile PgBackendStatus *status = observation->status;

	for (;;)
	{
		int			before;
		int			after;

		memset(copy, 0, sizeof(*copy));
		pgstat_begin_read_activity(status, before);
		if (status->st_procpid == observation->pid)
		{
			strlcpy(copy->application_name, (char *) status->st_appname, NAMEDATALEN);
			copy->queryid = (uint64) status->st_query_id;
			copy->xact_start = status->st_xact_start_timestamp;
		}
		pgstat_end_read_activity(status, after);
		if (pgstat_read_activity_complete(before, after))
			break;
		CHECK_FOR_INTERRUPTS();
	}
}

/*
 * Begin to write what is known of the session's locks.  NULL if it is not in
 * this slot any more.
 */
SlotLocks *
slot_locks_begin(int index, uint64 session)
{
	SessionSlot *slot = &slots[index];
	SlotLocks  *locks = &slot->locks;
	uint32		generation = slot_control->generation;

	if (slot->published.session != session)
		return NULL;
	seqlock_write_begin(&slot->locks_lock);
	if (locks->session != session || locks->generation != generation)
	{
		memset(locks, 0, sizeof(*locks));
		locks->session = session;
		locks->generation = generation;
		locks->blocked_by = SLOT_NOT_BLOCKED;
	}
	return locks;
}

void
slot_locks_end(int index)
{
	seqlock_write_end(&slots[index].locks_lock);
}

/*
 * The session in a slot waits for its client, as far as it has published: has
 * it begun to work on a request all the same, and when?
 */
bool
slot_request_began(int index, int64 *at)
{
	SlotPublished copy;
	uint32		changecount;

	return copy_published(&slots[index], &copy, &changecount) &&
		copy.ledger.phase == LEDGER_WAITING && request_has_begun(&copy, at);
}

/*
 * For the sampler: a session that executes, and is not blocked by its client, as
 * of "look->now".  False if it has published something since its change count was
 * read, or need not be looked at.  It is what slot_observe() does, without all
 * that is not needed for that.
 */
bool
slot_look_at_execution(int index, uint32 changecount, ExecLook *look)
{
	SessionSlot *slot = &slots[index];
	const SlotPublished *published = &slot->published;
	const Ledger *ledger = &published->ledger;
	const SlotSampled *sampled = &slot->sampled;
	int64		exec = ledger->exec;
	int64		from = Max(ledger->since, ledger->counted_from);

	look->session = published->session;
	look->generation = published->generation;
	look->executing = true;
	look->exec = ledger->totals.exec;
	look->proc = published->proc;
	look->clock_offset = published->clock_offset;
	if (unlikely(look->generation != slot_control->generation))
	{
		/*
		 * the session has not heard of the reset: the long way, without
		 * statement
		 */
		SlotObservation observation;

		(void) slot_observe_for(index, EXEC_SAMPLE, look->sampled_before, &observation);
		return false;
	}
	exec += Max(look->now - from, 0);
	if (sampled->session == look->session && sampled->generation == look->generation &&
		sampled->exchange_number == ledger->exchange_number)
		exec -= Min(Max(sampled->ledger.recv, 0), exec);
	look->exec += exec;

	/* as an observation does */
	raise_watermark(&slot->busy_shown, look->now);
	pg_memory_barrier();
	return seqlock_read_valid(&slot->lock, changecount);
}

/* The slot of the session with this process ID, or -1. */
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
 * Everything before "at" is forgotten.  The caller holds the reset lock.
 */
void
slot_announce_reset(int64 at, TimestampTz timestamp)
{
	seqlock_write_begin(&slot_control->reset_lock);
	slot_control->reset_at = at;
	slot_control->reset_timestamp = timestamp;
	slot_control->generation++;
	seqlock_write_end(&slot_control->reset_lock);

	/*
	 * Whoever finds this finds the generation.  A session whose tally is in
	 * another state looks for it when it settles that.
	 */
	for (int i = 0; i < slot_count(); i++)
	{
		uint32		state = TALLY_KEPT;

		pg_atomic_compare_exchange_u32(&slots[i].tally_state, &state, TALLY_RESET);
	}
}

TimestampTz
slot_reset_timestamp(void)
{
	return slot_control->reset_timestamp;
}

/* What was loaded is older than this server: so is the latest reset. */
void
slot_restore_reset_timestamp(TimestampTz timestamp)
{
	slot_control->reset_timestamp = timestamp;
}

uint32
slot_generation(void)
{
	return slot_control->generation;
}
