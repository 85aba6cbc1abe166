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

/* A new burst: no statement has been executed in it. */
void
burst_begin(Burst *burst)
{
	/* 0 is of what was never executed, also when all numbers have been used */
	if (++burst->number == 0)
		burst->number = 1;
	burst->run_of = 0;
	burst->rows = 0;
	burst->count = 0;
	if (burst->count_more > 0)
	{
		memset(burst->more, 0, sizeof(burst->more));
		burst->count_more = 0;
	}
}

/*
 * Where a statement is in the hash table, or else the free place for it.  The
 * table is never full, so that a free place ends each search.
 *
 * What is kept of a statement is half of its hash, of which the other half
 * tells where to begin: that two statements are taken for one takes the same
 * hash, all but some bits.
 */
static unsigned
find_place(const Burst *burst, uint64_t statement, uint32_t *tag)
{
	/*
	 * identifiers are hashes already, but those of others than core may not
	 * be
	 */
	uint64_t	hash = statement * UINT64_C(0x9E3779B97F4A7C15);
	unsigned	place = (uint32_t) hash % BURST_PLACES;

	*tag = (uint32_t) (hash >> 32);
	if (*tag == 0)
		*tag = 1;
	while (burst->more[place] != 0 && burst->more[place] != *tag)
		place = (place + 1) % BURST_PLACES;
	return place;
}

/* The statement has been executed in the burst. */
void
burst_remember(Burst *burst, uint64_t statement)
{
	uint32_t	tag;
	unsigned	place;

	for (unsigned i = 0; i < burst->count; i++)
	{
		if (burst->few[i] == statement)
			return;
	}
	if (burst->count < BURST_FEW)
	{
		burst->few[burst->count++] = statement;
		return;
	}
	place = find_place(burst, statement, &tag);
	if (burst->more[place] != 0)
		return;
	if (burst->count_more == BURST_MORE)
	{
		memset(burst->more, 0, sizeof(burst->more));
		burst->count_more = 0;
		place = find_place(burst, statement, &tag);
	}
	burst->more[place] = tag;
	burst->count_more++;
}

/* Has it, as far as is remembered here? */
bool
burst_knows(const Burst *burst, uint64_t statement)
{
	uint32_t	tag;

	for (unsigned i = 0; i < burst->count; i++)
	{
		if (burst->few[i] == statement)
			return true;
	}
	return burst->count == BURST_FEW && burst->more[find_place(burst, statement, &tag)] != 0;
}
