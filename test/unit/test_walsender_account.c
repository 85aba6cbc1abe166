/* Sources: walsender_account.c */
/*
 * test_walsender_account.c: a walsender's account adds up, and nothing falls.
 */
#include "walsender_account.h"

#include <string.h>

#include "check.h"
#include "ledger.h"

#define MS	INT64_C(1000000)

static int64_t
sum(const WalsenderAccount *account, int64_t now)
{
	return account->totals.send + account->totals.busy + account->totals.idle +
		walsender_pending(account, now);
}

/* What is at work is as the next sample sees it, but for what was sent. */
static void
test_samples(void)
{
	WalsenderAccount a = {0};

	walsender_start(&a, 100 * MS, false);
	CHECK_EQUAL(walsender_pending(&a, 110 * MS), 10 * MS, "walsender_pending(&a, 110 * MS)");
	walsender_sample(&a, 110 * MS, true);
	CHECK_EQUAL(a.totals.idle, 10 * MS, "a.totals.idle");
	walsender_sent(&a, 112 * MS, 113 * MS);
	CHECK_EQUAL(a.totals.send, 1 * MS, "a.totals.send");
	CHECK_EQUAL(walsender_pending(&a, 115 * MS), 4 * MS, "walsender_pending(&a, 115 * MS)");
	walsender_sample(&a, 120 * MS, false);
	CHECK_EQUAL(a.totals.busy, 9 * MS, "a.totals.busy");
	CHECK_EQUAL(walsender_pending(&a, 120 * MS), 0, "walsender_pending(&a, 120 * MS)");
	walsender_stop(&a, 130 * MS, WINDOW_UNKNOWN);
	CHECK_EQUAL(a.totals.busy, 19 * MS, "a.totals.busy");
	CHECK_EQUAL(walsender_pending(&a, 200 * MS), 0, "walsender_pending(&a, 200 * MS)");
	CHECK_EQUAL(sum(&a, 200 * MS), 30 * MS, "sum(&a, 200 * MS)");

	/* and counting may go on */
	walsender_start(&a, 200 * MS, false);
	walsender_sample(&a, 201 * MS, true);
	CHECK_EQUAL(sum(&a, 201 * MS), 31 * MS, "sum(&a, 201 * MS)");
}

/* A short sending is nobody's fault. */
static void
test_short_send(void)
{
	WalsenderAccount a = {0};

	walsender_start(&a, 0, false);
	walsender_send_begin(&a, 5 * MS, 0);
	CHECK(!walsender_is_blocked(&a, 5 * MS + LEDGER_BLOCKED_NS - 1), "not blocked yet");
	walsender_send_look(&a, 5 * MS + LEDGER_BLOCKED_NS - 1, 1 * MS);
	walsender_send_end(&a, 5 * MS + LEDGER_BLOCKED_NS - 1, 1 * MS);
	CHECK_EQUAL(a.totals.send, LEDGER_BLOCKED_NS - 1, "a.totals.send");
	CHECK_EQUAL(a.totals.send_network, 0, "a.totals.send_network");
	CHECK_EQUAL(a.totals.send_client, 0, "a.totals.send_client");
	CHECK_EQUAL(walsender_pending(&a, 6 * MS), 6 * MS - a.totals.send, "walsender_pending(&a, 6 * MS)");
}

/* A long one is the receiver's while its window was closed, else the network's. */
static void
test_blocked(void)
{
	WalsenderAccount a = {0};

	walsender_start(&a, 0, false);
	walsender_send_begin(&a, 0, 100 * MS);
	walsender_send_begin(&a, 3 * MS, 100 * MS); /* goes on */
	walsender_send_look(&a, 10 * MS, 104 * MS);
	CHECK_EQUAL(a.totals.send_client, 4 * MS, "a.totals.send_client");
	CHECK_EQUAL(a.totals.send_network, 6 * MS, "a.totals.send_network");
	/* nobody knows */
	walsender_send_look(&a, 20 * MS, WINDOW_UNKNOWN);
	CHECK_EQUAL(walsender_pending(&a, 20 * MS), 10 * MS, "walsender_pending(&a, 20 * MS)");
	/* more than there can be */
	walsender_send_look(&a, 30 * MS, 200 * MS);
	CHECK_EQUAL(a.totals.send_client, 24 * MS, "a.totals.send_client");
	CHECK_EQUAL(a.totals.send_network, 6 * MS, "a.totals.send_network");
	/* less than was booked */
	walsender_send_end(&a, 40 * MS, 101 * MS);
	CHECK_EQUAL(a.totals.send_client, 24 * MS, "a.totals.send_client");
	CHECK_EQUAL(a.totals.send_network, 16 * MS, "a.totals.send_network");
	CHECK_EQUAL(a.totals.send, 40 * MS, "a.totals.send");

	/* the kernel counts in steps: over the whole, few of them are lost */
	memset(&a, 0, sizeof(a));
	walsender_start(&a, 0, false);
	walsender_send_begin(&a, 0, 0);
	for (int64_t at = 10 * MS; at <= 1000 * MS; at += 10 * MS)
		walsender_send_look(&a, at, at / (8 * MS) * (8 * MS));
	CHECK(a.totals.send_client >= 990 * MS, "the receiver is blamed");
	CHECK_EQUAL(a.totals.send_client + a.totals.send_network, 1000 * MS, "a.totals.send_client + a.totals.send_network");

	/* without a network only the receiver is left */
	memset(&a, 0, sizeof(a));
	walsender_start(&a, 0, true);
	walsender_send_begin(&a, 0, WINDOW_UNKNOWN);
	walsender_send_look(&a, 5 * MS, WINDOW_UNKNOWN);
	CHECK_EQUAL(a.totals.send_client, 5 * MS, "a.totals.send_client");
	walsender_send_end(&a, 9 * MS, WINDOW_UNKNOWN);
	CHECK_EQUAL(a.totals.send_client, 9 * MS, "a.totals.send_client");
}

/* Settled, nothing is pending. */
static void
test_settle(void)
{
	WalsenderAccount a = {0};

	walsender_start(&a, 0, false);
	walsender_settle(&a, 5 * MS, true);
	CHECK_EQUAL(a.totals.idle, 5 * MS, "a.totals.idle");
	walsender_send_begin(&a, 7 * MS, 0);
	walsender_settle(&a, 17 * MS, true);
	CHECK_EQUAL(walsender_pending(&a, 17 * MS), 0, "walsender_pending(&a, 17 * MS)");
	CHECK_EQUAL(a.totals.send_network, 10 * MS, "a.totals.send_network");
	CHECK_EQUAL(a.totals.busy, 2 * MS, "a.totals.busy");
	/* and the receiver is blamed for what comes */
	walsender_send_end(&a, 27 * MS, 20 * MS);
	CHECK_EQUAL(a.totals.send_network, 10 * MS, "a.totals.send_network");
	CHECK_EQUAL(a.totals.send_client, 10 * MS, "a.totals.send_client");
}

static void
test_flushes(void)
{
	WalsenderAccount a = {0};
	WalsenderTotals totals = {0};

	walsender_flush_confirmed(&a, 5 * MS, 1 * MS);
	CHECK_EQUAL(a.totals.flushes, 0, "a.totals.flushes");
	walsender_start(&a, 0, false);
	walsender_flush_confirmed(&a, 5 * MS, 1 * MS);
	walsender_flush_confirmed(&a, 1 * MS, 3 * MS);
	walsender_flush_confirmed(&a, -1, 3 * MS);
	CHECK_EQUAL(a.totals.flushes, 2, "a.totals.flushes");
	CHECK_EQUAL(a.totals.flush, 6 * MS, "a.totals.flush");
	CHECK_EQUAL(a.totals.flush_network, 2 * MS, "a.totals.flush_network");
	walsender_totals_add(&totals, &a.totals);
	walsender_totals_add(&totals, &a.totals);
	walsender_totals_subtract(&totals, &a.totals);
	CHECK(memcmp(&totals, &a.totals, sizeof(totals)) == 0, "all totals are added and subtracted");
}

/* Whatever happens: parts add up to the time, none falls. */
static void
test_anything(void)
{
	uint64_t	z = 1;

	for (int run = 0; run < 2000; run++)
	{
		WalsenderAccount a = {0};
		int64_t		now = 0;
		int64_t		window = 0;
		int64_t		on_since = 0;
		int64_t		on = 0;

		for (int event = 0; event < 60; event++)
		{
			WalsenderTotals before = a.totals;
			bool		was_on = a.phase != WALSENDER_OFF;
			int64_t		step;

			z = z * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
			step = (int64_t) (z >> 40) % (4 * MS);
			now += step;
			window += (int64_t) (z >> 20) % (2 * step + 1);
			switch ((z >> 33) % 8)
			{
				case 0:
					walsender_start(&a, now, (z >> 50) % 4 == 0);
					if (!was_on)
						on_since = now;
					break;
				case 1:
					walsender_send_begin(&a, now, (z >> 51) % 4 ? window : WINDOW_UNKNOWN);
					break;
				case 2:
					walsender_send_look(&a, now, (z >> 51) % 4 ? window : WINDOW_UNKNOWN);
					break;
				case 3:
					walsender_send_end(&a, now, (z >> 51) % 4 ? window : WINDOW_UNKNOWN);
					break;
				case 4:
					walsender_sent(&a, now - step / 2, now);
					break;
				case 5:
					walsender_sample(&a, now, (z >> 52) % 2);
					break;
				case 6:
					walsender_settle(&a, now, (z >> 52) % 2);
					break;
				default:
					if ((z >> 53) % 4 != 0)
						break;
					walsender_stop(&a, now, window);
					if (was_on)
						on += now - on_since;
					break;
			}
			CHECK(a.totals.send >= before.send && a.totals.busy >= before.busy &&
				  a.totals.idle >= before.idle &&
				  a.totals.send_network >= before.send_network &&
				  a.totals.send_client >= before.send_client, "nothing falls");
			CHECK(a.totals.send_network + a.totals.send_client <= a.totals.send, "parts of send");
			CHECK(walsender_pending(&a, now) >= 0, "pending is no debt");
			CHECK_EQUAL(sum(&a, now), on + (a.phase != WALSENDER_OFF ? now - on_since : 0), "sum(&a, now)");
		}
	}
}

int
main(void)
{
	test_samples();
	test_short_send();
	test_blocked();
	test_settle();
	test_flushes();
	test_anything();
	return CHECKS_DONE("walsender_account");
}
