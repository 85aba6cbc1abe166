
CREATE FUNCTION pgnetlat_change_text(before float8, after float8)
RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN greatest(before, after) >= 10000
			THEN pgnetlat_figure_text(before / 1000) || ' -> ' || pgnetlat_figure_text(after / 1000) || ' s'
			ELSE pgnetlat_figure_text(before) || ' -> ' || pgnetlat_figure_text(after) || ' ms' END;

COMMENT ON FUNCTION pgnetlat_change_text(float8, float8) IS 'internal: milliseconds before and after, for sentences';

-- A group's unit is a transaction, with the time in which its client thinks inside, and a
-- statement's is a call.  A group that is blocked completes none, so what it has begun
-- counts as one.
CREATE FUNCTION pgnetlat_compare(
	IN before_from timestamptz DEFAULT NULL,
	IN before_to timestamptz DEFAULT NULL,
	IN after_from timestamptz DEFAULT NULL,
	IN after_to timestamptz DEFAULT NULL,
	OUT cost_sessions double precision,        -- what the difference costs as a number of sessions; negative if it saves; 0 if nothing has changed
	OUT change text,                           -- slower, more often, new, vanished, faster, or less often; NULL if nothing has changed, or cannot be compared
	OUT subject text,                          -- the client group or the statement, in words
	OUT what text,                             -- the difference in words, and the parts that make most of it
	OUT before_time double precision,          -- milliseconds per transaction of a client group, or per call of a statement; NULL if there was none
	OUT after_time double precision,           -- the same afterwards
	OUT before_rate double precision,          -- transactions or calls per second
	OUT after_rate double precision,           -- the same afterwards
	OUT datname name,                          -- name of the database
	OUT usename name,                          -- name of the role
	OUT application_name text,                 -- application_name of the client group; NULL for a statement
	OUT client_addr inet,                      -- address of the client group; NULL for a statement, and on a Unix-domain socket
	OUT queryid bigint)                        -- query identifier of the statement; NULL for a client group
RETURNS SETOF record
LANGUAGE sql VOLATILE PARALLEL RESTRICTED COST 100000 ROWS 20
SET jit = off
BEGIN ATOMIC
	WITH given AS MATERIALIZED (
		SELECT CASE WHEN isfinite(before_from) THEN before_from END AS b1, CASE WHEN isfinite(before_to) THEN before_to END AS b2,
			   CASE WHEN isfinite(after_from) THEN after_from END AS a1, CASE WHEN isfinite(after_to) THEN after_to ELSE clock_timestamp() END AS a2),
	w AS MATERIALIZED (
		SELECT coalesce(x.b1, x.b2 - x.length, x.a1 - interval '1 day') AS before_from,
			   coalesce(x.b2, coalesce(x.b1, x.a1 - interval '1 day') + x.length) AS before_to, x.a1 AS after_from, x.a2 AS after_to
		  FROM (SELECT g.b1, g.b2, coalesce(g.a1, g.a2 - interval '15 min') AS a1, g.a2, g.a2 - coalesce(g.a1, g.a2 - interval '15 min') AS length
				  FROM given g) x),
	period AS MATERIALIZED (
		SELECT p.later, p.since, p.until, (SELECT sum(j.window_time) FROM pgnetlat_journal j WHERE j.at > p.since AND j.at <= p.until) AS length
		  FROM w, LATERAL (VALUES (false, w.before_from, w.before_to), (true, w.after_from, w.after_to)) p (later, since, until)),
	account AS MATERIALIZED (
		SELECT p.later, p.length, 'transaction' AS unit, c.datname, c.usename, c.application_name, c.client_addr, NULL::bigint AS queryid,
			   greatest(c.transactions, 1)::float8 AS number, c.round_trips::float8 AS trips,
			   ARRAY[c.exec_cpu_time, c.exec_io_time, c.exec_lock_time, c.exec_replication_time, c.exec_remote_time, c.exec_other_time,
					 greatest(c.exec_time - c.exec_cpu_time - c.exec_io_time - c.exec_lock_time - c.exec_replication_time - c.exec_remote_time
							  - c.exec_other_time, 0),
					 c.send_time, c.recv_time, c.network_time,
					 greatest(least(c.in_xact_wait_time - c.network_time * greatest(1 - c.transactions::float8 / greatest(c.requests, 1), 0),
									c.client_time), 0)] AS parts
		  FROM period p, pgnetlat_past_clients(p.since, p.until) c
		 UNION ALL
		SELECT p.later, p.length, 'call', s.datname, s.usename, NULL, NULL, s.queryid, greatest(s.calls, 1), s.calls,
			   ARRAY[0, 0, 0, 0, 0, 0, s.exec_time, s.send_time, s.recv_time, s.network_time,
					 greatest(least(s.in_xact_wait_time - s.network_time, s.client_time), 0)]
		  FROM period p, pgnetlat_past_statements(p.since, p.until) s),
	rate AS MATERIALIZED (
		SELECT a.*, x.time / a.number AS time, 1000 * a.number / nullif(a.length, 0) AS rate, x.time / nullif(a.length, 0) AS sessions
		  FROM account a, LATERAL (SELECT sum(u.part) AS time FROM unnest(a.parts) u (part)) x
		 WHERE x.time > 0 AND a.length > 0),
	pair AS MATERIALIZED (
		SELECT coalesce(a.unit, b.unit) AS unit, coalesce(a.datname, b.datname) AS datname, coalesce(a.usename, b.usename) AS usename,
			   coalesce(a.application_name, b.application_name) AS application_name, coalesce(a.client_addr, b.client_addr) AS client_addr,
			   coalesce(a.queryid, b.queryid) AS queryid, b.time AS before_time, a.time AS after_time, b.rate AS before_rate, a.rate AS after_rate,
			   coalesce(b.sessions, 0) AS before_sessions, coalesce(a.sessions, 0) AS after_sessions,
			   a.rate * (a.time - b.time) / 1000 AS longer, (a.rate - b.rate) * b.time / 1000 AS oftener,
			   b.parts AS before_parts, a.parts AS after_parts, b.number AS before_number, a.number AS after_number,
			   b.trips AS before_trips, a.trips AS after_trips
		  FROM (SELECT * FROM rate WHERE NOT later) b
		  FULL JOIN (SELECT * FROM rate WHERE later) a
			ON format('%L %L %L %L %L %L', a.unit, a.datname, a.usename, a.application_name, a.client_addr, a.queryid)
			   = format('%L %L %L %L %L %L', b.unit, b.datname, b.usename, b.application_name, b.client_addr, b.queryid)),
	changed AS MATERIALIZED (
		SELECT p.*, x.change,
			   CASE x.change WHEN 'slower' THEN p.longer + greatest(p.oftener, 0) WHEN 'faster' THEN p.longer
			   ELSE p.after_sessions - p.before_sessions END AS cost
		  FROM pair p
		 CROSS JOIN (SELECT max(value) FILTER (WHERE name = 'changed_share') AS changed_share,
						   max(value) FILTER (WHERE name = 'changed_sessions') AS changed_sessions FROM pgnetlat_thresholds) t
		 CROSS JOIN LATERAL (
			SELECT CASE WHEN p.before_time IS NULL THEN CASE WHEN p.after_sessions >= t.changed_sessions THEN 'new' END
				   WHEN p.after_time IS NULL THEN CASE WHEN p.before_sessions >= t.changed_sessions THEN 'vanished' END
				   WHEN p.after_time >= p.before_time * (1 + t.changed_share) AND p.longer >= t.changed_sessions THEN 'slower'
				   WHEN p.before_time >= p.after_time * (1 + t.changed_share) AND - p.longer >= t.changed_sessions THEN 'faster'
				   WHEN p.after_rate >= p.before_rate * (1 + t.changed_share) AND p.oftener >= t.changed_sessions THEN 'more often'
				   WHEN p.before_rate >= p.after_rate * (1 + t.changed_share) AND - p.oftener >= t.changed_sessions THEN 'less often' END AS change) x
		 WHERE x.change IS NOT NULL
		   -- nothing is new or has vanished if there is nothing to compare with
		   AND NOT EXISTS (SELECT FROM period o WHERE o.length IS NULL)),
	texts AS MATERIALIZED (
		SELECT d.datname, u.rolname, t.queryid, min(pgnetlat_query_start(t.query)) AS query
		  FROM pgnetlat_query_texts(ARRAY(SELECT c.queryid FROM changed c WHERE c.queryid IS NOT NULL)) t
		  JOIN pg_database d ON d.oid = t.dbid
		  JOIN pg_roles u ON u.oid = t.userid
		 GROUP BY 1, 2, 3),
	worded AS (
		SELECT c.*, CASE c.unit WHEN 'call' THEN format('statement %s of %s', c.queryid, c.usename)
					ELSE concat(coalesce(nullif(c.application_name, ''), c.usename), '@' || host(c.client_addr)) END AS subject,
			   CASE WHEN c.change IN ('slower', 'faster')
					THEN concat(pgnetlat_change_text(c.before_time, c.after_time), ' per ', c.unit, ': ' || d.parts) END AS longer_text,
			   CASE WHEN c.change IN ('more often', 'less often') OR c.change = 'slower' AND c.oftener >= t.changed_sessions
					THEN concat(pgnetlat_figure_text(c.before_rate), ' -> ', pgnetlat_figure_text(c.after_rate), ' ', c.unit, 's per second') END AS oftener_text,
			   CASE WHEN c.change IN ('new', 'vanished')
					THEN concat(c.change, ': ', pgnetlat_figure_text(coalesce(c.after_rate, c.before_rate)), ' ', c.unit, 's per second of ',
								pgnetlat_time_text(coalesce(c.after_time, c.before_time))) END AS presence_text
		  FROM changed c
		 CROSS JOIN (SELECT max(value) FILTER (WHERE name = 'changed_share') AS changed_share,
						   max(value) FILTER (WHERE name = 'changed_sessions') AS changed_sessions FROM pgnetlat_thresholds) t
		 CROSS JOIN LATERAL (
			-- up to three parts, the one with the largest difference first
			SELECT string_agg(CASE WHEN q.name = 'round trips'
								   THEN CASE WHEN abs(q.trip_after - q.trip_before) * q.trips_after >= 0.5 * abs(q.difference)
										THEN concat('round trip ', pgnetlat_change_text(q.trip_before, q.trip_after),
													' (' || pgnetlat_figure_text(nullif(q.trips_after, 1)) || ' of them)', ': ')
										ELSE format('%s -> %s round trips of %s: ', pgnetlat_figure_text(q.trips_before), pgnetlat_figure_text(q.trips_after),
													pgnetlat_time_text(q.trip_after)) END
								   ELSE q.name || ' ' END
							  || CASE WHEN q.difference > 0 THEN '+' ELSE '-' END || pgnetlat_time_text(abs(q.difference)),
							  '; ' ORDER BY abs(q.difference) DESC, q.name) AS parts
			  FROM (SELECT n.name, n.after / c.after_number - n.before / c.before_number AS difference,
						   n.before / nullif(c.before_trips, 0) AS trip_before, n.after / nullif(c.after_trips, 0) AS trip_after,
						   c.before_trips / c.before_number AS trips_before, c.after_trips / c.after_number AS trips_after,
						   row_number() OVER (ORDER BY abs(n.after / c.after_number - n.before / c.before_number) DESC) AS place
					  FROM unnest(ARRAY['CPU', 'I/O', 'locks', 'standbys', 'other servers', 'other waits', 'execution', 'sending', 'receiving', 'round trips',
								  'client'], c.before_parts, c.after_parts) AS n (name, before, after)) q
			 WHERE q.place <= 3 AND abs(q.difference) >= 0.1 * abs(c.after_time - c.before_time)) d)
	SELECT c.cost, c.change, c.subject,
		   concat(c.subject, ': ', concat_ws('; ', c.presence_text, c.longer_text, c.oftener_text), ': ' || x.query),
		   c.before_time, c.after_time, c.before_rate, c.after_rate, c.datname, c.usename, c.application_name, c.client_addr, c.queryid
	  FROM worded c
	  LEFT JOIN texts x ON (x.datname, x.rolname, x.queryid) = (c.datname, c.usename, c.queryid)
	 UNION ALL
	SELECT 0, NULL, 'server',
		   coalesce('the journal has no rows of the time '
					|| string_agg(CASE WHEN p.later THEN 'after' ELSE 'before' END, ' or ' ORDER BY p.later) FILTER (WHERE p.length IS NULL),
					'nothing has changed'),
		   NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
	  FROM period p HAVING NOT EXISTS (SELECT FROM changed)
	 ORDER BY 1 DESC, 3;
END;

COMMENT ON FUNCTION pgnetlat_compare(timestamptz, timestamptz, timestamptz, timestamptz) IS
	'what has changed between two times, from the journal, by default between the same time yesterday and the last 15 minutes: one row for each client group and statement that has become slower or faster, or runs more or less often, by more than changed_share and changed_sessions of pgnetlat_thresholds; the most expensive difference first; otherwise one row says that nothing has changed, or that the journal has no rows';
