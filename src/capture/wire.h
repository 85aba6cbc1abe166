/*-------------------------------------------------------------------------
 *
 * wire.h
 *	  From the messages that a backend sends to the events of its ledger.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_WIRE_H
#define PGNETLAT_WIRE_H

#include "exchange.h"

extern void wire_install(void);

/* Functions for statement_hooks.c */
extern void wire_work_begins_in_wait(void);
extern void wire_next_statement(void);
extern void wire_fetches(bool further);

/* The planner, the executor or a transaction's end has been reached. */
static inline void
wire_work_begins(void)
{
	if (unlikely(!exchange_in_progress()))
		wire_work_begins_in_wait();
}

/*
 * A top-level statement is planned, in an exchange that is recorded: should
 * that fail, the exchange was about it all the same.
 */
static inline void
wire_statement_is_planned(uint64 queryid)
{
	FlightRecord *record = exchange_record();

	if (record->queryid != 0 || exchange_state(STATE_STATEMENT_DONE))
		return;
	record->queryid = queryid;
}

/*
 * A top-level statement begins to run, in an exchange that is recorded and
 * after wire_next_statement(), and no other has begun since.  Sets some bits of the
 * state besides.
 */
static inline void
wire_statement_begins(uint64 queryid, uint8 state)
{
	my_session.state |= STATE_STATEMENT_BEGUN | state;
	exchange_record()->queryid = queryid;
}

#endif							/* PGNETLAT_WIRE_H */
