/*
 * What of the server's headers src/table.c uses, for one process alone: so that
 * a test can look at a table between any two locks.  test_table.c has the
 * functions.
 */
#ifndef POSTGRES_H
#define POSTGRES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef size_t Size;
typedef int32_t int32;
typedef int64_t int64;
typedef uint32_t uint32;
typedef uint64_t uint64;

#define Max(x, y)				((x) > (y) ? (x) : (y))
#define Min(x, y)				((x) < (y) ? (x) : (y))
#define MAXALIGN(size)			(((size) + 7) & ~(uintptr_t) 7)
#define PG_CACHE_LINE_SIZE		128
#define CACHELINEALIGN(size)	(((uintptr_t) (size) + 127) & ~(uintptr_t) 127)
#define likely(x)				(x)
#define unlikely(x)				(x)

#define MCXT_ALLOC_HUGE			1
#define palloc_extended(size, flags)	malloc(size)
#define repalloc_huge(pointer, size)	realloc(pointer, size)
#define add_size(a, b)			((a) + (b))
#define mul_size(a, b)			((a) * (b))

#endif
