/*-------------------------------------------------------------------------
 *
 * lock_graph.h
 *	  Who is at the root of the chain of lock waits that a process is in?
 *
 * Pure functions over a copy of the lock manager's table.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_LOCK_GRAPH_H
#define PGNETLAT_LOCK_GRAPH_H

/* No more lock modes than this, 0 (none) included. */
#define LOCK_GRAPH_MODES	10

/* What one process has to do with one lock. */
typedef struct LockInstance
{
	int			lock;			/* number of the lock: 0, 1, ... */
	int			process;		/* leader of the process's lock group; 0: a
								 * prepared transaction */
	uint32		held;			/* mask of the modes that it holds */
	uint32		conflicts;		/* mask of the modes that conflict with the
								 * one it awaits */
	int			awaited;		/* that mode; 0: it awaits none */
	int64		since;			/* when that wait began */
	int			source;			/* for the caller */

	/* set by lock_graph.c */
	int			root;			/* of a wait: the place of the holder */
	int			next;			/* what may block it is tried from here on */
	bool		blocked;		/* something does */
} LockInstance;

typedef struct LockGraph LockGraph;

extern LockGraph *lock_graph_build(LockInstance *instances, int count, int locks);
extern const LockInstance *lock_graph_root(LockGraph *graph, int process);

#endif							/* PGNETLAT_LOCK_GRAPH_H */
