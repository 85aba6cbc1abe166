/*-------------------------------------------------------------------------
 *
 * accumulate.h
 *	  From the sessions' slots into the tables.
 *
 * Accumulating a session adds what it has counted since it was accumulated last to its
 * client group and to the history, and consumes its flight recorder for the
 * statements and histograms.  Whoever needs the aggregates accumulates: a reader
 * before it reads, the sampler when it closes an interval of the history or
 * finds a recorder half full, a session when its own is nearly full, when its
 * application_name changes and when it ends.  So nothing is lost and nothing
 * is stale, whether the sampler runs or not.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_ACCUMULATE_H
#define PGNETLAT_ACCUMULATE_H

#include "clients.h"
#include "recorder.h"
#include "session_slot.h"

extern Size accumulate_shmem_size(void);
extern void accumulate_shmem_init(void);

/* Functions for the session itself */
extern void accumulate_attach(int slot, uint64 session);
extern void accumulate_rename(int slot, FlightRecord *open);
extern void accumulate_detach(int slot);
extern void accumulate_session_if_free(int slot);

/* Functions for everybody */
extern void accumulate_session(int slot);
extern void accumulate_all(void);
extern TimestampTz accumulate_reset(void);

#endif							/* PGNETLAT_ACCUMULATE_H */
