/*-------------------------------------------------------------------------
 *
 * segment.h
 *	  A module's shared memory.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_SEGMENT_H
#define PGNETLAT_SEGMENT_H

#include "storage/shmem.h"

/*
 * Get zeroed shared memory.  Only the postmaster calls this; its children
 * inherit the address.
 */
static inline void *
segment_create(const char *name, Size size)
{
	bool		found;
	void	   *segment = ShmemInitStruct(name, size, &found);

	Assert(!found);
	memset(segment, 0, size);
	return segment;
}

#endif							/* PGNETLAT_SEGMENT_H */
