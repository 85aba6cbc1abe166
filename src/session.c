/*-------------------------------------------------------------------------
 *
 * session.c
 *	  See session.h.
 *
 * Nothing needs to be undone if the socket's flush() does not return: a FATAL
 * error then leads to the exit callback, which closes the account wherever it
 * is.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "drain.h"
#include "session.h"
#include "storage/ipc.h"
#include "tcpinfo.h"

/* A response this large may still be leaving the kernel when we are done. */
#define DRAIN_CHECK_BYTES			16384

Session		my_session = {
	.attend = true,				/* the session is to be attached */
	.row_limit = ROW_LIMIT_NOT_COUNTING,
	.xact_status = 'I'
};

/* Work space: what the kernel has said, if measured_at is not 0, ... */
static TcpInfo kernel_info;

/* ... and how long the latest response took to leave. */
static LedgerDrain measured_drain;

/*
 * What the sampler has seen of the exchange in progress, or of the wait after
 * it; NULL if nothing.
 */
static const LedgerSampled *
sampled_of_exchange(void)
{
	static LedgerSampled seen;

	return slot_sampled_of_exchange(my_session.slot, &seen) ? &seen : NULL;
}

/* ---------------------------------------------------------------------------
 * The kernel's view of the connection
 * ---------------------------------------------------------------------------
 */

static inline bool
is_tcp(void)
{
	return my_session.slot->published.endpoints.family != 0;
}

/* Ask about the connection, if that is wanted, into kernel_info. */
static bool
ask_kernel(int64 now)
{
	return pgnetlat_rtt_interval >= 0 && is_tcp() &&
		tcpinfo_of_socket(MyProcPort->sock, now, &kernel_info);
}

/* Publish what the kernel has said, if it was asked; in a write section. */
static void
publish_kernel_info(void)
{
	if (kernel_info.measured_at != 0)
	{
		tcpinfo_latest(&my_session.slot->published.tcp, &kernel_info);
		kernel_info.measured_at = 0;
	}
}

/* Run-queue time since the session was attached or reset. */
static void
publish_run_queue_time(int64 total)
{
	SlotPublished *published = &my_session.slot->published;

	if (total < 0)
		return;
	if (published->run_queue_base < 0)
		published->run_queue_base = total;
	published->run_queue_total = total;
}

/* Once in a while, at the beginning of a request: ask what the kernel knows. */
void
session_refresh_kernel_info(int64 now)
{
	int64		run_queue_time;

	if (pgnetlat_rtt_interval < 0)
	{
		my_session.next_kernel_info = now + NS_PER_S;
		return;
	}
	my_session.next_kernel_info = now + pgnetlat_rtt_interval * NS_PER_MS;
	run_queue_time = tcpinfo_run_queue_time();
	if (ask_kernel(now) && my_session.recording)
		session_record()->rtt_us = kernel_info.rtt / NS_PER_US;

	slot_write_begin(my_session.slot);
	publish_kernel_info();
	publish_run_queue_time(run_queue_time);
	slot_write_end(my_session.slot);
}

/*
 * How long the kernel went on sending the response that the wait in progress
 * followed: the kernel's own clocks tell.
 */
static const LedgerDrain *
measure_drain(int64 now)
{
	const TcpInfo *before = &my_session.slot->published.tcp;

	if (!ask_kernel(now))
		return NULL;
	measured_drain.total = kernel_info.busy - before->busy;
	measured_drain.client = kernel_info.rwnd_limited - before->rwnd_limited;
	return &measured_drain;
}

/*
 * What the sampler knows of that counts instead, for a reader may have shown
 * it; inside a write section only.
 */
static const LedgerDrain *
shown_drain(const LedgerDrain *measured)
{
	const LedgerSampled *sampled = sampled_of_exchange();

	return sampled && sampled->drained ? &sampled->drain : measured;
}

/*
 * A response that was lost is sent again, a fifth of a second later as a rule:
 * until then the client had nothing to answer to.  The kernel knows when it
 * last sent data, and in a wait it has no other to send.  Most requests that
 * are lost on their way here show as well: they carried the acknowledgement of
 * the response, for want of which that is sent again.
 */
static const LedgerDrain *
measure_retransmission(int64 now)
{
	const Ledger *ledger = session_ledger();
	const TcpInfo *before = &my_session.slot->published.tcp;

	if (now - ledger->since < LONG_WAIT_NS || my_session.spoke_in_wait ||
		before->measured_at == 0 || !ask_kernel(now) ||
		kernel_info.retransmits <= before->retransmits ||
		kernel_info.data_sent_at - ledger->since < LONG_WAIT_NS)
		return NULL;
	measured_drain.total = kernel_info.data_sent_at - ledger->since + kernel_info.rtt;
	measured_drain.client = 0;
	return &measured_drain;
}

/*
 * Has a reader shown parts of the wait, which ends at "at", that must stay?
 * A short wait outside a transaction is pending until it is over.  Inside a
 * write section only.
 */
static bool
wait_was_shown(int64 at)
{
	const Ledger *ledger = session_ledger();
	int64		shown = pg_atomic_read_u64(&my_session.slot->wait_shown);

	return shown > ledger->since &&
		(ledger->wait.in_xact || shown - ledger->since > ledger->wait.idle_threshold ||
		 shown >= at);
}

/*
 * Sending is over: for how long of it was the client the cause, as far as the
 * kernel knows?  It is asked only where sending took long.
 */
static int64
blocked_by_client(int64 now)
{
	const Ledger *ledger = session_ledger();
	const TcpInfo *before = &my_session.slot->published.tcp;

	if (now - ledger->since < LEDGER_BLOCKED_NS || !ledger->may_block ||
		before->measured_at == 0 || !ask_kernel(now))
		return 0;
	return kernel_info.rwnd_limited - before->rwnd_limited;
}

/* Will the response go on leaving the kernel in the wait that begins? */
static bool
response_drains(int64 now, int64 bytes)
{
	return my_session.response_bytes + bytes > DRAIN_CHECK_BYTES && is_tcp() &&
		tcpinfo_unsent(MyProcPort->sock) > DRAIN_CHECK_BYTES && ask_kernel(now);
}

/* ---------------------------------------------------------------------------
 * Records
 * ---------------------------------------------------------------------------
 */

/* The statement's work is done at "at"; what was sent for it is known. */
static void
close_record(int64 at, int64 bytes, const LedgerSampled *sampled)
{
	FlightRecord *record = session_record();

	record->exec = at - record->start - record->send;
	if (sampled)
	{
		record->recv = Min(sampled->recv, record->exec);
		record->exec -= record->recv;
	}
	record->bytes = bytes - my_session.record_bytes;
	my_session.record_bytes = bytes;
}

/*
 * See to it that the recorder has room.  Takes locks, so it is called only
 * where none can be held.
 */
static void
make_room_for_records(void)
{
	SlotObservation observation;

	if (!recorder_find_room(&my_session.recorder))
		return;
	(void) drain_fold(my_session.index, &observation, NULL);
	recorder_find_room(&my_session.recorder);
}

/*
 * Another statement begins in the same exchange, after "unsent_bytes" have
 * been put into core's send buffer.  Never called from where locks may be
 * held, so the recorder can be drained.
 */
void
session_next_statement(int64 at, int64 unsent_bytes)
{
	FlightRecord *record = session_record();

	at = Max(at, record->start + record->send);
	close_record(at, my_session.response_bytes + unsent_bytes, sampled_of_exchange());
	record->network = record->client = record->idle = 0;
	session_record_push();
	if (my_session.attend)
		make_room_for_records();
	session_record_begin(at);
	my_session.statement_done = false;
}

/* ---------------------------------------------------------------------------
 * Events
 * ---------------------------------------------------------------------------
 */

/*
 * The wait in progress ends at "at", with a request or without one.
 */
void
session_begin(int64 at, bool is_request)
{
	SessionSlot *slot = my_session.slot;
	Ledger	   *ledger = session_ledger();
	const LedgerDrain *drain;
	LedgerWait	wait;

	drain = ledger->wait.draining ? measure_drain(at) : measure_retransmission(at);

	slot_write_begin(slot);
	if (ledger->wait.draining)
		drain = shown_drain(drain);
	else if (wait_was_shown(at))
		drain = NULL;
	at = slot_not_before_wait_shown(slot, at);
	if (is_request)
		ledger_request_begin(ledger, at, drain, &wait);
	else
		ledger_wait_abandoned(ledger, at, drain, &wait);
	publish_kernel_info();
	slot_write_end(slot);

	my_session.spoke_in_wait = false;
	if (my_session.recording)
		session_record_finish(&wait);
	session_enter_exchange(ledger->since);
}

/*
 * A request was read after a wait that was long, or had a negative length:
 * perhaps the wall clock has stepped, and the offset is out of date.
 */
void
session_begin_after_long_wait(TimestampTz stamp)
{
	SessionSlot *slot = my_session.slot;
	int64		offset = slot->published.clock_offset;

	clock_refresh_offset(&offset);
	slot_write_begin(slot);
	slot->published.clock_offset = offset;
	slot_write_end(slot);
	session_begin(Min(clock_from_timestamp(offset, stamp), clock_now()), true);
}

/* What looked like the end of an exchange was somebody's flush in its middle. */
void
session_wait_was_work(void)
{
	slot_write_begin(my_session.slot);
	ledger_wait_was_work(session_ledger());
	slot_write_end(my_session.slot);
	my_session.row_limit = ROW_LIMIT_IN_EXCHANGE;
}

void
session_begin_send(int64 now)
{
	SessionSlot *slot = my_session.slot;

	slot_write_begin(slot);
	ledger_send_begin(session_ledger(), slot_not_before_busy_shown(slot, now),
					  !session_answer_cannot_block());
	slot_write_end(slot);
}

/* The socket has taken "bytes", a part of the response. */
void
session_end_send(int64 now, int64 bytes)
{
	SessionSlot *slot = my_session.slot;
	Ledger	   *ledger = session_ledger();
	int64		began = ledger->since;
	int64		client = blocked_by_client(now);

	slot_write_begin(slot);
	ledger_send_end(ledger, slot_not_before_busy_shown(slot, now),
					sampled_of_exchange(), client);
	session_publish_counters(bytes);
	publish_kernel_info();
	slot_write_end(slot);
	if (my_session.recording)
		session_record()->send += ledger->since - began;
}

/*
 * The socket has taken the last "bytes" of the response: a wait begins.  The
 * next request had arrived before, if "pipelined".
 */
void
session_end(int64 now, int64 bytes, bool pipelined, char xact_status)
{
	SessionSlot *slot = my_session.slot;
	Ledger	   *ledger = session_ledger();
	FlightRecord *record = session_record();
	LedgerWaitTerms terms = session_wait_terms(pipelined, xact_status);
	const LedgerSampled *sampled;
	int64		began = ledger->since;
	int64		client = blocked_by_client(now);

	terms.draining = response_drains(now, bytes);
	slot_write_begin(slot);
	sampled = sampled_of_exchange();
	ledger_exchange_end(ledger, slot_not_before_busy_shown(slot, now), sampled, client,
						&terms);
	session_publish_counters(bytes);
	publish_kernel_info();
	slot->published.request_stamp = GetCurrentStatementStartTimestamp();
	slot_write_end(slot);

	my_session.row_limit = ROW_LIMIT_IN_WAIT;
	if (!my_session.recording)
		return;
	close_record(began, my_session.response_bytes, sampled);
	record->send += ledger->since - began;
	record->xact_status = xact_status;
	record->flags |= my_session.xact_status != 'I' ? RECORD_IN_BLOCK : 0;
}

/* ---------------------------------------------------------------------------
 * The session's life
 * ---------------------------------------------------------------------------
 */

/* Finish the record that is open when counting stops. */
static void
stop_recording(LedgerPhase phase, int64 began, int64 now, const LedgerSampled *sampled,
			   const LedgerWait *wait)
{
	if (!my_session.recording)
		return;
	if (phase == LEDGER_SENDING)
		session_record()->send += now - began;
	if (phase != LEDGER_WAITING)
		close_record(now, my_session.response_bytes, sampled);
	session_record_finish(wait);
	my_session.recording = my_session.statement_done = false;
}

/* Close the account, wherever it is; it may be started again. */
static void
stop_counting(void)
{
	SessionSlot *slot = my_session.slot;
	Ledger	   *ledger = session_ledger();
	LedgerPhase phase = ledger->phase;
	LedgerWait	wait = {0};
	const LedgerSampled *sampled;
	int64		began = ledger->since;
	int64		now;

	if (phase == LEDGER_OFF)
		return;
	now = clock_now();
	slot_write_begin(slot);
	now = slot_not_before_wait_shown(slot, slot_not_before_busy_shown(slot, now));
	now = Max(now, ledger->since);
	sampled = sampled_of_exchange();
	session_publish_counters(0);
	if (phase == LEDGER_WAITING)
		wait = ledger_split_wait(ledger, now,
								 sampled && sampled->drained ? &sampled->drain : NULL);
	ledger_stop(ledger, now, sampled);
	slot_write_end(slot);

	stop_recording(phase, began, now, sampled, &wait);
	my_session.counting = false;
	my_session.row_limit = ROW_LIMIT_NOT_COUNTING;
}

static void
start_counting(void)
{
	SessionSlot *slot = my_session.slot;
	LedgerWaitTerms terms;
	int64		now = clock_now();

	my_session.counting = true;
	my_session.response_bytes = 0;
	my_session.statements = my_session.transactions = 0;
	my_session.recording = false;
	my_session.row_limit = ROW_LIMIT_IN_WAIT;
	session_refresh_kernel_info(now);
	terms = session_wait_terms(pq_buffer_remaining_data() > 0, my_session.xact_status);

	slot_write_begin(slot);
	ledger_start(&slot->published.ledger, clock_now(),
				 slot->published.transport == TRANSPORT_UNIX, &terms);
	slot->published.request_stamp = GetCurrentStatementStartTimestamp();
	slot_write_end(slot);
}

/*
 * The session ends, for whatever reason; its PGPROC is still there.
 */
static void
session_exit(int code, Datum arg)
{
	if (my_session.slot == NULL)
		return;
	slot_close(my_session.slot);
	stop_counting();
	drain_detach(my_session.index);
	slot_detach(my_session.slot);
	my_session.slot = NULL;
}

static void
attach(void)
{
	if (MyBackendType != B_BACKEND || MyProcPort == NULL || MyBEEntry == NULL)
		return;
	my_session.slot = slot_attach();
	if (my_session.slot == NULL)
		return;
	my_session.index = slot_my_index();
	recorder_open(my_session.index, &my_session.recorder);
	if (pgnetlat_enabled)
		start_counting();
	drain_attach(my_session.index, slot_open(my_session.slot));
	before_shmem_exit(session_exit, (Datum) 0);
}

/*
 * After ReadyForQuery has left: what must not happen in the middle of an
 * exchange.  No lock is held here, and the client has its answer.
 */
void
session_between_exchanges(void)
{
	my_session.attend = false;
	if (my_session.slot == NULL)
	{
		attach();
		my_session.renamed = false;
	}
	if (my_session.slot == NULL)
		return;
	if (pgnetlat_enabled != my_session.counting)
	{
		if (pgnetlat_enabled)
			start_counting();
		else
			stop_counting();
	}
	if (my_session.renamed)
		drain_rename(my_session.index);
	my_session.renamed = false;
	make_room_for_records();
}
