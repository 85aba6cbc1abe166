
-- Connections are nearly used up, and most of them are not needed.
 UNION ALL
SELECT 0, 'too many connections', 'loss', 'none', 0, NULL,
	   format('%s of %s connections are held; a pool of %s would have served them for 99.9 %% of the time without a wait',
			  sessions, max_connections, greatest(pool_size, 1)),
	   'Put a pooler in front of the server, in transaction mode (pgnetlat_pools has the size of each pool), or make the applications'' pools smaller.',
	   NULL
  FROM p, pgnetlat_thresholds t, current_setting('max_connections') x, LATERAL (SELECT x::integer AS max_connections) y
 WHERE datid IS NULL AND usesysid IS NULL AND datname IS NULL AND window_time >= pool_time
   AND sessions >= held_connections * max_connections AND greatest(pool_size, 1) < pool_share * sessions
