/*-------------------------------------------------------------------------
 *
 * walsender_account.h
 *	  The account of one walsender's wall-clock time.
 *
 * A walsender has no exchanges: once it streams, it sends when there is
 * something to send, and reads replies in between.  So its account has fewer
 * parts than a session's ledger, which add up just the same:
 *
 *	send	what it has to send goes to the socket, or is left because the socket
 *			takes no more.  If that takes longer than a system call
 *			(LEDGER_BLOCKED_NS), all of it was blocked: by its receiver while
 *			that had its receive window closed, else by the network.
 *	busy	it reads WAL or files, decodes, reads replies
 *	idle	it waits for WAL, or for a command
 *
 * Sending is told by events.  Nothing calls back when a walsender waits for
 * WAL: busy and idle are told by samples, each of which stands for all the time
 * since the one before that was not sending.  What no sample has told yet is
 * pending.
 *
 * Plain C that knows no server, reads no clock and takes no lock, so that it can
 * be tested alone.  All times are nanoseconds of one monotonic clock; none of the
 * parts ever falls, and they sum to the time since walsender_start(), what is
 * pending included.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_WALSENDER_ACCOUNT_H
#define PGNETLAT_WALSENDER_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

typedef enum WalsenderPhase
{
	WALSENDER_OFF = 0,			/* nothing is being counted */
	WALSENDER_AT_WORK,			/* busy or idle: a sample will tell */
	WALSENDER_SENDING
} WalsenderPhase;

/*
 * Sums only, added and subtracted as one array.  Times in nanoseconds;
 * send_network and send_client are parts of send, flush_network is one of flush.
 */
typedef struct WalsenderTotals
{
	int64_t		send;
	int64_t		send_network;	/* blocked by the network */
	int64_t		send_client;	/* blocked by the receiver */
	int64_t		busy;
	int64_t		idle;
	int64_t		bytes_sent;		/* before encryption */
	int64_t		replies;		/* from the receiver; read at once: one */
	int64_t		flushes;		/* of these, those that confirmed a flush of
								 * which core knows the lag */
	int64_t		flush;			/* sum of these lags */
	int64_t		flush_network;	/* of that, one round trip each */
} WalsenderTotals;

/* The time for which the receiver's window was closed is not known. */
#define WINDOW_UNKNOWN		INT64_C(-1)

typedef struct WalsenderAccount
{
	WalsenderTotals totals;
	WalsenderPhase phase;
	bool		local;			/* no network: who blocks is the receiver */
	int64_t		since;			/* all before is booked, or in unsplit */
	int64_t		unsplit;		/* at work, and no sample has told at what */

	/* of the sending in progress */
	int64_t		send_began;
	int64_t		window_before;	/* for how long the receiver's window had been
								 * closed then, since connect */
	int64_t		send_network;	/* booked so far */
	int64_t		send_client;
} WalsenderAccount;

extern void walsender_start(WalsenderAccount *account, int64_t now, bool local);
extern void walsender_stop(WalsenderAccount *account, int64_t now, int64_t window);
extern void walsender_send_begin(WalsenderAccount *account, int64_t now, int64_t window);
extern void walsender_send_look(WalsenderAccount *account, int64_t now, int64_t window);
extern void walsender_send_end(WalsenderAccount *account, int64_t now, int64_t window);
extern void walsender_sent(WalsenderAccount *account, int64_t began, int64_t now);
extern void walsender_sample(WalsenderAccount *account, int64_t now, bool idle);
extern void walsender_settle(WalsenderAccount *account, int64_t now, bool idle);
extern void walsender_flush_confirmed(WalsenderAccount *account, int64_t lag, int64_t rtt);
extern bool walsender_is_blocked(const WalsenderAccount *account, int64_t now);
extern int64_t walsender_pending(const WalsenderAccount *account, int64_t now);
extern void walsender_totals_add(WalsenderTotals *sum, const WalsenderTotals *term);
extern void walsender_totals_subtract(WalsenderTotals *difference,
									  const WalsenderTotals *term);

#endif							/* PGNETLAT_WALSENDER_ACCOUNT_H */
