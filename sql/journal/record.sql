
-- Accounts for the journal: with rounded figures; and without what is zero or missing, can
-- be derived, or nobody asks for later.
CREATE FUNCTION pgnetlat_journal_rounded(account jsonb)
RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
	SELECT coalesce(jsonb_object_agg(a.key, CASE WHEN jsonb_typeof(a.value) = 'number'
											THEN to_jsonb(trim_scale(round(f.figure, CASE WHEN f.figure < 100 THEN 2 ELSE 0 END)))
											ELSE a.value END), '{}')
	  FROM jsonb_each(account) a,
		   LATERAL (SELECT CASE WHEN jsonb_typeof(a.value) = 'number' THEN (a.value #>> '{}')::numeric END AS figure) f;
END;

CREATE FUNCTION pgnetlat_journal_account(account jsonb)
RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
	SELECT coalesce(jsonb_object_agg(a.key, a.value), '{}')
	  FROM jsonb_each(pgnetlat_journal_rounded(account)) a
	 WHERE a.value NOT IN ('null', '0')
	   AND a.key <> ALL (ARRAY['datid', 'usesysid', 'userid', 'dbid', 'stats_since', 'window_time', 'total_time', 'pending_time',
						 'server_share', 'network_share', 'client_share', 'ended_sessions', 'identified_statements', 'pipelined', 'packets_sent', 'packets_received',
						 'bytes_received', 'connect_round_trips', 'connect_tls_time', 'connect_auth_time', 'run_queue_wait_time']);
END;

COMMENT ON FUNCTION pgnetlat_journal_rounded(jsonb) IS 'internal: an account with rounded figures';
COMMENT ON FUNCTION pgnetlat_journal_account(jsonb) IS 'internal: an account as the journal has it';

-- What the journal gets to know now.
CREATE FUNCTION pgnetlat_journal_look(
	IN at timestamptz,
	OUT window_time double precision,
	OUT findings jsonb,
	OUT clients jsonb,
	OUT statements jsonb,
	OUT report jsonb)
LANGUAGE sql VOLATILE COST 200000
SET jit = off
BEGIN ATOMIC
	WITH earlier AS MATERIALIZED (
		SELECT j.at, j.findings, row_number() OVER (ORDER BY j.id DESC) AS back
		  FROM (SELECT o.at, o.findings, o.id FROM pgnetlat_journal o ORDER BY o.id DESC LIMIT 4) j),
	w AS MATERIALIZED (
		SELECT coalesce((SELECT pgnetlat_journal_look.at - e.at FROM earlier e
						  WHERE e.back = 1 AND pgnetlat_journal_look.at - e.at BETWEEN '1 s' AND '15 min'), '1 min') AS duration),
	s AS MATERIALIZED (
		SELECT o.pid, o.blocked_by, o.datid, o.usesysid, o.application_name, o.client_addr,
			   concat(coalesce(nullif(o.application_name, ''), o.usename), '@' || host(o.client_addr)) AS name
		  FROM pgnetlat_sessions() o),
	f AS MATERIALIZED (
		SELECT d.*, v.victims, v.holder_query
		  FROM w, pgnetlat_diagnose(w.duration) WITH ORDINALITY d (severity, subject_kind, subject, verdict, evidence, advice, lost_sessions,
				saving_sessions, saving_share, pid, queryid, usesysid, usename, datid, datname, application_name, client_addr, place)
		  LEFT JOIN LATERAL (
			SELECT string_agg(format('%s (%s)', x.name, x.number), ', ' ORDER BY x.number DESC, x.name) AS victims,
				   min(pgnetlat_query_start(x.query)) AS holder_query
			  FROM (SELECT s.name, count(*) AS number, min(a.query) AS query
					  FROM s
					  LEFT JOIN s h ON h.pid = s.blocked_by
					  LEFT JOIN pg_stat_activity a ON a.pid = s.blocked_by
					 WHERE s.blocked_by = coalesce(d.pid, CASE WHEN d.subject_kind = 'client' THEN h.pid ELSE 0 END)
					   AND (d.subject_kind <> 'client'
							OR (h.datid, h.usesysid, h.application_name) = (d.datid, d.usesysid, d.application_name)
							   AND h.client_addr IS NOT DISTINCT FROM d.client_addr)
					 GROUP BY s.name) x
			 WHERE x.number > 0) v ON d.verdict = 'blocks others'
		 WHERE d.severity IS NOT NULL AND d.place <= 30),
	c AS MATERIALIZED (
		SELECT o.* FROM w, pgnetlat_clients_last(w.duration) o),
	st AS MATERIALIZED (
		SELECT o.*, o.exec_time + o.send_time + o.recv_time + o.network_time AS time
		  FROM w, pgnetlat_statements_last(w.duration) o
		 WHERE o.queryid IS NOT NULL AND o.calls IS NOT NULL
		 ORDER BY time DESC LIMIT 20)
	SELECT (SELECT coalesce(max(c.window_time), 0) FROM c),
		   (SELECT coalesce(jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
					'severity', f.severity, 'verdict', f.verdict, 'subject', f.subject, 'subject_kind', f.subject_kind,
					'lost_sessions', round(f.lost_sessions::numeric, 3), 'saving_sessions', round(f.saving_sessions::numeric, 3),
					'saving_share', round(f.saving_share::numeric, 3), 'evidence', f.evidence, 'advice', f.advice, 'pid', f.pid,
					'queryid', f.queryid::text, 'usename', f.usename, 'datname', f.datname, 'application_name', f.application_name,
					'client_addr', f.client_addr, 'victims', f.victims, 'holder_query', f.holder_query)) ORDER BY f.place), '[]')
			  FROM f),
		   (SELECT coalesce(jsonb_agg(pgnetlat_journal_account(to_jsonb(t) - 'time') ORDER BY t.time DESC), '[]')
			  FROM (SELECT c.*, c.total_time - c.idle_time - c.pending_time AS time FROM c
					 WHERE c.total_time > 0 ORDER BY time DESC, c.requests DESC LIMIT 20) t),
		   (SELECT coalesce(jsonb_agg(pgnetlat_journal_account(to_jsonb(st) - 'time') || jsonb_build_object(
					'queryid', st.queryid::text, 'datname', d.datname, 'usename', u.rolname) ORDER BY st.time DESC), '[]')
			  FROM st
			  LEFT JOIN pg_database d ON d.oid = st.dbid
			  LEFT JOIN pg_roles u ON u.oid = st.userid),
		   CASE WHEN NOT EXISTS (SELECT FROM pgnetlat_journal j
								  WHERE j.report IS NOT NULL AND j.at > pgnetlat_journal_look.at - interval '14.5 min'
									AND j.at <= pgnetlat_journal_look.at)
				  OR EXISTS (SELECT FROM f
							  WHERE f.severity IN ('outage', 'loss')
								AND EXISTS (SELECT FROM earlier e WHERE e.back = 1
											   AND e.findings @> jsonb_build_array(jsonb_build_object('verdict', f.verdict, 'subject', f.subject)))
								AND NOT EXISTS (SELECT FROM earlier e WHERE e.back > 1
												   AND e.findings @> jsonb_build_array(jsonb_build_object('verdict', f.verdict, 'subject', f.subject))))
		   THEN (SELECT (r.report - 'histograms' - 'settings') || jsonb_build_object(
						'clients', (SELECT jsonb_agg(pgnetlat_journal_rounded(g.account) ORDER BY g.place)
									  FROM jsonb_path_query(r.report, '$.clients[*] ? (@ != null)') WITH ORDINALITY g (account, place)),
						'history', jsonb_path_query_array(r.report, '$.history[last - 89 to last] ? (@ != null)'))
				   FROM pgnetlat_report_data((SELECT w.duration FROM w)) AS r (report)) END;
END;

COMMENT ON FUNCTION pgnetlat_journal_look(timestamptz) IS 'internal: what the next row of pgnetlat_journal gets';

-- Writes a row, as the owner of the tables.  A caller without the owner's rights can only
-- add a row about now.  It waits for no lock, so that it cannot deadlock with DROP EXTENSION,
-- and DDL does not queue behind it.
CREATE FUNCTION pgnetlat_journal_write(
	at timestamptz, window_time double precision, findings jsonb, clients jsonb, statements jsonb, report jsonb)
RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	segments CONSTANT integer := 8;
	keep CONSTANT interval := coalesce(nullif(current_setting('pgnetlat.journal_keep', true), ''), '7d');
	size CONSTANT bigint := pg_size_bytes(coalesce(nullif(current_setting('pgnetlat.journal_size', true), ''), '64MB'));
	home text;
	current_segment integer;
	last_id bigint;
	first_at timestamptz;
	done boolean;
BEGIN
	IF abs(extract(epoch FROM clock_timestamp() - at)) > 60 AND NOT pg_has_role(session_user, current_user, 'MEMBER') THEN
		RAISE EXCEPTION 'permission denied to write about another time than now' USING ERRCODE = 'insufficient_privilege';
	END IF;
	SELECT e.extnamespace::regnamespace::text INTO STRICT home FROM pg_extension e WHERE e.extname = 'pgnetlat';

	-- one writer at a time
	EXECUTE format('LOCK TABLE ONLY %s.pgnetlat_journal_rows IN SHARE UPDATE EXCLUSIVE MODE NOWAIT', home);
	EXECUTE format('LOCK TABLE %s.pgnetlat_journal_rows IN ROW EXCLUSIVE MODE NOWAIT', home);
	EXECUTE format('SELECT EXISTS (SELECT FROM %s.pgnetlat_journal_rows r WHERE r.at >= $1 AND r.at < $1 + interval ''1 min'')', home)
		INTO done USING date_trunc('minute', at, 'UTC');
	IF done THEN
		RETURN false;
	END IF;
	EXECUTE format('SELECT r.segment, r.id, (SELECT o.at FROM %1$s.pgnetlat_journal_rows o WHERE o.segment = r.segment ORDER BY o.id LIMIT 1)
					  FROM %1$s.pgnetlat_journal_rows r ORDER BY r.id DESC LIMIT 1', home)
		INTO current_segment, last_id, first_at;
	current_segment := coalesce(current_segment, 1);
	IF at - first_at >= keep / (segments - 1)
		OR pg_total_relation_size(format('%s.pgnetlat_journal_%s', home, current_segment)) >= size / segments
	THEN
		BEGIN
			EXECUTE format('LOCK TABLE %s.pgnetlat_journal_%s IN ACCESS EXCLUSIVE MODE NOWAIT', home, current_segment % segments + 1);
			EXECUTE format('TRUNCATE %s.pgnetlat_journal_%s', home, current_segment % segments + 1);
			current_segment := current_segment % segments + 1;
		EXCEPTION WHEN lock_not_available THEN
			-- somebody reads it, so the current segment grows
		END;
	END IF;
	EXECUTE format('INSERT INTO %s.pgnetlat_journal_rows VALUES ($1, $2, $3, $4, $5, $6, $7, $8)', home)
		USING current_segment, coalesce(last_id, 0) + 1, at, window_time, findings, clients, statements, report;
	RETURN true;
EXCEPTION WHEN lock_not_available THEN
	RETURN false;
END
$$;

COMMENT ON FUNCTION pgnetlat_journal_write(timestamptz, double precision, jsonb, jsonb, jsonb, jsonb) IS
	'internal: writes a row of pgnetlat_journal';

CREATE FUNCTION pgnetlat_record(at timestamptz DEFAULT pg_catalog.clock_timestamp())
RETURNS boolean
LANGUAGE plpgsql VOLATILE COST 200000
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '500ms'	-- less than deadlock_timeout: DROP EXTENSION is not the victim
AS $$
DECLARE
	home text;
	done boolean;
	look record;
BEGIN
	IF at IS NULL OR NOT isfinite(at) OR current_setting('transaction_read_only')::boolean THEN
		RETURN false;
	END IF;
	SELECT e.extnamespace::regnamespace::text INTO STRICT home FROM pg_extension e WHERE e.extname = 'pgnetlat';
	EXECUTE format('SELECT EXISTS (SELECT FROM %s.pgnetlat_journal j WHERE j.at >= $1 AND j.at < $1 + interval ''1 min'')', home)
		INTO done USING date_trunc('minute', at, 'UTC');
	IF NOT done THEN
		-- two statements: a table that a statement reads cannot be truncated meanwhile
		EXECUTE format('SELECT * FROM %s.pgnetlat_journal_look($1)', home) INTO STRICT look USING at;
		EXECUTE format('SELECT %s.pgnetlat_journal_write($1, $2, $3, $4, $5, $6)', home)
			INTO STRICT done USING at, look.window_time, look.findings, look.clients, look.statements, look.report;
		RETURN done;
	END IF;
	RETURN false;
EXCEPTION WHEN lock_not_available THEN
	RETURN false;
END
$$;

COMMENT ON FUNCTION pgnetlat_record(timestamptz) IS
	'writes a row of pgnetlat_journal about the time since the previous row, with what the caller may see, at most one row in a minute; returns false if that minute has a row, a lock is in the way, or the server is read-only; members of pg_read_all_stats may call it, but only the owner with another time than now';

REVOKE ALL ON FUNCTION pgnetlat_record(timestamptz),
	pgnetlat_journal_write(timestamptz, double precision, jsonb, jsonb, jsonb, jsonb) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION pgnetlat_record(timestamptz),
	pgnetlat_journal_write(timestamptz, double precision, jsonb, jsonb, jsonb, jsonb) TO pg_read_all_stats;
