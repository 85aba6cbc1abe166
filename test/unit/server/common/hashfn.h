#ifndef HASHFN_H
#define HASHFN_H

static inline uint32
hash_bytes(const unsigned char *key, int length)
{
	uint64		hash = UINT64CONST(0xCBF29CE484222325);

	for (int i = 0; i < length; i++)
		hash = (hash ^ key[i]) * UINT64CONST(0x100000001B3);
	return (uint32) ((hash * UINT64CONST(0x9E3779B97F4A7C15)) >> 32);
}

#endif
