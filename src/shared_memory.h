/*-------------------------------------------------------------------------
 *
 * shared_memory.h
 *	  Requests the shared memory of all modules and sets it up in order.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_SHARED_MEMORY_H
#define PGNETLAT_SHARED_MEMORY_H

#include "locks.h"

extern void shmem_install(void);
extern bool shmem_is_ready(void);
extern Size shmem_size(void);
extern void shmem_attach(char *memory, const int tranches[LOCK_KINDS], bool is_new);

#endif							/* PGNETLAT_SHARED_MEMORY_H */
