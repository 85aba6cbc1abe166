/*-------------------------------------------------------------------------
 *
 * saved.h
 *	  Checks of what was saved, for functions that restore an entry.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_SAVED_H
#define PGNETLAT_SAVED_H

#include "common/string.h"
#include "ledger.h"

/* Are these NAMEDATALEN bytes a name that is valid in every encoding? */
static inline bool
saved_is_text(const char *text)
{
	return memchr(text, '\0', NAMEDATALEN) != NULL && pg_is_ascii(text);
}

/*
 * Are these int64 fields in the range of figures, with room to add more?  If
 * so, they are valid timestamps as well.
 */
static inline bool
saved_are_figures(const void *from, const void *to)
{
	for (const int64 *figure = from; figure < (const int64 *) to; figure++)
	{
		if (*figure < 0 || *figure > PG_INT64_MAX / 2)
			return false;
	}
	return true;
}

/*
 * Add these counts to the sum of all: does it still fit into a bigint, as
 * views show it?
 */
static inline bool
saved_add_counts(double *sum, const void *from, const void *to)
{
	for (const int64 *count = from; count < (const int64 *) to; count++)
		*sum += (double) *count;
	return *sum <= (double) (PG_INT64_MAX / 2);
}

/* Are these figures parts of a whole? */
static inline bool
saved_are_parts(const void *from, const void *to, int64 whole)
{
	for (const int64 *part = from; part < (const int64 *) to; part++)
	{
		if (*part > whole)
			return false;
		whole -= *part;
	}
	return true;
}

/*
 * Add the totals of an account to the sum of all counts: are they in range,
 * with room to add more?
 */
static inline bool
saved_add_totals(double *sum, const LedgerTotals *totals)
{
	return saved_are_figures(totals, totals + 1) &&
		saved_add_counts(sum, &totals->requests, &totals->run_queue) &&
		saved_are_parts(&totals->pipelined, &totals->turns, totals->requests) &&
		saved_are_parts(&totals->exec, &totals->in_xact_wait, PG_INT64_MAX / 64 * 63);
}

#endif							/* PGNETLAT_SAVED_H */
