/* Sources: lock_graph.c */
/*
 * test_lock_graph.c: roots of lock waits, in given and in random queues.  Each
 * root must be reachable through what blocks a wait, and must not wait itself.
 */
#include "postgres.h"

#include "check.h"
#include "lock_graph.h"

/* as in the lock manager */
enum
{
	ACCESS_SHARE = 1, ROW_SHARE, ROW_EXCLUSIVE, SHARE_UPDATE_EXCLUSIVE, SHARE,
	SHARE_ROW_EXCLUSIVE, EXCLUSIVE, ACCESS_EXCLUSIVE
};

static const uint32 conflicts[] = {
	0, 0x100, 0x180, 0x1e0, 0x1f0, 0x1d8, 0x1f8, 0x1fc, 0x1fe
};

#define MOST	4096

static LockInstance table[MOST];
static int	count = 0;

static void
holds(int process, int lock, int mode)
{
	table[count++] = (LockInstance)
	{
		.lock = lock,.process = process,.held = 1u << mode,.source = count
	};
}

static void
awaits(int process, int lock, int mode, int64 since)
{
	table[count++] = (LockInstance)
	{
		.lock = lock,.process = process,.awaited = mode,.conflicts = conflicts[mode],
			.since = since,.source = count
	};
}

/*
 * The process at the root; 0: a prepared transaction; -1: none; -2: none,
 * because the blockers lead in circles.
 */
static int
root_of(int process)
{
	static LockInstance copy[MOST];
	const LockInstance *root;
	bool		in_circle;

	memcpy(copy, table, sizeof(copy));
	root = lock_graph_root(lock_graph_build(copy, count), process, &in_circle);
	if (root)
		return in_circle ? -3 : root->process;
	return in_circle ? -2 : -1;
}

static void
test_by_hand(void)
{
	/* an idle transaction, ALTER TABLE, readers */
	holds(1, 0, ACCESS_SHARE);
	awaits(2, 0, ACCESS_EXCLUSIVE, 10);
	awaits(3, 0, ACCESS_SHARE, 20);
	awaits(4, 0, ACCESS_SHARE, 30);
	CHECK_EQUAL(root_of(1), -1, "the root of a process that does not wait");
	CHECK_EQUAL(root_of(2), 1, "the root of ALTER TABLE");
	CHECK_EQUAL(root_of(3), 1, "the root of the first reader");
	CHECK_EQUAL(root_of(4), 1, "the root of the second reader");
	CHECK_EQUAL(root_of(5), -1, "the root of a process without locks");

	/*
	 * the holder of another lock waits for this one; and a prepared
	 * transaction
	 */
	count = 0;
	holds(0, 0, EXCLUSIVE);
	awaits(2, 0, SHARE, 10);
	holds(2, 1, SHARE);
	awaits(3, 1, ROW_EXCLUSIVE, 5);
	CHECK_EQUAL(root_of(2), 0, "the root of a wait for a prepared transaction");
	CHECK_EQUAL(root_of(3), 0, "the root of a wait behind a prepared transaction");

	/* a lock upgrade goes ahead of earlier waiters */
	count = 0;
	holds(1, 0, SHARE);
	holds(2, 0, ACCESS_SHARE);
	table[count - 1].awaited = ROW_EXCLUSIVE;
	table[count - 1].conflicts = conflicts[ROW_EXCLUSIVE];
	table[count - 1].since = 20;
	awaits(3, 0, ACCESS_EXCLUSIVE, 10);
	CHECK_EQUAL(root_of(2), 1, "the root of a lock upgrade");
	CHECK_EQUAL(root_of(3), 1, "the root of a wait for a lock upgrade");

	/* a worker of the same lock group does not block, others do */
	count = 0;
	holds(1, 0, EXCLUSIVE);
	awaits(1, 0, SHARE, 10);
	holds(2, 0, EXCLUSIVE);
	CHECK_EQUAL(root_of(1), 2, "the root of a wait for another lock group");
	count = 2;
	CHECK_EQUAL(root_of(1), -1, "the root of a wait within one lock group");
}

static void
test_circles(void)
{
	count = 0;
	holds(1, 0, EXCLUSIVE);
	holds(2, 1, EXCLUSIVE);
	awaits(2, 0, EXCLUSIVE, 10);
	awaits(1, 1, EXCLUSIVE, 20);
	CHECK_EQUAL(root_of(1), -2, "the root of a deadlock");
	awaits(3, 1, EXCLUSIVE, 30);
	CHECK_EQUAL(root_of(3), -2, "the root of a wait for a deadlock");
	holds(4, 2, SHARE);
	holds(2, 2, SHARE);
	awaits(3, 2, EXCLUSIVE, 30);
	table[count - 4].lock = 3;
	CHECK_EQUAL(root_of(3), 4, "the root of a wait for a deadlock and a holder");
}

static void
test_long_chain(void)
{
	const int	length = 1000;

	count = 0;
	holds(1, 0, EXCLUSIVE);
	for (int i = 2; i <= length; i++)
	{
		holds(i, i - 1, EXCLUSIVE);
		/* the last one began first */
		awaits(i, i - 2, EXCLUSIVE, length - i);
	}
	CHECK_EQUAL(root_of(length), 1, "the root of the last wait of a long chain");
	CHECK_EQUAL(root_of(2), 1, "the root of the first wait of a long chain");
}

/* ---------------------------------------------------------------------------
 * Random queues
 * ---------------------------------------------------------------------------
 */

#define PROCESSES	24
#define LOCKS		6

static uint64 seed = 1;

static int
below(int limit)
{
	seed = seed * UINT64CONST(6364136223846793005) + 1;
	return (seed >> 33) % limit;
}

static bool
is_blocked_by(const LockInstance *wait, const LockInstance *other)
{
	if (wait->lock != other->lock || wait->process == other->process)
		return false;
	return (other->held & wait->conflicts) != 0 ||
		(other->awaited != 0 && other->since < wait->since &&
		 (wait->conflicts & 1u << other->awaited) != 0);
}

/* Can the root of a process be reached through the blocking processes? */
static void
check_root(int process)
{
	bool		reached[PROCESSES + 1] = {false};
	bool		waits[PROCESSES + 1] = {false};
	bool		has_root = false;
	bool		more = true;
	int			root = root_of(process);

	for (int i = 0; i < count; i++)
		waits[table[i].process] = waits[table[i].process] || table[i].awaited != 0;
	reached[process] = true;
	while (more)
	{
		more = false;
		for (int i = 0; i < count; i++)
		{
			for (int j = 0; j < count; j++)
			{
				if (table[i].awaited == 0 || !reached[table[i].process] ||
					reached[table[j].process] || !is_blocked_by(&table[i], &table[j]))
					continue;
				more = reached[table[j].process] = true;
				has_root = has_root || !waits[table[j].process];
			}
		}
	}
	if (root == -1 || root == -2)
		CHECK(!has_root, "there is no root if none is found");
	else
		CHECK(reached[root] && !waits[root],
			  "root %d of process %d blocks it and does not wait", root, process);
}

/*
 * Locks are requested one after another; a process that cannot have one waits.
 */
static void
make_queues(void)
{
	int			waits_for[PROCESSES + 1] = {0};

	count = 0;
	for (int step = 1; step < 60; step++)
	{
		int			process = 1 + below(PROCESSES);
		int			lock = below(LOCKS);
		int			mode = 1 + below(ACCESS_EXCLUSIVE);
		LockInstance *own = NULL;
		bool		blocked = false;

		if (waits_for[process] != 0)
			continue;
		for (int i = 0; i < count; i++)
		{
			if (table[i].lock == lock && table[i].process == process)
				own = &table[i];
		}
		if (own == NULL)
		{
			holds(process, lock, 0);
			own = &table[count - 1];
			own->held = 0;
		}
		own->awaited = mode;
		own->conflicts = conflicts[mode];
		own->since = step;
		for (int i = 0; i < count; i++)
			blocked = blocked || is_blocked_by(own, &table[i]);
		if (blocked)
			waits_for[process] = 1;
		else
		{
			own->held |= 1u << mode;
			own->awaited = 0;
			own->conflicts = 0;
			own->since = 0;
		}
	}
}

int
main(void)
{
	test_by_hand();
	test_circles();
	test_long_chain();
	for (int i = 0; i < 2000; i++)
	{
		make_queues();
		for (int process = 1; process <= PROCESSES; process++)
		{
			bool		waits = false;

			for (int j = 0; j < count; j++)
				waits = waits || (table[j].process == process && table[j].awaited != 0);
			if (waits)
				check_root(process);
		}
	}
	return CHECKS_DONE("lock_graph");
}
