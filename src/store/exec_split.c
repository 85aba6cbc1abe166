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

#include <stddef.h>

/* What is booked on the parts, without what was not sampled. */
int64_t
exec_parts_sum(const int64_t *part)
{
	int64_t		sum = 0;

	for (int i = 0; i < NUM_EXEC_PARTS; i++)
		sum += part[i];
	return sum;
}

/* All that is booked for good. */
int64_t
exec_split_sum(const ExecSplit *split)
{
	return exec_parts_sum(split->part) + split->unsampled;
}

/*
 * Of "exec", all execution so far, book so much time on a part as there is left
 * that is not booked.  Returns how much that was.
 */
int64_t
exec_split_book(ExecSplit *split, int64_t exec, ExecPart part, int64_t time)
{
	int64_t		left = exec - exec_split_sum(split);

	if (time > left)
		time = left;
	if (time < 0)
		time = 0;
	split->part[part] += time;
	return time;
}

/*
 * All execution so far is shown: what is not booked by now was not sampled.
 */
void
exec_split_show(ExecSplit *split, int64_t exec)
{
	int64_t		unsampled = exec - exec_parts_sum(split->part);

	/* in one step: several readers may do this at once */
	if (unsampled > split->unsampled)
		split->unsampled = unsampled;
}

/* What two have executed between them: "term" is added to "sum". */
void
exec_split_add(ExecSplit *sum, const ExecSplit *term)
{
	for (int i = 0; i < NUM_EXEC_PARTS; i++)
		sum->part[i] += term->part[i];
	sum->unsampled += term->unsampled;
}

/*
 * How much of the time is to be booked on a lock wait that has been going on
 * since then, where the sample stands for "sampled"; the caller adds to "booked"
 * what it could.
 *
 * Since the lock manager says when it began, a wait in progress is exact.  But
 * one that is seen for the first time is booked as long as the sample is: like
 * all others, for the many that are too short to be seen.
 */
int64_t
exec_lock_time(ExecLockWait *wait, int64_t since, int64_t now, int64_t sampled)
{
	int64_t		so_far = now - since;

	if (since == 0)
	{
		wait->since = wait->booked = 0;
		return sampled;
	}
	if (wait->since != since)
	{
		wait->since = since;
		wait->booked = 0;
		return so_far > sampled ? so_far : sampled;
	}
	return so_far > wait->booked ? so_far - wait->booked : 0;
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

/*
 * The same for a sum that is shown between two additions: only what is added is
 * cut.  "exec" is that of the sum, with the addition.
 */
void
exec_parts_add_fitting(int64_t *sum, const int64_t *term, int64_t exec)
{
	int64_t		room = exec - exec_parts_sum(sum);

	for (int i = 0; i < NUM_EXEC_PARTS; i++)
	{
		int64_t		fits = term[i] < room ? term[i] : room;

		if (fits <= 0)
			continue;
		sum[i] += fits;
		room -= fits;
	}
}
