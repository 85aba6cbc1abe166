/*-------------------------------------------------------------------------
 *
 * wire_input.c
 *	  Looks at what the client has sent, and waits for COPY data.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "exchange.h"
#include "libpq/libpq-be.h"
#include "miscadmin.h"
#include "storage/latch.h"
#include "utils/wait_event.h"
#include "wire_input.h"

/* in libssl, which a server built with OpenSSL has loaded */
#if defined(USE_OPENSSL) && defined(__ELF__)
#pragma weak SSL_pending
#endif

/*
 * How long to wait for a client that was invited to copy.  Core may have
 * something to do before it reads (triggers, an error), which must not be held
 * up for longer.
 */
#define PATIENCE_NS					NS_PER_S

/* The type of the next message in core's buffer; 0 if the buffer is empty. */
int
wire_next_in_buffer(void)
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
 * Does the encryption library have data that it has not handed out?  That data
 * cannot be seen at the socket.
 */
static CompatTristate
library_has_more(void)
{
	SessionTransport transport = my_session.slot->published.transport;

	if (transport != TRANSPORT_TLS)
		return transport == TRANSPORT_GSS ? COMPAT_UNKNOWN : COMPAT_NO;
#if defined(USE_OPENSSL) && defined(__ELF__)
	if (SSL_pending != NULL)
		return SSL_pending(MyProcPort->ssl) > 0 ? COMPAT_YES : COMPAT_NO;
#endif
	return COMPAT_UNKNOWN;
}

/*
 * Wait from "now" for data or for an interrupt that must be served.
 *
 * Timers set the latch, too, so it is reset, as in core.  While core reads
 * COPY data it looks only for the end of the session; a cancel request is left
 * to core as well, since triggers may run before it reads.
 */
static Arrival
data_comes(int64 now)
{
	int64		until = now + PATIENCE_NS;
	WaitEvent	event;

	ModifyWaitEvent(FeBeWaitSet, FeBeWaitSetSocketPos, WL_SOCKET_READABLE, NULL);
	for (; now < until; now = clock_now())
	{
		if (WaitEventSetWait(FeBeWaitSet, (until - now) / NS_PER_MS + 1, &event, 1,
							 WAIT_EVENT_CLIENT_READ) == 0)
			break;
		if ((event.events & WL_LATCH_SET) == 0)
			return (event.events & WL_SOCKET_READABLE) != 0 ? ARRIVAL_DATA : ARRIVAL_INTERRUPT;
		ResetLatch(MyLatch);
		if (ProcDiePending || QueryCancelPending)
		{
			SetLatch(MyLatch);
			return ARRIVAL_INTERRUPT;
		}
	}
	return ARRIVAL_LATE;
}

/*
 * The client was invited to copy by what was sent from "asked_at" to "now".
 * Unless data had arrived already, that costs a round trip, which is measured
 * by waiting for data as core is about to.  If that takes too long, core waits
 * for the rest.
 *
 * Data that comes much sooner than a round trip after the invitation was sent
 * without waiting for it.
 *
 * In the extended protocol, Sync, Flush or both may follow in the buffer,
 * which core will skip.
 */
Arrival
wire_invited_to_copy(int64 asked_at, int64 now, bool arrived)
{
	int			type = wire_next_in_buffer();
	CompatTristate data = COMPAT_NO;
	Arrival		arrival;

	if (type == MSG_SYNC || type == MSG_FLUSH)
		data = compat_buffer_has_more(2 * (ssize_t) COMPAT_MESSAGE_HEADER);
	else if (type != 0)
		data = COMPAT_YES;
	if (data == COMPAT_NO)
		data = library_has_more();
	if (arrived || data == COMPAT_YES)
		return ARRIVAL_DATA;
	if (data == COMPAT_UNKNOWN)
	{
		exchange_count_turn();
		return ARRIVAL_DATA;
	}

	exchange_begin_turn(now);
	arrival = data_comes(now);
	now = clock_now();
	exchange_end_turn(now, arrival == ARRIVAL_DATA &&
					  2 * (now - asked_at) >= my_session.slot->published.trip);
	return arrival;
}
