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

extern void wire_install(void);

/*
 * This backend counts, and is in an exchange.  Read for each message: not
 * through the table of exported symbols.
 */
#pragma GCC visibility push(hidden)
extern bool wire_in_response;
#pragma GCC visibility pop

/* Functions for statement_hooks.c */
extern void wire_work_begins_in_wait(void);
extern bool wire_statement_begins(uint64 queryid);
extern void wire_statement_rows(uint64 rows);
extern uint64 wire_exchange(void);

/* The planner, the executor or a transaction's end has been reached. */
static inline void
wire_work_begins(void)
{
	if (unlikely(!wire_in_response))
		wire_work_begins_in_wait();
}

#endif							/* PGNETLAT_WIRE_H */
