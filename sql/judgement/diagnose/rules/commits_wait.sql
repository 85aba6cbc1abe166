
-- Verdict: commits wait
-- Precedence: 30
-- Headline: stands in COMMIT until a standby confirms
-- Meaning: sessions have been waiting in COMMIT for seconds, because no synchronous standby
--   confirms: it is not connected, or slow
-- Lost: their wait
--
-- Sessions wait in COMMIT, because no synchronous standby confirms.  Requests are rare
-- then, so that their number says nothing.
 UNION ALL
SELECT n, 'commits wait', 'outage', 'execution', greatest(exec_replication_time, w.lost), greatest(exec_replication_time, w.lost),
	   format('%s for a standby to confirm %s, the longest for %s.  synchronous_standby_names = ''%s'': %s.',
			  pgnetlat_count_text(w.sessions, 'session is waiting', 'sessions are waiting'),
			  CASE w.sessions WHEN 1 THEN 'a commit' ELSE 'commits' END, pgnetlat_age(w.age), names,
			  CASE WHEN NOT sees_all THEN 'this role may not see which standbys are connected'
				   WHEN confirming = 0 THEN 'no such standby is connected'
				   WHEN confirming < wanted THEN format('only %s of %s such standbys are connected', confirming, wanted)
				   ELSE 'connected, but not confirming: ' || connected END),
	   concat(CASE WHEN sees_all AND confirming < wanted THEN 'Start the standby.'
			  ELSE 'See pgnetlat_walsenders for whether the standby, its disk or the network is slow.' END,
			  '  If commits must not wait for it: ALTER SYSTEM SET synchronous_standby_names = ''''; SELECT pg_reload_conf();'),
	   NULL
  FROM accounts a
  JOIN LATERAL (
	SELECT count(*)::float8 AS sessions, max(age) AS age, sum(lost) AS lost
	  FROM stopped_sessions x
	 WHERE wait_event = 'SyncRep'
	   AND CASE a.kind WHEN 'session' THEN x.pid = a.pid
		   ELSE x.datid = a.datid AND x.usesysid = a.usesysid AND x.application_name = a.application_name
				AND x.client_addr IS NOT DISTINCT FROM a.client_addr END) w ON w.sessions > 0
 CROSS JOIN me
 CROSS JOIN (SELECT setting AS names, coalesce(substring(setting, '(?i)^\s*(?:first|any)?\s*([0-9]{1,4})\s*\(')::integer, 1) AS wanted
			   FROM current_setting('synchronous_standby_names') setting) y
 CROSS JOIN (SELECT count(*) AS confirming, string_agg(pgnetlat_one_line(application_name), ', ') AS connected
			   FROM standbys WHERE sync_state IN ('sync', 'quorum')) z
