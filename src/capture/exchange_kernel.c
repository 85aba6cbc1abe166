/*-------------------------------------------------------------------------
 *
 * exchange_kernel.c
 *	  Asks the kernel about this backend's connection and process.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "exchange_internal.h"
#include "pooler.h"
#include "tcpinfo.h"

/*
 * A response larger than this may still be leaving the kernel during the wait.
 */
#define DRAIN_CHECK_BYTES			16384

/* The kernel's clock tick at its longest (HZ = 100). */
#define KERNEL_TICK_NS				(10 * NS_PER_MS)

/*
 * A client's kernel delays an acknowledgement by less than this (Linux: 40
 * ms).  The first retransmission for lack of one comes after 200 ms.
 */
#define DELAYED_ACK_NS				(150 * NS_PER_MS)

/* What the kernel said when it was last asked. */
static struct
{
	RunQueue	run_queue;
	int64		round_trips;	/* of the account, then */
	int64		window_closed;	/* by the client, and not booked on a send yet */
	int64		client_rtt;		/* between a pooler and its client; 0: not
								 * known */
	uint32		clock_steps;	/* steps of the wall clock dealt with */
}			asked;

/*
 * Return what the sampler has seen of the exchange in progress or of the wait
 * after it; NULL if nothing.
 */
const LedgerSampled *
exchange_sampled(void)
{
	static LedgerSampled copy;

	return slot_sampled_of_exchange(my_session.slot, &copy) ? &copy : NULL;
}

static inline bool
is_tcp(void)
{
	return my_session.slot->published.endpoints.family != 0;
}

/*
 * Ask about the connection, if enabled.  The counters continue the published
 * ones.
 */
bool
exchange_ask_kernel(int64 now, TcpInfo *info)
{
	if (pgnetlat_rtt_interval < 0 || !is_tcp() ||
		!tcpinfo_of_socket(MyProcPort->sock, &my_session.slot->published.tcp, now, info))
		return false;
	slot_limit_rtt(my_session.slot, info);
	return true;
}

/* Publish what the kernel has said, if it was asked; in a write section. */
void
exchange_publish_kernel_info(const TcpInfo *info)
{
	SlotPublished *published = &my_session.slot->published;

	if (info->measured_at == 0)
		return;
	tcpstate_latest(&published->tcp, info);
	published->trip = published->tcp.rtt + asked.client_rtt;
}

/*
 * Book how long the session was ready but not running since the last call; in
 * a write section.
 */
void
exchange_publish_run_queue(const RunQueue *run_queue)
{
	SlotPublished *published = &my_session.slot->published;
	const RunQueue *before = &asked.run_queue;
	int64		round_trips = ledger_round_trips(&published->ledger.totals);

	/* there was a reset */
	if (round_trips < asked.round_trips)
		asked.round_trips = 0;
	if (published->run_queue_known)
	{
		int64		from = Max(before->time, slot_run_queue_base(my_session.slot));

		ledger_run_queue(&published->ledger, run_queue->time - from,
						 round_trips - asked.round_trips, run_queue->runs - before->runs);
	}
	published->run_queue_known = true;
	published->run_queue_booked = run_queue->time;
	asked.run_queue = *run_queue;
	asked.round_trips = round_trips;
}

/* What the kernel has counted while nothing was counted here does not count. */
void
exchange_skip_run_queue(void)
{
	if (my_session.slot->published.run_queue_known)
		(void) process_run_queue(MyProcPid, &asked.run_queue);
}

/* Convert core's timestamps with the published offset. */
void
exchange_use_clock_offset(void)
{
	my_session.clock_base = clock_from_timestamp(my_session.slot->published.clock_offset, 0);
}

/* Replace the clock offset if the wall clock has stepped. */
void
exchange_refresh_clock_offset(void)
{
	SlotPublished *published = &my_session.slot->published;
	int64		offset = published->clock_offset;

	if (!clock_refresh_offset(&offset))
		return;
	exchange_write_begin();
	published->clock_offset = offset;
	slot_write_end(my_session.slot);
	exchange_use_clock_offset();
}

/*
 * Ask the kernel for everything that is refreshed at intervals, and look up
 * the round trip between a pooler and its client.
 */
void
exchange_refresh_kernel_info(int64 now)
{
	SlotPublished *published = &my_session.slot->published;
	TcpInfo		info = NOT_ASKED;
	RunQueue	run_queue;
	int64		again;
	bool		known;

	/*
	 * the sampler has seen the clock step, perhaps by too little to see here
	 */
	if (unlikely(asked.clock_steps != slot_control->clock_steps))
	{
		asked.clock_steps = slot_control->clock_steps;
		exchange_refresh_clock_offset();
	}
	asked.client_rtt = pooler_client_rtt(&published->endpoints, now, &again);
	my_session.next_kernel_info = Min(now + (pgnetlat_rtt_interval < 0 ? NS_PER_S :
											 pgnetlat_rtt_interval * NS_PER_MS), again);
	known = pgnetlat_rtt_interval >= 0 && process_run_queue(MyProcPid, &run_queue);
	(void) exchange_ask_kernel(now, &info);
	exchange_write_begin();
	if (exchange_state(STATE_COUNTS) && info.rtt > 0)
		tally_observe(METRIC_RTT, info.rtt);
	exchange_publish_kernel_info(&info);
	if (published->first_rtt == 0)
		published->first_rtt = info.least;
	published->trip = published->tcp.rtt + asked.client_rtt;
	published->pooler_owner = pooler_owner();
	if (known)
		exchange_publish_run_queue(&run_queue);
	slot_write_end(my_session.slot);
}

/*
 * Ask the kernel how long it went on sending the response before the wait in
 * progress.  Returns false if it does not say.
 */
bool
exchange_measure_drain(int64 now, TcpInfo *info, LedgerDrain *drain)
{
	const TcpInfo *before = &my_session.slot->published.tcp;

	if (!exchange_ask_kernel(now, info))
		return false;
	drain->total = info->busy - before->busy;
	drain->client = info->rwnd_limited - before->rwnd_limited;
	return true;
}

/* Prefer what the sampler knows of the drain; in a write section. */
const LedgerDrain *
exchange_best_drain(const LedgerDrain *measured)
{
	const LedgerSampled *sampled = exchange_sampled();

	return sampled && sampled->drained ? &sampled->drain : measured;
}

/*
 * Measure how long the client lacked a response that was lost and sent again,
 * usually a fifth of a second later.  The kernel knows when it last sent data,
 * and in a wait it has no other data to send.  Most lost requests show here,
 * too: they carried the acknowledgement of the response, which is sent again
 * for lack of it.
 *
 * If a response takes several segments, the kernel sends the last one again
 * after two round trips without an acknowledgement.  A client that had
 * received it, and acknowledges late because it thinks, reports it as a
 * duplicate: such a probe is no loss.
 */
bool
exchange_measure_retransmission(int64 now, TcpInfo *info, LedgerDrain *drain)
{
	const Ledger *ledger = my_ledger();
	const TcpInfo *before = &my_session.slot->published.tcp;

	if (now - ledger->since < LONG_WAIT_NS || before->measured_at == 0 || !exchange_ask_kernel(now, info) ||
		info->sent_again == before->sent_again ||
		info->data_sent_at - ledger->since <
		(info->counters.retransmits > before->counters.retransmits ? LONG_WAIT_NS : DELAYED_ACK_NS))
		return false;
	drain->total = info->data_sent_at - ledger->since + info->rtt;
	drain->client = 0;
	return true;
}

/*
 * How long was the send that has ended blocked by the client, as far as the
 * kernel knows?  It is asked only if sending took long.  It counts in ticks,
 * and one may be longer than the send: any excess is carried over to the sends
 * that follow.
 */
int64
exchange_blocked_by_client(int64 now, TcpInfo *info)
{
	const Ledger *ledger = my_ledger();
	const TcpInfo *before = &my_session.slot->published.tcp;
	int64		client;

	if (now - ledger->since < LEDGER_BLOCKED_NS || !ledger->may_block ||
		before->measured_at == 0 || !exchange_ask_kernel(now, info))
		return 0;
	client = info->rwnd_limited - before->rwnd_limited + asked.window_closed;
	asked.window_closed = Min(Max(client - (now - ledger->since), 0), KERNEL_TICK_NS);
	return client;
}

/* How many bytes the kernel has received from the client; -1 if not known. */
int64
exchange_bytes_received(int64 now)
{
	TcpInfo		info = NOT_ASKED;

	return exchange_ask_kernel(now, &info) ? info.counters.bytes_received : -1;
}

/*
 * Will the kernel go on sending the response in the wait that begins?  If it is
 * "last" of several that were pipelined, an earlier one may be long.
 */
bool
exchange_response_drains(int64 now, int64 bytes, bool last, TcpInfo *info)
{
	return (last || my_session.response_bytes + bytes > DRAIN_CHECK_BYTES) && is_tcp() &&
		tcpinfo_unsent(MyProcPort->sock) > DRAIN_CHECK_BYTES && exchange_ask_kernel(now, info);
}
