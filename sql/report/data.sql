
-- ---------------------------------------------------------------------------
-- The report: the figures of one moment, and a page that shows them
-- ---------------------------------------------------------------------------

-- The texts of some statements as pg_stat_activity shows them in 20 looks at it, for a
-- fifth of a second: it has the latest text of each session only, which is soon another.
CREATE FUNCTION pgnetlat_activity_texts(queryids bigint[])
RETURNS TABLE (userid oid, dbid oid, queryid bigint, query text)
LANGUAGE plpgsql VOLATILE PARALLEL RESTRICTED COST 200000
AS $$
BEGIN
	FOR look IN 1 .. CASE WHEN queryids IS NULL THEN 0 ELSE 20 END LOOP
		-- or it would show the same again until the transaction ends
		PERFORM pg_catalog.pg_stat_clear_snapshot();
		RETURN QUERY
			SELECT a.usesysid, a.datid, a.query_id, a.query FROM pg_catalog.pg_stat_activity a
			 WHERE a.query_id OPERATOR(pg_catalog.=) ANY (queryids);
		PERFORM pg_catalog.pg_sleep(0.01);
	END LOOP;
END
$$;

COMMENT ON FUNCTION pgnetlat_activity_texts(bigint[]) IS
	'internal: texts of statements that pg_stat_activity shows within a fifth of a second';

-- One object with what the views and functions of this extension show to the caller,
-- columns named as there.  It adds no figures of its own, and only decides how many rows
-- of each a page shows.  Query identifiers are text, since not every reader of JSON can
-- hold a number of 64 bits.
CREATE FUNCTION pgnetlat_report_data(IN duration interval DEFAULT '1 min') RETURNS jsonb
LANGUAGE sql VOLATILE COST 200000
BEGIN ATOMIC
	WITH w AS MATERIALIZED (
		SELECT coalesce(pgnetlat_report_data.duration, '15 min') AS duration),
	client AS MATERIALIZED (
		SELECT c.*, c.total_time - c.idle_time - c.pending_time AS busy_time,
			   row_number() OVER (ORDER BY c.total_time - c.idle_time - c.pending_time DESC NULLS LAST,
								  c.requests DESC NULLS LAST, c.connections DESC NULLS LAST) AS place
		  FROM w, pgnetlat_clients_last(w.duration) c),
	session AS MATERIALIZED (
		SELECT s.* FROM pgnetlat_sessions() s),
	activity AS MATERIALIZED (
		SELECT a.pid, a.datid, a.usesysid, a.query_id, a.backend_type, a.wait_event_type, a.wait_event,
			   pgnetlat_query_start(a.query) AS query
		  FROM pg_stat_activity a),
	top AS MATERIALIZED (
		SELECT l.*, l.exec_time + l.send_time + l.recv_time + l.network_time AS time
		  FROM w, pgnetlat_statements_last(w.duration) l
		 WHERE l.queryid IS NOT NULL AND l.calls IS NOT NULL
		 ORDER BY time DESC LIMIT 20),
	statement AS MATERIALIZED (
		SELECT s.*, t.query
		  FROM top s
		  LEFT JOIN pgnetlat_query_texts(ARRAY(SELECT top.queryid FROM top)) t ON (t.userid, t.dbid, t.queryid) = (s.userid, s.dbid, s.queryid)),
	latest AS MATERIALIZED (
		SELECT t.userid, t.dbid, t.queryid, min(pgnetlat_query_start(t.query)) AS query
		  FROM pgnetlat_activity_texts((SELECT array_agg(s.queryid) FROM statement s WHERE s.query IS NULL)) t
		 GROUP BY t.userid, t.dbid, t.queryid),
	chain AS MATERIALIZED (
		SELECT s.pid FROM session s WHERE s.blocked_by IS NOT NULL
		 UNION
		SELECT s.blocked_by FROM session s WHERE s.blocked_by IS NOT NULL
		 LIMIT 60)
	SELECT jsonb_build_object(
		'report', (
			SELECT jsonb_build_object(
				'at', clock_timestamp(),
				'database', current_database(),
				'role', current_user,
				'cluster', nullif(current_setting('cluster_name'), ''),
				'server_version', current_setting('server_version'),
				'server_start', pg_postmaster_start_time(),
				'sees_all', pg_has_role('pg_read_all_stats', 'USAGE'),
				'window_time', coalesce(max(c.window_time), 0),
				'client_groups', count(*),
				'hidden_groups', count(*) FILTER (WHERE c.total_time IS NULL),
				'hidden_sessions', (SELECT count(*) FROM session s WHERE s.total_time IS NULL AND s.backend_start IS NULL),
				'busy_time', coalesce(sum(c.busy_time), 0))
			  FROM client c),
		'info', (SELECT to_jsonb(i) FROM pgnetlat_info() i),
		'headlines', (SELECT jsonb_object_agg(r.verdict, r.headline) FROM pgnetlat_rules r),
		'thresholds', (SELECT jsonb_object_agg(t.name, t.value) FROM pgnetlat_thresholds t),
		'findings', (
			SELECT jsonb_agg(to_jsonb(d) || jsonb_build_object('queryid', d.queryid::text) ORDER BY d.place)
			  FROM (SELECT f.*, row_number() OVER () AS place
					  FROM w, pgnetlat_diagnose(w.duration) f LIMIT 50) d),
		'now', (
			SELECT jsonb_agg(to_jsonb(n)) FROM (SELECT * FROM pgnetlat_now(200) LIMIT 50) n),
		'clients', (
			SELECT jsonb_agg(to_jsonb(c) ORDER BY c.place) FROM client c WHERE c.place <= 40 AND c.total_time IS NOT NULL),
		'history', (
			SELECT jsonb_agg(to_jsonb(i) ORDER BY i.bucket_start)
			  FROM (SELECT h.bucket_start, max(h.bucket_end) AS bucket_end,
						   sum(h.requests)::bigint AS requests,
						   round(sum(h.exec_time)) AS exec_time,
						   round(sum(h.send_time)) AS send_time,
						   round(sum(h.recv_time)) AS recv_time,
						   round(sum(h.network_time)) AS network_time,
						   round(sum(h.client_time)) AS client_time,
						   round(sum(h.idle_time)) AS idle_time,
						   round(sum(h.send_blocked_time)) AS send_blocked_time,
						   round(sum(h.send_client_time)) AS send_client_time,
						   round(sum(h.run_queue_time)) AS run_queue_time,
						   round(sum(h.run_queue_wait_time)) AS run_queue_wait_time,
						   round(sum(h.exec_cpu_time)) AS exec_cpu_time,
						   round(sum(h.exec_io_time)) AS exec_io_time,
						   round(sum(h.exec_lock_time)) AS exec_lock_time,
						   round(sum(h.exec_replication_time)) AS exec_replication_time,
						   round(sum(h.exec_remote_time)) AS exec_remote_time,
						   round(sum(h.exec_other_time)) AS exec_other_time,
						   round(sum(h.exec_unsampled_time)) AS exec_unsampled_time
					  FROM pgnetlat_history() h
					 WHERE h.exec_time IS NOT NULL
					 GROUP BY h.bucket_start
					 ORDER BY h.bucket_start DESC
					 LIMIT 360) i),
		'waiting', (
			SELECT jsonb_agg(to_jsonb(n) ORDER BY n.age DESC NULLS LAST, n.pid)
			  FROM (SELECT chain.pid, s.blocked_by, b.pids AS behind, s.state,
						   extract(epoch FROM clock_timestamp() - s.state_change)::double precision * 1000 AS age,
						   s.application_name, s.usename, s.client_addr, a.backend_type, a.wait_event, a.query
					  FROM chain
					  LEFT JOIN session s ON s.pid = chain.pid
					  LEFT JOIN activity a ON a.pid = chain.pid
					 CROSS JOIN LATERAL (SELECT CASE WHEN s.blocked_by IS NOT NULL THEN pg_blocking_pids(chain.pid) END AS pids) b) n),
		'blockers', (
			SELECT jsonb_agg(to_jsonb(b) || jsonb_build_object('queryid', b.queryid::text) ORDER BY b.blocked_time DESC)
			  FROM (SELECT * FROM pgnetlat_blockers o WHERE o.blocked_time > 0 ORDER BY o.blocked_time DESC LIMIT 20) b),
		'histograms', (
			SELECT jsonb_agg(to_jsonb(h) ORDER BY c.place, h.metric)
			  FROM pgnetlat_histogram() h
			  JOIN client c ON c.place <= 20 AND h.count > 0 AND h.application_name = c.application_name
			   AND h.datid IS NOT DISTINCT FROM c.datid AND h.usesysid IS NOT DISTINCT FROM c.usesysid
			   AND h.client_addr IS NOT DISTINCT FROM c.client_addr),
		'statements', (
			SELECT jsonb_agg(t.statement ORDER BY t.time DESC)
			  FROM (SELECT (to_jsonb(s) - 'query') || jsonb_build_object(
							   'datname', d.datname, 'usename', u.rolname, 'queryid', s.queryid::text,
							   'query', coalesce(pgnetlat_query_start(s.query), latest.query)) AS statement, s.time
					  FROM statement s
					  LEFT JOIN latest ON latest.userid = s.userid AND latest.dbid = s.dbid AND latest.queryid = s.queryid
					  LEFT JOIN pg_database d ON d.oid = s.dbid
					  LEFT JOIN pg_roles u ON u.oid = s.userid) t),
		'failed_connections', (
			SELECT jsonb_agg(to_jsonb(f))
			  FROM (SELECT * FROM pgnetlat_failed_connections() o ORDER BY o.failed_connections DESC LIMIT 10) f),
		'pools', (
			SELECT jsonb_agg(to_jsonb(p) ORDER BY p.datid NULLS FIRST, p.usesysid)
			  FROM (SELECT o.* FROM w, pgnetlat_pools_last(w.duration) o
					 WHERE o.pool_size IS NOT NULL ORDER BY o.sessions DESC, o.busy_max DESC LIMIT 20) p),
		'what_if', (
			SELECT jsonb_agg(to_jsonb(m) ORDER BY m.transaction_time * m.counted DESC)
			  FROM (SELECT o.* FROM w, pgnetlat_mean_transactions(NULL, w.duration) o
					 WHERE o.counted >= 20 ORDER BY o.transaction_time * o.counted DESC LIMIT 40) m),
		'settings', (
			SELECT jsonb_agg(to_jsonb(g) ORDER BY g.ours DESC, g.name)
			  FROM (SELECT o.name, current_setting(o.name) AS value, o.setting = o.boot_val AS is_default, o.short_desc,
						   o.name LIKE 'pgnetlat.%' AS ours
					  FROM pg_settings o
					 WHERE o.name LIKE 'pgnetlat.%'
						OR o.name IN ('compute_query_id', 'idle_in_transaction_session_timeout', 'max_connections',
									  'statement_timeout', 'synchronous_commit', 'synchronous_standby_names',
									  'track_activity_query_size')) g));
END;

COMMENT ON FUNCTION pgnetlat_report_data(interval) IS
	'what pgnetlat_report() shows, over the given time up to now, at most 15 minutes: one object of findings, clients, history, waiting sessions, blockers, histograms, statements, connections, pools, what-if, settings; columns as in the views';

-- The page has the data in a script element of type application/json.  Characters that
-- could end that element, or begin another one, are written as escapes of JSON.  Names
-- and queries of users stay text, since the page's script sets nothing but text.
CREATE FUNCTION pgnetlat_report(IN duration interval DEFAULT '1 min', IN at timestamptz DEFAULT NULL) RETURNS text
LANGUAGE sql VOLATILE COST 200000
BEGIN ATOMIC
	SELECT replace(pgnetlat_report_page(), '@data@',
				   replace(replace(replace(pgnetlat_legible(
											 CASE WHEN pgnetlat_report.at IS NULL
											 THEN pgnetlat_report_data(pgnetlat_report.duration) || jsonb_build_object('past', pgnetlat_past_day())
											 ELSE pgnetlat_past_report(pgnetlat_report.at) END::text),
										   '<', '\u003c'), '>', '\u003e'), '&', '\u0026'));
END;

COMMENT ON FUNCTION pgnetlat_report(interval, timestamptz) IS
	'a self-contained HTML page, in UTF-8, about the given time up to now, at most 15 minutes: what is wrong, where the time goes, predictions, and the last day if there is a journal; with at, about that moment in the past, from the journal (pgnetlat_past_report()), NULL if that has none';
