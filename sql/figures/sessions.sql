
-- ---------------------------------------------------------------------------
-- Sessions: where each connected client backend's wall-clock time went
-- ---------------------------------------------------------------------------

CREATE FUNCTION pgnetlat_sessions(
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
	@OUT counts@
	OUT total_time double precision,
	@OUT parts idle@
	OUT pending_time double precision,
	@OUT beside@
	OUT server_share double precision,
	OUT network_share double precision,
	OUT client_share double precision,
	OUT rtt double precision,
	OUT srtt double precision,
	OUT rtt_at timestamptz,
	OUT retransmits bigint,
	OUT unanswered_since timestamptz,
	OUT bytes_sent bigint,
	OUT bytes_received bigint,
	OUT packets_sent bigint,
	OUT packets_received bigint,
	OUT run_queue_time double precision,
	OUT run_queue_wait_time double precision,
	@OUT executing@
	OUT blocking_time double precision,
	OUT blocked_by integer,
	OUT connect_round_trips bigint,
	OUT connect_time double precision,
	OUT connect_tls_time double precision,
	OUT connect_auth_time double precision,
	OUT pooler_requests bigint,
	OUT client_rtt double precision,
	OUT pooler_addr inet,
	OUT window_time double precision)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED COST 100 ROWS 100;

COMMENT ON FUNCTION pgnetlat_sessions() IS
	'account of every connected client backend, times in milliseconds; all but the session''s identity is NULL where the caller may not see it';

CREATE VIEW pgnetlat_sessions AS
SELECT * FROM pgnetlat_sessions();

COMMENT ON VIEW pgnetlat_sessions IS
	'where the wall-clock time of each connected client backend went; without pg_read_all_stats, other roles'' sessions have only pid, datid, datname, usesysid, usename and application_name';
COMMENT ON COLUMN pgnetlat_sessions.pid IS 'process ID of the backend';
COMMENT ON COLUMN pgnetlat_sessions.datid IS 'OID of the database';
COMMENT ON COLUMN pgnetlat_sessions.datname IS 'name of the database';
COMMENT ON COLUMN pgnetlat_sessions.usesysid IS 'OID of the role';
COMMENT ON COLUMN pgnetlat_sessions.usename IS 'name of the role';
COMMENT ON COLUMN pgnetlat_sessions.application_name IS 'application_name as of the end of the latest exchange, without a pooler''s suffix; the name before if it is a tracer''s traceparent';
COMMENT ON COLUMN pgnetlat_sessions.client_addr IS 'as in pg_stat_activity; behind a pooler that names its client, that client''s; NULL on a Unix-domain socket';
COMMENT ON COLUMN pgnetlat_sessions.client_port IS 'as in pg_stat_activity, or the port of that client; -1 on a Unix-domain socket; NULL if the pooler''s suffix was cut off';
COMMENT ON COLUMN pgnetlat_sessions.backend_start IS 'when the backend was started, as in pg_stat_activity';
COMMENT ON COLUMN pgnetlat_sessions.transport IS 'unix, tcp, tls or gss';
COMMENT ON COLUMN pgnetlat_sessions.state IS 'executing, sending, receiving, waiting, waiting in transaction or idle; disabled while pgnetlat.enabled is off for the session';
COMMENT ON COLUMN pgnetlat_sessions.state_change IS 'when that state began';
COMMENT ON COLUMN pgnetlat_sessions.stats_since IS 'when counting began: when the connection was established, or at the latest reset';
@COMMENT counts OF pgnetlat_sessions@
COMMENT ON COLUMN pgnetlat_sessions.total_time IS 'milliseconds: the sum of its parts, exec_time to pending_time';
@COMMENT parts idle OF pgnetlat_sessions@
COMMENT ON COLUMN pgnetlat_sessions.pending_time IS 'milliseconds: time that cannot be attributed to another part yet, so it can decrease';
@COMMENT beside OF pgnetlat_sessions@
COMMENT ON COLUMN pgnetlat_sessions.server_share IS 'exec_time + send_time - send_blocked_time + run_queue_wait_time, as a share (0 to 1) of the time that was neither idle nor pending; NULL if there was none';
COMMENT ON COLUMN pgnetlat_sessions.network_share IS 'network_time + send_blocked_time - send_client_time, as a share of the same time; NULL if there was none';
COMMENT ON COLUMN pgnetlat_sessions.client_share IS 'client_time - run_queue_wait_time + recv_time + send_client_time, as a share of the same time; NULL if there was none';
COMMENT ON COLUMN pgnetlat_sessions.rtt IS 'milliseconds: the path''s round-trip time: the kernel''s windowed minimum for the connection or, if shorter, that of most connections from the same address whose setup showed the same round trip; NULL on a Unix-domain socket or where the kernel does not report it';
COMMENT ON COLUMN pgnetlat_sessions.srtt IS 'milliseconds: the kernel''s smoothed round-trip time, which includes delayed acknowledgements; NULL on a Unix-domain socket or where the kernel does not report it';
COMMENT ON COLUMN pgnetlat_sessions.rtt_at IS 'when the kernel was last asked; NULL if it was not';
COMMENT ON COLUMN pgnetlat_sessions.retransmits IS 'TCP segments sent again, except those that the client had already received, if the kernel knows which; as of rtt_at; NULL on a Unix-domain socket or where the kernel does not report it';
COMMENT ON COLUMN pgnetlat_sessions.unanswered_since IS 'since when the client''s host has acknowledged nothing, although the kernel has sent it data, or probes, again and again; NULL if it answers, or nothing is being sent';
COMMENT ON COLUMN pgnetlat_sessions.bytes_sent IS 'bytes handed to the socket, before encryption';
COMMENT ON COLUMN pgnetlat_sessions.bytes_received IS 'bytes received over TCP; as of rtt_at; NULL on a Unix-domain socket or where the kernel does not report it';
COMMENT ON COLUMN pgnetlat_sessions.packets_sent IS 'TCP segments sent; as of rtt_at; NULL on a Unix-domain socket or where the kernel does not report it';
COMMENT ON COLUMN pgnetlat_sessions.packets_received IS 'TCP segments received; as of rtt_at; NULL on a Unix-domain socket or where the kernel does not report it';
COMMENT ON COLUMN pgnetlat_sessions.run_queue_time IS 'milliseconds: time spent waiting for a CPU, except when waking from idle time, as of the latest request at which the session asked the kernel; NULL where the kernel does not say';
COMMENT ON COLUMN pgnetlat_sessions.run_queue_wait_time IS 'milliseconds: part of run_queue_time and of client_time, estimated: a request had arrived, and the backend was waiting for a CPU to read it; NULL where the kernel does not say';
@COMMENT executing OF pgnetlat_sessions@
COMMENT ON COLUMN pgnetlat_sessions.blocking_time IS 'milliseconds: time for which other sessions were blocked with this session at the head of the lock queue';
COMMENT ON COLUMN pgnetlat_sessions.blocked_by IS 'process ID of the session at the head of the lock queue that this one waits in now; 0 for a prepared transaction, NULL if it is not blocked or the head is not known';
COMMENT ON COLUMN pgnetlat_sessions.connect_round_trips IS 'round trips of connecting: one for TCP, those for encryption and authentication, and the last one; NULL if not known';
COMMENT ON COLUMN pgnetlat_sessions.connect_time IS 'milliseconds: setting up this connection, from the accepted socket until the first ReadyForQuery is sent, where the account begins; not a part of total_time; NULL if not known';
COMMENT ON COLUMN pgnetlat_sessions.connect_tls_time IS 'milliseconds: part of connect_time: on an encrypted connection, the time before the start-up packet; NULL if not known';
COMMENT ON COLUMN pgnetlat_sessions.connect_auth_time IS 'milliseconds: part of connect_time: authentication; NULL if not known';
COMMENT ON COLUMN pgnetlat_sessions.pooler_requests IS 'part of requests: a pooler''s own exchanges, between its clients';
COMMENT ON COLUMN pgnetlat_sessions.client_rtt IS 'milliseconds: round-trip time between a pooler on this host and its client; NULL if not known';
COMMENT ON COLUMN pgnetlat_sessions.pooler_addr IS 'address of the session''s pooler, if that names its client; NULL on a Unix-domain socket';
COMMENT ON COLUMN pgnetlat_sessions.window_time IS 'milliseconds since stats_since';

CREATE FUNCTION pgnetlat_sessions_last(duration interval DEFAULT '1 min')
RETURNS SETOF pgnetlat_sessions
AS 'MODULE_PATHNAME', 'pgnetlat_sessions'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED COST 100 ROWS 100;

COMMENT ON FUNCTION pgnetlat_sessions_last(interval) IS
	'pgnetlat_sessions over the given time up to now, at most 15 minutes: counts and times since stats_since, which was window_time milliseconds ago';

CREATE FUNCTION pgnetlat_reset_session(pid integer)
RETURNS timestamptz
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED COST 100;

COMMENT ON FUNCTION pgnetlat_reset_session(integer) IS
	'discards what the session with this process ID has counted, and returns the time of the reset; NULL if there is no such session';

REVOKE ALL ON FUNCTION pgnetlat_reset_session(integer) FROM PUBLIC;

GRANT SELECT ON pgnetlat_sessions TO PUBLIC;
