/*-------------------------------------------------------------------------
 *
 * diagnose.h
 *	  The short form of a diagnosis, for views that have a column for it.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_DIAGNOSE_H
#define PGNETLAT_DIAGNOSE_H

#include "clients.h"
#include "session_slot.h"
#include "verdict.h"

/* The window of verdicts where the caller gives none. */
#define DIAGNOSE_RECENT_NS		(60 * NS_PER_S)

/* Of a session, and of a client group, over a window. */
extern Verdict diagnose_session(const SlotObservation *observation);
extern Verdict diagnose_client(const ClientEntry *entry, TimestampTz ends);

#endif							/* PGNETLAT_DIAGNOSE_H */
