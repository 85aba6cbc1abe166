/*
 * stress.c: a session and a reader that takes its tally, as two threads, with
 * the server's own atomics and the library's own code as it is compiled.
 *
 * Nothing that the session counts may be lost or taken twice, and no copy of
 * what it publishes may be torn.  Prints how often the tally was taken, how
 * much was lost or taken twice, how many copies there were, and how many of
 * them were torn.
 */
#include "postgres.h"

#include <pthread.h>

#include "session_slot.h"
#include "tally.h"

#undef printf

#define EXCHANGES		INT64CONST(5000000)

static SessionSlot slot;
static SlotControl control;
SlotControl *slot_control = &control;
static volatile bool session_ended = false;

int
slot_count(void)
{
	return 1;
}

SessionSlot *
slot_get(int index)
{
	return &slot;
}

void
slot_apply_reset(SlotPublished *published)
{
	abort();
}

Size
mul_size(Size a, Size b)
{
	return a * b;
}

void
pg_usleep(long microseconds)
{
}

static void
publish(int64 number)
{
	slot_write_begin(&slot);
	if (tally_was_touched(&slot))
		(void) tally_settle(&slot);
	if (number > 0)
		tally_observe(METRIC_REQUEST, 1000);
	slot.published.request_stamp = number;
	slot.published.first_rtt = number;
	slot_write_end(&slot);
}

static void *
session(void *unused)
{
	for (int64 number = 1; number <= EXCHANGES; number++)
	{
		publish(number);
		/* between exchanges there is time for a copy, more or less */
		for (int i = number % 50; i > 0; i--)
			pg_spin_delay();
	}
	session_ended = true;
	return NULL;
}

static int64
take(int64 *takes)
{
	static Tally taken;
	int64		count = 0;

	if (!tally_take(0, &taken))
		return 0;
	++*takes;
	for (int i = 0; i < HISTOGRAM_BUCKETS; i++)
		count += taken.histogram[METRIC_REQUEST].bucket[i];
	return count;
}

int
main(void)
{
	pthread_t	thread;
	int64		takes = 0;
	int64		taken = 0;
	int64		copies = 0;
	int64		torn = 0;

	tally_shmem_attach(calloc(1, tally_shmem_size()), true);
	tally_attach(0);
	pthread_create(&thread, NULL, session, NULL);
	while (!session_ended)
	{
		SlotPublished copy;
		uint32		changecount;

		taken += take(&takes);
		if (!seqlock_copy(&slot.lock, &copy, &slot.published, sizeof(copy), &changecount))
			continue;
		copies++;
		torn += copy.request_stamp != copy.first_rtt;
	}
	pthread_join(thread, NULL);
	publish(0);
	taken += take(&takes);
	printf("%lld %lld %lld %lld\n", (long long) takes, (long long) Abs(taken - EXCHANGES),
		   (long long) copies, (long long) torn);
	return 0;
}
