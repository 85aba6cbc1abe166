
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
				 THEN 'The client thinks while it holds locks: let it think before it takes them, or after COMMIT.'
				 WHEN trips + a.think >= t.contention_rest * rest
				 THEN 'Locks are held during round trips, too: let statements travel together, and touch what is contended last, right before COMMIT.'
				 ELSE 'Transactions queue for the same rows: make them shorter, and touch what is contended last, right before COMMIT.' END,
			'  ' || hint),
	   NULL
  FROM (SELECT *, working - exec_lock_time AS rest FROM accounts LEFT JOIN deadlocked USING (datid)) a, t
 WHERE kind = 'client' AND contends AND (lock_left >= t.lock_share * working AND lock_left >= t.lock_xact * xacts
		-- or most of the transactions' time
		OR lock_left >= t.server_share * working AND lock_left >= t.short_lock_xact * xacts)
