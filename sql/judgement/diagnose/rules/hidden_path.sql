
-- Verdict: hidden path
-- Precedence: 70
-- Headline: may have a network path behind a proxy that the server cannot see
-- Meaning: the round trip is that of a process on the server's host, and the waits are all
--   alike: a proxy there may hide the path
-- Lost: the waits in transactions, or all of them if connecting takes long as well
--
-- A round trip of a few microseconds, and waits that are all alike: a proxy or pooler on
-- the server's host, with a path behind it.  Waits of tens of milliseconds need be alike
-- only to a factor of five, as in a histogram; shorter ones must be so in the latest
-- exchanges.  A client that asks on a schedule looks the same outside transactions, so
-- there nothing counts as lost, unless connecting takes long as well: SCRAM takes two
-- round trips.  Inside, such waits are put down to the path, not to a client that thinks
-- or is idle in transaction, except in sessions that waited much longer than the others.
 UNION ALL
SELECT a.n, 'hidden path', CASE WHEN in_xact OR slow THEN 'loss' ELSE 'note' END, CASE WHEN in_xact OR slow THEN 'client' ELSE 'none' END,
	   CASE WHEN in_xact OR slow THEN least(a.client_time, wait * a.requests) ELSE 0 END, NULL,
	   format('The round trip is %s, but %s %% of the waits%s took between %s and %s%s. A proxy may hide the path%s',
			  pgnetlat_time_text(g.path), round(100 * least(tight, 1)), CASE WHEN in_xact THEN ' in transactions' END,
			  pgnetlat_time_text(low), pgnetlat_time_text(high),
			  CASE WHEN slow THEN ', and connecting took ' || pgnetlat_time_text(connecting) END,
			  CASE WHEN NOT (in_xact OR slow) THEN ', or the client asks on a schedule' END),
	   'Look for a proxy, a load balancer or a pooler on the server''s host: the round trip ends there.  Measure the round trip from the client (in psql, \timing and SELECT 1).',
	   NULL
  FROM (SELECT g.*, in_xact,
			   CASE WHEN in_xact THEN in_xact_wait_time / nullif(req * inside, 0) ELSE (network_time + client_time) / req END AS wait,
			   CASE WHEN in_xact THEN inside ELSE 1 END AS part
		  FROM accounts g, t
		 CROSS JOIN LATERAL (SELECT requests >= t.proxy_requests * transactions AND in_xact_wait_time >= t.proxy_near * req * inside AS in_xact) x
		 WHERE kind = 'client' AND path < t.min_rtt AND requests >= t.min_requests) g
 CROSS JOIN t
 CROSS JOIN LATERAL (
	(SELECT (bucket[i + 2] - bucket[i]) / nullif(count * part, 0) AS tight, le[i]::float8 * 1000 AS low, le[i + 2]::float8 * 1000 AS high
	   FROM h CROSS JOIN LATERAL generate_series(1, array_length(le, 1) - 3) i
	  WHERE wait BETWEEN t.proxy_wait AND t.proxy_wait_max
		AND metric = 'wait' AND h.datid = g.datid AND h.usesysid = g.usesysid AND h.application_name = g.application_name
		AND h.client_addr IS NOT DISTINCT FROM g.client_addr AND le[i + 2]::float8 * 1000 > wait
	  ORDER BY tight DESC LIMIT 1)
	 UNION ALL
	SELECT 0.8, alike.low, alike.high
	  FROM alike
	 WHERE wait < t.proxy_wait AND alike.n = g.n AND alike.in_xact = g.in_xact
	   AND (g.in_xact OR sessions = 1 AND ended_sessions = 0 AND busy >= t.loop_busy * (SELECT window_time FROM me))) w
  LEFT JOIN LATERAL (
	SELECT 1000 * sum / nullif(count, 0) AS connecting FROM h
	 WHERE metric = 'connect' AND h.datid = g.datid AND h.usesysid = g.usesysid AND h.application_name = g.application_name
	   AND h.client_addr IS NOT DISTINCT FROM g.client_addr) s ON NOT in_xact AND wait >= t.proxy_wait
 CROSS JOIN LATERAL (SELECT coalesce(connecting >= t.proxy_connect * wait, false) AS slow) y
  JOIN accounts a
	ON a.n = g.n
	   OR in_xact AND a.kind = 'session' AND a.datid = g.datid AND a.usesysid = g.usesysid
		  AND a.application_name = g.application_name AND a.client_addr IS NOT DISTINCT FROM g.client_addr
		  AND a.think <= t.proxy_longer * wait * a.req
 WHERE wait < t.proxy_wait OR tight >= t.proxy_tight AND low > t.proxy_low
