/*-------------------------------------------------------------------------
 *
 * locks.c
 *	  See locks.h.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "locks.h"

static LWLockPadded *locks = NULL;

void
locks_request(void)
{
	RequestNamedLWLockTranche("pgnetlat", LOCK_COUNT);
}

void
locks_init(void)
{
	locks = GetNamedLWLockTranche("pgnetlat");
}

LWLock *
locks_get(PgnetlatLock lock)
{
	return &locks[lock].lock;
}
