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

/* Before a shorter exchange is over, no other request is looked for. */
#define PIPELINE_CHECK_NS			(50 * NS_PER_US)

/* A response this large may still be leaving the kernel when we are done. */
#define DRAIN_CHECK_BYTES			16384

/* This session's view of the wire. */
typedef struct Wire
{
	const PQcommMethods *next;	/* whom we stand in front of */
	int			(*next_putmessage) (char type, const char *body, size_t length);
	PQcommMethods methods;		/* our table */

	SessionSlot *slot;			/* NULL until the first ReadyForQuery */
	int			index;			/* the slot's number */
	bool		counting;		/* the ledger is not off */
	bool		flush_wait;		/* the wait followed a Flush message */
	bool		queued;			/* the next request was there before the response left */
	char		last_message;	/* other than a row */
	char		xact_status;	/* of the latest ReadyForQuery */
	size_t		buffered;		/* bytes in core's send buffer */
	size_t		row_limit;		/* its size in a response, 0 in a wait; while
								 * nothing is counted, no limit */
	int64		next_tcp_info;	/* do not ask the kernel before */
	const char *application_name;	/* the pointer, as of the latest look */

	/* of the exchange in progress */
	int64		began;
	int64		bytes;			/* sent and not yet published, as the next two */
	int64		statements;
	int64		transactions;
	int64		response_bytes; /* sent and published */

	/* the statement in progress, and when the exchange has ended, the last */
	bool		recording;		/* there is such a record */
	bool		statement_begun;	/* its hook has been called */
	bool		statement_done; /* it is complete; what follows is the next */
	uint32		record_generation;
	int64		record_bytes;	/* of the response: sent before this statement */
	int			record_room;	/* records that may be pushed before we must
								 * see whether the recorder is nearly full */
	FlightRecord record;

	/* work space that would otherwise be set up on the stack each time */
	LedgerWait	wait;
	LedgerWaitTerms terms;
	LedgerDrain drain;
	LedgerSampled seen;
	TcpInfo		tcp;			/* fresh if measured_at is not 0 */
} Wire;

static Wire wire;

/* Counting, and in an exchange. */
bool		wire_in_response = false;

static inline Ledger *
my_ledger(void)
{
	return &wire.slot->published.ledger;
}

static inline void
set_in_response(bool value)
{
	wire_in_response = value;
	wire.row_limit = value ? COMPAT_SEND_BUFFER_SIZE : 0;
}

/*
 * What the sampler has seen of the exchange in progress, or of the wait after
 * it; NULL if nothing.
 */
static inline const LedgerSampled *
sampled_of_exchange(void)
{
	if (likely(wire.slot->sampled.exchange != my_ledger()->exchange))
		return NULL;
	return slot_sampled_of_exchange(wire.slot, &wire.seen) ? &wire.seen : NULL;
}

/* ---------------------------------------------------------------------------
 * Flight recorder
 * ---------------------------------------------------------------------------
 */

/* Field by field: this is the hot path. */
static inline void
record_begin(int64 at)
{
	FlightRecord *record = &wire.record;

	wire.recording = pgnetlat_track_statements;
	if (!wire.recording)
		return;
	record->start = at;
	record->send = 0;
	record->recv = 0;
	record->queryid = 0;
	record->rows = 0;
	record->userid = InvalidOid;
	record->rtt_us = 0;
	record->statements = 0;
	record->flags = 0;
	record->xact_status = 0;
	record->network = record->client = record->idle = 0;
	if (wire.xact_status != 'I')
		record->flags = RECORD_IN_BLOCK;
	if (my_ledger()->wait.pipelined)
		record->flags |= RECORD_PIPELINED;
	wire.record_generation = wire.slot->published.generation;
	wire.statement_begun = false;
	wire.statement_done = false;
}

static inline void
record_push(void)
{
	if (likely(wire.record_generation == wire.slot->published.generation) &&
		unlikely(!recorder_push(wire.index, &wire.record)))
		pg_atomic_fetch_add_u64(&slot_control->records_dropped, 1);
	wire.record_room--;
	wire.recording = false;
}

/* The statement's work is done at "at"; what was sent for it is known. */
static inline void
record_close(int64 at, int64 bytes, const LedgerSampled *sampled)
{
	wire.record.exec = at - wire.record.start - wire.record.send;
	if (sampled)
	{
		wire.record.recv = Min(sampled->recv, wire.record.exec);
		wire.record.exec -= wire.record.recv;
	}
	wire.record.bytes = bytes - wire.record_bytes;
	wire.record_bytes = bytes;
}

/* The exchange's last statement, with the wait that followed it. */
static inline void
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
 * See to it that the recorder has room.  Takes locks, so it is called only
 * where none can be held.
 */
static pg_noinline void
record_make_room(void)
{
	SlotObservation observation;

	if (recorder_room(wire.index) <= RECORDER_RESERVE)
		(void) drain_fold(wire.index, &observation, NULL);
	wire.record_room = Max(recorder_room(wire.index) - RECORDER_RESERVE, 1);
}

/*
 * Another statement begins in the same exchange.  Never called from where
 * locks may be held, so the recorder can be drained.
 */
static pg_noinline void
record_next_statement(int64 at)
{
	at = Max(at, wire.record.start + wire.record.send);
	record_close(at, wire.response_bytes + wire.bytes + wire.buffered,
				 sampled_of_exchange());
	record_push();
	record_begin(at);
	if (wire.record_room <= 0)
		record_make_room();
}

/* ---------------------------------------------------------------------------
 * The kernel's view of the connection
 * ---------------------------------------------------------------------------
 */

static inline bool
is_tcp(void)
{
	return wire.slot->published.endpoints.family != 0;
}

/* Ask about the connection, into wire.tcp. */
static bool
ask_kernel(int64 now)
{
	return is_tcp() && tcpinfo_of_socket(MyProcPort->sock, now, &wire.tcp);
}

/* Publish what the kernel has said, if it was asked; in a write section. */
static inline void
publish_tcp_info(void)
{
	if (unlikely(wire.tcp.measured_at != 0))
	{
		tcpinfo_latest(&wire.slot->published.tcp, &wire.tcp);
		wire.tcp.measured_at = 0;
	}
}

/* Run-queue time since the session was attached or reset. */
static void
publish_run_queue_time(int64 total)
{
	SlotPublished *published = &wire.slot->published;

	if (total < 0)
		return;
	if (published->run_queue_base < 0)
		published->run_queue_base = total;
	published->run_queue_total = total;
}

/* Once in a while, at the beginning of a request: ask what the kernel knows. */
static pg_noinline void
refresh_kernel_info(int64 now)
{
	int64		run_queue_time;

	if (pgnetlat_rtt_interval < 0)
	{
		wire.next_tcp_info = now + NS_PER_S;
		return;
	}
	wire.next_tcp_info = now + pgnetlat_rtt_interval * NS_PER_MS;
	run_queue_time = tcpinfo_run_queue_time();
	if (ask_kernel(now))
		wire.record.rtt_us = wire.tcp.rtt / NS_PER_US;

	slot_write_begin(wire.slot);
	publish_tcp_info();
	publish_run_queue_time(run_queue_time);
	slot_write_end(wire.slot);
}

/*
 * How long the kernel went on sending the response that the wait in progress
 * followed: the kernel's own clocks tell.
 */
static pg_noinline const LedgerDrain *
measure_drain(int64 now)
{
	const TcpInfo *before = &wire.slot->published.tcp;

	if (!ask_kernel(now))
		return NULL;
	wire.drain.total = wire.tcp.busy - before->busy;
	wire.drain.client = wire.tcp.rwnd_limited - before->rwnd_limited;
	return &wire.drain;
}

/*
 * What the sampler knows of that counts instead, for a reader may have shown
 * it; inside a write section only.
 */
static pg_noinline const LedgerDrain *
shown_drain(const LedgerDrain *measured)
{
	const LedgerSampled *sampled = sampled_of_exchange();

	return sampled && sampled->drained ? &sampled->drain : measured;
}

/*
 * Sending took long: for how long of it was the client the cause?
 */
static pg_noinline int64
blocked_by_client(int64 now)
{
	const TcpInfo *before = &wire.slot->published.tcp;

	if (before->measured_at == 0 || !ask_kernel(now))
		return 0;
	return wire.tcp.rwnd_limited - before->rwnd_limited;
}

/* ---------------------------------------------------------------------------
 * Events
 * ---------------------------------------------------------------------------
 */

/*
 * A request's time that is not plausible: perhaps the wall clock has stepped,
 * and the offset is out of date.
 */
static pg_noinline int64
checked_request_time(TimestampTz stamp)
{
	int64		offset = wire.slot->published.clock_offset;

	clock_refresh_offset(&offset);
	slot_write_begin(wire.slot);
	wire.slot->published.clock_offset = offset;
	slot_write_end(wire.slot);
	return Min(clock_from_timestamp(offset, stamp), clock_now());
}

/* Core's statement timestamp as monotonic time. */
static inline int64
request_time(TimestampTz stamp)
{
	int64		since = my_ledger()->since;
	int64		at = clock_from_timestamp(wire.slot->published.clock_offset, stamp);

	if (unlikely(at < since || at - since > CLOCK_CHECK_NS))
		return checked_request_time(stamp);
	return at;
}

/*
 * The wait in progress ends at "at", with a request or without one.
 */
static void
begin_exchange(int64 at, bool is_request)
{
	SessionSlot *slot = wire.slot;
	Ledger	   *ledger = my_ledger();
	const LedgerDrain *drain = NULL;

	if (unlikely(ledger->wait.draining))
		drain = measure_drain(at);

	slot_write_begin(slot);
	at = slot_not_before_wait_shown(slot, at);
	if (unlikely(ledger->wait.draining))
		drain = shown_drain(drain);
	if (likely(is_request))
		ledger_request_begin(ledger, at, drain, &wire.wait);
	else
		ledger_wait_abandoned(ledger, at, drain, &wire.wait);
	publish_tcp_info();
	slot_write_end(slot);

	if (likely(wire.recording))
		record_finish(&wire.wait);
	wire.began = ledger->since;
	record_begin(ledger->since);
	set_in_response(true);
	wire.response_bytes = 0;
	wire.record_bytes = 0;

	if (unlikely(at >= wire.next_tcp_info))
		refresh_kernel_info(at);
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

static inline void
begin_send(void)
{
	SessionSlot *slot = wire.slot;
	Ledger	   *ledger = my_ledger();
	int64		now = clock_now();
	bool		may_block = wire.response_bytes + wire.bytes > 0 || ledger->wait.pipelined;

	slot_write_begin(slot);
	ledger_send_begin(ledger, slot_not_before_busy_shown(slot, now), may_block);
	slot_write_end(slot);
}

/* The socket has taken a part of the response. */
static pg_noinline void
end_send(void)
{
	SessionSlot *slot = wire.slot;
	Ledger	   *ledger = my_ledger();
	int64		now = clock_now();
	int64		began = ledger->since;
	int64		client = 0;

	if (unlikely(now - began >= LEDGER_BLOCKED_NS) && ledger->may_block)
		client = blocked_by_client(now);
	slot_write_begin(slot);
	ledger_send_end(ledger, slot_not_before_busy_shown(slot, now),
					sampled_of_exchange(), client);
	publish_counters();
	publish_tcp_info();
	slot_write_end(slot);
	wire.record.send += ledger->since - began;
}

/* How the wait that begins will be split. */
static inline void
set_wait_terms(int64 now)
{
	LedgerWaitTerms *terms = &wire.terms;

	terms->rtt = wire.slot->published.tcp.rtt;
	terms->idle_threshold = pgnetlat_idle_threshold * NS_PER_MS;
	terms->in_xact = unlikely(wire.flush_wait) ? IsTransactionOrTransactionBlock() :
		wire.xact_status != 'I';

	terms->pipelined = pq_buffer_remaining_data() > 0 || wire.queued;

	terms->draining = false;
	if (unlikely(wire.response_bytes + wire.bytes > DRAIN_CHECK_BYTES) && is_tcp() &&
		tcpinfo_unsent(MyProcPort->sock) > DRAIN_CHECK_BYTES)
		terms->draining = ask_kernel(now);
}

/* The socket has taken the last byte of the response: a wait begins. */
static inline void
end_exchange(void)
{
	SessionSlot *slot = wire.slot;
	Ledger	   *ledger = my_ledger();
	int64		now = clock_now();
	int64		began = ledger->since;
	int64		client = 0;
	const LedgerSampled *sampled;

	if (unlikely(now - began >= LEDGER_BLOCKED_NS) && ledger->may_block)
		client = blocked_by_client(now);
	set_wait_terms(now);

	slot_write_begin(slot);
	sampled = sampled_of_exchange();
	ledger_exchange_end(ledger, slot_not_before_busy_shown(slot, now), sampled, client,
						&wire.terms);
	publish_counters();
	publish_tcp_info();
	slot->published.request_stamp = GetCurrentStatementStartTimestamp();
	slot_write_end(slot);

	set_in_response(false);
	if (likely(wire.recording))
	{
		record_close(began, wire.response_bytes, sampled);
		wire.record.send += ledger->since - began;
		wire.record.xact_status = wire.flush_wait ?
			(wire.terms.in_xact ? 'T' : 'I') : wire.xact_status;
		if (wire.xact_status != 'I')
			wire.record.flags |= RECORD_IN_BLOCK;
	}
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
	LedgerPhase phase = ledger->phase;
	const LedgerSampled *sampled;
	int64		began = ledger->since;
	int64		now;

	if (phase == LEDGER_OFF)
		return;
	now = clock_now();
	memset(&wire.wait, 0, sizeof(wire.wait));
	slot_write_begin(slot);
	now = slot_not_before_wait_shown(slot, slot_not_before_busy_shown(slot, now));
	now = Max(now, ledger->since);
	sampled = sampled_of_exchange();
	publish_counters();
	if (phase == LEDGER_WAITING)
		wire.wait = ledger_split_wait(ledger, now,
									  sampled && sampled->drained ? &sampled->drain : NULL);
	ledger_stop(ledger, now, sampled);
	slot_write_end(slot);

	if (wire.recording)
	{
		if (phase == LEDGER_SENDING)
			wire.record.send += now - began;
		if (phase != LEDGER_WAITING)
			record_close(now, wire.response_bytes, sampled);
		record_finish(&wire.wait);
	}
	wire.counting = false;
	wire_in_response = false;
	wire.row_limit = SIZE_MAX;
}

static void
start_counting(void)
{
	SessionSlot *slot = wire.slot;
	int64		now = clock_now();

	wire.counting = true;
	set_in_response(false);
	wire.flush_wait = false;
	wire.response_bytes = wire.bytes = 0;
	wire.statements = wire.transactions = 0;
	wire.buffered = 0;
	wire.recording = false;
	wire.queued = false;
	refresh_kernel_info(now);
	set_wait_terms(now);
	slot_write_begin(slot);
	ledger_start(&slot->published.ledger, clock_now(),
				 slot->published.transport == TRANSPORT_UNIX, &wire.terms);
	slot->published.request_stamp = GetCurrentStatementStartTimestamp();
	slot_write_end(slot);
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
	if (pgnetlat_enabled)
		start_counting();
	else
		wire.row_limit = SIZE_MAX;
	drain_attach(wire.index, slot_open(wire.slot));
	before_shmem_exit(session_exit, (Datum) 0);
}

/*
 * After ReadyForQuery has left: what must not happen in the middle of an
 * exchange.  No lock is held here, and the client has its answer.
 */
static pg_noinline void
between_exchanges(void)
{
	if (wire.slot == NULL)
		attach_session();
	if (wire.slot == NULL)
		return;
	if (pgnetlat_enabled != wire.counting)
	{
		if (pgnetlat_enabled)
			start_counting();
		else
			stop_counting();
	}
	if (application_name != wire.application_name)
	{
		drain_rename(wire.index);
		wire.application_name = application_name;
	}
	if (wire.record_room <= 0)
		record_make_room();
}

/* ---------------------------------------------------------------------------
 * The table's functions
 * ---------------------------------------------------------------------------
 */

static inline bool
waiting(void)
{
	return wire.slot != NULL && my_ledger()->phase == LEDGER_WAITING;
}

static inline bool
request_was_read(TimestampTz stamp)
{
	return stamp != wire.slot->published.request_stamp;
}

/* A message during a wait, and no request that core has stamped. */
static pg_noinline void
message_in_wait(char type)
{
	switch (type)
	{
		case MSG_NOTICE:
		case MSG_NOTIFICATION:
		case MSG_PARAMETER_STATUS:
			break;				/* of its own accord */
		case MSG_ERROR:
			begin_exchange(clock_now(), false); /* about to end */
			break;
		case MSG_READY_FOR_QUERY:
		case MSG_CLOSE_COMPLETE:
			begin_exchange(clock_now(), true);	/* Sync or Close, without work */
			break;
		default:
			if (wire.flush_wait)
			{
				/* somebody's flush in the middle of a request */
				slot_write_begin(wire.slot);
				ledger_wait_was_work(my_ledger());
				slot_write_end(wire.slot);
				set_in_response(true);
			}
			else
				begin_exchange(clock_now(), true);
			break;
	}
}

/*
 * What a message in a response says, other than a row.  False: the next
 * statement may begin with it.
 */
static inline bool
note_message(char type, const char *body)
{
	if (type == MSG_COMMAND_COMPLETE || type == MSG_FUNCTION_RESULT)
	{
		wire.statements++;
		wire.record.statements++;
		wire.statement_done = wire.recording;
	}
	else if (type == MSG_READY_FOR_QUERY)
		wire.xact_status = body[0];
	else
	{
		/* of application_name, perhaps: its pointer may be that of before */
		if (type == MSG_PARAMETER_STATUS)
			wire.application_name = NULL;
		if (unlikely(wire.statement_done))
			return false;
	}
	wire.last_message = type;
	return true;
}

/*
 * A statement is complete, and there is another message: does the next
 * statement begin with it?  In the extended protocol core's timestamp has
 * moved; in the simple one the executor's hook has been here first.
 */
static void
message_after_statement(char type)
{
	/* locks may be held where one of these is sent */
	if (type != MSG_NOTICE && type != MSG_ERROR && type != MSG_PARAMETER_STATUS &&
		type != MSG_NOTIFICATION)
	{
		int64		at = clock_from_timestamp(wire.slot->published.clock_offset,
											  GetCurrentStatementStartTimestamp());

		if (at > wire.record.start)
			record_next_statement(at);
	}
	wire.last_message = type;
}

/* Core's send buffer takes the message, and may be sent to make room for it. */
static int
pass_on(char type, const char *body, size_t length)
{
	size_t		size = length + COMPAT_MESSAGE_HEADER;
	size_t		left = compat_send_buffer_after(wire.buffered, size);
	int			result;

	if (wire.buffered + size <= COMPAT_SEND_BUFFER_SIZE || !wire_in_response)
	{
		wire.buffered = left;
		return wire.next_putmessage(type, body, length);
	}
	begin_send();
	result = wire.next_putmessage(type, body, length);
	wire.bytes += wire.buffered + size - left;
	wire.buffered = left;
	end_send();
	return result;
}

/* A message that is not the ordinary case of wire_putmessage(). */
static pg_noinline int
special_message(char type, const char *body, size_t length)
{
	if (likely(waiting()))
	{
		TimestampTz stamp = GetCurrentStatementStartTimestamp();

		if (likely(request_was_read(stamp)))
			begin_exchange(request_time(stamp), true);
		else
			message_in_wait(type);
	}
	if (!wire_in_response)
		wire.last_message = type;
	else if (type != MSG_DATA_ROW && type != MSG_COPY_DATA && !note_message(type, body))
		message_after_statement(type);
	return pass_on(type, body, length);
}

/*
 * In a response, and the buffer has room; or nothing is counted at all.
 * Everything else is a call in tail position, so that a row is cheap.
 */
static int
wire_putmessage(char type, const char *body, size_t length)
{
	size_t		buffered = wire.buffered + length + COMPAT_MESSAGE_HEADER;

	if (unlikely(buffered > wire.row_limit))
		return special_message(type, body, length);
	if (type != MSG_DATA_ROW && type != MSG_COPY_DATA && !note_message(type, body))
		return special_message(type, body, length);
	wire.buffered = buffered;
	return wire.next_putmessage(type, body, length);
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

/*
 * Before the response leaves: has the next request arrived in the kernel?
 * Afterwards would be too late to tell, for a client that is close by answers
 * before flush() returns.  It is a system call, and so not for each exchange:
 * only if requests have been seen queued, or one had some time to arrive.
 */
static inline bool
request_is_queued(void)
{
	const Ledger *ledger = my_ledger();

	return unlikely(ledger->wait.pipelined ||
					ledger->since - wire.began > PIPELINE_CHECK_NS) &&
		tcpinfo_has_input(MyProcPort->sock);
}

/* Send the response, or a part of it. */
static int
flush_response(void)
{
	int			result;

	begin_send();
	wire.queued = request_is_queued();
	result = wire.next->flush();
	wire.bytes += wire.buffered;
	wire.buffered = 0;
	if (likely(wire.last_message == MSG_READY_FOR_QUERY))
	{
		wire.flush_wait = false;
		end_exchange();
	}
	else if (ends_exchange(wire.last_message))
	{
		wire.flush_wait = true;
		end_exchange();
	}
	else
		end_send();
	return result;
}

static int
wire_flush(void)
{
	int			result;

	if (likely(wire_in_response))
		result = flush_response();
	else
	{
		result = wire.next->flush();
		wire.buffered = 0;
	}
	if (likely(wire.last_message == MSG_READY_FOR_QUERY))
	{
		wire.last_message = 0;
		if (unlikely(wire.slot == NULL || pgnetlat_enabled != wire.counting ||
					 application_name != wire.application_name ||
					 wire.record_room <= 0))
			between_exchanges();
	}
	return result;
}

/* ---------------------------------------------------------------------------
 * What else shows that work has begun
 * ---------------------------------------------------------------------------
 */

/*
 * wire_work_begins() outside of a response.  During a wait it means that a
 * request was read, or, after a Flush message, that a Sync was: its commit
 * may run triggers.
 */
void
wire_work_begins_in_wait(void)
{
	TimestampTz stamp;

	if (!waiting())
		return;
	stamp = GetCurrentStatementStartTimestamp();
	if (request_was_read(stamp))
		begin_exchange(request_time(stamp), true);
	else if (wire.flush_wait)
		begin_exchange(clock_now(), true);
}

/*
 * A top-level statement begins to run.  Returns whether it is the one that
 * the exchange's record is about; the caller then reports its rows.
 */
bool
wire_statement_begins(uint64 queryid)
{
	if (!wire_in_response || !wire.recording)
		return false;
	if (unlikely(wire.statement_done))
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
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
			wire_work_begins();
			break;
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PREPARE:
			/* not the ones in which notifications are read during a wait */
			if (wire_in_response)
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
	wire.next_putmessage = PqCommMethods->putmessage;
	wire.methods = *PqCommMethods;
	wire.methods.putmessage = wire_putmessage;
	wire.methods.flush = wire_flush;
	wire.xact_status = 'I';
	PqCommMethods = &wire.methods;
	RegisterXactCallback(transaction_event, NULL);
}
