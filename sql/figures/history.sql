
-- ---------------------------------------------------------------------------
-- History: the account by interval and database
-- ---------------------------------------------------------------------------

CREATE FUNCTION pgnetlat_history(
	OUT bucket_start timestamptz,
	OUT bucket_end timestamptz,
	OUT datid oid,
	OUT datname name,
	@OUT counts@
	OUT total_time double precision,
	@OUT parts idle@
	@OUT beside@
	OUT server_share double precision,
	OUT network_share double precision,
	OUT client_share double precision,
	OUT retransmits bigint,
	OUT bytes_sent bigint,
	OUT bytes_received bigint,
	OUT run_queue_time double precision,
	OUT run_queue_wait_time double precision,
	@OUT executing@
	OUT connections bigint,
	OUT connect_time double precision)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED COST 1000 ROWS 1000;

COMMENT ON FUNCTION pgnetlat_history() IS
	'account by interval and database, oldest first; the last interval is in progress; datid is NULL in the row of the databases for which an interval has no room';

CREATE VIEW pgnetlat_history AS
SELECT * FROM pgnetlat_history() ORDER BY bucket_start, datid;

COMMENT ON VIEW pgnetlat_history IS
	'where time went, by interval and database, oldest first; the last interval is in progress; the account, which is of all roles, is NULL without pg_read_all_stats';
COMMENT ON COLUMN pgnetlat_history.bucket_start IS 'when the interval began';
COMMENT ON COLUMN pgnetlat_history.bucket_end IS 'when it ended; for the last one, now';
COMMENT ON COLUMN pgnetlat_history.datid IS 'OID of the database; NULL for the databases for which the interval has no room';
COMMENT ON COLUMN pgnetlat_history.datname IS 'name of the database; NULL if it has been dropped';
@COMMENT counts OF pgnetlat_history@
COMMENT ON COLUMN pgnetlat_history.total_time IS 'milliseconds: the sum of its parts, exec_time to idle_time';
@COMMENT parts idle OF pgnetlat_history@
@COMMENT beside OF pgnetlat_history@
COMMENT ON COLUMN pgnetlat_history.server_share IS 'exec_time + send_time - send_blocked_time + run_queue_wait_time, as a share (0 to 1) of the time that was not idle; NULL if there was none';
COMMENT ON COLUMN pgnetlat_history.network_share IS 'network_time + send_blocked_time - send_client_time, as a share of the same time; NULL if there was none';
COMMENT ON COLUMN pgnetlat_history.client_share IS 'client_time - run_queue_wait_time + recv_time + send_client_time, as a share of the same time; NULL if there was none';
COMMENT ON COLUMN pgnetlat_history.retransmits IS 'TCP segments sent again, except those that the client had already received';
COMMENT ON COLUMN pgnetlat_history.bytes_sent IS 'bytes handed to the socket, before encryption';
COMMENT ON COLUMN pgnetlat_history.bytes_received IS 'bytes received over TCP';
COMMENT ON COLUMN pgnetlat_history.run_queue_time IS 'milliseconds: time spent waiting for a CPU, except when waking from idle time';
COMMENT ON COLUMN pgnetlat_history.run_queue_wait_time IS 'milliseconds: part of run_queue_time and of client_time, estimated: a request had arrived, and the backend was waiting for a CPU to read it';
@COMMENT executing OF pgnetlat_history@
COMMENT ON COLUMN pgnetlat_history.connections IS 'connections that were set up';
COMMENT ON COLUMN pgnetlat_history.connect_time IS 'milliseconds: setting up connections, from the accepted socket until the first ReadyForQuery is sent, where the account begins; not a part of total_time';

GRANT SELECT ON pgnetlat_history TO PUBLIC;
