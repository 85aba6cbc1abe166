/*-------------------------------------------------------------------------
 *
 * chains.h
 *	  The skeleton of a hash table of fixed size: chains of numbered places.
 *
 * It does not know what is kept in the places, only a link for each place,
 * which is in one chain at a time: that of a bucket, or that of the free
 * places.  Links are small and apart from what they link, so that looking for
 * one touches few cache lines.
 *
 * Plain C, no server headers, no locks.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_CHAINS_H
#define PGNETLAT_CHAINS_H

#include <stdbool.h>
#include <stdint.h>

#define CHAIN_END		(-1)

/* A place's; a chain is the number of its first place, or CHAIN_END. */
typedef struct ChainLink
{
	int32_t		next;
	uint32_t	hash;
} ChainLink;

static inline void
chain_push(int32_t *chain, ChainLink *links, int32_t place, uint32_t hash)
{
	links[place].next = *chain;
	links[place].hash = hash;
	*chain = place;
}

/* Takes the first place off; CHAIN_END if there is none. */
static inline int32_t
chain_pop(int32_t *chain, const ChainLink *links)
{
	int32_t		place = *chain;

	if (place != CHAIN_END)
		*chain = links[place].next;
	return place;
}

/* The first place at "from" or behind it whose hash is this; or CHAIN_END. */
static inline int32_t
chain_find(int32_t from, const ChainLink *links, uint32_t hash)
{
	while (from != CHAIN_END && links[from].hash != hash)
		from = links[from].next;
	return from;
}

/* Takes a place off; false if it is not there. */
static inline bool
chain_remove(int32_t *chain, ChainLink *links, int32_t place)
{
	while (*chain != CHAIN_END)
	{
		if (*chain == place)
		{
			*chain = links[place].next;
			return true;
		}
		chain = &links[*chain].next;
	}
	return false;
}

/*
 * How a table of "capacity" places is divided: into a power of two of
 * partitions, of about so many places each and at most "most" of them, and
 * each of those into a power of two of buckets, for a place each or two.  The
 * lower bits of a hash choose the partition, those above them the bucket.
 */
typedef struct ChainDivision
{
	uint32_t	partitions;
	uint32_t	buckets;		/* of each partition */
	int			shift;			/* partitions = 1 << shift */
} ChainDivision;

static inline ChainDivision
chains_divide(int64_t capacity, int64_t places_each, uint32_t most)
{
	ChainDivision division = {1, 1, 0};

	while (division.partitions < most && division.partitions * places_each < capacity)
	{
		division.partitions *= 2;
		division.shift++;
	}
	while ((int64_t) division.buckets * division.partitions * 2 <= capacity)
		division.buckets *= 2;
	return division;
}

static inline uint32_t
chains_partition(const ChainDivision *division, uint32_t hash)
{
	return hash & (division->partitions - 1);
}

/* Of all the table's buckets; a partition's are neighbours. */
static inline uint32_t
chains_bucket(const ChainDivision *division, uint32_t hash)
{
	return chains_partition(division, hash) * division->buckets +
		((hash >> division->shift) & (division->buckets - 1));
}

/* A hash of two words that need not be random. */
static inline uint32_t
chains_hash(uint64_t a, uint64_t b)
{
	uint64_t	mixed = (a ^ (b * UINT64_C(0x9E3779B97F4A7C15))) * UINT64_C(0xBF58476D1CE4E5B9);

	mixed ^= mixed >> 32;
	mixed *= UINT64_C(0x94D049BB133111EB);
	return (uint32_t) (mixed >> 32);
}

#endif							/* PGNETLAT_CHAINS_H */
