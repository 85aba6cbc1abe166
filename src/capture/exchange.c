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
#include "exchange_internal.h"
#include "persist.h"
#include "port/pg_bitutils.h"
#include "pooler.h"
#include "request_log.h"
#include "storage/ipc.h"
#include "tcpinfo.h"
#include "utils/backend_status.h"

StaticAssertDecl(QUIET_AFTER_NS >= 2 * LONG_WAIT_NS,
				 "who was quiet must not be on the plain path");
StaticAssertDecl(BURST_THINK_NS >= LONG_WAIT_NS, "no plain wait may end a burst");

OwnSession	my_session = {
	.row_limit = ROW_LIMIT_NOT_COUNTING,
	.xact_status = 'I',
	.state = STATE_ANY
};

/*
 * How the wait that begins will be split, but for a response that may drain, and
 * what is plain of it and of the exchange behind it.  The request behind it has
 * arrived already, if "pipelined".
 */
LedgerWaitTerms
exchange_next_wait(bool pipelined, char xact_status)
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
void
exchange_publish_sent(int64 bytes)
{
	my_ledger()->totals.bytes_sent += bytes;
	my_session.response_bytes += bytes;
	exchange_publish_counters(&my_ledger()->totals);
}

/* ---------------------------------------------------------------------------
 * Records
 * ---------------------------------------------------------------------------
 */

/* The statement's work is done at "at"; what was sent for it is known. */
void
exchange_close_record(int64 at, int64 bytes, const LedgerSampled *sampled)
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
void
exchange_flush_tally(void)
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
	exchange_flush_tally();
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
void
exchange_count_exchange(int64 length, bool in_xact)
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
void
exchange_end_of_wait(const LedgerWait *wait, bool is_request)
{
	if (my_session.uncounted)
		exchange_count_exchange(my_session.length, wait->in_xact);
	exchange_count_wait(wait);
	if (is_request && wait->idle == 0)
		tally_observe_wait(wait->network, wait->client);
	if (wait->idle > 0 || wait->client > BURST_THINK_NS)
		burst_pause(&my_tally.burst);
}

/* The record of an exchange that was not plain, with the wait that followed it. */
void
exchange_finish_record(LedgerWait *wait)
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
	exchange_close_record(at, my_session.response_bytes + unsent_bytes, exchange_sampled());
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
	bool		later = exchange_request_came_later(at);

	if (ledger->wait.draining ? exchange_measure_drain(at, &info, &measured) :
		exchange_measure_retransmission(at, &info, &measured))
		drain = &measured;

	exchange_write_begin();
	if (later)
		ledger->wait.pipelined = false;
	if (ledger->wait.draining)
		drain = exchange_best_drain(drain);
	if (is_request)
		ledger_request_begin(ledger, at, drain, &wait);
	else
		ledger_wait_abandoned(ledger, at, drain, &wait);
	exchange_publish_kernel_info(&info);
	if (my_session.record_counts)
		exchange_end_of_wait(&wait, is_request);
	slot_write_end(slot);
	my_session.wait_before = wait.length + my_session.notified;
	active_announce(my_session.index);

	if (my_session.record_counts)
		exchange_finish_record(&wait);
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
		exchange_refresh_clock_offset();
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
ExchangeNotes *
exchange_notes(void)
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
	exchange_notes()->turn_network += turn.network;
	exchange_notes()->turn_recv += turn.recv;
	if (!my_session.recording)
		return;

	exchange_close_record(began, my_session.response_bytes, exchange_sampled());
	record->recv += turn.recv;
	next_record(ledger->since, turn.network);
	exchange_record()->queryid = queryid;
	exchange_set_state(STATE_STATEMENT_BEGUN, true);
}

/* An error is about to be sent, behind which core skips what it reads up to Sync. */
void
exchange_note_error(int64 now)
{
	ErrorSent  *error = &my_session.error;

	error->at = now;
	error->received = exchange_bytes_received(now);
	error->times_blocked = process_times_blocked();
}

/*
 * Behind the error a turn has begun; at "now" something more is about to be sent.  If
 * nothing has come in between, as far as is known, or too soon for an answer, Sync had
 * been sent before, and it was no turn.  On a Unix-domain socket nobody knows of what
 * came while the backend was not blocked.
 */
void
exchange_end_wait_for_sync(int64 now)
{
	const ErrorSent *error = &my_session.error;
	bool		was_blocked = process_times_blocked() != error->times_blocked;

	if ((was_blocked || exchange_bytes_received(now) != error->received) &&
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
		exchange_refresh_clock_offset();

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
	ExchangeNotes *notes = exchange_notes();
	int64		began = ledger->since;
	TcpInfo		info = NOT_ASKED;
	int64		client = exchange_blocked_by_client(now, &info);

	exchange_write_begin();
	notes->send_blocked -= ledger->totals.send_blocked;
	notes->send_client -= ledger->totals.send_client;
	ledger_send_end(ledger, now,
					exchange_sampled(), client);
	exchange_publish_sent(bytes);
	exchange_publish_kernel_info(&info);
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
	sampled = exchange_sampled();
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
	terms = exchange_next_wait(pipelined, xact_status);
	began = ledger->since;
	client = exchange_blocked_by_client(now, &info);
	terms.draining = exchange_response_drains(now, bytes, &info);
	if (my_session.record_counts)
		(void) exchange_find_statement();
	exchange_write_begin();
	sampled = exchange_sampled();
	if (poolers_own && ledger->counts)
		ledger->totals.pooler_requests++;
	ledger_exchange_end(ledger, now, sampled, client,
						&terms);
	exchange_publish_sent(bytes);
	exchange_publish_kernel_info(&info);
	slot->published.request_stamp = GetCurrentStatementStartTimestamp();
	if (my_session.record_counts)
	{
		exchange_close_record(began, my_session.response_bytes, sampled);
		record->send += ledger->since - began;
		record->xact_status = xact_status;
		my_session.length = ledger->since - my_session.began -
			exchange_notes()->turn_network;
		if (is_over)
			exchange_count_exchange(my_session.length, terms.in_xact);
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
