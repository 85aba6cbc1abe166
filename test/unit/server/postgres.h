/*
 * The parts of the server's headers that table.c, statements.c and tally.c
 * use, for a single process, so that a test can look at their memory between
 * any two steps.  test_table.c and test_tally.c have the functions.
 */
#ifndef POSTGRES_H
#define POSTGRES_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef size_t Size;
typedef uintptr_t Datum;
typedef uint8_t uint8;
typedef uint16_t uint16;
typedef int32_t int32;
typedef int64_t int64;
typedef uint32_t uint32;
typedef uint64_t uint64;
typedef unsigned int Oid;
typedef int pgsocket;

#define INT64CONST(x)			INT64_C(x)
#define UINT64CONST(x)			UINT64_C(x)
#define PG_INT64_MAX			INT64_MAX
#define InvalidOid				((Oid) 0)
#define NAMEDATALEN				64

#define Assert(condition)		assert(condition)
#define StaticAssertDecl(condition, message)	_Static_assert(condition, message)
#define Max(x, y)				((x) > (y) ? (x) : (y))
#define Min(x, y)				((x) < (y) ? (x) : (y))
#define lengthof(array)			(sizeof(array) / sizeof((array)[0]))
#define MAXALIGN(size)			(((size) + 7) & ~(uintptr_t) 7)
#define PG_CACHE_LINE_SIZE		128
#define CACHELINEALIGN(size)	(((uintptr_t) (size) + 127) & ~(uintptr_t) 127)
#define pg_attribute_aligned(size)	__attribute__((aligned(size)))
#define pg_attribute_always_inline	inline
#define pg_noinline				__attribute__((noinline))
#define pg_attribute_hot
#define likely(x)				(x)
#define unlikely(x)				(x)

#define MCXT_ALLOC_HUGE			1
#define palloc_extended(size, flags)	malloc(size)
#define repalloc_huge(pointer, size)	realloc(pointer, size)
#define palloc0(size)			calloc(1, size)
#define palloc(size)			malloc(size)
#define pfree(pointer)			free(pointer)
#define MemoryContextAlloc(context, size)	malloc(size)
#define snprintf				__builtin_snprintf
#define add_size(a, b)			((a) + (b))
#define mul_size(a, b)			((a) * (b))

#endif
