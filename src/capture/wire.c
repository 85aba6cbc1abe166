/*-------------------------------------------------------------------------
 *
 * wire.c
 *	  Finds the beginning and the end of exchanges in the server's messages.
 *
 * A backend sends every message through the table PqCommMethods.  We put our
 * own table in front of it, with our own putmessage and flush.
 *
 * When does an exchange begin?  Nothing calls us when a request is read.  But
 * core sets the statement timestamp then, and the first message of the
 * response comes through here: if the timestamp has moved since the wait
 * began, it says when the request was read.  (It moves with each message of
 * the extended protocol; the first message of the response comes before it
 * moves again.)  Sync and Close do not set it.  A transaction callback or an
 * executor hook sees their work, unless that is too short to matter.  Messages
 * that a backend sends of its own accord (notices, notifications, parameter
 * changes) neither end nor begin an exchange; but before a notification, the
 * client was listening.
 *
 * When does it end?  When flush() returns after ReadyForQuery, or after the
 * response to a Flush message.  A flush right after a notice, an error or the
 * invitation to copy is in the middle of a request.  CloseComplete alone is not
 * flushed, so it begins no exchange.
 *
 * After an error in the extended protocol, core skips what it reads up to
 * Sync.  If the client has sent Sync already, core does not wait; but if it
 * has sent Flush, Sync costs a round trip.  So a turn begins, and is undone if
 * nothing has come by the next message that is sent.
 *
 * Had the next request arrived by then?  Something had, if core's buffer or
 * the kernel's is not empty.  If it was a Flush message, core responds with a
 * flush() of nothing, and we look again.  What is left of a COPY that has
 * failed is not a request, but one may be behind it.  If a message was not
 * complete, exchange.c notices that it comes late.
 *
 * The invitation to copy costs a round trip, unless the first data has arrived,
 * or an error comes before any.
 *
 * The first Execute of a portal counts as a statement even if it does not read
 * the portal to its end; further ones do not.  The executor's hook tells them
 * apart, in transactions in which a portal has been suspended.
 *
 * The clock is read before and after the flush that ends an exchange, and
 * around each message that overflows core's send buffer of 8 kB, since only
 * such a message may block.  That needs an exact count of what is in the
 * buffer, see compat_send_buffer_after().
 *
 * So these are the states, of which STATE_... (exchange.h) says whether there
 * is a wait or an exchange, and WireStep where in a request the client is:
 *
 *        a request was read, or Sync             an error is flushed
 *   WAIT ---------------------------> EXCHANGE ---------------------> SKIPPING
 *    ^                                | ^  | ^                         |
 *    +--- ReadyForQuery is flushed ---+ |  | +------ next message -----+
 *                                       |  |
 *   FLUSHED - a request, Sync, or work -+  |
 *    ^                                     |
 *    +---- response to Flush is flushed ---+
 *
 * From FLUSHED, work that no request asked for means that the exchange had not
 * ended.  CopyStep says whether an exchange has asked for COPY data.  While
 * nothing is counted (STATE_OFF), messages are only counted in the buffer.
 *
 * exchange.c decides what an event means for the account.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "connecting.h"
#include "exchange.h"
#include "replication/walsender.h"
#include "statement_hooks.h"
#include "storage/ipc.h"
#include "walsenders.h"
#include "wire.h"
#include "wire_input.h"

/* Noted instead of an error that ends the session. */
#define NOTED_FATAL			'F'

/* What an Execute message fetches; known only where portals are suspended. */
typedef enum FetchKind
{
	FETCH_UNKNOWN = 0,
	FETCH_BOUND,				/* a portal was bound, and has not run */
	FETCH_FIRST,				/* the portal began to run */
	FETCH_FURTHER				/* the portal went on, and has been counted */
} FetchKind;

/* Where in a request is the client? */
typedef enum WireStep
{
	STEP_REQUEST = 0,			/* in a request, or behind its end */
	STEP_FLUSHED,				/* in a wait, behind a Flush message */
	STEP_SKIPPING				/* in a turn: core skips messages up to Sync */
} WireStep;

/* Has the exchange asked for COPY data? */
typedef enum CopyStep
{
	COPY_NOT_ASKED = 0,
	COPY_ASKED,
	COPY_FAILED					/* the rest of the data may be skipped */
} CopyStep;

/* This backend's view of the wire. */
typedef struct Wire
{
	PQcommMethods methods;		/* our table, and the functions that it calls */
	int			(*next_putmessage) (char type, const char *body, size_t length);
	int			(*next_flush) (void);

	size_t		buffered;		/* bytes in core's send buffer */
	char		noted;			/* the last message put ... */
	size_t		noted_at;		/* ... and what "buffered" was after it */

	FetchKind	fetch;			/* what the Execute in progress is */
	bool		more_in_kernel; /* beyond core's buffer, before the response
								 * left */
	WireStep	step;
	CopyStep	copy;
} Wire;

static Wire wire;

/* ---------------------------------------------------------------------------
 * Messages
 * ---------------------------------------------------------------------------
 */

/* A request was read when core took "stamp". */
static pg_attribute_always_inline void
request_was_read(TimestampTz stamp)
{
	if (unlikely(!exchange_begin_plain(exchange_time_of(stamp))))
		exchange_begin_request(stamp);
}

/* A message during a wait, without a new timestamp. */
static void
message_in_wait(char type, const char *body)
{
	switch (type)
	{
		case MSG_NOTICE:
		case MSG_NOTIFICATION:
		case MSG_PARAMETER_STATUS:
			break;				/* sent of its own accord */
		case MSG_ERROR:
			/* Sync cannot commit, say, unless the session is about to end */
			exchange_begin(clock_now(), wire.step == STEP_FLUSHED && is_error(body));
			break;
		case MSG_READY_FOR_QUERY:
			exchange_begin(clock_now(), true);	/* Sync without work */
			break;
		case MSG_CLOSE_COMPLETE:
			/* not flushed; Close may be what had arrived */
			if (pq_buffer_remaining_data() <= 0 && !wire.more_in_kernel)
				exchange_note_not_pipelined();
			break;
		default:
			if (wire.step == STEP_FLUSHED)
				exchange_wait_was_work();
			else
				exchange_begin(clock_now(), true);
			break;
	}
}

/*
 * The states in which each message is of interest.  Any message may be the
 * first of a response.  After that, rows never matter; some messages may begin
 * the next statement; and some always matter, for example because they say
 * what the flush after them is for.
 */
#define FIRST					STATE_IN_WAIT
#define MAY_BEGIN_STATEMENT		(FIRST | STATE_STATEMENT_DONE | STATE_SUSPENDED)
#define ALWAYS					(FIRST | STATE_OFF | STATE_IN_EXCHANGE)

static const uint8 interesting[UCHAR_MAX + 1] = {
	[MSG_AUTHENTICATION] = ALWAYS,
	[MSG_BIND_COMPLETE] = MAY_BEGIN_STATEMENT,
	[MSG_CLOSE_COMPLETE] = MAY_BEGIN_STATEMENT,
	[MSG_COMMAND_COMPLETE] = ALWAYS,
	[MSG_COPY_BOTH] = ALWAYS,
	[MSG_COPY_DATA] = FIRST,
	[MSG_COPY_IN] = ALWAYS,
	[MSG_COPY_OUT] = MAY_BEGIN_STATEMENT,
	[MSG_DATA_ROW] = FIRST,
	[MSG_EMPTY_QUERY] = MAY_BEGIN_STATEMENT,
	[MSG_ERROR] = ALWAYS,
	[MSG_FUNCTION_RESULT] = ALWAYS,
	[MSG_NOTICE] = ALWAYS,
	[MSG_NOTIFICATION] = ALWAYS,
	[MSG_NO_DATA] = MAY_BEGIN_STATEMENT,
	[MSG_PARAMETERS] = MAY_BEGIN_STATEMENT,
	[MSG_PARAMETER_STATUS] = ALWAYS,
	[MSG_PARSE_COMPLETE] = ALWAYS,
	[MSG_PORTAL_SUSPENDED] = ALWAYS,
	[MSG_READY_FOR_QUERY] = ALWAYS,
	[MSG_ROW_DESCRIPTION] = MAY_BEGIN_STATEMENT,
};

/*
 * A statement is complete, or its portal is suspended.  It is counted unless
 * it was counted when its portal was suspended before.
 */
static void
note_end_of_fetch(char type)
{
	if (!exchange_state(STATE_SUSPENDED) || type == MSG_FUNCTION_RESULT ||
		wire.fetch == FETCH_BOUND || wire.fetch == FETCH_FIRST)
		exchange_note_statement();
	exchange_statement_is_over();
	wire.fetch = FETCH_UNKNOWN;
	if (type == MSG_PORTAL_SUSPENDED)
		exchange_note_suspended();
}

/*
 * Does the next statement begin with this message, after a complete one?  In
 * the extended protocol it does if core's timestamp has moved; in the simple
 * protocol the executor's hook has noticed the statement before.
 */
static void
message_after_statement(void)
{
	int64		at = exchange_time_of(GetCurrentStatementStartTimestamp());

	if (at > exchange_record()->start)
		exchange_next_statement(at, wire.buffered);
}

/* Interpret a message in a response, other than a row. */
static void
note_message(char type, const char *body)
{
	switch (type)
	{
		case MSG_COMMAND_COMPLETE:
		case MSG_FUNCTION_RESULT:
		case MSG_PORTAL_SUSPENDED:
			note_end_of_fetch(type);
			return;
		case MSG_READY_FOR_QUERY:
			exchange_note_xact_status(body[0]);
			return;
		case MSG_PARAMETER_STATUS:
			exchange_note_parameter();
			return;
		case MSG_ERROR:
			if (wire.copy != COPY_NOT_ASKED)
			{
				wire_copy_fails(is_error(body));
				wire.copy = COPY_FAILED;
			}
			return;
		case MSG_NOTIFICATION:
			exchange_note_notification();
			return;
		case MSG_NOTICE:
			/* no new record, since locks may be held */
		case MSG_CLOSE_COMPLETE:
			return;
		case MSG_BIND_COMPLETE:
			wire.fetch = FETCH_BOUND;
			break;
		default:
			break;
	}
	if (exchange_state(STATE_STATEMENT_DONE))
		message_after_statement();

	if (type != MSG_PARSE_COMPLETE)
		return;
	statement_was_parsed();
	exchange_note_prepared(statement_parsed_queryid());
}

/*
 * Pass a message to core's send buffer, which may be sent to make room for it.
 */
static int
pass_on(char type, const char *body, size_t length)
{
	size_t		size = length + COMPAT_MESSAGE_HEADER;
	size_t		left = compat_send_buffer_after(wire.buffered, size);
	size_t		sent = wire.buffered + size - left;
	int			result;

	if (wire.buffered + size <= COMPAT_SEND_BUFFER_SIZE || !exchange_state(STATE_IN_EXCHANGE))
	{
		wire.buffered = left;
		return wire.next_putmessage(type, body, length);
	}
	exchange_begin_send(clock_now(), sent);
	result = wire.next_putmessage(type, body, length);
	wire.buffered = left;
	exchange_end_send(clock_now(), result == 0 ? sent : 0);
	return result;
}

/*
 * A message while core skips messages up to Sync.  A notification does not end
 * that, but a turn is not in progress while it is sent.
 */
static void
message_while_skipping(int type)
{
	int64		now = clock_now();

	if (type == MSG_NOTIFICATION)
	{
		if (my_ledger()->phase == LEDGER_TURNING)
			exchange_end_turn(now, false);
		return;
	}
	wire.step = STEP_REQUEST;
	wire_input_ended(now, wire.copy != COPY_NOT_ASKED);
}

/* From now on, leave this process's messages to core. */
static void
leave_to_core(void)
{
	wire.methods.putmessage = wire.next_putmessage;
	wire.methods.flush = wire.next_flush;
}

/* The slow path of any message. */
static pg_noinline int
special_message(int type, const char *body, size_t length)
{
	TimestampTz stamp = GetCurrentStatementStartTimestamp();
	int			result;

	/* its last word, which may come in the middle of anything of ours */
	if (unlikely(type == MSG_NOTICE && process_is_quitting()))
	{
		leave_to_core();
		return wire.next_putmessage(type, body, length);
	}
	if (unlikely(connecting_in_progress))
		connecting_note_message(type, body, length);
	if (exchange_state(STATE_IN_WAIT))
	{
		if (exchange_request_was_read(stamp))
			exchange_begin_request(stamp);
		else
			message_in_wait(type, body);
	}
	if (exchange_state(STATE_IN_EXCHANGE))
	{
		if (unlikely(wire.step == STEP_SKIPPING))
			message_while_skipping(type);
		if ((interesting[(unsigned char) type] & ~FIRST) != 0)
			note_message(type, body);
	}
	else if (type == MSG_PARAMETER_STATUS)
		exchange_note_parameter();	/* in a wait, or while nothing is counted */
	result = pass_on(type, body, length);
	wire.noted = type == MSG_ERROR && !is_error(body) ? NOTED_FATAL : type;
	wire.noted_at = wire.buffered;
	return result;
}

static int	first_message(int type, const char *body, size_t length, size_t buffered);

/*
 * A message of interest, for which the buffer has room; "buffered" includes
 * it.
 */
static pg_attribute_hot pg_noinline int
interesting_message(int type, const char *body, size_t length, size_t buffered)
{
	uint32		state = my_session.state;

	if (type == MSG_COMMAND_COMPLETE && likely((state & (STATE_IN_WAIT | STATE_SUSPENDED)) == 0))
		exchange_note_statement();
	else if (likely((state & STATE_IN_WAIT) != 0))
		return first_message(type, body, length, buffered);
	else if (likely(type == MSG_READY_FOR_QUERY && (state & STATE_PLAIN) != 0))
	{
		exchange_note_xact_status(body[0]);
		wire.noted_at = buffered;
		wire.noted = type;
	}
	else
		return special_message(type, body, length);
	wire.buffered = buffered;
	return wire.next_putmessage(type, body, length);
}

/*
 * A message for which the buffer has room.  ("type" is an int, so that it is
 * sign-extended only once.)
 */
static pg_attribute_always_inline int
message_with_room(int type, const char *body, size_t length, size_t buffered)
{
	if (exchange_state(interesting[(unsigned char) type]))
		return interesting_message(type, body, length, buffered);
	wire.buffered = buffered;
	return wire.next_putmessage(type, body, length);
}

/* The same, in a wait. */
static pg_attribute_hot pg_noinline int
first_message(int type, const char *body, size_t length, size_t buffered)
{
	TimestampTz stamp = GetCurrentStatementStartTimestamp();

	if (unlikely(!exchange_request_was_read(stamp)))
		return special_message(type, body, length);
	request_was_read(stamp);
	return message_with_room(type, body, length, buffered);
}

/*
 * Most messages are rows.  They are cheap because everything else is a tail
 * call.
 */
static pg_attribute_hot int
wire_putmessage(char type, const char *body, size_t length)
{
	size_t		buffered = wire.buffered + length + COMPAT_MESSAGE_HEADER;

	if (unlikely(buffered > COMPAT_SEND_BUFFER_SIZE))
		return special_message(type, body, length);
	return message_with_room(type, body, length, buffered);
}

/* Does a flush after this message end the exchange? */
static inline bool
ends_exchange(char last_message)
{
	switch (last_message)
	{
		case MSG_NOTICE:
		case MSG_ERROR:
		case NOTED_FATAL:
		case MSG_NOTIFICATION:
		case MSG_PARAMETER_STATUS:
		case MSG_COPY_IN:
		case MSG_COPY_BOTH:
			return false;
		default:
			return true;
	}
}

/* The response to a request, or to a Flush message, has left at "now". */
static void
response_has_left(char last, int64 now, size_t bytes, const WireInput *input)
{
	bool		is_over = last == MSG_READY_FOR_QUERY;
	Arrived		arrived = input->in_buffer || input->in_kernel ? ARRIVED_REQUEST : ARRIVED_NOTHING;

	if (is_over)
	{
		if (wire.copy == COPY_FAILED && (input->in_buffer ? is_copied(input->next) : input->in_kernel))
			arrived = ARRIVED_LEFTOVER;
		wire.copy = COPY_NOT_ASKED;
	}
	wire.step = is_over ? STEP_REQUEST : STEP_FLUSHED;
	exchange_end(now, bytes, arrived, is_over);
}

/*
 * A part of a response has left, between "sending_since" and "now".  If it asks
 * the client for something, a turn begins.
 */
static void
part_has_left(char last, int64 sending_since, int64 now, size_t bytes, const WireInput *input)
{
	exchange_end_send(now, bytes);
	if (last == MSG_ERROR)
		wire.step = STEP_SKIPPING;
	if (wire.step == STEP_SKIPPING)
		exchange_begin_turn(now);
	else if (last == MSG_COPY_IN)
	{
		wire.copy = COPY_ASKED;
		if (!input->in_kernel)
			exchange_invite(sending_since);
	}
}

/* Send a part of a response, or one that may block. */
static pg_noinline int
flush_event_by_event(char last)
{
	int64		sending_since = clock_now();
	int64		now;
	size_t		bytes = wire.buffered;
	WireInput	input;
	int			result;

	exchange_begin_send(sending_since, bytes);
	if (last == MSG_ERROR || last == MSG_COPY_IN)
		wire_input_begins(sending_since);
	input = wire_look_at_input(last == MSG_COPY_IN, sending_since);
	result = wire.next_flush();
	now = clock_now();
	if (result != 0)
		bytes = 0;
	wire.more_in_kernel = input.in_kernel && input.in_buffer;
	wire.buffered = 0;
	if (ends_exchange(last))
		response_has_left(last, now, bytes, &input);
	else
		part_has_left(last, sending_since, now, bytes, &input);
	return result;
}

/* Send a whole response that cannot block, if no other request has arrived. */
static inline int
flush_response(void)
{
	int64		sending_since = clock_now();
	size_t		bytes = wire.buffered;
	int64		now;
	int			result;

	if (unlikely(pq_buffer_remaining_data() > 0 || exchange_request_has_arrived(sending_since)))
		return flush_event_by_event(MSG_READY_FOR_QUERY);
	result = wire.next_flush();
	now = clock_now();
	if (unlikely(result != 0))
		bytes = 0;
	wire.step = STEP_REQUEST;
	wire.more_in_kernel = false;
	wire.buffered = 0;
	if (unlikely(!(likely(exchange_state(STATE_COUNTS)) ?
				   exchange_end_plain(sending_since, now, bytes, true) :
				   exchange_end_plain(sending_since, now, bytes, false))))
	{
		exchange_begin_send(sending_since, bytes);
		exchange_end(now, bytes, ARRIVED_NOTHING, true);
	}
	return result;
}

/* Called after ReadyForQuery has left, if there is something to do. */
static pg_noinline void
housekeeping(void)
{
	exchange_housekeeping();
	wire.fetch = FETCH_UNKNOWN;
	if (!am_walsender)
		return;
	/* a walsender is not one of our sessions: leave its messages alone */
	leave_to_core();
	walsenders_register();
}

/*
 * Anything but a plain response.  In a wait, the backend either sends
 * something of its own accord, or has read a Flush message with nothing to
 * send, which may be all that had arrived before the last response.
 */
static pg_noinline int
flush_otherwise(char last)
{
	size_t		bytes;
	int64		now;
	int			result;

	/* Close and Flush */
	if (last == MSG_CLOSE_COMPLETE && exchange_state(STATE_IN_WAIT))
		exchange_begin(clock_now(), true);
	if (exchange_state(STATE_IN_EXCHANGE))
		return flush_event_by_event(last);
	bytes = wire.buffered;
	wire.buffered = 0;
	now = last == MSG_NOTIFICATION ? clock_now() : 0;
	result = wire.next_flush();
	if (exchange_state(STATE_IN_WAIT))
	{
		if (bytes > 0)
			exchange_note_unsolicited(result == 0 ? bytes : 0, now);
		else if (pq_buffer_remaining_data() <= 0 && !wire.more_in_kernel)
			exchange_note_not_pipelined();
	}
	return result;
}

static pg_attribute_hot int
wire_flush(void)
{
	/* the last message put, if it says what the flush is for */
	char		last = wire.noted_at == wire.buffered ? wire.noted : 0;
	int			result;

	wire.noted = 0;
	if (likely(last == MSG_READY_FOR_QUERY && exchange_state(STATE_PLAIN)))
		result = flush_response();
	else
		result = flush_otherwise(last);
	if (unlikely(pgnetlat_housekeeping) && last == MSG_READY_FOR_QUERY)
		housekeeping();
	return result;
}

/* ---------------------------------------------------------------------------
 * What else shows that work has begun
 * ---------------------------------------------------------------------------
 */

/*
 * wire_work_begins() outside an exchange.  During a wait it means that a
 * request was read, or a Sync after a Flush message: its commit may run
 * triggers.  Or else core reads notifications.
 */
pg_attribute_hot void
wire_work_begins_in_wait(void)
{
	TimestampTz stamp;

	if (!exchange_state(STATE_IN_WAIT))
		return;
	stamp = GetCurrentStatementStartTimestamp();
	if (exchange_request_was_read(stamp))
		request_was_read(stamp);
	else if (wire.step == STEP_FLUSHED && my_ledger()->wait.in_xact)
	{
		exchange_begin(clock_now(), true);
		/* Sync has no statement of its own */
		exchange_statement_is_over();
	}
}

/*
 * A top-level statement is about to run, in an exchange that is recorded.  If
 * the statement before it is complete, it begins a record of its own.
 */
void
wire_next_statement(void)
{
	int64		at;

	if (!exchange_state(STATE_STATEMENT_DONE) || exchange_state(STATE_NESTED))
		return;
	at = exchange_time_of(GetCurrentStatementStartTimestamp());
	/* several statements in one message share its timestamp */
	exchange_next_statement(at > exchange_record()->start ? at : clock_now(),
							wire.buffered);
}

/*
 * A statement begins to run or, if "further", goes on, in a transaction in
 * which portals have been suspended.  What runs inside it comes here later,
 * and is ignored.
 */
void
wire_fetches(bool further)
{
	if (wire.fetch == FETCH_UNKNOWN || wire.fetch == FETCH_BOUND)
		wire.fetch = further ? FETCH_FURTHER : FETCH_FIRST;
}

static pg_attribute_hot void
transaction_event(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PREPARE:

			/*
			 * Don't count transactions that read notifications during a wait.
			 * When the backend exits, count the client's, which aborts, but
			 * not the one that drops temporary tables.
			 */
			if (unlikely(proc_exit_inprogress) ? event == XACT_EVENT_ABORT :
				exchange_state(STATE_IN_EXCHANGE))
				exchange_note_transaction();
			break;
		case XACT_EVENT_PRE_COMMIT:
			wire_work_begins();
			break;
		default:
			break;
	}
}

/*
 * Put our table in front of the current one.  Called while the library is
 * preloaded, so that every backend inherits it; parallel workers then redirect
 * their messages to their leader and never come here.
 */
void
wire_install(void)
{
	wire.next_putmessage = PqCommMethods->putmessage;
	wire.next_flush = PqCommMethods->flush;
	wire.methods = *PqCommMethods;
	wire.methods.putmessage = wire_putmessage;
	wire.methods.flush = wire_flush;
	PqCommMethods = &wire.methods;
	RegisterXactCallback(transaction_event, NULL);
}
