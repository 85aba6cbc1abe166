/*-------------------------------------------------------------------------
 *
 * lock_graph.c
 *	  Finds the root of a chain of lock waits.
 *
 * A wait is blocked by the processes that hold the lock in a conflicting mode
 * (hard), and by those that have waited longer for a conflicting mode (soft),
 * as in pg_blocking_pids().  What blocks one member of a lock group blocks the
 * group, and its members do not block each other.
 *
 * The root of a wait is a holder that waits for nothing.  A wait ends only
 * when all of its blockers are gone, so any of them leads to a root.  Hard
 * blockers are followed first: the order of a queue is inferred from when its
 * waits began, and the deadlock detector may have changed it.  If a blocker
 * leads in a circle (a deadlock that has not been broken yet), the next one is
 * tried.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lock_graph.h"
#include "miscadmin.h"

struct LockGraph
{
	LockInstance *end;			/* after the last instance */
	LockInstance **waits;		/* waiting instances, sorted by process */
	int			wait_count;
};

static int
compare_in_queue(const void *a, const void *b)
{
	const LockInstance *one = a;
	const LockInstance *two = b;

	if (one->lock != two->lock)
		return one->lock < two->lock ? -1 : 1;
	if ((one->awaited == 0) != (two->awaited == 0))
		return one->awaited == 0 ? -1 : 1;
	return (one->since > two->since) - (one->since < two->since);
}

static int
compare_processes(const void *a, const void *b)
{
	int			one = (*(LockInstance *const *) a)->process;
	int			two = (*(LockInstance *const *) b)->process;

	return (one > two) - (one < two);
}

/*
 * Build the graph, which sorts the instances and refers to them.  Each process
 * has at most one instance per lock; locks that nobody awaits may be left out.
 */
LockGraph *
lock_graph_build(LockInstance *instances, int count)
{
	LockGraph  *graph = palloc0(sizeof(LockGraph));
	LockInstance *queue = instances;

	graph->end = instances + count;
	graph->waits = palloc0(mul_size(count + 1, sizeof(LockInstance *)));
	qsort(instances, count, sizeof(LockInstance), compare_in_queue);
	for (LockInstance *instance = instances; instance < graph->end; instance++)
	{
		if (instance->lock != queue->lock)
			queue = instance;
		instance->queue = queue;
		instance->root = NULL;
		instance->followed = instance->blocked = false;
		if (instance->awaited != 0)
			graph->waits[graph->wait_count++] = instance;
	}
	qsort(graph->waits, graph->wait_count, sizeof(LockInstance *), compare_processes);
	return graph;
}

/* Find the wait of a process; NULL if it is not waiting for a lock. */
static LockInstance *
wait_of(const LockGraph *graph, int process)
{
	LockInstance sought = {.process = process};
	LockInstance *key = &sought;
	LockInstance **found = bsearch(&key, graph->waits, graph->wait_count,
								   sizeof(LockInstance *), compare_processes);

	return found ? *found : NULL;
}

/*
 * Find the root of a wait.  Its queue is searched for holders of the lock,
 * then for processes that have waited longer, and finally for any other: the
 * lock manager lets a process go ahead in the queue if it holds a lock that
 * those ahead of it wait for.
 */
static LockInstance *
find_root(const LockGraph *graph, LockInstance *wait)
{
	if (wait->followed)
		return wait->root;
	wait->followed = true;
	check_stack_depth();
	for (int pass = 0; pass < (wait->blocked ? 2 : 3); pass++)
	{
		for (LockInstance *other = wait->queue;
			 other < graph->end && other->lock == wait->lock && wait->root == NULL; other++)
		{
			uint32		modes = pass == 0 ? other->held :
				other->awaited != 0 ? (uint32) 1 << other->awaited : 0;
			LockInstance *ahead;

			if ((modes & wait->conflicts) == 0 || other == wait ||
				(other->process == wait->process && other->process != 0) ||
				(pass == 1 && other->since >= wait->since))
				continue;
			wait->blocked = true;
			ahead = wait_of(graph, other->process);
			wait->root = ahead ? find_root(graph, ahead) : other;
		}
	}
	return wait->root;
}

/*
 * Find the root that a process waits for; NULL if it does not wait, or its
 * root is not known.  *in_circle is set if that is because its blockers lead
 * only in circles.
 */
LockInstance *
lock_graph_root(const LockGraph *graph, int process, bool *in_circle)
{
	LockInstance *wait = wait_of(graph, process);
	LockInstance *root = wait ? find_root(graph, wait) : NULL;

	*in_circle = root == NULL && wait && wait->blocked;
	return root;
}
