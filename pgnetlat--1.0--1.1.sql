/* pgnetlat--1.0--1.1.sql */

-- complain if script is sourced in psql, rather than via ALTER EXTENSION
\echo Use "ALTER EXTENSION pgnetlat UPDATE TO '1.1'" to load this file. \quit

-- Conventions.  Users' views over ours, and grants on ours, survive: views are
-- altered and replaced, never dropped, and new columns come last.  A function
-- whose columns change is renamed to ..._1_0, created anew, and dropped when
-- its view no longer needs it, at the end of this file.  See src/rows.h for
-- the names of C symbols.

-- The library that the server has loaded must know the functions below; one
-- on disk that is newer waits for a restart.  Not loaded at all is all right:
-- that is how a dump is restored where nobody has set up the server yet.
DO $$
DECLARE
	loaded text;
BEGIN
	BEGIN
		loaded := (SELECT i.version FROM pgnetlat_info() i);
	EXCEPTION WHEN object_not_in_prerequisite_state THEN
		RETURN;
	END;
	IF pg_catalog.string_to_array(loaded, '.')::pg_catalog.int4[]
	   OPERATOR(pg_catalog.<) '{1,1}'::pg_catalog.int4[] THEN
		RAISE EXCEPTION 'the server has loaded version % of the library of extension "pgnetlat", which is too old for version 1.1',
			loaded
			USING ERRCODE = 'object_not_in_prerequisite_state',
				  HINT = 'Install the library of version 1.1, restart the server, and try again.';
	END IF;
END
$$;

-- ---------------------------------------------------------------------------
-- Sessions
-- ---------------------------------------------------------------------------

ALTER FUNCTION pgnetlat_sessions() RENAME TO pgnetlat_sessions_1_0;

CREATE FUNCTION pgnetlat_sessions(
	OUT pid integer,
	OUT datid oid,
	OUT usesysid oid,
	OUT application_name text,
	OUT client_addr inet,
	OUT client_port integer,
	OUT backend_start timestamptz,
	OUT transport text,
	OUT state text,
	OUT state_change timestamptz,
	OUT stats_since timestamptz,
	OUT requests bigint,
	OUT statements bigint,
	OUT transactions bigint,
	OUT pipelined bigint,
	OUT round_trips bigint,
	OUT total_time double precision,
	OUT exec_time double precision,
	OUT send_time double precision,
	OUT recv_time double precision,
	OUT network_time double precision,
	OUT client_time double precision,
	OUT idle_time double precision,
	OUT pending_time double precision,
	OUT in_xact_wait_time double precision,
	OUT send_blocked_time double precision,
	OUT send_client_time double precision,
	OUT server_share double precision,
	OUT network_share double precision,
	OUT client_share double precision,
	OUT rtt double precision,
	OUT srtt double precision,
	OUT rtt_at timestamptz,
	OUT retransmits bigint,
	OUT bytes_sent bigint,
	OUT bytes_received bigint,
	OUT packets_sent bigint,
	OUT packets_received bigint,
	OUT run_queue_time double precision)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pgnetlat_sessions_1_1'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED COST 100 ROWS 100;

COMMENT ON FUNCTION pgnetlat_sessions() IS
	'account of every connected client backend, times in milliseconds; NULL where the caller may not see it';

ALTER VIEW pgnetlat_sessions RENAME COLUMN exec_share TO server_share;

CREATE OR REPLACE VIEW pgnetlat_sessions AS
SELECT s.pid,
	   s.datid,
	   d.datname,
	   s.usesysid,
	   u.rolname AS usename,
	   s.application_name,
	   s.client_addr,
	   s.client_port,
	   s.backend_start,
	   s.transport,
	   s.state,
	   s.state_change,
	   s.stats_since,
	   s.requests,
	   s.statements,
	   s.transactions,
	   s.pipelined,
	   s.round_trips,
	   s.total_time,
	   s.exec_time,
	   s.send_time,
	   s.recv_time,
	   s.network_time,
	   s.client_time,
	   s.idle_time,
	   s.pending_time,
	   s.in_xact_wait_time,
	   s.send_blocked_time,
	   s.send_client_time,
	   s.server_share,
	   s.network_share,
	   s.client_share,
	   s.rtt,
	   s.srtt,
	   s.rtt_at,
	   s.retransmits,
	   s.bytes_sent,
	   s.bytes_received,
	   s.packets_sent,
	   s.packets_received,
	   s.run_queue_time
  FROM pgnetlat_sessions() s
  LEFT JOIN pg_catalog.pg_database d ON d.oid = s.datid
  LEFT JOIN pg_catalog.pg_roles u ON u.oid = s.usesysid;

-- ---------------------------------------------------------------------------
-- Aggregates: by client, over time
-- ---------------------------------------------------------------------------

ALTER FUNCTION pgnetlat_clients() RENAME TO pgnetlat_clients_1_0;

CREATE FUNCTION pgnetlat_clients(
	OUT datid oid,
	OUT usesysid oid,
	OUT application_name text,
	OUT client_addr inet,
	OUT sessions bigint,
	OUT ended_sessions bigint,
	OUT requests bigint,
	OUT statements bigint,
	OUT transactions bigint,
	OUT pipelined bigint,
	OUT round_trips bigint,
	OUT total_time double precision,
	OUT exec_time double precision,
	OUT send_time double precision,
	OUT recv_time double precision,
	OUT network_time double precision,
	OUT client_time double precision,
	OUT idle_time double precision,
	OUT pending_time double precision,
	OUT in_xact_wait_time double precision,
	OUT send_blocked_time double precision,
	OUT send_client_time double precision,
	OUT server_share double precision,
	OUT network_share double precision,
	OUT client_share double precision,
	OUT rtt double precision,
	OUT retransmits bigint,
	OUT bytes_sent bigint,
	OUT bytes_received bigint,
	OUT packets_sent bigint,
	OUT packets_received bigint,
	OUT stats_since timestamptz)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pgnetlat_clients_1_1'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED COST 1000 ROWS 100;

COMMENT ON FUNCTION pgnetlat_clients() IS
	'account by database, role, application and address, over live and ended sessions; usesysid is NULL in a database''s row of evicted groups';

ALTER VIEW pgnetlat_clients RENAME COLUMN exec_share TO server_share;

CREATE OR REPLACE VIEW pgnetlat_clients AS
SELECT c.datid,
	   d.datname,
	   c.usesysid,
	   u.rolname AS usename,
	   c.application_name,
	   c.client_addr,
	   c.sessions,
	   c.ended_sessions,
	   c.requests,
	   c.statements,
	   c.transactions,
	   c.pipelined,
	   c.round_trips,
	   c.total_time,
	   c.exec_time,
	   c.send_time,
	   c.recv_time,
	   c.network_time,
	   c.client_time,
	   c.idle_time,
	   c.pending_time,
	   c.in_xact_wait_time,
	   c.send_blocked_time,
	   c.send_client_time,
	   c.server_share,
	   c.network_share,
	   c.client_share,
	   c.rtt,
	   c.retransmits,
	   c.bytes_sent,
	   c.bytes_received,
	   c.packets_sent,
	   c.packets_received,
	   c.stats_since
  FROM pgnetlat_clients() c
  LEFT JOIN pg_catalog.pg_database d ON d.oid = c.datid
  LEFT JOIN pg_catalog.pg_roles u ON u.oid = c.usesysid;

CREATE OR REPLACE FUNCTION pgnetlat_histogram(
	OUT datid oid,
	OUT usesysid oid,
	OUT application_name text,
	OUT client_addr inet,
	OUT metric text,
	OUT le text,
	OUT bucket bigint,
	OUT sum double precision,
	OUT count bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pgnetlat_histogram_1_1'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED COST 1000 ROWS 10000;

-- In the target list, so that nobody collects its rows: they are many.
CREATE OR REPLACE VIEW pgnetlat_histogram AS
SELECT (h.r).datid,
	   d.datname,
	   (h.r).usesysid,
	   u.rolname AS usename,
	   (h.r).application_name,
	   (h.r).client_addr,
	   (h.r).metric,
	   (h.r).le,
	   (h.r).bucket,
	   (h.r).sum,
	   (h.r).count
  FROM (SELECT pgnetlat_histogram() AS r) h
  LEFT JOIN pg_catalog.pg_database d ON d.oid = (h.r).datid
  LEFT JOIN pg_catalog.pg_roles u ON u.oid = (h.r).usesysid;

ALTER FUNCTION pgnetlat_history() RENAME TO pgnetlat_history_1_0;

CREATE FUNCTION pgnetlat_history(
	OUT bucket_start timestamptz,
	OUT bucket_end timestamptz,
	OUT datid oid,
	OUT requests bigint,
	OUT statements bigint,
	OUT transactions bigint,
	OUT pipelined bigint,
	OUT round_trips bigint,
	OUT total_time double precision,
	OUT exec_time double precision,
	OUT send_time double precision,
	OUT recv_time double precision,
	OUT network_time double precision,
	OUT client_time double precision,
	OUT idle_time double precision,
	OUT in_xact_wait_time double precision,
	OUT send_blocked_time double precision,
	OUT send_client_time double precision,
	OUT server_share double precision,
	OUT network_share double precision,
	OUT client_share double precision,
	OUT retransmits bigint,
	OUT bytes_sent bigint,
	OUT bytes_received bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pgnetlat_history_1_1'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED COST 1000 ROWS 1000;

COMMENT ON FUNCTION pgnetlat_history() IS
	'account by interval and database in time order; the last interval is in progress; datid is NULL for databases beyond those an interval can hold';

ALTER VIEW pgnetlat_history RENAME COLUMN exec_share TO server_share;

CREATE OR REPLACE VIEW pgnetlat_history AS
SELECT h.bucket_start,
	   h.bucket_end,
	   h.datid,
	   d.datname,
	   h.requests,
	   h.statements,
	   h.transactions,
	   h.pipelined,
	   h.round_trips,
	   h.total_time,
	   h.exec_time,
	   h.send_time,
	   h.recv_time,
	   h.network_time,
	   h.client_time,
	   h.idle_time,
	   h.in_xact_wait_time,
	   h.send_blocked_time,
	   h.send_client_time,
	   h.server_share,
	   h.network_share,
	   h.client_share,
	   h.retransmits,
	   h.bytes_sent,
	   h.bytes_received
  FROM pgnetlat_history() h
  LEFT JOIN pg_catalog.pg_database d ON d.oid = h.datid
 ORDER BY h.bucket_start, h.datid;

-- ---------------------------------------------------------------------------
-- The statements that cost most
-- ---------------------------------------------------------------------------

ALTER FUNCTION pgnetlat_top_statements(integer) RENAME TO pgnetlat_top_statements_1_0;

-- As in 1.0, but safe with any search_path.
CREATE FUNCTION pgnetlat_top_statements(
	IN max_rows integer DEFAULT 20,
	OUT userid oid,
	OUT dbid oid,
	OUT queryid bigint,
	OUT calls bigint,
	OUT rows bigint,
	OUT exec_time double precision,
	OUT send_time double precision,
	OUT network_time double precision,
	OUT client_time double precision,
	OUT repeats bigint,
	OUT repeat_network_time double precision,
	OUT query text)
RETURNS SETOF record
LANGUAGE plpgsql VOLATILE PARALLEL RESTRICTED COST 1000 ROWS 20
AS $$
DECLARE
	pgss text;
	own  text;
BEGIN
	IF max_rows OPERATOR(pg_catalog.<) 0 THEN
		RAISE EXCEPTION 'max_rows must not be negative'
			USING ERRCODE = 'invalid_parameter_value',
				  HINT = 'Use NULL for all rows.';
	END IF;
	SELECT pg_catalog.format('%I.pg_stat_statements', n.nspname) INTO pgss
	  FROM pg_catalog.pg_extension e
	  JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) e.extnamespace
	 WHERE e.extname OPERATOR(pg_catalog.=) 'pg_stat_statements'
	   AND pg_catalog.has_schema_privilege(n.oid, 'USAGE')
	   AND EXISTS (SELECT FROM pg_catalog.pg_settings g
					WHERE g.name OPERATOR(pg_catalog.=) 'pg_stat_statements.max');
	SELECT pg_catalog.format('%I.pgnetlat_statements', n.nspname) INTO own
	  FROM pg_catalog.pg_extension e
	  JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) e.extnamespace
	 WHERE e.extname OPERATOR(pg_catalog.=) 'pgnetlat';

	RETURN QUERY EXECUTE pg_catalog.format(
		'SELECT s.userid, s.dbid, s.queryid, s.calls, s.rows, s.exec_time,
				s.send_time, s.network_time, s.client_time, s.repeats,
				s.repeat_network_time, %s
		   FROM %s s
		  ORDER BY s.network_time OPERATOR(pg_catalog.+) s.send_time DESC, s.queryid
		  LIMIT $1',
		CASE WHEN pgss IS NULL THEN 'NULL::pg_catalog.text'
			 ELSE pg_catalog.format(
				'(SELECT pg_catalog.min(q.query) FROM %s q
				   WHERE q.userid OPERATOR(pg_catalog.=) s.userid
					 AND q.dbid OPERATOR(pg_catalog.=) s.dbid
					 AND q.queryid OPERATOR(pg_catalog.=) s.queryid)',
				pgss)
		END, own)
	USING max_rows;
END
$$;

COMMENT ON FUNCTION pgnetlat_top_statements(integer) IS
	'the statements with most network and send time, with their text where pg_stat_statements has it (NULL elsewhere)';

CREATE OR REPLACE VIEW pgnetlat_top_statements AS
SELECT * FROM pgnetlat_top_statements();

-- ---------------------------------------------------------------------------
-- What nobody needs any more
-- ---------------------------------------------------------------------------


-- Only objects of users can depend on these now.
DO $$
DECLARE
	objects text;
BEGIN
	SELECT pg_catalog.string_agg(DISTINCT
			   CASE WHEN r.oid IS NULL
					THEN pg_catalog.pg_describe_object(d.classid, d.objid, 0)
					ELSE pg_catalog.pg_describe_object('pg_catalog.pg_class'::pg_catalog.regclass, r.ev_class, 0)
			   END, ', ')
	  INTO objects
	  FROM pg_catalog.pg_depend d
	  JOIN pg_catalog.pg_proc p
		ON d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass
	   AND d.refobjid OPERATOR(pg_catalog.=) p.oid
	  JOIN pg_catalog.pg_depend m
		ON m.classid OPERATOR(pg_catalog.=) d.refclassid
	   AND m.objid OPERATOR(pg_catalog.=) p.oid
	   AND m.deptype OPERATOR(pg_catalog.=) 'e'
	  JOIN pg_catalog.pg_extension e
		ON m.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_extension'::pg_catalog.regclass
	   AND m.refobjid OPERATOR(pg_catalog.=) e.oid
	  LEFT JOIN pg_catalog.pg_rewrite r
		ON d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_rewrite'::pg_catalog.regclass
	   AND d.objid OPERATOR(pg_catalog.=) r.oid
	 WHERE e.extname OPERATOR(pg_catalog.=) 'pgnetlat'
	   AND p.proname OPERATOR(pg_catalog.~~) 'pgnetlat\_%\_1\_0'
	   AND d.deptype OPERATOR(pg_catalog.=) 'n';
	IF objects IS NOT NULL THEN
		RAISE EXCEPTION 'functions of extension "pgnetlat" whose columns change in version 1.1 are in use'
			USING ERRCODE = 'dependent_objects_still_exist',
				  DETAIL = pg_catalog.format('They are used by %s.', objects),
				  HINT = 'Drop these objects, or let them use the views of the same name: those survive.';
	END IF;
END
$$;

DROP FUNCTION pgnetlat_sessions_1_0();
DROP FUNCTION pgnetlat_clients_1_0();
DROP FUNCTION pgnetlat_history_1_0();
DROP FUNCTION pgnetlat_top_statements_1_0(integer);
