/*-------------------------------------------------------------------------
 *
 * prefetch.h
 *	  Ask for memory that is soon going to be read or written.
 *
 * The sampler goes through what thousands of sessions have left in shared memory,
 * and would spend most of its time waiting for it.  A prefetch of what is not
 * there, or not needed after all, does no harm.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_PREFETCH_H
#define PGNETLAT_PREFETCH_H

#include <stddef.h>

/* Of the processor; PG_CACHE_LINE_SIZE is what keeps writers apart, and larger. */
#define PREFETCH_LINE	64

/* "size" bytes from there on are going to be read; somebody else may write them. */
static inline void
prefetch_to_read(const void *from, size_t size)
{
	for (size_t i = 0; i < size; i += PREFETCH_LINE)
		__builtin_prefetch((const char *) from + i);
}

/* The same, to be written by this process. */
static inline void
prefetch_to_write(const void *from, size_t size)
{
	for (size_t i = 0; i < size; i += PREFETCH_LINE)
		__builtin_prefetch((const char *) from + i, 1);
}

#endif							/* PGNETLAT_PREFETCH_H */
