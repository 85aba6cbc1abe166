
-- Verdict: client-bound
-- Precedence: 170
-- Headline: is slowed down by the application itself, not by the database
-- Meaning: the client keeps its transactions waiting, or one connection runs in a loop whose
--   time is mostly the client's
-- Lost: its think time
--
-- A client that keeps its transactions waiting, or a single connection in a loop that is
-- mostly the client's; but not a client that asks now and then, or on a schedule.
 UNION ALL
SELECT n, 'client-bound', CASE WHEN in_xact THEN 'loss' ELSE 'note' END, 'client', CASE WHEN in_xact THEN a.think ELSE client_time END,
	   CASE WHEN in_xact THEN a.think END,
	   format('The client thinks %s per request%s, and the server takes %s%s',
			  CASE WHEN in_xact THEN pgnetlat_time_text(working / req, a.think / req)
			  ELSE pgnetlat_time_text(busy / req, client_time / req) END,
			  CASE WHEN in_xact THEN ' in transactions' END,
			  pgnetlat_time_text((exec_time + send_time - send_blocked_time + run_queue_wait_time) / req),
			  CASE WHEN in_xact AND blocking = 0 THEN '. Its locks block nobody' END),
	   concat('Profile the application, or ',
			  CASE WHEN in_xact THEN 'move its work outside the transaction, before BEGIN or after COMMIT: a faster server or network changes little.  Exception: short jobs of a queue worker whose locks block nobody.  Even then, VACUUM cannot remove dead rows until the transaction ends.'
			  ELSE 'let several connections share its work: a faster server or network changes little.' END),
	   NULL
  FROM (SELECT a.*, sure_think >= t.think * req AND sure_think >= t.think_share * working
			   AND client_of_life >= t.think_life AND blocking < t.think_free * sure_think AS in_xact
		  FROM accounts a, t) a
 CROSS JOIN t
 WHERE kind = 'client' AND requests >= t.min_requests
   AND (in_xact
		OR sessions = 1 AND ended_sessions = 0 AND busy >= t.loop_busy * (SELECT window_time FROM me)
		   AND sure_client >= t.loop_share * busy AND sure_client >= t.loop_think * req
		   AND client_time <= t.loop_pause * req AND NOT EXISTS (SELECT FROM alike WHERE alike.n = a.n AND NOT alike.in_xact))
