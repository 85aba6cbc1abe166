/*-------------------------------------------------------------------------
 *
 * exchange.h
 *	  This backend's account: events in, ledger, slot and records out.
 *
 * wire.c says when an exchange begins and when its response is sent; this is
 * where that is booked in the ledger, published in the slot and written into
 * the flight recorder, and where the kernel is asked about the connection.
 *
 * The plain exchange is here, for wire.c to inline: it takes two write
 * sections, one when a request has been read and one when the response is
 * gone.  A response that cannot block (it is the only one in the kernel, and
 * smaller than core's send buffer) is not published as being sent while it
 * is: should it block all the same, its backend's wait event shows that.
 * Everything else goes through exchange.c, event by event.
 *
 * Hot path: the session's own slot only, no lock, no allocation, no error.
 * The one exception: it accumulates a flight recorder that is nearly full,
 * between two exchanges, once per recorder_size exchanges.
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
#include "recorder.h"
#include "session_slot.h"
#include "tally.h"

/*
 * Behind a wait longer than this there is time to look closer: has the wall
 * clock stepped, in which core's timestamp is?  Was the response lost and sent
 * again?
 */
#define LONG_WAIT_NS				(10 * NS_PER_MS)

/*
 * What has arrived is read at once.  If a request that seemed to have arrived
 * took longer than this, and longer than a round trip, was it complete?
 */
#define LATE_REQUEST_NS				NS_PER_MS

/* Before a shorter exchange is over, no other request is looked for. */
#define PIPELINE_CHECK_NS			(50 * NS_PER_US)

/* What an Execute message fetches; known only where portals are suspended. */
typedef enum FetchKind
{
	FETCH_UNKNOWN = 0,
	FETCH_BOUND,				/* a portal was bound: nothing of it so far */
	FETCH_FIRST,				/* it began to run */
	FETCH_FURTHER				/* it went on: counted before */
} FetchKind;

typedef struct OwnSession
{
	SessionSlot *slot;			/* NULL until the first ReadyForQuery */
	int			index;			/* the slot's number */
	bool		counting;		/* the ledger is not off */
	bool		housekeeping;			/* there is something to do between exchanges */
	bool		renamed;		/* application_name may have changed */
	char		xact_status;	/* of the latest ReadyForQuery */
	size_t		row_limit;		/* up to this fill of core's send buffer a row is
								 * no event; tells where we are, see below */
	int			depth;			/* of nested statements in this exchange */
	int64		plain_limit;	/* a wait is plain if it is shorter */
	int64		late_request;	/* if it is pipelined: behind a longer one ... */
	long		times_blocked;	/* ... than this; as it was when it began */
	uint64		unsolicited_after;	/* exchange in whose wait the backend sent something
								 * of its own accord */

	/* of the portals in this transaction, see wire.c; suspended is below */
	FetchKind	fetch;			/* what the Execute in progress is */

	/* of the exchange in progress */
	bool		plain;			/* it may end on the plain path, see below */
	bool		is_request;		/* and is among those in the histogram */
	int64		began;			/* when it did, moved on by the turns in it */
	int64		statements;		/* completed and not yet published, as the next */
	int64		transactions;
	int64		response_bytes; /* sent and published */
	int64		length;			/* when it has ended: without the turns in it */

	/* the statement in progress, and when the exchange has ended, the last */
	bool		record_counts;	/* there is such a record, not older than a reset */
	bool		uncounted;		/* has the exchange ended?  After a Flush message
								 * only what comes next shows */
	bool		statement_prepared; /* that was what the exchange was about */
	bool		in_block;		/* the exchange began in a transaction block */
	Oid			userid;			/* who runs it, if the record has a queryid */
	int64		record_bytes;	/* of the response: sent before this statement */
	int64		record_recv;	/* of what was sampled: booked on those before */
	RecorderWriter recorder;	/* the record itself is recorder.next */

	/* asked together, for each message and statement: one byte */
	bool		recording:1;	/* the exchange is recorded */
	bool		statement_begun:1;	/* its hook has been called */
	bool		statement_done:1;	/* it is complete; what follows is the next */
	bool		suspended:1;	/* a portal was not read to its end */

	int64		next_kernel_info;	/* do not ask the kernel before */
	uint32		clock_steps;	/* of the wall clock, which have been dealt with */
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

/* In an exchange that is recorded? */
static inline bool
exchange_is_recording(void)
{
	return exchange_in_progress() && my_session.recording;
}

/* ---------------------------------------------------------------------------
 * Events that are not of the plain exchange
 * ---------------------------------------------------------------------------
 */

extern void exchange_begin_after_long_wait(TimestampTz stamp);
extern void exchange_begin(int64 at, bool is_request);
extern void exchange_wait_was_work(void);
extern void exchange_note_pipelined(bool pipelined);
extern void exchange_begin_turn(int64 now);
extern void exchange_end_turn(int64 now, bool data_came);
extern void exchange_count_turn(void);
extern void exchange_begin_send(int64 now);
extern void exchange_end_send(int64 now, int64 bytes);
extern void exchange_end(int64 now, int64 bytes, bool pipelined, char xact_status,
						 bool is_over);
extern void exchange_next_statement(int64 at, int64 unsent_bytes);
extern void exchange_refresh_kernel_info(int64 now);
extern void exchange_housekeeping(void);
extern void exchange_settle(void);
extern void exchange_claim_statement(Oid userid);

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
exchange_record_begin(int64 at, uint8 flags)
{
	FlightRecord *record = exchange_record();

	record->start = at;
	record->send = record->recv = 0;
	record->queryid = 0;
	record->rows = 0;
	record->statements = 0;
	record->xact_status = 0;
	record->flags = flags;
	my_session.statement_begun = false;
	my_session.statement_prepared = false;
}

/*
 * Find the place in the tally for the statement that the record is about.
 * Where there is none, it may take locks to get one, so none may be held.
 */
static inline void
exchange_find_statement(void)
{
	uint64		queryid = exchange_record()->queryid;
	Oid			userid = my_session.userid;

	if (unlikely(queryid == 0))
		userid = my_session.slot->published.userid;
	if (unlikely(!tally_find(queryid, userid)))
		exchange_claim_statement(userid);
}

/* The statement was executed, or prepared: does it repeat one? */
static inline void
exchange_count_repeats(const FlightRecord *record, TallyStatement *statement, bool in_block)
{
	Burst	   *burst = &my_tally.burst;

	burst_enter(burst, in_block);
	if (unlikely(record->queryid == 0))
		return;
	if (likely(record->statements > 0))
	{
		if (!burst_repeats(burst, &statement->executed_in))
			return;
		statement->counters.repeats++;
		statement->counters.repeat_network += burst->trip;
	}
	else if (my_session.statement_prepared && statement->executed_in == burst->number)
		statement->counters.repeat_network += burst->trip;
}

/*
 * Add a statement's record to its place in the tally, but what was received; in
 * a write section.
 */
static inline void
exchange_count_statement(const FlightRecord *record, bool in_block)
{
	TallyStatement *statement = my_tally.current;
	StatementCounters *counters = &statement->counters;

	counters->calls += record->statements;
	counters->rows += record->rows;
	counters->exec += record->exec;
	counters->send += record->send;
	counters->bytes += record->bytes;
	exchange_count_repeats(record, statement, in_block);
}

/* The same for the wait after the exchange, if a request ended it. */
static inline void
exchange_count_wait(const LedgerWait *wait)
{
	StatementCounters *counters = &my_tally.current->counters;

	counters->network += wait->network;
	counters->client += wait->client;
	if (wait->in_xact)
		counters->in_xact_wait += wait->network + wait->client;
	my_tally.burst.trip = wait->network;
}

/* The record of the exchange's last statement, with the wait that followed it. */
static inline void
exchange_record_finish(const LedgerWait *wait)
{
	FlightRecord *record = exchange_record();

	record->network = wait->network;
	record->client = wait->client;
	record->idle = wait->idle;
	record->flags |= RECORD_ENDS_EXCHANGE;
	recorder_push(&my_session.recorder);
}

/* ---------------------------------------------------------------------------
 * Write sections
 * ---------------------------------------------------------------------------
 */

/*
 * Begin to publish and to count, until slot_write_end(): nothing in between may
 * raise an error, block or return.  Somebody may have come in between: then
 * recording has ended, or what comes is not plain.
 */
static inline void
exchange_write_begin(void)
{
	slot_write_begin(my_session.slot);
	if (unlikely(pg_atomic_read_u32(my_tally.state) != TALLY_KEPT))
		exchange_settle();
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

/*
 * What follows in this process when an exchange has begun at "at", on request
 * or not, and may be a plain one or not.
 */
static inline void
exchange_enter(int64 at, bool is_request, bool plain)
{
	my_session.row_limit = ROW_LIMIT_IN_EXCHANGE;
	my_session.depth = 0;
	my_session.is_request = is_request;
	my_session.plain = plain;
	my_session.began = at;
	my_session.response_bytes = 0;
	my_session.recording = my_session.record_counts = pgnetlat_track_statements;
	my_session.statement_done = false;
	if (my_session.recording)
	{
		my_session.in_block = my_session.xact_status != 'I';
		my_session.record_bytes = 0;
		exchange_record_begin(at, my_ledger()->wait.pipelined ? RECORD_PIPELINED : 0);
	}
	if (unlikely(at >= my_session.next_kernel_info))
		exchange_refresh_kernel_info(at);
}

/*
 * Book the wait in progress, which ended at "at", if it is plain; else false.
 */
static pg_attribute_always_inline bool
exchange_begin_plain(int64 at)
{
	SessionSlot *slot = my_session.slot;
	Ledger	   *ledger = &slot->published.ledger;
	LedgerWait	wait;

	exchange_write_begin();
	at = slot_not_before_wait_shown(slot, at);
	/* or negative: the clock has stepped */
	if (unlikely((uint64) (at - ledger->since) >= (uint64) my_session.plain_limit))
	{
		slot_write_end(slot);
		return false;
	}
	Assert(ledger_wait_is_plain(ledger, at));
	wait = ledger_request_begin_plain(ledger, at);
	if (my_session.record_counts)
	{
		exchange_count_wait(&wait);
		tally_observe_wait(wait.network, wait.client);
	}
	slot_write_end(slot);

	if (my_session.record_counts)
		exchange_record_finish(&wait);
	exchange_enter(at, true, !ledger->wait.pipelined);
	return true;
}

/*
 * The wait in progress is over: a request was read, when core took "stamp".
 */
static pg_attribute_always_inline void
exchange_begin_request(TimestampTz stamp)
{
	int64		at = clock_from_timestamp(my_session.slot->published.clock_offset, stamp);

	if (unlikely(!exchange_begin_plain(at)))
		exchange_begin_after_long_wait(stamp);
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
	return unlikely(my_ledger()->wait.pipelined ||
					now - my_session.began > PIPELINE_CHECK_NS) &&
		tcpinfo_has_input(MyProcPort->sock);
}

/* How the wait that begins will be split, but for a response that may drain. */
static inline LedgerWaitTerms
exchange_wait_terms(bool pipelined, char xact_status)
{
	LedgerWaitTerms terms;

	terms.rtt = my_session.slot->published.tcp.rtt;
	terms.idle_threshold = pgnetlat_idle_threshold_ns;
	terms.in_xact = xact_status != 'I';
	terms.pipelined = pipelined;
	terms.draining = false;
	my_session.plain_limit = Min(LONG_WAIT_NS, terms.idle_threshold);
	if (unlikely(pipelined))
	{
		my_session.late_request = Max(terms.rtt, LATE_REQUEST_NS);
		my_session.plain_limit = Min(my_session.plain_limit, my_session.late_request);
		my_session.times_blocked = tcpinfo_times_blocked();
	}
	return terms;
}

/* What was counted since the last time is published with an event. */
static inline void
exchange_publish_counters(void)
{
	LedgerTotals *totals = &my_ledger()->totals;

	totals->statements += my_session.statements;
	totals->transactions += my_session.transactions;
	my_session.statements = 0;
	my_session.transactions = 0;
}

/*
 * A response of "bytes", all of it, that cannot block was sent from
 * "sending_since" to "now"; the exchange is over.  The next request had arrived
 * before, if "pipelined".
 */
static inline void
exchange_end_response(int64 sending_since, int64 now, int64 bytes, bool pipelined)
{
	SessionSlot *slot = my_session.slot;
	Ledger	   *ledger = &slot->published.ledger;
	FlightRecord *record = exchange_record();
	TimestampTz stamp = GetCurrentStatementStartTimestamp();
	LedgerWaitTerms terms = exchange_wait_terms(pipelined, my_session.xact_status);

	if (my_session.record_counts)
		exchange_find_statement();
	exchange_write_begin();
	sending_since = slot_not_before_busy_shown(slot, sending_since);
	if (unlikely(!my_session.plain || sending_since < ledger->since ||
				 slot->sampled.exchange_number == ledger->exchange_number))
	{
		slot_write_end(slot);
		exchange_begin_send(sending_since);
		exchange_end(now, bytes, pipelined, my_session.xact_status, true);
		return;
	}
	Assert(ledger_response_is_plain(ledger, sending_since));
	now = Max(now, sending_since);
	ledger_response_plain(ledger, sending_since, now, &terms);
	ledger->totals.bytes_sent += bytes;
	exchange_publish_counters();
	slot->published.request_stamp = stamp;
	if (my_session.record_counts)
	{
		/* a next statement's timestamp is some fraction of a microsecond off */
		record->exec = Max(sending_since - record->start, 0);
		record->send = now - sending_since;
		record->bytes = bytes - my_session.record_bytes;
		record->xact_status = my_session.xact_status;
		exchange_count_statement(record, terms.in_xact || my_session.in_block);
		burst_leave(&my_tally.burst, terms.in_xact);
		tally_observe(METRIC_REQUEST, now - my_session.began);
	}
	slot_write_end(slot);
	my_session.row_limit = ROW_LIMIT_IN_WAIT;
}

#endif							/* PGNETLAT_EXCHANGE_H */
