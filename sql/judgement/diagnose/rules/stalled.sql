
-- Verdict: stalled
-- Precedence: 40
-- Headline: executes, but waits inside the server and gets nothing done
-- Meaning: sessions have been executing for five seconds, and wait for something inside the
--   server other than a lock, a standby, a disk or another server
-- Lost: their wait
--
-- Sessions that are executing, and get nothing done, because each waits for something
-- inside the server.  Waits for locks, standbys, disks and other servers have rules of
-- their own; a leader waits for its parallel workers by design.
 UNION ALL
SELECT n, 'stalled', 'outage', 'execution', w.lost, NULL,
	   format('%s for %s or more, and wait inside the server: %s.',
			  pgnetlat_count_text(w.sessions, 'session has been executing', 'sessions have been executing'), pgnetlat_age(w.age), w.events),
	   'pgnetlat_waits has their wait events.  pg_stat_activity shows who else waits for the same.  If a process holds an internal lock for seconds, see whether it is stopped, or short of memory or disk: the server''s log, dmesg, and a stack trace (gdb or pstack) show where.',
	   NULL
  FROM accounts a
  JOIN LATERAL (
	SELECT sum(number)::float8 AS sessions, min(age) AS age, sum(lost) AS lost,
		   string_agg(format('%s x %s', number, event), ', ' ORDER BY number DESC, event) AS events
	  FROM (SELECT wait_event_type || ':' || wait_event AS event, count(*) AS number, min(age) AS age, sum(lost) AS lost
			  FROM stopped_sessions x
			 WHERE (wait_event_type IN ('LWLock', 'BufferPin')
					OR wait_event_type = 'IPC' AND wait_event !~ '^(SyncRep|ExecuteGather|Parallel|BgWorker|MessageQueue|Hash|Append|Btree)')
			   AND CASE a.kind WHEN 'session' THEN x.pid = a.pid
				   ELSE x.datid = a.datid AND x.usesysid = a.usesysid AND x.application_name = a.application_name
						AND x.client_addr IS NOT DISTINCT FROM a.client_addr END
			 GROUP BY 1) e) w ON w.sessions > 0
