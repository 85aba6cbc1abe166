
-- Verdict: stalled
-- Precedence: 40
-- Headline: executes, but waits and gets nothing done
-- Meaning: sessions have been executing for seconds, but wait: inside the server, for a disk, or
--   for another server; not for a lock or a standby
-- Lost: their wait
--
-- Sessions that are executing, and get nothing done, because each waits for something
-- inside the server, for a disk or for another server.  Waits for locks and standbys have
-- rules of their own; a leader waits for its parallel workers by design.
 UNION ALL
SELECT n, 'stalled', CASE WHEN w.inside THEN 'outage' WHEN w.sessions > 1 THEN 'loss' ELSE 'note' END, 'execution', w.lost, NULL,
	   format('%s for %s or more, and %s %s: %s.',
			  pgnetlat_count_text(w.sessions, 'session has been executing', 'sessions have been executing'), pgnetlat_age(w.age),
			  CASE w.sessions WHEN 1 THEN 'waits' ELSE 'wait' END,
			  CASE WHEN w.inside THEN 'inside the server' ELSE 'for ' || w.wants END, w.events),
	   CASE WHEN w.inside
	   THEN 'See pgnetlat_waits for their wait events, and pg_stat_activity for who else waits for the same.  If a process holds an internal lock for seconds, see whether it is stopped, or short of memory or disk: the server''s log, dmesg, and a stack trace (gdb or pstack) show where.'
	   WHEN w.wants = 'I/O'
	   THEN 'If the statement reads or writes much, EXPLAIN (ANALYZE, BUFFERS) it.  If not, see iostat and dmesg: the disk is slow, or hangs.'
	   ELSE 'Look at the other server: pg_stat_activity there shows what it is doing.  To limit such waits, set statement_timeout, or keepalives and connect_timeout of the connection to it.' END,
	   NULL
  FROM accounts a
 CROSS JOIN t
 CROSS JOIN me
  JOIN LATERAL (
	SELECT sum(number)::float8 AS sessions, min(age) AS age, sum(lost) AS lost, bool_or(wants = 'the server') AS inside,
		   string_agg(DISTINCT wants, ' and ') AS wants,
		   string_agg(format('%s x %s', number, event), ', ' ORDER BY number DESC, event) AS events
	  FROM (SELECT wants, wait_event_type || ':' || wait_event AS event, count(*) AS number, min(age) AS age, sum(lost) AS lost
			  FROM stopped_sessions x
			 WHERE wants IN ('the server', 'I/O', 'another server')
			   AND CASE a.kind WHEN 'session' THEN x.pid = a.pid
				   ELSE x.datid = a.datid AND x.usesysid = a.usesysid AND x.application_name = a.application_name
						AND x.client_addr IS NOT DISTINCT FROM a.client_addr END
			 GROUP BY 1, 2) e) w ON w.sessions > 0
 WHERE EXISTS (SELECT FROM stopped_sessions) AND (w.inside OR w.lost < t.server_sessions * window_time)
