
-- ---------------------------------------------------------------------------
-- A small answer, for chats and programs
-- ---------------------------------------------------------------------------

-- Findings and groups are left out, the least expensive first, until it fits.
CREATE FUNCTION pgnetlat_brief(duration interval DEFAULT '1 min')
RETURNS jsonb
LANGUAGE sql STRICT VOLATILE COST 100000
BEGIN ATOMIC
	WITH
		found AS MATERIALIZED (
			SELECT f.*, row_number() OVER () AS place FROM pgnetlat_diagnose(pgnetlat_brief.duration) f),
		groups AS MATERIALIZED (
			SELECT c.*, row_number() OVER (ORDER BY c.busy DESC, c.requests DESC) AS place
			  FROM (SELECT c.*, c.total_time - c.idle_time - c.pending_time AS busy
					  FROM pgnetlat_clients_last(pgnetlat_brief.duration) c) c
			 WHERE c.busy > 0),
		named AS (
			SELECT g.place, jsonb_build_object(
					'application_name', left(pgnetlat_one_line(g.application_name), 40),
					'database', left(pgnetlat_one_line(g.datname::text), 40), 'role', left(pgnetlat_one_line(g.usename::text), 40),
					'client_addr', host(g.client_addr),
					'sessions', g.sessions, 'requests', g.requests, 'transactions', g.transactions, 'round_trips', g.round_trips,
					'rtt_ms', round(g.rtt::numeric, 3),
					'busy_sessions', round((g.busy / nullif(g.window_time, 0))::numeric, 2),
					'server_percent', round(100 * g.server_share), 'network_percent', round(100 * g.network_share),
					'client_percent', round(100 * g.client_share)) AS brief
			  FROM groups g WHERE g.place <= 10),
		problems AS (
			SELECT f.place, jsonb_strip_nulls(jsonb_build_object(
					'severity', f.severity, 'verdict', f.verdict, 'subject', left(pgnetlat_one_line(f.subject), 80),
					'evidence', left(f.evidence, 300), 'advice', left(f.advice, 300), 'pid', f.pid, 'queryid', f.queryid::text,
					'lost_sessions', round(f.lost_sessions::numeric, 2), 'saving_sessions', round(f.saving_sessions::numeric, 2))) AS brief
			  FROM found f WHERE f.place <= 10),
		answers AS (
			SELECT n, jsonb_build_object(
					'at', clock_timestamp(),
					'window_seconds', (SELECT round((max(g.window_time) / 1000)::numeric, 1) FROM groups g),
					'findings', coalesce((SELECT jsonb_agg(p.brief ORDER BY p.place) FROM problems p WHERE p.place <= n), '[]'),
					'findings_left_out', (SELECT count(*) FILTER (WHERE f.place > n OR f.place > 10) FROM found f),
					'groups', coalesce((SELECT jsonb_agg(g.brief ORDER BY g.place) FROM named g WHERE g.place <= n), '[]'),
					'groups_left_out', (SELECT count(*) FILTER (WHERE g.place > n OR g.place > 10) FROM groups g),
					'sessions', i.client_sessions, 'sessions_not_counted', i.client_sessions - i.counted_sessions,
					'sees_all_roles', pg_has_role('pg_read_all_stats', 'USAGE'),
					'limits', 'null: not known. Shares are of the time that is neither idle nor pending. rtt_ms: the shortest lately. Times of execution parts are sampled, all others counted.') AS answer
			  FROM pgnetlat_info() i, generate_series(0, 10) n)
	SELECT a.answer FROM answers a WHERE octet_length(a.answer::text) <= 4096 ORDER BY a.n DESC LIMIT 1;
END;

COMMENT ON FUNCTION pgnetlat_brief(interval) IS
	'findings and the largest client groups over the given time up to now, at most 15 minutes, in at most 4096 bytes of JSON: units are in the names, null is not known; what did not fit is counted';
