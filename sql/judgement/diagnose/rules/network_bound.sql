
-- Verdict: network-bound
-- Precedence: 150
-- Headline: spends most of its time on network round trips
-- Meaning: round trips are most of the time
-- Lost: the round trips
--
-- Round trips are most of the time that is not idle.  That includes thinking outside
-- transactions: a client that asks now and then loses nothing.
 UNION ALL
SELECT a.n, 'network-bound', 'loss', 'trips', trips, trips * greatest(1 - t.near_rtt / nullif(path, 0), 0),
	   format('%s per transaction, %s each, %s %s', pgnetlat_count_text(xact_trips, 'round trip', 'round trips'),
			  pgnetlat_time_text(path), CASE xact_trips WHEN 1 THEN 'takes' ELSE 'take' END, pgnetlat_time_text(busy / xacts, trips / xacts)),
	   'Run the application closer to the server (the saving is that of a round trip of ' || pgnetlat_time_text(t.near_rtt) || '), or send statements of several transactions in each round trip.',
	   NULL
  FROM accounts a
 CROSS JOIN t
 CROSS JOIN LATERAL (SELECT trips / nullif(path, 0) / xacts AS xact_trips) x
  LEFT JOIN lossy l ON l.n = a.n
 WHERE kind = 'client' AND requests >= t.min_requests AND path >= t.far_rtt * t.near_rtt
   AND trips >= t.network_share * busy AND network_of_life >= t.network_life
   AND (l.n IS NULL OR seen + unseen < t.loss_share * trips)
