/*-------------------------------------------------------------------------
 *
 * exec_split.c
 *	  Splits execution into its sampled parts.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "exec_split.h"

/* The sum of the parts, without what was not sampled. */
int64_t
exec_parts_sum(const int64_t *part)
{
	int64_t		sum = 0;

	for (int i = 0; i < NUM_EXEC_PARTS; i++)
		sum += part[i];
	return sum;
}

/*
 * Book up to "time" on a part, limited by what is not booked yet of "exec",
 * all execution so far.  Returns what was booked.
 */
int64_t
exec_parts_book(int64_t *part, int64_t exec, ExecPart which, int64_t time)
{
	int64_t		left = exec - exec_parts_sum(part);

	if (time > left)
		time = left;
	if (time < 0)
		time = 0;
	part[which] += time;
	return time;
}

/*
 * Cut the parts of a difference, such as an interval or a window, to its
 * execution: a sample may be taken a moment after what it shows was counted.
 */
void
exec_parts_fit(int64_t *part, int64_t exec)
{
	int64_t		room = exec > 0 ? exec : 0;

	for (int i = 0; i < NUM_EXEC_PARTS; i++)
	{
		if (part[i] < 0)
			part[i] = 0;
		if (part[i] > room)
			part[i] = room;
		room -= part[i];
	}
}
