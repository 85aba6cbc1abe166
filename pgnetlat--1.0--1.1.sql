/* pgnetlat--1.0--1.1.sql */

-- complain if script is sourced in psql, rather than via ALTER EXTENSION
\echo Use "ALTER EXTENSION pgnetlat UPDATE TO '1.1'" to load this file. \quit

-- Conventions.  Users' views over ours, and grants on ours, survive: views are
-- altered and replaced, never dropped, and new columns come last.  A function
-- whose columns change is renamed to ..._1_0, created anew, and dropped when
-- its view no longer needs it, at the end of this file.  See src/rows.h for
-- the names of C symbols.

-- The library that the server has loaded must know the functions below; a
-- newer one on disk has no effect before a restart.  If none is loaded, that is
-- all right: a dump may be restored before the server has been set up.
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
		RAISE EXCEPTION 'the server has loaded version % of the library of extension "pgnetlat", which is too old for version 1.1 of the extension',
			loaded
			USING ERRCODE = 'object_not_in_prerequisite_state',
				  HINT = 'Install version 1.1 of the library, restart the server, and try again.';
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
	OUT run_queue_time double precision,
	OUT run_queue_wait_time double precision,
	OUT exec_cpu_time double precision,
	OUT exec_io_time double precision,
	OUT exec_lock_time double precision,
	OUT exec_replication_time double precision,
	OUT exec_remote_time double precision,
	OUT exec_other_time double precision,
	OUT exec_unsampled_time double precision,
	OUT lock_wait_time double precision,
	OUT blocking_time double precision,
	OUT blocked_by integer,
	OUT connect_round_trips bigint,
	OUT connect_time double precision,
	OUT connect_network_time double precision,
	OUT connect_client_time double precision,
	OUT pooler_requests bigint,
	OUT client_rtt double precision,
	OUT pooler_addr inet,
	OUT verdict text)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pgnetlat_sessions_1_1'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED COST 100 ROWS 100;

COMMENT ON FUNCTION pgnetlat_sessions() IS
	'account of every connected client backend, times in milliseconds; all but the session''s identity is NULL where the caller may not see it';

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
	   s.run_queue_time,
	   s.run_queue_wait_time,
	   s.exec_cpu_time,
	   s.exec_io_time,
	   s.exec_lock_time,
	   s.exec_replication_time,
	   s.exec_remote_time,
	   s.exec_other_time,
	   s.exec_unsampled_time,
	   s.lock_wait_time,
	   s.blocking_time,
	   s.blocked_by,
	   s.connect_round_trips,
	   s.connect_time,
	   s.connect_network_time,
	   s.connect_client_time,
	   s.pooler_requests,
	   s.client_rtt,
	   s.pooler_addr,
	   s.verdict
  FROM pgnetlat_sessions() s
  LEFT JOIN pg_catalog.pg_database d ON d.oid = s.datid
  LEFT JOIN pg_catalog.pg_roles u ON u.oid = s.usesysid;

COMMENT ON VIEW pgnetlat_sessions IS
	'each connected client backend: where its wall-clock time went; without pg_read_all_stats, other roles'' sessions have only pid, datid, datname, usesysid, usename and application_name';
COMMENT ON COLUMN pgnetlat_sessions.pid IS 'process ID of the backend';
COMMENT ON COLUMN pgnetlat_sessions.datid IS 'OID of the database';
COMMENT ON COLUMN pgnetlat_sessions.datname IS 'name of the database';
COMMENT ON COLUMN pgnetlat_sessions.usesysid IS 'OID of the role';
COMMENT ON COLUMN pgnetlat_sessions.usename IS 'name of the role';
COMMENT ON COLUMN pgnetlat_sessions.application_name IS 'as in pg_stat_activity, without what a pooler has appended to it';
COMMENT ON COLUMN pgnetlat_sessions.client_addr IS 'as in pg_stat_activity, or behind a pooler that says so, its client''s: NULL on a Unix-domain socket';
COMMENT ON COLUMN pgnetlat_sessions.client_port IS 'as in pg_stat_activity, or the port of that client: -1 on a Unix-domain socket; NULL if the pooler''s words were cut off';
COMMENT ON COLUMN pgnetlat_sessions.backend_start IS 'when the backend was started, as in pg_stat_activity';
COMMENT ON COLUMN pgnetlat_sessions.transport IS 'unix, tcp, tls or gss';
COMMENT ON COLUMN pgnetlat_sessions.state IS 'executing, sending, receiving, waiting, waiting in transaction or idle; disabled while pgnetlat.enabled is off for the session';
COMMENT ON COLUMN pgnetlat_sessions.state_change IS 'when that state began';
COMMENT ON COLUMN pgnetlat_sessions.stats_since IS 'when counting began: when the connection was established, or at the latest reset';
COMMENT ON COLUMN pgnetlat_sessions.requests IS 'exchanges completed: request/response cycles';
COMMENT ON COLUMN pgnetlat_sessions.statements IS 'statements completed, or fetched from for the first time if their portal was suspended, and function calls';
COMMENT ON COLUMN pgnetlat_sessions.transactions IS 'transactions committed or rolled back';
COMMENT ON COLUMN pgnetlat_sessions.pipelined IS 'exchanges whose request had already arrived when the previous response left';
COMMENT ON COLUMN pgnetlat_sessions.round_trips IS 'round trips of the conversation: requests - pipelined, plus one for each COPY FROM STDIN whose client waits to be asked for data';
COMMENT ON COLUMN pgnetlat_sessions.total_time IS 'milliseconds: the sum of its parts, exec_time to pending_time';
COMMENT ON COLUMN pgnetlat_sessions.exec_time IS 'milliseconds: in exchanges, while the server was working';
COMMENT ON COLUMN pgnetlat_sessions.send_time IS 'milliseconds: in exchanges, handing bytes to the socket';
COMMENT ON COLUMN pgnetlat_sessions.recv_time IS 'milliseconds: in exchanges, waiting for more data from the client; exact up to the first data of a COPY, sampled afterwards';
COMMENT ON COLUMN pgnetlat_sessions.network_time IS 'milliseconds: the round trip in each wait between exchanges that is not idle, and the one in which COPY FROM STDIN asks for data; 0 on a Unix-domain socket';
COMMENT ON COLUMN pgnetlat_sessions.client_time IS 'milliseconds: the rest of these waits, in which the client thinks';
COMMENT ON COLUMN pgnetlat_sessions.idle_time IS 'milliseconds: waits outside a transaction longer than pgnetlat.idle_threshold, and what would have been the round trip of a session''s last wait';
COMMENT ON COLUMN pgnetlat_sessions.pending_time IS 'milliseconds: not yet attributable to one of the other parts; the only time that can decrease';
COMMENT ON COLUMN pgnetlat_sessions.in_xact_wait_time IS 'milliseconds: part of network_time + client_time spent inside a transaction';
COMMENT ON COLUMN pgnetlat_sessions.send_blocked_time IS 'milliseconds: part of send_time: sends that took longer than a mere system call';
COMMENT ON COLUMN pgnetlat_sessions.send_client_time IS 'milliseconds: part of send_blocked_time: the client would accept no more data; a lower bound over TCP';
COMMENT ON COLUMN pgnetlat_sessions.server_share IS 'exec_time + send_time - send_blocked_time + run_queue_wait_time, as a share (0 to 1) of the time that was neither idle nor pending; NULL if there was none';
COMMENT ON COLUMN pgnetlat_sessions.network_share IS 'network_time + send_blocked_time - send_client_time, as a share of the same time; NULL if there was none';
COMMENT ON COLUMN pgnetlat_sessions.client_share IS 'client_time - run_queue_wait_time + recv_time + send_client_time, as a share of the same time; NULL if there was none';
COMMENT ON COLUMN pgnetlat_sessions.rtt IS 'milliseconds: the path''s round-trip time, the kernel''s windowed minimum; NULL on a Unix-domain socket or where the kernel does not say';
COMMENT ON COLUMN pgnetlat_sessions.srtt IS 'milliseconds: the kernel''s smoothed round-trip time, which includes delayed acknowledgements; NULL on a Unix-domain socket or where the kernel does not say';
COMMENT ON COLUMN pgnetlat_sessions.rtt_at IS 'when the kernel was last asked; NULL if it was not';
COMMENT ON COLUMN pgnetlat_sessions.retransmits IS 'TCP segments sent again; as of rtt_at; NULL on a Unix-domain socket or where the kernel does not say';
COMMENT ON COLUMN pgnetlat_sessions.bytes_sent IS 'bytes handed to the socket, before encryption';
COMMENT ON COLUMN pgnetlat_sessions.bytes_received IS 'bytes received over TCP; as of rtt_at; NULL on a Unix-domain socket or where the kernel does not say';
COMMENT ON COLUMN pgnetlat_sessions.packets_sent IS 'TCP segments sent; as of rtt_at; NULL on a Unix-domain socket or where the kernel does not say';
COMMENT ON COLUMN pgnetlat_sessions.packets_received IS 'TCP segments received; as of rtt_at; NULL on a Unix-domain socket or where the kernel does not say';
COMMENT ON COLUMN pgnetlat_sessions.run_queue_time IS 'milliseconds: time ready to run but without a processor, as of the latest request at which the session asked the kernel; NULL where the kernel does not say';
COMMENT ON COLUMN pgnetlat_sessions.run_queue_wait_time IS 'milliseconds: part of run_queue_time and of client_time, estimated: a request had arrived, and the backend had no processor to read it; NULL where the kernel does not say';
COMMENT ON COLUMN pgnetlat_sessions.exec_cpu_time IS 'milliseconds: part of exec_time, sampled: no wait event, so on a processor or waiting for one';
COMMENT ON COLUMN pgnetlat_sessions.exec_io_time IS 'milliseconds: part of exec_time, sampled: reading or writing files';
COMMENT ON COLUMN pgnetlat_sessions.exec_lock_time IS 'milliseconds: part of exec_time, sampled: waiting for a lock (wait events of type Lock); a wait in progress is exact';
COMMENT ON COLUMN pgnetlat_sessions.exec_replication_time IS 'milliseconds: part of exec_time, sampled: waiting for a standby';
COMMENT ON COLUMN pgnetlat_sessions.exec_remote_time IS 'milliseconds: part of exec_time, sampled: waiting for another server as its client';
COMMENT ON COLUMN pgnetlat_sessions.exec_other_time IS 'milliseconds: part of exec_time, sampled: any other wait event';
COMMENT ON COLUMN pgnetlat_sessions.exec_unsampled_time IS 'milliseconds: the rest of exec_time, which no sample accounts for';
COMMENT ON COLUMN pgnetlat_sessions.lock_wait_time IS 'milliseconds: part of exec_time: waiting for locks held by others; the same as exec_lock_time';
COMMENT ON COLUMN pgnetlat_sessions.blocking_time IS 'milliseconds: time that other sessions waited for locks with this session at the root of the chain of lock waits';
COMMENT ON COLUMN pgnetlat_sessions.blocked_by IS 'process ID of the session at the root of the chain of lock waits that this one is in now; 0 for a prepared transaction, NULL if it is not waiting or the root is not known';
COMMENT ON COLUMN pgnetlat_sessions.connect_round_trips IS 'round trips that the client took to connect: that of TCP, those for encryption, those of authentication, and the last one; NULL if it is not known';
COMMENT ON COLUMN pgnetlat_sessions.connect_time IS 'milliseconds: setting up this connection, from the accepted socket until the first ReadyForQuery had been sent; not a part of total_time; NULL if it is not known';
COMMENT ON COLUMN pgnetlat_sessions.connect_network_time IS 'milliseconds: part of connect_time: waiting for round trips; the handshake of TCP and the last round trip are not in it; NULL if it is not known';
COMMENT ON COLUMN pgnetlat_sessions.connect_client_time IS 'milliseconds: part of connect_time: waiting for the client otherwise; NULL if it is not known';
COMMENT ON COLUMN pgnetlat_sessions.pooler_requests IS 'part of requests: exchanges of a pooler''s own, between its clients';
COMMENT ON COLUMN pgnetlat_sessions.client_rtt IS 'milliseconds: round-trip time between a pooler on this host and its client; NULL if not known';
COMMENT ON COLUMN pgnetlat_sessions.pooler_addr IS 'address of the pooler that the session comes from, if it says for whom; NULL on a Unix-domain socket';
COMMENT ON COLUMN pgnetlat_sessions.verdict IS 'what the session lost most time to in the last minute, as in pgnetlat_diagnose(); balanced if there is nothing of note, NULL if there is too little data';

CREATE FUNCTION pgnetlat_sessions_last(
	IN duration interval DEFAULT '1 min',
	OUT pid integer,
	OUT datid oid,
	OUT datname name,
	OUT usesysid oid,
	OUT usename name,
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
	OUT run_queue_time double precision,
	OUT run_queue_wait_time double precision,
	OUT exec_cpu_time double precision,
	OUT exec_io_time double precision,
	OUT exec_lock_time double precision,
	OUT exec_replication_time double precision,
	OUT exec_remote_time double precision,
	OUT exec_other_time double precision,
	OUT exec_unsampled_time double precision,
	OUT lock_wait_time double precision,
	OUT blocking_time double precision,
	OUT blocked_by integer,
	OUT connect_round_trips bigint,
	OUT connect_time double precision,
	OUT connect_network_time double precision,
	OUT connect_client_time double precision,
	OUT pooler_requests bigint,
	OUT client_rtt double precision,
	OUT pooler_addr inet,
	OUT verdict text,
	OUT window_time double precision)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pgnetlat_sessions_last'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED COST 100 ROWS 100;

COMMENT ON FUNCTION pgnetlat_sessions_last(interval) IS
	'pgnetlat_sessions over the given time up to now, at most 15 minutes: counts and times since stats_since, which was window_time milliseconds ago';

CREATE FUNCTION pgnetlat_now(
	OUT pid integer,
	OUT client text,
	OUT state text,
	OUT rate double precision,
	OUT rtt double precision,
	OUT server_net_client text,
	OUT doing text)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pgnetlat_now'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED COST 1000 ROWS 20;

COMMENT ON FUNCTION pgnetlat_now() IS
	'for interactive use: the other sessions that are not idle, over the last 10 seconds, the worst first; at most 110 columns wide in psql';

CREATE VIEW pgnetlat_now AS
SELECT n.pid,
	   n.client,
	   n.state,
	   n.rate,
	   n.rtt,
	   n.server_net_client,
	   n.doing
  FROM pgnetlat_now() n;

GRANT SELECT ON pgnetlat_now TO PUBLIC;

COMMENT ON VIEW pgnetlat_now IS
	'for interactive use: the other sessions that are not idle, over the last 10 seconds, the worst first; at most 110 columns wide in psql';
COMMENT ON COLUMN pgnetlat_now.pid IS 'process ID of the backend';
COMMENT ON COLUMN pgnetlat_now.client IS 'application_name, or the role if that is empty, and the address';
COMMENT ON COLUMN pgnetlat_now.state IS 'as in pgnetlat_sessions, and for how long; in xact: waiting in a transaction';
COMMENT ON COLUMN pgnetlat_now.rate IS 'requests per second';
COMMENT ON COLUMN pgnetlat_now.rtt IS 'milliseconds: round-trip time; NULL on a Unix-domain socket';
COMMENT ON COLUMN pgnetlat_now.server_net_client IS 'percent of the time that was neither idle nor pending: server, network, client; and as a bar (# server, ! server held up by a lock, another server or for want of a processor, = network, . client); NULL if there was none';
COMMENT ON COLUMN pgnetlat_now.doing IS 'the session whose lock it waits for and what that one is doing, or that it waits for a standby or another server, or its wait event; and the beginning of its query, or of its latest one if it is not executing';

-- ---------------------------------------------------------------------------
-- Who holds up whom
-- ---------------------------------------------------------------------------

CREATE FUNCTION pgnetlat_blockers(
	OUT datid oid,
	OUT usesysid oid,
	OUT application_name text,
	OUT client_addr inet,
	OUT backend_type text,
	OUT queryid bigint,
	OUT blocked_sessions bigint,
	OUT blocked_sessions_max bigint,
	OUT blocked_time double precision,
	OUT blocked_by_exec_time double precision,
	OUT blocked_by_send_time double precision,
	OUT blocked_by_recv_time double precision,
	OUT blocked_by_network_time double precision,
	OUT blocked_by_client_time double precision,
	OUT blocked_by_other_time double precision,
	OUT blocked_time_max double precision,
	OUT stats_since timestamptz)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pgnetlat_blockers'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED COST 100 ROWS 100;

COMMENT ON FUNCTION pgnetlat_blockers() IS
	'who held up others with a lock: by database, role, application, address, type of process and statement; times in milliseconds; all but the holder''s identity is NULL where the caller may not see it';

CREATE VIEW pgnetlat_blockers AS
SELECT b.datid,
	   d.datname,
	   b.usesysid,
	   u.rolname AS usename,
	   b.application_name,
	   b.client_addr,
	   b.backend_type,
	   b.queryid,
	   b.blocked_sessions,
	   b.blocked_sessions_max,
	   b.blocked_time,
	   b.blocked_by_exec_time,
	   b.blocked_by_send_time,
	   b.blocked_by_recv_time,
	   b.blocked_by_network_time,
	   b.blocked_by_client_time,
	   b.blocked_by_other_time,
	   b.blocked_time_max,
	   b.stats_since
  FROM pgnetlat_blockers() b
  LEFT JOIN pg_catalog.pg_database d ON d.oid = b.datid
  LEFT JOIN pg_catalog.pg_roles u ON u.oid = b.usesysid;

GRANT SELECT ON pgnetlat_blockers TO PUBLIC;

COMMENT ON VIEW pgnetlat_blockers IS
	'who held up others with a lock, after which statement, and what the holder did meanwhile';
COMMENT ON COLUMN pgnetlat_blockers.datid IS 'OID of the holder''s database; NULL if it is in none';
COMMENT ON COLUMN pgnetlat_blockers.datname IS 'name of the database; NULL if it has been dropped';
COMMENT ON COLUMN pgnetlat_blockers.usesysid IS 'OID of the holder''s role; NULL if it has none';
COMMENT ON COLUMN pgnetlat_blockers.usename IS 'name of the role; NULL if it has been dropped';
COMMENT ON COLUMN pgnetlat_blockers.application_name IS 'that of the holder; (evicted) in the row of evicted entries';
COMMENT ON COLUMN pgnetlat_blockers.client_addr IS 'address of the holder''s client; NULL on a Unix-domain socket or if it has none';
COMMENT ON COLUMN pgnetlat_blockers.backend_type IS 'as in pg_stat_activity, or prepared transaction; NULL in the row of evicted entries';
COMMENT ON COLUMN pgnetlat_blockers.queryid IS 'the statement that the holder is executing, or after which it stopped; NULL if it is not known';
COMMENT ON COLUMN pgnetlat_blockers.blocked_sessions IS 'sessions that wait for it now';
COMMENT ON COLUMN pgnetlat_blockers.blocked_sessions_max IS 'the most sessions that waited for it at any one time';
COMMENT ON COLUMN pgnetlat_blockers.blocked_time IS 'milliseconds: time that sessions waited for it, summed over the sessions, in waits longer than a tenth of a second; the sum of the parts that follow';
COMMENT ON COLUMN pgnetlat_blockers.blocked_by_exec_time IS 'milliseconds: the holder was executing';
COMMENT ON COLUMN pgnetlat_blockers.blocked_by_send_time IS 'milliseconds: it was handing bytes to its socket';
COMMENT ON COLUMN pgnetlat_blockers.blocked_by_recv_time IS 'milliseconds: it was waiting for more data from its client inside a request';
COMMENT ON COLUMN pgnetlat_blockers.blocked_by_network_time IS 'milliseconds: it was waiting for its client, for a round trip';
COMMENT ON COLUMN pgnetlat_blockers.blocked_by_client_time IS 'milliseconds: it was waiting for its client, which was thinking';
COMMENT ON COLUMN pgnetlat_blockers.blocked_by_other_time IS 'milliseconds: the rest, which is not known, or not known yet; the only time here that can decrease';
COMMENT ON COLUMN pgnetlat_blockers.blocked_time_max IS 'milliseconds: the longest time that one session waited for it';
COMMENT ON COLUMN pgnetlat_blockers.stats_since IS 'when counting began for this row';

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
	OUT stats_since timestamptz,
	OUT run_queue_time double precision,
	OUT run_queue_wait_time double precision,
	OUT exec_cpu_time double precision,
	OUT exec_io_time double precision,
	OUT exec_lock_time double precision,
	OUT exec_replication_time double precision,
	OUT exec_remote_time double precision,
	OUT exec_other_time double precision,
	OUT exec_unsampled_time double precision,
	OUT connections bigint,
	OUT failed_connections bigint,
	OUT connect_round_trips bigint,
	OUT connect_time double precision,
	OUT connect_start_time double precision,
	OUT connect_tls_time double precision,
	OUT connect_auth_time double precision,
	OUT connect_other_time double precision,
	OUT connect_server_time double precision,
	OUT connect_network_time double precision,
	OUT connect_client_time double precision,
	OUT pooler_requests bigint,
	OUT pooler_addr inet,
	OUT verdict text)
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
	   c.stats_since,
	   c.run_queue_time,
	   c.run_queue_wait_time,
	   c.exec_cpu_time,
	   c.exec_io_time,
	   c.exec_lock_time,
	   c.exec_replication_time,
	   c.exec_remote_time,
	   c.exec_other_time,
	   c.exec_unsampled_time,
	   c.connections,
	   c.failed_connections,
	   c.connect_round_trips,
	   c.connect_time,
	   c.connect_start_time,
	   c.connect_tls_time,
	   c.connect_auth_time,
	   c.connect_other_time,
	   c.connect_server_time,
	   c.connect_network_time,
	   c.connect_client_time,
	   c.pooler_requests,
	   c.pooler_addr,
	   c.verdict
  FROM pgnetlat_clients() c
  LEFT JOIN pg_catalog.pg_database d ON d.oid = c.datid
  LEFT JOIN pg_catalog.pg_roles u ON u.oid = c.usesysid;

COMMENT ON VIEW pgnetlat_clients IS
	'where time went, by database, role, application and address, over live and ended sessions';
COMMENT ON COLUMN pgnetlat_clients.datid IS 'OID of the database; NULL in the row of evicted groups of further databases';
COMMENT ON COLUMN pgnetlat_clients.datname IS 'name of the database; NULL if it has been dropped';
COMMENT ON COLUMN pgnetlat_clients.usesysid IS 'OID of the role; NULL in a database''s row of evicted groups';
COMMENT ON COLUMN pgnetlat_clients.usename IS 'name of the role; NULL in a database''s row of evicted groups, or if it has been dropped';
COMMENT ON COLUMN pgnetlat_clients.application_name IS 'that of the sessions, without what a pooler has appended to it; (failed) for failed connections of which there is no such group, (evicted) in a database''s row of evicted groups';
COMMENT ON COLUMN pgnetlat_clients.client_addr IS 'address of the clients, also behind a pooler that says so; NULL on a Unix-domain socket, in the rows of evicted groups and, without pg_read_all_stats, for other roles';
COMMENT ON COLUMN pgnetlat_clients.sessions IS 'sessions connected now';
COMMENT ON COLUMN pgnetlat_clients.ended_sessions IS 'sessions ended since stats_since';
COMMENT ON COLUMN pgnetlat_clients.requests IS 'exchanges completed: request/response cycles';
COMMENT ON COLUMN pgnetlat_clients.statements IS 'statements completed, or fetched from for the first time if their portal was suspended, and function calls';
COMMENT ON COLUMN pgnetlat_clients.transactions IS 'transactions committed or rolled back';
COMMENT ON COLUMN pgnetlat_clients.pipelined IS 'exchanges whose request had already arrived when the previous response left';
COMMENT ON COLUMN pgnetlat_clients.round_trips IS 'round trips of the conversation: requests - pipelined, plus one for each COPY FROM STDIN whose client waits to be asked for data';
COMMENT ON COLUMN pgnetlat_clients.total_time IS 'milliseconds: the sum of its parts, exec_time to pending_time';
COMMENT ON COLUMN pgnetlat_clients.exec_time IS 'milliseconds: in exchanges, while the server was working';
COMMENT ON COLUMN pgnetlat_clients.send_time IS 'milliseconds: in exchanges, handing bytes to the socket';
COMMENT ON COLUMN pgnetlat_clients.recv_time IS 'milliseconds: in exchanges, waiting for more data from the client; exact up to the first data of a COPY, sampled afterwards';
COMMENT ON COLUMN pgnetlat_clients.network_time IS 'milliseconds: the round trip in each wait between exchanges that is not idle, and the one in which COPY FROM STDIN asks for data; 0 on a Unix-domain socket';
COMMENT ON COLUMN pgnetlat_clients.client_time IS 'milliseconds: the rest of these waits, in which the client thinks';
COMMENT ON COLUMN pgnetlat_clients.idle_time IS 'milliseconds: waits outside a transaction longer than pgnetlat.idle_threshold, and what would have been the round trip of a session''s last wait';
COMMENT ON COLUMN pgnetlat_clients.pending_time IS 'milliseconds: not yet attributable to one of the other parts; the only time that can decrease';
COMMENT ON COLUMN pgnetlat_clients.in_xact_wait_time IS 'milliseconds: part of network_time + client_time spent inside a transaction';
COMMENT ON COLUMN pgnetlat_clients.send_blocked_time IS 'milliseconds: part of send_time: sends that took longer than a mere system call';
COMMENT ON COLUMN pgnetlat_clients.send_client_time IS 'milliseconds: part of send_blocked_time: the client would accept no more data; a lower bound over TCP';
COMMENT ON COLUMN pgnetlat_clients.server_share IS 'exec_time + send_time - send_blocked_time + run_queue_wait_time, as a share (0 to 1) of the time that was neither idle nor pending; NULL if there was none';
COMMENT ON COLUMN pgnetlat_clients.network_share IS 'network_time + send_blocked_time - send_client_time, as a share of the same time; NULL if there was none';
COMMENT ON COLUMN pgnetlat_clients.client_share IS 'client_time - run_queue_wait_time + recv_time + send_client_time, as a share of the same time; NULL if there was none';
COMMENT ON COLUMN pgnetlat_clients.rtt IS 'milliseconds: the most recently measured round-trip time; NULL if none was measured';
COMMENT ON COLUMN pgnetlat_clients.retransmits IS 'TCP segments sent again';
COMMENT ON COLUMN pgnetlat_clients.bytes_sent IS 'bytes handed to the socket, before encryption';
COMMENT ON COLUMN pgnetlat_clients.bytes_received IS 'bytes received over TCP';
COMMENT ON COLUMN pgnetlat_clients.packets_sent IS 'TCP segments sent';
COMMENT ON COLUMN pgnetlat_clients.packets_received IS 'TCP segments received';
COMMENT ON COLUMN pgnetlat_clients.stats_since IS 'when counting began for this row';
COMMENT ON COLUMN pgnetlat_clients.run_queue_time IS 'milliseconds: time ready to run but without a processor';
COMMENT ON COLUMN pgnetlat_clients.run_queue_wait_time IS 'milliseconds: part of run_queue_time and of client_time, estimated: a request had arrived, and the backend had no processor to read it';
COMMENT ON COLUMN pgnetlat_clients.exec_cpu_time IS 'milliseconds: part of exec_time, sampled: no wait event, so on a processor or waiting for one';
COMMENT ON COLUMN pgnetlat_clients.exec_io_time IS 'milliseconds: part of exec_time, sampled: reading or writing files';
COMMENT ON COLUMN pgnetlat_clients.exec_lock_time IS 'milliseconds: part of exec_time, sampled: waiting for a lock (wait events of type Lock); a wait in progress is exact';
COMMENT ON COLUMN pgnetlat_clients.exec_replication_time IS 'milliseconds: part of exec_time, sampled: waiting for a standby';
COMMENT ON COLUMN pgnetlat_clients.exec_remote_time IS 'milliseconds: part of exec_time, sampled: waiting for another server as its client';
COMMENT ON COLUMN pgnetlat_clients.exec_other_time IS 'milliseconds: part of exec_time, sampled: any other wait event';
COMMENT ON COLUMN pgnetlat_clients.exec_unsampled_time IS 'milliseconds: the rest of exec_time, which no sample accounts for';
COMMENT ON COLUMN pgnetlat_clients.connections IS 'connections that were set up';
COMMENT ON COLUMN pgnetlat_clients.failed_connections IS 'connections that ended after authentication had begun and before the first ReadyForQuery: wrong password, rejected, no such database and the like';
COMMENT ON COLUMN pgnetlat_clients.connect_round_trips IS 'round trips that the clients took to connect: that of TCP, those for encryption, those of authentication, and the last one';
COMMENT ON COLUMN pgnetlat_clients.connect_time IS 'milliseconds: setting up connections, from the accepted socket until the first ReadyForQuery had been sent; not a part of total_time; failed connections are not in it';
COMMENT ON COLUMN pgnetlat_clients.connect_start_time IS 'milliseconds: part of connect_time: forking and starting the process, until authentication began';
COMMENT ON COLUMN pgnetlat_clients.connect_tls_time IS 'milliseconds: part of connect_time: on encrypted connections, what came before their start-up packet';
COMMENT ON COLUMN pgnetlat_clients.connect_auth_time IS 'milliseconds: part of connect_time: authentication';
COMMENT ON COLUMN pgnetlat_clients.connect_other_time IS 'milliseconds: the rest of connect_time: catalogs, settings, the first ReadyForQuery';
COMMENT ON COLUMN pgnetlat_clients.connect_server_time IS 'milliseconds: connect_time - connect_network_time - connect_client_time';
COMMENT ON COLUMN pgnetlat_clients.connect_network_time IS 'milliseconds: part of connect_time: waiting for round trips; the handshake of TCP and the last round trip are not in it';
COMMENT ON COLUMN pgnetlat_clients.connect_client_time IS 'milliseconds: part of connect_time: waiting for the client otherwise';
COMMENT ON COLUMN pgnetlat_clients.pooler_requests IS 'part of requests: exchanges of a pooler''s own, between its clients';
COMMENT ON COLUMN pgnetlat_clients.pooler_addr IS 'address of the pooler that a session of the group came from last, if it said for whom; NULL on a Unix-domain socket and, without pg_read_all_stats, for other roles';
COMMENT ON COLUMN pgnetlat_clients.verdict IS 'what the group lost most time to in the last minute, as in pgnetlat_diagnose(); balanced if there is nothing of note, NULL if there is too little data, in the row of evicted groups and, without pg_read_all_stats, for other roles';

CREATE FUNCTION pgnetlat_clients_last(
	IN duration interval DEFAULT '1 min',
	OUT datid oid,
	OUT datname name,
	OUT usesysid oid,
	OUT usename name,
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
	OUT stats_since timestamptz,
	OUT run_queue_time double precision,
	OUT run_queue_wait_time double precision,
	OUT exec_cpu_time double precision,
	OUT exec_io_time double precision,
	OUT exec_lock_time double precision,
	OUT exec_replication_time double precision,
	OUT exec_remote_time double precision,
	OUT exec_other_time double precision,
	OUT exec_unsampled_time double precision,
	OUT connections bigint,
	OUT failed_connections bigint,
	OUT connect_round_trips bigint,
	OUT connect_time double precision,
	OUT connect_start_time double precision,
	OUT connect_tls_time double precision,
	OUT connect_auth_time double precision,
	OUT connect_other_time double precision,
	OUT connect_server_time double precision,
	OUT connect_network_time double precision,
	OUT connect_client_time double precision,
	OUT pooler_requests bigint,
	OUT pooler_addr inet,
	OUT verdict text,
	OUT window_time double precision)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pgnetlat_clients_last'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED COST 1000 ROWS 100;

COMMENT ON FUNCTION pgnetlat_clients_last(interval) IS
	'pgnetlat_clients over the given time up to now, at most 15 minutes: counts and times since stats_since, which was window_time milliseconds ago';

ALTER FUNCTION pgnetlat_histogram() RENAME TO pgnetlat_histogram_1_0;

CREATE FUNCTION pgnetlat_histogram(
	OUT datid oid,
	OUT usesysid oid,
	OUT application_name text,
	OUT client_addr inet,
	OUT metric text,
	OUT le text[],
	OUT bucket bigint[],
	OUT sum double precision,
	OUT count bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pgnetlat_histogram_1_1'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED COST 1000 ROWS 500;

COMMENT ON FUNCTION pgnetlat_histogram() IS
	'cumulative histograms by client group and metric, with arrays of their buckets; le and sum are in seconds';

-- Functions in target lists are asked for one row at a time, those in FROM for
-- all: with many groups, these many rows are nowhere in one piece.
CREATE OR REPLACE VIEW pgnetlat_histogram AS
SELECT g.datid,
	   g.datname,
	   g.usesysid,
	   g.usename,
	   g.application_name,
	   g.client_addr,
	   g.metric,
	   pg_catalog.unnest(g.le) AS le,
	   pg_catalog.unnest(g.bucket) AS bucket,
	   g.sum,
	   g.count
  FROM (SELECT (h.r).datid,
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
		  LEFT JOIN pg_catalog.pg_roles u ON u.oid = (h.r).usesysid
		OFFSET 0) g;			-- once for each group and metric

COMMENT ON VIEW pgnetlat_histogram IS
	'cumulative histograms by client group, in the form of Prometheus, in seconds';
COMMENT ON COLUMN pgnetlat_histogram.datid IS 'OID of the database; NULL in the row of evicted groups of further databases';
COMMENT ON COLUMN pgnetlat_histogram.datname IS 'name of the database; NULL if it has been dropped';
COMMENT ON COLUMN pgnetlat_histogram.usesysid IS 'OID of the role; NULL in a database''s row of evicted groups';
COMMENT ON COLUMN pgnetlat_histogram.usename IS 'name of the role; NULL in a database''s row of evicted groups, or if it has been dropped';
COMMENT ON COLUMN pgnetlat_histogram.application_name IS 'that of the sessions; (evicted) in a database''s row of evicted groups';
COMMENT ON COLUMN pgnetlat_histogram.client_addr IS 'address of the clients; NULL on a Unix-domain socket, in the rows of evicted groups and, without pg_read_all_stats, for other roles';
COMMENT ON COLUMN pgnetlat_histogram.metric IS 'wait (not idle), request, network and client (of those waits), rtt, or connect (connect_time)';
COMMENT ON COLUMN pgnetlat_histogram.le IS 'upper bound of the bucket in seconds, as text; +Inf for the last';
COMMENT ON COLUMN pgnetlat_histogram.bucket IS 'observations up to that bound';
COMMENT ON COLUMN pgnetlat_histogram.sum IS 'seconds: sum of the metric''s observations';
COMMENT ON COLUMN pgnetlat_histogram.count IS 'number of the metric''s observations';

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
	OUT bytes_received bigint,
	OUT run_queue_time double precision,
	OUT run_queue_wait_time double precision,
	OUT exec_cpu_time double precision,
	OUT exec_io_time double precision,
	OUT exec_lock_time double precision,
	OUT exec_replication_time double precision,
	OUT exec_remote_time double precision,
	OUT exec_other_time double precision,
	OUT exec_unsampled_time double precision,
	OUT connections bigint,
	OUT failed_connections bigint,
	OUT connect_time double precision)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pgnetlat_history_1_1'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED COST 1000 ROWS 1000;

COMMENT ON FUNCTION pgnetlat_history() IS
	'account by interval and database, oldest first; the last interval is in progress; datid is NULL in the row of databases beyond those that an interval has room for';

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
	   h.bytes_received,
	   h.run_queue_time,
	   h.run_queue_wait_time,
	   h.exec_cpu_time,
	   h.exec_io_time,
	   h.exec_lock_time,
	   h.exec_replication_time,
	   h.exec_remote_time,
	   h.exec_other_time,
	   h.exec_unsampled_time,
	   h.connections,
	   h.failed_connections,
	   h.connect_time
  FROM pgnetlat_history() h
  LEFT JOIN pg_catalog.pg_database d ON d.oid = h.datid
 ORDER BY h.bucket_start, h.datid;

COMMENT ON VIEW pgnetlat_history IS
	'where time went, by interval and database, oldest first; the last interval is in progress';
COMMENT ON COLUMN pgnetlat_history.bucket_start IS 'when the interval began';
COMMENT ON COLUMN pgnetlat_history.bucket_end IS 'when it ended; for the last one, now';
COMMENT ON COLUMN pgnetlat_history.datid IS 'OID of the database; NULL for all databases beyond those an interval has room for';
COMMENT ON COLUMN pgnetlat_history.datname IS 'name of the database; NULL if it has been dropped';
COMMENT ON COLUMN pgnetlat_history.requests IS 'exchanges completed: request/response cycles';
COMMENT ON COLUMN pgnetlat_history.statements IS 'statements completed, or fetched from for the first time if their portal was suspended, and function calls';
COMMENT ON COLUMN pgnetlat_history.transactions IS 'transactions committed or rolled back';
COMMENT ON COLUMN pgnetlat_history.pipelined IS 'exchanges whose request had already arrived when the previous response left';
COMMENT ON COLUMN pgnetlat_history.round_trips IS 'round trips of the conversation: requests - pipelined, plus one for each COPY FROM STDIN whose client waits to be asked for data';
COMMENT ON COLUMN pgnetlat_history.total_time IS 'milliseconds: the sum of its parts, exec_time to idle_time';
COMMENT ON COLUMN pgnetlat_history.exec_time IS 'milliseconds: in exchanges, while the server was working';
COMMENT ON COLUMN pgnetlat_history.send_time IS 'milliseconds: in exchanges, handing bytes to the socket';
COMMENT ON COLUMN pgnetlat_history.recv_time IS 'milliseconds: in exchanges, waiting for more data from the client; exact up to the first data of a COPY, sampled afterwards';
COMMENT ON COLUMN pgnetlat_history.network_time IS 'milliseconds: the round trip in each wait between exchanges that is not idle, and the one in which COPY FROM STDIN asks for data; 0 on a Unix-domain socket';
COMMENT ON COLUMN pgnetlat_history.client_time IS 'milliseconds: the rest of these waits, in which the client thinks';
COMMENT ON COLUMN pgnetlat_history.idle_time IS 'milliseconds: waits outside a transaction longer than pgnetlat.idle_threshold, and what would have been the round trip of a session''s last wait';
COMMENT ON COLUMN pgnetlat_history.in_xact_wait_time IS 'milliseconds: part of network_time + client_time spent inside a transaction';
COMMENT ON COLUMN pgnetlat_history.send_blocked_time IS 'milliseconds: part of send_time: sends that took longer than a mere system call';
COMMENT ON COLUMN pgnetlat_history.send_client_time IS 'milliseconds: part of send_blocked_time: the client would accept no more data; a lower bound over TCP';
COMMENT ON COLUMN pgnetlat_history.server_share IS 'exec_time + send_time - send_blocked_time + run_queue_wait_time, as a share (0 to 1) of the time that was not idle; NULL if there was none';
COMMENT ON COLUMN pgnetlat_history.network_share IS 'network_time + send_blocked_time - send_client_time, as a share of the same time; NULL if there was none';
COMMENT ON COLUMN pgnetlat_history.client_share IS 'client_time - run_queue_wait_time + recv_time + send_client_time, as a share of the same time; NULL if there was none';
COMMENT ON COLUMN pgnetlat_history.retransmits IS 'TCP segments sent again';
COMMENT ON COLUMN pgnetlat_history.bytes_sent IS 'bytes handed to the socket, before encryption';
COMMENT ON COLUMN pgnetlat_history.bytes_received IS 'bytes received over TCP';
COMMENT ON COLUMN pgnetlat_history.run_queue_time IS 'milliseconds: time ready to run but without a processor';
COMMENT ON COLUMN pgnetlat_history.run_queue_wait_time IS 'milliseconds: part of run_queue_time and of client_time, estimated: a request had arrived, and the backend had no processor to read it';
COMMENT ON COLUMN pgnetlat_history.exec_cpu_time IS 'milliseconds: part of exec_time, sampled: no wait event, so on a processor or waiting for one';
COMMENT ON COLUMN pgnetlat_history.exec_io_time IS 'milliseconds: part of exec_time, sampled: reading or writing files';
COMMENT ON COLUMN pgnetlat_history.exec_lock_time IS 'milliseconds: part of exec_time, sampled: waiting for a lock (wait events of type Lock); a wait in progress is exact';
COMMENT ON COLUMN pgnetlat_history.exec_replication_time IS 'milliseconds: part of exec_time, sampled: waiting for a standby';
COMMENT ON COLUMN pgnetlat_history.exec_remote_time IS 'milliseconds: part of exec_time, sampled: waiting for another server as its client';
COMMENT ON COLUMN pgnetlat_history.exec_other_time IS 'milliseconds: part of exec_time, sampled: any other wait event';
COMMENT ON COLUMN pgnetlat_history.exec_unsampled_time IS 'milliseconds: the rest of exec_time, which no sample accounts for';
COMMENT ON COLUMN pgnetlat_history.connections IS 'connections that were set up';
COMMENT ON COLUMN pgnetlat_history.failed_connections IS 'connections that ended after authentication had begun and before the first ReadyForQuery';
COMMENT ON COLUMN pgnetlat_history.connect_time IS 'milliseconds: setting up connections, from the accepted socket until the first ReadyForQuery had been sent; not a part of total_time';

-- ---------------------------------------------------------------------------
-- Statements
-- ---------------------------------------------------------------------------

ALTER FUNCTION pgnetlat_statements() RENAME TO pgnetlat_statements_1_0;

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
	OUT exec_cpu_time double precision,
	OUT exec_io_time double precision,
	OUT exec_lock_time double precision,
	OUT exec_replication_time double precision,
	OUT exec_remote_time double precision,
	OUT exec_other_time double precision,
	OUT exec_unsampled_time double precision)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pgnetlat_statements_1_1'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED COST 1000 ROWS 1000;

COMMENT ON FUNCTION pgnetlat_statements() IS
	'time in milliseconds by statement, with waits booked to the statement before them; userid, dbid and queryid are NULL in the row of evicted statements';

CREATE OR REPLACE VIEW pgnetlat_statements AS
SELECT * FROM pgnetlat_statements();

COMMENT ON VIEW pgnetlat_statements IS
	'where time went, by role, database and query identifier, with waits booked to the statement before them';
COMMENT ON COLUMN pgnetlat_statements.userid IS 'OID of the role that ran it; NULL in the row of evicted statements';
COMMENT ON COLUMN pgnetlat_statements.dbid IS 'OID of the database; NULL in the row of evicted statements';
COMMENT ON COLUMN pgnetlat_statements.queryid IS 'query identifier; NULL in the row of evicted statements, for exchanges without one and, without pg_read_all_stats, for other roles'' statements';
COMMENT ON COLUMN pgnetlat_statements.calls IS 'executions completed, or fetched from for the first time if their portal was suspended';
COMMENT ON COLUMN pgnetlat_statements.rows IS 'rows returned or affected';
COMMENT ON COLUMN pgnetlat_statements.exec_time IS 'milliseconds: in its executions, while the server was working';
COMMENT ON COLUMN pgnetlat_statements.send_time IS 'milliseconds: in its executions, handing bytes to the socket';
COMMENT ON COLUMN pgnetlat_statements.recv_time IS 'milliseconds: in its executions, waiting for more data from the client; exact up to the first data of a COPY, sampled afterwards';
COMMENT ON COLUMN pgnetlat_statements.network_time IS 'milliseconds: the round trips after it, and after exchanges that only prepared it';
COMMENT ON COLUMN pgnetlat_statements.client_time IS 'milliseconds: the rest of these waits, in which the client thinks';
COMMENT ON COLUMN pgnetlat_statements.in_xact_wait_time IS 'milliseconds: part of these waits spent inside a transaction';
COMMENT ON COLUMN pgnetlat_statements.bytes_sent IS 'bytes of its responses';
COMMENT ON COLUMN pgnetlat_statements.repeats IS 'executions that repeat an earlier one in the same burst; outside of a transaction block, only those of a loop';
COMMENT ON COLUMN pgnetlat_statements.repeat_network_time IS 'milliseconds: the round trips that these took, and those that prepared the statement again';
COMMENT ON COLUMN pgnetlat_statements.stats_since IS 'when counting began for this row';
COMMENT ON COLUMN pgnetlat_statements.exec_cpu_time IS 'milliseconds: part of exec_time, sampled: no wait event, so on a processor or waiting for one';
COMMENT ON COLUMN pgnetlat_statements.exec_io_time IS 'milliseconds: part of exec_time, sampled: reading or writing files';
COMMENT ON COLUMN pgnetlat_statements.exec_lock_time IS 'milliseconds: part of exec_time, sampled: waiting for a lock (wait events of type Lock); a wait in progress is exact';
COMMENT ON COLUMN pgnetlat_statements.exec_replication_time IS 'milliseconds: part of exec_time, sampled: waiting for a standby';
COMMENT ON COLUMN pgnetlat_statements.exec_remote_time IS 'milliseconds: part of exec_time, sampled: waiting for another server as its client';
COMMENT ON COLUMN pgnetlat_statements.exec_other_time IS 'milliseconds: part of exec_time, sampled: any other wait event';
COMMENT ON COLUMN pgnetlat_statements.exec_unsampled_time IS 'milliseconds: the rest of exec_time, which no sample accounts for';

-- ---------------------------------------------------------------------------
-- Resets of one session, or of some clients
-- ---------------------------------------------------------------------------

CREATE FUNCTION pgnetlat_reset_session(pid integer)
RETURNS timestamptz
AS 'MODULE_PATHNAME', 'pgnetlat_reset_session'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED COST 100;

CREATE FUNCTION pgnetlat_reset_clients(
	datid oid DEFAULT NULL,
	usesysid oid DEFAULT NULL,
	application_name text DEFAULT NULL,
	client_addr inet DEFAULT NULL)
RETURNS bigint
AS 'MODULE_PATHNAME', 'pgnetlat_reset_clients'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 1000;

COMMENT ON FUNCTION pgnetlat_reset_session(integer) IS
	'discards what the session with this process ID has counted, and returns the time from which it counts again; NULL if there is no such session';
COMMENT ON FUNCTION pgnetlat_reset_clients(oid, oid, text, inet) IS
	'discards what has been counted for the client groups that match all given arguments, and returns their number; NULL matches anything';

REVOKE ALL ON FUNCTION pgnetlat_reset_session(integer) FROM PUBLIC;
REVOKE ALL ON FUNCTION pgnetlat_reset_clients(oid, oid, text, inet) FROM PUBLIC;

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
	'the statements with the most network and send time, with their text where pg_stat_statements has it (NULL elsewhere)';

CREATE OR REPLACE VIEW pgnetlat_top_statements AS
SELECT * FROM pgnetlat_top_statements();

COMMENT ON VIEW pgnetlat_top_statements IS
	'the 20 statements with the most network and send time, with their text where pg_stat_statements has it';
COMMENT ON COLUMN pgnetlat_top_statements.userid IS 'OID of the role that ran it; NULL in the row of evicted statements';
COMMENT ON COLUMN pgnetlat_top_statements.dbid IS 'OID of the database; NULL in the row of evicted statements';
COMMENT ON COLUMN pgnetlat_top_statements.queryid IS 'query identifier; NULL in the row of evicted statements, for exchanges without one and, without pg_read_all_stats, for other roles'' statements';
COMMENT ON COLUMN pgnetlat_top_statements.calls IS 'executions completed, or fetched from for the first time if their portal was suspended';
COMMENT ON COLUMN pgnetlat_top_statements.rows IS 'rows returned or affected';
COMMENT ON COLUMN pgnetlat_top_statements.exec_time IS 'milliseconds: in its executions, while the server was working';
COMMENT ON COLUMN pgnetlat_top_statements.send_time IS 'milliseconds: in its executions, handing bytes to the socket';
COMMENT ON COLUMN pgnetlat_top_statements.network_time IS 'milliseconds: the round trips after it, and after exchanges that only prepared it';
COMMENT ON COLUMN pgnetlat_top_statements.client_time IS 'milliseconds: the rest of these waits, in which the client thinks';
COMMENT ON COLUMN pgnetlat_top_statements.repeats IS 'executions that repeat an earlier one in the same burst; outside of a transaction block, only those of a loop';
COMMENT ON COLUMN pgnetlat_top_statements.repeat_network_time IS 'milliseconds: the round trips that these took, and those that prepared the statement again';
COMMENT ON COLUMN pgnetlat_top_statements.query IS 'text of the statement; NULL if pg_stat_statements is not installed, is not readable, or does not have it';

-- ---------------------------------------------------------------------------
-- The extension itself
-- ---------------------------------------------------------------------------

ALTER FUNCTION pgnetlat_info() RENAME TO pgnetlat_info_1_0;

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
	OUT stats_reset timestamptz,
	OUT blockers bigint,
	OUT blockers_max bigint,
	OUT blockers_evicted bigint)
RETURNS record
AS 'MODULE_PATHNAME', 'pgnetlat_info_1_1'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED COST 100;

COMMENT ON FUNCTION pgnetlat_info() IS
	'version, health of the sampler (sampler_pid is NULL while it is down), evictions and memory';

CREATE OR REPLACE VIEW pgnetlat_info AS
SELECT i.version, i.sampler_pid, i.sampler_start, i.sampler_last_tick, i.sampler_ticks,
	i.sampler_cpu_time, i.sampler_errors, i.statements, i.statements_max,
	i.statements_evicted, i.clients, i.clients_max, i.clients_evicted, i.records_dropped,
	i.shared_memory_bytes, i.stats_reset, i.blockers, i.blockers_max, i.blockers_evicted
  FROM pgnetlat_info() i;

-- ---------------------------------------------------------------------------
-- Replication
-- ---------------------------------------------------------------------------

CREATE FUNCTION pgnetlat_walsenders(
	OUT pid integer,
	OUT usesysid oid,
	OUT application_name text,
	OUT client_addr inet,
	OUT client_port integer,
	OUT backend_start timestamptz,
	OUT kind text,
	OUT transport text,
	OUT state text,
	OUT stats_since timestamptz,
	OUT total_time double precision,
	OUT send_time double precision,
	OUT send_network_time double precision,
	OUT send_client_time double precision,
	OUT busy_time double precision,
	OUT idle_time double precision,
	OUT pending_time double precision,
	OUT bytes_sent bigint,
	OUT bytes_received bigint,
	OUT packets_sent bigint,
	OUT packets_received bigint,
	OUT retransmits bigint,
	OUT rtt double precision,
	OUT srtt double precision,
	OUT rtt_at timestamptz,
	OUT replies bigint,
	OUT flushes bigint,
	OUT flush_time double precision,
	OUT flush_network_time double precision,
	OUT flush_standby_time double precision,
	OUT flush_lag double precision,
	OUT sync_priority integer)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pgnetlat_walsenders'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED COST 100 ROWS 10;

COMMENT ON FUNCTION pgnetlat_walsenders() IS
	'account of every walsender, times in milliseconds; all but its identity is NULL where the caller may not see it';

CREATE VIEW pgnetlat_walsenders AS
SELECT w.pid,
	   w.usesysid,
	   u.rolname AS usename,
	   w.application_name,
	   w.client_addr,
	   w.client_port,
	   w.backend_start,
	   w.kind,
	   w.transport,
	   w.state,
	   w.stats_since,
	   w.total_time,
	   w.send_time,
	   w.send_network_time,
	   w.send_client_time,
	   w.busy_time,
	   w.idle_time,
	   w.pending_time,
	   w.bytes_sent,
	   w.bytes_received,
	   w.packets_sent,
	   w.packets_received,
	   w.retransmits,
	   w.rtt,
	   w.srtt,
	   w.rtt_at,
	   w.replies,
	   w.flushes,
	   w.flush_time,
	   w.flush_network_time,
	   w.flush_standby_time,
	   w.flush_lag,
	   w.sync_priority,
	   CASE WHEN w.sync_priority OPERATOR(pg_catalog.>) 0
			THEN (SELECT pg_catalog.sum(c.exec_replication_time) FROM pgnetlat_clients() c)
	   END AS exec_replication_time
  FROM pgnetlat_walsenders() w
  LEFT JOIN pg_catalog.pg_roles u ON u.oid = w.usesysid;

GRANT SELECT ON pgnetlat_walsenders TO PUBLIC;

COMMENT ON VIEW pgnetlat_walsenders IS
	'account of every walsender: where its time goes, what blocks it, and what its receiver''s flushes cost';
COMMENT ON COLUMN pgnetlat_walsenders.pid IS 'process ID of the walsender';
COMMENT ON COLUMN pgnetlat_walsenders.usesysid IS 'OID of its role';
COMMENT ON COLUMN pgnetlat_walsenders.usename IS 'name of the role; NULL if it has been dropped';
COMMENT ON COLUMN pgnetlat_walsenders.application_name IS 'its application_name when it began what it is for';
COMMENT ON COLUMN pgnetlat_walsenders.client_addr IS 'address of the receiver; NULL on a Unix-domain socket';
COMMENT ON COLUMN pgnetlat_walsenders.client_port IS 'TCP port of the receiver; -1 on a Unix-domain socket';
COMMENT ON COLUMN pgnetlat_walsenders.backend_start IS 'when it was started';
COMMENT ON COLUMN pgnetlat_walsenders.kind IS 'physical, logical or base backup; commands while it has done nothing of these';
COMMENT ON COLUMN pgnetlat_walsenders.transport IS 'unix, tcp, tls or gss';
COMMENT ON COLUMN pgnetlat_walsenders.state IS 'sending, busy, idle, or disabled while pgnetlat.enabled is off';
COMMENT ON COLUMN pgnetlat_walsenders.stats_since IS 'when counting began: when it told its client that it was ready, or at the latest reset';
COMMENT ON COLUMN pgnetlat_walsenders.total_time IS 'milliseconds: all of the time since stats_since; the sum of send_time, busy_time, idle_time and pending_time';
COMMENT ON COLUMN pgnetlat_walsenders.send_time IS 'milliseconds: what it had to send was going to the socket, or was left because the socket took no more';
COMMENT ON COLUMN pgnetlat_walsenders.send_network_time IS 'milliseconds: of send_time: blocked by the network';
COMMENT ON COLUMN pgnetlat_walsenders.send_client_time IS 'milliseconds: of send_time: blocked by the receiver, whose receive window was closed';
COMMENT ON COLUMN pgnetlat_walsenders.busy_time IS 'milliseconds: it was working: reading WAL or files, decoding, reading replies; sampled';
COMMENT ON COLUMN pgnetlat_walsenders.idle_time IS 'milliseconds: it was waiting for something to send, or for a command; sampled';
COMMENT ON COLUMN pgnetlat_walsenders.pending_time IS 'milliseconds: what cannot be attributed yet; the only time here that can decrease';
COMMENT ON COLUMN pgnetlat_walsenders.bytes_sent IS 'bytes of messages to the receiver, before encryption';
COMMENT ON COLUMN pgnetlat_walsenders.bytes_received IS 'as counted by the kernel; NULL where it counts none';
COMMENT ON COLUMN pgnetlat_walsenders.packets_sent IS 'segments, as counted by the kernel; NULL where it counts none';
COMMENT ON COLUMN pgnetlat_walsenders.packets_received IS 'segments, as counted by the kernel; NULL where it counts none';
COMMENT ON COLUMN pgnetlat_walsenders.retransmits IS 'segments sent again; NULL where the kernel counts none';
COMMENT ON COLUMN pgnetlat_walsenders.rtt IS 'milliseconds: round-trip time of the path to the receiver: the minimum that the kernel has measured; NULL if it has none';
COMMENT ON COLUMN pgnetlat_walsenders.srtt IS 'milliseconds: the kernels smoothed round-trip time, which includes delayed acknowledgements';
COMMENT ON COLUMN pgnetlat_walsenders.rtt_at IS 'when the kernel was asked';
COMMENT ON COLUMN pgnetlat_walsenders.replies IS 'messages in which the receiver said how far it was; what was read at once counts as one';
COMMENT ON COLUMN pgnetlat_walsenders.flushes IS 'of these, those that confirmed a flush of which core measured the lag';
COMMENT ON COLUMN pgnetlat_walsenders.flush_time IS 'milliseconds: sum of these lags: from when WAL was sent until its flush was confirmed';
COMMENT ON COLUMN pgnetlat_walsenders.flush_network_time IS 'milliseconds: of flush_time: one round trip of the path for each';
COMMENT ON COLUMN pgnetlat_walsenders.flush_standby_time IS 'milliseconds: of flush_time: the rest, which is the receivers work, and what WAL took to get through a slow line';
COMMENT ON COLUMN pgnetlat_walsenders.flush_lag IS 'milliseconds: the latest such lag, as in pg_stat_replication; NULL if core has none';
COMMENT ON COLUMN pgnetlat_walsenders.sync_priority IS 'as in pg_stat_replication; 0 if commits do not wait for it';
COMMENT ON COLUMN pgnetlat_walsenders.exec_replication_time IS 'milliseconds: what all sessions together have waited for standbys in commits, beside the walsenders that are such standbys; NULL for others';

CREATE FUNCTION pgnetlat_replication(
	OUT kind text,
	OUT application_name text,
	OUT client_addr inet,
	OUT walsenders bigint,
	OUT ended_walsenders bigint,
	OUT total_time double precision,
	OUT send_time double precision,
	OUT send_network_time double precision,
	OUT send_client_time double precision,
	OUT busy_time double precision,
	OUT idle_time double precision,
	OUT pending_time double precision,
	OUT bytes_sent bigint,
	OUT bytes_received bigint,
	OUT packets_sent bigint,
	OUT packets_received bigint,
	OUT retransmits bigint,
	OUT replies bigint,
	OUT flushes bigint,
	OUT flush_time double precision,
	OUT flush_network_time double precision,
	OUT flush_standby_time double precision)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pgnetlat_replication'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED COST 100 ROWS 10;

COMMENT ON FUNCTION pgnetlat_replication() IS
	'sums over walsenders, those that have ended included, by kind, application and address; times in milliseconds; all but kind and application is NULL without pg_read_all_stats';

CREATE VIEW pgnetlat_replication AS
SELECT r.kind,
	   r.application_name,
	   r.client_addr,
	   r.walsenders,
	   r.ended_walsenders,
	   r.total_time,
	   r.send_time,
	   r.send_network_time,
	   r.send_client_time,
	   r.busy_time,
	   r.idle_time,
	   r.pending_time,
	   r.bytes_sent,
	   r.bytes_received,
	   r.packets_sent,
	   r.packets_received,
	   r.retransmits,
	   r.replies,
	   r.flushes,
	   r.flush_time,
	   r.flush_network_time,
	   r.flush_standby_time
  FROM pgnetlat_replication() r;

GRANT SELECT ON pgnetlat_replication TO PUBLIC;

COMMENT ON VIEW pgnetlat_replication IS
	'sums over walsenders since the server was started or the latest reset, by kind, application and address';
COMMENT ON COLUMN pgnetlat_replication.kind IS 'as in pgnetlat_walsenders; NULL in the row of those that found no place';
COMMENT ON COLUMN pgnetlat_replication.application_name IS 'that of the walsenders; (others) in the row of those that found no place';
COMMENT ON COLUMN pgnetlat_replication.client_addr IS 'address of the receiver; NULL on a Unix-domain socket';
COMMENT ON COLUMN pgnetlat_replication.walsenders IS 'those that are connected';
COMMENT ON COLUMN pgnetlat_replication.ended_walsenders IS 'those that have ended';
COMMENT ON COLUMN pgnetlat_replication.total_time IS 'milliseconds: all of their time; the sum of send_time, busy_time, idle_time and pending_time';
COMMENT ON COLUMN pgnetlat_replication.send_time IS 'milliseconds: what it had to send was going to the socket, or was left because the socket took no more';
COMMENT ON COLUMN pgnetlat_replication.send_network_time IS 'milliseconds: of send_time: blocked by the network';
COMMENT ON COLUMN pgnetlat_replication.send_client_time IS 'milliseconds: of send_time: blocked by the receiver, whose receive window was closed';
COMMENT ON COLUMN pgnetlat_replication.busy_time IS 'milliseconds: it was working: reading WAL or files, decoding, reading replies; sampled';
COMMENT ON COLUMN pgnetlat_replication.idle_time IS 'milliseconds: it was waiting for something to send, or for a command; sampled';
COMMENT ON COLUMN pgnetlat_replication.pending_time IS 'milliseconds: what cannot be attributed yet; the only time here that can decrease';
COMMENT ON COLUMN pgnetlat_replication.bytes_sent IS 'bytes of messages to the receivers, before encryption';
COMMENT ON COLUMN pgnetlat_replication.bytes_received IS 'as counted by the kernel; NULL where it counts none';
COMMENT ON COLUMN pgnetlat_replication.packets_sent IS 'segments, as counted by the kernel; NULL where it counts none';
COMMENT ON COLUMN pgnetlat_replication.packets_received IS 'segments, as counted by the kernel; NULL where it counts none';
COMMENT ON COLUMN pgnetlat_replication.retransmits IS 'segments sent again; NULL where the kernel counts none';
COMMENT ON COLUMN pgnetlat_replication.replies IS 'messages in which the receiver said how far it was; what was read at once counts as one';
COMMENT ON COLUMN pgnetlat_replication.flushes IS 'of these, those that confirmed a flush of which core measured the lag';
COMMENT ON COLUMN pgnetlat_replication.flush_time IS 'milliseconds: sum of these lags: from when WAL was sent until its flush was confirmed';
COMMENT ON COLUMN pgnetlat_replication.flush_network_time IS 'milliseconds: of flush_time: one round trip of the path for each';
COMMENT ON COLUMN pgnetlat_replication.flush_standby_time IS 'milliseconds: of flush_time: the rest, which is the receivers work, and what WAL took to get through a slow line';

-- ---------------------------------------------------------------------------
-- Predictions
-- ---------------------------------------------------------------------------

CREATE FUNCTION pgnetlat_what_if(
	IN rtt double precision DEFAULT NULL,
	IN batch double precision DEFAULT NULL,
	IN server_speed double precision DEFAULT NULL,
	IN sessions integer DEFAULT NULL,
	IN "window" interval DEFAULT '15 min',
	OUT datid oid,
	OUT datname name,
	OUT usesysid oid,
	OUT usename name,
	OUT application_name text,
	OUT client_addr inet,
	OUT busy_sessions double precision,
	OUT transactions bigint,
	OUT requests bigint,
	OUT round_trips double precision,
	OUT server_time double precision,
	OUT network_time double precision,
	OUT client_time double precision,
	OUT transaction_time double precision,
	OUT throughput double precision,
	OUT predicted_transaction_time double precision,
	OUT predicted_throughput double precision,
	OUT predicted_throughput_low double precision,
	OUT predicted_throughput_high double precision,
	OUT change double precision)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pgnetlat_what_if'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 1000 ROWS 100;

CREATE FUNCTION pgnetlat_what_if_session(
	IN pid integer,
	IN rtt double precision DEFAULT NULL,
	IN batch double precision DEFAULT NULL,
	IN server_speed double precision DEFAULT NULL,
	IN "window" interval DEFAULT '15 min',
	OUT transactions bigint,
	OUT requests bigint,
	OUT round_trips double precision,
	OUT server_time double precision,
	OUT network_time double precision,
	OUT client_time double precision,
	OUT transaction_time double precision,
	OUT throughput double precision,
	OUT predicted_transaction_time double precision,
	OUT predicted_throughput double precision,
	OUT predicted_throughput_low double precision,
	OUT predicted_throughput_high double precision,
	OUT change double precision)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pgnetlat_what_if_session'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 100 ROWS 1;

COMMENT ON FUNCTION pgnetlat_what_if(double precision, double precision, double precision, integer, interval) IS
	'by client group, what a transaction took in the window, in milliseconds, and what is predicted if round trips took rtt milliseconds, batch statements shared a round trip, the server were server_speed times as fast, or there were so many sessions; NULL: as it is';
COMMENT ON FUNCTION pgnetlat_what_if_session(integer, double precision, double precision, double precision, interval) IS
	'the same for the session with this process ID';

-- ---------------------------------------------------------------------------
-- How many sessions are busy at once
-- ---------------------------------------------------------------------------

CREATE FUNCTION pgnetlat_pools(
	OUT datid oid,
	OUT datname name,
	OUT usesysid oid,
	OUT usename name,
	OUT sessions bigint,
	OUT sessions_max bigint,
	OUT busy bigint,
	OUT busy_avg double precision,
	OUT busy_avg_sampled double precision,
	OUT busy_p50 bigint,
	OUT busy_p95 bigint,
	OUT busy_p99 bigint,
	OUT busy_p999 bigint,
	OUT busy_max bigint,
	OUT pool_size bigint,
	OUT stats_since timestamptz)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pgnetlat_pools'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED COST 1000 ROWS 20;

CREATE FUNCTION pgnetlat_pools_last(
	IN duration interval DEFAULT '15 min',
	OUT datid oid,
	OUT datname name,
	OUT usesysid oid,
	OUT usename name,
	OUT sessions bigint,
	OUT sessions_max bigint,
	OUT busy bigint,
	OUT busy_avg double precision,
	OUT busy_avg_sampled double precision,
	OUT busy_p50 bigint,
	OUT busy_p95 bigint,
	OUT busy_p99 bigint,
	OUT busy_p999 bigint,
	OUT busy_max bigint,
	OUT pool_size bigint,
	OUT stats_since timestamptz,
	OUT window_time double precision)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pgnetlat_pools_last'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED COST 1000 ROWS 20;

COMMENT ON FUNCTION pgnetlat_pools() IS
	'how many sessions are busy at once, by database and role, and for all sessions together; all but their number is NULL where the caller may not see it';
COMMENT ON FUNCTION pgnetlat_pools_last(interval) IS
	'pgnetlat_pools over the given time up to now, at most 15 minutes: since stats_since, which was window_time milliseconds ago';

CREATE VIEW pgnetlat_pools AS
SELECT * FROM pgnetlat_pools();

GRANT SELECT ON pgnetlat_pools TO PUBLIC;

COMMENT ON VIEW pgnetlat_pools IS
	'how many sessions are busy at once, by database and role, and for all sessions together: how large a pool of server connections would have to be';
COMMENT ON COLUMN pgnetlat_pools.datid IS 'OID of the database; NULL in the row of all sessions and in that of evicted pools';
COMMENT ON COLUMN pgnetlat_pools.datname IS 'name of the database; NULL if it has been dropped, and in the row of all sessions; (evicted) in that of evicted pools';
COMMENT ON COLUMN pgnetlat_pools.usesysid IS 'OID of the role; NULL in the row of all sessions and in that of evicted pools';
COMMENT ON COLUMN pgnetlat_pools.usename IS 'name of the role; NULL if it has been dropped, in the row of all sessions and in that of evicted pools';
COMMENT ON COLUMN pgnetlat_pools.sessions IS 'sessions that are connected now';
COMMENT ON COLUMN pgnetlat_pools.sessions_max IS 'the most that were at any one time';
COMMENT ON COLUMN pgnetlat_pools.busy IS 'sessions that are in a request or in a transaction now: at the sampler''s latest tick; NULL while it is down';
COMMENT ON COLUMN pgnetlat_pools.busy_avg IS 'how many were on average: the time that sessions were, by their accounts, per time that has passed';
COMMENT ON COLUMN pgnetlat_pools.busy_avg_sampled IS 'how many were on average at the sampler''s ticks, which is what the columns that follow are made from; NULL if there was none';
COMMENT ON COLUMN pgnetlat_pools.busy_p50 IS 'the number that was not exceeded for 50 % of the time; exact up to 63, above that at most a sixteenth too much; NULL if nothing was sampled';
COMMENT ON COLUMN pgnetlat_pools.busy_p95 IS 'the same for 95 % of the time';
COMMENT ON COLUMN pgnetlat_pools.busy_p99 IS 'the same for 99 % of the time';
COMMENT ON COLUMN pgnetlat_pools.busy_p999 IS 'the same for 99.9 % of the time';
COMMENT ON COLUMN pgnetlat_pools.busy_max IS 'the most that were busy at a tick';
COMMENT ON COLUMN pgnetlat_pools.pool_size IS 'with so many server connections, transaction pooling would have served these sessions for 99.9 % of the time without a wait';
COMMENT ON COLUMN pgnetlat_pools.stats_since IS 'when counting began for this row';
-- Diagnosis
-- ---------------------------------------------------------------------------

CREATE FUNCTION pgnetlat_diagnose(
	IN "window" interval DEFAULT '15 min',
	OUT subject_kind text,
	OUT subject text,
	OUT verdict text,
	OUT evidence text,
	OUT advice text,
	OUT lost_time double precision,
	OUT saving double precision,
	OUT saving_share double precision,
	OUT pid integer,
	OUT queryid bigint,
	OUT usesysid oid,
	OUT usename name,
	OUT datid oid,
	OUT datname name,
	OUT application_name text,
	OUT client_addr inet)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pgnetlat_diagnose'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED COST 1000 ROWS 20;

COMMENT ON FUNCTION pgnetlat_diagnose(interval) IS
	'what is wrong, the most expensive first, over the given time up to now, at most 15 minutes: one row per finding, with figures and the next step; lost_time and saving in milliseconds per second; nothing about sessions that the caller may not see';

-- ---------------------------------------------------------------------------
-- What has not changed, except for its comments and planner estimates
-- ---------------------------------------------------------------------------

-- About the attributes.  All functions read shared memory that changes while
-- they run, and most of them first add to it what sessions have counted: hence
-- VOLATILE.  They are restricted to the leader, so that a query sees one state,
-- not one for each worker.  ROWS are those of a medium-sized server: 100 sessions
-- and as many client groups.  COST is that of a call, which does all of the
-- work: ten times as much where what sessions have counted is added first.
ALTER FUNCTION pgnetlat_waits() COST 100 ROWS 500;
ALTER FUNCTION pgnetlat_recent(integer) COST 100 ROWS 50;
ALTER FUNCTION pgnetlat_reset() COST 1000;

COMMENT ON FUNCTION pgnetlat_recent(integer) IS
	'the last exchanges of the session with this process ID, as far as its flight recorder holds them completely, oldest first, each with the wait after it; times in milliseconds';

COMMENT ON VIEW pgnetlat_waits IS
	'sampled wait events of each connected session, by state; without pg_read_all_stats, no rows for other roles'' sessions';
COMMENT ON COLUMN pgnetlat_waits.pid IS 'process ID of the backend';
COMMENT ON COLUMN pgnetlat_waits.state IS 'state of the session, as in pgnetlat_sessions; NULL in the row whose wait_event is other';
COMMENT ON COLUMN pgnetlat_waits.wait_event_type IS 'as in pg_stat_activity; CPU where there is no wait event; NULL in the row whose wait_event is other';
COMMENT ON COLUMN pgnetlat_waits.wait_event IS 'as in pg_stat_activity; CPU where there is no wait event; other for all beyond those that a session has room for';
COMMENT ON COLUMN pgnetlat_waits.samples IS 'number of samples';
COMMENT ON COLUMN pgnetlat_waits."time" IS 'milliseconds: the time that the samples stand for';

COMMENT ON VIEW pgnetlat_info IS
	'the extension itself: version, state of its worker, evictions and memory';
COMMENT ON COLUMN pgnetlat_info.version IS 'version of the library that the server has loaded';
COMMENT ON COLUMN pgnetlat_info.sampler_pid IS 'process ID of the background worker; NULL while it is down';
COMMENT ON COLUMN pgnetlat_info.sampler_start IS 'when the worker was started; NULL while it is down';
COMMENT ON COLUMN pgnetlat_info.sampler_last_tick IS 'when the worker took its latest sample';
COMMENT ON COLUMN pgnetlat_info.sampler_ticks IS 'samples taken since the server was started; a few per second while no session is active';
COMMENT ON COLUMN pgnetlat_info.sampler_cpu_time IS 'milliseconds: processor time that the worker has used';
COMMENT ON COLUMN pgnetlat_info.sampler_errors IS 'errors of the worker since the server was started';
COMMENT ON COLUMN pgnetlat_info.statements IS 'entries in use for pgnetlat_statements';
COMMENT ON COLUMN pgnetlat_info.statements_max IS 'maximum number of entries: pgnetlat.max_statements';
COMMENT ON COLUMN pgnetlat_info.statements_evicted IS 'entries evicted so far';
COMMENT ON COLUMN pgnetlat_info.clients IS 'entries in use for pgnetlat_clients';
COMMENT ON COLUMN pgnetlat_info.clients_max IS 'maximum number of entries: pgnetlat.max_clients';
COMMENT ON COLUMN pgnetlat_info.clients_evicted IS 'entries evicted so far';
COMMENT ON COLUMN pgnetlat_info.records_dropped IS 'always 0 since 1.1: nothing is dropped';
COMMENT ON COLUMN pgnetlat_info.shared_memory_bytes IS 'shared memory in use';
COMMENT ON COLUMN pgnetlat_info.stats_reset IS 'time of the latest reset';
COMMENT ON COLUMN pgnetlat_info.blockers IS 'entries in use for pgnetlat_blockers';
COMMENT ON COLUMN pgnetlat_info.blockers_max IS 'maximum number of entries: pgnetlat.max_blockers';
COMMENT ON COLUMN pgnetlat_info.blockers_evicted IS 'entries evicted so far; lock waits whose holder found no room count as well';

-- ---------------------------------------------------------------------------
-- What is no longer needed
-- ---------------------------------------------------------------------------

-- Only users' objects can depend on these functions now.  Privileges that somebody
-- has changed are not carried over: if granted here, they would be the
-- extension's own, and missing from dumps.
DO $$
DECLARE
	old     record;
	objects text;
BEGIN
	FOR old IN
		SELECT p.oid, p.proacl,
			   pg_catalog.regexp_replace(p.proname, '_1_0$', '') AS name
		  FROM pg_catalog.pg_depend m
		  JOIN pg_catalog.pg_extension e ON m.refobjid OPERATOR(pg_catalog.=) e.oid
		  JOIN pg_catalog.pg_proc p ON m.objid OPERATOR(pg_catalog.=) p.oid
		 WHERE m.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_extension'::pg_catalog.regclass
		   AND m.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass
		   AND m.deptype OPERATOR(pg_catalog.=) 'e'
		   AND e.extname OPERATOR(pg_catalog.=) 'pgnetlat'
		   AND p.proname OPERATOR(pg_catalog.~~) 'pgnetlat\_%\_1\_0'
		 ORDER BY p.proname
	LOOP
		SELECT pg_catalog.string_agg(DISTINCT
				   CASE WHEN r.oid IS NULL
						THEN pg_catalog.pg_describe_object(d.classid, d.objid, 0)
						ELSE pg_catalog.pg_describe_object('pg_catalog.pg_class'::pg_catalog.regclass,
														   r.ev_class, 0)
				   END, ', ')
		  INTO objects
		  FROM pg_catalog.pg_depend d
		  LEFT JOIN pg_catalog.pg_rewrite r
			ON d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_rewrite'::pg_catalog.regclass
		   AND d.objid OPERATOR(pg_catalog.=) r.oid
		 WHERE d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass
		   AND d.refobjid OPERATOR(pg_catalog.=) old.oid
		   AND d.deptype OPERATOR(pg_catalog.=) 'n';
		IF objects IS NOT NULL THEN
			RAISE EXCEPTION 'cannot update extension "pgnetlat" because other objects depend on function %(), whose declaration changes',
				old.name
				USING ERRCODE = 'dependent_objects_still_exist',
					  DETAIL = pg_catalog.format('The dependent objects are %s.', objects),
					  HINT = pg_catalog.format('Use the view %I in them instead, which remains, or drop them.', old.name);
		END IF;
		IF old.proacl IS NOT NULL THEN
			RAISE WARNING 'function %() has been given back its default privileges', old.name
				USING HINT = 'Repeat any GRANT or REVOKE on it.';
		END IF;
	END LOOP;
END
$$;

DROP FUNCTION pgnetlat_sessions_1_0();
DROP FUNCTION pgnetlat_clients_1_0();
DROP FUNCTION pgnetlat_histogram_1_0();
DROP FUNCTION pgnetlat_history_1_0();
DROP FUNCTION pgnetlat_statements_1_0();
DROP FUNCTION pgnetlat_top_statements_1_0(integer);
DROP FUNCTION pgnetlat_info_1_0();
