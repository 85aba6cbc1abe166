/*-------------------------------------------------------------------------
 *
 * sample_connections.c
 *	  See sample_connections.h.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sample_connections.h"
#include "settings.h"
#include "tcpinfo.h"
#include "utils/memutils.h"

/*
 * At most this many questions to the kernel per sample_interval.  One takes 1 to
 * 2 us, so putting many into one message saves little, and a dump of all
 * connections costs more than some hundred questions even where there are few (it
 * walks the kernel's table).
 */
#define QUERIES_PER_INTERVAL	32

/* Of this session the kernel knew no connection. */
typedef struct GoneConnection
{
	uint64		session;
	int64		ask_again;		/* monotonic: not before */
} GoneConnection;

static GoneConnection *gone = NULL; /* by slot */

/*
 * Where there are more connections to ask about than questions, these go round:
 * connections are numbered within a tick.
 */
static int	queries_most;
static int	number = 0;			/* of connections in this tick, so far */
static int	count_before = 0;	/* of them in the tick before */
static int	first = 0;			/* number of the first one to ask about */

void
sample_connections_init(void)
{
	gone = MemoryContextAllocZero(TopMemoryContext, slot_count() * sizeof(GoneConnection));
}

void
sample_connections_begin_tick(const Tick *tick)
{
	queries_most = QUERIES_PER_INTERVAL * tick->interval /
		(pgnetlat_sample_interval * NS_PER_MS);
	count_before = number;
	first = count_before > queries_most ? (first + queries_most) % count_before : 0;
	number = 0;
}

/* Is it the turn of the next connection? */
static bool
is_next(void)
{
	int			place = number++ - first;

	return place + (place < 0 ? count_before : 0) < queries_most;
}

/* The session's connection; false if the session has moved on since "view". */
static bool
copy_connection(SessionSlot *slot, const SessionView *view, TcpEndpoints *endpoints,
				TcpInfo *published_info)
{
	*endpoints = slot->published.endpoints;
	*published_info = slot->published.tcp;
	return seqlock_read_valid(&slot->lock, view->changecount);
}

/*
 * Ask the kernel about the connection of the session in a slot.  False if it
 * was not asked, or did not reply.
 */
static bool
ask_about_connection(int index, const SessionView *view, const TcpEndpoints *endpoints,
					 const TcpInfo *known, Tick *tick, TcpInfo *info)
{
	GoneConnection *own = &gone[index];
	int64		now = clock_now();
	TcpReply	reply;

	if ((own->session == view->session && now < own->ask_again) ||
		now < tick->diag.ask_again || !is_next())
		return false;
	reply = tcpinfo_diag_query(&tick->diag, endpoints, known, now, info);
	if (reply == TCP_REPLY_GONE)
	{
		own->session = view->session;
		own->ask_again = now + TCP_PAUSE_NS;
	}
	return reply == TCP_REPLY_VALID;
}

/*
 * Blocked in sending, or the last response is still leaving the kernel: ask
 * the kernel how it gets on.
 */
void
sample_connection(int index, const SessionView *view, Tick *tick)
{
	SessionSlot *slot = slot_get(index);
	TcpEndpoints endpoints;
	TcpInfo		before;
	TcpInfo		known;
	TcpInfo		info;
	int64		closed;
	LedgerSampled *ledger;

	if (!copy_connection(slot, view, &endpoints, &before) || endpoints.family == 0)
		return;
	known = before;
	if (slot->sampled.tcp_session == view->session)
		tcpstate_latest(&known, &slot->sampled.tcp);
	if (!ask_about_connection(index, view, &endpoints, &known, tick, &info))
		return;

	ledger = sampled_begin(index, view, tick);
	if (ledger == NULL)
		return;
	slot->sampled.tcp = info;
	slot->sampled.tcp_session = view->session;
	closed = Max(info.rwnd_limited - before.rwnd_limited, 0);
	if (before.measured_at != 0 && view->phase == LEDGER_SENDING)
	{
		ledger->send_client = closed;
		ledger->send_began = view->since;
	}
	else if (before.measured_at != 0 && info.unsent == 0)
	{
		ledger->drained = true;
		ledger->drain.total = Max(info.busy - before.busy, 0);
		ledger->drain.client = closed;
	}
	slot_sampled_end(index);
}
