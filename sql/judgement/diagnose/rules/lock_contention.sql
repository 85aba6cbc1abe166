
-- Verdict: lock contention
-- Precedence: 60
-- Headline: has sessions that wait for each other’s locks
-- Meaning: sessions of one group wait for one another, each briefly
-- Lost: their waits
--
-- Sessions of one group that wait for one another: many short waits, for the
-- same rows.
 UNION ALL
SELECT n, 'lock contention', 'loss', 'execution', lock_left, NULL,
	   format('Its sessions waited %s for one another''s locks, %s per transaction',
			  pgnetlat_time_text(working, lock_left),
			  pgnetlat_time_text(working / xacts, lock_left / xacts)),
	   concat(
			CASE WHEN a.think >= greatest(trips, t.contention_rest * rest)
				 THEN 'Move the client''s work to before it takes locks, or after COMMIT: the client thinks while it holds them.'
				 WHEN trips + a.think >= t.contention_rest * rest
				 THEN 'Send several statements in each round trip, since locks are held meanwhile, and touch the contended rows last, right before COMMIT.'
				 ELSE 'Make transactions shorter, and touch the contended rows last, right before COMMIT: transactions queue for them.' END,
			'  ' || hint),
	   NULL
  FROM (SELECT *, working - exec_lock_time AS rest FROM accounts LEFT JOIN deadlocked USING (datid)) a, t
 WHERE kind = 'client' AND contends AND (lock_left >= t.lock_share * working AND lock_left >= t.lock_xact * xacts
		-- or most of the transactions' time
		OR lock_left >= t.server_share * working AND lock_left >= t.short_lock_xact * xacts)
