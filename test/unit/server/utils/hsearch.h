/* Hash tables of fixed size, whose entries never move, as in dynahash. */
#ifndef HSEARCH_H
#define HSEARCH_H

#define HASH_ELEM			1
#define HASH_BLOBS			2
#define HASH_FIXED_SIZE		4
#define HASH_FUNCTION		8

typedef uint32 (*HashValueFunc) (const void *key, Size size);

typedef struct HASHCTL
{
	Size		keysize;
	Size		entrysize;
	HashValueFunc hash;
} HASHCTL;

typedef struct HTAB
{
	HASHCTL		info;
	long		capacity;
	long		count;
	bool	   *used;
	uint32	   *hash;
	char	   *entries;
} HTAB;

typedef struct HASH_SEQ_STATUS
{
	HTAB	   *table;
	long		next;
} HASH_SEQ_STATUS;

typedef enum HASHACTION
{
	HASH_FIND,
	HASH_REMOVE,
	HASH_ENTER_NULL
} HASHACTION;

#define hash_estimate_size(count, size)		((count) * (size))
#define hash_get_num_entries(table)			((table)->count)

static inline HTAB *
compat_shmem_hash(const char *name, long capacity, HASHCTL *info, int flags)
{
	HTAB	   *table = calloc(1, sizeof(HTAB));

	table->info = *info;
	table->capacity = capacity;
	table->used = calloc(capacity, sizeof(bool));
	table->hash = calloc(capacity, sizeof(uint32));
	table->entries = calloc(capacity, info->entrysize);
	return table;
}

static inline uint32
get_hash_value(HTAB *table, const void *key)
{
	uint64		hash = UINT64CONST(0xCBF29CE484222325);

	if (table->info.hash)
		return table->info.hash(key, table->info.keysize);
	for (Size i = 0; i < table->info.keysize; i++)
		hash = (hash ^ ((const uint8 *) key)[i]) * UINT64CONST(0x100000001B3);
	return (uint32) ((hash * UINT64CONST(0x9E3779B97F4A7C15)) >> 32);
}

static inline void *
hash_search_with_hash_value(HTAB *table, const void *key, uint32 hash, HASHACTION action,
							bool *found)
{
	long		unused = -1;

	for (long i = 0; i < table->capacity; i++)
	{
		char	   *entry = table->entries + i * table->info.entrysize;

		if (!table->used[i])
			unused = i;
		else if (table->hash[i] == hash && memcmp(entry, key, table->info.keysize) == 0)
		{
			table->used[i] = action != HASH_REMOVE;
			table->count -= action == HASH_REMOVE;
			return entry;
		}
	}
	if (action != HASH_ENTER_NULL || unused < 0)
		return NULL;
	table->used[unused] = true;
	table->hash[unused] = hash;
	table->count++;
	return memcpy(table->entries + unused * table->info.entrysize, key, table->info.keysize);
}

static inline void *
hash_search(HTAB *table, const void *key, HASHACTION action, bool *found)
{
	return hash_search_with_hash_value(table, key, get_hash_value(table, key), action, found);
}

static inline void
hash_seq_init(HASH_SEQ_STATUS *scan, HTAB *table)
{
	scan->table = table;
	scan->next = 0;
}

static inline void *
hash_seq_search(HASH_SEQ_STATUS *scan)
{
	while (scan->next < scan->table->capacity)
	{
		long		i = scan->next++;

		if (scan->table->used[i])
			return scan->table->entries + i * scan->table->info.entrysize;
	}
	return NULL;
}

#endif
