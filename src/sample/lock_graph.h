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

/* What one process has to do with one lock. */
typedef struct LockInstance
{
	int			lock;			/* number of the lock */
	int			process;		/* leader of the process's lock group; 0: a
								 * prepared transaction */
	uint32		held;			/* mask of the modes that it holds */
	uint32		conflicts;		/* mask of the modes that conflict with the
								 * one it awaits */
	int			awaited;		/* that mode; 0: it awaits none */
	int64		since;			/* when that wait began */

	/* for the caller */
	int			source;
	void	   *holder;

	/* set by lock_graph.c */
	struct LockInstance *queue; /* the first one of this lock */
	struct LockInstance *root;	/* of a wait; NULL: none, or not known yet */
	bool		followed;		/* root has been looked for */
} LockInstance;

typedef struct LockGraph LockGraph;

extern LockGraph *lock_graph_build(LockInstance *instances, int count);
extern LockInstance *lock_graph_root(const LockGraph *graph, int process);

#endif							/* PGNETLAT_LOCK_GRAPH_H */
