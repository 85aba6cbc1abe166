#ifndef ATOMICS_H
#define ATOMICS_H

typedef uint32 pg_atomic_uint32;

#define pg_atomic_init_u32(variable, value)		(*(variable) = (value))
#define pg_atomic_read_u32(variable)			(*(variable))
#define pg_atomic_write_u32(variable, value)	(*(variable) = (value))

static inline uint32
pg_atomic_fetch_add_u32(pg_atomic_uint32 *variable, int32 add)
{
	uint32		before = *variable;

	*variable += add;
	return before;
}

#endif
