/*-------------------------------------------------------------------------
 *
 * persist.h
 *	  Keeps statistics across a restart.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_PERSIST_H
#define PGNETLAT_PERSIST_H

#include "ledger.h"

extern void persist_load(bool at_start);
extern void persist_save(int code, Datum is_running);
extern void persist_remove_file(void);

/* Checks for functions that restore a saved entry */
extern bool persist_is_text(const char *text);
extern bool persist_are_figures(const void *from, const void *to);
extern bool persist_are_counts(const void *from, const void *to);
extern bool persist_are_parts(const void *from, const void *to, int64 whole);
extern bool persist_are_totals(const LedgerTotals *totals);

#endif							/* PGNETLAT_PERSIST_H */
