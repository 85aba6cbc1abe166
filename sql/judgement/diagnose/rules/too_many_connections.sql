
-- Verdict: too many connections
-- Precedence: 220
-- Headline: has many more connections than are busy at once
-- Meaning: `max_connections` is used up and others are refused, which is an outage; or most of
--   it is in use, and few are needed
--
-- Connections are used up, and others are refused; or they are nearly used up, and most
-- of them are not needed.
 UNION ALL
SELECT 0, 'too many connections', CASE WHEN refused > 0 THEN 'outage' ELSE 'loss' END, 'none', 0, NULL,
	   concat(format('%s of %s connections are held', greatest(held.sessions, p.sessions), max_connections), ': ' || holders, '.',
			  '  ' || pgnetlat_count_text(nullif(refused, 0)::float8, 'connection was', 'connections were')
			  || ' refused in the last minute: ' || refused_names || '.',
			  CASE WHEN window_time >= t.pool_time
			  THEN format('  A pool of %s%s would have served them for 99.9 %% of the time without a wait.',
						  CASE WHEN busy_max >= p.sessions THEN 'at least ' END, greatest(pool_size, 1)) END),
	   concat('To free some now: ' || CASE WHEN used_up
			  THEN format('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %L AND state = ''idle'' ORDER BY state_change LIMIT 10;', idle_most) END || '  ',
			  'Put a pooler in front of the server, in transaction mode (pgnetlat_pools has the size of each pool), or make the applications'' pools smaller.'),
	   NULL
  FROM held
 CROSS JOIN t
  LEFT JOIN p ON p.datid IS NULL AND p.usesysid IS NULL AND p.datname IS NULL
 CROSS JOIN LATERAL (
	SELECT coalesce(sum(failed_last_minute) FILTER (WHERE used_up), 0)::bigint AS refused,
		   string_agg(DISTINCT concat(pgnetlat_one_line(usename), '@' || host(client_addr)), ', ') AS refused_names
	  FROM failed WHERE failed_last_minute > 0 AND last_sqlstate = '53300') r
 WHERE used_up
	OR window_time >= t.pool_time AND p.sessions >= t.held_connections * max_connections
	   AND greatest(pool_size, 1) < t.pool_share * p.sessions
