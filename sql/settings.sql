-- The settings: core's errors for bad values, and switching off and on.
CREATE EXTENSION pgnetlat;

SELECT name, boot_val, unit, context, vartype FROM pg_settings
 WHERE name LIKE 'pgnetlat.%' ORDER BY name;

-- wording differs between majors
\set VERBOSITY sqlstate
SET pgnetlat.idle_threshold = '-1ms';
SET pgnetlat.idle_threshold = 'long';
SET pgnetlat.sample_interval = '1s';
SET pgnetlat.max_statements = 7;
SET pgnetlat.enabled = maybe;
SET pgnetlat.no_such_setting = 1;
\set VERBOSITY default
SET pgnetlat.idle_threshold = '1min';
SHOW pgnetlat.idle_threshold;
RESET pgnetlat.idle_threshold;

CREATE ROLE regress_pgnetlat_plain;
SET ROLE regress_pgnetlat_plain;
SET pgnetlat.enabled = off;
RESET ROLE;
DROP ROLE regress_pgnetlat_plain;

-- switched off, the account stands still; switched on, it goes on
SET pgnetlat.enabled = off;
SELECT requests AS r1, total_time AS t1, state FROM pgnetlat_sessions
 WHERE pid = pg_backend_pid() \gset
SELECT :'state' AS state;
SELECT pg_sleep(0.02);
SELECT requests = :r1 AS same_requests, total_time = :t1 AS same_time
  FROM pgnetlat_sessions WHERE pid = pg_backend_pid();
SET pgnetlat.enabled = on;
SELECT requests - :r1 AS requests, state FROM pgnetlat_sessions
 WHERE pid = pg_backend_pid();
SELECT requests - :r1 AS requests FROM pgnetlat_sessions
 WHERE pid = pg_backend_pid();

-- exchanges are counted even if they are not recorded
SET pgnetlat.track_statements = off;
SELECT max(start) AS last_start FROM pgnetlat_recent(pg_backend_pid()) \gset
SELECT requests AS r1 FROM pgnetlat_sessions WHERE pid = pg_backend_pid() \gset
SELECT 1 AS one;
SELECT count(*) FROM pgnetlat_recent(pg_backend_pid()) WHERE start > :'last_start';
SELECT requests - :r1 AS requests FROM pgnetlat_sessions WHERE pid = pg_backend_pid();
RESET pgnetlat.track_statements;

DROP EXTENSION pgnetlat;
