/*-------------------------------------------------------------------------
 *
 * exchange_session.c
 *	  Begins, pauses and ends this backend's account.
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
#include "late_memory.h"
#include "persist.h"
#include "pooler.h"
#include "storage/ipc.h"
#include "utils/guc.h"

/*
 * Finish the record and the counts of the exchange in progress when counting
 * stops; in a write section.
 */
static void
stop_recording(LedgerPhase phase, bool is_request, int64 began, const LedgerSampled *sampled)
{
	int64		now = my_ledger()->since;

	if (phase == LEDGER_SENDING)
		exchange_record()->send += now - began;
	exchange_close_record(now, my_session.response_bytes, sampled);
	exchange_record()->xact_status = 0;
	exchange_count_exchange(is_request, false);
}

/* Close the account, in any state.  It may be started again. */
static void
stop_counting(void)
{
	Ledger	   *ledger = my_ledger();
	LedgerPhase phase;
	LedgerWait	wait;
	const LedgerSampled *sampled;
	TcpInfo		info = NOT_ASKED;
	LedgerDrain measured;
	const LedgerDrain *drain = NULL;
	RunQueue	run_queue;
	bool		is_request = ledger->is_request;
	bool		known;
	int64		began;
	int64		network;
	int64		now;

	if (ledger->phase == LEDGER_TURNING)
		exchange_end_turn(clock_now(), false);
	phase = ledger->phase;
	began = ledger->since;
	if (phase == LEDGER_OFF)
		return;
	if (exchange_state(STATE_COUNTS) && phase != LEDGER_WAITING)
		(void) exchange_find_statement();
	known = pgnetlat_rtt_interval >= 0 && process_run_queue(MyProcPid, &run_queue);
	now = clock_now();
	/* book what the kernel has counted since it was last asked */
	if (phase != LEDGER_WAITING || !ledger->wait.draining)
		(void) exchange_ask_kernel(now, &info);
	else if (exchange_measure_drain(now, &info, &measured))
		drain = &measured;
	exchange_write_begin();
	/* no earlier than what readers have seen until then */
	now = clock_now();
	sampled = exchange_sampled();
	exchange_publish_sent(0);
	network = ledger->totals.network;
	ledger_stop(ledger, now, sampled, exchange_best_drain(drain), &wait);
	if (phase != LEDGER_WAITING)
		exchange_note_trip(ledger->totals.network - network);
	exchange_publish_kernel_info(&info);
	if (known)
		exchange_publish_run_queue(&run_queue);
	if (exchange_state(STATE_COUNTS) && phase != LEDGER_WAITING)
		stop_recording(phase, is_request, began, sampled);
	if (exchange_state(STATE_COUNTS))
		exchange_end_of_wait(&wait, false);
	slot_write_end(my_session.slot);

	exchange_end_record(wait);
	my_session.state = STATE_OFF;
}

/* Start the account with a wait, at "now". */
static void
start_counting(int64 now)
{
	SessionSlot *slot = my_session.slot;
	LedgerWaitTerms terms;

	exchange_start();
	exchange_skip_run_queue();
	exchange_refresh_kernel_info(clock_now());
	terms = exchange_next_wait(pq_buffer_remaining_data() > 0, my_session.xact_status);

	exchange_write_begin();
	ledger_start(&slot->published.ledger, now,
				 slot->published.transport == TRANSPORT_UNIX, &terms);
	slot->published.request_stamp = GetCurrentStatementStartTimestamp();
	slot_write_end(slot);
	active_announce(my_session.index);
}

/* Exit callback, while the process still has its PGPROC. */
static void
session_exit(int code, Datum arg)
{
	if (my_session.slot == NULL)
		return;
	/* the transaction will be rolled back after this, uncounted */
	if (!exchange_state(STATE_OFF) && IsTransactionState())
		exchange_note_transaction();
	slot_close(my_session.slot);
	stop_counting();
	accumulate_detach(my_session.index);
	slot_detach(my_session.slot);
	/* if it is still active, the sampler finds that it has ended */
	my_session.slot = NULL;
}

/* The session's first ReadyForQuery left at "now". */
static void
attach(int64 now)
{
	SessionSlot *slot;
	uint64		session;
	ConnectTotals cost;

	if (MyBackendType != B_BACKEND || MyProcPort == NULL || MyBEEntry == NULL)
	{
		connecting_in_progress = false;
		return;
	}
	if (!late_memory_join())
	{
		pgnetlat_housekeeping = true;
		return;
	}
	slot = slot_attach();
	if (slot == NULL)
		return;
	/* ends the session if there is no place left: it must not be seen yet */
	before_shmem_exit(session_exit, (Datum) 0);
	my_session.slot = slot;
	my_session.index = slot_my_index();
	recorder_attach(my_session.index, &my_session.recorder);
	tally_attach(my_session.index);
	my_session.name_unread = true;
	exchange_read_name();
	pooler_attach(my_session.slot->published.name);
	exchange_use_clock_offset();
	connecting_done(now, my_session.slot->published.clock_offset, &cost);
	if (pgnetlat_enabled)
		start_counting(now);
	session = slot_open(my_session.slot, &cost);
	if (!pgnetlat_enabled)
		memset(&cost, 0, sizeof(cost));
	active_enter(my_session.index);
	accumulate_attach(my_session.index, session, &cost);
	/* the first session removes the file, in case there is no sampler */
	if (session == 1)
		persist_remove_file();
}

/*
 * Read application_name if it may have changed.  A traceparent is no name: the
 * session keeps the one that it had.
 */
void
exchange_read_name(void)
{
	SessionSlot *slot = my_session.slot;
	char		name[NAMEDATALEN];

	if (!my_session.name_unread)
		return;
	my_session.name_unread = false;
	strlcpy(name, application_name ? application_name : "", NAMEDATALEN);
	if ((trace_context_take(name, NAMEDATALEN - 1, &my_session.trace) && name[0] == '\0') ||
		strcmp(name, slot->published.name) == 0)
		return;
	my_session.renamed = true;
	exchange_write_begin();
	strlcpy(slot->published.name, name, NAMEDATALEN);
	slot_write_end(slot);
}

/*
 * Move to another client group if the session's name, or how it is read, has
 * changed.
 */
static void
look_at_name(void)
{
	/* no exchange has seen it if a setting has changed, or nothing is counted */
	(void) pooler_ends_exchange(my_session.slot->published.name, true);
	/* before the counts so far are added to the old group */
	if (!exchange_state(STATE_OFF))
		exchange_refresh_kernel_info(clock_now());
	accumulate_rename(my_session.index);
	burst_end(&my_tally.burst);
	my_session.renamed = pgnetlat_names_changed = false;
}

/*
 * Called after ReadyForQuery has left, for what must not happen during an
 * exchange.  No lock is held here, and the client has its response.
 */
void
exchange_housekeeping(void)
{
	pgnetlat_housekeeping = false;
	if (my_session.slot == NULL)
	{
		attach(clock_now());
		my_session.renamed = false;
	}
	if (my_session.slot == NULL)
		return;
	if (pgnetlat_enabled == exchange_state(STATE_OFF))
	{
		if (pgnetlat_enabled)
			start_counting(clock_now());
		else
			stop_counting();
	}
	if (!exchange_may_be_plain())
		exchange_set_state(STATE_PLAIN, false);
	exchange_read_name();
	if (my_session.renamed || pgnetlat_names_changed)
		look_at_name();

	/* portals end with their transaction; until then, come here each time */
	if (my_session.xact_status == 'I')
		exchange_set_state(STATE_SUSPENDED, false);
	pgnetlat_housekeeping |= exchange_state(STATE_SUSPENDED) || late_memory_lacks_sampler();
}
