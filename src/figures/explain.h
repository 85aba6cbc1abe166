/*-------------------------------------------------------------------------
 *
 * explain.h
 *	  EXPLAIN (NETLAT).
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_EXPLAIN_H
#define PGNETLAT_EXPLAIN_H

extern void explain_install(void);

#endif							/* PGNETLAT_EXPLAIN_H */
