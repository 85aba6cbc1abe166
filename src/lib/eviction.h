/*-------------------------------------------------------------------------
 *
 * eviction.h
 *	  Choosing the least used entries of a full table, without memory.
 *
 * The owner of a full table looks at all entries twice: first it counts them
 * by the magnitude of their usage, which tells up to which magnitude entries
 * must go; then it removes those.  Usage ages at each eviction, so that what
 * was popular long ago goes eventually.
 *
 * Plain C, no server headers.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_EVICTION_H
#define PGNETLAT_EVICTION_H

#include <math.h>
#include <stdbool.h>

#define EVICTION_MAGNITUDES		64
#define EVICTION_AGING			0.99	/* usage is multiplied by this */
#define EVICTION_FRACTION		0.05	/* of the entries go at a time */

typedef struct Eviction
{
	int			count[EVICTION_MAGNITUDES];
	int			cut;			/* this magnitude goes in part, below all go */
	int			left;			/* entries of that magnitude that may still go */
} Eviction;

static inline int
eviction_magnitude(double usage)
{
	int			exponent;

	if (usage <= 0)
		return 0;
	(void) frexp(usage, &exponent);
	exponent += EVICTION_MAGNITUDES / 2;
	return exponent < 0 ? 0 :
		exponent >= EVICTION_MAGNITUDES ? EVICTION_MAGNITUDES - 1 : exponent;
}

/* First pass: take note of an entry. */
static inline void
eviction_note(Eviction *eviction, double usage)
{
	eviction->count[eviction_magnitude(usage)]++;
}

/* Between the passes: "wanted" entries shall go. */
static inline void
eviction_choose(Eviction *eviction, int wanted)
{
	eviction->cut = 0;
	while (eviction->cut < EVICTION_MAGNITUDES - 1 &&
		   eviction->count[eviction->cut] < wanted)
		wanted -= eviction->count[eviction->cut++];
	eviction->left = wanted;
}

/* Second pass: must this entry go? */
static inline bool
eviction_wants(Eviction *eviction, double usage)
{
	int			magnitude = eviction_magnitude(usage);

	if (magnitude < eviction->cut)
		return true;
	if (magnitude > eviction->cut || eviction->left <= 0)
		return false;
	eviction->left--;
	return true;
}

#endif							/* PGNETLAT_EVICTION_H */
