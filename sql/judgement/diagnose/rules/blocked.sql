
-- Verdict: blocked
-- Precedence: 20
-- Headline: waits for locks that others hold
-- Meaning: it waits for locks whose holder is not known: in a deadlock, or hidden from the
--   caller
-- Lost: that part of its wait
--
-- Lock waits that no holder's figures have: those in a deadlock's circle, those whose
-- holder is hidden from the caller, and very short ones.
 UNION ALL
SELECT n, 'blocked', CASE WHEN w.stopped THEN 'outage' ELSE 'loss' END, 'execution', lock_left, NULL,
	   concat('It waited ', pgnetlat_time_text(working, lock_left), ' for locks',
			  CASE WHEN waits_for IS NULL THEN ' whose holder is not known'
				   WHEN waits_for = 0 THEN '. Now it is blocked by a prepared transaction'
				   WHEN waits_for > 0 THEN '. Now it is blocked by pid ' || waits_for END),
	   CASE WHEN waits_for = 0
			THEN 'Find the prepared transaction in pg_prepared_xacts, and commit it or roll it back.'
			ELSE concat(CASE WHEN waits_for IS NULL THEN hint || '  ' END,
						CASE WHEN waits_for > 0 OR EXISTS (SELECT FROM b WHERE b.datid = a.datid)
							 THEN 'See pgnetlat_blockers for who held locks.' ELSE 'Set log_lock_waits to log who holds the lock.' END,
						'  Set lock_timeout to limit how long it waits.') END,
	   NULL
  FROM accounts a LEFT JOIN deadlocked USING (datid) CROSS JOIN t
 CROSS JOIN LATERAL (
	SELECT count(*) > 0 AS stopped FROM stopped_sessions x
	 WHERE wait_event_type = 'Lock'
	   AND CASE a.kind WHEN 'session' THEN x.pid = a.pid
		   ELSE x.datid = a.datid AND x.usesysid = a.usesysid AND x.application_name = a.application_name
				AND x.client_addr IS NOT DISTINCT FROM a.client_addr END) w
 WHERE NOT contends AND lock_left >= t.lock_share * working
   AND (blocked_by IS NOT NULL OR lock_left >= t.lock_xact * xacts
		-- holders come and go: long waits among many short ones
		OR lock_left >= t.server_share * working AND lock_left >= t.away_request * xacts)
