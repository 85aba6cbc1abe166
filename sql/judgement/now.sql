
-- ---------------------------------------------------------------------------
-- What is happening now
-- ---------------------------------------------------------------------------

-- A time for people, in at most seven characters; empty if below 50 ms.
CREATE FUNCTION pgnetlat_age(IN milliseconds double precision) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 10
BEGIN ATOMIC
	SELECT CASE WHEN milliseconds < 50 THEN ''
				WHEN milliseconds < 9950 THEN round((milliseconds / 1000)::numeric, 1) || ' s'
				WHEN milliseconds < 99500 THEN round(milliseconds / 1000) || ' s'
				WHEN milliseconds < 5970000 THEN round(milliseconds / 60000) || ' min'
				WHEN milliseconds < 358200000 THEN round(milliseconds / 3600000) || ' h'
				ELSE round(milliseconds / 86400000) || ' d' END;
END;

COMMENT ON FUNCTION pgnetlat_age(double precision) IS 'internal: milliseconds, rounded and with a unit';

-- Queries and names come from databases whose encoding may differ from this one's, and
-- text functions raise an error for bytes that are not valid here.  So they are first
-- read as bytes, and what is not valid becomes question marks.
CREATE FUNCTION pgnetlat_foreign_text(IN line text) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE COST 1000
BEGIN ATOMIC
	SELECT CASE WHEN pg_encoding_max_length(pg_char_to_encoding(getdatabaseencoding())) = 1 OR
					 getdatabaseencoding() = 'UTF8' AND encode(b.raw, 'hex') ~
					 ('^(?:[0-7].|c[2-9a-f][89ab].|d.[89ab].'
					  '|e0[ab].[89ab].|e[1-9abcef][89ab].[89ab].|ed[89].[89ab].'
					  '|f0[9ab].[89ab].[89ab].|f[1-3][89ab].[89ab].[89ab].|f48.[89ab].[89ab].)*$')
				THEN line
				ELSE replace(regexp_replace(encode(b.raw, 'escape'), '\\[23][0-7][0-7]', '?', 'g'), '\\', '\') END
	  FROM (SELECT replace(line, '\', '\\')::bytea AS raw OFFSET 0) b;
END;

CREATE FUNCTION pgnetlat_legible(IN line text) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
	SELECT CASE WHEN length(encode(replace(line, '\', '\\')::bytea, 'escape')) = octet_length(replace(line, '\', '\\'))
				THEN line ELSE pgnetlat_foreign_text(line) END;
END;

COMMENT ON FUNCTION pgnetlat_foreign_text(text) IS 'internal: text with question marks for bytes that are not valid in this database''s encoding';
COMMENT ON FUNCTION pgnetlat_legible(text) IS 'internal: the same as pgnetlat_foreign_text(), faster for ASCII';

-- The beginning of a text on one line, without what moves a terminal's cursor or turns
-- the direction of the text after it.
CREATE FUNCTION pgnetlat_one_line(IN line text) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
	SELECT btrim(regexp_replace("left"(pgnetlat_legible(line), 1000),
								'[[:space:]\u0001-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]+', ' ', 'g'));
END;

COMMENT ON FUNCTION pgnetlat_one_line(text) IS 'internal: the beginning of a text without line breaks and control characters';

-- The beginning of a text that fits into the given number of terminal columns.  An East
-- Asian character takes two columns, and a combining accent none.
CREATE FUNCTION pgnetlat_clip_wide(IN line text, IN columns integer, OUT clipped text, OUT width integer)
LANGUAGE sql STABLE PARALLEL SAFE COST 1000
BEGIN ATOMIC
	SELECT coalesce(string_agg(c.letter, '' ORDER BY c.position), ''), coalesce(max(c.used), 0)::integer
	  FROM (SELECT l.letter, l.position, sum(w.width) OVER (ORDER BY l.position) AS used
			  FROM string_to_table("left"(line, columns), NULL) WITH ORDINALITY l(letter, position),
				   LATERAL (SELECT CASE WHEN octet_length(l.letter) > 1 THEN ascii(l.letter) ELSE 32 END AS code) u,
				   LATERAL (SELECT CASE
						WHEN u.code BETWEEN 768 AND 879 OR u.code BETWEEN 8203 AND 8207
							 OR u.code BETWEEN 65024 AND 65039 THEN 0
						WHEN u.code BETWEEN 4352 AND 4447 OR u.code BETWEEN 11904 AND 42191
							 OR u.code BETWEEN 44032 AND 55203 OR u.code BETWEEN 63744 AND 64255
							 OR u.code BETWEEN 65072 AND 65135 OR u.code BETWEEN 65280 AND 65376
							 OR u.code BETWEEN 65504 AND 65510 OR u.code BETWEEN 127744 AND 129791
							 OR u.code BETWEEN 131072 AND 262141 THEN 2
						ELSE 1 END AS width) w) c
	 WHERE c.used <= columns;
END;

CREATE FUNCTION pgnetlat_clip(IN line text, IN columns integer) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
	SELECT CASE WHEN octet_length(line) = length(line) THEN "left"(line, columns)
				ELSE (SELECT c.clipped FROM pgnetlat_clip_wide(line, columns) c) END;
END;

CREATE FUNCTION pgnetlat_columns(IN line text) RETURNS integer
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
	SELECT CASE WHEN octet_length(line) = length(line) THEN length(line)
				ELSE (SELECT c.width FROM pgnetlat_clip_wide(line, 2 * length(line)) c) END;
END;

COMMENT ON FUNCTION pgnetlat_clip_wide(text, integer) IS 'internal: the beginning of a text that fits into the given number of terminal columns, and how many it takes';
COMMENT ON FUNCTION pgnetlat_clip(text, integer) IS 'internal: the same without the number, faster for ASCII';
COMMENT ON FUNCTION pgnetlat_columns(text) IS 'internal: number of terminal columns that a text takes';

-- Sessions that are not idle, the costliest first: those that block others, by how
-- long these have waited, then those that are stuck themselves, then the rest.
--
-- The sessions and pg_stat_activity are each read once.  The last column gets the
-- room that the others leave: psql puts 20 characters between the seven columns.
CREATE FUNCTION pgnetlat_now(
	IN width integer DEFAULT 120,
	OUT pid integer,
	OUT client text,
	OUT state text,
	OUT rate double precision,
	OUT rtt double precision,
	OUT bar text,
	OUT doing text)
RETURNS SETOF record
LANGUAGE sql VOLATILE PARALLEL RESTRICTED COST 1000 ROWS 20
BEGIN ATOMIC
	WITH session AS MATERIALIZED (
		SELECT s.pid, s.total_time IS NULL AS hidden, s.state, i.age, s.blocked_by, s.rtt,
			   pgnetlat_one_line(n.name) AS name,
			   CASE WHEN length(host(s.client_addr)) > 15 THEN '@~' || "right"(host(s.client_addr), 14)
					ELSE coalesce('@' || host(s.client_addr), '') END AS address,
			   CASE s.state WHEN 'waiting in transaction' THEN 'idle in transaction' ELSE s.state END ||
			   coalesce(' ' || nullif(pgnetlat_age(i.age), ''), '') AS in_state,
			   1000 * s.requests / nullif(s.window_time, 0) AS rate,
			   s.send_time, s.send_client_time, extract(epoch FROM clock_timestamp() - s.unanswered_since)::double precision * 1000 AS silent,
			   s.total_time - s.idle_time - s.pending_time AS busy,
			   s.exec_time + s.send_time - s.send_blocked_time + coalesce(s.run_queue_wait_time, 0) AS server,
			   s.exec_lock_time + s.exec_replication_time + s.exec_remote_time AS blocked,
			   coalesce(s.run_queue_time, 0) AS queued,
			   s.network_time + s.send_blocked_time - s.send_client_time AS network
		  FROM pgnetlat_sessions_last('10 s') s,
			   LATERAL (SELECT extract(epoch FROM clock_timestamp() - s.state_change)::double precision * 1000 AS age
						OFFSET 0) i,
			   LATERAL (SELECT coalesce(nullif(s.application_name, ''), s.usename::text, '') AS name OFFSET 0) n
		 WHERE s.pid <> pg_backend_pid()),
	activity AS MATERIALIZED (
		SELECT a.pid, a.backend_type, a.wait_event_type, a.wait_event,
			   extract(epoch FROM clock_timestamp() - a.xact_start)::double precision * 1000 AS xact_age,
			   coalesce(nullif(pgnetlat_one_line(a.query), ''), 'queryid ' || a.query_id, '') AS query
		  FROM pg_stat_activity a),
	active AS MATERIALIZED (
		SELECT s.*, a.wait_event_type, a.wait_event, a.xact_age, a.query, h.sessions AS blocks, h.age AS blocks_age,
			   s.age >= 1000 AND (s.state IN ('waiting in transaction', 'sending', 'receiving') OR
								  s.state = 'executing' AND a.wait_event_type IS NOT DISTINCT FROM 'Lock') AS stuck,
			   w.in_queue, row_number() OVER (PARTITION BY w.in_queue ORDER BY s.age DESC) AS number
		  FROM session s
		  LEFT JOIN activity a ON a.pid = s.pid
		 CROSS JOIN LATERAL (SELECT s.state = 'executing' AND a.wait_event_type = 'Lock' AND
									CASE WHEN s.blocked_by IS NULL THEN s.age >= 1000 ELSE a.wait_event = 'relation' END AS in_queue
							 OFFSET 0) w
		  LEFT JOIN (SELECT b.blocked_by, count(*) AS sessions, sum(b.age) AS age
					   FROM session b GROUP BY b.blocked_by) h ON h.blocked_by = s.pid
		 WHERE NOT s.hidden AND s.state <> 'disabled' AND (s.state <> 'idle' OR h.sessions > 0)),
	-- Those ahead of a session; some of them may themselves wait for the holder, as DDL
	-- does behind which others queue.
	queue AS MATERIALIZED (
		SELECT s.pid, s.blocked_by, p.pids, CASE WHEN NOT s.blocked_by = ANY (p.pids) THEN p.pids[1] END AS via
		  FROM active s
		  LEFT JOIN LATERAL (SELECT pg_blocking_pids(s.pid) AS pids OFFSET 0) p ON s.number <= 20
		 WHERE s.in_queue),
	head AS MATERIALIZED (
		SELECT h.via AS pid, (SELECT count(*) FROM queue q
							   WHERE q.blocked_by = h.blocked_by AND (q.blocked_by = ANY (q.pids)) IS NOT TRUE) AS behind
		  FROM (SELECT DISTINCT q.blocked_by, q.via FROM queue q WHERE q.via IS NOT NULL) h),
	shown AS MATERIALIZED (
		SELECT s.*, pgnetlat_clip(s.name, r.columns) || s.address AS client,
			   CASE WHEN s.rate >= 9.95 THEN round(s.rate) ELSE round(s.rate::numeric, 1)::double precision END AS per_second,
			   CASE WHEN s.rtt >= 9.95 THEN round(s.rtt::numeric, 1) ELSE round(s.rtt::numeric, 2) END::double precision AS round_trip,
			   repeat('#', b.works) || repeat('!', b.blocked - b.works) || repeat('+', b.server - b.blocked) ||
			   repeat('=', b.network - b.server) || repeat('.', 8 - b.network) AS bar
		  FROM active s
		 CROSS JOIN LATERAL (SELECT greatest(24 + (greatest(pgnetlat_now.width, 0) - 120) / CASE WHEN pgnetlat_now.width < 120 THEN 2 ELSE 4 END,
											 16) - length(s.address) AS columns OFFSET 0) r
		  -- where the bar's parts end; time without a processor is not work
		  LEFT JOIN LATERAL (SELECT round(8 * greatest(x.server - x.blocked - x.queued, 0))::integer AS works,
									round(8 * least(greatest(x.server - x.queued, x.blocked), x.server))::integer AS blocked,
									round(8 * x.server)::integer AS server,
									round(8 * least(x.server + x.network, 1))::integer AS network
							   FROM (SELECT least(greatest(s.server / nullif(s.busy, 0), 0), 1) AS server,
											least(greatest(s.blocked / nullif(s.busy, 0), 0), 1) AS blocked,
											least(greatest(s.queued / nullif(s.busy, 0), 0), 1) AS queued,
											least(greatest(s.network / nullif(s.busy, 0), 0), 1) AS network) x) b
			ON s.busy > 0),
	room AS MATERIALIZED (
		SELECT greatest(greatest(pgnetlat_now.width, 0) - 20 - greatest(max(length(s.pid::text)), 3) - greatest(max(pgnetlat_columns(s.client)), 6) -
						greatest(max(length(s.in_state)), 5) - greatest(max(length(s.per_second::text)), 4) -
						greatest(max(length(s.round_trip::text)), 3) - 8, 20)::integer AS columns
		  FROM shown s)
	SELECT l.pid, l.client, l.in_state, l.per_second, l.round_trip, l.bar, pgnetlat_clip(l.line, l.columns)
	  FROM (
	SELECT s.pid, s.client, s.in_state, s.per_second, s.round_trip, s.bar, s.blocks_age, s.stuck, s.age,
		   -- a figure or a unit that does not fit is left out, not cut
		   CASE WHEN length(lead.text) - 2 <= r.columns THEN lead.text || s.query
				ELSE regexp_replace("left"(lead.text, r.columns + 1),
									'(;|[:;]?( of| for| xact| idle| via)? +([0-9.]+ )?[^ ;]*)$', '') END AS line,
		   r.columns
	  FROM shown s
	 CROSS JOIN room r
	  LEFT JOIN session holder ON holder.pid = s.blocked_by
	  LEFT JOIN activity a ON a.pid = s.blocked_by
	  LEFT JOIN queue q ON q.pid = s.pid
	  LEFT JOIN head ON head.pid = s.pid
	 CROSS JOIN LATERAL (SELECT coalesce(head.behind || ' behind; ', '') || CASE
			WHEN s.blocked_by = 0 THEN 'blocked by prepared xact' || coalesce(' via ' || q.via, '') || '; '
			WHEN s.blocked_by > 0 THEN
				'blocked by ' || s.blocked_by || coalesce(' via ' || q.via, '') ||
				CASE WHEN holder.hidden OR holder.pid IS NULL THEN coalesce(' ' || a.backend_type, '')
					 WHEN r.columns < 60 THEN ': ' || replace(holder.in_state, 'idle in transaction', 'idle')
					 ELSE ' ' || "left"(holder.name, 20) || holder.address || ': ' ||
						  CASE holder.state WHEN 'waiting in transaction' THEN 'idle in transaction' ELSE holder.state END ||
						  coalesce(' for ' || nullif(pgnetlat_age(holder.age), ''), '') ||
						  CASE WHEN r.columns >= 80 AND a.query <> ''
							   THEN CASE holder.state WHEN 'executing' THEN ' ' ELSE ' after ' END ||
									"left"(a.query, r.columns - 60) ELSE '' END END || '; '
			WHEN cardinality(q.pids) > 0
			THEN 'behind ' || CASE q.pids[1] WHEN 0 THEN 'prepared xact' ELSE q.pids[1]::text END ||
				 CASE WHEN cardinality(q.pids) > 1 THEN ' +' || cardinality(q.pids) - 1 ELSE '' END || '; '
			ELSE '' END ||
			CASE WHEN s.blocks > 0 THEN 'blocks ' || s.blocks || '; ' ELSE '' END ||
			CASE WHEN s.silent > 0 THEN 'no answer from its host for ' || pgnetlat_age(s.silent) || '; '
				 WHEN s.state = 'sending' AND s.send_client_time >= 500 AND s.send_client_time >= s.send_time / 2
				 THEN 'client not reading: ' || pgnetlat_age(s.send_client_time) || ' of ' || pgnetlat_age(s.send_time) || '; '
				 WHEN s.state <> 'executing' OR s.blocked_by IS NOT NULL THEN ''
				 WHEN s.wait_event IS NULL
				 THEN CASE WHEN s.queued > s.server / 2 AND s.queued >= 500 THEN 'waiting for a CPU; ' ELSE '' END
				 WHEN s.wait_event IN ('SyncRep', 'WaitForStandbyConfirmation') THEN 'waiting for a standby; '
				 WHEN s.wait_event_type = 'Extension' AND (s.wait_event = 'Extension' OR s.wait_event ~ 'Fdw|FDW|^Dblink')
				 THEN 'waiting for another server; '
				 WHEN s.wait_event IN ('ClientRead', 'ClientWrite') THEN ''
				 ELSE s.wait_event || '; ' END ||
			CASE WHEN s.xact_age >= 10000 AND s.xact_age > 2 * s.age THEN 'xact ' || pgnetlat_age(s.xact_age) || '; ' ELSE '' END ||
			CASE WHEN s.state IN ('waiting', 'waiting in transaction', 'idle') AND s.query <> '' THEN 'after ' ELSE '' END AS text) lead
	 UNION ALL
	SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
		   CASE count(*) WHEN 1 THEN '1 session is' ELSE count(*) || ' sessions are' END ||
		   ' hidden; pg_read_all_stats shows ' || CASE count(*) WHEN 1 THEN 'it' ELSE 'them' END,
		   pgnetlat_now.width
	  FROM session s
	 WHERE s.hidden
	HAVING count(*) > 0
	 UNION ALL
	SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
		   i.client_sessions - i.counted_sessions || ' of ' || i.client_sessions ||
		   ' sessions have not loaded pgnetlat', pgnetlat_now.width
	  FROM pgnetlat_info() i
	 WHERE i.counted_sessions <= 0.9 * i.client_sessions
	OFFSET 0) l
	 ORDER BY l.pid IS NULL, l.blocks_age DESC NULLS LAST, l.stuck DESC, l.age DESC, l.pid;
END;

COMMENT ON FUNCTION pgnetlat_now(integer) IS
	'for interactive use: the other sessions that are not idle or block others, over the last 10 seconds, the costliest first; in psql no wider than width columns';

CREATE VIEW pgnetlat_now AS
SELECT * FROM pgnetlat_now();

COMMENT ON VIEW pgnetlat_now IS
	'for interactive use: the other sessions that are not idle or block others, over the last 10 seconds, the costliest first; at most 120 columns wide in psql, pgnetlat_now(160) more';
COMMENT ON COLUMN pgnetlat_now.pid IS 'process ID of the backend; NULL in the row that says how many sessions the caller may not see';
COMMENT ON COLUMN pgnetlat_now.client IS 'application_name, or the role if that is empty, and the address';
COMMENT ON COLUMN pgnetlat_now.state IS 'as in pgnetlat_sessions, and since when; waiting in transaction is called idle in transaction, as in pg_stat_activity';
COMMENT ON COLUMN pgnetlat_now.rate IS 'requests per second';
COMMENT ON COLUMN pgnetlat_now.rtt IS 'milliseconds: round-trip time; NULL on a Unix-domain socket';
COMMENT ON COLUMN pgnetlat_now.bar IS 'where the time that was neither idle nor pending went, in eighths: # server working, ! server waiting for a lock, a standby or another server, + server waiting for a CPU, = network, . client; NULL if there was none';
COMMENT ON COLUMN pgnetlat_now.doing IS 'the session that blocks this one (via: the waiting session between the two) and what the blocking one is doing; how many sessions queue behind this one, and how many it blocks; the age of its transaction, its wait event, and the beginning of its current or latest query';

GRANT SELECT ON pgnetlat_now TO PUBLIC;
