/*-------------------------------------------------------------------------
 *
 * lock_waits.h
 *	  Which sessions wait for a lock, for how long, and for whom.
 *
 * Only the worker knows.  At each tick it notes which sessions it sees waiting
 * in the lock manager, and adds the time since the tick before to the holder:
 * the root of the chain of lock waits that the session is in, by what the
 * holder is doing at that tick.  So what is booked is right to a tick, as
 * everything that is sampled; a wait that began before the tick before counts
 * from the moment that core has recorded (PGPROC.waitStart).
 *
 * Roots are found in rounds, at most four a second, and so seldom that they
 * take no more than a thousandth of a processor's time.  Between two rounds
 * a holder remains one as long as its transaction lasts.  What is waited
 * while nobody is known to hold the lock is added to the holder whom the next
 * round finds.
 *
 * Waits that end before that, as on a contended row, are many and short.  Their
 * time is distributed over the holders whom the next rounds find for other
 * waits that had none, in proportion to these waits: a round comes at random,
 * so it finds each holder as often as others wait for it.  Where no other wait
 * follows within ten seconds, the time is not attributed to anybody.
 *
 * What was added up goes to the shared table (blockers.h) and to the slots of
 * the sessions involved four times a second, and when nobody waits any more.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_LOCK_WAITS_H
#define PGNETLAT_LOCK_WAITS_H

extern void lock_waits_init(void);
extern void lock_waits_note(int slot);
extern void lock_waits_tick(int64 now, int64 before, int64 clock_offset);

#endif							/* PGNETLAT_LOCK_WAITS_H */
