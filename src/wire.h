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

/* Functions for statement_hooks.c */
extern void wire_work_begins(void);
extern bool wire_statement_begins(uint64 queryid);
extern void wire_statement_rows(uint64 rows);
extern uint64 wire_exchange(void);

#endif							/* PGNETLAT_WIRE_H */
