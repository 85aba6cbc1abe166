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

/* What an Execute message fetches; known only where portals are suspended. */
typedef enum FetchKind
{
	FETCH_UNKNOWN = 0,
	FETCH_BOUND,				/* a portal was bound, and has not run */
	FETCH_FIRST,				/* the portal began to run */
	FETCH_FURTHER				/* the portal went on, and has been counted */
} FetchKind;

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
	bool		flush_wait;		/* the wait followed a Flush message */
	bool		more_in_kernel; /* beyond core's buffer, before the response
								 * left */
	bool		raised;			/* the last message put is an ERROR */
	bool		skipping;		/* core skips messages up to Sync, in a turn */
	bool		copied;			/* the exchange has asked for COPY data ... */
	bool		copy_failed;	/* ... and the rest of that may be skipped */
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
			exchange_begin(clock_now(), wire.flush_wait && is_error(body));
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
			if (wire.flush_wait)
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

/* The statement in progress, if there is one, has ended. */
static void
next_is_another_statement(void)
{
	exchange_set_state(STATE_STATEMENT_DONE, exchange_state(STATE_RECORDING));
}

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
	next_is_another_statement();
	wire.fetch = FETCH_UNKNOWN;
	if (type == MSG_PORTAL_SUSPENDED)
	{
		exchange_set_state(STATE_SUSPENDED, true);
		pgnetlat_housekeeping = true;
	}
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
			my_session.xact_status = body[0];
			return;
		case MSG_PARAMETER_STATUS:
			exchange_note_parameter();
			return;
		case MSG_ERROR:
			wire.raised = is_error(body);
			wire.copy_failed = wire.copied;
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

	/*
	 * an exchange without another statement is about the one that it prepares
	 */
	if (exchange_state(STATE_RECORDING) &&
		exchange_record()->queryid == 0)
	{
		exchange_record()->queryid = statement_parsed_queryid();
		exchange_set_state(STATE_STATEMENT_PREPARED, true);
	}
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
	wire.skipping = false;
	wire_input_ended(now, wire.copied);
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
		if (unlikely(wire.skipping))
			message_while_skipping(type);
		if (type == MSG_ERROR && wire.copied)
			wire_copy_fails(is_error(body));
		if ((interesting[(unsigned char) type] & ~FIRST) != 0)
			note_message(type, body);
	}
	else if (type == MSG_PARAMETER_STATUS)
		exchange_note_parameter();	/* in a wait, or while nothing is counted */
	result = pass_on(type, body, length);
	wire.noted = type;
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
		my_session.xact_status = body[0];
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
		case MSG_NOTIFICATION:
		case MSG_PARAMETER_STATUS:
		case MSG_COPY_IN:
		case MSG_COPY_BOTH:
			return false;
		default:
			return true;
	}
}

/* Send a part of a response, or one that may block. */
static pg_noinline int
flush_event_by_event(char last)
{
	int64		sending_since = clock_now();
	int64		now;
	size_t		bytes = wire.buffered;
	bool		copy_in = last == MSG_COPY_IN;
	bool		ask_for_sync = last == MSG_ERROR && wire.raised;
	bool		in_kernel;
	bool		in_buffer;
	int			next;
	int			result;

	exchange_begin_send(sending_since, bytes);
	if (ask_for_sync || copy_in)
		wire_input_begins(sending_since);
	in_buffer = pq_buffer_remaining_data() > 0;
	next = wire_next_in_buffer();
	/* the buffer may have nothing but a Flush message */
	in_kernel = copy_in ? wire_copy_has_arrived(next) :
		(!in_buffer || next == MSG_FLUSH) && exchange_request_has_arrived(sending_since);
	result = wire.next_flush();
	now = clock_now();
	if (result != 0)
		bytes = 0;
	wire.more_in_kernel = in_kernel && in_buffer;
	wire.buffered = 0;
	if (last == MSG_READY_FOR_QUERY)
	{
		my_session.leftover = wire.copy_failed && (in_buffer ? is_copied(next) : in_kernel);
		wire.copied = wire.copy_failed = wire.flush_wait = false;
		exchange_end(now, bytes, in_kernel || in_buffer, my_session.xact_status, true);
	}
	else if (ends_exchange(last))
	{
		wire.flush_wait = true;
		exchange_end(now, bytes, in_kernel || in_buffer,
					 IsTransactionOrTransactionBlock() ? 'T' : 'I', false);
	}
	else
	{
		exchange_end_send(now, bytes);
		wire.skipping |= ask_for_sync;
		if (wire.skipping)
			exchange_begin_turn(now);
		else if (copy_in)
		{
			wire.copied = true;
			if (!in_kernel)
				exchange_invite(sending_since);
		}
	}
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
	wire.flush_wait = wire.more_in_kernel = false;
	wire.buffered = 0;
	if (unlikely(!(likely(exchange_state(STATE_COUNTS)) ?
				   exchange_end_plain(sending_since, now, bytes, true) :
				   exchange_end_plain(sending_since, now, bytes, false))))
	{
		exchange_begin_send(sending_since, bytes);
		exchange_end(now, bytes, false, my_session.xact_status, true);
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
	else if (wire.flush_wait && my_ledger()->wait.in_xact)
	{
		exchange_begin(clock_now(), true);
		/* Sync has no statement of its own */
		next_is_another_statement();
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
				my_session.transactions++;
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
