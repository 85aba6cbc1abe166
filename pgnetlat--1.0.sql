/* pgnetlat--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION pgnetlat" to load this file. \quit

-- Conventions.  Times are double precision milliseconds, moments timestamptz,
-- counts bigint.  Set-returning C functions carry identifiers; the views over
-- them add the names.  What a caller may not see is NULL, as in
-- pg_stat_activity: hidden per row, in C, so that the functions are as safe
-- to expose as the views.

-- ---------------------------------------------------------------------------
-- Sessions: where each connected client backend's wall-clock time went
-- ---------------------------------------------------------------------------

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
	OUT exec_share double precision,
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
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION pgnetlat_sessions() IS
	'account of every connected client backend, times in milliseconds; NULL where the caller may not see it';

CREATE VIEW pgnetlat_sessions AS
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
	   s.exec_share,
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
-- Waits: the sampled profile of each connected session
-- ---------------------------------------------------------------------------

CREATE FUNCTION pgnetlat_waits(
	OUT pid integer,
	OUT state text,
	OUT wait_event_type text,
	OUT wait_event text,
	OUT samples bigint,
	OUT "time" double precision)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION pgnetlat_waits() IS
	'sampled wait events by session and state; CPU where there is no wait event; time in milliseconds';

CREATE VIEW pgnetlat_waits AS
SELECT * FROM pgnetlat_waits();

-- ---------------------------------------------------------------------------
-- Flight recorder: the last exchanges of one session
-- ---------------------------------------------------------------------------

CREATE FUNCTION pgnetlat_recent(
	IN pid integer,
	OUT start timestamptz,
	OUT exec_time double precision,
	OUT send_time double precision,
	OUT recv_time double precision,
	OUT wait_time double precision,
	OUT network_time double precision,
	OUT client_time double precision,
	OUT idle_time double precision,
	OUT queryid bigint,
	OUT statements bigint,
	OUT rows bigint,
	OUT bytes_sent bigint,
	OUT xact_status "char",
	OUT pipelined boolean)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION pgnetlat_recent(integer) IS
	'the last exchanges of the session with this process ID, oldest first, each with the wait after it';

-- ---------------------------------------------------------------------------
-- Aggregates: by statement, by client, over time
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
	OUT stats_since timestamptz)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION pgnetlat_statements() IS
	'time by statement, waits booked to the statement before them; userid, dbid and queryid are NULL in the row of evicted statements';

CREATE VIEW pgnetlat_statements AS
SELECT * FROM pgnetlat_statements();

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
	OUT exec_share double precision,
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
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION pgnetlat_clients() IS
	'account by database, role, application and address, over live and ended sessions; usesysid is NULL in a database''s row of evicted groups';

CREATE VIEW pgnetlat_clients AS
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
	   c.exec_share,
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

CREATE FUNCTION pgnetlat_histogram(
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
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION pgnetlat_histogram() IS
	'cumulative histograms by client group in Prometheus'' form: le and sum are in seconds';

CREATE VIEW pgnetlat_histogram AS
SELECT h.datid,
	   d.datname,
	   h.usesysid,
	   u.rolname AS usename,
	   h.application_name,
	   h.client_addr,
	   h.metric,
	   h.le,
	   h.bucket,
	   h.sum,
	   h.count
  FROM pgnetlat_histogram() h
  LEFT JOIN pg_catalog.pg_database d ON d.oid = h.datid
  LEFT JOIN pg_catalog.pg_roles u ON u.oid = h.usesysid;

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
	OUT exec_share double precision,
	OUT network_share double precision,
	OUT client_share double precision,
	OUT retransmits bigint,
	OUT bytes_sent bigint,
	OUT bytes_received bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION pgnetlat_history() IS
	'account by interval and database in time order; the last interval is in progress; datid is NULL for databases beyond those an interval can hold';

CREATE VIEW pgnetlat_history AS
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
	   h.exec_share,
	   h.network_share,
	   h.client_share,
	   h.retransmits,
	   h.bytes_sent,
	   h.bytes_received
  FROM pgnetlat_history() h
  LEFT JOIN pg_catalog.pg_database d ON d.oid = h.datid
 ORDER BY h.bucket_start, h.datid;

-- The statements that cost most round trips, with their text where
-- pg_stat_statements is installed in this database and knows it.  The text is
-- fetched by dynamic SQL because that extension may be absent, or live in any
-- schema; its setting says whether its library is loaded.
CREATE FUNCTION pgnetlat_top_statements(
	IN "limit" integer DEFAULT 20,
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
LANGUAGE plpgsql VOLATILE PARALLEL RESTRICTED
AS $$
DECLARE
	pgss text;
	own  text;
BEGIN
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
		  ORDER BY s.network_time + s.send_time DESC, s.queryid
		  LIMIT $1',
		CASE WHEN pgss IS NULL THEN 'NULL::text'
			 ELSE pg_catalog.format(
				'(SELECT pg_catalog.min(q.query) FROM %s q
				   WHERE q.userid = s.userid AND q.dbid = s.dbid AND q.queryid = s.queryid)',
				pgss)
		END, own)
	USING "limit";
END
$$;

COMMENT ON FUNCTION pgnetlat_top_statements(integer) IS
	'the statements with most network and send time, with their text where pg_stat_statements has it (NULL elsewhere)';

CREATE VIEW pgnetlat_top_statements AS
SELECT * FROM pgnetlat_top_statements();

-- ---------------------------------------------------------------------------
-- The extension itself
-- ---------------------------------------------------------------------------

CREATE FUNCTION pgnetlat_info(
	OUT version text,
	OUT sampler_pid integer,
	OUT sampler_start timestamptz,
	OUT sampler_last_tick timestamptz,
	OUT sampler_ticks bigint,
	OUT sampler_cpu_time double precision,
	OUT sampler_errors bigint,
	OUT statements bigint,
	OUT statements_max bigint,
	OUT statements_evicted bigint,
	OUT clients bigint,
	OUT clients_max bigint,
	OUT clients_evicted bigint,
	OUT records_dropped bigint,
	OUT shared_memory_bytes bigint,
	OUT stats_reset timestamptz)
RETURNS record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION pgnetlat_info() IS
	'version, health of the sampler (sampler_pid is NULL while it is down), evictions and memory';

CREATE VIEW pgnetlat_info AS
SELECT * FROM pgnetlat_info();

CREATE FUNCTION pgnetlat_reset()
RETURNS timestamptz
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION pgnetlat_reset() IS
	'forgets everything counted so far, in every session; returns the moment from which things count again';

REVOKE ALL ON FUNCTION pgnetlat_reset() FROM PUBLIC;

GRANT SELECT ON pgnetlat_sessions, pgnetlat_waits, pgnetlat_statements,
	pgnetlat_clients, pgnetlat_histogram, pgnetlat_history,
	pgnetlat_top_statements, pgnetlat_info TO PUBLIC;
