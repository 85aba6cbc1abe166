/*
 * Each of these is one step.  Built with -DSERVER_STEPS, a test can let other
 * processes run before and after it.
 */
#ifndef ATOMICS_H
#define ATOMICS_H

#ifdef SERVER_STEPS
extern void server_step(void);
#else
#define server_step()			((void) 0)
#endif

typedef uint32 pg_atomic_uint32;
typedef uint64 pg_atomic_uint64;
typedef bool pg_atomic_flag;

#define pg_memory_barrier()						server_step()
#define pg_read_barrier()						server_step()
#define pg_write_barrier()						server_step()

#define pg_atomic_init_u32(variable, value)		(*(variable) = (value))
#define pg_atomic_read_u32(variable)			(*(variable))
#define pg_atomic_write_u32(variable, value)	(*(variable) = (value))
#define pg_atomic_init_u64(variable, value)		(*(variable) = (value))
#define pg_atomic_read_u64(variable)			(*(variable))
#define pg_atomic_write_u64(variable, value)	(*(variable) = (value))
#define pg_atomic_init_flag(flag)				(*(flag) = false)
#define pg_atomic_unlocked_test_flag(flag)		(!*(flag))

static inline uint32
pg_atomic_fetch_add_u32(pg_atomic_uint32 *variable, int32 add)
{
	uint32		before = *variable;

	*variable += add;
	return before;
}

static inline bool
pg_atomic_compare_exchange_u32(pg_atomic_uint32 *variable, uint32 *expected, uint32 value)
{
	bool		is_it;

	server_step();
	is_it = *variable == *expected;
	if (is_it)
		*variable = value;
	else
		*expected = *variable;
	server_step();
	return is_it;
}

static inline bool
pg_atomic_test_set_flag(pg_atomic_flag *flag)
{
	bool		was_set;

	server_step();
	was_set = *flag;
	*flag = true;
	server_step();
	return !was_set;
}

static inline void
pg_atomic_clear_flag(pg_atomic_flag *flag)
{
	server_step();
	*flag = false;
	server_step();
}

#endif
