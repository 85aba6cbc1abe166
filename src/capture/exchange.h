/*-------------------------------------------------------------------------
 *
 * exchange.h
 *	  Turns this backend's events into its ledger, slot, tally and records.
 *
 * wire.c says when an exchange begins and when its response is sent.  Here
 * that is booked in the ledger, published in the slot, added to the tally and
 * written into the flight recorder, and the kernel is asked about the
 * connection.
 *
 * The plain exchange is in this file, for wire.c to inline: it takes some 600
 * instructions, and 1,650 if it goes through exchange.c.  It has two write
 * sections: one when a request has been read, and one when the response has
 * been handed over.  A response that cannot block (it is the only one in the
 * kernel, and smaller than core's send buffer) is not published while it is
 * being sent; should it block all the same, its backend's wait event shows
 * that.  Everything else goes through exchange.c, event by event.
 *
 * Hot path: the session's own slot and tally only, no lock, no allocation, no
 * error.  There is one exception: when a session needs an entry in a full
 * tally, it adds all entries to the table of statements, after an exchange or
 * between two statements.
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

/* In a shorter exchange, the kernel is not asked for the next request. */
#define PIPELINE_CHECK_NS			(50 * NS_PER_US)

/* What had arrived from the client when the response left. */
typedef enum Arrived
{
	ARRIVED_NOTHING = 0,
	ARRIVED_REQUEST,			/* the next one, or a part of it */
	ARRIVED_LEFTOVER			/* perhaps only the rest of a COPY that has
								 * failed */
} Arrived;

/*
 * What several files need to know of this session.  Only this header and
 * exchange_*.c write it; what one file alone needs is a static variable of
 * that file.
 */
typedef struct OwnSession
{
	/* used in each exchange: close together, to touch few cache lines */
	SessionSlot *slot;			/* NULL until the first ReadyForQuery */
	uint32		state;			/* STATE_... bits, see below */
	bool		in_block;		/* the exchange begins in a transaction block */
	char		xact_status;	/* of the latest ReadyForQuery */
	int64		began;			/* the exchange */
	int64		clock_base;		/* of core's timestamps, see
								 * exchange_time_of() */
	int64		next_kernel_info;	/* do not ask the kernel before */
	int64		statements;		/* completed and not yet published, like
								 * transactions */
	int64		transactions;
	RecorderWriter recorder;	/* the record itself is recorder.next */
	int64		record_bytes;	/* sent for earlier statements */
	int64		response_bytes; /* sent and published */
	int64		wait_before;

	/* used in some exchanges only */
	int			index;			/* the slot's number */
	bool		name_unread;	/* application_name may have changed */
	bool		renamed;		/* the session has another name */
	TraceId		trace;			/* a tracer's, in application_name */
} OwnSession;

/* hidden: it is read for each message */
#pragma GCC visibility push(hidden)
extern OwnSession my_session;
#pragma GCC visibility pop

static inline Ledger *
my_ledger(void)
{
	return &my_session.slot->published.ledger;
}

/*
 * The state of the session and of its statement: bits of one word, since each
 * message and each statement tests several of them.  The first five fit into a
 * byte, see wire.c.  The session is in exactly one of the first three; the
 * others say more about that.
 */
#define STATE_OFF				0x0001	/* nothing is counted */
#define STATE_IN_EXCHANGE		0x0002	/* in an exchange */
#define STATE_IN_WAIT			0x0004	/* in a wait */
#define STATE_STATEMENT_DONE	0x0008	/* the statement is complete */
#define STATE_SUSPENDED			0x0010	/* a portal was not read to its end in
										 * this transaction: see wire.c */
#define STATE_PLAIN				0x0020	/* the wait or exchange may end on the
										 * plain path */
#define STATE_RECORDING			0x0040	/* the exchange in progress is
										 * recorded */
#define STATE_COUNTS			0x0080	/* the latest statement has a record
										 * that is not older than a reset */
#define STATE_STATEMENT_BEGUN	0x0100	/* the statement's hook has been
										 * called */
#define STATE_NESTED			0x0200	/* inside a statement */
#define STATE_STATEMENT_PREPARED	0x0400	/* a statement was prepared */
#define STATE_STATEMENT_BEFORE	0x0800	/* an earlier statement of this
										 * exchange has its own record */

static inline bool
exchange_state(uint32 bits)
{
	return (my_session.state & bits) != 0;
}

static inline void
exchange_set_state(uint32 bits, bool value)
{
	if (value)
		my_session.state |= bits;
	else
		my_session.state &= ~bits;
}

/* ---------------------------------------------------------------------------
 * Events that are not of the plain exchange
 * ---------------------------------------------------------------------------
 */

extern void exchange_begin_request(TimestampTz stamp);
extern void exchange_begin(int64 at, bool is_request);
extern void exchange_wait_was_work(void);
extern void exchange_note_not_pipelined(void);
extern void exchange_note_notification(void);
extern void exchange_note_unsolicited(int64 bytes, int64 notified_at);
extern void exchange_invite(int64 asked_at);
extern void exchange_begin_turn(int64 now);
extern void exchange_end_turn(int64 now, bool is_turn);
extern void exchange_turn_was_work(void);
extern int64 exchange_bytes_received(int64 now);
extern void exchange_begin_send(int64 now, size_t bytes);
extern void exchange_end_send(int64 now, int64 bytes);
extern void exchange_end(int64 now, int64 bytes, Arrived arrived, bool is_over);
extern void exchange_next_statement(int64 at, int64 unsent_bytes);
extern void exchange_refresh_kernel_info(int64 now);
extern void exchange_housekeeping(void);
extern void exchange_settle(void);
extern void exchange_look_up_statement(void);
extern void exchange_read_name(void);

/* ---------------------------------------------------------------------------
 * Records and tally: one entry for each statement of an exchange
 * ---------------------------------------------------------------------------
 */

static inline FlightRecord *
exchange_record(void)
{
	return my_session.recorder.next;
}

/* Fields that are not set here are set when the record is finished. */
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
 * Find the tally's entry for the record's statement, and make it current.
 * Making a new entry may take locks, so none may be held, and may notice a
 * reset.  Returns NULL if the exchange is not plain, or has ceased to be.
 */
static inline CountedStatement *
exchange_find_statement(void)
{
	const FlightRecord *record = exchange_record();
	CountedStatement *statement = tally_at_hint(record->queryid, record->userid);

	if (likely(statement != NULL))
		return statement;
	exchange_look_up_statement();
	return exchange_state(STATE_PLAIN) ? my_tally.current : NULL;
}

/*
 * Count repeats of a statement that was executed or prepared.  A FETCH goes on
 * with what another one has begun, so it repeats nothing.
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
		int64		repeats = burst_repeats(burst, in_block, &statement->executed_in,
											record->queryid, record->rows,
											exchange_state(STATE_STATEMENT_BEFORE), &network);

		if (likely(repeats == 0) || record->queryid == 0 || (record->flags & RECORD_FETCH))
			return;
		totals->repeats += repeats;
		totals->repeat_network += network;
		tally_note_repeats(statement, repeats);
	}
	else if (exchange_state(STATE_STATEMENT_PREPARED) && record->queryid != 0)
		totals->repeat_network += burst_prepares(burst, in_block, statement->executed_in,
												 record->queryid);
}

/*
 * Complete a statement's record with its part of the exchange, and add it to
 * the statement's entry in the tally; in a write section.
 */
static pg_attribute_always_inline void
exchange_count_statement(FlightRecord *record, CountedStatement *statement, int64 exec,
						 int64 send, int64 bytes, bool in_block)
{
	StatementTotals *totals = &statement->totals;
	uint32		statements = record->statements;

	record->exec = exec;
	record->send = send;
	record->bytes = bytes;
	totals->calls += statements;
	my_tally.tally->identified += record->queryid != 0 ? statements : 0;
	totals->rows += record->rows;
	totals->exec += exec;
	totals->send += send;
	totals->bytes += bytes;
	exchange_count_repeats(record, statement, statements, in_block);
}

/* Add the wait after an exchange to its last statement's entry. */
static inline void
exchange_count_wait(const LedgerWait *wait)
{
	StatementTotals *totals = &my_tally.current->totals;

	totals->network += wait->network;
	totals->client += wait->client;
	if (wait->in_xact)
		totals->in_xact_wait += wait->network + wait->client;
	burst_wait(&my_tally.burst, wait->network, wait->client + wait->idle);
}

/*
 * Finish the record of the exchange's last statement with the wait after it.
 */
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
	if (exchange_state(STATE_RECORDING))
	{
		exchange_record()->statements++;
		my_session.state |= STATE_STATEMENT_DONE;
	}
}

/* ReadyForQuery has this transaction status. */
static inline void
exchange_note_xact_status(char xact_status)
{
	my_session.xact_status = xact_status;
}

/* A transaction of the client has ended. */
static inline void
exchange_note_transaction(void)
{
	my_session.transactions++;
}

/* The statement in progress, if there is one, has ended. */
static inline void
exchange_statement_is_over(void)
{
	exchange_set_state(STATE_STATEMENT_DONE, exchange_state(STATE_RECORDING));
}

/* A portal was not read to its end. */
static inline void
exchange_note_suspended(void)
{
	exchange_set_state(STATE_SUSPENDED, true);
	pgnetlat_housekeeping = true;
}

/*
 * A statement was prepared: a record without another statement is about that.
 */
static inline void
exchange_note_prepared(uint64 queryid)
{
	if (!exchange_state(STATE_RECORDING) || exchange_record()->queryid != 0)
		return;
	exchange_record()->queryid = queryid;
	exchange_set_state(STATE_STATEMENT_PREPARED, true);
}

/*
 * A top-level statement begins to run, the first one of its record.  "state"
 * has further bits to set.
 */
static inline void
exchange_statement_begins(uint64 queryid, uint32 state)
{
	my_session.state |= STATE_STATEMENT_BEGUN | state;
	exchange_record()->queryid = queryid;
}

/* A parameter has changed, perhaps application_name. */
static inline void
exchange_note_parameter(void)
{
	pgnetlat_housekeeping = my_session.name_unread = true;
	exchange_set_state(STATE_PLAIN, false);
}

/* ---------------------------------------------------------------------------
 * Write sections
 * ---------------------------------------------------------------------------
 */

/*
 * Begin to publish and to count, until slot_write_end(): nothing in between
 * may raise an error, block or return.  If the tally was taken or a reset
 * came, see exchange_settle().
 */
static inline void
exchange_write_begin(void)
{
	slot_write_begin(my_session.slot);
	if (unlikely(tally_was_touched(my_session.slot)))
		exchange_settle();
}

/*
 * The same on the hot path.  Returns false, without a write section, if the
 * tally was taken or a reset came.
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

/* Convert core's "stamp" to monotonic time. */
static inline int64
exchange_time_of(TimestampTz stamp)
{
	return stamp * NS_PER_US + my_session.clock_base;
}

/* Set up this process's state for an exchange that has begun at "at". */
static inline void
exchange_enter(int64 at)
{
	uint32		state = (my_session.state & (STATE_SUSPENDED | STATE_PLAIN)) | STATE_IN_EXCHANGE;

	my_session.began = at;
	if (likely(pgnetlat_track_statements))
	{
		Oid			userid = GetOuterUserId();	/* perhaps inside a function */

		state |= STATE_RECORDING | STATE_COUNTS;
		my_session.record_bytes = 0;
		exchange_record_begin(at, userid,
							  my_ledger()->wait.pipelined ? RECORD_PIPELINED : 0);
	}
	my_session.state = state;
}

/*
 * End a plain wait: a request was read at "at".  Returns false if the wait is
 * not plain, or if the kernel is to be asked.
 */
static pg_attribute_always_inline bool
exchange_begin_plain(int64 at)
{
	SessionSlot *slot = my_session.slot;
	Ledger	   *ledger = &slot->published.ledger;
	LedgerWait	wait;

	if (unlikely(!exchange_state(STATE_PLAIN) || !exchange_write_begin_plain(slot)))
		return false;
	/* or negative: the clock has stepped */
	if (unlikely((uint64) (at - ledger->since) >= LONG_WAIT_NS ||
				 at >= my_session.next_kernel_info))
	{
		slot_write_end(slot);
		return false;
	}
	Assert(ledger_wait_is_plain(ledger, at));
	wait = ledger_wait_end_plain(ledger, at);
	my_session.wait_before = wait.length;
	if (likely(exchange_state(STATE_COUNTS)))
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

/* Is the response the only one in the kernel, and not sent in parts? */
static inline bool
exchange_response_cannot_block(void)
{
	return my_session.response_bytes == 0 && !my_ledger()->wait.pipelined;
}

/*
 * Has the next request arrived in the kernel?  This is asked before the
 * response leaves, since a client close by answers before flush() returns.  It
 * costs a system call, so it is asked only if requests have been seen queued,
 * or if one had some time to arrive.
 */
static inline bool
exchange_request_has_arrived(int64 now)
{
	/* an exchange that was pipelined is not plain */
	return unlikely(now - my_session.began > PIPELINE_CHECK_NS ||
					(!exchange_state(STATE_PLAIN) && my_ledger()->wait.pipelined)) &&
		tcpinfo_has_input(MyProcPort->sock);
}

/* How the wait that begins will be split if it is plain. */
static inline LedgerWaitTerms
exchange_wait_terms(const SessionSlot *slot, char xact_status)
{
	LedgerWaitTerms terms;

	terms.rtt = slot->published.trip;
	terms.idle_threshold = pgnetlat_idle_threshold_ns;
	terms.in_xact = xact_status != 'I';
	terms.pipelined = false;
	terms.draining = false;
	return terms;
}

/* Publish what was counted since the last event. */
static inline void
exchange_publish_counters(LedgerTotals *totals)
{
	totals->statements += my_session.statements;
	totals->transactions += my_session.transactions;
	my_session.statements = 0;
	my_session.transactions = 0;
}

/*
 * Count a plain exchange and its statement; in a write section.  The response
 * was sent from "sending_since" to "now".
 */
static pg_attribute_always_inline void
exchange_count_plain(CountedStatement *statement, int64 sending_since, int64 now, int64 bytes,
					 int64 length, bool in_xact)
{
	FlightRecord *record = exchange_record();
	bool		in_block = in_xact | my_session.in_block;

	record->xact_status = my_session.xact_status;
	/* not negative, although timestamps are rounded */
	exchange_count_statement(record, statement, Max(sending_since - record->start, 0),
							 now - sending_since, bytes - my_session.record_bytes, in_block);
	/* the ledger does not have this exchange yet */
	if (unlikely(in_block))
		tally_leave_block(my_session.in_block, in_xact,
						  ledger_round_trips(&my_ledger()->totals) + 1);
	tally_observe(METRIC_REQUEST, length);
}

/*
 * End a plain exchange, whose response of "bytes" was sent from
 * "sending_since" to "now"; the next request had not arrived before.  Returns
 * false if it was not plain after all.  "counts" is STATE_COUNTS.
 */
static pg_attribute_always_inline bool
exchange_end_plain(int64 sending_since, int64 now, int64 bytes, bool counts)
{
	SessionSlot *slot = my_session.slot;
	Ledger	   *ledger = &slot->published.ledger;
	TimestampTz stamp = GetCurrentStatementStartTimestamp();
	int64		length = now - my_session.began;
	CountedStatement *statement = NULL;
	LedgerWaitTerms terms;

	if (unlikely(length >= pgnetlat_log_limit))
		return false;
	if (counts && unlikely((statement = exchange_find_statement()) == NULL))
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
	if (counts)
		exchange_count_plain(statement, sending_since, now, bytes, length, terms.in_xact);
	ledger_response_plain(ledger, sending_since, now, &terms);
	slot_write_end(slot);
	my_session.in_block = terms.in_xact;
	my_session.state = (my_session.state & ~(STATE_IN_EXCHANGE | STATE_RECORDING)) | STATE_IN_WAIT;
	return true;
}

#endif							/* PGNETLAT_EXCHANGE_H */
