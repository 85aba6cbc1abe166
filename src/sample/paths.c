/*-------------------------------------------------------------------------
 *
 * paths.c
 *	  See paths.h.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "paths.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/*
 * First measurements that differ by no more than this are alike: the network
 * and busy machines add about as much.
 */
#define ALIKE_NS		INT64_C(1000000)
#define ALIKE_FRACTION	4

static int64_t
upper_end(int64_t first)
{
	int64_t		fraction = first / ALIKE_FRACTION;

	return first + (fraction > ALIKE_NS ? fraction : ALIKE_NS);
}

static int
compare_clients(const Path *a, const Path *b)
{
	if (a->family != b->family)
		return a->family < b->family ? -1 : 1;
	return memcmp(a->address, b->address, sizeof(a->address));
}

static int
by_client_and_first(const void *first, const void *second)
{
	const Path *a = first;
	const Path *b = second;
	int			result = compare_clients(a, b);

	return result != 0 ? result : (a->first > b->first) - (a->first < b->first);
}

static int
by_least(const void *first, const void *second)
{
	const Path *a = first;
	const Path *b = second;

	return (a->least > b->least) - (a->least < b->least);
}

/* Set the round trips of paths that were alike. */
static void
compare_alike(Path *paths, int count)
{
	int64_t		most;

	qsort(paths, (size_t) count, sizeof(Path), by_least);
	/* more than half of them are no longer than this */
	most = paths[count / 2].least;
	for (Path *path = paths; path < paths + count; path++)
	{
		path->rtt = path->least;
		if (path->rtt > most && path->least <= upper_end(path->first))
			path->rtt = most;
	}
}

/* Set the round trips of these paths, which changes their order. */
void
paths_compare(Path *paths, int count)
{
	int			end;

	qsort(paths, (size_t) count, sizeof(Path), by_client_and_first);
	for (int begin = 0; begin < count; begin = end)
	{
		int64_t		limit = upper_end(paths[begin].first);

		for (end = begin + 1; end < count && paths[end].first <= limit &&
			 compare_clients(&paths[end], &paths[begin]) == 0;)
			end++;
		compare_alike(&paths[begin], end - begin);
	}
}
