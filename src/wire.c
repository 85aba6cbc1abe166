/*-------------------------------------------------------------------------
 *
 * wire.c
 *	  See wire.h.
 *
 * A backend sends every message through the table PqCommMethods.  Ours stands
 * in front of it and looks at two functions, putmessage and flush.
 *
 * When does an exchange begin?  Nothing calls us when a request is read.  But
 * core sets the statement timestamp then, and the first message of the
 * response comes through here: if the timestamp has moved since the wait
 * began, that is when the request was read.  (It moves with each message of
 * the extended protocol; the first message of the response comes before it
 * moves again.)  Sync and Close do not set it.  Work under them is seen by a
 * transaction callback or a hook of the executor, else it is too short to
 * matter.  Messages that a backend sends of its own accord (notices,
 * notifications, parameter changes) neither end nor begin anything.
 *
 * When does it end?  When flush() returns after ReadyForQuery, or after the
 * answers to a Flush message.  A flush right behind a notice, an error or the
 * invitation to copy is in the middle of a request.
 *
 * The clock is read before and after the flush that ends an exchange, and
 * around the one message in 8 kB that fills core's send buffer, for only that
 * one may block.  That needs an exact count of what is in the buffer, see
 * compat_send_buffer_after().
 *
 * Everything here runs in the backend's hot path: it writes to the session's
 * own slot, takes no lock, allocates nothing and raises nothing.  The one
 * exception is the drain of a flight recorder that is nearly full, at the end
 * of an exchange, once per recorder_size exchanges.
 *
 * Nothing needs to be undone if flush() does not return: a FATAL error then
 * leads to the exit callback, which closes the account wherever it is.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "compat.h"
#include "drain.h"
#include "guc.h"
#include "libpq/libpq-be.h"
#include "miscadmin.h"
#include "recorder.h"
#include "slot.h"
#include "storage/ipc.h"
#include "utils/guc.h"
#include "wire.h"

/* Types of messages to the client, as in the protocol's documentation. */
#define MSG_PARSE_COMPLETE			'1'
#define MSG_CLOSE_COMPLETE			'3'
#define MSG_NOTIFICATION			'A'
#define MSG_COMMAND_COMPLETE		'C'
#define MSG_DATA_ROW				'D'
#define MSG_ERROR					'E'
#define MSG_COPY_IN					'G'
#define MSG_NOTICE					'N'
#define MSG_PARAMETER_STATUS		'S'
#define MSG_FUNCTION_RESULT			'V'
#define MSG_COPY_BOTH				'W'
#define MSG_READY_FOR_QUERY			'Z'
#define MSG_COPY_DATA				'd'

/*
 * A wait longer than this, or of negative length, makes it worth while to
 * check whether the wall clock, in which core's timestamp is, has stepped.
 */
#define CLOCK_CHECK_NS				(50 * NS_PER_MS)

/* A response this large may still be leaving the kernel when we are done. */
#define DRAIN_CHECK_BYTES			16384

/* This session's view of the wire. */
typedef struct Wire
{
	const PQcommMethods *next;	/* whom we stand in front of */
	PQcommMethods methods;		/* our table */

	SessionSlot *slot;			/* NULL until the first ReadyForQuery */
	int			index;			/* the slot's number */
	bool		in_response;	/* in an exchange: rows need only be counted */
	bool		flush_wait;		/* the wait followed a Flush message */
	char		last_message;
	char		xact_status;	/* of the latest ReadyForQuery */
	size_t		buffered;		/* bytes in core's send buffer */
	int64		next_tcp_info;	/* do not ask the kernel before */
	const char *application_name;	/* the pointer, as of the latest look */

	/* of the exchange in progress, not yet published */
	int64		bytes;
	int64		response_bytes;
	int64		statements;
	int64		transactions;

	/* the statement in progress, and when the exchange has ended, the last */
	FlightRecord record;
	bool		record_open;
	bool		statement_begun;	/* its hook has been called */
	uint32		record_generation;
	int64		record_bytes;	/* of wire.bytes: before this statement */
} Wire;

static Wire wire;

static inline Ledger *
my_ledger(void)
{
	return &wire.slot->published.ledger;
}

/* ---------------------------------------------------------------------------
 * Flight recorder
 * ---------------------------------------------------------------------------
 */

static void
record_begin(int64 at)
{
	memset(&wire.record, 0, sizeof(wire.record));
	wire.record.start = at;
	if (wire.xact_status != 'I')
		wire.record.flags = RECORD_IN_BLOCK;
	if (my_ledger()->wait.pipelined)
		wire.record.flags |= RECORD_PIPELINED;
	wire.record_open = pgnetlat_track_statements;
	wire.record_generation = wire.slot->published.generation;
	wire.statement_begun = false;
}

static void
record_push(void)
{
	if (wire.record_open &&
		wire.record_generation == wire.slot->published.generation &&
		!recorder_push(wire.index, &wire.record))
		pg_atomic_fetch_add_u64(&slot_control->records_dropped, 1);
	wire.record_open = false;
}

/* The statement's work is done at "at"; what was sent for it is known. */
static void
record_close(int64 at)
{
	LedgerSampled seen;

	wire.record.exec = at - wire.record.start - wire.record.send;
	if (slot_sampled_of_exchange(wire.slot, &seen))
	{
		wire.record.recv = Min(seen.recv, wire.record.exec);
		wire.record.exec -= wire.record.recv;
	}
}

/* The exchange's last statement, with the wait that followed it. */
static void
record_finish(const LedgerWait *wait)
{
	wire.record.flags |= RECORD_ENDS_EXCHANGE;
	wire.record.network = wait->network;
	wire.record.client = wait->client;
	wire.record.idle = wait->idle;
	if (wait->in_xact)
		wire.record.flags |= RECORD_WAIT_IN_XACT;
	record_push();
}

/*
 * Another statement begins in the same exchange.  Not called from where locks
 * may be held, so the recorder can be drained.
 */
static void
record_next_statement(int64 at)
{
	int64		bytes = wire.response_bytes + wire.bytes;

	at = Max(at, wire.record.start + wire.record.send);
	record_close(at);
	wire.record.bytes = bytes - wire.record_bytes;
	record_push();
	wire.record_bytes = bytes;
	record_begin(at);
	if (recorder_nearly_full(wire.index))
	{
		SlotObservation observation;

		(void) drain_fold(wire.index, &observation, NULL);
	}
}

/* ---------------------------------------------------------------------------
 * The kernel's view of the connection
 * ---------------------------------------------------------------------------
 */

static bool
is_tcp(void)
{
	return wire.slot->published.endpoints.family != 0;
}

/*
 * Ask for the round-trip time, once in a while.  Writes to the slot: inside a
 * write section only, in which a system call that cannot block is tolerable.
 */
static void
refresh_tcp_info(int64 now)
{
	SlotPublished *published = &wire.slot->published;

	if (pgnetlat_rtt_interval < 0)
		return;
	if (is_tcp() && tcpinfo_of_socket(MyProcPort->sock, now, &published->tcp))
		wire.record.rtt_us = published->tcp.rtt / NS_PER_US;
	wire.next_tcp_info = now + pgnetlat_rtt_interval * NS_PER_MS;
}

/* Run-queue time since the session was attached or reset. */
static void
refresh_run_queue_time(void)
{
	SlotPublished *published = &wire.slot->published;
	int64		total = tcpinfo_run_queue_time();

	if (total < 0)
		return;
	if (published->run_queue_base < 0)
		published->run_queue_base = total;
	published->run_queue_total = total;
}

/*
 * How long the kernel went on sending the response that the wait in progress
 * followed.  The sampler may know; else the kernel's own clocks tell.
 */
static bool
measure_drain(int64 now, LedgerDrain *drain)
{
	TcpInfo    *before = &wire.slot->published.tcp;
	TcpInfo		after;
	LedgerSampled seen;

	if (slot_sampled_of_exchange(wire.slot, &seen) && seen.drained)
	{
		*drain = seen.drain;
		return true;
	}
	if (!tcpinfo_of_socket(MyProcPort->sock, now, &after))
		return false;
	drain->total = after.busy - before->busy;
	drain->client = after.rwnd_limited - before->rwnd_limited;
	return true;
}

/* ---------------------------------------------------------------------------
 * Events
 * ---------------------------------------------------------------------------
 */

/*
 * Core's statement timestamp as monotonic time.
 *
 * The offset in use may be out of date if the wall clock has stepped; where
 * the result is not plausible it is taken anew.
 */
static int64
request_time(TimestampTz stamp, int64 *offset)
{
	int64		since = my_ledger()->since;
	int64		at = clock_from_timestamp(*offset, stamp);

	if (unlikely(at < since || at - since > CLOCK_CHECK_NS))
	{
		clock_refresh_offset(offset);
		at = clock_from_timestamp(*offset, stamp);
		at = Min(at, clock_now());
	}
	return at;
}

/*
 * The wait in progress ends: with a request that core stamped, or, with no
 * stamp, now.
 */
static void
begin_exchange(bool stamped, bool is_request)
{
	SessionSlot *slot = wire.slot;
	int64		offset = slot->published.clock_offset;
	int64		at;
	LedgerDrain drain;
	bool		drained = false;
	LedgerWait	wait;

	at = stamped ?
		request_time(GetCurrentStatementStartTimestamp(), &offset) : clock_now();
	if (unlikely(my_ledger()->wait.draining))
		drained = measure_drain(at, &drain);

	slot_write_begin(slot);
	slot->published.clock_offset = offset;
	at = slot_not_before_wait_shown(slot, at);
	if (likely(is_request))
		wait = ledger_request_begin(&slot->published.ledger, at, drained ? &drain : NULL);
	else
		wait = ledger_wait_abandoned(&slot->published.ledger, at, drained ? &drain : NULL);
	slot_write_end(slot);

	record_finish(&wait);
	record_begin(my_ledger()->since);
	wire.in_response = true;
	wire.response_bytes = 0;
	wire.record_bytes = 0;

	if (unlikely(at >= wire.next_tcp_info))
	{
		slot_write_begin(slot);
		refresh_tcp_info(at);
		refresh_run_queue_time();
		slot_write_end(slot);
	}
}

/* What was counted since the last time is published with an event. */
static inline void
publish_counters(void)
{
	LedgerTotals *totals = &my_ledger()->totals;

	totals->bytes_sent += wire.bytes;
	totals->statements += wire.statements;
	totals->transactions += wire.transactions;
	wire.response_bytes += wire.bytes;
	wire.bytes = 0;
	wire.statements = 0;
	wire.transactions = 0;
}

static void
begin_send(void)
{
	SessionSlot *slot = wire.slot;
	int64		now = clock_now();

	slot_write_begin(slot);
	ledger_send_begin(&slot->published.ledger, slot_not_before_busy_shown(slot, now));
	publish_counters();
	slot_write_end(slot);
}

/*
 * For how long of a sending the client was the cause.  Worth a question to
 * the kernel only where it took long; "info" then is fresh.
 */
static int64
blocked_by_client(int64 now, TcpInfo *info)
{
	const SlotPublished *published = &wire.slot->published;

	if (now - published->ledger.since < NS_PER_MS || !is_tcp() ||
		published->tcp.measured_at == 0 ||
		!tcpinfo_of_socket(MyProcPort->sock, now, info))
		return 0;
	return info->rwnd_limited - published->tcp.rwnd_limited;
}

/*
 * The socket has taken what there was of the response; publish that, inside
 * a write section.  Returns when.
 */
static int64
publish_send_end(int64 now, int64 client, const TcpInfo *info)
{
	SlotPublished *published = &wire.slot->published;
	LedgerSampled seen;
	bool		sampled = slot_sampled_of_exchange(wire.slot, &seen);

	now = slot_not_before_busy_shown(wire.slot, now);
	ledger_send_end(&published->ledger, now, sampled ? &seen : NULL, client);
	tcpinfo_latest(&published->tcp, info);
	return now;
}

/* The socket has taken a part of the response. */
static void
end_send(void)
{
	int64		now = clock_now();
	int64		began = my_ledger()->since;
	TcpInfo		info = {0};
	int64		client = blocked_by_client(now, &info);

	slot_write_begin(wire.slot);
	(void) publish_send_end(now, client, &info);
	slot_write_end(wire.slot);
	wire.record.send += my_ledger()->since - began;
}

/* How the wait that begins will be split. */
static void
wait_terms(LedgerWaitTerms *terms)
{
	terms->rtt = wire.slot->published.tcp.rtt;
	terms->idle_threshold = pgnetlat_idle_threshold * NS_PER_MS;
	terms->in_xact = wire.flush_wait ? IsTransactionOrTransactionBlock() :
		wire.xact_status != 'I';

	/* once requests have been seen queued, look into the kernel as well */
	terms->pipelined = pq_buffer_remaining_data() > 0 ||
		(my_ledger()->wait.pipelined && tcpinfo_has_input(MyProcPort->sock));
	terms->draining = wire.response_bytes > DRAIN_CHECK_BYTES && is_tcp() &&
		tcpinfo_unsent(MyProcPort->sock) > DRAIN_CHECK_BYTES;
}

/* The socket has taken the last byte of the response: a wait begins. */
static void
end_exchange(void)
{
	SessionSlot *slot = wire.slot;
	SlotPublished *published = &slot->published;
	int64		now = clock_now();
	int64		began = my_ledger()->since;
	LedgerWaitTerms terms;
	LedgerSampled seen;
	bool		sampled;
	TcpInfo		info = {0};
	int64		client = blocked_by_client(now, &info);

	wait_terms(&terms);
	if (unlikely(terms.draining))
		(void) tcpinfo_of_socket(MyProcPort->sock, now, &info);
	record_close(began);

	slot_write_begin(slot);
	now = publish_send_end(now, client, &info);
	sampled = slot_sampled_of_exchange(slot, &seen);
	ledger_exchange_end(&published->ledger, now, sampled ? &seen : NULL, &terms);
	published->request_stamp = GetCurrentStatementStartTimestamp();
	slot_write_end(slot);

	wire.in_response = false;
	wire.record.send += my_ledger()->since - began;
	wire.record.bytes = wire.response_bytes - wire.record_bytes;
	wire.record.xact_status = wire.flush_wait ? (terms.in_xact ? 'T' : 'I') : wire.xact_status;
	if (wire.xact_status != 'I')
		wire.record.flags |= RECORD_IN_BLOCK;
}

/* ---------------------------------------------------------------------------
 * The session's life
 * ---------------------------------------------------------------------------
 */

/* Close the account, wherever it is; it may be started again. */
static void
stop_counting(void)
{
	SessionSlot *slot = wire.slot;
	Ledger	   *ledger = my_ledger();
	LedgerSampled seen;
	LedgerWait	wait = {0};
	LedgerPhase phase = ledger->phase;
	bool		sampled;
	int64		now;

	if (phase == LEDGER_OFF)
		return;
	now = clock_now();
	slot_write_begin(slot);
	now = slot_not_before_wait_shown(slot, slot_not_before_busy_shown(slot, now));
	now = Max(now, ledger->since);
	sampled = slot_sampled_of_exchange(slot, &seen);
	publish_counters();
	if (phase == LEDGER_WAITING)
		wait = ledger_split_wait(ledger, now,
								 sampled && seen.drained ? &seen.drain : NULL);
	else if (phase == LEDGER_SENDING)
		wire.record.send += now - ledger->since;
	ledger_stop(ledger, now, sampled ? &seen : NULL);
	slot_write_end(slot);

	if (phase != LEDGER_WAITING)
	{
		record_close(now);
		wire.record.bytes = wire.response_bytes - wire.record_bytes;
	}
	record_finish(&wait);
	wire.in_response = false;
}

static void
start_counting(void)
{
	SessionSlot *slot = wire.slot;
	LedgerWaitTerms terms;

	wire.flush_wait = false;
	wire.response_bytes = 0;
	slot_write_begin(slot);
	refresh_tcp_info(clock_now());
	refresh_run_queue_time();
	wait_terms(&terms);
	ledger_start(&slot->published.ledger, clock_now(),
				 slot->published.transport == TRANSPORT_UNIX, &terms);
	slot->published.request_stamp = GetCurrentStatementStartTimestamp();
	slot_write_end(slot);
	wire.bytes = 0;
	wire.statements = 0;
	wire.transactions = 0;
	wire.buffered = 0;
	wire.record_open = false;
}

/*
 * The session ends, for whatever reason; its PGPROC is still there.
 */
static void
session_exit(int code, Datum arg)
{
	if (wire.slot == NULL)
		return;
	stop_counting();
	drain_detach(wire.index);
	slot_detach(wire.slot);
	wire.slot = NULL;
}

static void
attach_session(void)
{
	if (MyBackendType != B_BACKEND || MyProcPort == NULL || MyBEEntry == NULL)
		return;
	wire.slot = slot_attach();
	if (wire.slot == NULL)
		return;
	wire.index = slot_my_index();
	wire.application_name = application_name;
	drain_attach(wire.index, wire.slot->published.session);
	before_shmem_exit(session_exit, (Datum) 0);
}

/*
 * After ReadyForQuery has left: what must not happen in the middle of an
 * exchange.  No lock is held here, and the client has its answer.
 */
static void
between_exchanges(void)
{
	if (wire.slot == NULL)
		attach_session();
	if (wire.slot == NULL)
		return;
	if (unlikely(pgnetlat_enabled != (my_ledger()->phase != LEDGER_OFF)))
	{
		if (pgnetlat_enabled)
			start_counting();
		else
			stop_counting();
	}
	if (unlikely(application_name != wire.application_name))
	{
		drain_rename(wire.index);
		wire.application_name = application_name;
	}
	if (unlikely(recorder_nearly_full(wire.index)))
	{
		SlotObservation observation;

		(void) drain_fold(wire.index, &observation, NULL);
	}
}

/* ---------------------------------------------------------------------------
 * The table's functions
 * ---------------------------------------------------------------------------
 */

static inline bool
counting(void)
{
	return wire.slot != NULL && my_ledger()->phase != LEDGER_OFF;
}

static inline bool
request_was_read(void)
{
	return GetCurrentStatementStartTimestamp() != wire.slot->published.request_stamp;
}

/* A message is sent during a wait: does it end it? */
static void
message_in_wait(char type)
{
	if (likely(request_was_read()))
	{
		begin_exchange(true, true);
		return;
	}
	switch (type)
	{
		case MSG_NOTICE:
		case MSG_NOTIFICATION:
		case MSG_PARAMETER_STATUS:
			break;				/* of its own accord */
		case MSG_ERROR:
			begin_exchange(false, false);	/* about to end */
			break;
		case MSG_READY_FOR_QUERY:
		case MSG_CLOSE_COMPLETE:
			begin_exchange(false, true);	/* Sync or Close, without work */
			break;
		default:
			if (wire.flush_wait)
			{
				/* somebody's flush in the middle of a request */
				slot_write_begin(wire.slot);
				ledger_wait_was_work(my_ledger());
				slot_write_end(wire.slot);
				wire.in_response = true;
			}
			else
				begin_exchange(false, true);
			break;
	}
}

/* Keep count of what the message says. */
static void
note_message(char type, const char *body, size_t length)
{
	switch (type)
	{
		case MSG_COMMAND_COMPLETE:
		case MSG_FUNCTION_RESULT:
			wire.statements++;
			wire.record.statements++;
			break;
		case MSG_READY_FOR_QUERY:
			if (length > 0)
			{
				/* the next record begins in the state that this one leaves */
				if (wire.xact_status != 'I')
					wire.record.flags |= RECORD_IN_BLOCK;
				wire.xact_status = body[0];
			}
			break;
		default:

			/*
			 * A complete statement, and more messages: the next one has
			 * begun.  In the extended protocol the timestamp has moved; in
			 * the simple one the executor's hook has been here first.
			 */
			if (wire.record.statements > 0 && wire.record_open &&
				type != MSG_NOTICE && type != MSG_ERROR &&
				type != MSG_PARAMETER_STATUS && type != MSG_NOTIFICATION)
			{
				int64		at = clock_from_timestamp(wire.slot->published.clock_offset,
													  GetCurrentStatementStartTimestamp());

				if (at > wire.record.start)
					record_next_statement(at);
			}
			break;
	}
}

static int
wire_putmessage_slow(char type, const char *body, size_t length)
{
	size_t		size = length + COMPAT_MESSAGE_HEADER;
	int			result;

	wire.last_message = type;
	if (!counting())
		return wire.next->putmessage(type, body, length);
	if (my_ledger()->phase == LEDGER_WAITING)
		message_in_wait(type);
	if (my_ledger()->phase == LEDGER_EXECUTING)
		note_message(type, body, length);
	wire.bytes += size;
	if (my_ledger()->phase != LEDGER_EXECUTING ||
		wire.buffered + size <= COMPAT_SEND_BUFFER_SIZE)
	{
		wire.buffered = compat_send_buffer_after(wire.buffered, size);
		return wire.next->putmessage(type, body, length);
	}
	begin_send();
	result = wire.next->putmessage(type, body, length);
	end_send();
	wire.buffered = compat_send_buffer_after(wire.buffered, size);
	return result;
}

static int
wire_putmessage(char type, const char *body, size_t length)
{
	if (likely((type == MSG_DATA_ROW || type == MSG_COPY_DATA) && wire.in_response))
	{
		size_t		size = length + COMPAT_MESSAGE_HEADER;
		size_t		buffered = wire.buffered + size;

		if (likely(buffered <= COMPAT_SEND_BUFFER_SIZE))
		{
			wire.buffered = buffered;
			wire.bytes += size;
			wire.last_message = type;
			return wire.next->putmessage(type, body, length);
		}
	}
	return wire_putmessage_slow(type, body, length);
}

/* Does a flush behind this message end the exchange? */
static inline bool
ends_exchange(char last_message)
{
	switch (last_message)
	{
		case MSG_NOTICE:
		case MSG_ERROR:
		case MSG_NOTIFICATION:
		case MSG_PARAMETER_STATUS:
		case MSG_COPY_IN:
		case MSG_COPY_BOTH:
			return false;
		default:
			return true;
	}
}

static int
wire_flush(void)
{
	bool		ready = wire.last_message == MSG_READY_FOR_QUERY;
	int			result;

	if (counting() && my_ledger()->phase == LEDGER_EXECUTING)
	{
		begin_send();
		result = wire.next->flush();
		wire.buffered = 0;
		if (likely(ends_exchange(wire.last_message)))
		{
			wire.flush_wait = !ready;
			end_exchange();
		}
		else
			end_send();
	}
	else
	{
		result = wire.next->flush();
		wire.buffered = 0;
	}
	if (ready)
	{
		wire.last_message = 0;
		between_exchanges();
	}
	return result;
}

/* ---------------------------------------------------------------------------
 * What else shows that work has begun
 * ---------------------------------------------------------------------------
 */

/*
 * The planner or the executor has been called.  During a wait that means that
 * a request was read, or, after a Flush message, that a Sync was: its commit
 * may run triggers.
 */
void
wire_work_begins(void)
{
	if (!counting() || my_ledger()->phase != LEDGER_WAITING)
		return;
	if (request_was_read())
		begin_exchange(true, true);
	else if (wire.flush_wait)
		begin_exchange(false, true);
}

/*
 * A top-level statement begins to run.  Returns whether it is the one that
 * the exchange's record is about; the caller then reports its rows.
 */
bool
wire_statement_begins(uint64 queryid)
{
	wire_work_begins();
	if (!counting() || !wire.in_response || !wire.record_open)
		return false;
	if (wire.record.statements > 0)
	{
		int64		at = clock_from_timestamp(wire.slot->published.clock_offset,
											  GetCurrentStatementStartTimestamp());

		/* several statements in one message share its timestamp */
		record_next_statement(at > wire.record.start ? at : clock_now());
	}
	if (wire.statement_begun)
		return false;
	wire.statement_begun = true;
	wire.record.queryid = queryid;
	wire.record.userid = GetUserId();
	return true;
}

void
wire_statement_rows(uint64 rows)
{
	wire.record.rows += rows;
}

/* The number of the exchange in progress: changes with each. */
uint64
wire_exchange(void)
{
	return wire.slot ? my_ledger()->exchange : 0;
}

static void
transaction_event(XactEvent event, void *arg)
{
	if (!counting())
		return;
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
			wire_work_begins();
			break;
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PREPARE:
			/* not the ones in which notifications are read during a wait */
			if (wire.in_response)
				wire.transactions++;
			break;
		default:
			break;
	}
}

/*
 * Put our table in front of the one in use.  Called while the library is
 * preloaded, so that every backend inherits it; parallel workers then
 * redirect their messages to their leader and never come here.
 */
void
wire_install(void)
{
	wire.next = PqCommMethods;
	wire.methods = *PqCommMethods;
	wire.methods.putmessage = wire_putmessage;
	wire.methods.flush = wire_flush;
	wire.xact_status = 'I';
	PqCommMethods = &wire.methods;
	RegisterXactCallback(transaction_event, NULL);
}
