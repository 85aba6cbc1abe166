
-- ---------------------------------------------------------------------------
-- Metrics: what exporters read
-- ---------------------------------------------------------------------------

-- One view for each set of metrics.  An exporter's query is a list of columns of
-- one of them, with the schema's name and with no operator and no function in it:
-- nothing that a database's owner puts into a schema can get in its way.  What a
-- view calls was looked up when it was created.  To keep others' operators out
-- even then, functions are qualified with pg_catalog, and operands have exactly the
-- types of an operator in pg_catalog.
--
-- monitoring/generate writes the files of all exporters from the comments below.
-- That of a view is "collector NAME; how many rows: title", that of a column is
-- "label", or "counter: help", or "gauge: help".  Column c of pgnetlat_metrics_v is
-- metric pgnetlat_v_c.
--
-- Rules, since exporters drop silently what breaks them: one row for each set of
-- labels, no NULL in a label, no process ID in a label, and times in seconds.
-- Counters come from sums that keep what ended sessions have counted.  They are added up
-- in whole nanoseconds: a sum of float8 depends on the order of the rows, and Prometheus
-- takes a counter that falls, if only in its last digit, for one that was reset.
--
-- The exporter's own sessions are left out of accounts where they have an
-- application_name of their own.

-- The label for a name: names may be any bytes, and exporters want UTF-8; "(all)" and the like
-- are no names.
CREATE FUNCTION pgnetlat_label(name name, id oid, otherwise text) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
RETURN coalesce(CASE WHEN pgnetlat_legible(name::text) ~ '^["(]' THEN '"' || pgnetlat_legible(name::text) || '"'
				ELSE pgnetlat_legible(name::text) END,
				'oid:' || id::text, otherwise);

COMMENT ON FUNCTION pgnetlat_label(name, oid, text) IS 'internal: what labels show of a name';

-- How entries are ranked: the rank changes when a time has doubled, not at every scrape.
CREATE FUNCTION pgnetlat_magnitude(milliseconds double precision) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN floor(ln(greatest(milliseconds, 1::float8)) / ln(2::float8));

COMMENT ON FUNCTION pgnetlat_magnitude(double precision) IS 'internal: the power of two that a time has reached';

-- A time in milliseconds; beyond 285 years, it is as long.
CREATE FUNCTION pgnetlat_nanoseconds(milliseconds double precision) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN milliseconds < 9e12::float8 THEN (greatest(milliseconds, -9e12::float8) * 1000000::float8)::bigint
	   WHEN milliseconds >= 9e12::float8 THEN 9000000000000000000 END;

COMMENT ON FUNCTION pgnetlat_nanoseconds(double precision) IS
	'internal: a time of an account in whole nanoseconds, whose sums do not depend on the order of the rows';

-- Works without the library: what is missing shows up as a value.
CREATE VIEW pgnetlat_metrics_exporter AS
SELECT (pg_catalog.current_setting('pgnetlat.sample_interval', true) IS NOT NULL)::integer AS library_loaded,
	   coalesce(pg_catalog.current_setting('pgnetlat.enabled', true) = 'on', false)::integer AS counting_enabled,
	   pg_catalog.pg_has_role('pg_read_all_stats', 'USAGE')::integer AS role_sees_all;

COMMENT ON VIEW pgnetlat_metrics_exporter IS 'collector pgnetlat; 1 row: what the figures need to be complete';
COMMENT ON COLUMN pgnetlat_metrics_exporter.library_loaded IS 'gauge: 1 if the server has loaded the library (shared_preload_libraries).';
COMMENT ON COLUMN pgnetlat_metrics_exporter.counting_enabled IS 'gauge: 1 if pgnetlat.enabled is on.';
COMMENT ON COLUMN pgnetlat_metrics_exporter.role_sees_all IS 'gauge: 1 if the exporter''s role may see all sessions (pg_monitor or pg_read_all_stats).';

CREATE VIEW pgnetlat_metrics_build AS
SELECT coalesce(i.version, '') AS version,
	   1 AS info
  FROM pgnetlat_info i;

COMMENT ON VIEW pgnetlat_metrics_build IS 'collector pgnetlat; 1 row: the library''s version';
COMMENT ON COLUMN pgnetlat_metrics_build.version IS 'label';
COMMENT ON COLUMN pgnetlat_metrics_build.info IS 'gauge: Always 1; the library''s version is the label.';

CREATE VIEW pgnetlat_metrics_health AS
SELECT (i.sampler_pid IS NOT NULL)::integer AS worker_up,
	   greatest(pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() -
									 coalesce(i.sampler_last_tick, pg_catalog.pg_postmaster_start_time())), 0::float8)
		 AS worker_tick_age_seconds,
	   i.sampler_cpu_time * 0.001::float8 AS worker_cpu_seconds_total,
	   i.sampler_errors AS worker_errors_total,
	   i.statements_evicted AS statements_evicted_total,
	   i.clients_evicted AS clients_evicted_total,
	   i.blockers_evicted AS blockers_evicted_total,
	   i.shared_memory_bytes,
	   pg_catalog.date_part('epoch', coalesce(i.stats_reset, pg_catalog.pg_postmaster_start_time()))
		 AS stats_reset_timestamp_seconds
  FROM pgnetlat_info i;

COMMENT ON VIEW pgnetlat_metrics_health IS 'collector pgnetlat; 1 row: the extension itself';
COMMENT ON COLUMN pgnetlat_metrics_health.worker_up IS 'gauge: 1 if the background worker is running.';
COMMENT ON COLUMN pgnetlat_metrics_health.worker_tick_age_seconds IS 'gauge: Time since the worker''s latest sample.';
COMMENT ON COLUMN pgnetlat_metrics_health.worker_cpu_seconds_total IS 'counter: CPU time that the worker has used.';
COMMENT ON COLUMN pgnetlat_metrics_health.worker_errors_total IS 'counter: Errors that the worker has survived.';
COMMENT ON COLUMN pgnetlat_metrics_health.statements_evicted_total IS 'counter: Statements added to the row of evicted ones for lack of room (pgnetlat.max_statements).';
COMMENT ON COLUMN pgnetlat_metrics_health.clients_evicted_total IS 'counter: Client groups added to the row of evicted ones for lack of room (pgnetlat.max_clients).';
COMMENT ON COLUMN pgnetlat_metrics_health.blockers_evicted_total IS 'counter: Holders of locks added to the row of evicted ones for lack of room (pgnetlat.max_blockers).';
COMMENT ON COLUMN pgnetlat_metrics_health.shared_memory_bytes IS 'gauge: Shared memory that the extension occupies.';
COMMENT ON COLUMN pgnetlat_metrics_health.stats_reset_timestamp_seconds IS 'gauge: When counting began: the latest reset, or the start of the server.';

CREATE VIEW pgnetlat_metrics_server AS
SELECT i.processors,
	   coalesce((pg_catalog.sum(pgnetlat_nanoseconds(c.exec_time)) * 0.000000001)::float8, 0::float8) AS exec_seconds_total,
	   coalesce((pg_catalog.sum(pgnetlat_nanoseconds(c.send_time)) * 0.000000001)::float8, 0::float8) AS send_seconds_total,
	   coalesce((pg_catalog.sum(pgnetlat_nanoseconds(c.recv_time)) * 0.000000001)::float8, 0::float8) AS recv_seconds_total,
	   coalesce((pg_catalog.sum(pgnetlat_nanoseconds(c.network_time)) * 0.000000001)::float8, 0::float8) AS network_seconds_total,
	   coalesce((pg_catalog.sum(pgnetlat_nanoseconds(c.client_time)) * 0.000000001)::float8, 0::float8) AS client_seconds_total,
	   coalesce((pg_catalog.sum(pgnetlat_nanoseconds(c.run_queue_time)) * 0.000000001)::float8, 0::float8) AS run_queue_seconds_total
  FROM pgnetlat_info i
  LEFT JOIN pgnetlat_clients c
	ON coalesce(c.application_name, '') = '' OR c.application_name <> pg_catalog.current_setting('application_name')
 GROUP BY i.processors;

COMMENT ON VIEW pgnetlat_metrics_server IS 'collector pgnetlat; 1 row: where all sessions'' time goes';
COMMENT ON COLUMN pgnetlat_metrics_server.processors IS 'gauge: CPUs that the server may use.';
COMMENT ON COLUMN pgnetlat_metrics_server.exec_seconds_total IS 'counter: Session time spent executing.';
COMMENT ON COLUMN pgnetlat_metrics_server.send_seconds_total IS 'counter: Session time spent sending results.';
COMMENT ON COLUMN pgnetlat_metrics_server.recv_seconds_total IS 'counter: Session time spent receiving the rest of a request.';
COMMENT ON COLUMN pgnetlat_metrics_server.network_seconds_total IS 'counter: Session time spent on the network''s round trips.';
COMMENT ON COLUMN pgnetlat_metrics_server.client_seconds_total IS 'counter: Session time spent waiting for a client that thinks.';
COMMENT ON COLUMN pgnetlat_metrics_server.run_queue_seconds_total IS 'counter: Time in which sessions were waiting for a CPU; the other times include it.';

CREATE VIEW pgnetlat_metrics_connections AS
SELECT a.used,
	   pg_catalog.current_setting('max_connections')::integer
	   - pg_catalog.current_setting('superuser_reserved_connections')::integer
	   - coalesce(pg_catalog.current_setting('reserved_connections', true)::integer, 0) AS maximum,
	   c.opened AS opened_total,
	   f.failed AS failed_total
  FROM (SELECT pg_catalog.count(*) AS used
		  FROM pg_catalog.pg_stat_activity
		 WHERE backend_type = 'client backend') a
 CROSS JOIN (SELECT coalesce(pg_catalog.sum(connections), 0::numeric)::bigint AS opened
			   FROM pgnetlat_clients
			  WHERE coalesce(application_name, '') = '' OR
					application_name <> pg_catalog.current_setting('application_name')) c
 CROSS JOIN (SELECT coalesce(pg_catalog.sum(failed_connections), 0::numeric)::bigint AS failed
			   FROM pgnetlat_failed_connections) f;

COMMENT ON VIEW pgnetlat_metrics_connections IS 'collector pgnetlat; 1 row: connections of the server';
COMMENT ON COLUMN pgnetlat_metrics_connections.used IS 'gauge: Client connections at present.';
COMMENT ON COLUMN pgnetlat_metrics_connections.maximum IS 'gauge: Connections that ordinary roles can have: max_connections less the reserved ones.';
COMMENT ON COLUMN pgnetlat_metrics_connections.opened_total IS 'counter: Connections that were set up.';
COMMENT ON COLUMN pgnetlat_metrics_connections.failed_total IS 'counter: Connections that ended before they were set up: wrong password, rejected, no such database, too many.';

-- A dropped database keeps its series: its sums must not move to another one.
CREATE VIEW pgnetlat_metrics_database AS
SELECT c.datname,
	   coalesce(s.connected, 0::bigint) AS sessions,
	   coalesce(s.longest, 0::float8) AS longest_transaction_wait_seconds,
	   c.requests AS requests_total,
	   c.statements AS statements_total,
	   c.transactions AS transactions_total,
	   c.round_trips AS round_trips_total,
	   c.exec_time AS exec_seconds_total,
	   c.send_time AS send_seconds_total,
	   c.recv_time AS recv_seconds_total,
	   c.network_time AS network_seconds_total,
	   c.client_time AS client_seconds_total,
	   c.idle_time AS idle_seconds_total,
	   c.in_xact_wait_time AS transaction_wait_seconds_total,
	   c.send_blocked_time AS send_blocked_seconds_total,
	   c.send_client_time AS send_client_seconds_total,
	   c.run_queue_time AS run_queue_seconds_total,
	   c.run_queue_wait_time AS run_queue_wait_seconds_total,
	   c.exec_cpu_time AS exec_cpu_seconds_total,
	   c.exec_io_time AS exec_io_seconds_total,
	   c.exec_lock_time AS exec_lock_seconds_total,
	   c.exec_replication_time AS exec_replication_seconds_total,
	   c.exec_remote_time AS exec_remote_seconds_total,
	   c.exec_other_time AS exec_other_seconds_total,
	   c.retransmits AS retransmits_total,
	   c.packets_sent AS sent_packets_total,
	   c.bytes_sent AS sent_bytes_total,
	   c.connections AS connections_total,
	   c.failed_connections AS failed_connections_total,
	   c.connect_time AS connect_seconds_total
  FROM (SELECT pgnetlat_label(datname, datid, 'other') AS datname,
			   pg_catalog.sum(requests)::bigint AS requests,
			   pg_catalog.sum(statements)::bigint AS statements,
			   pg_catalog.sum(transactions)::bigint AS transactions,
			   pg_catalog.sum(round_trips)::bigint AS round_trips,
			   (pg_catalog.sum(pgnetlat_nanoseconds(exec_time)) * 0.000000001)::float8 AS exec_time,
			   (pg_catalog.sum(pgnetlat_nanoseconds(send_time)) * 0.000000001)::float8 AS send_time,
			   (pg_catalog.sum(pgnetlat_nanoseconds(recv_time)) * 0.000000001)::float8 AS recv_time,
			   (pg_catalog.sum(pgnetlat_nanoseconds(network_time)) * 0.000000001)::float8 AS network_time,
			   (pg_catalog.sum(pgnetlat_nanoseconds(client_time)) * 0.000000001)::float8 AS client_time,
			   (pg_catalog.sum(pgnetlat_nanoseconds(idle_time)) * 0.000000001)::float8 AS idle_time,
			   (pg_catalog.sum(pgnetlat_nanoseconds(in_xact_wait_time)) * 0.000000001)::float8 AS in_xact_wait_time,
			   (pg_catalog.sum(pgnetlat_nanoseconds(send_blocked_time)) * 0.000000001)::float8 AS send_blocked_time,
			   (pg_catalog.sum(pgnetlat_nanoseconds(send_client_time)) * 0.000000001)::float8 AS send_client_time,
			   (pg_catalog.sum(pgnetlat_nanoseconds(run_queue_time)) * 0.000000001)::float8 AS run_queue_time,
			   (pg_catalog.sum(pgnetlat_nanoseconds(run_queue_wait_time)) * 0.000000001)::float8 AS run_queue_wait_time,
			   (pg_catalog.sum(pgnetlat_nanoseconds(exec_cpu_time)) * 0.000000001)::float8 AS exec_cpu_time,
			   (pg_catalog.sum(pgnetlat_nanoseconds(exec_io_time)) * 0.000000001)::float8 AS exec_io_time,
			   (pg_catalog.sum(pgnetlat_nanoseconds(exec_lock_time)) * 0.000000001)::float8 AS exec_lock_time,
			   (pg_catalog.sum(pgnetlat_nanoseconds(exec_replication_time)) * 0.000000001)::float8 AS exec_replication_time,
			   (pg_catalog.sum(pgnetlat_nanoseconds(exec_remote_time)) * 0.000000001)::float8 AS exec_remote_time,
			   (pg_catalog.sum(pgnetlat_nanoseconds(exec_other_time)) * 0.000000001)::float8 AS exec_other_time,
			   pg_catalog.sum(retransmits)::bigint AS retransmits,
			   pg_catalog.sum(packets_sent)::bigint AS packets_sent,
			   pg_catalog.sum(bytes_sent)::bigint AS bytes_sent,
			   pg_catalog.sum(connections)::bigint AS connections,
			   pg_catalog.sum(failed_connections)::bigint AS failed_connections,
			   (pg_catalog.sum(pgnetlat_nanoseconds(connect_time)) * 0.000000001)::float8 AS connect_time
		  FROM pgnetlat_clients
		 WHERE coalesce(application_name, '') = '' OR
			   application_name <> pg_catalog.current_setting('application_name')
		 GROUP BY 1) c
  LEFT JOIN (
		SELECT pgnetlat_label(datname, datid, 'other') AS datname,
			   pg_catalog.count(*) AS connected,
			   pg_catalog.max(greatest(pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() - state_change), 0::float8))
				 FILTER (WHERE state = 'waiting in transaction') AS longest
		  FROM pgnetlat_sessions
		 WHERE coalesce(application_name, '') = '' OR
			   application_name <> pg_catalog.current_setting('application_name')
		 GROUP BY 1) s ON s.datname = c.datname;

COMMENT ON VIEW pgnetlat_metrics_database IS 'collector pgnetlat; 1 row per database: where its sessions'' time goes';
COMMENT ON COLUMN pgnetlat_metrics_database.datname IS 'label';
COMMENT ON COLUMN pgnetlat_metrics_database.sessions IS 'gauge: Client sessions that are connected.';
COMMENT ON COLUMN pgnetlat_metrics_database.longest_transaction_wait_seconds IS 'gauge: How long the transaction that has been waiting longest for its client has waited; 0 if none does.';
COMMENT ON COLUMN pgnetlat_metrics_database.requests_total IS 'counter: Requests read and answered (exchanges).';
COMMENT ON COLUMN pgnetlat_metrics_database.statements_total IS 'counter: Statements executed.';
COMMENT ON COLUMN pgnetlat_metrics_database.transactions_total IS 'counter: Transactions that ended.';
COMMENT ON COLUMN pgnetlat_metrics_database.round_trips_total IS 'counter: Round trips between server and client.';
COMMENT ON COLUMN pgnetlat_metrics_database.exec_seconds_total IS 'counter: Session time spent executing.';
COMMENT ON COLUMN pgnetlat_metrics_database.send_seconds_total IS 'counter: Session time spent sending results.';
COMMENT ON COLUMN pgnetlat_metrics_database.recv_seconds_total IS 'counter: Session time spent receiving the rest of a request.';
COMMENT ON COLUMN pgnetlat_metrics_database.network_seconds_total IS 'counter: Session time spent on the network''s round trips.';
COMMENT ON COLUMN pgnetlat_metrics_database.client_seconds_total IS 'counter: Session time spent waiting for a client that thinks.';
COMMENT ON COLUMN pgnetlat_metrics_database.idle_seconds_total IS 'counter: Session time spent idle.';
COMMENT ON COLUMN pgnetlat_metrics_database.transaction_wait_seconds_total IS 'counter: Part of network and client: spent inside a transaction, with its locks held.';
COMMENT ON COLUMN pgnetlat_metrics_database.send_blocked_seconds_total IS 'counter: Part of send: sends that took longer than a mere system call.';
COMMENT ON COLUMN pgnetlat_metrics_database.send_client_seconds_total IS 'counter: Part of send_blocked: the client would accept no more data.';
COMMENT ON COLUMN pgnetlat_metrics_database.run_queue_seconds_total IS 'counter: Time in which sessions were waiting for a CPU; the other times include it.';
COMMENT ON COLUMN pgnetlat_metrics_database.run_queue_wait_seconds_total IS 'counter: Part of run_queue and of client, estimated: a request had arrived and was not read yet.';
COMMENT ON COLUMN pgnetlat_metrics_database.exec_cpu_seconds_total IS 'counter: Part of exec, sampled: on a CPU, or waiting for one.';
COMMENT ON COLUMN pgnetlat_metrics_database.exec_io_seconds_total IS 'counter: Part of exec, sampled: reading or writing files.';
COMMENT ON COLUMN pgnetlat_metrics_database.exec_lock_seconds_total IS 'counter: Part of exec, sampled: waiting for locks.';
COMMENT ON COLUMN pgnetlat_metrics_database.exec_replication_seconds_total IS 'counter: Part of exec, sampled: waiting for a standby.';
COMMENT ON COLUMN pgnetlat_metrics_database.exec_remote_seconds_total IS 'counter: Part of exec, sampled: waiting for another server as its client.';
COMMENT ON COLUMN pgnetlat_metrics_database.exec_other_seconds_total IS 'counter: Part of exec, sampled: any other wait event.';
COMMENT ON COLUMN pgnetlat_metrics_database.retransmits_total IS 'counter: TCP segments sent again.';
COMMENT ON COLUMN pgnetlat_metrics_database.sent_packets_total IS 'counter: TCP segments sent.';
COMMENT ON COLUMN pgnetlat_metrics_database.sent_bytes_total IS 'counter: Bytes handed to the socket.';
COMMENT ON COLUMN pgnetlat_metrics_database.connections_total IS 'counter: Connections that were set up.';
COMMENT ON COLUMN pgnetlat_metrics_database.failed_connections_total IS 'counter: Connections that ended before they were set up, of roles and databases that exist.';
COMMENT ON COLUMN pgnetlat_metrics_database.connect_seconds_total IS 'counter: Time spent setting up connections, which is not session time.';

-- Prepared transactions and background workers hold locks as well.
CREATE VIEW pgnetlat_metrics_holder AS
WITH session AS MATERIALIZED (
	SELECT * FROM pgnetlat_sessions)
SELECT pgnetlat_label(coalesce(h.datname, a.datname), NULL, '(none)') AS datname,
	   pgnetlat_label(coalesce(h.usename, a.usename), NULL, '(none)') AS usename,
	   CASE WHEN h.pid IS NOT NULL THEN coalesce(pgnetlat_legible(h.application_name), '')
			ELSE '(' || coalesce(a.backend_type, 'prepared transaction') || ')' END AS application_name,
	   coalesce(pg_catalog.host(h.client_addr), 'local') AS client_addr,
	   pg_catalog.sum(w.sessions)::bigint AS blocked_sessions,
	   pg_catalog.max(CASE WHEN h.state = 'waiting in transaction'
						   THEN greatest(pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() - h.state_change),
										 0::float8)
						   ELSE 0::float8 END) AS client_wait_seconds
  FROM (SELECT blocked_by, pg_catalog.count(*) AS sessions
		  FROM session
		 WHERE blocked_by IS NOT NULL
		 GROUP BY blocked_by) w
  LEFT JOIN session h ON h.pid = w.blocked_by
  LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = w.blocked_by
 GROUP BY 1, 2, 3, 4
 ORDER BY 5 DESC, 1, 2, 3, 4
 LIMIT 5;

COMMENT ON VIEW pgnetlat_metrics_holder IS 'collector pgnetlat; at most 5 rows: who holds locks at this moment that others wait for';
COMMENT ON COLUMN pgnetlat_metrics_holder.datname IS 'label';
COMMENT ON COLUMN pgnetlat_metrics_holder.usename IS 'label';
COMMENT ON COLUMN pgnetlat_metrics_holder.application_name IS 'label';
COMMENT ON COLUMN pgnetlat_metrics_holder.client_addr IS 'label';
COMMENT ON COLUMN pgnetlat_metrics_holder.blocked_sessions IS 'gauge: Sessions that wait for its locks now, including those behind others that wait.';
COMMENT ON COLUMN pgnetlat_metrics_holder.client_wait_seconds IS 'gauge: How long it has been waiting for its own client inside the transaction; 0 while it executes.';

-- How many sessions of different pools are busy at once cannot be added up:
-- beside the busiest ones there is a row for all sessions.
CREATE VIEW pgnetlat_metrics_pool AS
SELECT CASE WHEN p.datid IS NULL THEN '(all)' ELSE pgnetlat_label(p.datname, p.datid, '') END AS datname,
	   CASE WHEN p.usesysid IS NULL THEN '(all)' ELSE pgnetlat_label(p.usename, p.usesysid, '') END AS usename,
	   pg_catalog.sum(p.sessions)::bigint AS sessions,
	   pg_catalog.sum(p.busy_max)::bigint AS busy_max,
	   pg_catalog.sum(p.pool_size)::bigint AS needed
  FROM pgnetlat_pools_last() p
 WHERE p.pool_size IS NOT NULL
 GROUP BY 1, 2
 ORDER BY pg_catalog.bool_or(p.datid IS NULL) DESC, pg_catalog.sum(p.busy_avg) DESC, 3 DESC, 1, 2
 LIMIT 5;

COMMENT ON VIEW pgnetlat_metrics_pool IS 'collector pgnetlat; at most 5 rows: sessions that are busy at once, in all and in the 4 busiest pools (database and role), of the last minute';
COMMENT ON COLUMN pgnetlat_metrics_pool.datname IS 'label';
COMMENT ON COLUMN pgnetlat_metrics_pool.usename IS 'label';
COMMENT ON COLUMN pgnetlat_metrics_pool.sessions IS 'gauge: Sessions that are connected now.';
COMMENT ON COLUMN pgnetlat_metrics_pool.busy_max IS 'gauge: Most sessions that were in a request or in a transaction at the same time.';
COMMENT ON COLUMN pgnetlat_metrics_pool.needed IS 'gauge: Server connections with which transaction pooling would have served them without a wait for 99.9 % of the time; at least so many if busy_max = sessions.';

-- Sessions of one client are one subject: their process IDs are no labels.  There is
-- always a row: severity "none" says that nothing was found, and no row at all, that the
-- query has failed.
CREATE VIEW pgnetlat_metrics_finding AS
SELECT f.severity, f.verdict, f.subject, f.datname, f.lost_sessions
  FROM (SELECT coalesce(f.severity, 'none') AS severity,
			   f.verdict,
			   pg_catalog.regexp_replace(pgnetlat_legible(f.subject), ', pid [0-9]+$', '') AS subject,
			   CASE WHEN f.datid IS NULL THEN '(all)' ELSE pgnetlat_label(f.datname, f.datid, '') END AS datname,
			   pg_catalog.sum(greatest(f.lost_sessions, 0::float8)) AS lost_sessions
		  FROM pgnetlat_diagnose(with_texts => false) f
		 WHERE f.verdict <> 'not visible' AND
			   (coalesce(f.application_name, '') = '' OR f.application_name <> pg_catalog.current_setting('application_name'))
		 GROUP BY 1, 2, 3, 4
		 UNION ALL
		SELECT 'none', 'no problem found', 'server', '(all)', 0::float8) f
 WHERE f.severity <> 'none' OR f.subject = 'server'
 GROUP BY 1, 2, 3, 4, 5
 ORDER BY pg_catalog.array_position(ARRAY['outage', 'loss', 'note'], f.severity), f.lost_sessions DESC, 2, 3, 4
 LIMIT 10;

COMMENT ON VIEW pgnetlat_metrics_finding IS 'collector pgnetlat; at most 10 rows: what pgnetlat_diagnose() finds of the last minute, the worst first; there is always one';
COMMENT ON COLUMN pgnetlat_metrics_finding.severity IS 'label';
COMMENT ON COLUMN pgnetlat_metrics_finding.verdict IS 'label';
COMMENT ON COLUMN pgnetlat_metrics_finding.subject IS 'label';
COMMENT ON COLUMN pgnetlat_metrics_finding.datname IS 'label';
COMMENT ON COLUMN pgnetlat_metrics_finding.lost_sessions IS 'gauge: Sessions lost to it; 1 means that one session loses all of its time.';
