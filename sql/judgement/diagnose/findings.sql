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
			   format('%s sessions have this problem. The worst one is pid %s: %s', count(*), (array_agg(pid ORDER BY lost DESC, pid))[1],
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
	texts_found AS MATERIALIZED (SELECT * FROM pgnetlat_query_texts(ARRAY(SELECT queryid FROM chosen WHERE queryid IS NOT NULL AND with_texts)))
SELECT f.severity,
	   f.kind,
	   CASE f.kind WHEN 'server' THEN 'server'
	   WHEN 'holder' THEN concat((SELECT h.backend_type FROM holders h WHERE h.n = f.n), ' in ' || f.datname, ', pid ' || f.pid)
	   WHEN 'statement' THEN format('statement %s of %s', f.queryid, u.rolname)
	   ELSE concat(coalesce(nullif(f.application_name, ''), f.usename), '@' || host(f.client_addr), ', pid ' || f.pid) END,
	   f.verdict,
	   concat(f.evidence, CASE WHEN f.kind <> 'statement' THEN '. Statement ' || f.queryid END,
			  ': ' || pgnetlat_query_start(x.query)),
	   f.advice || CASE WHEN f.queryid IS NOT NULL AND x.query IS NULL AND with_texts
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
	 WHERE f.queryid IS NOT NULL AND with_texts
	 UNION ALL SELECT NULL WHERE (f.queryid IS NOT NULL AND with_texts) IS NOT TRUE) x
 WHERE CASE f.kind WHEN 'session' THEN of_group IS NULL OR f.lost >= t.one_session * of_group
	   WHEN 'client' THEN coalesce(of_session < t.one_session * f.lost, true)
						  AND (of_session IS NOT NULL OR coalesce(of_sessions < t.most_of_group * f.lost, true))
	   ELSE f.of_time <> 'last' OR number = 1 END
 ORDER BY array_position(ARRAY['outage', 'loss', 'note'], f.severity), f.lost DESC, precedence, f.pid;
END;

COMMENT ON FUNCTION pgnetlat_findings(interval, boolean) IS
	'internal: the query of pgnetlat_diagnose(), which keeps its plan';

-- Planned once in each session.  It sets search_path, which nothing parallel may do.
CREATE FUNCTION pgnetlat_diagnose(
	IN duration interval DEFAULT '1 min',
	IN with_texts boolean DEFAULT true,        -- whether evidence has statements' texts
	OUT severity text,                         -- outage: sessions are stopped now, or a group gets nothing done; loss; note: worth knowing; NULL if there is no problem
	OUT subject_kind text,                     -- session, client, statement, server, or holder of locks without a client
	OUT subject text,                          -- the client, session or statement, in words
	OUT verdict text,                          -- what is wrong: one of the verdicts of doc/diagnose.md
	OUT evidence text,                         -- the figures behind it
	OUT advice text,                           -- what to do next
	OUT lost_sessions double precision,        -- lost time as a number of sessions: 1 is all the time of one session; 0 if not known
	OUT saving_sessions double precision,      -- the same for the time that the cure would save
	OUT saving_share double precision,         -- saving_sessions as a share of the time in which the subject was neither idle nor pending
	OUT pid integer,                           -- process ID, if the subject is one session
	OUT queryid bigint,                        -- query identifier, if the subject is a statement, or one causes it
	OUT usesysid oid,                          -- OID of the role; NULL if the subject has none
	OUT usename name,                          -- name of the role
	OUT datid oid,                             -- OID of the database; NULL if the subject has none
	OUT datname name,                          -- name of the database
	OUT application_name text,                 -- application_name of the session or the group
	OUT client_addr inet)                      -- address of the client; NULL on a Unix-domain socket
RETURNS SETOF record
LANGUAGE plpgsql STRICT VOLATILE COST 100000 ROWS 20
SET jit = off                                  -- its many expressions take seconds to compile
SET plan_cache_mode = force_generic_plan       -- it depends on no argument
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	-- where ALTER EXTENSION has put the extension
	PERFORM set_config('search_path', e.extnamespace::regnamespace::text || ', pg_temp', true)
	   FROM pg_extension e WHERE e.extname = 'pgnetlat';
	RETURN QUERY SELECT f.* FROM pgnetlat_findings(pgnetlat_diagnose.duration, pgnetlat_diagnose.with_texts) f;
END
$$;

COMMENT ON FUNCTION pgnetlat_diagnose(interval, boolean) IS
	'what is wrong, over the given time up to now, at most 15 minutes: one row per finding, with figures and the next step; outages first, then losses, then notes, each with the most expensive first; if nothing is wrong, one row says so; lost_sessions and saving_sessions are times as numbers of sessions; if with_texts is false, findings do not quote statements, which saves reading all texts of pg_stat_statements';
