/*-------------------------------------------------------------------------
 *
 * accumulate.h
 *	  Adds what is in the sessions' slots and tallies to the tables.
 *
 * To accumulate a session is to add what it has counted since the last time to
 * its client group and to the history, and to take its tally for the
 * statements and histograms.  Sessions are accumulated by whoever needs the
 * sums: a reader before it reads, the sampler when it closes an interval of
 * the history or takes snapshots, and the session itself when its
 * application_name changes and when it ends.  A session whose tally is full
 * adds its statements to their table itself.  So nothing is lost or stale,
 * whether or not the sampler runs.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_ACCUMULATE_H
#define PGNETLAT_ACCUMULATE_H

#include "datatype/timestamp.h"
#include "tally.h"

extern Size accumulate_shmem_size(void);
extern void accumulate_shmem_attach(void *memory, bool is_new);

/* Functions for the session itself */
extern void accumulate_attach(int index, uint64 session, const ConnectTotals *connect);
extern void accumulate_rename(int index);
extern void accumulate_detach(int index);
extern void accumulate_begin(int index);
extern void accumulate_own_statements(void);
extern void accumulate_end(int index);

/* Functions for any process */
extern bool accumulate_and_observe(int index, SlotObservation *observation);
extern void accumulate_all(void);
extern TimestampTz accumulate_reset(void);

#endif							/* PGNETLAT_ACCUMULATE_H */
