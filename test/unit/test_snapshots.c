/* Sources: snapshots.c */
/*
 * test_snapshots.c: every window contains the requested time, and little more.
 */
#include "snapshots.h"

#include <string.h>

#include "check.h"

#define SECOND	INT64_C(1000000000)
#define MINUTE	(60 * SECOND)

static SnapshotSchedule schedule;
static SnapshotTimes kept;

static void
begin(void)
{
	memset(&schedule, 0, sizeof(schedule));
	memset(&kept, 0, sizeof(kept));
}

static void
tick(int64_t now)
{
	SnapshotLevels due = snapshots_due(&schedule, now);

	for (int level = 0; level < SNAPSHOT_LEVELS; level++)
	{
		if (due & (1u << level))
			kept.at[snapshots_place(&kept, level)] = now;
	}
}

/* The length of the window that contains "length"; -1 if there is none. */
static int64_t
window(int64_t now, int64_t length)
{
	int			place = snapshots_find(&kept, now - length);

	return place < 0 ? -1 : now - kept.at[place];
}

static void
test_schedule(void)
{
	begin();
	CHECK_EQUAL(snapshots_due(&schedule, 1000 * SECOND), 7, "first of all levels");
	CHECK_EQUAL(snapshots_due(&schedule, 1003 * SECOND), 0, "nothing is due");
	CHECK_EQUAL(snapshots_due(&schedule, 1004 * SECOND), 1, "10 seconds, every 3.3");
	CHECK_EQUAL(snapshots_due(&schedule, 1007 * SECOND), 0, "counted from the one before");
	CHECK_EQUAL(snapshots_due(&schedule, 1020 * SECOND), 3, "1 minute, every 20 s");
	CHECK_EQUAL(snapshots_due(&schedule, 1000 * SECOND + 5 * MINUTE), 7, "15 minutes, every 5");
}

/* Snapshots of many accounts, and then of few again. */
static void
test_apart(void)
{
	begin();
	CHECK_EQUAL(snapshots_due(&schedule, 1000 * SECOND), 7, "first of all levels");
	snapshots_keep_apart(&schedule, 5 * SECOND);
	CHECK_EQUAL(snapshots_due(&schedule, 1004 * SECOND), 0, "they cost too much");
	CHECK_EQUAL(snapshots_due(&schedule, 1005 * SECOND), 1, "after 5 seconds");
	snapshots_keep_apart(&schedule, 60 * SECOND);
	CHECK_EQUAL(snapshots_due(&schedule, 1014 * SECOND), 0, "they cost much more");
	CHECK_EQUAL(snapshots_due(&schedule, 1015 * SECOND), 1, "but no window is twice as long");
	CHECK_EQUAL(snapshots_due(&schedule, 1020 * SECOND), 2, "those of a minute are as ever");
	snapshots_keep_apart(&schedule, SECOND);
	CHECK_EQUAL(snapshots_due(&schedule, 1019 * SECOND), 1, "few: every 3.3");
}

static void
test_young(void)
{
	begin();
	CHECK_EQUAL(window(1000 * SECOND, 0), -1, "no snapshot at all");
	tick(1000 * SECOND);
	CHECK_EQUAL(window(1005 * SECOND, 10 * SECOND), -1, "none is old enough");
	CHECK_EQUAL(window(1005 * SECOND, 5 * SECOND), 5 * SECOND, "just old enough");
	CHECK_EQUAL(window(1010 * SECOND, 5 * SECOND), 10 * SECOND, "older");
	tick(1010 * SECOND);
	CHECK_EQUAL(kept.at[snapshots_begin_window(&kept, 0)], 0, "places are unused");
	for (int i = 0; i < SNAPSHOTS_KEPT; i++)
		kept.at[i] = (1000 + (i * 7 + 5) % SNAPSHOTS_KEPT) * SECOND;
	CHECK_EQUAL(kept.at[snapshots_begin_window(&kept, 0)], 1000 * SECOND, "the oldest of all");
}

/* Ticks at distances from 10 ms to two seconds, for an hour. */
static void
test_windows(void)
{
	static const int64_t asked[] = {SECOND, 10 * SECOND, 30 * SECOND, MINUTE, 5 * MINUTE, 15 * MINUTE};
	static const int64_t distances[] = {SECOND / 100, SECOND / 7, 2 * SECOND};

	for (int d = 0; d < 3; d++)
	{
		int64_t		distance = distances[d];
		int64_t		now = 1000 * SECOND;

		begin();
		for (; now < 1000 * SECOND + 60 * MINUTE; now += distance)
		{
			tick(now);
			if (now < 1000 * SECOND + 21 * MINUTE)
				continue;
			for (int i = 0; i < 6; i++)
			{
				int64_t		kept_length = asked[i] <= 10 * SECOND ? 10 * SECOND :
					asked[i] <= MINUTE ? MINUTE : 15 * MINUTE;
				int64_t		length = window(now, asked[i]);

				CHECK(length >= asked[i], "not shorter than asked for");
				CHECK(length < asked[i] + kept_length / 3 + 4 * distance, "nor much longer");
			}
		}
	}
}

/* While nothing can be attributed, snapshots are as of the same moment. */
static void
test_pending(void)
{
	begin();
	for (int i = 0; i < 10; i++)
	{
		int			place = snapshots_place(&kept, 0);

		CHECK(place >= 0 && place < SNAPSHOTS_PER_LEVEL, "a place of this level");
		kept.at[place] = 1000 * SECOND;
	}
	CHECK_EQUAL(window(1010 * SECOND, 5 * SECOND), 10 * SECOND, "a window from there");
}

/* The sampler was down: the windows have become longer, and recover. */
static void
test_gap(void)
{
	int64_t		now;

	begin();
	for (now = 1000 * SECOND; now < 1000 * SECOND + MINUTE; now += SECOND / 100)
		tick(now);
	now += 10 * MINUTE;
	CHECK(window(now, 10 * SECOND) >= 10 * MINUTE, "as of before the gap");
	for (int64_t end = now + 14 * SECOND; now < end; now += SECOND / 100)
		tick(now);
	CHECK(window(now, 10 * SECOND) < 14 * SECOND, "as if nothing had happened");
}

int
main(void)
{
	test_schedule();
	test_apart();
	test_young();
	test_windows();
	test_pending();
	test_gap();
	return CHECKS_DONE("snapshots");
}
