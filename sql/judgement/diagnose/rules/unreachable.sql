
-- Verdict: unreachable
-- Precedence: 50
-- Headline: no longer answers: its host or the path to it is gone
-- Meaning: what the client was sent is not acknowledged, although the kernel has sent it again
--   twice or more: its host, or the path to it, is gone
-- Lost: the time since then
--
-- A client that has acknowledged nothing for a while, although the kernel sends again and
-- again.  Nobody is slow then: there is nobody, or no path.
 UNION ALL
SELECT n, 'unreachable', CASE WHEN silent >= t.stopped AND (state <> 'waiting' OR blocks) THEN 'outage' ELSE 'loss' END, 'sending', lost, lost,
	   format('Its client''s host has acknowledged nothing for %s, while the session is %s', pgnetlat_age(silent),
			  CASE state WHEN 'waiting in transaction' THEN 'idle in transaction' WHEN 'waiting' THEN 'idle' ELSE state END),
	   format('See whether the host %s is up and the path to it works.  To end the session now: SELECT pg_terminate_backend(%s).  By itself, the session ends when the kernel gives up, often after a quarter of an hour: tcp_user_timeout = ''30s'' makes that sooner.  tcp_keepalives_idle, tcp_keepalives_interval and tcp_keepalives_count do the same for a client that vanishes while nothing is being sent.',
			  host(client_addr), pid),
	   NULL
  FROM (SELECT a.*, least(silent, window_time) AS lost, EXISTS (SELECT FROM waiting w WHERE w.blocked_by = a.pid) AS blocks
		  FROM accounts a, me) a, t
 WHERE silent > 0
