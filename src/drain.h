/*-------------------------------------------------------------------------
 *
 * drain.h
 *	  From the sessions' slots into the tables.
 *
 * Folding a session adds what it has counted since it was folded last to its
 * client group and to the history, and consumes its flight recorder for the
 * statements and histograms.  Whoever needs the aggregates folds: a reader
 * before it reads, the sampler when it closes an interval of the history or
 * finds a recorder half full, a session when its own is nearly full, when its
 * application_name changes and when it ends.  So nothing is lost and nothing
 * is stale, whether the sampler runs or not.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_DRAIN_H
#define PGNETLAT_DRAIN_H

#include "clients.h"
#include "recorder.h"
#include "slot.h"

extern Size drain_shmem_size(void);
extern void drain_shmem_init(void);

/* Functions for the session itself */
extern void drain_attach(int slot, uint64 session);
extern void drain_rename(int slot, FlightRecord *open);
extern void drain_detach(int slot);
extern void drain_fold_if_free(int slot);

/* Functions for everybody */
extern void drain_fold(int slot);
extern void drain_fold_all(void);
extern TimestampTz drain_reset(void);

#endif							/* PGNETLAT_DRAIN_H */
