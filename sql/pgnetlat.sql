-- The SQL surface, and what is true of every row on any machine.  This can be
-- run on a server in use: it resets nothing, and allows for earlier figures.
CREATE EXTENSION pgnetlat;
SELECT sampler_errors FROM pgnetlat_info \gset before_

\d pgnetlat_sessions
\d pgnetlat_now
\d pgnetlat_blockers
\d pgnetlat_pools
\d pgnetlat_walsenders
\d pgnetlat_replication
\d pgnetlat_waits
\d pgnetlat_statements
\d pgnetlat_clients
\d pgnetlat_histogram
\d pgnetlat_history
\d pgnetlat_top_statements
\d pgnetlat_info
\df pgnetlat_re[cs]*

-- every object has a comment
SELECT c.relname, a.attname
  FROM pg_depend m
  JOIN pg_extension e ON e.oid = m.refobjid AND e.extname = 'pgnetlat'
  JOIN pg_class c ON c.oid = m.objid AND m.classid = 'pg_class'::regclass
  JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
 WHERE m.deptype = 'e' AND col_description(c.oid, a.attnum) IS NULL;
SELECT pg_describe_object(m.classid, m.objid, 0)
  FROM pg_depend m
  JOIN pg_extension e ON e.oid = m.refobjid AND e.extname = 'pgnetlat'
 WHERE m.deptype = 'e' AND m.classid IN ('pg_class'::regclass, 'pg_proc'::regclass)
   AND obj_description(m.objid, m.classid::regclass::name) IS NULL;

-- no function needs all columns of a view of core: pg_upgrade may lead to a version without one
WITH body AS MATERIALIZED (
	SELECT m.objid::regprocedure AS function, pg_get_function_sqlbody(m.objid) AS text
	  FROM pg_depend m
	  JOIN pg_extension e ON e.oid = m.refobjid AND e.extname = 'pgnetlat'
	 WHERE m.deptype = 'e' AND m.classid = 'pg_proc'::regclass)
SELECT b.function, v.relname AS view
  FROM body b
  JOIN pg_class v ON v.relkind = 'v' AND v.relnamespace = 'pg_catalog'::regnamespace AND strpos(b.text, v.relname) > 0
 WHERE NOT EXISTS (SELECT FROM pg_attribute a
					WHERE a.attrelid = v.oid AND a.attnum > 0 AND strpos(b.text, a.attname) = 0);

-- how the planner sees the functions
SELECT p.proname AS function, provolatile, proparallel, procost, prorows
  FROM pg_depend m
  JOIN pg_extension e ON e.oid = m.refobjid AND e.extname = 'pgnetlat'
  JOIN pg_proc p ON p.oid = m.objid AND m.classid = 'pg_proc'::regclass
 WHERE m.deptype = 'e'
 ORDER BY p.proname COLLATE "C";

-- this session
SELECT pid = pg_backend_pid() AS me, datname = current_database() AS here,
	   usename = current_user AS mine, application_name, state,
	   backend_start <= stats_since AS begun_before_counting
  FROM pgnetlat_sessions WHERE pid = pg_backend_pid();

-- the parts add up, and the shares to one
SELECT abs(total_time - (exec_time + send_time + recv_time + network_time
						 + client_time + idle_time + pending_time))
	   <= total_time * 1e-9 AS parts_add_up,
	   abs(server_share + network_share + client_share - 1) < 1e-9 AS shares_add_up,
	   round_trips = requests - pipelined AS round_trips_fit
  FROM pgnetlat_sessions WHERE pid = pg_backend_pid();

-- so do those of a window, to its length
SELECT requests > 0 AS counted, window_time = total_time AS whole,
	   abs(window_time - (exec_time + send_time + recv_time + network_time
						  + client_time + idle_time + pending_time))
	   <= window_time * 1e-9 AS parts_add_up
  FROM pgnetlat_sessions_last() WHERE pid = pg_backend_pid();
SELECT * FROM pgnetlat_sessions_last('0');
SELECT * FROM pgnetlat_sessions_last(duration => '16 min');

-- pgnetlat_now does not show its own session
SELECT count(*) FROM pgnetlat_now WHERE pid = pg_backend_pid();

-- counts are exact: each simple query is one exchange, even with several statements
SELECT requests, statements, transactions FROM pgnetlat_sessions
 WHERE pid = pg_backend_pid() \gset before_
SELECT 1 \; SELECT 2 \; SELECT 3;
SELECT 4;
DO $$BEGIN RAISE NOTICE 'a notice ends no exchange'; END$$;
SELECT requests - :before_requests AS requests,
	   statements - :before_statements AS statements,
	   transactions - :before_transactions AS transactions
  FROM pgnetlat_sessions WHERE pid = pg_backend_pid();

-- a sleeping statement is executing, and a waiting transaction is not idle
SELECT exec_time AS exec_before FROM pgnetlat_sessions WHERE pid = pg_backend_pid() \gset
SELECT pg_sleep(0.05);
SELECT exec_time - :exec_before >= 50 AS slept
  FROM pgnetlat_sessions WHERE pid = pg_backend_pid();
BEGIN;
SELECT in_xact_wait_time > 0 AS waited_in_transaction
  FROM pgnetlat_sessions WHERE pid = pg_backend_pid();
COMMIT;

-- statements: exact calls and rows, and one repeat within a transaction
CREATE TABLE pgnetlat_t (id int PRIMARY KEY, v int);
INSERT INTO pgnetlat_t SELECT i, i FROM generate_series(1, 10) i;
SET compute_query_id = on;
BEGIN;
SELECT v FROM pgnetlat_t WHERE id = 1;
SELECT v FROM pgnetlat_t WHERE id = 2;
SELECT v FROM pgnetlat_t WHERE id <= 3;
SELECT v FROM pgnetlat_t WHERE id = 4;
COMMIT;
SELECT calls, rows, repeats FROM pgnetlat_statements
 WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
   AND queryid = (SELECT queryid FROM pgnetlat_recent(pg_backend_pid())
				   WHERE xact_status = 'T' GROUP BY queryid HAVING count(*) = 3);

-- sums over client groups equal sums over sessions
SELECT sum(requests) >= 6 AS counted FROM pgnetlat_clients
 WHERE datname = current_database();

SELECT sum(requests) >= 6 AS counted, bool_and(window_time > 0) AS some_time
  FROM pgnetlat_clients_last() WHERE datname = current_database();
SELECT * FROM pgnetlat_clients_last('-1 s');

-- pools: this session is in its own pool and in that of all sessions
SELECT count(*) AS rows, bool_and(sessions >= 1) AS connected,
	   bool_and(sessions <= sessions_max) AS no_more_than_ever,
	   bool_and(busy_p50 <= busy_p95 AND busy_p95 <= busy_p99 AND busy_p99 <= busy_p999
				AND busy_p999 <= busy_max) AS in_order,
	   bool_and(pool_size = greatest(busy_p999, 1)) AS pool_size
  FROM pgnetlat_pools
 WHERE datname = current_database() AND usename = current_user
	OR datname IS NULL AND usename IS NULL AND datid IS NULL;
SELECT bool_and(busy_avg >= 0) AS counted, bool_and(window_time > 0) AS some_time
  FROM pgnetlat_pools_last('10 s') WHERE datname = current_database();
SELECT * FROM pgnetlat_pools_last('0');
SELECT * FROM pgnetlat_pools_last(duration => '16 min');

-- the busiest clients: only this one
SELECT database = current_database() AS here, role = current_user AS me, application, sessions > 0 AS connected,
	   busy > 0 AS busy, rate > 0 AS asked, server + network + client AS percent
  FROM pgnetlat_top_clients WHERE application = current_setting('application_name') AND database = current_database();
SELECT count(*) FROM pgnetlat_top_clients(max_rows => 0);
SELECT count(*) FROM pgnetlat_top_clients(max_rows => -1);
SELECT count(*) FROM pgnetlat_top_clients(duration => '0');

-- predictions: without a change, with changes, and with nonsense
SELECT bool_and(abs(predicted_throughput / throughput - 1) < 1e-5) AS as_it_is,
	   bool_and(abs(predicted_transaction_time / transaction_time - 1) < 1e-5) AS as_long,
	   bool_and(abs(server_time + network_time + client_time - transaction_time) < 1e-6 * transaction_time) AS adds_up,
	   count(predicted_throughput) > 0 AS some
  FROM pgnetlat_what_if();
SELECT bool_and(predicted_throughput_low <= predicted_throughput
				AND predicted_throughput <= predicted_throughput_high) AS in_order,
	   bool_and(predicted_transaction_time >= 1000 * round_trips) AS far
  FROM pgnetlat_what_if(rtt => 1000);
SELECT requests > 0 AS counted, predicted_throughput < throughput AS slower
  FROM pgnetlat_what_if_session(pg_backend_pid(), rtt => 1000);
SELECT count(*) FROM pgnetlat_what_if_session(0);
SELECT count(*) FROM pgnetlat_what_if_session(NULL);
SELECT count(w.requests) > 0 AS rows, count(w.predicted_throughput) AS predictions
  FROM (VALUES (-1::float8, NULL::float8, NULL::float8, NULL::integer), ('NaN', NULL, NULL, NULL), ('Infinity', NULL, NULL, NULL),
			   (NULL, 0.5, NULL, NULL), (NULL, 'NaN', NULL, NULL),
			   (NULL, NULL, 0, NULL), (NULL, NULL, '-Infinity', NULL),
			   (NULL, NULL, NULL, 0), (NULL, NULL, NULL, 2147483647)) n(rtt, batch, speed, sessions),
	   pgnetlat_what_if(n.rtt, n.batch, n.speed, n.sessions) w;
SELECT * FROM pgnetlat_what_if(duration => '0');
SELECT * FROM pgnetlat_what_if(duration => '1 day');

-- findings, the most expensive first, each with evidence
SELECT attname AS column, format_type(atttypid, atttypmod) AS type
  FROM (SELECT unnest(proargnames) AS attname, unnest(proallargtypes) AS atttypid, NULL::int AS atttypmod
		  FROM pg_proc WHERE oid = 'pgnetlat_diagnose'::regproc) c;
SELECT coalesce(bool_and(lost_sessions >= next), true) AS in_order, count(*) FILTER (WHERE evidence IS NULL) AS without_evidence,
	   count(*) FILTER (WHERE saving_sessions > lost_sessions * (1 + 1e-9)) AS saved_too_much
  FROM (SELECT *, lead(lost_sessions, 1, 0::float8) OVER (ROWS UNBOUNDED PRECEDING) AS next
		  FROM pgnetlat_diagnose()) f;
SELECT count(*) FROM pgnetlat_diagnose('1 min') WHERE pid = pg_backend_pid();
SELECT * FROM pgnetlat_diagnose('0');
SELECT * FROM pgnetlat_diagnose(duration => '16 min');

-- the flight recorder, oldest first; the last exchange has no wait yet
SELECT bool_and(start >= lag) AS in_order, bool_and(exec_time >= 0) AS not_negative,
	   count(*) > 5 AS several
  FROM (SELECT *, lag(start, 1, start) OVER () AS lag
		  FROM pgnetlat_recent(pg_backend_pid())) r;
SELECT count(*) FROM pgnetlat_recent(0);

-- histograms are cumulative and end with +Inf
SELECT metric, bool_and(bucket >= previous) AS cumulative,
	   bool_and(le <> '+Inf' OR bucket = count) AS complete, count(*) AS buckets
  FROM (SELECT *, lag(bucket, 1, 0::bigint) OVER (PARTITION BY datid, usesysid,
			   application_name, client_addr, metric ORDER BY le::float8) AS previous
		  FROM pgnetlat_histogram) h
 GROUP BY metric, datid, usesysid, application_name, client_addr
HAVING bool_or(application_name = 'pg_regress/pgnetlat' AND datname = current_database())
 ORDER BY metric;

-- history
SELECT bool_and(bucket_start <= bucket_end) AS in_order FROM pgnetlat_history;

-- the extension itself
SELECT version = extversion AS same_version,
	   sampler_errors - :before_sampler_errors AS sampler_errors,
	   shared_memory_bytes > 0 AS has_memory
  FROM pgnetlat_info, pg_extension WHERE extname = 'pgnetlat';

-- privileges
CREATE ROLE regress_pgnetlat_plain;
SET ROLE regress_pgnetlat_plain;
SELECT has_function_privilege('pgnetlat_reset()', 'EXECUTE') AS may_reset;
SELECT count(*) > 0 AS rows, count(client_port) AS ports, count(backend_start) AS starts,
	   count(state) AS states, count(exec_time) AS times
  FROM pgnetlat_sessions WHERE usesysid <> (SELECT oid FROM pg_roles WHERE rolname = current_user);
SELECT count(*) > 0 AS rows, count(client_port) AS ports, count(backend_start) AS starts,
	   count(state) AS states, count(window_time) AS times
  FROM pgnetlat_sessions_last() WHERE usesysid <> (SELECT oid FROM pg_roles WHERE rolname = current_user);
SELECT count(*) FROM pgnetlat_waits;
SELECT count(queryid) FROM pgnetlat_statements
 WHERE userid <> (SELECT oid FROM pg_roles WHERE rolname = current_user);
SELECT count(client_addr) FROM pgnetlat_clients;
SELECT count(client_addr) FROM pgnetlat_clients_last();
SELECT count(*) > 0 AS rows, count(sessions) = count(*) AS sessions, count(sessions_max) AS maxima,
	   count(busy) AS busy, count(pool_size) AS sizes, count(stats_since) AS times
  FROM pgnetlat_pools WHERE usename IS DISTINCT FROM current_user;
SELECT count(busy_max) AS maxima, count(pool_size) AS sizes, count(window_time) AS times
  FROM pgnetlat_pools_last() WHERE usename IS DISTINCT FROM current_user;
SELECT count(client_addr) FROM pgnetlat_what_if();
SELECT count(*) FROM pgnetlat_sessions s, pgnetlat_what_if_session(s.pid) w
 WHERE s.usesysid <> (SELECT oid FROM pg_roles WHERE rolname = current_user);
SELECT count(*) FROM pgnetlat_diagnose()
 WHERE usesysid <> (SELECT oid FROM pg_roles WHERE rolname = current_user);
SELECT count(query) FROM pgnetlat_top_statements(NULL) WHERE role <> current_user;
RESET ROLE;
GRANT pg_read_all_stats TO regress_pgnetlat_plain;
SET ROLE regress_pgnetlat_plain;
SELECT count(state) > 0 AS states FROM pgnetlat_sessions;
RESET ROLE;
REVOKE pg_read_all_stats FROM regress_pgnetlat_plain;
DROP ROLE regress_pgnetlat_plain;

DROP TABLE pgnetlat_t;
DROP EXTENSION pgnetlat;
