/*-------------------------------------------------------------------------
 *
 * wire_input.c
 *	  Looks at what the client has sent.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "exchange.h"
#include "miscadmin.h"
#include "wire_input.h"

/*
 * A client that has waited for an error answers it with less than this: Sync,
 * perhaps behind a Close.
 */
#define ANSWER_BYTES				256

/* What was known when the client was asked for COPY data, or for Sync. */
static struct
{
	int64		asked_at;
	int64		received;		/* bytes; -1: the kernel does not say */
	long		times_blocked;
}			asked;

/* The type of the next message in core's buffer; 0 if the buffer is empty. */
static int
next_in_buffer(void)
{
	int			type;

	if (pq_buffer_remaining_data() <= 0 || pq_is_reading_msg())
		return 0;
	pq_startmsgread();
	type = pq_peekbyte();
	pq_endmsgread();
	return type;
}

/*
 * The client is about to be invited to copy: has its first data arrived?
 * "next" is the type of the next message in core's buffer, or 0.
 *
 * In the extended protocol, Sync, Flush or both may come first in the buffer,
 * which core will skip.
 */
static bool
copy_has_arrived(int next)
{
	if (next == MSG_SYNC || next == MSG_FLUSH)
	{
		if (compat_buffer_has_more(2 * (ssize_t) COMPAT_MESSAGE_HEADER))
			return true;
	}
	else if (next != 0)
		return true;
	return tcpinfo_has_input(MyProcPort->sock);
}

/*
 * Look at what has arrived by "now", before a part of the response leaves: the
 * invitation to copy, or another.
 */
WireInput
wire_look_at_input(bool copy_in, int64 now)
{
	WireInput	input;

	input.in_buffer = pq_buffer_remaining_data() > 0;
	input.next = next_in_buffer();
	/* the buffer may have nothing but a Flush message */
	input.in_kernel = copy_in ? copy_has_arrived(input.next) :
		(!input.in_buffer || input.next == MSG_FLUSH) && exchange_request_has_arrived(now);
	return input;
}

/* The client is asked for something, by what is about to be sent. */
void
wire_input_begins(int64 now)
{
	asked.asked_at = now;
	asked.received = exchange_bytes_received(now);
	asked.times_blocked = process_times_blocked();
}

/*
 * Bytes received since the client was asked.  On a Unix-domain socket only
 * this is known: nothing, unless the backend was blocked since.
 */
static int64
received_since_asked(int64 now)
{
	if (asked.received >= 0)
		return exchange_bytes_received(now) - asked.received;
	return process_times_blocked() != asked.times_blocked ? 1 : 0;
}

/*
 * A COPY fails.  If its client was invited, but has not sent anything, or the
 * session is about to end, the invitation was not a turn.
 */
void
wire_copy_fails(bool session_lives)
{
	if (my_ledger()->answered_from == 0)
		return;
	if (!session_lives || (received_since_asked(clock_now()) <= 0 &&
						   pq_buffer_remaining_data() <= 0 &&
						   !tcpinfo_has_input(MyProcPort->sock)))
		exchange_turn_was_work();
}

/*
 * End the turn that has begun after an error: another message is about to be
 * sent at "now".  If nothing was received in between, or too soon for an
 * answer, the client had sent Sync before, and it was not a turn.  Nor was it
 * if much was received, or anything behind a COPY ("copied") for which core
 * did not wait: the client was still sending the request.
 */
void
wire_input_ended(int64 now, bool copied)
{
	int64		received = received_since_asked(now);

	if (copied && process_times_blocked() == asked.times_blocked)
		received = 0;
	if (received > 0 && 2 * (now - asked.asked_at) >= my_ledger()->turn_rtt)
		exchange_end_turn(now, received <= ANSWER_BYTES);
	else
		exchange_turn_was_work();
}
