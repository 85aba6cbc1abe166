
-- Verdict: session overhead
-- Precedence: 135
-- Headline: sends many commands that do no work
-- Meaning: a notable part of the latest requests only look after the session (SET, SHOW,
--   DISCARD, DEALLOCATE), or test the connection (SELECT 1)
-- Lost: the same part of the time of its requests and round trips
--
-- Commands that a pool, a driver or a framework sends, and the application knows nothing of.
 UNION ALL
SELECT n, 'session overhead', 'loss', 'trips', lost, lost,
	   format('%s of the latest %s requests only look after the session or test the connection. They take %s of the time of all requests and round trips',
			  o.useless, o.seen, pgnetlat_time_text(whole, lost)),
	   'Set only once what never changes: with ALTER ROLE ... SET, or in the connection string.  Let the pool test only connections that were idle, not each time (testWhileIdle, keepaliveTime, pool_pre_ping = False).  Let a tracer put its context into a comment of each statement.',
	   o.queryid
  FROM accounts a
 CROSS JOIN t
 CROSS JOIN LATERAL (
	SELECT count(*) AS seen, count(*) FILTER (WHERE r.overhead > 0) AS useless,
		   sum(r.cost) FILTER (WHERE r.overhead > 0) / nullif(sum(r.cost), 0) AS part,
		   mode() WITHIN GROUP (ORDER BY r.queryid) FILTER (WHERE r.overhead > 0) AS queryid
	  FROM recent r
	 WHERE r.datid = a.datid AND r.usesysid = a.usesysid AND r.application_name = a.application_name
	   AND r.client_addr IS NOT DISTINCT FROM a.client_addr) o
 CROSS JOIN LATERAL (SELECT exec_time + send_time + trips_all AS whole) w
 CROSS JOIN LATERAL (SELECT part * whole AS lost) l
 WHERE kind = 'client' AND requests >= t.min_requests AND seen >= t.min_requests
   AND useless >= t.overhead_share * seen AND lost >= t.overhead_sessions * (SELECT window_time FROM me)
