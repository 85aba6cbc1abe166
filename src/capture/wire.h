/*-------------------------------------------------------------------------
 *
 * wire.h
 *	  Turns the messages that a backend sends into events.
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

/* The planner, the executor or the end of a transaction has been reached. */
static inline void
wire_work_begins(void)
{
	if (unlikely(!exchange_state(STATE_IN_EXCHANGE)))
		wire_work_begins_in_wait();
}

#endif							/* PGNETLAT_WIRE_H */
