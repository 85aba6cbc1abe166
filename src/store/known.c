/*-------------------------------------------------------------------------
 *
 * known.c
 *	  See known.h.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "known.h"

#include <string.h>

/* Forget all but what is in the tally and, if "burst" is not 0, of that burst. */
static void
forget(Known *known, uint32_t burst)
{
	Known		before = *known;

	memset(known, 0, sizeof(*known));
	for (int i = 0; i < KNOWN_PLACES; i++)
	{
		const KnownStatement *statement = &before.statements[i];

		if (statement->key == 0)
			continue;
		if (known_is_in_tally(statement->where) ||
			(burst != 0 && statement->executed_in == burst))
		{
			*known_find(known, statement->key) = *statement;
			known->count++;
		}
	}
}

/*
 * A statement that is not known is, from now on, in the burst in progress.
 * Others may be forgotten for it, and all of them move then.
 */
KnownStatement *
known_add(Known *known, uint64_t key, uint32_t burst)
{
	KnownStatement *statement;

	if (known->count == KNOWN_STATEMENTS)
		forget(known, burst);
	if (known->count == KNOWN_STATEMENTS)
		forget(known, 0);
	statement = known_find(known, key);
	statement->key = key;
	known->count++;
	return statement;
}
