
-- Verdict: starved
-- Precedence: 200
-- Headline: waits for a CPU
-- Meaning: backends are waiting for a CPU, for a notable part of the time
-- Lost: the time in the run queue
--
-- Waiting for a CPU: the whole server, or else single client groups.
-- Waits for locks, disks and the like are not part of the time for which a CPU was
-- wanted.  Short requests may lack little each, but much of the time.  If they lack next to
-- nothing, they are clients without pauses, which take turns on the CPUs.
 UNION ALL
SELECT n, 'starved', 'loss', 'CPU', lost, lost,
	   format('It waited for a CPU for %s%s', pgnetlat_time_text(wanted, lost),
			  ', ' || pgnetlat_time_text(wanted / nullif(requests, 0), lost / nullif(requests, 0)) || ' per request'),
	   'The CPUs are overcommitted: look for other load on this machine, limit concurrency with a pooler, or add CPUs.',
	   NULL
  FROM (SELECT x.*, bool_or(applies AND n = 0) OVER () AS server
		  FROM (SELECT y.*, lost >= t.starved_share * wanted AND wanted > 0 AND lost >= t.starved_sessions * window_time
					   AND CASE WHEN requests < t.min_served THEN lost >= t.starved_time
								ELSE lost >= least(t.starved_request * requests,
												   greatest(t.short_starved_request * requests, t.starved_busy * busy)) END AS applies
				  FROM (SELECT n, run_queue_time AS lost, wanted, requests, busy
						  FROM accounts
						 CROSS JOIN LATERAL (SELECT run_queue_time + cpu + exec_unsampled_time AS wanted) w
						 WHERE kind = 'client'
						 UNION ALL
						SELECT 0, sum(run_queue_time), sum(run_queue_time + cpu + exec_unsampled_time), sum(requests), sum(busy)
						  FROM accounts WHERE kind = 'client') y, t, me) x) z
 WHERE applies AND (n = 0 OR NOT server)
