
-- ---------------------------------------------------------------------------
-- A guard for tests
-- ---------------------------------------------------------------------------

-- What was not counted cannot be vouched for, so it has rows, too.
CREATE FUNCTION pgnetlat_guard(
	IN repeats bigint DEFAULT 10,
	IN round_trips bigint DEFAULT 30,
	IN names text DEFAULT '%',
	OUT datname name,                          -- database; NULL in rows of what is not known
	OUT usename name,                          -- role
	OUT application_name text,                 -- name of the test; (other names) and (evicted) as in pgnetlat_clients: there it is not known
	OUT client_addr inet,                      -- address of the client; NULL on a Unix-domain socket
	OUT problem text,                          -- what is wrong, or why it is not known
	OUT repeats_max bigint,                    -- most repeats of one statement in one burst
	OUT round_trips_max bigint,                -- most round trips of a transaction block
	OUT queryid bigint,                        -- the repeated statement, if it was repeated too often
	OUT query text)                            -- its text, where pg_stat_statements has it and the caller may read it
RETURNS SETOF record
LANGUAGE sql VOLATILE PARALLEL RESTRICTED COST 100000 ROWS 20
BEGIN ATOMIC
	WITH c AS MATERIALIZED (
		SELECT o.*, o.application_name IN ('(other names)', '(evicted)') AS is_sum
		  FROM pgnetlat_clients() o
		 WHERE o.application_name <> '(failed)'
		   AND (o.application_name LIKE pgnetlat_guard.names OR o.application_name IN ('(other names)', '(evicted)'))),
	exceeding AS MATERIALIZED (
		SELECT c.*, coalesce(c.repeats_max > pgnetlat_guard.repeats, false) AS repeats_too_often
		  FROM c
		 WHERE c.repeats_max > pgnetlat_guard.repeats OR c.round_trips_max > pgnetlat_guard.round_trips),
	texts AS MATERIALIZED (
		SELECT t.queryid, min(t.query) AS query
		  FROM pgnetlat_query_texts(ARRAY(SELECT e.repeats_max_queryid FROM exceeding e WHERE e.repeats_too_often)) t
		 GROUP BY t.queryid),
	unknown (problem) AS (
		SELECT format('no statement of %s has a query identifier, so repeats are not known',
					  CASE count(*) WHEN 1 THEN min(c.application_name) ELSE pgnetlat_count_text(count(*), 'application', 'applications') END)
		  FROM c WHERE c.statements > 0 AND c.identified_statements = 0 AND c.application_name <> '(evicted)' HAVING count(*) > 0
		 UNION ALL
		SELECT format('%s not counted: pgnetlat.enabled was off', pgnetlat_count_text(count(*), 'application is', 'applications are'))
		  FROM c WHERE c.total_time = 0 AND c.sessions + c.ended_sessions > 0 HAVING count(*) > 0
		 UNION ALL
		SELECT format('no session with a name like %L has completed a request', pgnetlat_guard.names)
		 WHERE NOT EXISTS (SELECT FROM c WHERE NOT c.is_sum AND (c.requests > 0 OR c.requests IS NULL))
		 UNION ALL
		SELECT format('%s to other roles: a member of pg_read_all_stats can see them', pgnetlat_count_text(count(*), 'group belongs', 'groups belong'))
		  FROM c CROSS JOIN pgnetlat_info() i
		 WHERE c.requests IS NULL AND (c.application_name <> '(evicted)' OR i.clients_evicted > 0) HAVING count(*) > 0
		 UNION ALL
		SELECT format('%s not counted: connected before the library was loaded', pgnetlat_count_text(count(*), 'session is', 'sessions are'))
		  FROM pgnetlat_sessions() s
		 WHERE s.total_time IS NULL AND s.stats_since IS NULL AND s.application_name LIKE pgnetlat_guard.names HAVING count(*) > 0)
	SELECT e.datname, e.usename, e.application_name, e.client_addr,
		   concat_ws('; ',
					 CASE WHEN e.repeats_too_often
						  THEN format('%s of a statement in one burst', pgnetlat_count_text(e.repeats_max, 'repeat', 'repeats')) END,
					 CASE WHEN e.round_trips_max > pgnetlat_guard.round_trips
						  THEN format('%s of a transaction', pgnetlat_count_text(e.round_trips_max, 'round trip', 'round trips')) END,
					 CASE WHEN e.is_sum THEN 'the name had to make room for others' END),
		   e.repeats_max, e.round_trips_max, CASE WHEN e.repeats_too_often THEN e.repeats_max_queryid END, t.query
	  FROM exceeding e
	  LEFT JOIN texts t ON t.queryid = e.repeats_max_queryid AND e.repeats_too_often
	 UNION ALL
	SELECT NULL, NULL, NULL, NULL, u.problem, NULL, NULL, NULL, NULL FROM unknown u
	 ORDER BY 3 NULLS FIRST, 5;
END;

COMMENT ON FUNCTION pgnetlat_guard(bigint, bigint, text) IS
	'for tests: the applications with names like the pattern that, since their stats_since, have repeated one statement in one burst more than repeats times, or have needed more than round_trips round trips in a transaction block; NULL: no limit; what was not counted has rows as well';

CREATE FUNCTION pgnetlat_guard_raise(message text, detail text)
RETURNS bigint
LANGUAGE plpgsql VOLATILE
AS $$BEGIN
	RAISE EXCEPTION USING MESSAGE = message, DETAIL = detail,
		HINT = 'See the figures with SELECT * FROM pgnetlat_guard().  To count from zero again, SELECT pgnetlat_reset_clients().';
END$$;

COMMENT ON FUNCTION pgnetlat_guard_raise(text, text) IS 'internal: raises an error';

CREATE FUNCTION pgnetlat_guard_check(repeats bigint DEFAULT 10, round_trips bigint DEFAULT 30, names text DEFAULT '%')
RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL RESTRICTED COST 100000
BEGIN ATOMIC
	SELECT CASE WHEN count(*) > 0
				THEN pgnetlat_guard_raise(
						concat_ws(' and ',
								  CASE WHEN count(g.application_name) > 0
									   THEN pgnetlat_count_text(count(g.application_name), 'application makes', 'applications make') || ' too many round trips' END,
								  CASE WHEN count(g.application_name) < count(*) THEN 'not everything was counted' END),
						string_agg(concat(g.application_name || ': ', g.problem,
										  ': ' || coalesce(left(pgnetlat_one_line(g.query), 400), 'query identifier ' || g.queryid)), E'\n'))
				ELSE (SELECT count(*) FROM pgnetlat_clients() c WHERE c.application_name LIKE $3 AND c.requests > 0) END
	  FROM pgnetlat_guard($1, $2, $3) g;
END;

COMMENT ON FUNCTION pgnetlat_guard_check(bigint, bigint, text) IS
	'for tests: raises an error with the rows of pgnetlat_guard() if there are any, otherwise returns the number of client groups that were checked';
