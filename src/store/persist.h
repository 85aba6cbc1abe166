/*-------------------------------------------------------------------------
 *
 * persist.h
 *	  Keeps statistics across a restart.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_PERSIST_H
#define PGNETLAT_PERSIST_H

extern void persist_load(bool at_start);
extern void persist_save(int code, Datum is_running);
extern void persist_remove_file(void);

#endif							/* PGNETLAT_PERSIST_H */
