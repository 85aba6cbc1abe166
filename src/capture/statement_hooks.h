/*-------------------------------------------------------------------------
 *
 * statement_hooks.h
 *	  Finds out which statement an exchange runs.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_STATEMENT_HOOKS_H
#define PGNETLAT_STATEMENT_HOOKS_H

/* The size of the latest result that EXPLAIN (SERIALIZE) has made. */
extern uint64 statement_serialized_bytes;

extern void statement_hooks_install(void);
extern void statement_was_parsed(void);
extern uint64 statement_parsed_queryid(void);

#endif							/* PGNETLAT_STATEMENT_HOOKS_H */
