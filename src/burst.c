/*-------------------------------------------------------------------------
 *
 * burst.c
 *	  See burst.h.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "burst.h"

#include <string.h>

/* Forget all statements: a new burst begins. */
void
burst_forget(Burst *burst)
{
	burst->count = burst->guess = 0;
	if (burst->count_more > 0)
	{
		memset(burst->more, 0, sizeof(burst->more));
		burst->count_more = 0;
	}
}

/*
 * Look a statement up in the hash table, and add it unless it is there.  The
 * table is never full, so that a free place ends each search.
 *
 * What is kept of a statement is half of its hash, of which the other half
 * tells where to begin: that two statements are taken for one takes the same
 * hash, all but some bits.
 */
static bool
find_more(Burst *burst, uint64_t statement, bool add)
{
	/* identifiers are hashes already, but those of others than core may not be */
	uint64_t	hash = statement * UINT64_C(0x9E3779B97F4A7C15);
	uint32_t	tag = (uint32_t) (hash >> 32);
	unsigned	place = (uint32_t) hash % BURST_PLACES;

	if (tag == 0)
		tag = 1;
	for (; burst->more[place] != 0; place = (place + 1) % BURST_PLACES)
	{
		if (burst->more[place] == tag)
			return true;
	}
	if (!add)
		return false;
	if (burst->count_more == BURST_MORE)
	{
		memset(burst->more, 0, sizeof(burst->more));
		burst->count_more = 0;
		place = (uint32_t) hash % BURST_PLACES;
	}
	burst->more[place] = tag;
	burst->count_more++;
	return false;
}

/*
 * Has the statement been executed in the burst?  If not, and "add", it is from
 * now on.
 */
bool
burst_find(Burst *burst, uint64_t statement, bool add)
{
	for (unsigned i = 0; i < burst->count; i++)
	{
		if (burst->few[i] == statement)
		{
			burst->guess = (i + 1) % BURST_FEW;
			return true;
		}
	}
	if (burst->count == BURST_FEW)
		return find_more(burst, statement, add);
	if (add)
		burst->few[burst->count++] = statement;
	return false;
}
