
-- A round trip of a few microseconds, and waits of tens of milliseconds that are all
-- alike: a proxy or pooler on the server's host, with a path behind it.  A client that
-- asks on a schedule looks the same outside transactions, so there nothing counts as
-- lost.
 UNION ALL
SELECT n, 'hidden path', CASE WHEN in_xact THEN 'client' ELSE 'none' END,
	   CASE WHEN in_xact THEN client_time ELSE 0 END, NULL,
	   format('the round trip is %s, but %s %% of the waits took between %s and %s: a proxy may hide the path',
			  pgnetlat_time_text(path), round(100 * tight), pgnetlat_time_text(low * 1000),
			  pgnetlat_time_text(high * 1000)),
	   'Look for a proxy, a load balancer or a pooler on the server''s host: the round trip ends there.  Measure it from the client (\timing and SELECT 1).',
	   NULL
  FROM (SELECT a.*, in_xact_wait_time >= 0.5 * (network_time + client_time) AND requests >= 3 * transactions AS in_xact
		  FROM accounts a, pgnetlat_thresholds
		 WHERE kind = 'client' AND path < min_rtt AND requests >= min_requests
		   AND (network_time + client_time) / req BETWEEN proxy_wait AND proxy_wait_max) a
 CROSS JOIN pgnetlat_thresholds
 CROSS JOIN LATERAL (
	SELECT (bucket[i + 2] - bucket[i])::float8 / nullif(count, 0) AS tight, le[i]::float8 AS low, le[i + 2]::float8 AS high
	  FROM h CROSS JOIN LATERAL generate_series(1, array_length(le, 1) - 3) i
	 WHERE metric = 'wait' AND h.datid = a.datid AND h.usesysid = a.usesysid AND h.application_name = a.application_name
	   AND h.client_addr IS NOT DISTINCT FROM a.client_addr AND le[i + 2]::float8 * 1000 > (network_time + client_time) / req
	 ORDER BY tight DESC LIMIT 1) w
 WHERE tight >= proxy_tight AND low > 0.005
