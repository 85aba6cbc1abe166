
-- ---------------------------------------------------------------------------
-- Clients: the account by database, role, application and address
-- ---------------------------------------------------------------------------

CREATE FUNCTION pgnetlat_clients(
	OUT datid oid,
	OUT datname name,
	OUT usesysid oid,
	OUT usename name,
	OUT application_name text,
	OUT client_addr inet,
	OUT sessions bigint,
	OUT ended_sessions bigint,
	@OUT counts@
	OUT total_time double precision,
	@OUT parts idle@
	OUT pending_time double precision,
	@OUT beside@
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
	@OUT executing@
	OUT connections bigint,
	OUT failed_connections bigint,
	OUT connect_round_trips bigint,
	OUT connect_time double precision,
	OUT connect_tls_time double precision,
	OUT connect_auth_time double precision,
	OUT pooler_requests bigint,
	OUT pooler_addr inet,
	OUT identified_statements bigint,
	OUT repeats_max bigint,
	OUT repeats_max_queryid bigint,
	OUT round_trips_max bigint,
	OUT window_time double precision)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED COST 1000 ROWS 100;

COMMENT ON FUNCTION pgnetlat_clients() IS
	'account by database, role, application and address, over live and ended sessions; usesysid is NULL in a database''s row of evicted groups';

CREATE VIEW pgnetlat_clients AS
SELECT * FROM pgnetlat_clients();

COMMENT ON VIEW pgnetlat_clients IS
	'where time went, by database, role, application and address, over live and ended sessions; without pg_read_all_stats, other roles'' groups have only datid, datname, usesysid, usename and application_name';
COMMENT ON COLUMN pgnetlat_clients.datid IS 'OID of the database; NULL in the evicted row of the remaining databases';
COMMENT ON COLUMN pgnetlat_clients.datname IS 'name of the database; NULL if it has been dropped';
COMMENT ON COLUMN pgnetlat_clients.usesysid IS 'OID of the role; NULL in a database''s row of evicted groups';
COMMENT ON COLUMN pgnetlat_clients.usename IS 'name of the role; NULL in a database''s row of evicted groups, or if it has been dropped';
COMMENT ON COLUMN pgnetlat_clients.application_name IS 'application_name of the sessions, without a pooler''s suffix and a tracer''s traceparent; (other names) in the row of those beyond 50 of a database, role and address, (failed) in the rows of failed connections, (evicted) in a database''s row of what groups had counted before they were evicted or reset';
COMMENT ON COLUMN pgnetlat_clients.client_addr IS 'address of the clients, even behind a pooler that names them; NULL on a Unix-domain socket, and in the rows of evicted groups';
COMMENT ON COLUMN pgnetlat_clients.sessions IS 'sessions connected now';
COMMENT ON COLUMN pgnetlat_clients.ended_sessions IS 'sessions ended since stats_since';
@COMMENT counts OF pgnetlat_clients@
COMMENT ON COLUMN pgnetlat_clients.total_time IS 'milliseconds: the sum of its parts, exec_time to pending_time';
@COMMENT parts idle OF pgnetlat_clients@
COMMENT ON COLUMN pgnetlat_clients.pending_time IS 'milliseconds: time that cannot be attributed to another part yet, so it can decrease';
@COMMENT beside OF pgnetlat_clients@
COMMENT ON COLUMN pgnetlat_clients.server_share IS 'exec_time + send_time - send_blocked_time + run_queue_wait_time, as a share (0 to 1) of the time that was neither idle nor pending; NULL if there was none';
COMMENT ON COLUMN pgnetlat_clients.network_share IS 'network_time + send_blocked_time - send_client_time, as a share of the same time; NULL if there was none';
COMMENT ON COLUMN pgnetlat_clients.client_share IS 'client_time - run_queue_wait_time + recv_time + send_client_time, as a share of the same time; NULL if there was none';
COMMENT ON COLUMN pgnetlat_clients.rtt IS 'milliseconds: the most recently measured round-trip time; NULL if none was measured';
COMMENT ON COLUMN pgnetlat_clients.retransmits IS 'TCP segments sent again, except those that the client had already received';
COMMENT ON COLUMN pgnetlat_clients.bytes_sent IS 'bytes handed to the socket, before encryption';
COMMENT ON COLUMN pgnetlat_clients.bytes_received IS 'bytes received over TCP';
COMMENT ON COLUMN pgnetlat_clients.packets_sent IS 'TCP segments sent';
COMMENT ON COLUMN pgnetlat_clients.packets_received IS 'TCP segments received';
COMMENT ON COLUMN pgnetlat_clients.stats_since IS 'when counting began for this row';
COMMENT ON COLUMN pgnetlat_clients.run_queue_time IS 'milliseconds: time spent waiting for a CPU, except when waking from idle time';
COMMENT ON COLUMN pgnetlat_clients.run_queue_wait_time IS 'milliseconds: part of run_queue_time and of client_time, estimated: a request had arrived, and the backend was waiting for a CPU to read it';
@COMMENT executing OF pgnetlat_clients@
COMMENT ON COLUMN pgnetlat_clients.connections IS 'connections that were set up';
COMMENT ON COLUMN pgnetlat_clients.failed_connections IS 'connections that ended after authentication had begun and before the first ReadyForQuery: wrong password, rejected, too many connections and the like; pgnetlat_failed_connections also has those to names that do not exist';
COMMENT ON COLUMN pgnetlat_clients.connect_round_trips IS 'round trips of connecting: one for TCP, those for encryption and authentication, and the last one';
COMMENT ON COLUMN pgnetlat_clients.connect_time IS 'milliseconds: setting up connections, from the accepted socket until the first ReadyForQuery is sent, where the account begins; not a part of total_time; failed connections are not counted';
COMMENT ON COLUMN pgnetlat_clients.connect_tls_time IS 'milliseconds: part of connect_time: on encrypted connections, the time before the start-up packet';
COMMENT ON COLUMN pgnetlat_clients.connect_auth_time IS 'milliseconds: part of connect_time: authentication';
COMMENT ON COLUMN pgnetlat_clients.pooler_requests IS 'part of requests: a pooler''s own exchanges, between its clients';
COMMENT ON COLUMN pgnetlat_clients.pooler_addr IS 'address of the pooler of the group''s latest session, if the pooler names its clients; NULL on a Unix-domain socket';
COMMENT ON COLUMN pgnetlat_clients.identified_statements IS 'part of statements: those that have a query identifier while pgnetlat.track_statements is on, so that repeats are found';
COMMENT ON COLUMN pgnetlat_clients.repeats_max IS 'most repeats of one statement in one burst; NULL over a window';
COMMENT ON COLUMN pgnetlat_clients.repeats_max_queryid IS 'identifier of that statement; NULL if there was none, or over a window';
COMMENT ON COLUMN pgnetlat_clients.round_trips_max IS 'most round trips of a transaction block that has ended, with BEGIN and COMMIT; NULL over a window';
COMMENT ON COLUMN pgnetlat_clients.window_time IS 'milliseconds since stats_since';

CREATE FUNCTION pgnetlat_clients_last(duration interval DEFAULT '1 min')
RETURNS SETOF pgnetlat_clients
AS 'MODULE_PATHNAME', 'pgnetlat_clients'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED COST 1000 ROWS 100;

COMMENT ON FUNCTION pgnetlat_clients_last(interval) IS
	'pgnetlat_clients over the given time up to now, at most 15 minutes: counts and times since stats_since, which was window_time milliseconds ago; failed_connections is NULL';

CREATE FUNCTION pgnetlat_histogram(
	OUT datid oid,
	OUT datname name,
	OUT usesysid oid,
	OUT usename name,
	OUT application_name text,
	OUT client_addr inet,
	OUT metric text,
	OUT le text[],
	OUT bucket bigint[],
	OUT sum double precision,
	OUT count bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED COST 1000 ROWS 500;

COMMENT ON FUNCTION pgnetlat_histogram() IS
	'cumulative histograms by client group and metric, with arrays of their buckets; le and sum are in seconds';

CREATE FUNCTION pgnetlat_histogram_sums(
	IN without text,
	OUT datid oid,
	OUT datname name,
	OUT metric text,
	OUT le text[],
	OUT bucket bigint[],
	OUT sum double precision,
	OUT count bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pgnetlat_histogram'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED COST 1000 ROWS 50;

COMMENT ON FUNCTION pgnetlat_histogram_sums(text) IS
	'internal: pgnetlat_histogram() by database and metric, without the application of that name';

CREATE VIEW pgnetlat_histogram AS
SELECT h.datid, h.datname, h.usesysid, h.usename, h.application_name, h.client_addr, h.metric,
	   pg_catalog.unnest(h.le) AS le, pg_catalog.unnest(h.bucket) AS bucket, h.sum, h.count
  FROM pgnetlat_histogram() h;

COMMENT ON VIEW pgnetlat_histogram IS
	'cumulative histograms by client group, in seconds, as in Prometheus; without pg_read_all_stats, no rows of other roles';

COMMENT ON COLUMN pgnetlat_histogram.datid IS 'OID of the database; NULL in the evicted row of the remaining databases';
COMMENT ON COLUMN pgnetlat_histogram.datname IS 'name of the database; NULL if it has been dropped';
COMMENT ON COLUMN pgnetlat_histogram.usesysid IS 'OID of the role; NULL in a database''s row of evicted groups';
COMMENT ON COLUMN pgnetlat_histogram.usename IS 'name of the role; NULL in a database''s row of evicted groups, or if it has been dropped';
COMMENT ON COLUMN pgnetlat_histogram.application_name IS 'application_name of the sessions; (other names) and (evicted) as in pgnetlat_clients';
COMMENT ON COLUMN pgnetlat_histogram.client_addr IS 'address of the clients; NULL on a Unix-domain socket, and in the rows of evicted groups';
COMMENT ON COLUMN pgnetlat_histogram.metric IS 'wait (not idle), request, network and client (of those waits), rtt, or connect (connect_time)';
COMMENT ON COLUMN pgnetlat_histogram.le IS 'upper bound of the bucket in seconds, as text; +Inf in the last bucket';
COMMENT ON COLUMN pgnetlat_histogram.bucket IS 'observations up to that bound';
COMMENT ON COLUMN pgnetlat_histogram.sum IS 'seconds: sum of the metric''s observations';
COMMENT ON COLUMN pgnetlat_histogram.count IS 'number of the metric''s observations';

CREATE FUNCTION pgnetlat_reset_clients(
	datid oid DEFAULT NULL,
	usesysid oid DEFAULT NULL,
	application_name text DEFAULT NULL,
	client_addr inet DEFAULT NULL)
RETURNS bigint
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 1000;

COMMENT ON FUNCTION pgnetlat_reset_clients(oid, oid, text, inet) IS
	'resets the client groups that match all given arguments, and returns their number; NULL matches anything; what they have counted is added to their databases'' rows of evicted groups, so that sums over groups never fall';

REVOKE ALL ON FUNCTION pgnetlat_reset_clients(oid, oid, text, inet) FROM PUBLIC;

GRANT SELECT ON pgnetlat_clients, pgnetlat_histogram TO PUBLIC;
