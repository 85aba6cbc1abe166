/*-------------------------------------------------------------------------
 *
 * lock_graph.h
 *	  Finds the root of the chain of lock waits that a process is in.
 *
 * Pure functions over a copy of the lock manager's table.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_LOCK_GRAPH_H
#define PGNETLAT_LOCK_GRAPH_H

/* One process's locks and wait on one lockable object. */
typedef struct LockInstance
{
	int			lock;			/* number of the lock */
	int			process;		/* process ID of its lock group's leader; 0: a
								 * prepared transaction */
	uint32		held;			/* mask of modes held */
	uint32		conflicts;		/* mask of modes that conflict with the
								 * awaited one */
	int			awaited;		/* awaited mode; 0: none */
	int64		since;			/* when the wait began */

	/* for the caller's use */
	int			source;
	void	   *holder;

	/* set by lock_graph.c */
	struct LockInstance *queue; /* first instance of this lock */
	struct LockInstance *root;	/* root of a wait; NULL: none, or not known
								 * yet */
	bool		followed;		/* root has been searched for */
	bool		blocked;		/* a wait with a blocker */
} LockInstance;

typedef struct LockGraph LockGraph;

extern LockGraph *lock_graph_build(LockInstance *instances, int count);
extern LockInstance *lock_graph_root(const LockGraph *graph, int process, bool *in_circle);

#endif							/* PGNETLAT_LOCK_GRAPH_H */
