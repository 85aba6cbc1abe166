/*-------------------------------------------------------------------------
 *
 * lock_graph.c
 *	  See lock_graph.h.
 *
 * A wait is blocked by whoever holds the lock in a conflicting mode (hard), and
 * by whoever has waited longer for a conflicting mode (soft), as in
 * pg_blocking_pids().  What blocks one member of a lock group blocks the group,
 * and its members do not block each other.
 *
 * The root of a wait is a holder that waits for nothing.  All of a wait's
 * blockers have to go before it ends, so any of them leads to a root; hard ones
 * are followed first, since the order of a queue is known only by when its
 * waits began, and the deadlock detector may have changed it.  Where one leads
 * in a circle (a deadlock that has not been broken yet) the next one is tried.
 *
 * Each wait is followed once, and who waits for the same mode of the same lock
 * skips those that block nobody who does: so a thousand waits for one lock, or a
 * chain of a thousand, take time in proportion to their number.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lock_graph.h"

#define ROOT_NONE		(-1)
#define ROOT_UNKNOWN	(-2)

/* All who have to do with one lock: holders first, then those who wait longest. */
typedef struct LockQueue
{
	int			first;
	int			count;
	int			skip[LOCK_GRAPH_MODES]; /* so many block nobody who awaits
										 * that mode */
} LockQueue;

struct LockGraph
{
	LockInstance *instances;
	LockQueue  *queues;
	int		   *waits;			/* instances that wait, by process */
	int			wait_count;
	int		   *path;			/* work space: a chain of waits */
};

static LockInstance *sorted;	/* for compare_processes() */

static int
compare_in_queue(const void *a, const void *b)
{
	const LockInstance *one = a;
	const LockInstance *two = b;

	if (one->lock != two->lock)
		return one->lock < two->lock ? -1 : 1;
	if ((one->awaited == 0) != (two->awaited == 0))
		return one->awaited == 0 ? -1 : 1;
	if (one->since != two->since)
		return one->since < two->since ? -1 : 1;
	return 0;
}

static int
compare_processes(const void *a, const void *b)
{
	int			one = sorted[*(const int *) a].process;
	int			two = sorted[*(const int *) b].process;

	return (one > two) - (one < two);
}

/*
 * Each process has at most one instance per lock; locks that nobody awaits may be
 * left out.  The instances are sorted, and must last as long as the graph.
 */
LockGraph *
lock_graph_build(LockInstance *instances, int count, int locks)
{
	LockGraph  *graph = palloc0(sizeof(LockGraph));

	graph->instances = sorted = instances;
	graph->queues = palloc0(mul_size(locks + 1, sizeof(LockQueue)));
	graph->waits = palloc0(mul_size(count + 1, sizeof(int)));
	graph->path = palloc0(mul_size(count + 1, sizeof(int)));
	qsort(instances, count, sizeof(LockInstance), compare_in_queue);
	for (int i = 0; i < count; i++)
	{
		LockQueue  *queue = &graph->queues[instances[i].lock];

		if (queue->count++ == 0)
			queue->first = i;
		instances[i].root = ROOT_UNKNOWN;
		instances[i].next = 0;
		instances[i].blocked = false;
		if (instances[i].awaited != 0)
			graph->waits[graph->wait_count++] = i;
	}
	qsort(graph->waits, graph->wait_count, sizeof(int), compare_processes);
	return graph;
}

/* The place of a process's wait; -1 if it waits for no lock. */
static int
wait_of(const LockGraph *graph, int process)
{
	int			low = 0;
	int			high = graph->wait_count;

	while (low < high)
	{
		int			middle = low + (high - low) / 2;

		if (graph->instances[graph->waits[middle]].process < process)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == graph->wait_count || graph->instances[graph->waits[low]].process != process)
		return -1;
	return graph->waits[low];
}

/*
 * The place of the next one that blocks a wait, -1 if there is no other.  The queue
 * is gone through for who holds the lock, for who has awaited it longer, and if
 * there is nobody for who went ahead: the lock manager lets those do so who hold
 * a lock that others ahead of them wait for.
 */
static int
next_blocker(const LockGraph *graph, LockInstance *wait)
{
	LockQueue  *queue = &graph->queues[wait->lock];
	int		   *skip = &queue->skip[wait->awaited];

	wait->next = Max(wait->next, *skip);
	while (wait->next < (wait->blocked ? 2 : 3) * queue->count)
	{
		int			at = wait->next++;
		int			place = queue->first + at % queue->count;
		const LockInstance *other = &graph->instances[place];
		uint32		modes = at < queue->count ? other->held :
			other->awaited != 0 ? (uint32) 1 << other->awaited : 0;

		if ((modes & wait->conflicts) == 0)
		{
			if (*skip == at)
				*skip = at + 1;
			continue;
		}
		if (other == wait || (other->process == wait->process && other->process != 0))
			continue;
		if (at >= queue->count && at < 2 * queue->count && other->since >= wait->since)
			continue;
		wait->blocked = true;
		return place;
	}
	return -1;
}

/* Follow a wait; all on the way have the same root. */
static void
find_root(LockGraph *graph, int wait)
{
	LockInstance *instances = graph->instances;
	int			depth = 0;
	int			root;

	graph->path[depth++] = wait;
	instances[wait].root = ROOT_NONE;
	while (depth > 0)
	{
		int			blocker = next_blocker(graph, &instances[graph->path[depth - 1]]);
		int			ahead;

		if (blocker < 0)
		{
			depth--;
			continue;
		}
		ahead = wait_of(graph, instances[blocker].process);
		root = ahead < 0 ? blocker : instances[ahead].root;
		if (root == ROOT_UNKNOWN)
		{
			graph->path[depth++] = ahead;
			instances[ahead].root = ROOT_NONE;
		}
		while (root >= 0 && depth > 0)
			instances[graph->path[--depth]].root = root;
	}
}

/*
 * Whom does a process wait for?  NULL if it does not wait, or nobody can tell.
 */
const LockInstance *
lock_graph_root(LockGraph *graph, int process)
{
	int			wait = wait_of(graph, process);

	if (wait < 0)
		return NULL;
	if (graph->instances[wait].root == ROOT_UNKNOWN)
		find_root(graph, wait);
	if (graph->instances[wait].root == ROOT_NONE)
		return NULL;
	return &graph->instances[graph->instances[wait].root];
}
