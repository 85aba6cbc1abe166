
-- Verdict: pool exhausted
-- Precedence: 215
-- Headline: keeps all of its connections busy
-- Meaning: all connections of a role to a database are busy for half of the time or more, so
--   that requests may queue where the server cannot see them
-- Lost: not known
--
-- What the server sees is that no connection is free.
 UNION ALL
SELECT 0, 'pool exhausted', CASE WHEN bool_or(why IS NOT NULL) THEN 'loss' ELSE 'note' END, 'none', 0, NULL,
	   concat(string_agg(format('All %s connections of %s to %s are busy for most of the time (%s on average)%s', sessions, usename, datname,
								pgnetlat_figure_text(busy_avg), ', and ' || why), '. ' ORDER BY place) FILTER (WHERE place <= t.pools_named),
			  '. ' || nullif(pgnetlat_count_text(count(*) FILTER (WHERE place > t.pools_named), 'more pool is', 'more pools are'), '0 more pools are') || ' as busy'),
	   'See whether requests wait for a connection in the application: its pool has a metric for that.  If so, shorten what keeps connections busy (see the other findings), or allow more connections: pgnetlat_what_if(sessions => ...) predicts what that brings.',
	   NULL
  FROM (SELECT x.*, row_number() OVER (ORDER BY (why IS NULL), busy_avg DESC, usename, datname) AS place
		  FROM (SELECT p.sessions, p.busy_avg, pgnetlat_one_line(p.usename::text) AS usename, pgnetlat_one_line(p.datname::text) AS datname,
					   CASE WHEN rolconnlimit BETWEEN 0 AND p.sessions THEN format('the role may have no more than %s', rolconnlimit)
					   WHEN datconnlimit BETWEEN 0 AND p.sessions THEN format('the database may have no more than %s', datconnlimit)
					   WHEN EXISTS (SELECT FROM c WHERE c.datid = p.datid AND c.usesysid = p.usesysid AND c.pooler_requests > 0)
					   THEN 'a pooler shares them' END AS why
				  FROM p
				 CROSS JOIN t
				 CROSS JOIN me
				  LEFT JOIN pg_roles r ON r.oid = p.usesysid
				  LEFT JOIN pg_database d ON d.oid = p.datid
				 WHERE p.datid IS NOT NULL AND p.usesysid IS NOT NULL AND p.sessions >= t.pool_least AND p.busy_p50 >= p.sessions
				   AND p.window_time >= t.pool_time AND (me.sees_all OR pg_has_role(p.usesysid, 'USAGE'))) x) y
 CROSS JOIN t
HAVING count(*) > 0
