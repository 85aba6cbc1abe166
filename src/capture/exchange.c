/*-------------------------------------------------------------------------
 *
 * exchange.c
 *	  See exchange.h.
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

#include "accumulate.h"
#include "active_sessions.h"
#include "connecting.h"
#include "exchange.h"
#include "persist.h"
#include "port/pg_bitutils.h"
#include "pooler.h"
#include "request_log.h"
#include "storage/ipc.h"
#include "tcpinfo.h"
#include "utils/backend_status.h"

/* A response this large may still be leaving the kernel when we are done. */
#define DRAIN_CHECK_BYTES			16384

/*
 * A client's kernel delays an acknowledgement by less (Linux: 40 ms).  The
 * first repetition for want of one comes after 200 ms.
 */
#define DELAYED_ACK_NS				(150 * NS_PER_MS)

StaticAssertDecl(QUIET_AFTER_NS >= 2 * LONG_WAIT_NS,
				 "who was quiet must not be on the plain path");
StaticAssertDecl(BURST_THINK_NS >= LONG_WAIT_NS, "no plain wait may end a burst");

OwnSession	my_session = {
	.row_limit = ROW_LIMIT_NOT_COUNTING,
	.xact_status = 'I',
	.state = STATE_ANY
};

/*
 * What the sampler has seen of the exchange in progress, or of the wait after
 * it; NULL if nothing.
 */
static const LedgerSampled *
sampled_of_exchange(void)
{
	static LedgerSampled copy;

	return slot_sampled_of_exchange(my_session.slot, &copy) ? &copy : NULL;
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

/* What the kernel has not been asked. */
#define NOT_ASKED				{.measured_at = 0}

/*
 * Ask about the connection, if that is wanted: counters continue those that are
 * published.
 */
static bool
ask_kernel(int64 now, TcpInfo *info)
{
	return pgnetlat_rtt_interval >= 0 && is_tcp() &&
		tcpinfo_of_socket(MyProcPort->sock, &my_session.slot->published.tcp, now, info);
}

/* Publish what the kernel has said, if it was asked; in a write section. */
static void
publish_kernel_info(const TcpInfo *info)
{
	SlotPublished *published = &my_session.slot->published;

	if (info->measured_at == 0)
		return;
	tcpstate_latest(&published->tcp, info);
	published->trip = published->tcp.rtt + my_session.client_rtt;
}

/*
 * How far behind its pooler is the client, if there are such?  Returns when to
 * ask again, at the latest.
 */
static int64
refresh_client_rtt(int64 now)
{
	SlotPublished *published = &my_session.slot->published;
	int64		again;
	int64		rtt = pooler_client_rtt(&published->endpoints, now, &again);

	if (rtt != my_session.client_rtt)
	{
		exchange_write_begin();
		my_session.client_rtt = rtt;
		published->trip = published->tcp.rtt + rtt;
		slot_write_end(my_session.slot);
	}
	return again;
}

/* Ask before what has been counted so far is booked for good. */
static void
settle_kernel_info(void)
{
	TcpInfo		info = NOT_ASKED;

	if (!my_session.counting || !ask_kernel(clock_now(), &info))
		return;
	exchange_write_begin();
	publish_kernel_info(&info);
	slot_write_end(my_session.slot);
}

/*
 * Book for how long the session was ready to run without getting a processor,
 * since the latest time; in a write section.
 */
static void
publish_run_queue(int64 time, int64 runs, int64 on_cpu)
{
	SlotPublished *published = &my_session.slot->published;
	int64		round_trips = ledger_round_trips(&published->ledger.totals);

	/* a reset has come in between */
	if (round_trips < my_session.round_trips)
		my_session.round_trips = 0;
	if (published->run_queue_known)
	{
		published->ledger.totals.on_cpu += Max(on_cpu - my_session.on_cpu, 0);
		ledger_run_queue(&published->ledger, time - my_session.run_queue,
						 round_trips - my_session.round_trips, runs - my_session.runs);
	}
	published->run_queue_known = true;
	published->run_queue_booked = time;
	my_session.on_cpu = on_cpu;
	my_session.run_queue = time;
	my_session.runs = runs;
	my_session.round_trips = round_trips;
}

/* Has the wall clock stepped? */
static void
refresh_clock_offset(void)
{
	SlotPublished *published = &my_session.slot->published;
	int64		offset = published->clock_offset;

	if (!clock_refresh_offset(&offset))
		return;
	exchange_write_begin();
	published->clock_offset = offset;
	slot_write_end(my_session.slot);
	my_session.clock_base = clock_from_timestamp(offset, 0);
}

/* Once in a while, at the beginning of a request: ask what the kernel knows. */
void
exchange_refresh_kernel_info(int64 now)
{
	TcpInfo		info = NOT_ASKED;
	int64		run_queue;
	int64		runs;
	int64		on_cpu;
	int64		again;
	bool		known;
	bool		asked;

	/*
	 * the sampler has seen the wall clock step, by less perhaps than shows
	 * here
	 */
	if (unlikely(my_session.clock_steps != slot_control->clock_steps))
	{
		my_session.clock_steps = slot_control->clock_steps;
		refresh_clock_offset();
	}
	if (pgnetlat_rtt_interval < 0)
	{
		my_session.next_kernel_info = now + NS_PER_S;
		return;
	}
	again = refresh_client_rtt(now);
	my_session.next_kernel_info = Min(now + pgnetlat_rtt_interval * NS_PER_MS, again);
	known = process_run_queue(&run_queue, &runs, &on_cpu);
	asked = ask_kernel(now, &info);
	exchange_write_begin();
	if (asked && my_session.record_counts && info.rtt > 0)
		tally_observe(METRIC_RTT, info.rtt);
	publish_kernel_info(&info);
	if (known)
		publish_run_queue(run_queue, runs, on_cpu);
	slot_write_end(my_session.slot);
}

/*
 * How long the kernel went on sending the response that the wait in progress
 * followed, if it can tell: its own clocks do.
 */
static bool
measure_drain(int64 now, TcpInfo *info, LedgerDrain *drain)
{
	const TcpInfo *before = &my_session.slot->published.tcp;

	if (!ask_kernel(now, info))
		return false;
	drain->total = info->busy - before->busy;
	drain->client = info->rwnd_limited - before->rwnd_limited;
	return true;
}

/* What the sampler knows of that comes first; inside a write section only. */
static const LedgerDrain *
best_drain(const LedgerDrain *measured)
{
	const LedgerSampled *sampled = sampled_of_exchange();

	return sampled && sampled->drained ? &sampled->drain : measured;
}

/*
 * Was what has been sent again in the wait that began at "since" nothing but
 * a probe?  Where a response takes several segments the kernel sends the last
 * one again after two round trips, in case it was lost.  A client that thinks
 * for longer, and acknowledges late, had it all along and says so.
 */
static bool
was_probe(const TcpInfo *before, const TcpInfo *info, int64 since)
{
	int64		again = info->counters.retransmits - before->counters.retransmits;
	uint32		duplicates = (uint32) (info->duplicates - before->duplicates);

	return duplicates >= again && info->data_sent_at - since < DELAYED_ACK_NS;
}

/*
 * A response that was lost is sent again, a fifth of a second later as a rule:
 * until then the client had nothing to respond to.  The kernel knows when it
 * last sent data, and in a wait it has no other to send.  Most requests that
 * are lost on their way here show as well: they carried the acknowledgement of
 * the response, for want of which that is sent again.
 */
static bool
measure_retransmission(int64 now, TcpInfo *info, LedgerDrain *drain)
{
	const Ledger *ledger = my_ledger();
	const TcpInfo *before = &my_session.slot->published.tcp;

	if (now - ledger->since < LONG_WAIT_NS || my_session.unsolicited_after == ledger->exchange_number ||
		before->measured_at == 0 || !ask_kernel(now, info) ||
		info->counters.retransmits <= before->counters.retransmits ||
		info->data_sent_at - ledger->since < LONG_WAIT_NS ||
		was_probe(before, info, ledger->since))
		return false;
	drain->total = info->data_sent_at - ledger->since + info->rtt;
	drain->client = 0;
	return true;
}

/*
 * The wait in progress, whose request seemed to have arrived before it began,
 * ends at "at".  Was it a part of a message only, or something that nobody
 * answers, so that the request came in the wait?  What has arrived is read at
 * once, and if that takes long it is because there was no processor.
 */
static bool
request_came_later(int64 at)
{
	const Ledger *ledger = my_ledger();

	return ledger->wait.pipelined && at - ledger->since > my_session.late_request &&
		process_times_blocked() != my_session.times_blocked;
}

/*
 * Sending is over: for how long of it was the client the cause, as far as the
 * kernel knows?  It is asked only where sending took long.
 */
static int64
blocked_by_client(int64 now, TcpInfo *info)
{
	const Ledger *ledger = my_ledger();
	const TcpInfo *before = &my_session.slot->published.tcp;

	if (now - ledger->since < LEDGER_BLOCKED_NS || !ledger->may_block ||
		before->measured_at == 0 || !ask_kernel(now, info))
		return 0;
	return info->rwnd_limited - before->rwnd_limited;
}

/*
 * How the wait that begins will be split, but for a response that may drain, and
 * what is plain of it and of the exchange behind it.  The request behind it has
 * arrived already, if "pipelined".
 */
static LedgerWaitTerms
wait_terms(bool pipelined, char xact_status)
{
	LedgerWaitTerms terms = exchange_wait_terms(my_session.slot, xact_status);

	my_session.plain = !pipelined && !pooler_is_watched();
	if (pipelined)
	{
		terms.pipelined = true;
		my_session.late_request = Max(terms.rtt, LATE_REQUEST_NS);
		my_session.plain_limit = Min(my_session.plain_limit, my_session.late_request);
		my_session.times_blocked = process_times_blocked();
	}
	if (pooler_has_wait(xact_status))
	{
		/* all of it is idle, however short */
		terms.idle_threshold = 0;
		my_session.plain_limit = 0;
	}
	return terms;
}

/* A part of the response has been sent, or all of it; in a write section. */
static void
publish_sent(int64 bytes)
{
	my_ledger()->totals.bytes_sent += bytes;
	my_session.response_bytes += bytes;
	exchange_publish_counters(&my_ledger()->totals);
}

/* Will the response go on leaving the kernel in the wait that begins? */
static bool
response_drains(int64 now, int64 bytes, TcpInfo *info)
{
	return my_session.response_bytes + bytes > DRAIN_CHECK_BYTES && is_tcp() &&
		tcpinfo_unsent(MyProcPort->sock) > DRAIN_CHECK_BYTES && ask_kernel(now, info);
}

/* ---------------------------------------------------------------------------
 * Records
 * ---------------------------------------------------------------------------
 */

/* The statement's work is done at "at"; what was sent for it is known. */
static void
close_record(int64 at, int64 bytes, const LedgerSampled *sampled)
{
	FlightRecord *record = exchange_record();

	record->exec = Max(at - record->start - record->send, 0);
	if (sampled)
	{
		int64		recv = Min(sampled->recv - my_session.record_recv, record->exec);

		/* what was sampled is of the whole exchange */
		recv = Max(recv, 0);
		record->recv += recv;
		record->exec -= recv;
		my_session.record_recv += recv;
	}
	record->bytes = bytes - my_session.record_bytes;
	my_session.record_bytes = bytes;
}

/*
 * Somebody has taken the tally, or is about to, or it is older than a reset: in
 * that case the statement in progress does not count, and nothing is plain
 * until both the wait and the exchange in progress are over.
 */
void
exchange_settle(void)
{
	if (!tally_settle(my_session.slot))
		return;
	my_session.record_counts = my_session.uncounted = false;
	my_session.plain = false;
	my_session.plain_limit = 0;
}

/*
 * Add what is in the tally's statements to their table, so that all places are
 * free.  Takes locks, so it is called only where none can be held.
 */
static void
flush_tally(void)
{
	accumulate_begin(my_session.index);
	/* what somebody has taken is not there any more */
	exchange_write_begin();
	slot_write_end(my_session.slot);
	accumulate_own_statements();
	exchange_write_begin();
	tally_clear_statements();
	slot_write_end(my_session.slot);
	accumulate_end(my_session.index);
}

/*
 * Find the place in the tally of the statement of the record, which is not where
 * the hint says, or get one for it.
 */
void
exchange_look_up_statement(void)
{
	uint64		queryid = exchange_record()->queryid;
	Oid			userid = likely(queryid != 0) ? exchange_record()->userid :
		my_session.slot->published.userid;

	if (likely(tally_look_up(queryid, userid)))
		return;
	flush_tally();
	(void) tally_look_up(queryid, userid);
}

/* Add the record, whose statement has its place; in a write section. */
static void
count_record(bool in_block)
{
	FlightRecord *record = exchange_record();
	StatementPart part = {record->exec, record->send, record->bytes, in_block};

	exchange_count_statement(record, my_tally.current, &part);
	my_tally.current->totals.recv += record->recv;
	my_tally.current->totals.exec -= Min(slot_added_exec(my_session.slot, *my_session.recorder.head),
										 record->exec);
}

/*
 * The exchange in progress has ended, and with it its last statement, which has
 * its place; in a write section.  "length" is without the turns in it.
 */
static void
count_exchange(int64 length, bool in_xact)
{
	bool		part_is_in_block = my_session.in_block || my_session.xact_status != 'I';

	count_record(part_is_in_block);
	if (part_is_in_block)
		burst_leave_block(&my_tally.burst, in_xact);
	if (!my_session.not_counted)
		tally_observe(METRIC_REQUEST, length);
	my_session.uncounted = false;
	my_session.not_counted = true;
}

/*
 * The wait after it has ended, by a request or not; in a write section.
 */
static void
count_wait(const LedgerWait *wait, bool is_request)
{
	if (my_session.uncounted)
		count_exchange(my_session.length, wait->in_xact);
	exchange_count_wait(wait);
	if (is_request && wait->idle == 0)
		tally_observe_wait(wait->network, wait->client);
	if (wait->idle > 0 || wait->client > BURST_THINK_NS)
		burst_pause(&my_tally.burst);
}

/* The record of an exchange that was not plain, with the wait that followed it. */
static void
finish_record(LedgerWait *wait)
{
	wait->idle += my_session.notified;
	exchange_record_finish(wait);
}

/*
 * A part of the exchange has ended, with a turn of so long a round trip (0: with
 * a statement): the record is complete, and the next one begins at "at".
 */
static void
next_record(int64 at, int64 network)
{
	FlightRecord *record = exchange_record();

	if (my_session.record_counts)
		(void) exchange_find_statement();
	exchange_write_begin();
	if (my_session.record_counts)
	{
		count_record(my_session.in_block);
		my_tally.current->totals.network += network;
		my_tally.burst.trip = network > 0 ? my_tally.burst.trip + network : 0;
		if (record->statements > 0)
			exchange_set_state(STATE_STATEMENT_BEFORE, true);
	}
	slot_write_end(my_session.slot);
	record->network = network;
	record->client = record->idle = 0;
	record->xact_status = 0;
	record->flags &= ~RECORD_ENDS_EXCHANGE;
	if (my_session.record_counts)
		recorder_push(&my_session.recorder, record);
	my_session.record_counts = true;
	exchange_record_begin(at, GetUserId(), RECORD_CONTINUES);
	exchange_set_state(STATE_STATEMENT_BEGUN | STATE_STATEMENT_PREPARED, false);
}

/*
 * Another statement begins in the same exchange, after "unsent_bytes" have
 * been put into core's send buffer.  Never called where locks may be held, so
 * the tally can be added to the tables.
 */
void
exchange_next_statement(int64 at, int64 unsent_bytes)
{
	FlightRecord *record = exchange_record();

	at = Max(at, record->start + record->send);
	close_record(at, my_session.response_bytes + unsent_bytes, sampled_of_exchange());
	next_record(at, 0);
	exchange_set_state(STATE_STATEMENT_DONE, false);
}

/* ---------------------------------------------------------------------------
 * Events
 * ---------------------------------------------------------------------------
 */

/*
 * The wait in progress ends at "at", with a request or without one.
 */
void
exchange_begin(int64 at, bool is_request)
{
	SessionSlot *slot = my_session.slot;
	Ledger	   *ledger = my_ledger();
	TcpInfo		info = NOT_ASKED;
	LedgerDrain measured;
	const LedgerDrain *drain = NULL;
	LedgerWait	wait;
	bool		later = request_came_later(at);

	if (ledger->wait.draining ? measure_drain(at, &info, &measured) :
		measure_retransmission(at, &info, &measured))
		drain = &measured;

	exchange_write_begin();
	if (later)
		ledger->wait.pipelined = false;
	if (ledger->wait.draining)
		drain = best_drain(drain);
	if (is_request)
		ledger_request_begin(ledger, at, drain, &wait);
	else
		ledger_wait_abandoned(ledger, at, drain, &wait);
	publish_kernel_info(&info);
	if (my_session.record_counts)
		count_wait(&wait, is_request);
	slot_write_end(slot);
	my_session.wait_before = wait.length + my_session.notified;
	active_announce(my_session.index);

	if (my_session.record_counts)
		finish_record(&wait);
	my_session.notified = 0;
	exchange_enter(ledger->since);
	my_session.response_bytes = 0;
	my_session.not_counted = !is_request;
	my_session.plain = is_request && ledger->since >= ledger->counted_from &&
		!ledger->wait.pipelined && !ledger->wait.draining && !pooler_is_watched();
	if (ledger->since >= my_session.next_kernel_info)
		exchange_refresh_kernel_info(ledger->since);
}

/*
 * The wait in progress is over: a request was read, when core took "stamp".  If
 * the wait seems long, or to have had a negative length, perhaps the wall clock
 * has stepped, and the offset is out of date.
 */
void
exchange_begin_request(TimestampTz stamp)
{
	int64		at = exchange_time_of(stamp);

	if ((uint64) (at - my_ledger()->since) >= LONG_WAIT_NS)
	{
		refresh_clock_offset();
		at = Min(exchange_time_of(stamp), clock_now());
	}
	exchange_begin(at, true);
}

/*
 * What looked like the end of an exchange was somebody's flush in its middle.
 */
void
exchange_wait_was_work(void)
{
	exchange_write_begin();
	ledger_wait_was_work(my_ledger());
	slot_write_end(my_session.slot);
	/* the exchange goes on, under another number */
	my_session.notes.exchange_number++;
	active_announce(my_session.index);

	my_session.notified = 0;
	my_session.row_limit = ROW_LIMIT_IN_EXCHANGE;
	exchange_set_state(STATE_RECORDING, my_session.recording);
	my_session.plain = my_session.uncounted = false;
}

/*
 * In a wait: what had arrived when it began turns out to be a request, or not
 * to be one.
 */
void
exchange_note_pipelined(bool pipelined)
{
	Ledger	   *ledger = my_ledger();

	if (ledger->wait.pipelined == pipelined)
		return;
	exchange_write_begin();
	ledger->wait.pipelined = pipelined;
	slot_write_end(my_session.slot);
	my_session.plain = my_session.plain && !pipelined;
}

/*
 * In a wait the backend sends "bytes" of its own accord: at "notified_at", if that is not
 * 0, a notification to its client, which listens.  The record of the statement before
 * still has the whole wait behind it.
 */
void
exchange_note_unsolicited(int64 bytes, int64 notified_at)
{
	int64		idle = 0;

	my_session.unsolicited_after = my_ledger()->exchange_number;
	exchange_write_begin();
	my_ledger()->totals.bytes_sent += bytes;
	if (notified_at != 0)
		idle = ledger_wait_notified(my_ledger(), notified_at);
	if (idle > 0)
		burst_pause(&my_tally.burst);
	slot_write_end(my_session.slot);
	if (notified_at == 0)
		return;
	my_session.notified += idle;
	my_session.plain = false;
	my_session.plain_limit = 0;
	active_announce(my_session.index);
}

/*
 * The client was asked for data at "now": a round trip inside the exchange
 * begins.
 */
void
exchange_begin_turn(int64 now)
{
	SessionSlot *slot = my_session.slot;

	exchange_write_begin();
	ledger_turn_begin(my_ledger(), now,
					  slot->published.trip);
	slot_write_end(slot);
}

/*
 * A round trip inside the exchange begins, and nobody can tell when it ends.
 */
void
exchange_count_turn(void)
{
	exchange_write_begin();
	my_ledger()->totals.turns++;
	slot_write_end(my_session.slot);
}

/* The notes on the exchange in progress. */
static ExchangeNotes *
notes_of_exchange(void)
{
	ExchangeNotes *notes = &my_session.notes;

	if (notes->exchange_number != my_ledger()->exchange_number)
	{
		memset(notes, 0, sizeof(*notes));
		notes->exchange_number = my_ledger()->exchange_number;
	}
	return notes;
}

/*
 * The first data came at "now", or something else that must be seen to.  The
 * record of the statement ends here, and goes on in another: only so can each
 * of them be followed by a round trip.
 */
void
exchange_end_turn(int64 now, bool is_turn)
{
	SessionSlot *slot = my_session.slot;
	Ledger	   *ledger = my_ledger();
	FlightRecord *record = exchange_record();
	uint64		queryid = record->queryid;
	int64		began = ledger->since;
	LedgerTurn	turn;

	exchange_write_begin();
	ledger_turn_end(ledger, now, is_turn, &turn);
	slot_write_end(slot);
	notes_of_exchange()->turn_network += turn.network;
	notes_of_exchange()->turn_recv += turn.recv;
	if (!my_session.recording)
		return;

	close_record(began, my_session.response_bytes, sampled_of_exchange());
	record->recv += turn.recv;
	next_record(ledger->since, turn.network);
	exchange_record()->queryid = queryid;
	exchange_set_state(STATE_STATEMENT_BEGUN, true);
}

/* What the kernel has received of the client so far; -1: not known. */
static int64
bytes_received(int64 now)
{
	TcpInfo		info = NOT_ASKED;

	return ask_kernel(now, &info) ? info.counters.bytes_received : -1;
}

/* An error is about to be sent, behind which core skips what it reads up to Sync. */
void
exchange_note_error(int64 now)
{
	ErrorSent  *error = &my_session.error;

	error->at = now;
	error->received = bytes_received(now);
	error->times_blocked = process_times_blocked();
}

/*
 * Behind the error a turn has begun; at "now" something more is about to be sent.  If
 * nothing has come in between, as far as is known, or too soon for an answer, Sync had
 * been sent before, and it was no turn.
 */
void
exchange_end_wait_for_sync(int64 now)
{
	const ErrorSent *error = &my_session.error;
	bool		was_blocked = process_times_blocked() != error->times_blocked;

	if ((was_blocked || bytes_received(now) != error->received) &&
		2 * (now - error->at) >= my_ledger()->turn_rtt)
	{
		exchange_end_turn(now, true);
		return;
	}
	exchange_write_begin();
	ledger_turn_was_work(my_ledger());
	slot_write_end(my_session.slot);
}

/*
 * So many bytes of the response are about to be handed to the socket.
 */
void
exchange_begin_send(int64 now, size_t bytes)
{
	SessionSlot *slot = my_session.slot;

	my_session.plain = false;
	/* the request seems to be from the future: the wall clock has stepped */
	if (unlikely(my_ledger()->since - now > CLOCK_OFFSET_TOLERANCE))
		refresh_clock_offset();

	exchange_write_begin();
	ledger_send_begin(my_ledger(), now,
					  bytes > COMPAT_SEND_BUFFER_SIZE || !exchange_response_cannot_block());
	slot_write_end(slot);
}

/* The socket has taken "bytes", a part of the response. */
void
exchange_end_send(int64 now, int64 bytes)
{
	SessionSlot *slot = my_session.slot;
	Ledger	   *ledger = my_ledger();
	ExchangeNotes *notes = notes_of_exchange();
	int64		began = ledger->since;
	TcpInfo		info = NOT_ASKED;
	int64		client = blocked_by_client(now, &info);

	exchange_write_begin();
	notes->send_blocked -= ledger->totals.send_blocked;
	notes->send_client -= ledger->totals.send_client;
	ledger_send_end(ledger, now,
					sampled_of_exchange(), client);
	publish_sent(bytes);
	publish_kernel_info(&info);
	notes->send_blocked += ledger->totals.send_blocked;
	notes->send_client += ledger->totals.send_client;
	slot_write_end(slot);
	notes->send += ledger->since - began;
	if (my_session.recording)
		exchange_record()->send += ledger->since - began;
}

/*
 * Is the exchange that has ended at "now", with these last bytes sent, one for
 * the log?  Then its account is written there, and returned is when that was
 * done: until then the session goes on executing.
 */
static int64
log_if_slow(int64 now, int64 *bytes)
{
	const ExchangeNotes *notes = &my_session.notes;
	const LedgerSampled *sampled;
	RequestLine line = {0};

	if (likely(now - my_session.began < pgnetlat_log_limit))
		return now;
	exchange_end_send(now, *bytes);
	*bytes = 0;
	sampled = sampled_of_exchange();
	line.duration = my_ledger()->since - my_session.began;
	line.send = notes->send;
	line.send_blocked = notes->send_blocked;
	line.send_client = notes->send_client;
	line.network = notes->turn_network;
	line.exec = Max(line.duration - line.send - line.network - notes->turn_recv, 0);
	line.recv = sampled ? Min(sampled->recv, line.exec) : 0;
	line.exec -= line.recv;
	line.recv += notes->turn_recv;
	line.bytes = my_session.response_bytes;
	line.wait = my_session.wait_before;
	line.wait_in_xact = my_ledger()->wait.in_xact;
	line.rtt = my_session.slot->published.tcp.rtt;
	line.queryid = my_session.recording ? exchange_record()->queryid : 0;
	if (line.queryid == 0)
		line.queryid = pgstat_get_my_query_id();
	request_log_write(now, &line);
	now = clock_now();
	exchange_begin_send(now, 0);
	return now;
}

/*
 * The socket has taken the last "bytes" of the response: a wait begins.  The
 * next request had arrived before, if "pipelined".  Unless "is_over" it may still
 * turn out to be no wait.
 */
void
exchange_end(int64 now, int64 bytes, bool pipelined, char xact_status, bool is_over)
{
	SessionSlot *slot = my_session.slot;
	Ledger	   *ledger = my_ledger();
	FlightRecord *record = exchange_record();
	LedgerWaitTerms terms;
	const LedgerSampled *sampled;
	TcpInfo		info = NOT_ASKED;
	int64		began;
	int64		client;
	bool		poolers_own;

	now = log_if_slow(now, &bytes);
	poolers_own = is_over &&
		pooler_ends_exchange(my_session.renamed, my_session.in_block || xact_status != 'I');
	terms = wait_terms(pipelined, xact_status);
	began = ledger->since;
	client = blocked_by_client(now, &info);
	terms.draining = response_drains(now, bytes, &info);
	if (my_session.record_counts)
		(void) exchange_find_statement();
	exchange_write_begin();
	sampled = sampled_of_exchange();
	if (poolers_own && ledger->counts)
		ledger->totals.pooler_requests++;
	ledger_exchange_end(ledger, now, sampled, client,
						&terms);
	publish_sent(bytes);
	publish_kernel_info(&info);
	slot->published.request_stamp = GetCurrentStatementStartTimestamp();
	if (my_session.record_counts)
	{
		close_record(began, my_session.response_bytes, sampled);
		record->send += ledger->since - began;
		record->xact_status = xact_status;
		my_session.length = ledger->since - my_session.began -
			notes_of_exchange()->turn_network;
		if (is_over)
			count_exchange(my_session.length, terms.in_xact);
		else
			my_session.uncounted = true;
	}
	slot_write_end(slot);
	my_session.record_recv = 0;
	my_session.row_limit = ROW_LIMIT_IN_WAIT;
	exchange_set_state(STATE_RECORDING, false);
	if (terms.draining || !is_over)
		my_session.plain_limit = 0;
	if (!is_over)
		return;
	my_session.in_block = terms.in_xact;
	my_session.response_bytes = 0;
	my_session.not_counted = false;
}

/*
 * A response that cannot block, and yet must go event by event: its sending took
 * from "sending_since" to "now".
 */
void
exchange_end_slow(int64 sending_since, int64 now, int64 bytes, bool pipelined)
{
	exchange_begin_send(sending_since, bytes);
	exchange_end(now, bytes, pipelined, my_session.xact_status, true);
}

/* ---------------------------------------------------------------------------
 * The session's life
 * ---------------------------------------------------------------------------
 */

/* Finish what is recorded and counted when counting stops; in a write section. */
static void
stop_recording(LedgerPhase phase, int64 began, int64 now, const LedgerSampled *sampled,
			   const LedgerTurn *turn, LedgerWait *wait)
{
	FlightRecord *record = exchange_record();

	if (phase == LEDGER_SENDING)
		record->send += now - began;
	if (phase != LEDGER_WAITING)
	{
		close_record(phase == LEDGER_TURNING ? began : now, my_session.response_bytes,
					 sampled);
		record->recv += turn->recv;
		record->xact_status = 0;
		count_exchange(now - my_session.began - turn->network -
					   notes_of_exchange()->turn_network, false);
	}
	wait->network += turn->network;
	count_wait(wait, false);
}

/* Close the account, wherever it is; it may be started again. */
static void
stop_counting(void)
{
	SessionSlot *slot = my_session.slot;
	Ledger	   *ledger = my_ledger();
	LedgerPhase phase = ledger->phase;
	LedgerWait	wait;
	LedgerTurn	turn;
	const LedgerSampled *sampled;
	TcpInfo		info = NOT_ASKED;
	LedgerDrain measured;
	const LedgerDrain *drain = NULL;
	int64		began = ledger->since;
	int64		run_queue;
	int64		runs;
	int64		on_cpu;
	bool		known;
	int64		now;

	if (phase == LEDGER_OFF)
		return;
	if (my_session.record_counts && phase != LEDGER_WAITING)
		(void) exchange_find_statement();
	known = pgnetlat_rtt_interval >= 0 && process_run_queue(&run_queue, &runs, &on_cpu);
	now = clock_now();
	/* what has passed since the latest question, of a short session all of it */
	if (phase != LEDGER_WAITING || !ledger->wait.draining)
		(void) ask_kernel(now, &info);
	else if (measure_drain(now, &info, &measured))
		drain = &measured;
	exchange_write_begin();
	now = Max(now, ledger->since);
	sampled = sampled_of_exchange();
	publish_sent(0);
	ledger_stop(ledger, now, sampled, best_drain(drain), &wait, &turn);
	publish_kernel_info(&info);
	if (known)
		publish_run_queue(run_queue, runs, on_cpu);
	if (my_session.record_counts)
		stop_recording(phase, began, now, sampled, &turn, &wait);
	slot_write_end(slot);

	if (my_session.record_counts)
		finish_record(&wait);
	my_session.notified = 0;
	my_session.recording = my_session.record_counts = false;
	exchange_set_state(STATE_STATEMENT_DONE | STATE_RECORDING, false);
	my_session.record_recv = 0;
	my_session.counting = my_session.plain = false;
	my_session.row_limit = ROW_LIMIT_NOT_COUNTING;
}

/* Start the account at "now", in a wait. */
static void
start_counting(int64 now)
{
	SessionSlot *slot = my_session.slot;
	LedgerWaitTerms terms;

	my_session.counting = true;
	my_session.response_bytes = 0;
	my_session.statements = my_session.transactions = 0;
	my_session.recording = my_session.record_counts = false;
	exchange_set_state(STATE_SUSPENDED, false);
	my_session.unsolicited_after = 0;
	my_session.record_recv = 0;
	my_session.row_limit = ROW_LIMIT_IN_WAIT;
	exchange_refresh_kernel_info(clock_now());
	my_session.in_block = my_session.xact_status != 'I';
	my_session.not_counted = my_session.uncounted = false;
	terms = wait_terms(pq_buffer_remaining_data() > 0, my_session.xact_status);

	exchange_write_begin();
	ledger_start(&slot->published.ledger, now,
				 slot->published.transport == TRANSPORT_UNIX, &terms);
	slot->published.request_stamp = GetCurrentStatementStartTimestamp();
	slot_write_end(slot);
	active_announce(my_session.index);
}

/*
 * The session ends, for whatever reason; its PGPROC is still there.
 */
static void
session_exit(int code, Datum arg)
{
	if (my_session.slot == NULL)
		return;
	/* it will be rolled back, when nobody counts any more */
	if (my_session.counting && IsTransactionState())
		my_session.transactions++;
	slot_close(my_session.slot);
	stop_counting();
	accumulate_detach(my_session.index);
	slot_detach(my_session.slot);
	active_detach(my_session.index);
	my_session.slot = NULL;
}

/* The session's first ReadyForQuery left at "now". */
static void
attach(int64 now)
{
	uint64		session;
	ConnectTotals cost;

	if (MyBackendType != B_BACKEND || MyProcPort == NULL || MyBEEntry == NULL)
	{
		connecting_in_progress = false;
		return;
	}
	my_session.slot = slot_attach();
	if (my_session.slot == NULL)
		return;
	my_session.index = slot_my_index();
	recorder_attach(my_session.index, &my_session.recorder);
	tally_attach(my_session.index);
	pooler_attach();
	my_session.clock_base =
		clock_from_timestamp(my_session.slot->published.clock_offset, 0);
	connecting_done(now, my_session.slot->published.clock_offset, &cost);
	if (cost.connections > 0)
		slot_set_connect(my_session.slot, &cost);
	if (pgnetlat_enabled)
		start_counting(now);
	else
		memset(&cost, 0, sizeof(cost));
	session = slot_open(my_session.slot);
	active_attach(my_session.index);
	accumulate_attach(my_session.index, session, &cost);
	before_shmem_exit(session_exit, (Datum) 0);
	/* the first one: there may be no sampler to say so */
	if (session == 1)
		persist_server_is_up();
}

/* application_name, or how to read it, may have changed. */
static void
look_at_name(void)
{
	if (pgnetlat_names_changed)
		(void) pooler_ends_exchange(true, true);
	if (accumulate_is_renamed())
	{
		settle_kernel_info();
		accumulate_rename(my_session.index);
	}
	if (my_session.counting)
	{
		int64		again = refresh_client_rtt(clock_now());

		my_session.next_kernel_info = Min(my_session.next_kernel_info, again);
	}
	my_session.renamed = pgnetlat_names_changed = false;
}

/*
 * After ReadyForQuery has left: what must not happen in the middle of an
 * exchange.  No lock is held here, and the client has its response: from "ready_at"
 * on, where nothing was counted before.
 */
void
exchange_housekeeping(int64 ready_at)
{
	pgnetlat_housekeeping = false;
	if (my_session.slot == NULL)
	{
		attach(ready_at);
		my_session.renamed = false;
	}
	if (my_session.slot == NULL)
		return;
	if (pgnetlat_enabled != my_session.counting)
	{
		if (pgnetlat_enabled)
			start_counting(clock_now());
		else
			stop_counting();
	}
	if (pooler_is_watched())
		my_session.plain = false;
	if (my_session.renamed || pgnetlat_names_changed)
		look_at_name();

	/* portals end with their transaction: until then, look again each time */
	if (my_session.xact_status == 'I')
		exchange_set_state(STATE_SUSPENDED, false);
	pgnetlat_housekeeping |= exchange_state(STATE_SUSPENDED);
}
