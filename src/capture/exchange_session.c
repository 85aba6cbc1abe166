/*-------------------------------------------------------------------------
 *
 * exchange_session.c
 *	  The life of this backend's account: where it begins, pauses and ends.
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
#include "pooler.h"
#include "storage/ipc.h"

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
		exchange_close_record(phase == LEDGER_TURNING ? began : now, my_session.response_bytes,
					 sampled);
		record->recv += turn->recv;
		record->xact_status = 0;
		exchange_count_exchange(now - my_session.began - turn->network -
					   exchange_notes()->turn_network, false);
	}
	wait->network += turn->network;
	exchange_end_of_wait(wait, false);
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
	known = pgnetlat_rtt_interval >= 0 && process_run_queue(MyProcPid, &run_queue, &runs, &on_cpu);
	now = clock_now();
	/* what has passed since the latest question, of a short session all of it */
	if (phase != LEDGER_WAITING || !ledger->wait.draining)
		(void) exchange_ask_kernel(now, &info);
	else if (exchange_measure_drain(now, &info, &measured))
		drain = &measured;
	exchange_write_begin();
	now = Max(now, ledger->since);
	sampled = exchange_sampled();
	exchange_publish_sent(0);
	ledger_stop(ledger, now, sampled, exchange_best_drain(drain), &wait, &turn);
	exchange_publish_kernel_info(&info);
	if (known)
		exchange_publish_run_queue(run_queue, runs, on_cpu);
	if (my_session.record_counts)
		stop_recording(phase, began, now, sampled, &turn, &wait);
	slot_write_end(slot);

	if (my_session.record_counts)
		exchange_finish_record(&wait);
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
	terms = exchange_next_wait(pq_buffer_remaining_data() > 0, my_session.xact_status);

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
	active_leave(my_session.index);
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
	active_enter(my_session.index);
	accumulate_attach(my_session.index, session, &cost);
	before_shmem_exit(session_exit, (Datum) 0);
	/* the first one: there may be no sampler to say so */
	if (session == 1)
		persist_remove_file();
}

/* application_name, or how to read it, may have changed. */
static void
look_at_name(void)
{
	if (pgnetlat_names_changed)
		(void) pooler_ends_exchange(true, true);
	if (accumulate_is_renamed())
	{
		exchange_settle_kernel_info();
		accumulate_rename(my_session.index);
	}
	if (my_session.counting)
	{
		int64		again = exchange_refresh_client_rtt(clock_now());

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
