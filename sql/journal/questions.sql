
-- ---------------------------------------------------------------------------
-- Questions to the journal: what happened, and what has changed?
-- ---------------------------------------------------------------------------

-- A finding is an episode from the first of two looks in a row that have it, up to three
-- looks in a row that do not.  Where the journal has a gap, episodes end.
CREATE FUNCTION pgnetlat_episodes(
	IN since timestamptz DEFAULT NULL,
	IN until timestamptz DEFAULT NULL,
	OUT began timestamptz,                     -- beginning of the time over which it was first found
	OUT ended timestamptz,                     -- when it was last found; NULL if it goes on
	OUT severity text,                         -- the worst one: outage, loss or note
	OUT verdict text,                          -- what was wrong: one of the verdicts of doc/diagnose.md
	OUT subject text,                          -- the client, session or statement, in words
	OUT lost_seconds double precision,         -- session-seconds that were lost in all
	OUT lost_sessions double precision,        -- lost time as a number of sessions, at the worst moment
	OUT worst timestamptz,                     -- the worst moment: when lost_sessions was highest
	OUT evidence text,                         -- the figures of that moment
	OUT advice text,                           -- what to do next, as of that moment
	OUT victims text,                          -- blocks others: the sessions that were blocked at that moment, by client group; NULL for others
	OUT holder_query text,                     -- blocks others: the holder's latest statement at that moment; NULL for others, or if the holder has none
	OUT pid integer,                           -- process ID, if the subject is one session
	OUT queryid bigint,                        -- query identifier, if the subject is a statement, or one causes it
	OUT usename name,                          -- name of the role; NULL if the subject has none
	OUT datname name,                          -- name of the database; NULL if the subject has none
	OUT application_name text,                 -- application_name of the session or the group
	OUT client_addr inet)                      -- address of the client; NULL on a Unix-domain socket
RETURNS SETOF record
LANGUAGE sql VOLATILE PARALLEL RESTRICTED COST 100000 ROWS 20
SET jit = off
BEGIN ATOMIC
	WITH w AS MATERIALIZED (
		SELECT coalesce(pgnetlat_episodes.since, t.until - interval '1 day') AS since, t.until
		  FROM (SELECT coalesce(pgnetlat_episodes.until, clock_timestamp()) AS until) t),
	look AS MATERIALIZED (
		SELECT sum(CASE WHEN l.gap > interval '15 min' THEN 4 ELSE 1 END) OVER (ORDER BY l.at, l.id) AS n, l.*
		  FROM (SELECT j.id, j.at, j.window_time, j.findings, j.at - lag(j.at) OVER (ORDER BY j.at, j.id) AS gap
				  FROM w, pgnetlat_journal j
				 WHERE j.at > w.since - interval '1 day' AND j.at <= w.until + interval '1 day') l),
	last AS MATERIALIZED (
		SELECT max(l.n) + CASE WHEN max(l.at) < least(clock_timestamp(), w.until) - interval '15 min' THEN 3 ELSE 0 END AS n
		  FROM w, look l GROUP BY w.until),
	seen AS MATERIALIZED (
		SELECT l.n, l.at, l.window_time, f.*,
			   l.n - lag(l.n) OVER finding AS step, lead(l.n) OVER finding - l.n AS next
		  FROM look l, jsonb_to_recordset(l.findings) AS f (severity text, verdict text, subject text, lost_sessions float8, evidence text,
				advice text, victims text, holder_query text, pid integer, queryid bigint, usename name, datname name,
				application_name text, client_addr inet)
		WINDOW finding AS (PARTITION BY f.verdict, f.subject ORDER BY l.n)),
	numbered AS MATERIALIZED (
		SELECT s.*, count(*) FILTER (WHERE s.step > 3) OVER (PARTITION BY s.verdict, s.subject ORDER BY s.n) AS episode FROM seen s),
	placed AS MATERIALIZED (
		SELECT s.*, row_number() OVER (PARTITION BY s.verdict, s.subject, s.episode ORDER BY s.lost_sessions DESC NULLS LAST, s.n) AS place
		  FROM numbered s),
	episode AS (
		SELECT min(p.at - p.window_time * interval '1 ms') FILTER (WHERE p.next = 1) AS began,
			   CASE WHEN max(p.n) + 3 <= last.n THEN max(p.at) END AS ended, max(p.at) AS last_seen,
			   (array_agg(p.severity ORDER BY array_position(ARRAY['outage', 'loss', 'note'], p.severity)))[1] AS severity, p.verdict, p.subject,
			   sum(p.lost_sessions * p.window_time) / 1000 AS lost_seconds,
			   max(p.lost_sessions) AS lost_sessions,
			   max(p.at) FILTER (WHERE p.place = 1) AS worst,
			   max(p.evidence) FILTER (WHERE p.place = 1) AS evidence,
			   max(p.advice) FILTER (WHERE p.place = 1) AS advice,
			   max(p.victims) FILTER (WHERE p.place = 1) AS victims,
			   max(p.holder_query) FILTER (WHERE p.place = 1) AS holder_query,
			   max(p.pid) FILTER (WHERE p.place = 1) AS pid,
			   max(p.queryid) FILTER (WHERE p.place = 1) AS queryid,
			   max(p.usename::text) FILTER (WHERE p.place = 1)::name AS usename,
			   max(p.datname::text) FILTER (WHERE p.place = 1)::name AS datname,
			   max(p.application_name) FILTER (WHERE p.place = 1) AS application_name,
			   max(p.client_addr) FILTER (WHERE p.place = 1) AS client_addr
		  FROM placed p, last
		 GROUP BY p.verdict, p.subject, p.episode, last.n)
	SELECT e.began, e.ended, e.severity, e.verdict, e.subject, e.lost_seconds, e.lost_sessions, e.worst, e.evidence, e.advice,
		   e.victims, e.holder_query, e.pid, e.queryid, e.usename, e.datname, e.application_name, e.client_addr
	  FROM w, episode e
	 WHERE e.began <= w.until AND e.last_seen > w.since
	 ORDER BY e.began, e.lost_seconds DESC, e.verdict, e.subject;
END;

COMMENT ON FUNCTION pgnetlat_episodes(timestamptz, timestamptz) IS
	'what was wrong in the given time, by default the last day, from the journal: one row for each episode of a finding that began before the end of that time and was still found after its beginning; no rows if there was none, or the journal is empty; an episode begins where two rows in a row have the finding, ends where three rows do not or the journal has a gap of 15 minutes, and may be up to a day longer than the given time';

CREATE FUNCTION pgnetlat_past_clients(
	IN since timestamptz DEFAULT NULL,
	IN until timestamptz DEFAULT NULL,
	OUT datname name,                          -- name of the database
	OUT usename name,                          -- name of the role
	OUT application_name text,                 -- as in pgnetlat_clients
	OUT client_addr inet,                      -- as in pgnetlat_clients
	OUT sessions bigint,                       -- the most sessions at the end of a row's time
	OUT connections bigint,                    -- connections that were set up
	OUT requests bigint,                       -- exchanges completed
	OUT statements bigint,                     -- statements completed
	OUT transactions bigint,                   -- transactions committed or rolled back
	OUT round_trips bigint,                    -- as in pgnetlat_clients
	OUT exec_time double precision,            -- milliseconds; this and the other times as in pgnetlat_clients
	OUT send_time double precision,            -- milliseconds
	OUT recv_time double precision,            -- milliseconds
	OUT network_time double precision,         -- milliseconds
	OUT client_time double precision,          -- milliseconds
	OUT idle_time double precision,            -- milliseconds
	OUT in_xact_wait_time double precision,    -- milliseconds
	OUT exec_cpu_time double precision,        -- milliseconds
	OUT exec_io_time double precision,         -- milliseconds
	OUT exec_lock_time double precision,       -- milliseconds
	OUT exec_replication_time double precision, -- milliseconds
	OUT exec_remote_time double precision,     -- milliseconds
	OUT exec_other_time double precision,      -- milliseconds
	OUT run_queue_time double precision,       -- milliseconds
	OUT connect_time double precision,         -- milliseconds
	OUT rtt double precision,                  -- milliseconds: the latest round-trip time; NULL if none was measured
	OUT window_time double precision)          -- milliseconds: the time that the journal has, the same in all rows
RETURNS SETOF record
LANGUAGE sql VOLATILE PARALLEL RESTRICTED COST 10000 ROWS 20
SET jit = off
BEGIN ATOMIC
	WITH w AS MATERIALIZED (
		SELECT coalesce(pgnetlat_past_clients.since, t.until - interval '1 hour') AS since, t.until
		  FROM (SELECT coalesce(pgnetlat_past_clients.until, clock_timestamp()) AS until) t),
	j AS MATERIALIZED (
		SELECT o.at, o.window_time, o.clients FROM w, pgnetlat_journal o WHERE o.at > w.since AND o.at <= w.until)
	SELECT c.datname, c.usename, c.application_name, c.client_addr, max(coalesce(c.sessions, 0)),
		   coalesce(sum(c.connections), 0)::bigint, coalesce(sum(c.requests), 0)::bigint, coalesce(sum(c.statements), 0)::bigint,
		   coalesce(sum(c.transactions), 0)::bigint, coalesce(sum(c.round_trips), 0)::bigint,
		   coalesce(sum(c.exec_time), 0), coalesce(sum(c.send_time), 0), coalesce(sum(c.recv_time), 0),
		   coalesce(sum(c.network_time), 0), coalesce(sum(c.client_time), 0), coalesce(sum(c.idle_time), 0),
		   coalesce(sum(c.in_xact_wait_time), 0), coalesce(sum(c.exec_cpu_time), 0), coalesce(sum(c.exec_io_time), 0),
		   coalesce(sum(c.exec_lock_time), 0), coalesce(sum(c.exec_replication_time), 0), coalesce(sum(c.exec_remote_time), 0),
		   coalesce(sum(c.exec_other_time), 0), coalesce(sum(c.run_queue_time), 0), coalesce(sum(c.connect_time), 0),
		   (array_agg(c.rtt ORDER BY j.at DESC) FILTER (WHERE c.rtt IS NOT NULL))[1],
		   (SELECT sum(o.window_time) FROM j o)
	  FROM j, jsonb_to_recordset(j.clients) AS c (datname name, usename name, application_name text, client_addr inet, sessions bigint,
			connections bigint, requests bigint, statements bigint, transactions bigint, round_trips bigint, exec_time float8, send_time float8,
			recv_time float8, network_time float8, client_time float8, idle_time float8, in_xact_wait_time float8, exec_cpu_time float8,
			exec_io_time float8, exec_lock_time float8, exec_replication_time float8, exec_remote_time float8, exec_other_time float8,
			run_queue_time float8, connect_time float8, rtt float8)
	 GROUP BY c.datname, c.usename, c.application_name, c.client_addr
	 ORDER BY sum(coalesce(c.exec_time, 0) + coalesce(c.send_time, 0) + coalesce(c.recv_time, 0) + coalesce(c.network_time, 0)
				  + coalesce(c.client_time, 0)) DESC, c.application_name;
END;

COMMENT ON FUNCTION pgnetlat_past_clients(timestamptz, timestamptz) IS
	'the account by client group over the given time, by default the last hour, from the rows of the journal that end in it: the busiest first; no rows if the journal has none; groups that were not among the 20 busiest of a minute lack that minute';

CREATE FUNCTION pgnetlat_past_statements(
	IN since timestamptz DEFAULT NULL,
	IN until timestamptz DEFAULT NULL,
	OUT datname name,                          -- name of the database
	OUT usename name,                          -- name of the role that ran the statement
	OUT queryid bigint,                        -- query identifier
	OUT calls bigint,                          -- executions completed
	OUT rows bigint,                           -- rows returned or affected
	OUT repeats bigint,                        -- as in pgnetlat_statements
	OUT exec_time double precision,            -- milliseconds; this and the other times as in pgnetlat_statements
	OUT send_time double precision,            -- milliseconds
	OUT recv_time double precision,            -- milliseconds
	OUT network_time double precision,         -- milliseconds
	OUT client_time double precision,          -- milliseconds
	OUT in_xact_wait_time double precision,    -- milliseconds
	OUT window_time double precision)          -- milliseconds: the time that the journal has, the same in all rows
RETURNS SETOF record
LANGUAGE sql VOLATILE PARALLEL RESTRICTED COST 10000 ROWS 20
SET jit = off
BEGIN ATOMIC
	WITH w AS MATERIALIZED (
		SELECT coalesce(pgnetlat_past_statements.since, t.until - interval '1 hour') AS since, t.until
		  FROM (SELECT coalesce(pgnetlat_past_statements.until, clock_timestamp()) AS until) t),
	j AS MATERIALIZED (
		SELECT o.window_time, o.statements FROM w, pgnetlat_journal o WHERE o.at > w.since AND o.at <= w.until)
	SELECT s.datname, s.usename, s.queryid, coalesce(sum(s.calls), 0)::bigint, coalesce(sum(s.rows), 0)::bigint,
		   coalesce(sum(s.repeats), 0)::bigint, coalesce(sum(s.exec_time), 0), coalesce(sum(s.send_time), 0), coalesce(sum(s.recv_time), 0),
		   coalesce(sum(s.network_time), 0), coalesce(sum(s.client_time), 0), coalesce(sum(s.in_xact_wait_time), 0),
		   (SELECT sum(o.window_time) FROM j o)
	  FROM j, jsonb_to_recordset(j.statements) AS s (datname name, usename name, queryid bigint, calls bigint, rows bigint, repeats bigint,
			exec_time float8, send_time float8, recv_time float8, network_time float8, client_time float8, in_xact_wait_time float8)
	 GROUP BY s.datname, s.usename, s.queryid
	 ORDER BY sum(coalesce(s.exec_time, 0) + coalesce(s.send_time, 0) + coalesce(s.recv_time, 0) + coalesce(s.network_time, 0)) DESC, s.queryid;
END;

COMMENT ON FUNCTION pgnetlat_past_statements(timestamptz, timestamptz) IS
	'the account by statement over the given time, by default the last hour, from the rows of the journal that end in it: the most expensive first; no rows if the journal has none; statements that were not among the 20 most expensive of a minute lack that minute';

CREATE FUNCTION pgnetlat_past_report(at timestamptz)
RETURNS jsonb
LANGUAGE sql VOLATILE PARALLEL RESTRICTED COST 10000
BEGIN ATOMIC
	SELECT j.report FROM pgnetlat_journal j
	 WHERE j.report IS NOT NULL
	   AND j.at > pgnetlat_past_report.at - interval '20 min' AND j.at < pgnetlat_past_report.at + interval '20 min'
	 ORDER BY j.at > pgnetlat_past_report.at, abs(extract(epoch FROM j.at - pgnetlat_past_report.at)) LIMIT 1;
END;

COMMENT ON FUNCTION pgnetlat_past_report(timestamptz) IS
	'pgnetlat_report_data() as the journal has it from before the given moment, or else from after it, at most 20 minutes away; NULL if it has none; without histograms and settings';

-- What the report's page shows of the last day: sessions lost by verdict, in steps of ten
-- minutes, and of the six most expensive findings the reports of their worst moments.
CREATE FUNCTION pgnetlat_past_day()
RETURNS jsonb
LANGUAGE sql VOLATILE PARALLEL RESTRICTED COST 10000
SET jit = off
BEGIN ATOMIC
	WITH look AS MATERIALIZED (
		SELECT j.id, j.at, date_bin('10 min', j.at - interval '1 us', to_timestamp(0)) AS step, j.window_time, j.findings,
			   j.report IS NOT NULL AS has_report
		  FROM pgnetlat_journal j, (SELECT clock_timestamp() AS at) now
		 WHERE j.at > now.at - interval '1 day' AND j.at <= now.at),
	lost AS MATERIALIZED (
		SELECT l.id, l.at, l.step, l.window_time, l.has_report, f.severity, f.verdict, f.subject, f.lost_sessions AS sessions
		  FROM look l, jsonb_to_recordset(l.findings) AS f (severity text, verdict text, subject text, lost_sessions float8)
		 WHERE f.lost_sessions > 0),
	part AS (
		SELECT l.step, l.verdict, round((sum(l.sessions * l.window_time) / 600000)::numeric, 2) AS sessions
		  FROM lost l GROUP BY l.step, l.verdict),
	worst AS (
		SELECT DISTINCT ON (l.verdict, l.subject) l.id, l.sessions
		  FROM lost l WHERE l.has_report AND l.severity <> 'note' ORDER BY l.verdict, l.subject, l.sessions DESC, l.id),
	shown AS (
		SELECT w.id FROM worst w GROUP BY w.id ORDER BY max(w.sessions) DESC, w.id LIMIT 6)
	SELECT jsonb_build_object(
			'steps', (SELECT jsonb_agg(jsonb_build_object('at', s.step, 'lost', coalesce(p.parts, '{}')) ORDER BY s.step)
						FROM (SELECT l.step FROM look l GROUP BY l.step) s
						LEFT JOIN (SELECT o.step, jsonb_object_agg(o.verdict, o.sessions) AS parts FROM part o GROUP BY o.step) p ON p.step = s.step),
			'moments', (SELECT coalesce(jsonb_agg(j.report ORDER BY j.at), '[]') FROM pgnetlat_journal j WHERE j.id IN (SELECT s.id FROM shown s)))
	 WHERE EXISTS (SELECT FROM look);
END;

COMMENT ON FUNCTION pgnetlat_past_day() IS
	'internal: the last day as the page of pgnetlat_report() shows it, from the journal; NULL if that has none';
