
-- The twenty that matter most, and the others added up, so that sums stay true.
--
-- Entries are ranked by the power of two that their time has reached, older ones
-- first: so the twenty change when something has doubled, not at every scrape.  When
-- they do, the sum of the others falls, which Prometheus would take for a reset; so
-- the others' row has a label "members", computed from those that have a row of their
-- own and their "since", and becomes a new series instead.  The same happens
-- when one of the twenty is evicted, which adds its counts to the others.  An entry
-- that was evicted and comes back counts from zero: with another "since" it is another
-- series.  The rows of other names gain what evicted rows gain: all that a group has
-- counted before.
CREATE VIEW pgnetlat_metrics_client AS
WITH entry AS MATERIALIZED (
	SELECT *
	  FROM pgnetlat_clients() WITH ORDINALITY
	 WHERE coalesce(application_name, '') = '' OR
		   application_name <> pg_catalog.current_setting('application_name')
), top AS (
	SELECT *
	  FROM entry
	 WHERE datid IS NOT NULL AND usesysid IS NOT NULL AND application_name <> '(other names)'
	 ORDER BY pgnetlat_magnitude(exec_time + send_time + recv_time + network_time + client_time) DESC,
			  stats_since NULLS FIRST, datname, usename, application_name, client_addr
	 LIMIT 20
), named AS MATERIALIZED (
	SELECT ordinality,
		   true AS own,
		   pgnetlat_label(datname, datid, 'other') AS datname,
		   pgnetlat_label(usename, usesysid, 'other') AS usename,
		   coalesce(pgnetlat_legible(application_name), 'other') AS application_name,
		   coalesce(pg_catalog.host(client_addr), 'local') AS client_addr,
		   coalesce(pg_catalog.to_char(stats_since AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), '') AS since
	  FROM top
)
SELECT coalesce(n.datname, 'other') AS datname,
	   coalesce(n.usename, 'other') AS usename,
	   coalesce(n.application_name, 'other') AS application_name,
	   coalesce(n.client_addr, 'other') AS client_addr,
	   coalesce(n.since, '') AS since,
	   CASE WHEN n.own THEN '' ELSE pg_catalog.to_hex((
			SELECT coalesce(pg_catalog.sum(pg_catalog.hashtext(pg_catalog.concat_ws(' ', datname, usename, application_name, client_addr, since))), 0::bigint)
			  FROM named)) END AS members,
	   pg_catalog.sum(sessions)::bigint AS sessions,
	   coalesce(pg_catalog.max(rtt), 0::float8) * 0.001::float8 AS rtt_seconds,
	   pg_catalog.sum(requests)::bigint AS requests_total,
	   pg_catalog.sum(transactions)::bigint AS transactions_total,
	   pg_catalog.sum(round_trips)::bigint AS round_trips_total,
	   (pg_catalog.sum(pgnetlat_nanoseconds(exec_time)) * 0.000000001)::float8 AS exec_seconds_total,
	   (pg_catalog.sum(pgnetlat_nanoseconds(send_time)) * 0.000000001)::float8 AS send_seconds_total,
	   (pg_catalog.sum(pgnetlat_nanoseconds(recv_time)) * 0.000000001)::float8 AS recv_seconds_total,
	   (pg_catalog.sum(pgnetlat_nanoseconds(network_time)) * 0.000000001)::float8 AS network_seconds_total,
	   (pg_catalog.sum(pgnetlat_nanoseconds(client_time)) * 0.000000001)::float8 AS client_seconds_total,
	   (pg_catalog.sum(pgnetlat_nanoseconds(idle_time)) * 0.000000001)::float8 AS idle_seconds_total,
	   (pg_catalog.sum(pgnetlat_nanoseconds(in_xact_wait_time)) * 0.000000001)::float8 AS transaction_wait_seconds_total,
	   (pg_catalog.sum(pgnetlat_nanoseconds(send_blocked_time)) * 0.000000001)::float8 AS send_blocked_seconds_total,
	   (pg_catalog.sum(pgnetlat_nanoseconds(send_client_time)) * 0.000000001)::float8 AS send_client_seconds_total,
	   (pg_catalog.sum(pgnetlat_nanoseconds(run_queue_wait_time)) * 0.000000001)::float8 AS run_queue_wait_seconds_total,
	   pg_catalog.sum(retransmits)::bigint AS retransmits_total,
	   pg_catalog.sum(packets_sent)::bigint AS sent_packets_total,
	   pg_catalog.sum(bytes_sent)::bigint AS sent_bytes_total,
	   pg_catalog.sum(connections)::bigint AS connections_total,
	   pg_catalog.sum(failed_connections)::bigint AS failed_connections_total,
	   (pg_catalog.sum(pgnetlat_nanoseconds(connect_time)) * 0.000000001)::float8 AS connect_seconds_total
  FROM entry e
  LEFT JOIN named n USING (ordinality)
 GROUP BY n.own, n.datname, n.usename, n.application_name, n.client_addr, n.since;

COMMENT ON VIEW pgnetlat_metrics_client IS 'collector pgnetlat_clients; at most 21 rows: the 20 client groups that matter most, and the others';
COMMENT ON COLUMN pgnetlat_metrics_client.datname IS 'label';
COMMENT ON COLUMN pgnetlat_metrics_client.usename IS 'label';
COMMENT ON COLUMN pgnetlat_metrics_client.application_name IS 'label';
COMMENT ON COLUMN pgnetlat_metrics_client.client_addr IS 'label';
COMMENT ON COLUMN pgnetlat_metrics_client.since IS 'label';
COMMENT ON COLUMN pgnetlat_metrics_client.members IS 'label';
COMMENT ON COLUMN pgnetlat_metrics_client.sessions IS 'gauge: The group''s sessions that are connected now.';
COMMENT ON COLUMN pgnetlat_metrics_client.rtt_seconds IS 'gauge: Round-trip time as measured; the greatest among the others; 0 if unknown.';
COMMENT ON COLUMN pgnetlat_metrics_client.requests_total IS 'counter: Requests read and answered (exchanges).';
COMMENT ON COLUMN pgnetlat_metrics_client.transactions_total IS 'counter: Transactions that ended.';
COMMENT ON COLUMN pgnetlat_metrics_client.round_trips_total IS 'counter: Round trips between server and client.';
COMMENT ON COLUMN pgnetlat_metrics_client.exec_seconds_total IS 'counter: Session time spent executing.';
COMMENT ON COLUMN pgnetlat_metrics_client.send_seconds_total IS 'counter: Session time spent sending results.';
COMMENT ON COLUMN pgnetlat_metrics_client.recv_seconds_total IS 'counter: Session time spent receiving the rest of a request.';
COMMENT ON COLUMN pgnetlat_metrics_client.network_seconds_total IS 'counter: Session time spent on the network''s round trips.';
COMMENT ON COLUMN pgnetlat_metrics_client.client_seconds_total IS 'counter: Session time spent waiting for a client that thinks.';
COMMENT ON COLUMN pgnetlat_metrics_client.idle_seconds_total IS 'counter: Session time spent idle.';
COMMENT ON COLUMN pgnetlat_metrics_client.transaction_wait_seconds_total IS 'counter: Part of network and client: spent inside a transaction, with its locks held.';
COMMENT ON COLUMN pgnetlat_metrics_client.send_blocked_seconds_total IS 'counter: Part of send: sends that took longer than a mere system call.';
COMMENT ON COLUMN pgnetlat_metrics_client.send_client_seconds_total IS 'counter: Part of send_blocked: the client would accept no more data.';
COMMENT ON COLUMN pgnetlat_metrics_client.run_queue_wait_seconds_total IS 'counter: Part of client, estimated: a request had arrived, and no CPU was free.';
COMMENT ON COLUMN pgnetlat_metrics_client.retransmits_total IS 'counter: TCP segments sent again.';
COMMENT ON COLUMN pgnetlat_metrics_client.sent_packets_total IS 'counter: TCP segments sent.';
COMMENT ON COLUMN pgnetlat_metrics_client.sent_bytes_total IS 'counter: Bytes handed to the socket.';
COMMENT ON COLUMN pgnetlat_metrics_client.connections_total IS 'counter: Connections that were set up.';
COMMENT ON COLUMN pgnetlat_metrics_client.failed_connections_total IS 'counter: Connections that ended before they were set up.';
COMMENT ON COLUMN pgnetlat_metrics_client.connect_seconds_total IS 'counter: Time spent setting up connections, which is not session time.';

CREATE VIEW pgnetlat_metrics_statement AS
WITH entry AS MATERIALIZED (
	SELECT * FROM pgnetlat_statements() WITH ORDINALITY
), top AS (
	SELECT *
	  FROM entry
	 WHERE dbid IS NOT NULL
	 ORDER BY pgnetlat_magnitude(exec_time + send_time + recv_time + network_time + client_time) DESC,
			  stats_since NULLS FIRST, dbid, userid, queryid
	 LIMIT 20
), named AS MATERIALIZED (
	SELECT s.ordinality,
		   true AS own,
		   pgnetlat_label(d.datname, s.dbid, 'other') AS datname,
		   pgnetlat_label(r.rolname, s.userid, 'other') AS usename,
		   coalesce(s.queryid::text, 'none') AS queryid,
		   coalesce(pg_catalog.to_char(s.stats_since AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), '') AS since
	  FROM top s
	  LEFT JOIN pg_catalog.pg_database d ON d.oid = s.dbid
	  LEFT JOIN pg_catalog.pg_roles r ON r.oid = s.userid
)
SELECT coalesce(n.datname, 'other') AS datname,
	   coalesce(n.usename, 'other') AS usename,
	   coalesce(n.queryid, 'other') AS queryid,
	   coalesce(n.since, '') AS since,
	   CASE WHEN n.own THEN '' ELSE pg_catalog.to_hex((
			SELECT coalesce(pg_catalog.sum(pg_catalog.hashtext(pg_catalog.concat_ws(' ', datname, usename, queryid, since))), 0::bigint)
			  FROM named)) END AS members,
	   pg_catalog.sum(calls)::bigint AS calls_total,
	   pg_catalog.sum(rows)::bigint AS rows_total,
	   (pg_catalog.sum(pgnetlat_nanoseconds(exec_time)) * 0.000000001)::float8 AS exec_seconds_total,
	   (pg_catalog.sum(pgnetlat_nanoseconds(send_time)) * 0.000000001)::float8 AS send_seconds_total,
	   (pg_catalog.sum(pgnetlat_nanoseconds(recv_time)) * 0.000000001)::float8 AS recv_seconds_total,
	   (pg_catalog.sum(pgnetlat_nanoseconds(network_time)) * 0.000000001)::float8 AS network_seconds_total,
	   (pg_catalog.sum(pgnetlat_nanoseconds(client_time)) * 0.000000001)::float8 AS client_seconds_total,
	   (pg_catalog.sum(pgnetlat_nanoseconds(in_xact_wait_time)) * 0.000000001)::float8 AS transaction_wait_seconds_total,
	   pg_catalog.sum(bytes_sent)::bigint AS sent_bytes_total,
	   pg_catalog.sum(repeats)::bigint AS repeats_total,
	   (pg_catalog.sum(pgnetlat_nanoseconds(repeat_network_time)) * 0.000000001)::float8 AS repeat_network_seconds_total
  FROM entry e
  LEFT JOIN named n USING (ordinality)
 GROUP BY n.own, n.datname, n.usename, n.queryid, n.since;

COMMENT ON VIEW pgnetlat_metrics_statement IS 'collector pgnetlat_statements; at most 21 rows: the 20 statements that matter most, and the others';
COMMENT ON COLUMN pgnetlat_metrics_statement.datname IS 'label';
COMMENT ON COLUMN pgnetlat_metrics_statement.usename IS 'label';
COMMENT ON COLUMN pgnetlat_metrics_statement.queryid IS 'label';
COMMENT ON COLUMN pgnetlat_metrics_statement.since IS 'label';
COMMENT ON COLUMN pgnetlat_metrics_statement.members IS 'label';
COMMENT ON COLUMN pgnetlat_metrics_statement.calls_total IS 'counter: Executions.';
COMMENT ON COLUMN pgnetlat_metrics_statement.rows_total IS 'counter: Rows returned or affected.';
COMMENT ON COLUMN pgnetlat_metrics_statement.exec_seconds_total IS 'counter: Session time spent executing.';
COMMENT ON COLUMN pgnetlat_metrics_statement.send_seconds_total IS 'counter: Session time spent sending results.';
COMMENT ON COLUMN pgnetlat_metrics_statement.recv_seconds_total IS 'counter: Session time spent receiving the rest of a request.';
COMMENT ON COLUMN pgnetlat_metrics_statement.network_seconds_total IS 'counter: Session time spent on the network''s round trips.';
COMMENT ON COLUMN pgnetlat_metrics_statement.client_seconds_total IS 'counter: Session time spent waiting for a client that thinks.';
COMMENT ON COLUMN pgnetlat_metrics_statement.transaction_wait_seconds_total IS 'counter: Part of network and client, the wait after it: inside a transaction.';
COMMENT ON COLUMN pgnetlat_metrics_statement.sent_bytes_total IS 'counter: Bytes of its responses.';
COMMENT ON COLUMN pgnetlat_metrics_statement.repeats_total IS 'counter: Executions that repeat an earlier one of the same burst, where one statement would do.';
COMMENT ON COLUMN pgnetlat_metrics_statement.repeat_network_seconds_total IS 'counter: Network time of these repetitions.';

-- Texts without constants.  pg_stat_statements replaces those of most statements, but
-- keeps others as they came, passwords included: utility statements (before PostgreSQL
-- 16, SELECT INTO too), and what it had evicted before the statement ended.  So a text
-- that contains a string, or a number of three digits or more, is not exported.  BEGIN,
-- COMMIT and the like are: they cost round trips, too, and contain no constants.
CREATE VIEW pgnetlat_metrics_query AS
WITH own AS MATERIALIZED (
	-- those of pgnetlat_metrics_statement
	SELECT dbid, userid, queryid
	  FROM pgnetlat_statements()
	 WHERE dbid IS NOT NULL
	 ORDER BY pgnetlat_magnitude(exec_time + send_time + recv_time + network_time + client_time) DESC,
			  stats_since NULLS FIRST, dbid, userid, queryid
	 LIMIT 20
), shown AS MATERIALIZED (
	SELECT pgnetlat_label(d.datname, dbid, 'other') AS datname, pgnetlat_label(r.rolname, userid, 'other') AS usename,
		   queryid::text AS queryid, query
	  FROM own
	  JOIN pgnetlat_query_texts(ARRAY(SELECT queryid FROM own WHERE queryid IS NOT NULL)) t USING (dbid, userid, queryid)
	  LEFT JOIN pg_catalog.pg_database d ON d.oid = dbid
	  LEFT JOIN pg_catalog.pg_roles r ON r.oid = userid
)
SELECT DISTINCT -- two names may look the same
	   datname, usename, queryid,
	   pgnetlat_query_start(query) AS query,
	   1 AS info
  FROM shown
 WHERE query ~* '^(begin|start|commit|end|rollback)[a-z ,]*$' OR
	   query ~* '^[[:space:](]*(select|insert|update|delete|merge|with|values)[^[:alnum:]_]' AND
	   query !~ '''|[$][^0-9]|[^$[:alnum:]_][0-9]{3}';

COMMENT ON VIEW pgnetlat_metrics_query IS 'collector pgnetlat_statements; at most 20 rows: their texts, where pg_stat_statements has them';
COMMENT ON COLUMN pgnetlat_metrics_query.datname IS 'label';
COMMENT ON COLUMN pgnetlat_metrics_query.usename IS 'label';
COMMENT ON COLUMN pgnetlat_metrics_query.queryid IS 'label';
COMMENT ON COLUMN pgnetlat_metrics_query.query IS 'label';
COMMENT ON COLUMN pgnetlat_metrics_query.info IS 'gauge: Always 1; the beginning of the text is the label.';

CREATE VIEW pgnetlat_metrics_blocker AS
WITH entry AS (
	SELECT pgnetlat_label(datname, datid, 'other') AS datname,
		   pgnetlat_label(usename, usesysid, 'none') AS usename,
		   coalesce(pgnetlat_legible(application_name), 'other') AS application_name,
		   coalesce(pg_catalog.host(client_addr), 'local') AS client_addr,
		   coalesce(backend_type, 'other') AS backend_type,
		   coalesce(queryid::text, 'none') AS queryid,
		   backend_type IS NULL AS evicted,
		   coalesce(pg_catalog.to_char(stats_since AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), '') AS since,
		   coalesce(blocked_time, 0::float8) AS blocked_time,
		   coalesce(blocked_sessions, 0::bigint) AS blocked_sessions,
		   coalesce(blocked_by_exec_time, 0::float8) AS blocked_by_exec_time,
		   coalesce(blocked_by_send_time, 0::float8) AS blocked_by_send_time,
		   coalesce(blocked_by_recv_time, 0::float8) AS blocked_by_recv_time,
		   coalesce(blocked_by_network_time, 0::float8) AS blocked_by_network_time,
		   coalesce(blocked_by_client_time, 0::float8) AS blocked_by_client_time
	  FROM pgnetlat_blockers
), ranked AS (
	SELECT *,
		   NOT evicted AND pg_catalog.row_number() OVER (
			   PARTITION BY evicted
			   ORDER BY pgnetlat_magnitude(blocked_time) DESC,
						since, datname, usename, application_name, client_addr, backend_type, queryid) <= 20::bigint AS own
	  FROM entry
)
SELECT CASE WHEN own THEN datname ELSE 'other' END AS datname,
	   CASE WHEN own THEN usename ELSE 'other' END AS usename,
	   CASE WHEN own THEN application_name ELSE 'other' END AS application_name,
	   CASE WHEN own THEN client_addr ELSE 'other' END AS client_addr,
	   CASE WHEN own THEN backend_type ELSE 'other' END AS backend_type,
	   CASE WHEN own THEN queryid ELSE 'other' END AS queryid,
	   CASE WHEN own THEN since ELSE '' END AS since,
	   CASE WHEN own THEN '' ELSE pg_catalog.to_hex((
			SELECT coalesce(pg_catalog.sum(pg_catalog.hashtext(pg_catalog.concat_ws(' ', datname, usename, application_name, client_addr, backend_type, queryid, since))), 0::bigint)
			  FROM ranked WHERE own)) END AS members,
	   pg_catalog.sum(blocked_sessions)::bigint AS blocked_sessions,
	   (pg_catalog.sum(pgnetlat_nanoseconds(blocked_time)) * 0.000000001)::float8 AS blocked_seconds_total,
	   (pg_catalog.sum(pgnetlat_nanoseconds(blocked_by_exec_time)) * 0.000000001)::float8 AS blocked_by_exec_seconds_total,
	   (pg_catalog.sum(pgnetlat_nanoseconds(blocked_by_send_time)) * 0.000000001)::float8 AS blocked_by_send_seconds_total,
	   (pg_catalog.sum(pgnetlat_nanoseconds(blocked_by_recv_time)) * 0.000000001)::float8 AS blocked_by_recv_seconds_total,
	   (pg_catalog.sum(pgnetlat_nanoseconds(blocked_by_network_time)) * 0.000000001)::float8 AS blocked_by_network_seconds_total,
	   (pg_catalog.sum(pgnetlat_nanoseconds(blocked_by_client_time)) * 0.000000001)::float8 AS blocked_by_client_seconds_total
  FROM ranked
 GROUP BY 1, 2, 3, 4, 5, 6, 7, 8;

COMMENT ON VIEW pgnetlat_metrics_blocker IS 'collector pgnetlat_blockers; at most 21 rows: the 20 clients and statements that blocked others most, and the others';
COMMENT ON COLUMN pgnetlat_metrics_blocker.datname IS 'label';
COMMENT ON COLUMN pgnetlat_metrics_blocker.usename IS 'label';
COMMENT ON COLUMN pgnetlat_metrics_blocker.application_name IS 'label';
COMMENT ON COLUMN pgnetlat_metrics_blocker.client_addr IS 'label';
COMMENT ON COLUMN pgnetlat_metrics_blocker.backend_type IS 'label';
COMMENT ON COLUMN pgnetlat_metrics_blocker.queryid IS 'label';
COMMENT ON COLUMN pgnetlat_metrics_blocker.since IS 'label';
COMMENT ON COLUMN pgnetlat_metrics_blocker.members IS 'label';
COMMENT ON COLUMN pgnetlat_metrics_blocker.blocked_sessions IS 'gauge: Sessions that wait for their locks now.';
COMMENT ON COLUMN pgnetlat_metrics_blocker.blocked_seconds_total IS 'counter: Time that sessions waited for their locks.';
COMMENT ON COLUMN pgnetlat_metrics_blocker.blocked_by_exec_seconds_total IS 'counter: Part of blocked: meanwhile the holder executed.';
COMMENT ON COLUMN pgnetlat_metrics_blocker.blocked_by_send_seconds_total IS 'counter: Part of blocked: meanwhile the holder sent results.';
COMMENT ON COLUMN pgnetlat_metrics_blocker.blocked_by_recv_seconds_total IS 'counter: Part of blocked: meanwhile the holder received a request.';
COMMENT ON COLUMN pgnetlat_metrics_blocker.blocked_by_network_seconds_total IS 'counter: Part of blocked: meanwhile the holder waited for the network.';
COMMENT ON COLUMN pgnetlat_metrics_blocker.blocked_by_client_seconds_total IS 'counter: Part of blocked: meanwhile the holder waited for its client.';

-- Histograms for exporters that know counters only: a row for each bucket.  Sums and
-- counts are in the row of the last bucket.
CREATE VIEW pgnetlat_metrics_bucket AS
WITH part AS (
	SELECT pgnetlat_label(t.datname, t.datid, 'other') AS datname, t.metric, b.le,
		   pg_catalog.sum(b.bucket)::bigint AS bucket,
		   (pg_catalog.sum(pgnetlat_nanoseconds(t.sum * 1000::float8)) * 0.000000001)::float8 AS sum,
		   pg_catalog.sum(t.count)::bigint AS count
	  FROM pgnetlat_histogram_sums(pg_catalog.current_setting('application_name')) t
	 CROSS JOIN LATERAL ROWS FROM (pg_catalog.unnest(t.le), pg_catalog.unnest(t.bucket)) b(le, bucket)
	 GROUP BY 1, 2, 3)
SELECT datname,
	   le,
	   pg_catalog.max(bucket) FILTER (WHERE metric = 'request') AS request_seconds_bucket,
	   pg_catalog.max(sum) FILTER (WHERE metric = 'request' AND le = '+Inf') AS request_seconds_sum,
	   pg_catalog.max(count) FILTER (WHERE metric = 'request' AND le = '+Inf') AS request_seconds_count,
	   pg_catalog.max(bucket) FILTER (WHERE metric = 'wait') AS wait_seconds_bucket,
	   pg_catalog.max(sum) FILTER (WHERE metric = 'wait' AND le = '+Inf') AS wait_seconds_sum,
	   pg_catalog.max(count) FILTER (WHERE metric = 'wait' AND le = '+Inf') AS wait_seconds_count,
	   pg_catalog.max(bucket) FILTER (WHERE metric = 'network') AS wait_network_seconds_bucket,
	   pg_catalog.max(sum) FILTER (WHERE metric = 'network' AND le = '+Inf') AS wait_network_seconds_sum,
	   pg_catalog.max(count) FILTER (WHERE metric = 'network' AND le = '+Inf') AS wait_network_seconds_count,
	   pg_catalog.max(bucket) FILTER (WHERE metric = 'client') AS wait_client_seconds_bucket,
	   pg_catalog.max(sum) FILTER (WHERE metric = 'client' AND le = '+Inf') AS wait_client_seconds_sum,
	   pg_catalog.max(count) FILTER (WHERE metric = 'client' AND le = '+Inf') AS wait_client_seconds_count,
	   pg_catalog.max(bucket) FILTER (WHERE metric = 'rtt') AS rtt_seconds_bucket,
	   pg_catalog.max(sum) FILTER (WHERE metric = 'rtt' AND le = '+Inf') AS rtt_seconds_sum,
	   pg_catalog.max(count) FILTER (WHERE metric = 'rtt' AND le = '+Inf') AS rtt_seconds_count,
	   pg_catalog.max(bucket) FILTER (WHERE metric = 'connect') AS connect_seconds_bucket,
	   pg_catalog.max(sum) FILTER (WHERE metric = 'connect' AND le = '+Inf') AS connect_seconds_sum,
	   pg_catalog.max(count) FILTER (WHERE metric = 'connect' AND le = '+Inf') AS connect_seconds_count
  FROM part
 GROUP BY datname, le;

COMMENT ON VIEW pgnetlat_metrics_bucket IS 'collector pgnetlat_histograms; 20 rows per database: distributions';
COMMENT ON COLUMN pgnetlat_metrics_bucket.datname IS 'label';
COMMENT ON COLUMN pgnetlat_metrics_bucket.le IS 'label';
COMMENT ON COLUMN pgnetlat_metrics_bucket.request_seconds_bucket IS 'counter: Time that each request took: execution, sending and receiving.';
COMMENT ON COLUMN pgnetlat_metrics_bucket.request_seconds_sum IS 'counter: Time that each request took: execution, sending and receiving.';
COMMENT ON COLUMN pgnetlat_metrics_bucket.request_seconds_count IS 'counter: Time that each request took: execution, sending and receiving.';
COMMENT ON COLUMN pgnetlat_metrics_bucket.wait_seconds_bucket IS 'counter: Waits between requests, less idle ones: network and client.';
COMMENT ON COLUMN pgnetlat_metrics_bucket.wait_seconds_sum IS 'counter: Waits between requests, less idle ones: network and client.';
COMMENT ON COLUMN pgnetlat_metrics_bucket.wait_seconds_count IS 'counter: Waits between requests, less idle ones: network and client.';
COMMENT ON COLUMN pgnetlat_metrics_bucket.wait_network_seconds_bucket IS 'counter: The network''s part of each of these waits.';
COMMENT ON COLUMN pgnetlat_metrics_bucket.wait_network_seconds_sum IS 'counter: The network''s part of each of these waits.';
COMMENT ON COLUMN pgnetlat_metrics_bucket.wait_network_seconds_count IS 'counter: The network''s part of each of these waits.';
COMMENT ON COLUMN pgnetlat_metrics_bucket.wait_client_seconds_bucket IS 'counter: The client''s part of each of these waits.';
COMMENT ON COLUMN pgnetlat_metrics_bucket.wait_client_seconds_sum IS 'counter: The client''s part of each of these waits.';
COMMENT ON COLUMN pgnetlat_metrics_bucket.wait_client_seconds_count IS 'counter: The client''s part of each of these waits.';
COMMENT ON COLUMN pgnetlat_metrics_bucket.rtt_seconds_bucket IS 'counter: Round-trip time of the connections, whenever it was measured.';
COMMENT ON COLUMN pgnetlat_metrics_bucket.rtt_seconds_sum IS 'counter: Round-trip time of the connections, whenever it was measured.';
COMMENT ON COLUMN pgnetlat_metrics_bucket.rtt_seconds_count IS 'counter: Round-trip time of the connections, whenever it was measured.';
COMMENT ON COLUMN pgnetlat_metrics_bucket.connect_seconds_bucket IS 'counter: Time that each connection took to set up.';
COMMENT ON COLUMN pgnetlat_metrics_bucket.connect_seconds_sum IS 'counter: Time that each connection took to set up.';
COMMENT ON COLUMN pgnetlat_metrics_bucket.connect_seconds_count IS 'counter: Time that each connection took to set up.';

-- The same for exporters that know histograms: arrays, under the same names.
CREATE VIEW pgnetlat_metrics_distribution AS
SELECT datname,
	   pg_catalog.array_agg(le::float8 ORDER BY le::float8) FILTER (WHERE le <> '+Inf') AS request_seconds,
	   pg_catalog.array_agg(request_seconds_bucket ORDER BY le::float8) FILTER (WHERE le <> '+Inf') AS request_seconds_bucket,
	   coalesce(pg_catalog.max(request_seconds_sum), 0::float8) AS request_seconds_sum,
	   coalesce(pg_catalog.max(request_seconds_count), 0::bigint) AS request_seconds_count,
	   pg_catalog.array_agg(le::float8 ORDER BY le::float8) FILTER (WHERE le <> '+Inf') AS wait_seconds,
	   pg_catalog.array_agg(wait_seconds_bucket ORDER BY le::float8) FILTER (WHERE le <> '+Inf') AS wait_seconds_bucket,
	   coalesce(pg_catalog.max(wait_seconds_sum), 0::float8) AS wait_seconds_sum,
	   coalesce(pg_catalog.max(wait_seconds_count), 0::bigint) AS wait_seconds_count,
	   pg_catalog.array_agg(le::float8 ORDER BY le::float8) FILTER (WHERE le <> '+Inf') AS wait_network_seconds,
	   pg_catalog.array_agg(wait_network_seconds_bucket ORDER BY le::float8) FILTER (WHERE le <> '+Inf') AS wait_network_seconds_bucket,
	   coalesce(pg_catalog.max(wait_network_seconds_sum), 0::float8) AS wait_network_seconds_sum,
	   coalesce(pg_catalog.max(wait_network_seconds_count), 0::bigint) AS wait_network_seconds_count,
	   pg_catalog.array_agg(le::float8 ORDER BY le::float8) FILTER (WHERE le <> '+Inf') AS wait_client_seconds,
	   pg_catalog.array_agg(wait_client_seconds_bucket ORDER BY le::float8) FILTER (WHERE le <> '+Inf') AS wait_client_seconds_bucket,
	   coalesce(pg_catalog.max(wait_client_seconds_sum), 0::float8) AS wait_client_seconds_sum,
	   coalesce(pg_catalog.max(wait_client_seconds_count), 0::bigint) AS wait_client_seconds_count,
	   pg_catalog.array_agg(le::float8 ORDER BY le::float8) FILTER (WHERE le <> '+Inf') AS rtt_seconds,
	   pg_catalog.array_agg(rtt_seconds_bucket ORDER BY le::float8) FILTER (WHERE le <> '+Inf') AS rtt_seconds_bucket,
	   coalesce(pg_catalog.max(rtt_seconds_sum), 0::float8) AS rtt_seconds_sum,
	   coalesce(pg_catalog.max(rtt_seconds_count), 0::bigint) AS rtt_seconds_count,
	   pg_catalog.array_agg(le::float8 ORDER BY le::float8) FILTER (WHERE le <> '+Inf') AS connect_seconds,
	   pg_catalog.array_agg(connect_seconds_bucket ORDER BY le::float8) FILTER (WHERE le <> '+Inf') AS connect_seconds_bucket,
	   coalesce(pg_catalog.max(connect_seconds_sum), 0::float8) AS connect_seconds_sum,
	   coalesce(pg_catalog.max(connect_seconds_count), 0::bigint) AS connect_seconds_count
  FROM pgnetlat_metrics_bucket
 GROUP BY datname;

COMMENT ON VIEW pgnetlat_metrics_distribution IS 'collector pgnetlat_histograms; 1 row per database: distributions';
COMMENT ON COLUMN pgnetlat_metrics_distribution.datname IS 'label';
COMMENT ON COLUMN pgnetlat_metrics_distribution.request_seconds IS 'histogram: Time that each request took: execution, sending and receiving.';
COMMENT ON COLUMN pgnetlat_metrics_distribution.request_seconds_bucket IS 'part: of the histogram.';
COMMENT ON COLUMN pgnetlat_metrics_distribution.request_seconds_sum IS 'part: of the histogram.';
COMMENT ON COLUMN pgnetlat_metrics_distribution.request_seconds_count IS 'part: of the histogram.';
COMMENT ON COLUMN pgnetlat_metrics_distribution.wait_seconds IS 'histogram: Waits between requests, less idle ones: network and client.';
COMMENT ON COLUMN pgnetlat_metrics_distribution.wait_seconds_bucket IS 'part: of the histogram.';
COMMENT ON COLUMN pgnetlat_metrics_distribution.wait_seconds_sum IS 'part: of the histogram.';
COMMENT ON COLUMN pgnetlat_metrics_distribution.wait_seconds_count IS 'part: of the histogram.';
COMMENT ON COLUMN pgnetlat_metrics_distribution.wait_network_seconds IS 'histogram: The network''s part of each of these waits.';
COMMENT ON COLUMN pgnetlat_metrics_distribution.wait_network_seconds_bucket IS 'part: of the histogram.';
COMMENT ON COLUMN pgnetlat_metrics_distribution.wait_network_seconds_sum IS 'part: of the histogram.';
COMMENT ON COLUMN pgnetlat_metrics_distribution.wait_network_seconds_count IS 'part: of the histogram.';
COMMENT ON COLUMN pgnetlat_metrics_distribution.wait_client_seconds IS 'histogram: The client''s part of each of these waits.';
COMMENT ON COLUMN pgnetlat_metrics_distribution.wait_client_seconds_bucket IS 'part: of the histogram.';
COMMENT ON COLUMN pgnetlat_metrics_distribution.wait_client_seconds_sum IS 'part: of the histogram.';
COMMENT ON COLUMN pgnetlat_metrics_distribution.wait_client_seconds_count IS 'part: of the histogram.';
COMMENT ON COLUMN pgnetlat_metrics_distribution.rtt_seconds IS 'histogram: Round-trip time of the connections, whenever it was measured.';
COMMENT ON COLUMN pgnetlat_metrics_distribution.rtt_seconds_bucket IS 'part: of the histogram.';
COMMENT ON COLUMN pgnetlat_metrics_distribution.rtt_seconds_sum IS 'part: of the histogram.';
COMMENT ON COLUMN pgnetlat_metrics_distribution.rtt_seconds_count IS 'part: of the histogram.';
COMMENT ON COLUMN pgnetlat_metrics_distribution.connect_seconds IS 'histogram: Time that each connection took to set up.';
COMMENT ON COLUMN pgnetlat_metrics_distribution.connect_seconds_bucket IS 'part: of the histogram.';
COMMENT ON COLUMN pgnetlat_metrics_distribution.connect_seconds_sum IS 'part: of the histogram.';
COMMENT ON COLUMN pgnetlat_metrics_distribution.connect_seconds_count IS 'part: of the histogram.';

-- Over Unix-domain sockets there are no figures.
CREATE VIEW pgnetlat_metrics_replication AS
SELECT pgnetlat_legible(application_name) AS application_name,
	   coalesce(pg_catalog.host(client_addr), 'local') AS client_addr,
	   pg_catalog.sum(walsenders)::bigint AS walsenders,
	   coalesce(pg_catalog.max(flush_lag), 0::float8) * 0.001::float8 AS flush_lag_seconds,
	   coalesce(pg_catalog.min(rtt), 0::float8) * 0.001::float8 AS rtt_seconds,
	   coalesce(pg_catalog.sum(bytes_queued), 0::numeric)::bigint AS queued_bytes,
	   coalesce(pg_catalog.sum(retransmits), 0::numeric)::bigint AS retransmits_total,
	   coalesce(pg_catalog.sum(bytes_acked), 0::numeric)::bigint AS acked_bytes_total,
	   (pg_catalog.sum(pgnetlat_nanoseconds(sender_time)) * 0.000000001)::float8 AS sender_seconds_total,
	   (pg_catalog.sum(pgnetlat_nanoseconds(network_limited_time)) * 0.000000001)::float8 AS network_limited_seconds_total,
	   (pg_catalog.sum(pgnetlat_nanoseconds(receiver_limited_time)) * 0.000000001)::float8 AS receiver_limited_seconds_total,
	   (pg_catalog.sum(pgnetlat_nanoseconds(buffer_limited_time)) * 0.000000001)::float8 AS buffer_limited_seconds_total
  FROM pgnetlat_replication
 WHERE sender_time IS NOT NULL
 GROUP BY 1, 2
 ORDER BY 3 DESC, 1, 2
 LIMIT 10;

COMMENT ON VIEW pgnetlat_metrics_replication IS 'collector pgnetlat_replication; at most 10 rows: walsenders, by application and address';
COMMENT ON COLUMN pgnetlat_metrics_replication.application_name IS 'label';
COMMENT ON COLUMN pgnetlat_metrics_replication.client_addr IS 'label';
COMMENT ON COLUMN pgnetlat_metrics_replication.walsenders IS 'gauge: Walsenders that are connected.';
COMMENT ON COLUMN pgnetlat_metrics_replication.flush_lag_seconds IS 'gauge: Time from sending WAL until its flush was confirmed; 0 if unknown.';
COMMENT ON COLUMN pgnetlat_metrics_replication.rtt_seconds IS 'gauge: The round-trip time of the path; 0 if unknown.';
COMMENT ON COLUMN pgnetlat_metrics_replication.queued_bytes IS 'gauge: Bytes handed over that the receiver''s kernel has not acknowledged.';
COMMENT ON COLUMN pgnetlat_metrics_replication.retransmits_total IS 'counter: TCP segments sent again.';
COMMENT ON COLUMN pgnetlat_metrics_replication.acked_bytes_total IS 'counter: Bytes that the receiver''s kernel has acknowledged.';
COMMENT ON COLUMN pgnetlat_metrics_replication.sender_seconds_total IS 'counter: Time in which the walsenders had nothing under way.';
COMMENT ON COLUMN pgnetlat_metrics_replication.network_limited_seconds_total IS 'counter: Time in which the path limited the walsenders.';
COMMENT ON COLUMN pgnetlat_metrics_replication.receiver_limited_seconds_total IS 'counter: Time in which the receiver limited the walsenders.';
COMMENT ON COLUMN pgnetlat_metrics_replication.buffer_limited_seconds_total IS 'counter: Time in which the send buffer limited the walsenders.';

-- Metrics are for those who may see all sessions; why they are missing, for everybody.
GRANT SELECT ON pgnetlat_metrics_exporter TO PUBLIC;
GRANT SELECT ON pgnetlat_metrics_build, pgnetlat_metrics_health, pgnetlat_metrics_server, pgnetlat_metrics_connections,
	pgnetlat_metrics_database, pgnetlat_metrics_holder, pgnetlat_metrics_pool, pgnetlat_metrics_finding,
	pgnetlat_metrics_client, pgnetlat_metrics_statement, pgnetlat_metrics_query, pgnetlat_metrics_blocker,
	pgnetlat_metrics_distribution, pgnetlat_metrics_bucket, pgnetlat_metrics_replication TO pg_read_all_stats;
