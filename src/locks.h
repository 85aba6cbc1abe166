/*-------------------------------------------------------------------------
 *
 * locks.h
 *	  The lightweight locks, in the order in which they may be nested.
 *
 * A process may take a lock only while it holds none, or only ones that come
 * before it here, and at most one accumulation lock.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_LOCKS_H
#define PGNETLAT_LOCKS_H

#include "storage/lwlock.h"

/* sessions share the locks under which their records are accumulated */
#define LOCK_ACCUMULATE_PARTITIONS	64

typedef enum PgnetlatLock
{
	LOCK_RESET,					/* exclusive: a reset is under way */
	LOCK_ACCUMULATE,					/* what of a session has been accumulated */
	LOCK_CLIENTS,
	LOCK_STATEMENTS,
	LOCK_HISTORY,
	LOCK_KINDS
} PgnetlatLock;

extern void locks_request(void);
extern void locks_init(void);
extern LWLock *locks_get(PgnetlatLock lock);
extern LWLock *locks_get_accumulate(int slot);

#endif							/* PGNETLAT_LOCKS_H */
