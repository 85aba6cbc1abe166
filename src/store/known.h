/*-------------------------------------------------------------------------
 *
 * known.h
 *	  The statements that a session has run lately, and what it knows of them.
 *
 * An open hash table in the session's own memory.  It tells where the session
 * counts a statement (in which place of its tally), or else what it has to know
 * when it counts that again: where in the table of statements the entry was to
 * which it was added, and in which burst it was executed last (burst.h).
 *
 * Nothing is removed one by one.  When there are too many, those of former
 * bursts go that have no place in the tally; and if all are of the burst in
 * progress, the whole of them: a loop of too many different statements shows
 * repeats of only some of them.
 *
 * A statement is known by a hash of 64 bits of what identifies it.  Whoever goes
 * to a place that is told here compares what he finds there.
 *
 * Plain C, no server headers.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_KNOWN_H
#define PGNETLAT_KNOWN_H

#include <stdbool.h>
#include <stdint.h>

#define KNOWN_BITS			9
#define KNOWN_PLACES		(1 << KNOWN_BITS)
#define KNOWN_STATEMENTS	280 /* that there may be in them: so few that a
								 * search is short */

typedef struct KnownStatement
{
	uint64_t	key;			/* 0: a free place */
	uint32_t	executed_in;	/* number of the burst in which it was, last;
								 * of one that is in the tally, see there */
	int32_t		where;			/* as below */
} KnownStatement;

typedef struct Known
{
	unsigned	count;
	KnownStatement statements[KNOWN_PLACES];
} Known;

/*
 * Where a statement is: in a place of the tally (negative); else in the table of
 * statements, where it was found the last time (positive; statements.h says where
 * that is), or nobody knows.
 */
#define KNOWN_NOWHERE		0

static inline int32_t
known_in_tally(int number)
{
	return -1 - number;
}

static inline bool
known_is_in_tally(int32_t where)
{
	return where < 0;
}

static inline int
known_tally_number(int32_t where)
{
	return -1 - where;
}

static inline bool
known_is_in_table(int32_t where)
{
	return where > 0;
}

/* What a statement is known by; never 0. */
static inline uint64_t
known_key(uint64_t queryid, uint32_t userid)
{
	uint64_t	key = queryid + userid * UINT64_C(0xD1B54A32D192ED03);

	return key + (key == 0);
}

/*
 * Where the search for a statement begins.  Identifiers are hashes already, but those
 * of others than core may not be.
 */
static inline KnownStatement *
known_first(Known *known, uint64_t key)
{
	return &known->statements[(key * UINT64_C(0x9E3779B97F4A7C15)) >> (64 - KNOWN_BITS)];
}

/*
 * What is known of a statement, or else the free place for it.  There always are
 * free places, so that one ends each search.
 */
static inline KnownStatement *
known_find(Known *known, uint64_t key)
{
	KnownStatement *statement = known_first(known, key);

	while (statement->key != key && statement->key != 0)
	{
		if (++statement == known->statements + KNOWN_PLACES)
			statement = known->statements;
	}
	return statement;
}

extern KnownStatement *known_add(Known *known, uint64_t key, uint32_t burst);

#endif							/* PGNETLAT_KNOWN_H */
