/*-------------------------------------------------------------------------
 *
 * walsender_account.c
 *	  See walsender_account.h.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "walsender_account.h"

#include "ledger.h"

#define TOTALS_FIELDS	(sizeof(WalsenderTotals) / sizeof(int64_t))

static inline int64_t
larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static inline int64_t
smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* An event that claims to be older than the one before counts as simultaneous. */
static inline int64_t
not_before(const WalsenderAccount *account, int64_t now)
{
	return larger(now, account->since);
}

void
walsender_start(WalsenderAccount *account, int64_t now, bool local)
{
	if (account->phase != WALSENDER_OFF)
		return;
	account->phase = WALSENDER_AT_WORK;
	account->local = local;
	account->since = not_before(account, now);
	account->unsplit = 0;
}

/*
 * The sending in progress has been blocked up to "now": by whom?  What has been
 * booked of it stays, since a reader may have seen it.  The kernel's figure of
 * how long the window was closed moves in steps of some milliseconds, so it is
 * taken over the whole sending, not from look to look.
 */
static void
book_blocked(WalsenderAccount *account, int64_t now, int64_t window)
{
	int64_t		length = now - account->send_began;
	int64_t		client = account->send_client;

	if (account->local)
		client = length;
	else if (window != WINDOW_UNKNOWN && account->window_before != WINDOW_UNKNOWN)
		client = larger(client, window - account->window_before);
	client = smaller(client, length - account->send_network);
	account->totals.send_client += client - account->send_client;
	account->totals.send_network += length - client - account->send_network;
	account->send_client = client;
	account->send_network = length - client;
}

static void
book_send(WalsenderAccount *account, int64_t now)
{
	account->totals.send += now - account->since;
	account->since = now;
}

/*
 * It hands something to the socket, which may block.  Two in a row are one.
 */
void
walsender_send_begin(WalsenderAccount *account, int64_t now, int64_t window)
{
	if (account->phase != WALSENDER_AT_WORK)
		return;
	now = not_before(account, now);
	account->unsplit += now - account->since;
	account->since = account->send_began = now;
	account->window_before = window;
	account->send_network = account->send_client = 0;
	account->phase = WALSENDER_SENDING;
}

/* Has the sending in progress taken so long that it is blocked? */
bool
walsender_is_blocked(const WalsenderAccount *account, int64_t now)
{
	return account->phase == WALSENDER_SENDING &&
		now - account->send_began >= LEDGER_BLOCKED_NS;
}

/*
 * Somebody looks at the sending in progress and knows the window, or there is
 * none: what has passed of it need not be pending any more.
 */
void
walsender_send_look(WalsenderAccount *account, int64_t now, int64_t window)
{
	now = not_before(account, now);
	if (!walsender_is_blocked(account, now) ||
		(!account->local && window == WINDOW_UNKNOWN))
		return;
	book_blocked(account, now, window);
	book_send(account, now);
}

/*
 * The socket has taken all of it.
 */
void
walsender_send_end(WalsenderAccount *account, int64_t now, int64_t window)
{
	if (account->phase != WALSENDER_SENDING)
		return;
	now = not_before(account, now);
	if (walsender_is_blocked(account, now))
		book_blocked(account, now, window);
	book_send(account, now);
	account->phase = WALSENDER_AT_WORK;
}

/*
 * It has handed something to the socket, which took it without being waited for.
 */
void
walsender_sent(WalsenderAccount *account, int64_t began, int64_t now)
{
	if (account->phase != WALSENDER_AT_WORK)
		return;
	began = not_before(account, began);
	account->unsplit += began - account->since;
	account->since = began;
	book_send(account, larger(now, began));
}

/*
 * It is seen at work, or waiting for some: so it was since it was seen before,
 * as far as it did not send.
 */
void
walsender_sample(WalsenderAccount *account, int64_t now, bool idle)
{
	int64_t		time;

	if (account->phase != WALSENDER_AT_WORK)
		return;
	now = not_before(account, now);
	time = account->unsplit + now - account->since;
	if (idle)
		account->totals.idle += time;
	else
		account->totals.busy += time;
	account->unsplit = 0;
	account->since = now;
}

/*
 * Book all that has passed, so that nothing is pending: what nobody knows of
 * the sending in progress was the network, and what no sample has told of the
 * time before, busy.
 */
void
walsender_settle(WalsenderAccount *account, int64_t now, bool idle)
{
	now = not_before(account, now);
	if (account->phase == WALSENDER_SENDING)
	{
		if (walsender_is_blocked(account, now))
			book_blocked(account, now, WINDOW_UNKNOWN);
		book_send(account, now);
		account->totals.busy += account->unsplit;
		account->unsplit = 0;
	}
	else
		walsender_sample(account, now, idle);
}

/*
 * It ends, or is not counted any more.  What no sample has told was busy.
 */
void
walsender_stop(WalsenderAccount *account, int64_t now, int64_t window)
{
	walsender_send_end(account, now, window);
	walsender_sample(account, now, false);
	account->phase = WALSENDER_OFF;
}

/*
 * Its receiver has confirmed a flush, "lag" after the WAL was sent: one round
 * trip of that is the path's.
 */
void
walsender_flush_confirmed(WalsenderAccount *account, int64_t lag, int64_t rtt)
{
	if (account->phase == WALSENDER_OFF || lag < 0)
		return;
	account->totals.flushes++;
	account->totals.flush += lag;
	account->totals.flush_network += account->local ? 0 : smaller(lag, larger(rtt, 0));
}

/* What of the time up to "now" cannot be attributed yet. */
int64_t
walsender_pending(const WalsenderAccount *account, int64_t now)
{
	if (account->phase == WALSENDER_OFF)
		return 0;
	return account->unsplit + not_before(account, now) - account->since;
}

void
walsender_totals_add(WalsenderTotals *sum, const WalsenderTotals *term)
{
	int64_t    *to = (int64_t *) sum;
	const int64_t *from = (const int64_t *) term;

	for (unsigned i = 0; i < TOTALS_FIELDS; i++)
		to[i] += from[i];
}

void
walsender_totals_subtract(WalsenderTotals *difference, const WalsenderTotals *term)
{
	int64_t    *from = (int64_t *) difference;
	const int64_t *by = (const int64_t *) term;

	for (unsigned i = 0; i < TOTALS_FIELDS; i++)
		from[i] -= by[i];
}
