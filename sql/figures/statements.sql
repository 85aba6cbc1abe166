
-- ---------------------------------------------------------------------------
-- Statements: what each of them has cost
-- ---------------------------------------------------------------------------

CREATE FUNCTION pgnetlat_statements(
	OUT userid oid,
	OUT dbid oid,
	OUT queryid bigint,
	OUT calls bigint,
	OUT rows bigint,
	OUT exec_time double precision,
	OUT send_time double precision,
	OUT recv_time double precision,
	OUT network_time double precision,
	OUT client_time double precision,
	OUT in_xact_wait_time double precision,
	OUT bytes_sent bigint,
	OUT repeats bigint,
	OUT repeat_network_time double precision,
	OUT stats_since timestamptz,
	@OUT executing@
	OUT window_time double precision)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED COST 1000 ROWS 5000;

COMMENT ON FUNCTION pgnetlat_statements() IS
	'time in milliseconds by statement, with waits charged to the statement before them; userid, dbid and queryid are NULL in the row of evicted statements';

CREATE VIEW pgnetlat_statements AS
SELECT * FROM pgnetlat_statements();

COMMENT ON VIEW pgnetlat_statements IS
	'where time went, by role, database and query identifier, with waits charged to the statement before them; without pg_read_all_stats, other roles'' statements have only userid and dbid';
COMMENT ON COLUMN pgnetlat_statements.userid IS 'OID of the role that ran the statement; NULL in the row of evicted statements';
COMMENT ON COLUMN pgnetlat_statements.dbid IS 'OID of the database; NULL in the row of evicted statements';
COMMENT ON COLUMN pgnetlat_statements.queryid IS 'query identifier; NULL in the row of evicted statements, and for exchanges without one';
COMMENT ON COLUMN pgnetlat_statements.calls IS 'executions completed, or first fetched from if their portal was suspended';
COMMENT ON COLUMN pgnetlat_statements.rows IS 'rows returned or affected';
COMMENT ON COLUMN pgnetlat_statements.exec_time IS 'milliseconds: time in its executions in which the server was working';
COMMENT ON COLUMN pgnetlat_statements.send_time IS 'milliseconds: time in its executions spent handing bytes to the socket';
COMMENT ON COLUMN pgnetlat_statements.recv_time IS 'milliseconds: time in its executions spent waiting for more data from the client; exact up to the first data of a COPY, sampled afterwards';
COMMENT ON COLUMN pgnetlat_statements.network_time IS 'milliseconds: round trips after the statement, and after exchanges that only prepared it';
COMMENT ON COLUMN pgnetlat_statements.client_time IS 'milliseconds: the rest of the waits of network_time: the client was thinking';
COMMENT ON COLUMN pgnetlat_statements.in_xact_wait_time IS 'milliseconds: part of network_time + client_time spent inside a transaction';
COMMENT ON COLUMN pgnetlat_statements.bytes_sent IS 'bytes of the statement''s responses';
COMMENT ON COLUMN pgnetlat_statements.repeats IS 'executions that repeat an earlier one in the same burst; outside a transaction block, only those of a loop';
COMMENT ON COLUMN pgnetlat_statements.repeat_network_time IS 'milliseconds: round trips of these repeats, and of preparing the statement again';
COMMENT ON COLUMN pgnetlat_statements.stats_since IS 'when counting began for this row';
@COMMENT executing OF pgnetlat_statements@
COMMENT ON COLUMN pgnetlat_statements.window_time IS 'milliseconds since stats_since';

CREATE FUNCTION pgnetlat_statements_last(duration interval DEFAULT '1 min')
RETURNS SETOF pgnetlat_statements
AS 'MODULE_PATHNAME', 'pgnetlat_statements'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED COST 1000 ROWS 5000;

COMMENT ON FUNCTION pgnetlat_statements_last(interval) IS
	'pgnetlat_statements over the given time up to now, at most 15 minutes, without evicted statements: counts and times since stats_since, which was window_time milliseconds ago; the parts of exec_time are NULL';

-- pg_stat_statements may live in any schema, or nowhere, so the query is put together here,
-- with qualified names: the caller's search_path is not ours.  It reads all texts at each call,
-- also for a few statements, and fails if this database's encoding cannot express one of them.
CREATE FUNCTION pgnetlat_recorded_texts(IN queryids bigint[], OUT userid oid, OUT dbid oid, OUT queryid bigint, OUT query text)
RETURNS SETOF record
LANGUAGE plpgsql VOLATILE PARALLEL RESTRICTED COST 100000 ROWS 5000
AS $$
DECLARE
	texts text;
BEGIN
	SELECT pg_catalog.format('%I.pg_stat_statements', n.nspname) INTO texts
	  FROM pg_catalog.pg_extension e
	  JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) e.extnamespace
	 WHERE e.extname OPERATOR(pg_catalog.=) 'pg_stat_statements'
	   AND pg_catalog.current_setting('pg_stat_statements.max', true) IS NOT NULL;
	IF texts IS NOT NULL AND (pg_catalog.cardinality(queryids) OPERATOR(pg_catalog.=) 0) IS NOT TRUE THEN
		RETURN QUERY EXECUTE pg_catalog.format(
			'SELECT s.userid, s.dbid, s.queryid, pg_catalog.min(s.query)
			   FROM %s s
			  WHERE s.queryid IS NOT NULL AND ($1 IS NULL OR s.queryid OPERATOR(pg_catalog.=) ANY ($1))
			  GROUP BY s.userid, s.dbid, s.queryid', texts) USING queryids;
	END IF;
EXCEPTION WHEN insufficient_privilege OR object_not_in_prerequisite_state OR character_not_in_repertoire
			OR untranslatable_character THEN
	RETURN;
END
$$;

COMMENT ON FUNCTION pgnetlat_recorded_texts(bigint[]) IS
	'internal: the texts of the statements that pg_stat_statements has and the caller may read; no rows without it, and if this database''s encoding cannot express one of them';

-- All SETs of application_name have one identifier (src/capture/statement_hooks.c).
CREATE FUNCTION pgnetlat_query_texts(IN queryids bigint[] DEFAULT NULL, OUT userid oid, OUT dbid oid, OUT queryid bigint, OUT query text)
RETURNS SETOF record
LANGUAGE sql VOLATILE PARALLEL RESTRICTED COST 100000 ROWS 5000
BEGIN ATOMIC
	SELECT t.userid, t.dbid, t.queryid, t.query FROM pgnetlat_recorded_texts(queryids) t WHERE t.queryid <> 6000294846852582725
	 UNION ALL
	SELECT s.userid, s.dbid, s.queryid, 'SET application_name' FROM pgnetlat_statements() s
	 WHERE s.queryid = 6000294846852582725 AND (queryids IS NULL OR 6000294846852582725 = ANY (queryids));
END;

COMMENT ON FUNCTION pgnetlat_query_texts(bigint[]) IS
	'the texts of the statements with these query identifiers (NULL: of all statements), where pg_stat_statements has them and the caller may read them; hardly any if this database''s encoding cannot express one of them';

CREATE FUNCTION pgnetlat_query_text(userid oid, dbid oid, queryid bigint)
RETURNS text
LANGUAGE sql VOLATILE PARALLEL RESTRICTED COST 100000
BEGIN ATOMIC
	SELECT t.query FROM pgnetlat_query_texts(ARRAY[pgnetlat_query_text.queryid]) t
	 WHERE (t.userid, t.dbid, t.queryid) = (pgnetlat_query_text.userid, pgnetlat_query_text.dbid, pgnetlat_query_text.queryid);
END;

COMMENT ON FUNCTION pgnetlat_query_text(oid, oid, bigint) IS
	'the text of a statement where pg_stat_statements has it and the caller may read it; NULL elsewhere';

-- Statements for people: names instead of OIDs, rounded figures, and texts.
CREATE FUNCTION pgnetlat_top_statements(
	IN max_rows integer DEFAULT 20,
	OUT database name,
	OUT role name,
	OUT queryid bigint,
	OUT calls bigint,
	OUT repeats bigint,
	OUT exec_time double precision,
	OUT send_time double precision,
	OUT network_time double precision,
	OUT client_time double precision,
	OUT query text)
RETURNS SETOF record
LANGUAGE sql VOLATILE PARALLEL RESTRICTED COST 1000 ROWS 20
BEGIN ATOMIC
	SELECT d.datname, CASE WHEN s.userid IS NOT NULL THEN pg_get_userbyid(s.userid) END, s.queryid, s.calls, s.repeats,
		   round(s.exec_time::numeric, 1)::float8, round(s.send_time::numeric, 1)::float8,
		   round(s.network_time::numeric, 1)::float8, round(s.client_time::numeric, 1)::float8,
		   CASE WHEN s.calls IS NULL THEN NULL
				WHEN s.userid IS NULL THEN '(evicted statements)'
				WHEN s.queryid IS NULL THEN '(without query identifier)'
				ELSE coalesce(regexp_replace(t.query, '[[:space:]]+', ' ', 'g'),
							  concat('queryid ', s.queryid, ' (pg_stat_statements shows no text for it)')) END
	  FROM (SELECT * FROM pgnetlat_statements() o
			 ORDER BY o.network_time + o.send_time DESC NULLS LAST, o.queryid
			 LIMIT max_rows) s
	  LEFT JOIN pg_database d ON d.oid = s.dbid
	  LEFT JOIN pgnetlat_query_texts() t ON (t.userid, t.dbid, t.queryid) = (s.userid, s.dbid, s.queryid)
	 ORDER BY s.network_time + s.send_time DESC NULLS LAST, s.queryid;
END;

COMMENT ON FUNCTION pgnetlat_top_statements(integer) IS
	'for interactive use: this many statements (NULL: all), those with the most network and send time; columns as in the view of this name';

CREATE VIEW pgnetlat_top_statements AS
SELECT * FROM pgnetlat_top_statements();

COMMENT ON VIEW pgnetlat_top_statements IS
	'for interactive use: the 20 statements with the most network and send time, with names, rounded times, and the text where pg_stat_statements has it';
COMMENT ON COLUMN pgnetlat_top_statements.database IS 'name of the database; NULL in the row of evicted statements';
COMMENT ON COLUMN pgnetlat_top_statements.role IS 'name of the role that ran the statement; NULL in the row of evicted statements';
COMMENT ON COLUMN pgnetlat_top_statements.queryid IS 'query identifier; NULL in the row of evicted statements, and for exchanges without one';
COMMENT ON COLUMN pgnetlat_top_statements.calls IS 'executions completed, or first fetched from if their portal was suspended';
COMMENT ON COLUMN pgnetlat_top_statements.repeats IS 'executions that repeat an earlier one in the same burst; outside a transaction block, only those of a loop';
COMMENT ON COLUMN pgnetlat_top_statements.exec_time IS 'milliseconds: time in its executions in which the server was working';
COMMENT ON COLUMN pgnetlat_top_statements.send_time IS 'milliseconds: time in its executions spent handing bytes to the socket';
COMMENT ON COLUMN pgnetlat_top_statements.network_time IS 'milliseconds: round trips after the statement, and after exchanges that only prepared it';
COMMENT ON COLUMN pgnetlat_top_statements.client_time IS 'milliseconds: the rest of the waits of network_time: the client was thinking';
COMMENT ON COLUMN pgnetlat_top_statements.query IS 'text of the statement, on one line; without it, the query identifier; NULL where the caller may not see the statement';

GRANT SELECT ON pgnetlat_statements, pgnetlat_top_statements TO PUBLIC;
