
-- Verdict: long statement
-- Precedence: 180
-- Headline: has been running one statement for a long time
-- Meaning: a statement has been executing for long
-- Lost: its execution
--
-- A statement that has been executing for minutes, without waiting for others or
-- sleeping.
 UNION ALL
SELECT n, 'long statement', 'note', 'execution', executed, NULL,
	   concat('It has been executing for ', pgnetlat_age(state_age), CASE WHEN exec_cpu_time >= t.long_cpu * executed THEN ', mostly on CPU'
			  WHEN exec_io_time >= t.long_io * executed THEN ', mostly waiting for I/O' END),
	   format('EXPLAIN it.  pg_stat_progress_* shows how far maintenance commands are.  To stop it: SELECT pg_cancel_backend(%s).', a.pid),
	   q.query_id
  FROM (SELECT *, exec_time - exec_lock_time - exec_replication_time - exec_remote_time AS executed FROM accounts) a
  JOIN activity q USING (pid)
 CROSS JOIN t
 WHERE kind = 'session' AND a.state = 'executing' AND state_age >= t.long_statement AND executed >= t.long_working * exec_time
   AND q.wait_event IS DISTINCT FROM 'PgSleep'
