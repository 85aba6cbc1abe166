/*
 * planted.c: a library with one defect for each tool of test/sanitizers/run,
 * which must report it.  It is built and loaded as pgnetlat is, and not
 * installed for anybody.
 */
#include "postgres.h"

#include "fmgr.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(planted_shift);
PG_FUNCTION_INFO_V1(planted_overflow);
PG_FUNCTION_INFO_V1(planted_beyond);
PG_FUNCTION_INFO_V1(planted_unset);

/* Shift by as many bits as the argument says: by 40, that is undefined. */
PGDLLEXPORT Datum
planted_shift(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32((int32) (1U << PG_GETARG_INT32(0)));
}

/* Add to the greatest number. */
PGDLLEXPORT Datum
planted_overflow(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(PG_INT32_MAX + PG_GETARG_INT32(0));
}

/* Read a byte of an array of 16 on the stack: that after it is not its own. */
PGDLLEXPORT Datum
planted_beyond(PG_FUNCTION_ARGS)
{
	volatile char array[16] = {0};

	PG_RETURN_INT32(array[PG_GETARG_INT32(0)]);
}

/* Decide by a byte of malloc's that nobody has set. */
PGDLLEXPORT Datum
planted_unset(PG_FUNCTION_ARGS)
{
	volatile char *array = malloc(16);

	if (array[PG_GETARG_INT32(0)] == 7)
		elog(NOTICE, "by chance");
	free((void *) array);
	PG_RETURN_INT32(0);
}
