/*-------------------------------------------------------------------------
 *
 * journal.h
 *	  The background worker "pgnetlat journal".
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_JOURNAL_H
#define PGNETLAT_JOURNAL_H

#include "datatype/timestamp.h"

extern Size journal_shmem_size(void);
extern void journal_shmem_attach(void *memory, bool is_new);
extern TimestampTz journal_next_due(void);
extern void journal_look_if_due(void);
extern void journal_settings_changed(void);

extern PGDLLEXPORT void pgnetlat_journal_main(Datum arg);

#endif							/* PGNETLAT_JOURNAL_H */
