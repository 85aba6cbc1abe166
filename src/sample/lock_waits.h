/*-------------------------------------------------------------------------
 *
 * lock_waits.h
 *	  Finds out which sessions wait for a lock, for how long, and for whom.
 *
 * Each tick of the sampler notes which sessions are waiting in the lock
 * manager, and adds the time since the previous tick to the holder, which is
 * the root of the session's chain of lock waits, by what the holder is doing
 * at that tick.  So what is booked is right to a tick.  A wait that began
 * before the previous tick counts from the moment that core has recorded
 * (PGPROC.waitStart).
 *
 * Roots are found in rounds, at most four a second, and fewer if they would in
 * the long run take more than a thousandth of a processor's time.  Between two rounds, a
 * holder remains one as long as its transaction lasts.  Time without a known
 * holder is added to the one that the next round finds.
 *
 * Waits that end before the next round may be many and short, as on a
 * contended row.  Their time is distributed over the holders that the next
 * rounds find for other waits without one, in proportion to these waits: a
 * round comes at random, so it finds each holder in proportion to the waits
 * for it.  If no other wait follows within ten seconds, the time is not
 * attributed.
 *
 * The sums are flushed to the shared table (blockers.h) and to the holders'
 * slots four times a second, and when no session waits any more.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_LOCK_WAITS_H
#define PGNETLAT_LOCK_WAITS_H

extern void lock_waits_init(void);
extern void lock_waits_note(int index);
extern void lock_waits_tick(int64 now, int64 before, int64 clock_offset);

#endif							/* PGNETLAT_LOCK_WAITS_H */
