/*-------------------------------------------------------------------------
 *
 * bounded.c
 *	  See bounded.h.
 *
 * The caller holds the table's lock exclusively.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "bounded.h"
#include "eviction.h"

/*
 * Remove the least used entries of a full table, of those that may go (NULL:
 * all), after "accumulate" has seen each.  Their usage, a double that ages here, is
 * at "usage_offset".  Returns how many went.
 */
int64
bounded_evict(HTAB *table, int capacity, Size usage_offset,
			  bool (*may_go) (const void *entry), void (*fold) (const void *entry))
{
	Eviction	eviction = {0};
	HASH_SEQ_STATUS scan;
	char	   *entry;
	int64		evicted = 0;

	hash_seq_init(&scan, table);
	while ((entry = hash_seq_search(&scan)) != NULL)
	{
		double	   *usage = (double *) (entry + usage_offset);

		*usage *= EVICTION_AGING;
		if (may_go == NULL || may_go(entry))
			eviction_note(&eviction, *usage);
	}
	eviction_choose(&eviction, Max(1, (int) (capacity * EVICTION_FRACTION)));

	hash_seq_init(&scan, table);
	while ((entry = hash_seq_search(&scan)) != NULL)
	{
		if ((may_go && !may_go(entry)) ||
			!eviction_wants(&eviction, *(double *) (entry + usage_offset)))
			continue;
		fold(entry);
		hash_search(table, entry, HASH_REMOVE, NULL);
		evicted++;
	}
	return evicted;
}

/* Remove all entries. */
void
bounded_clear(HTAB *table)
{
	HASH_SEQ_STATUS scan;
	void	   *entry;

	hash_seq_init(&scan, table);
	while ((entry = hash_seq_search(&scan)) != NULL)
		hash_search(table, entry, HASH_REMOVE, NULL);
}
