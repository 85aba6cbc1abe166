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
	CHECK_EQUAL(snapshots_due(&schedule, 1000 * SECOND), 7, "the levels that are due first");
	CHECK_EQUAL(snapshots_due(&schedule, 1003 * SECOND), 0, "the levels due after 3 s");
	CHECK_EQUAL(snapshots_due(&schedule, 1004 * SECOND), 1, "the levels due after 4 s");
	CHECK_EQUAL(snapshots_due(&schedule, 1007 * SECOND), 0, "the levels due 3 s after that");
	CHECK_EQUAL(snapshots_due(&schedule, 1020 * SECOND), 3, "the levels due after 20 s");
	CHECK_EQUAL(snapshots_due(&schedule, 1000 * SECOND + 5 * MINUTE), 7,
				"the levels due after 5 min");
}

/* Snapshots of many accounts, and then of few again. */
static void
test_apart(void)
{
	begin();
	CHECK_EQUAL(snapshots_due(&schedule, 1000 * SECOND), 7,
				"the levels due first, before they are kept apart");
	snapshots_keep_apart(&schedule, 5 * SECOND);
	CHECK_EQUAL(snapshots_due(&schedule, 1004 * SECOND), 0,
				"the levels due after 4 s if 5 s apart");
	CHECK_EQUAL(snapshots_due(&schedule, 1005 * SECOND), 1,
				"the levels due after 5 s if 5 s apart");
	snapshots_keep_apart(&schedule, 60 * SECOND);
	CHECK_EQUAL(snapshots_due(&schedule, 1014 * SECOND), 0,
				"the levels due 9 s later if 60 s apart");
	CHECK_EQUAL(snapshots_due(&schedule, 1015 * SECOND), 1,
				"the levels due 10 s later if 60 s apart");
	CHECK_EQUAL(snapshots_due(&schedule, 1020 * SECOND), 2,
				"the levels due after 20 s if 60 s apart");
	snapshots_keep_apart(&schedule, SECOND);
	CHECK_EQUAL(snapshots_due(&schedule, 1019 * SECOND), 1,
				"the levels due 4 s later if 1 s apart");
}

static void
test_young(void)
{
	begin();
	CHECK_EQUAL(window(1000 * SECOND, 0), -1, "the window without a snapshot");
	tick(1000 * SECOND);
	CHECK_EQUAL(window(1005 * SECOND, 10 * SECOND), -1, "the window if no snapshot is old enough");
	CHECK_EQUAL(window(1005 * SECOND, 5 * SECOND), 5 * SECOND,
				"the window if a snapshot is just old enough");
	CHECK_EQUAL(window(1010 * SECOND, 5 * SECOND), 10 * SECOND,
				"the window if the only snapshot is older");
	tick(1010 * SECOND);
	CHECK_EQUAL(kept.at[snapshots_begin_window(&kept, 0)], 0, "the moment of an unused place");
	for (int i = 0; i < SNAPSHOTS_KEPT; i++)
		kept.at[i] = (1000 + (i * 7 + 5) % SNAPSHOTS_KEPT) * SECOND;
	CHECK_EQUAL(kept.at[snapshots_begin_window(&kept, 0)], 1000 * SECOND,
				"the moment of the oldest snapshot");
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

				CHECK(length >= asked[i], "a window is not shorter than asked for");
				CHECK(length < asked[i] + kept_length / 3 + 4 * distance,
					  "a window is not much longer than asked for");
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

		CHECK(place >= 0 && place < SNAPSHOTS_PER_LEVEL, "the place is one of this level");
		kept.at[place] = 1000 * SECOND;
	}
	CHECK_EQUAL(window(1010 * SECOND, 5 * SECOND), 10 * SECOND,
				"the window from repeated snapshots");
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
	CHECK(window(now, 10 * SECOND) >= 10 * MINUTE, "the window after a gap begins before it");
	for (int64_t end = now + 14 * SECOND; now < end; now += SECOND / 100)
		tick(now);
	CHECK(window(now, 10 * SECOND) < 14 * SECOND,
		  "the window some time after a gap is not longer than ever");
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
