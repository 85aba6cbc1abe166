/* Sources:  */
/*
 * Unit tests of chains.h, against the simplest thing that does the same.
 */
#include <stdlib.h>
#include <string.h>

#include "chains.h"
#include "check.h"

#define PLACES		1000

/* A table as table.c has it, without locks: a key is a number. */
typedef struct Model
{
	ChainDivision division;
	int32_t		buckets[4 * PLACES];
	ChainLink	links[PLACES];
	uint64_t	key[PLACES];
	int32_t		free;
} Model;

static Model model;

static void
model_init(int places_each)
{
	model.division = chains_divide(PLACES, places_each, 64);
	for (uint32_t i = 0; i < model.division.partitions * model.division.buckets; i++)
		model.buckets[i] = CHAIN_END;
	model.free = CHAIN_END;
	for (int32_t i = 0; i < PLACES; i++)
		chain_push(&model.free, model.links, i, 0);
}

/* Few different hashes, so that there are chains, and keys with the same hash. */
static uint32_t
hash_of(uint64_t key)
{
	return chains_hash(key, 7) & 0xff;
}

static int32_t *
bucket_of(uint64_t key)
{
	return &model.buckets[chains_bucket(&model.division, hash_of(key))];
}

static int32_t
model_find(uint64_t key)
{
	int32_t		place = *bucket_of(key);

	while ((place = chain_find(place, model.links, hash_of(key))) != CHAIN_END &&
		   model.key[place] != key)
		place = model.links[place].next;
	return place;
}

static bool
model_add(uint64_t key)
{
	int32_t		place = chain_pop(&model.free, model.links);

	if (place == CHAIN_END)
		return false;
	model.key[place] = key;
	chain_push(bucket_of(key), model.links, place, hash_of(key));
	return true;
}

static bool
model_remove(uint64_t key)
{
	int32_t		place = model_find(key);

	if (place == CHAIN_END || !chain_remove(bucket_of(key), model.links, place))
		return false;
	chain_push(&model.free, model.links, place, 0);
	return true;
}

static int
chain_length(int32_t place)
{
	int			length = 0;

	for (; place != CHAIN_END && length <= PLACES; place = model.links[place].next)
		length++;
	return length;
}

#define KEYS	1500			/* more than there are places for */

static void
test_against_flags(int places_each)
{
	static bool is_there[KEYS];
	int			there = 0;
	int			linked;

	memset(is_there, 0, sizeof(is_there));
	model_init(places_each);
	for (int step = 0; step < 200000; step++)
	{
		int			key = rand() % KEYS;

		CHECK((model_find(key) != CHAIN_END) == is_there[key], "key %d, step %d", key, step);
		if (is_there[key])
		{
			CHECK(model_remove(key), "key %d, step %d", key, step);
			is_there[key] = false;
			there--;
		}
		else
		{
			bool		added = model_add(key);

			CHECK(added == (there < PLACES), "key %d, step %d", key, step);
			is_there[key] = added;
			there += added;
		}
		CHECK(!model_remove(key + KEYS), "a key that never came");
	}
	linked = chain_length(model.free);
	for (uint32_t i = 0; i < model.division.partitions * model.division.buckets; i++)
		linked += chain_length(model.buckets[i]);
	CHECK_EQUAL(linked, PLACES, "places in chains");
	CHECK_EQUAL(chain_length(model.free), PLACES - there, "free places");
}

static void
test_division(void)
{
	for (int64_t capacity = 1; capacity < INT64_C(1) << 31; capacity = capacity * 3 / 2 + 1)
	{
		ChainDivision division = chains_divide(capacity, 256, 4096);
		int64_t		buckets = (int64_t) division.partitions * division.buckets;

		CHECK_EQUAL(division.partitions, UINT32_C(1) << division.shift, "partitions");
		CHECK(division.partitions <= 4096, "%lld", (long long) capacity);
		CHECK(division.partitions == 4096 || division.partitions * INT64_C(256) >= capacity,
			  "places in each partition of %lld", (long long) capacity);
		CHECK(division.partitions == 1 || division.partitions * INT64_C(128) < capacity,
			  "partitions of %lld", (long long) capacity);
		CHECK(buckets <= capacity || division.buckets == 1, "%lld", (long long) capacity);
		CHECK(2 * buckets > capacity, "%lld", (long long) capacity);
		for (int i = 0; i < 100; i++)
		{
			uint32_t	hash = chains_hash(i, capacity);
			uint32_t	bucket = chains_bucket(&division, hash);

			CHECK(bucket < buckets, "%lld", (long long) capacity);
			CHECK_EQUAL(bucket / division.buckets, chains_partition(&division, hash),
						"partition of a bucket");
		}
	}
}

/* Keys that differ in a bit, in either word, are spread over all partitions. */
static void
test_hash(void)
{
	ChainDivision division = chains_divide(16 * 1024, 256, 4096);
	static int	count[2][64][64];

	for (int i = 0; i < 6400; i++)
	{
		for (int bit = 0; bit < 64; bit += 8)
		{
			uint64_t	word = (uint64_t) i << bit;

			count[0][bit][chains_partition(&division, chains_hash(word, 42))]++;
			count[1][bit][chains_partition(&division, chains_hash(42, word))]++;
		}
	}
	CHECK_EQUAL(division.partitions, 64, "partitions");
	for (int word = 0; word < 2; word++)
	{
		for (int bit = 0; bit <= 48; bit += 8)
		{
			int			most = 0;

			for (int i = 0; i < 64; i++)
				most = count[word][bit][i] > most ? count[word][bit][i] : most;
			/* 100 on average; the deviation is 10 */
			CHECK(most < 200, "word %d, bit %d: %d of 6400 keys in a partition",
				  word, bit, most);
		}
	}
}

int
main(void)
{
	srand(1);
	test_division();
	test_hash();
	test_against_flags(16);
	test_against_flags(PLACES);
	return CHECKS_DONE("chains");
}
