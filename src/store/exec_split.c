/*-------------------------------------------------------------------------
 *
 * exec_split.c
 *	  See exec_split.h.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "exec_split.h"

/* What is booked on the parts, without what was not sampled. */
int64_t
exec_parts_sum(const int64_t *part)
{
	int64_t		sum = 0;

	for (int i = 0; i < NUM_EXEC_PARTS; i++)
		sum += part[i];
	return sum;
}

/*
 * Of "exec", all execution so far, book so much time on a part as there is left
 * that is not booked.  Returns how much that was.
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
 * Parts of differences, such as of an interval or a window: a sample may be
 * taken a moment later than what it is about was counted.  Cut from them what
 * does not fit into their execution.
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
