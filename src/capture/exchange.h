/*-------------------------------------------------------------------------
 *
 * exchange.h
 *	  This backend's account: events in; ledger, slot, tally and
 *	  records out.
 *
 * wire.c says when an exchange begins and when its response is sent; this is
 * where that is booked in the ledger, published in the slot, added to the
 * tally and written into the flight recorder, and where the kernel is asked
 * about the connection.
 *
 * The plain exchange is here, for wire.c to inline: it takes two write
 * sections, one when a request has been read and one when the response is
 * gone.  A response that cannot block (it is the only one in the kernel, and
 * smaller than core's send buffer) is not published as being sent while it
 * is: should it block all the same, its backend's wait event shows that.
 * Everything else goes through exchange.c, event by event.
 *
 * Hot path: the session's own slot and tally only, no lock, no allocation, no
 * error.  The one exception: a session that uses more statements than its
 * tally has places for adds all of them to their table when a place is needed,
 * behind an exchange or between two statements.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_EXCHANGE_H
#define PGNETLAT_EXCHANGE_H

#include "access/xact.h"
#include "clock.h"
#include "compat.h"
#include "settings.h"
#include "libpq/libpq-be.h"
#include "miscadmin.h"
#include "process.h"
#include "recorder.h"
#include "session_slot.h"
#include "tally.h"

/*
 * What has arrived is read at once.  If a request that seemed to have arrived
 * took longer than this, and longer than a round trip, was it complete?
 */
#define LATE_REQUEST_NS				NS_PER_MS

/* Before a shorter exchange is over, no other request is looked for. */
#define PIPELINE_CHECK_NS			(50 * NS_PER_US)

/* Of an exchange, for its line in the log: what is not of the plain kind. */
typedef struct ExchangeNotes
{
	uint64		exchange_number;	/* valid for this one only */
	int64		send;
	int64		send_blocked;
	int64		send_client;
	int64		turn_network;
	int64		turn_recv;
} ExchangeNotes;

/* When an error was sent that leaves the session alive. */
typedef struct ErrorSent
{
	int64		at;
	int64		received;		/* bytes from the client; -1: not known */
	long		times_blocked;
} ErrorSent;

typedef struct OwnSession
{
	/* of each exchange: close together, for these lines it has to fetch */
	SessionSlot *slot;			/* NULL until the first ReadyForQuery */
	size_t		row_limit;		/* up to this fill of core's send buffer a row
								 * is no event; tells where we are, see below */
	uint8		state;			/* of the statement in progress: bits, see
								 * below */
	bool		plain;			/* the exchange may end on the plain path, see
								 * below */
	bool		recording;		/* it is recorded */
	bool		record_counts;	/* there is a record of the statement in
								 * progress or, when the exchange has ended,
								 * the last, not older than a reset */
	bool		in_block;		/* the exchange begins in a transaction block */
	char		xact_status;	/* of the latest ReadyForQuery */
	bool		counting;		/* the ledger is not off */
	int64		began;			/* the exchange */
	int64		clock_base;		/* of core's timestamps, see
								 * exchange_time_of() */
	int64		plain_limit;	/* a wait is plain if it is shorter */
	int64		next_kernel_info;	/* do not ask the kernel before */
	int64		statements;		/* completed and not yet published, as the
								 * next */
	int64		transactions;
	RecorderWriter recorder;	/* the record itself is recorder.next */
	int64		record_bytes;	/* of the response: sent before this statement */
	int64		response_bytes; /* sent and published */
	int64		wait_before;

	/* of some only */
	int			index;			/* the slot's number */
	bool		renamed;		/* application_name may have changed */
	bool		not_counted;	/* as a request: nobody asked for it, or it
								 * has been already */
	bool		uncounted;		/* has the exchange ended?  After a Flush
								 * message only what comes next shows */
	int64		late_request;	/* if it is pipelined: behind a longer one ... */
	long		times_blocked;	/* ... than this; as it was when it began */
	uint64		unsolicited_after;	/* exchange in whose wait the backend sent
									 * something of its own accord */
	int64		notified;		/* of this wait: idle before a notification */
	int64		length;			/* when it has ended: without the turns in it */
	int64		record_recv;	/* of what was sampled: booked on those before */
	int64		on_cpu;			/* when it was asked last: time on processors */
	int64		run_queue;		/* when it was asked last: time, ... */
	int64		runs;			/* ... how often it ended, ... */
	int64		round_trips;	/* ... and how many of the account there were */
	uint32		clock_steps;	/* of the wall clock, which have been dealt
								 * with */
	int64		client_rtt;		/* between a pooler and its client; 0: not
								 * known */
	ErrorSent	error;
	ExchangeNotes notes;
} OwnSession;

/* read for each message: not through the table of exported symbols */
#pragma GCC visibility push(hidden)
extern OwnSession my_session;
#pragma GCC visibility pop

static inline Ledger *
my_ledger(void)
{
	return &my_session.slot->published.ledger;
}

/* Where we are is what row_limit says: */
#define ROW_LIMIT_NOT_COUNTING	SIZE_MAX
#define ROW_LIMIT_IN_WAIT		0
#define ROW_LIMIT_IN_EXCHANGE	COMPAT_SEND_BUFFER_SIZE

static inline bool
exchange_in_wait(void)
{
	return my_session.row_limit == ROW_LIMIT_IN_WAIT;
}

static inline bool
exchange_in_progress(void)
{
	return my_session.row_limit == ROW_LIMIT_IN_EXCHANGE;
}

/*
 * What of a statement is in progress.  Bits of one byte, for each message and
 * each statement asks for several of them.
 */
#define STATE_ANY				0x01	/* always set */
#define STATE_STATEMENT_DONE	0x02	/* it is complete; what follows is the
										 * next */
#define STATE_SUSPENDED			0x04	/* a portal of this transaction was
										 * not read to its end: see wire.c */
#define STATE_STATEMENT_BEGUN	0x08	/* its hook has been called */
#define STATE_NESTED			0x10	/* what runs is inside of a statement */
#define STATE_STATEMENT_PREPARED	0x20	/* that was what the exchange was
											 * about */
#define STATE_STATEMENT_BEFORE	0x40	/* one was executed in this exchange
										 * and has its own record */
#define STATE_RECORDING			0x80	/* in an exchange that is recorded */

static inline bool
exchange_state(uint8 bits)
{
	return (my_session.state & bits) != 0;
}

static inline void
exchange_set_state(uint8 bits, bool value)
{
	if (value)
		my_session.state |= bits;
	else
		my_session.state &= ~bits;
}

/* In an exchange that is recorded? */
static inline bool
exchange_is_recording(void)
{
	return exchange_state(STATE_RECORDING);
}

/* ---------------------------------------------------------------------------
 * Events that are not of the plain exchange
 * ---------------------------------------------------------------------------
 */

extern void exchange_begin_request(TimestampTz stamp);
extern void exchange_begin(int64 at, bool is_request);
extern void exchange_wait_was_work(void);
extern void exchange_note_pipelined(bool pipelined);
extern void exchange_note_unsolicited(int64 bytes, int64 notified_at);
extern void exchange_begin_turn(int64 now);
extern void exchange_end_turn(int64 now, bool is_turn);
extern void exchange_note_error(int64 now);
extern void exchange_end_wait_for_sync(int64 now);
extern void exchange_count_turn(void);
extern void exchange_begin_send(int64 now, size_t bytes);
extern void exchange_end_send(int64 now, int64 bytes);
extern void exchange_end(int64 now, int64 bytes, bool pipelined, char xact_status,
						 bool is_over);
extern void exchange_end_slow(int64 sending_since, int64 now, int64 bytes, bool pipelined);
extern void exchange_next_statement(int64 at, int64 unsent_bytes);
extern void exchange_refresh_kernel_info(int64 now);
extern void exchange_housekeeping(int64 ready_at);
extern void exchange_settle(void);
extern void exchange_look_up_statement(void);

/* ---------------------------------------------------------------------------
 * Records and tally: one statement's part of an exchange each
 * ---------------------------------------------------------------------------
 */

static inline FlightRecord *
exchange_record(void)
{
	return my_session.recorder.next;
}

/* Field by field; what is not set here is when the record is finished. */
static inline void
exchange_record_begin(int64 at, Oid userid, uint8 flags)
{
	FlightRecord *record = exchange_record();

	record->start = at;
	memset(&record->send, 0, offsetof(FlightRecord, userid) - offsetof(FlightRecord, send));
	record->userid = userid;
	record->statements = 0;
	record->flags = flags | RECORD_ENDS_EXCHANGE;	/* unless it goes on */
}

/*
 * Find the place in the tally for the statement that the record is about.
 * Where there is none, it may take locks to get one, so none may be held, and a
 * reset may show.  Returns it, which is my_tally.current; or NULL if what was plain is
 * not any more.
 */
static inline CountedStatement *
exchange_find_statement(void)
{
	const FlightRecord *record = exchange_record();
	CountedStatement *statement = tally_at_hint(record->queryid, record->userid);

	if (likely(statement != NULL))
		return statement;
	exchange_look_up_statement();
	return my_session.plain ? my_tally.current : NULL;
}

/* What of an exchange was one statement's, but what was received. */
typedef struct StatementPart
{
	int64		exec;
	int64		send;
	int64		bytes;
	bool		in_block;		/* in a transaction block */
} StatementPart;

/*
 * The statement was executed, or prepared: does it repeat one?  A FETCH goes on with
 * what another one has begun, so it does not.
 */
static inline void
exchange_count_repeats(const FlightRecord *record, CountedStatement *statement,
					   uint32 statements, bool in_block)
{
	Burst	   *burst = &my_tally.burst;
	StatementTotals *totals = &statement->totals;

	burst_enter(burst, in_block);
	if (likely(statements > 0))
	{
		int64		network = 0;
		int64		repeats;

		if (likely(!in_block))
			repeats = burst_repeats_outside(burst, record->queryid, record->rows,
											exchange_state(STATE_STATEMENT_BEFORE), &network);
		else if ((repeats = burst_repeats(burst, &statement->executed_in)) > 0)
			network = burst->trip;
		if (likely(repeats == 0) || record->queryid == 0 || (record->flags & RECORD_FETCH))
			return;
		totals->repeats += repeats;
		totals->repeat_network += network;
	}
	else if (exchange_state(STATE_STATEMENT_PREPARED) && record->queryid != 0)
	{
		if (!in_block)
			totals->repeat_network += burst_prepares_outside(burst, record->queryid);
		else if (statement->executed_in == burst->number)
			totals->repeat_network += burst->trip;
	}
}

/*
 * Complete a statement's record with its part of the exchange, and add it to its
 * place in the tally; in a write section.
 */
static pg_attribute_always_inline void
exchange_count_statement(FlightRecord *record, CountedStatement *statement,
						 const StatementPart *part)
{
	StatementTotals *totals = &statement->totals;
	uint32		statements = record->statements;

	record->exec = part->exec;
	record->send = part->send;
	record->bytes = part->bytes;
	totals->calls += statements;
	totals->rows += record->rows;
	totals->exec += part->exec;
	totals->send += part->send;
	totals->bytes += part->bytes;
	exchange_count_repeats(record, statement, statements, part->in_block);
}

/* The same for the wait after the exchange, if a request ended it. */
static inline void
exchange_count_wait(const LedgerWait *wait)
{
	StatementTotals *totals = &my_tally.current->totals;

	totals->network += wait->network;
	totals->client += wait->client;
	if (wait->in_xact)
		totals->in_xact_wait += wait->network + wait->client;
	burst_wait(&my_tally.burst, wait->network, wait->client);
}

/* The record of the exchange's last statement, with the wait that followed it. */
static inline void
exchange_record_finish(const LedgerWait *wait)
{
	FlightRecord *record = exchange_record();

	record->network = wait->network;
	record->client = wait->client;
	record->idle = wait->idle;
	recorder_push(&my_session.recorder, record);
}

/* ---------------------------------------------------------------------------
 * What messages and hooks say
 * ---------------------------------------------------------------------------
 */

/* A statement is complete. */
static inline void
exchange_note_statement(void)
{
	my_session.statements++;
	if (exchange_is_recording())
	{
		exchange_record()->statements++;
		my_session.state |= STATE_STATEMENT_DONE;
	}
}

/* The session's statements so far, published or not. */
static inline int64
exchange_statements(void)
{
	return my_ledger()->totals.statements + my_session.statements;
}

/* What comes next is not the statement that was in progress, if one was. */
static inline void
exchange_note_end_of_statement(void)
{
	exchange_set_state(STATE_STATEMENT_DONE, exchange_is_recording());
}

/* A portal is left that was not read to its end, until its transaction ends. */
static inline void
exchange_note_suspended(void)
{
	my_session.state |= STATE_SUSPENDED;
	pgnetlat_housekeeping = true;
}

/* A statement was prepared: if nothing else is, this exchange is about it. */
static inline void
exchange_note_prepared(uint64 queryid)
{
	if (!exchange_is_recording() || exchange_record()->queryid != 0)
		return;
	exchange_record()->queryid = queryid;
	my_session.state |= STATE_STATEMENT_PREPARED;
}

/* The response ends with ReadyForQuery, which has this status. */
static inline void
exchange_note_ready(char xact_status)
{
	my_session.xact_status = xact_status;
}

static inline void
exchange_note_transaction(void)
{
	my_session.transactions++;
}

/* A parameter has changed: perhaps application_name. */
static inline void
exchange_note_parameter(void)
{
	pgnetlat_housekeeping = my_session.renamed = true;
	my_session.plain = false;
}

/* ---------------------------------------------------------------------------
 * Write sections
 * ---------------------------------------------------------------------------
 */

/*
 * Begin to publish and to count, until slot_write_end(): nothing in between may
 * raise an error, block or return.  Somebody may have come in between: then
 * what is recorded may not count any more, and what comes is not plain.
 */
static inline void
exchange_write_begin(void)
{
	slot_write_begin(my_session.slot);
	if (unlikely(tally_was_touched(my_session.slot)))
		exchange_settle();
}

/*
 * The same where everything is as it should be, which is the hot path; else
 * false, and there is no write section.
 */
static inline bool
exchange_write_begin_plain(SessionSlot *slot)
{
	seqlock_write_begin(&slot->lock);
	if (likely(!tally_was_touched(slot)))
		return true;
	slot_write_end(slot);
	return false;
}

/* ---------------------------------------------------------------------------
 * A request was read
 * ---------------------------------------------------------------------------
 */

static inline bool
exchange_request_was_read(TimestampTz stamp)
{
	return stamp != my_session.slot->published.request_stamp;
}

/* When was it that core took "stamp"? */
static inline int64
exchange_time_of(TimestampTz stamp)
{
	return stamp * NS_PER_US + my_session.clock_base;
}

/* What follows in this process when an exchange has begun at "at". */
static inline void
exchange_enter(int64 at)
{
	my_session.row_limit = ROW_LIMIT_IN_EXCHANGE;
	my_session.began = at;
	my_session.state &= STATE_ANY | STATE_SUSPENDED;
	my_session.recording = my_session.record_counts = pgnetlat_track_statements;
	if (likely(my_session.recording))
	{
		Oid			userid = GetUserId();	/* at top level still */

		my_session.state |= STATE_RECORDING;
		my_session.record_bytes = 0;
		exchange_record_begin(at, userid,
							  my_ledger()->wait.pipelined ? RECORD_PIPELINED : 0);
	}
}

/*
 * The plain wait in progress is over: a request was read at "at".  False if the
 * wait is not a plain one, or there is something else to do.
 */
static pg_attribute_always_inline bool
exchange_begin_plain(int64 at)
{
	SessionSlot *slot = my_session.slot;
	Ledger	   *ledger = &slot->published.ledger;
	LedgerWait	wait;

	if (unlikely(!exchange_write_begin_plain(slot)))
		return false;
	/* or negative: the clock has stepped */
	if (unlikely((uint64) (at - ledger->since) >= (uint64) my_session.plain_limit ||
				 at >= my_session.next_kernel_info))
	{
		slot_write_end(slot);
		return false;
	}
	Assert(ledger_wait_is_plain(ledger, at));
	wait = ledger_request_begin_plain(ledger, at);
	my_session.wait_before = wait.length;
	if (likely(my_session.record_counts))
	{
		exchange_count_wait(&wait);
		tally_observe_wait(wait.network, wait.client);
		slot_write_end(slot);
		exchange_record_finish(&wait);
	}
	else
		slot_write_end(slot);
	exchange_enter(at);
	return true;
}

/* ---------------------------------------------------------------------------
 * The response is sent
 * ---------------------------------------------------------------------------
 */

/* Is it the only one in the kernel, and its only part? */
static inline bool
exchange_response_cannot_block(void)
{
	return my_session.response_bytes == 0 && !my_ledger()->wait.pipelined;
}

/*
 * Before the response leaves: has the next request arrived in the kernel?
 * Afterwards would be too late to tell, for a client that is close by answers
 * before flush() returns.  It is a system call, and so not for each exchange:
 * only if requests have been seen queued, or one had some time to arrive.
 */
static inline bool
exchange_request_has_arrived(int64 now)
{
	/* an exchange that was pipelined is not plain */
	return unlikely(now - my_session.began > PIPELINE_CHECK_NS ||
					(!my_session.plain && my_ledger()->wait.pipelined)) &&
		tcpinfo_has_input(MyProcPort->sock);
}

/*
 * How the wait that begins will be split if it is plain, and how long it may be
 * for that.
 */
static inline LedgerWaitTerms
exchange_wait_terms(const SessionSlot *slot, char xact_status)
{
	LedgerWaitTerms terms;

	terms.rtt = slot->published.trip;
	terms.idle_threshold = pgnetlat_idle_threshold_ns;
	terms.in_xact = xact_status != 'I';
	terms.pipelined = false;
	terms.draining = false;
	my_session.plain_limit = pgnetlat_plain_wait_ns;
	return terms;
}

/* What was counted since the last time is published with an event. */
static inline void
exchange_publish_counters(LedgerTotals *totals)
{
	totals->statements += my_session.statements;
	totals->transactions += my_session.transactions;
	my_session.statements = 0;
	my_session.transactions = 0;
}

/*
 * The exchange that ends is recorded, as the next one may be: its statement, which
 * has its place in the tally, and itself; in a write section.  Some bytes were sent
 * from "sending_since" to "now".
 */
static pg_attribute_always_inline void
exchange_count_plain(CountedStatement *statement, int64 sending_since, int64 now, int64 bytes, int64 length,
					 bool in_xact)
{
	FlightRecord *record = exchange_record();
	StatementPart part;

	/* a next statement's timestamp is some fraction of a microsecond off */
	part.exec = Max(sending_since - record->start, 0);
	part.send = now - sending_since;
	part.bytes = bytes - my_session.record_bytes;
	part.in_block = in_xact | my_session.in_block;
	record->xact_status = my_session.xact_status;
	exchange_count_statement(record, statement, &part);
	if (unlikely(part.in_block))
		burst_leave_block(&my_tally.burst, in_xact);
	tally_observe(METRIC_REQUEST, length);
}

/*
 * A plain response, of "bytes", was sent from "sending_since" to "now"; the
 * exchange is over, and the next request had not arrived before.  False if it was
 * not plain after all.  Its caller knows whether my_session.record_counts.
 */
static pg_attribute_always_inline bool
exchange_end_plain(int64 sending_since, int64 now, int64 bytes, bool record_counts)
{
	SessionSlot *slot = my_session.slot;
	Ledger	   *ledger = &slot->published.ledger;
	TimestampTz stamp = GetCurrentStatementStartTimestamp();
	int64		length = now - my_session.began;
	CountedStatement *statement = NULL;
	LedgerWaitTerms terms;

	if (unlikely(length >= pgnetlat_log_limit))
		return false;
	if (record_counts && unlikely((statement = exchange_find_statement()) == NULL))
		return false;
	if (unlikely(!exchange_write_begin_plain(slot)))
		return false;
	if (unlikely(sending_since < ledger->since ||
				 slot->sampled.exchange_number == ledger->exchange_number))
	{
		slot_write_end(slot);
		return false;
	}
	Assert(ledger_response_is_plain(ledger, sending_since) && now >= sending_since);
	terms = exchange_wait_terms(slot, my_session.xact_status);
	slot->published.request_stamp = stamp;
	ledger->totals.bytes_sent += bytes;
	exchange_publish_counters(&ledger->totals);
	if (record_counts)
		exchange_count_plain(statement, sending_since, now, bytes, length, terms.in_xact);
	ledger_response_plain(ledger, sending_since, now, &terms);
	slot_write_end(slot);
	my_session.in_block = terms.in_xact;
	my_session.row_limit = ROW_LIMIT_IN_WAIT;
	my_session.state &= ~STATE_RECORDING;
	return true;
}

#endif							/* PGNETLAT_EXCHANGE_H */
