/*-------------------------------------------------------------------------
 *
 * sample_connections.c
 *	  Asks the kernel about connections whose backends cannot.
 *
 * A backend that is blocked in sending cannot ask why, and one whose response
 * is still leaving the kernel does not know when it has left.  Nor does one
 * that waits know that its response was lost.  The sampler asks for them, by
 * socket diagnosis.  It also compares the round trips of all connections.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "paths.h"
#include "sample_sessions.h"
#include "settings.h"
#include "tcpinfo.h"
#include "utils/memutils.h"

/*
 * The most questions to the kernel per sample_interval.  A question takes 1 to
 * 2 us, so putting many into one message saves little, and a dump of all
 * connections costs more than a hundred questions even if there are few (it
 * walks the kernel's table).
 */
#define QUERIES_PER_INTERVAL	32

/*
 * Not every kernel replies, or lets the server ask.  Then the drain of a wait
 * longer than this counts as over, and none of it is known: the wait must not
 * be pending until it ends.
 */
#define DRAIN_PATIENCE_NS		(5 * NS_PER_S)

/* For lack of an acknowledgement, the kernel sends again after 200 ms at first. */
#define RETRANSMISSION_NS		(250 * NS_PER_MS)

/*
 * If there are more connections to ask about than questions, each pass asks
 * about some of them.  Connections are numbered within a tick.
 */
static int	number = 0;			/* connections so far in this tick */
static int	passes = 1;			/* ticks until each has been asked about */
static int	pass = 0;

static int	acknowledgements = 0;	/* asked for in this tick */
static uint64 *acknowledged = NULL; /* by slot: the wait whose response has
									 * come */

void
sample_connections_begin_tick(const Tick *tick)
{
	int64		most = QUERIES_PER_INTERVAL * tick->interval /
		(pgnetlat_sample_interval * NS_PER_MS);

	/* the setting may have become longer than the tick's interval */
	passes = number / (int) Max(most, 1) + 1;
	pass = (pass + 1) % passes;
	number = acknowledgements = 0;
}

/* Keep what the kernel has said, in a write section of the sampled part. */
static void
keep(int index, const SlotPublished *view, TcpInfo *info)
{
	SlotSampled *sampled = &slot_get(index)->sampled;

	slot_limit_rtt(slot_get(index), info);
	if (sampled->tcp_session == view->session)
		tcpstate_latest(info, &sampled->tcp);
	sampled->tcp = *info;
	sampled->tcp_session = view->session;
}

/*
 * Ask the kernel about a session that is blocked in sending, or whose last
 * response is still leaving the kernel.  One that never asks itself
 * (pgnetlat.rtt_interval is -1) is left alone.
 */
void
sample_connection(int index, const SlotPublished *view, Tick *tick)
{
	const TcpInfo *before = &view->tcp;
	TcpInfo		info;
	bool		replied;
	int64		closed;
	LedgerSampled *ledger;

	if (view->endpoints.family == 0 || before->measured_at == 0 || number++ % passes != pass)
		return;
	replied = tcpinfo_diag_query(&tick->diag, &view->endpoints, before, clock_now(), &info) ==
		TCP_REPLY_VALID;
	if (!replied && (view->ledger.phase == LEDGER_SENDING ||
					 tick->now - view->ledger.since < DRAIN_PATIENCE_NS))
		return;
	ledger = sampled_begin(index, view, tick);
	if (ledger == NULL)
		return;
	if (!replied)
	{
		ledger->drained = true;
		slot_sampled_end(index);
		return;
	}
	keep(index, view, &info);
	closed = Max(info.rwnd_limited - before->rwnd_limited, 0);
	if (view->ledger.phase == LEDGER_SENDING)
	{
		ledger->send_client = closed;
		ledger->send_began = view->ledger.since;
	}
	else if (info.unsent == 0)
	{
		ledger->drained = true;
		ledger->drain.total = Max(info.busy - before->busy, 0);
		ledger->drain.client = closed;
	}
	slot_sampled_end(index);
}

/*
 * Ask the kernel whether the client of a quiet session has acknowledged its
 * response; once in each wait, unless it was lost and is sent again.  Then the
 * wait is pending until it has come, and the network's up to that moment.
 */
void
sample_acknowledgement(int index, const SlotPublished *view, Tick *tick)
{
	const TcpInfo *before = &view->tcp;
	int64		since = view->ledger.since;
	uint64		wait = view->session << 32 ^ view->ledger.exchange_number;
	TcpInfo		info = {.measured_at = 0};
	LedgerSampled *ledger;

	if (acknowledged == NULL)
		acknowledged = MemoryContextAllocZero(TopMemoryContext, slot_count() * sizeof(uint64));
	if (view->endpoints.family == 0 || before->measured_at == 0 || acknowledged[index] == wait ||
		tick->now - since < view->ledger.wait.rtt + RETRANSMISSION_NS ||
		acknowledgements++ >= QUERIES_PER_INTERVAL)
		return;
	if (tcpinfo_diag_query(&tick->diag, &view->endpoints, before, clock_now(), &info) !=
		TCP_REPLY_VALID || info.unsent == 0)
		acknowledged[index] = wait;
	if (info.measured_at == 0 || info.data_sent_at - since < LONG_WAIT_NS ||
		info.sent_again == before->sent_again ||
		(ledger = sampled_begin(index, view, tick)) == NULL)
		return;
	keep(index, view, &info);
	ledger->lost = true;
	ledger->drained = info.unsent == 0;
	ledger->drain.total = info.data_sent_at - since + info.rtt;
	slot_sampled_end(index);
}

/* ---------------------------------------------------------------------------
 * Round trips
 * ---------------------------------------------------------------------------
 */

/* The interval between comparisons: this, or so much for each connection. */
#define COMPARE_NS				NS_PER_S
#define COMPARE_EACH_NS			NS_PER_MS

/* What was measured longer ago says nothing about today's path. */
#define EVIDENCE_NS				(300 * NS_PER_S)

/* What is known of a session's path; false if nothing is. */
static bool
path_of_slot(int index, const Tick *tick, Path *path)
{
	const SessionSlot *slot = slot_get(index);
	const SlotPublished *published = &slot->published;
	uint32		changecount = seqlock_read_begin(&slot->lock);
	int64		measured_at = published->tcp.measured_at;

	path->index = index;
	path->session = published->session;
	path->family = published->endpoints.family;
	memcpy(path->address, published->endpoints.remote_address, sizeof(path->address));
	path->first = published->first_rtt;
	path->least = published->tcp.least;
	return seqlock_read_valid(&slot->lock, changecount) && path->session != 0 &&
		path->family != 0 && path->first > 0 && path->least > 0 &&
		tick->now - measured_at < EVIDENCE_NS;
}

/*
 * Compare the round trips of all connections, and tell sessions where those of
 * the others are shorter.  They look when they next ask the kernel.
 */
void
sample_paths(const Tick *tick)
{
	static Path *paths = NULL;
	static int64 due = 0;
	int			count = 0;

	if (tick->now < due)
		return;
	if (paths == NULL)
		paths = MemoryContextAlloc(TopMemoryContext, slot_count() * sizeof(Path));
	for (int i = 0; i < slot_count(); i++)
		count += path_of_slot(i, tick, &paths[count]);
	paths_compare(paths, count);
	for (const Path *path = paths; path < paths + count; path++)
	{
		uint32		rtt = path->rtt < path->least ? path->rtt / NS_PER_US : 0;
		SlotSampled *sampled = &slot_get(path->index)->sampled;

		if ((sampled->session == path->session ? sampled->path_rtt : 0) == rtt)
			continue;
		sampled = slot_sampled_begin(path->index, path->session, tick->generation);
		if (sampled == NULL)
			continue;
		sampled->path_rtt = rtt;
		slot_sampled_end(path->index);
	}
	due = tick->now + Max(COMPARE_NS, count * COMPARE_EACH_NS);
}
