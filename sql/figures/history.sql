
-- ---------------------------------------------------------------------------
-- History: the account by interval and database
-- ---------------------------------------------------------------------------

CREATE FUNCTION pgnetlat_history(
	OUT bucket_start timestamptz,
	OUT bucket_end timestamptz,
	OUT datid oid,
	OUT datname name,
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
COMMENT ON COLUMN pgnetlat_history.requests IS 'exchanges completed: request/response cycles';
COMMENT ON COLUMN pgnetlat_history.statements IS 'statements completed, or first fetched from if their portal was suspended, and fast-path function calls';
COMMENT ON COLUMN pgnetlat_history.transactions IS 'transactions committed or rolled back';
COMMENT ON COLUMN pgnetlat_history.pipelined IS 'exchanges whose request had already arrived when the previous response left';
COMMENT ON COLUMN pgnetlat_history.round_trips IS 'round trips: requests - pipelined, plus one for each COPY FROM STDIN whose client waits to be asked for data, and one for each error that the client answers with Sync';
COMMENT ON COLUMN pgnetlat_history.total_time IS 'milliseconds: the sum of its parts, exec_time to idle_time';
COMMENT ON COLUMN pgnetlat_history.exec_time IS 'milliseconds: time in exchanges in which the server was working';
COMMENT ON COLUMN pgnetlat_history.send_time IS 'milliseconds: time in exchanges spent handing bytes to the socket';
COMMENT ON COLUMN pgnetlat_history.recv_time IS 'milliseconds: time in exchanges spent waiting for more data from the client; exact up to the first data of a COPY, sampled afterwards';
COMMENT ON COLUMN pgnetlat_history.network_time IS 'milliseconds: the round trip in each wait between exchanges that is not idle, and those within exchanges (see round_trips); 0 on a Unix-domain socket';
COMMENT ON COLUMN pgnetlat_history.client_time IS 'milliseconds: the rest of these waits, in which the client was thinking';
COMMENT ON COLUMN pgnetlat_history.idle_time IS 'milliseconds: waits outside a transaction longer than pgnetlat.idle_threshold, and what would have been the round trip of a session''s last wait';
COMMENT ON COLUMN pgnetlat_history.in_xact_wait_time IS 'milliseconds: part of network_time + client_time spent inside a transaction';
COMMENT ON COLUMN pgnetlat_history.send_blocked_time IS 'milliseconds: part of send_time in sends that took longer than a system call';
COMMENT ON COLUMN pgnetlat_history.send_client_time IS 'milliseconds: part of send_blocked_time for which the client was not reading; a lower bound over TCP';
COMMENT ON COLUMN pgnetlat_history.server_share IS 'exec_time + send_time - send_blocked_time + run_queue_wait_time, as a share (0 to 1) of the time that was not idle; NULL if there was none';
COMMENT ON COLUMN pgnetlat_history.network_share IS 'network_time + send_blocked_time - send_client_time, as a share of the same time; NULL if there was none';
COMMENT ON COLUMN pgnetlat_history.client_share IS 'client_time - run_queue_wait_time + recv_time + send_client_time, as a share of the same time; NULL if there was none';
COMMENT ON COLUMN pgnetlat_history.retransmits IS 'TCP segments sent again, but for those that the client had already';
COMMENT ON COLUMN pgnetlat_history.bytes_sent IS 'bytes handed to the socket, before encryption';
COMMENT ON COLUMN pgnetlat_history.bytes_received IS 'bytes received over TCP';
COMMENT ON COLUMN pgnetlat_history.run_queue_time IS 'milliseconds: time spent waiting for a CPU, except when waking from idle time';
COMMENT ON COLUMN pgnetlat_history.run_queue_wait_time IS 'milliseconds: part of run_queue_time and of client_time, estimated: a request had arrived, and the backend was waiting for a CPU to read it';
COMMENT ON COLUMN pgnetlat_history.exec_cpu_time IS 'milliseconds: part of exec_time, sampled: no wait event, so on a CPU or waiting for one';
COMMENT ON COLUMN pgnetlat_history.exec_io_time IS 'milliseconds: part of exec_time, sampled: reading or writing files';
COMMENT ON COLUMN pgnetlat_history.exec_lock_time IS 'milliseconds: part of exec_time, sampled: waiting for a lock (wait events of type Lock); a wait in progress is exact';
COMMENT ON COLUMN pgnetlat_history.exec_replication_time IS 'milliseconds: part of exec_time, sampled: waiting for a standby';
COMMENT ON COLUMN pgnetlat_history.exec_remote_time IS 'milliseconds: part of exec_time, sampled: waiting for another server as its client';
COMMENT ON COLUMN pgnetlat_history.exec_other_time IS 'milliseconds: part of exec_time, sampled: any other wait event';
COMMENT ON COLUMN pgnetlat_history.exec_unsampled_time IS 'milliseconds: the rest of exec_time, which no sample accounts for';
COMMENT ON COLUMN pgnetlat_history.connections IS 'connections that were set up';
COMMENT ON COLUMN pgnetlat_history.connect_time IS 'milliseconds: setting up connections, from the accepted socket until the first ReadyForQuery is sent, where the account begins; not a part of total_time';

GRANT SELECT ON pgnetlat_history TO PUBLIC;
