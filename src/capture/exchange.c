/*-------------------------------------------------------------------------
 *
 * exchange.c
 *	  Books, publishes and records the events of this backend's account.
 *
 * Nothing needs to be undone if the socket's flush() does not return: a FATAL
 * error leads to the exit callback, which closes the account in any state.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "accumulate.h"
#include "active_sessions.h"
#include "exchange_internal.h"
#include "pooler.h"
#include "request_log.h"
#include "utils/backend_status.h"

StaticAssertDecl(QUIET_AFTER_NS >= 2 * LONG_WAIT_NS,
				 "a session that was quiet must not be on the plain path");
StaticAssertDecl(BURST_THINK_NS >= LONG_WAIT_NS, "a plain wait must not end a burst");

/*
 * A request that has arrived is read at once.  If one that seemed to have
 * arrived took longer than this and than a round trip, it may have been
 * incomplete.
 */
#define LATE_REQUEST_NS				NS_PER_MS

OwnSession	my_session = {
	.state = STATE_OFF,
	.xact_status = 'I'
};

/* What the exchange or wait in progress has that plain ones have not. */
static struct
{
	bool		leftover;		/* what had arrived when the wait began may be
								 * the rest of a COPY that has failed */
	long		times_blocked;	/* as a pipelined wait began */
	int64		notified;		/* idle time in this wait, before a
								 * notification */
	uint64		notified_in;	/* the latest exchange with a notification */
	uint64		unsolicited_after;	/* the exchange before the wait in which
									 * the backend last sent something of its
									 * own accord */
	int64		trip;			/* network time inside the record */
	int64		record_recv;	/* sampled recv time in earlier records of the
								 * exchange */
	LedgerTotals before;		/* the account before what is not plain ... */
	uint64		before_number;	/* ... in the exchange with this number */
}			own;

/* Counting starts, or starts again, with a wait. */
void
exchange_start(void)
{
	my_session.state = STATE_IN_WAIT;
	my_session.response_bytes = 0;
	my_session.statements = my_session.transactions = 0;
	own.record_recv = own.notified = own.trip = 0;
	own.leftover = false;
	own.unsolicited_after = 0;
	my_session.in_block = my_session.xact_status != 'I';
}

/* May anything be plain, or must each exchange and each wait be looked at? */
bool
exchange_may_be_plain(void)
{
	return !pooler_is_watched() && !trace_id_is_set(&my_session.trace) &&
		pgnetlat_idle_threshold_ns >= LONG_WAIT_NS;
}

/*
 * Decide how the wait that begins will be split, but for the drain, and
 * whether it is plain.  If "pipelined", the next request has arrived already.
 */
LedgerWaitTerms
exchange_next_wait(bool pipelined, char xact_status)
{
	LedgerWaitTerms terms = exchange_wait_terms(my_session.slot, xact_status);

	exchange_set_state(STATE_PLAIN, !pipelined && exchange_may_be_plain());
	if (pipelined)
	{
		terms.pipelined = true;
		own.times_blocked = process_times_blocked();
	}
	/* all of such a wait is idle, however short */
	if (pooler_has_wait(xact_status))
		terms.idle_threshold = 0;
	return terms;
}

/* Publish that "bytes" of the response were sent; in a write section. */
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

/* Add the trace that the session is in, if any, to the record. */
static void
note_trace(void)
{
	if (likely(!trace_id_is_set(&my_session.trace)))
		return;
	exchange_record()->trace = my_session.trace;
	exchange_record()->flags |= RECORD_TRACED;
}

/* Complete the record of a statement whose work ended at "at". */
void
exchange_close_record(int64 at, int64 bytes, const LedgerSampled *sampled)
{
	FlightRecord *record = exchange_record();

	record->exec = Max(at - record->start - record->send - own.trip, 0);
	if (sampled)
	{
		int64		recv = Min(sampled->recv - own.record_recv, record->exec);

		/*
		 * the samples are of the whole exchange: leave what earlier records
		 * have
		 */
		recv = Max(recv, 0);
		record->recv += recv;
		record->exec -= recv;
		own.record_recv += recv;
	}
	record->bytes = bytes - my_session.record_bytes;
	my_session.record_bytes = bytes;
}

/*
 * Another process has taken the tally, or is about to, or the tally is older
 * than a reset.  If it is older, the statement in progress does not count, and
 * nothing is plain until the exchange or wait in progress is over.
 */
void
exchange_settle(void)
{
	if (!tally_settle(my_session.slot))
		return;
	memset(&own.before, 0, sizeof(own.before));
	exchange_set_state(STATE_COUNTS | STATE_PLAIN, false);
}

/* Add all entries of the tally to the table of statements. */
static pg_noinline void
empty_tally(void)
{
	accumulate_begin(my_session.index);
	/* empty a tally that another process has taken */
	exchange_write_begin();
	slot_write_end(my_session.slot);
	accumulate_own_statements();
	exchange_write_begin();
	tally_clear_statements();
	slot_write_end(my_session.slot);
	accumulate_end(my_session.index);
}

/*
 * Find or make the tally's entry for the record's statement, which is not
 * where the hint says.  If all entries are in use, they are added to the table
 * of statements.  That takes locks, so this is called only where none can be
 * held.
 */
void
exchange_look_up_statement(void)
{
	const FlightRecord *record = exchange_record();
	Oid			userid = likely(record->queryid != 0) ? record->userid :
		my_session.slot->published.userid;

	if (likely(tally_look_up(record->queryid, userid)))
		return;
	empty_tally();
	(void) tally_look_up(record->queryid, userid);
}

/* Add the record to its statement's entry; in a write section. */
static void
count_record(bool in_block)
{
	FlightRecord *record = exchange_record();

	my_tally.burst.trip += own.trip;
	exchange_count_statement(record, my_tally.current, record->exec, record->send,
							 record->bytes, in_block);
	my_tally.current->totals.recv += record->recv;
	my_tally.current->totals.network += own.trip;
	my_tally.current->totals.exec -= Min(slot_added_exec(my_session.slot, *my_session.recorder.head),
										 record->exec);
}

/*
 * Count the exchange that has ended, and its last statement, which has an
 * entry in the tally; in a write section.  "is_request" is false if no client
 * asked for it, or if it was counted before, up to a flush in its middle.
 */
void
exchange_count_exchange(bool is_request, bool in_xact)
{
	bool		part_is_in_block = my_session.in_block || my_session.xact_status != 'I';

	count_record(part_is_in_block);
	if (part_is_in_block)
		tally_leave_block(my_session.in_block, in_xact, ledger_round_trips(&my_ledger()->totals));
	/* without the round trips of the turns in it; no part of an exchange */
	if (is_request && my_session.began >= my_ledger()->counted_from)
		tally_observe(METRIC_REQUEST, my_ledger()->since - my_session.began -
					  (my_ledger()->totals.network - exchange_before()->network));
}

/* Count the wait that has ended, by a request or not; in a write section. */
void
exchange_end_of_wait(const LedgerWait *wait, bool is_request)
{
	exchange_count_wait(wait);
	if (is_request && wait->idle == 0)
		tally_observe_wait(wait->network, wait->client);
	burst_think(&my_tally.burst, wait->client + wait->idle);
}

/* The record in progress has "network" time inside. */
void
exchange_note_trip(int64 network)
{
	own.trip += network;
}

/* Finish the record of the exchange before the wait that has ended. */
void
exchange_end_record(LedgerWait wait)
{
	wait.idle += own.notified;
	wait.network += own.trip;
	own.notified = own.trip = 0;
	if (exchange_state(STATE_COUNTS))
		exchange_record_finish(&wait);
}

/*
 * Complete the record with a round trip of "network" after it.  The exchange
 * goes on in another record at "at", with the same statement or the next.
 */
static void
begin_next_record(int64 at, int64 network, bool same_statement)
{
	FlightRecord *record = exchange_record();
	Oid			userid = same_statement ? record->userid : GetOuterUserId();
	uint64		queryid = same_statement ? record->queryid : 0;

	record->network = network + own.trip;
	record->client = record->idle = 0;
	record->xact_status = 0;
	record->flags &= ~RECORD_ENDS_EXCHANGE;
	if (exchange_state(STATE_COUNTS))
		recorder_push(&my_session.recorder, record);
	own.trip = 0;
	exchange_record_begin(at, userid, RECORD_CONTINUES);
	exchange_record()->queryid = queryid;
	note_trace();
	exchange_set_state(STATE_STATEMENT_PREPARED, false);
	exchange_set_state(STATE_STATEMENT_BEGUN, same_statement);
	exchange_set_state(STATE_RECORDING | STATE_COUNTS, true);
}

/*
 * Count a part of the exchange, which has ended with a turn of length
 * "network" or, if 0, with a statement; the next part begins at "at".
 */
static void
count_part(int64 at, int64 network, bool same_statement)
{
	if (exchange_state(STATE_COUNTS))
		(void) exchange_find_statement();
	exchange_write_begin();
	if (exchange_state(STATE_COUNTS))
	{
		count_record(my_session.in_block);
		my_tally.current->totals.network += network;
		my_tally.burst.trip = network > 0 ? my_tally.burst.trip + network : 0;
		if (exchange_record()->statements > 0)
			exchange_set_state(STATE_STATEMENT_BEFORE, true);
	}
	slot_write_end(my_session.slot);
	begin_next_record(at, network, same_statement);
}

/*
 * Another statement begins in the same exchange, with "unsent_bytes" in core's
 * send buffer.  Never called where locks may be held, since the tally may have
 * to be added to the tables.
 */
void
exchange_next_statement(int64 at, int64 unsent_bytes)
{
	FlightRecord *record = exchange_record();

	at = Max(at, record->start + record->send);
	exchange_close_record(at, my_session.response_bytes + unsent_bytes, exchange_sampled());
	count_part(at, 0, false);
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
	bool		later;

	/*
	 * The request seemed to have arrived before the wait began.  If reading
	 * it took long, and not for want of a processor, then what had arrived
	 * was only a part of a message, or needs no response.  Behind the rest of
	 * a COPY, it is the time that tells.
	 */
	later = ledger->wait.pipelined &&
		(own.leftover ? 2 * (at - ledger->since) >= ledger->wait.rtt :
		 at - ledger->since > Max(ledger->wait.rtt, LATE_REQUEST_NS) &&
		 process_times_blocked() != own.times_blocked);
	own.leftover = false;
	if (ledger->wait.draining ? exchange_measure_drain(at, &info, &measured) :
		own.unsolicited_after != ledger->exchange_number &&
		exchange_measure_retransmission(at, &info, &measured))
		drain = &measured;

	exchange_write_begin();
	if (later)
		ledger->wait.pipelined = false;
	if (ledger->wait.draining)
		drain = exchange_best_drain(drain);
	ledger_wait_end(ledger, at, is_request, drain, &wait);
	exchange_publish_kernel_info(&info);
	if (exchange_state(STATE_COUNTS))
		exchange_end_of_wait(&wait, is_request);
	slot_write_end(slot);
	my_session.wait_before = wait.length + own.notified;
	active_announce(my_session.index);

	exchange_end_record(wait);
	exchange_enter(ledger->since);
	note_trace();
	my_session.response_bytes = 0;
	exchange_set_state(STATE_PLAIN, is_request && ledger->since >= ledger->counted_from &&
					   !ledger->wait.pipelined && !ledger->wait.draining && exchange_may_be_plain());
	if (ledger->since >= my_session.next_kernel_info)
		exchange_refresh_kernel_info(ledger->since);
}

/*
 * A request ends the wait in progress: it was read when core took "stamp".  If
 * the wait seems long or negative, the wall clock may have stepped, so that
 * the offset is out of date.
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
 * What looked like the end of an exchange was a flush in its middle.  Its
 * record ends there.
 */
void
exchange_wait_was_work(void)
{
	exchange_write_begin();
	ledger_was_work(my_ledger());
	slot_write_end(my_session.slot);
	/* the exchange goes on, under another number */
	own.before_number++;
	active_announce(my_session.index);

	own.notified = 0;
	exchange_set_state(STATE_IN_WAIT | STATE_PLAIN, false);
	exchange_set_state(STATE_IN_EXCHANGE, true);
	if (exchange_state(STATE_COUNTS))
		begin_next_record(my_ledger()->since, 0, true);
}

/* In a wait: what had arrived when it began was not a request. */
void
exchange_note_not_pipelined(void)
{
	if (!my_ledger()->wait.pipelined)
		return;
	exchange_write_begin();
	my_ledger()->wait.pipelined = false;
	slot_write_end(my_session.slot);
}

/*
 * A notification is sent behind a response: core reads notifications in a
 * transaction, which is about to commit, and is not the client's.
 */
void
exchange_note_notification(void)
{
	if (own.notified_in == my_ledger()->exchange_number || my_session.transactions == 0)
		return;
	own.notified_in = my_ledger()->exchange_number;
	my_session.transactions--;
}

/*
 * In a wait the backend sends "bytes" of its own accord: a notification at
 * "notified_at", if that is not 0.  Then the client was listening.  The record
 * of the statement before it still gets the whole wait.
 */
void
exchange_note_unsolicited(int64 bytes, int64 notified_at)
{
	int64		idle = 0;

	own.unsolicited_after = my_ledger()->exchange_number;
	exchange_write_begin();
	my_ledger()->totals.bytes_sent += bytes;
	if (notified_at != 0)
		idle = ledger_wait_notified(my_ledger(), notified_at);
	if (idle > 0)
		burst_pause(&my_tally.burst);
	slot_write_end(my_session.slot);
	if (notified_at == 0)
		return;
	own.notified += idle;
	exchange_set_state(STATE_PLAIN, false);
	active_announce(my_session.index);
}

/*
 * The account before the first event of the exchange in progress that is not
 * plain, and so before its sends and turns.
 */
const LedgerTotals *
exchange_before(void)
{
	if (own.before_number != my_ledger()->exchange_number)
	{
		own.before = my_ledger()->totals;
		own.before_number = my_ledger()->exchange_number;
	}
	return &own.before;
}

/*
 * The client was invited to copy, by what was sent from "asked_at" until now.
 */
void
exchange_invite(int64 asked_at)
{
	exchange_write_begin();
	ledger_invite(my_ledger(), asked_at, my_session.slot->published.trip);
	slot_write_end(my_session.slot);
}

/*
 * The client was asked for Sync at "now": a round trip inside the exchange
 * begins.
 */
void
exchange_begin_turn(int64 now)
{
	exchange_write_begin();
	(void) exchange_before();
	ledger_turn_begin(my_ledger(), now, my_session.slot->published.trip);
	slot_write_end(my_session.slot);
}

/*
 * The turn ends at "now".  The statement goes on in another record, since each
 * record is followed by one round trip at most.
 */
void
exchange_end_turn(int64 now, bool is_turn)
{
	Ledger	   *ledger = my_ledger();
	int64		began = ledger->since;
	int64		network;

	exchange_write_begin();
	network = ledger_turn_end(ledger, now, is_turn);
	slot_write_end(my_session.slot);
	if (!exchange_state(STATE_RECORDING))
		return;
	exchange_close_record(began, my_session.response_bytes, exchange_sampled());
	exchange_record()->recv += ledger->since - began - network;
	count_part(ledger->since, network, true);
}

/* What looked like a turn was execution. */
void
exchange_turn_was_work(void)
{
	exchange_write_begin();
	ledger_was_work(my_ledger());
	slot_write_end(my_session.slot);
}

/* "bytes" of the response are about to be handed to the socket. */
void
exchange_begin_send(int64 now, size_t bytes)
{
	SessionSlot *slot = my_session.slot;
	int64		network;

	exchange_set_state(STATE_PLAIN, false);
	/* the request seems to be from the future: the wall clock has stepped */
	if (unlikely(my_ledger()->since - now > CLOCK_OFFSET_TOLERANCE))
		exchange_refresh_clock_offset();

	exchange_write_begin();
	(void) exchange_before();
	network = my_ledger()->totals.network;
	ledger_send_begin(my_ledger(), now,
					  bytes > COMPAT_SEND_BUFFER_SIZE || !exchange_response_cannot_block());
	exchange_note_trip(my_ledger()->totals.network - network);
	slot_write_end(slot);
}

/* The socket has taken "bytes", a part of the response. */
void
exchange_end_send(int64 now, int64 bytes)
{
	SessionSlot *slot = my_session.slot;
	Ledger	   *ledger = my_ledger();
	int64		began = ledger->since;
	TcpInfo		info = NOT_ASKED;
	int64		client = exchange_blocked_by_client(now, &info);

	exchange_write_begin();
	ledger_send_end(ledger, now, exchange_sampled(), client);
	exchange_publish_sent(bytes);
	exchange_publish_kernel_info(&info);
	slot_write_end(slot);
	if (exchange_state(STATE_RECORDING))
		exchange_record()->send += ledger->since - began;
}

/*
 * Log the exchange that has ended at "now", with its last "bytes" sent, if it
 * was slow.  Returns when the line was written: until then the session goes on
 * executing.
 */
static int64
log_if_slow(int64 now, int64 *bytes)
{
	LedgerTotals part;
	const LedgerSampled *sampled;
	RequestLine line = {0};

	if (likely(now - my_session.began < pgnetlat_log_limit))
		return now;
	exchange_end_send(now, *bytes);
	*bytes = 0;
	sampled = exchange_sampled();
	part = my_ledger()->totals;
	ledger_totals_subtract(&part, exchange_before());
	ledger_totals_fit(&part);
	line.duration = my_ledger()->since - my_session.began;
	line.send = part.send;
	line.send_blocked = part.send_blocked;
	line.send_client = part.send_client;
	line.network = part.network;
	line.exec = Max(line.duration - line.send - line.network - part.recv, 0);
	line.recv = sampled ? Min(sampled->recv, line.exec) : 0;
	line.exec -= line.recv;
	line.recv += part.recv;
	line.bytes = my_session.response_bytes;
	line.wait = my_session.wait_before;
	line.wait_in_xact = my_ledger()->wait.in_xact;
	line.rtt = my_session.slot->published.tcp.rtt;
	line.trace = my_session.trace;
	line.queryid = exchange_state(STATE_RECORDING) ? exchange_record()->queryid : 0;
	if (line.queryid == 0)
		line.queryid = pgstat_get_my_query_id();
	request_log_write(now, &line);
	now = clock_now();
	exchange_begin_send(now, 0);
	return now;
}

/* Complete the record of an exchange whose last send began at "began". */
static void
close_last_record(int64 began, const LedgerSampled *sampled, char xact_status)
{
	exchange_close_record(began, my_session.response_bytes, sampled);
	exchange_record()->send += my_ledger()->since - began;
	exchange_record()->xact_status = xact_status;
}

/* Set up this process's state for the wait that has begun. */
static void
enter_wait(const LedgerWaitTerms *terms, bool leftover, bool is_over)
{
	own.leftover = leftover;
	own.record_recv = 0;
	exchange_set_state(STATE_IN_EXCHANGE | STATE_RECORDING, false);
	exchange_set_state(STATE_IN_WAIT, true);
	/* a reset may have come after it began: then it began before the reset */
	if (terms->draining || !is_over || own.trip > 0 ||
		my_ledger()->since < my_ledger()->counted_from)
		exchange_set_state(STATE_PLAIN, false);
	if (!is_over)
		return;
	my_session.in_block = terms->in_xact;
	my_session.response_bytes = 0;
}

/*
 * The socket has taken the last "bytes" of the response: a wait begins.
 * Unless "is_over", this may turn out not to be a wait.
 */
void
exchange_end(int64 now, int64 bytes, Arrived arrived, bool is_over)
{
	SessionSlot *slot = my_session.slot;
	Ledger	   *ledger = my_ledger();
	bool		pipelined = arrived != ARRIVED_NOTHING;
	char		xact_status = is_over ? my_session.xact_status :
		IsTransactionOrTransactionBlock() ? 'T' : 'I';
	const LedgerSampled *sampled;
	LedgerWaitTerms terms;
	TcpInfo		info = NOT_ASKED;
	int64		began;
	int64		client;
	bool		is_request;
	bool		poolers_own;

	if (unlikely(my_session.name_unread))
	{
		exchange_read_name();
		note_trace();			/* an exchange is in the trace that it sets */
	}
	now = log_if_slow(now, &bytes);
	poolers_own = is_over &&
		pooler_ends_exchange(my_session.renamed ? slot->published.name : NULL,
							 my_session.in_block || xact_status != 'I');
	terms = exchange_next_wait(pipelined, xact_status);
	began = ledger->since;
	client = exchange_blocked_by_client(now, &info);
	terms.draining = exchange_response_drains(now, bytes, ledger->wait.pipelined && !pipelined,
											  &info);
	if (exchange_state(STATE_COUNTS))
		(void) exchange_find_statement();
	exchange_write_begin();
	sampled = exchange_sampled();
	is_request = ledger->is_request;
	if (poolers_own && is_request)
		ledger->totals.pooler_requests++;
	ledger_exchange_end(ledger, now, sampled, client, &terms);
	exchange_publish_sent(bytes);
	exchange_publish_kernel_info(&info);
	slot->published.request_stamp = GetCurrentStatementStartTimestamp();
	if (exchange_state(STATE_COUNTS))
	{
		close_last_record(began, sampled, xact_status);
		exchange_count_exchange(is_request, terms.in_xact);
		/* the pooler hands the connection to another client */
		if (poolers_own)
			burst_pause(&my_tally.burst);
	}
	slot_write_end(slot);
	enter_wait(&terms, arrived == ARRIVED_LEFTOVER, is_over);
}
