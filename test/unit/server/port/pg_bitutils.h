#ifndef PG_BITUTILS_H
#define PG_BITUTILS_H

#define pg_rightmost_one_pos64(word)	__builtin_ctzll(word)

#endif
