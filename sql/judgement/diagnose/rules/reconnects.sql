
-- Verdict: reconnects
-- Precedence: 160
-- Headline: reconnects again and again
-- Meaning: setting up connections takes a notable part of the time
-- Lost: that time
--
-- Clients that reconnect again and again.  Each time they wait for two round trips that
-- the server does not see.
 UNION ALL
SELECT n, 'reconnects', 'loss', 'connecting', connecting, connecting * ended_sessions / nullif(ended_sessions + sessions, 0),
	   format('%s connections took %s each to set up, in all %s, for %s requests', a.connections,
			  pgnetlat_time_text(connecting / nullif(a.connections, 0)), pgnetlat_time_text(busy + connecting, connecting), requests),
	   'Keep connections open: a pool in the application, or a pooler in front of the server.',
	   NULL
  FROM (SELECT accounts.*, connect_time + t.connect_trips * coalesce(path, 0) * accounts.connections AS connecting FROM accounts, t) a, t
 WHERE kind = 'client' AND a.connections >= t.connections AND ended_sessions >= t.connections
   AND connecting >= t.connect_share * (busy + connecting)
   AND connecting >= t.connect_sessions * (SELECT window_time FROM me)
