/*-------------------------------------------------------------------------
 *
 * bounded.h
 *	  Shared hash tables that never grow: making room, and forgetting.
 *
 * Entries begin with their key.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_BOUNDED_H
#define PGNETLAT_BOUNDED_H

#include "utils/hsearch.h"

extern int64 bounded_evict(HTAB *table, int capacity, Size usage_offset,
						   bool (*may_go) (const void *entry),
						   void (*fold) (const void *entry));
extern void bounded_clear(HTAB *table);

#endif							/* PGNETLAT_BOUNDED_H */
