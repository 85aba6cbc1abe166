	),

	-- In order of precedence, among findings that cost the same or the same kind of time.
	verdicts AS (
		SELECT * FROM (VALUES
@verdicts@
			) v (verdict, precedence)),
	subjects AS (
		SELECT n, kind, pid, datid, datname, usesysid, usename, application_name, client_addr, busy + connect_time AS time
		  FROM accounts
		 UNION ALL
		SELECT n, 'statement', NULL, dbid, NULL, userid, NULL, NULL, NULL, time FROM statements
		 UNION ALL
		SELECT n, 'holder', pid, datid, datname, usesysid, NULL, NULL, NULL, NULL FROM holders
		 UNION ALL
		SELECT 0, 'server', NULL, NULL, NULL, NULL, NULL, NULL, NULL, sum(busy) FROM accounts WHERE kind = 'client'),

	-- Each kind of a subject's time belongs to the first verdict, and must be large
	-- enough.
	ranked AS (
		SELECT f.*, s.kind, s.pid, s.datid, s.datname, s.usesysid, s.usename, s.application_name, s.client_addr, s.time,
			   precedence, row_number() OVER (PARTITION BY n, of_time, CASE of_time WHEN 'none' THEN verdict END
											  ORDER BY precedence) AS place
		  FROM found f JOIN verdicts USING (verdict) JOIN subjects s USING (n) CROSS JOIN t CROSS JOIN me
		 WHERE of_time IN ('none', 'last') OR lost >= t.min_lost AND lost >= t.min_lost_sessions * window_time),

	-- What many sessions have in common is the group's, even if the group as a whole has no
	-- such finding.
	summed AS (
		SELECT * FROM ranked WHERE place = 1
		 UNION ALL
		SELECT min(n), verdict, (array_agg(severity ORDER BY array_position(ARRAY['outage', 'loss', 'note'], severity)))[1], of_time, sum(lost), sum(saving),
			   format('%s sessions have this. In the worst one, pid %s: %s', count(*), (array_agg(pid ORDER BY lost DESC, pid))[1],
					  (array_agg(evidence ORDER BY lost DESC, pid))[1]),
			   (array_agg(advice ORDER BY lost DESC, pid))[1], queryid, 'client', NULL, datid, min(datname), usesysid, min(usename),
			   application_name, client_addr, sum(time), precedence, 1
		  FROM ranked CROSS JOIN t
		 WHERE place = 1 AND verdict <> 'blocks others'
		 GROUP BY verdict, of_time, precedence, queryid, datid, usesysid, application_name, client_addr, t.sessions_named
		HAVING bool_and(kind = 'session') AND count(*) > t.sessions_named),

	-- A loss that is nearly all one session's is the session's, otherwise the group's.
	-- If nothing was found, say so.
	chosen AS (
		SELECT r.*,
			   max(lost) FILTER (WHERE kind = 'client') OVER same AS of_group,
			   max(lost) FILTER (WHERE kind = 'session') OVER same AS of_session,
			   sum(lost) FILTER (WHERE kind = 'session') OVER same_time AS of_sessions,
			   count(*) OVER () AS number
		  FROM summed r
		WINDOW same AS (PARTITION BY datid, usesysid, application_name, client_addr, verdict, queryid),
			   same_time AS (PARTITION BY datid, usesysid, application_name, client_addr, of_time)),
	texts_found AS MATERIALIZED (SELECT * FROM pgnetlat_query_texts(ARRAY(SELECT queryid FROM chosen WHERE queryid IS NOT NULL)))
SELECT f.severity,
	   f.kind,
	   CASE f.kind WHEN 'server' THEN 'server'
	   WHEN 'holder' THEN concat((SELECT h.backend_type FROM holders h WHERE h.n = f.n), ' in ' || f.datname, ', pid ' || f.pid)
	   WHEN 'statement' THEN format('statement %s of %s', f.queryid, u.rolname)
	   ELSE concat(coalesce(nullif(f.application_name, ''), f.usename), '@' || host(f.client_addr), ', pid ' || f.pid) END,
	   f.verdict,
	   concat(f.evidence, CASE WHEN f.kind <> 'statement' THEN '. Statement ' || f.queryid END,
			  ': ' || pgnetlat_query_start(x.query)),
	   f.advice || CASE WHEN f.queryid IS NOT NULL AND x.query IS NULL
				   THEN format('  To get the statement''s text: install pg_stat_statements, or catch it with SELECT query FROM pg_stat_activity WHERE query_id = %s.',
							   f.queryid) ELSE '' END,
	   coalesce(f.lost / nullif(window_time, 0), 0),
	   f.saving / nullif(window_time, 0),
	   CASE WHEN f.verdict <> 'blocks others' AND f.saving IS NOT NULL THEN least(f.saving / nullif(f.time, 0), 1) END,
	   f.pid, f.queryid, f.usesysid, u.rolname, f.datid, d.datname, f.application_name, f.client_addr
  FROM chosen f
 CROSS JOIN me
 CROSS JOIN t
  LEFT JOIN pg_database d ON d.oid = f.datid
  LEFT JOIN pg_roles u ON u.oid = f.usesysid
 CROSS JOIN LATERAL (
	SELECT coalesce((SELECT min(pgnetlat_legible(query)) FROM activity
					  WHERE query_id = f.queryid AND activity.datid = f.datid AND activity.usesysid = f.usesysid),
					(SELECT t.query FROM texts_found t WHERE (t.userid, t.dbid, t.queryid) = (f.usesysid, f.datid, f.queryid))) AS query
	 WHERE f.queryid IS NOT NULL
	 UNION ALL SELECT NULL WHERE f.queryid IS NULL) x
 WHERE CASE f.kind WHEN 'session' THEN of_group IS NULL OR f.lost >= t.one_session * of_group
	   WHEN 'client' THEN coalesce(of_session < t.one_session * f.lost, true)
						  AND (of_session IS NOT NULL OR coalesce(of_sessions < t.most_of_group * f.lost, true))
	   ELSE f.of_time <> 'last' OR number = 1 END
 ORDER BY array_position(ARRAY['outage', 'loss', 'note'], f.severity), f.lost DESC, precedence, f.pid;
END;

COMMENT ON FUNCTION pgnetlat_diagnose(interval) IS
	'what is wrong, outages first, then losses, then what is worth knowing, each the most expensive first, over the given time up to now, at most 15 minutes: one row per finding, with figures and the next step; lost_sessions and saving_sessions are times as numbers of sessions; if nothing is wrong, one row says so';
