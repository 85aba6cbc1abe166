/*-------------------------------------------------------------------------
 *
 * lock_graph.h
 *	  Who is at the root of the chain of lock waits that a process is in?
 *
 * Asks the lock manager, in rounds: what it has said once in a round is not
 * asked again in that round.  For the sampler only.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_LOCK_GRAPH_H
#define PGNETLAT_LOCK_GRAPH_H

#include "blockers.h"
#include "storage/proc.h"

/* Who holds up others. */
typedef struct LockHolder
{
	int			pid;			/* 0: none, that is, a prepared transaction */
	int			slot;			/* -1: not a session of ours, */
	uint64		session;		/* which has no number, */
	BlockerKey	key;			/* but has this key */
} LockHolder;

typedef struct LockRoot
{
	LockHolder	holder;
	PGPROC	   *proc;			/* NULL: a prepared transaction */
	LocalTransactionId lxid;	/* in which it is */
	bool		advisory;		/* its lock may be older than that */
} LockRoot;

extern void lock_graph_begin_round(MemoryContext context);
extern bool lock_graph_root(int pid, LockRoot *root);

#endif							/* PGNETLAT_LOCK_GRAPH_H */
