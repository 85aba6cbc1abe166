/*-------------------------------------------------------------------------
 *
 * sample_statements.c
 *	  Books what sessions are seen doing on their statements.
 *
 * The flight recorder says which statement a session executes.  A record may
 * begin only after the sampler has seen its execution; until then, the time has
 * no place.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "recorder.h"
#include "sample_statements.h"

/* How long the samples of a statement are kept here, at most. */
#define STATEMENT_LAG_NS		(250 * NS_PER_MS)

/*
 * Add the sampled parts, and "exec" of the execution in progress, to the
 * statement's entry.
 */
void
sample_statement_flush(Seen *seen, int64 exec)
{
	if (seen->flush_at == 0 && exec == 0)
		return;
	statements_add_sampled(&seen->statement, exec, seen->part, seen->generation);
	memset(seen->part, 0, sizeof(seen->part));
	seen->flush_at = 0;
}

/*
 * Read the record in progress; false if it has not begun.  If the wait before
 * it had no record, as after connecting or a reset, its number is one less
 * than sample_statement_find() expected.
 */
static bool
read_record(int index, Seen *seen, FlightRecord *record)
{
	int64		since = Max(seen->view.ledger.since, slot_control->reset_at);

	if (seen->view.ledger.phase != LEDGER_WAITING)
		return recorder_read(index, seen->record, record);
	if (recorder_read(index, seen->record - 1, record) && record->start >= since)
		seen->record--;
	return recorder_read(index, seen->record, record) && record->start >= since;
}

/*
 * Book time, seen up to "until", and what has no place yet on the statement of
 * the record in progress.  A request that was not published yet may have had
 * no record: then the next one began after what was seen.
 */
void
sample_statement_book(int index, Seen *seen, int64 time, int64 until)
{
	FlightRecord record;
	StatementKey key;

	if (!seen->recorded || (time <= 0 && !seen->has_unplaced))
		return;
	if (!read_record(index, seen, &record))
	{
		if (time > 0)
			seen->unplaced[seen->doing.part] += time;
		seen->has_unplaced = true;
		return;
	}
	key.queryid = record.queryid;
	key.userid = record.queryid != 0 ? record.userid : seen->view.userid;
	key.dbid = seen->view.datid;
	if (memcmp(&key, &seen->statement, sizeof(key)) != 0)
		sample_statement_flush(seen, 0);
	seen->statement = key;
	if (time > 0 && (seen->view.ledger.phase != LEDGER_WAITING || record.start <= until))
		seen->part[seen->doing.part] += time;
	for (int i = 0; i < NUM_EXEC_PARTS && record.start <= seen->doing.from; i++)
		seen->part[i] += seen->unplaced[i];
	memset(seen->unplaced, 0, sizeof(seen->unplaced));
	seen->has_unplaced = false;
	if (seen->flush_at == 0)
		seen->flush_at = seen->doing.from + STATEMENT_LAG_NS;
}

/* Forget the samples of statements that are not in their entries yet. */
void
sample_statement_forget(Seen *seen)
{
	memset(seen->part, 0, sizeof(seen->part));
	memset(seen->unplaced, 0, sizeof(seen->unplaced));
	seen->has_unplaced = false;
	seen->flush_at = 0;
}

/*
 * Find the record of what the session executes.  If the latest record is
 * older, there is none.
 */
void
sample_statement_find(int index, Seen *seen, const SlotPublished *view)
{
	FlightRecord record;
	uint64		number = recorder_number(index);

	/* a request that is not published yet will have the next record */
	if (view->ledger.phase == LEDGER_WAITING)
	{
		seen->record = number + 1;
		seen->recorded = true;
		return;
	}
	if (seen->recorded && number == seen->record &&
		view->ledger.exchange_number == seen->view.ledger.exchange_number)
		return;
	seen->record = number;
	seen->recorded = recorder_read(index, number, &record) &&
		record.start >= Max(view->ledger.since, slot_control->reset_at);
}

/*
 * How much execution of the statement in progress is not in its entry yet?
 * The session's slot is told that it is now, so that the session leaves it out
 * when the statement is complete.  Returns 0 if the statement has completed
 * meanwhile.
 */
static int64
execution_to_add(int index, const Seen *seen, const Tick *tick)
{
	const SlotPublished *view = &seen->view;
	FlightRecord record;
	SlotSampled *sampled;
	int64		exec;
	int64		before;

	/* a statement is not known before it is planned */
	if (!seen->recorded || view->ledger.phase != LEDGER_EXECUTING ||
		view->generation != tick->generation ||
		!recorder_read(index, seen->record, &record) || record.queryid == 0 ||
		sampled_begin(index, view, tick) == NULL)
		return 0;
	sampled = &slot_get(index)->sampled;
	if (sampled->added_record != seen->record)
		sampled->added_exec = 0;
	before = sampled->added_exec;
	exec = tick->now - record.start - record.send - sampled->ledger.recv -
		(ledger_executes_from(&view->ledger) - view->ledger.since);
	exec = Max(exec, before);
	sampled->added_record = seen->record;
	sampled->added_exec = exec;
	slot_sampled_end(index);

	pg_memory_barrier();
	if (seqlock_count(&slot_get(index)->lock) == seen->doing.changecount)
		return exec - before;
	if (sampled_begin(index, view, tick) != NULL)
	{
		sampled->added_exec = before;
		slot_sampled_end(index);
	}
	return 0;
}

/* Add the execution in progress to its statement's entry, too. */
void
sample_statement_add_execution(int index, Seen *seen, const Tick *tick)
{
	sample_statement_flush(seen, execution_to_add(index, seen, tick));
}
