
-- Verdict: server-bound
-- Precedence: 190
-- Headline: waits for the server to do its work
-- Meaning: execution is most of the time and requests are slow, or execution is a large part
--   of one session's time. The evidence says why
-- Lost: that part
--
-- The server takes long for requests, or executes for half of the time.  Says what for;
-- lock waits belong to other rules.  One session's job may be as fast as it can be, and if
-- its statement has been executing for long, that is a finding of its own.
 UNION ALL
(SELECT DISTINCT ON (n)
	   n, 'server-bound', CASE WHEN sessions + ended_sessions <= 1 AND NOT away THEN 'note' ELSE 'loss' END, 'execution', part,
	   CASE WHEN cause IN ('CPU', 'I/O') THEN part * (1 - 1 / nullif(t.faster_server, 0)) WHEN cause = 'replication' THEN part END,
	   concat(format('%s per request are %s', pgnetlat_time_text(working / req, part / req),
					 CASE cause WHEN 'CPU' THEN 'CPU time' WHEN 'replication' THEN 'waiting for a standby'
								WHEN 'remote' THEN 'waiting for another server' ELSE cause END),
			  CASE WHEN spills
			  THEN format('. Temporary files took %s in all, and the database has written %s MB of them since its statistics were reset',
						  pgnetlat_time_text(group_spilling),
						  (SELECT pgnetlat_figure_text(max(temp_bytes) / 1e6) FROM databases WHERE databases.datid = accounts.datid)) END),
	   concat(format(advice, pgnetlat_figure_text(t.faster_server)), CASE WHEN spills THEN '  Raise work_mem for sorts and hashes that spill to disk, or give them less to sort.' END), NULL
  FROM accounts
 CROSS JOIN t
 CROSS JOIN LATERAL (VALUES
	('CPU', cpu, false, t.server_share, t.slow_request,
	 'EXPLAIN (ANALYZE, BUFFERS) the statements with the most exec_cpu_time in pgnetlat_statements (the saving is that of a server %s times as fast).'),
	('I/O', exec_io_time, false, t.server_share, t.slow_request,
	 'EXPLAIN (ANALYZE, BUFFERS) the statements with the most exec_io_time in pgnetlat_statements; see pg_stat_io, shared_buffers and the disks (the saving is that of a server %s times as fast).'),
	('replication', exec_replication_time, true, t.away_share, t.away_request,
	 'See pgnetlat_walsenders for whether the standby, its disk or the network is slow.  If losing the last transactions is acceptable, set synchronous_commit to local or off, which does not wait.'),
	('remote', exec_remote_time, true, t.away_share, t.away_request,
	 'Look at the other server: EXPLAIN VERBOSE shows what it is sent.  Set fetch_size and batch_size of postgres_fdw to save round trips to it.'),
	('other waits', greatest(exec_other_time - group_sleeping, 0), false, t.server_share, t.slow_request,
	 'See pgnetlat_waits for which wait events these are.')) causes (cause, part, away, share_of, each, advice)
 CROSS JOIN LATERAL (SELECT cause IN ('CPU', 'I/O') AND group_spilling >= t.spill_share * part AS spills) x
 WHERE kind = 'client' AND exec_time >= t.min_lost AND part >= share_of * working AND part >= each * req
   AND (requests >= t.min_served
		OR part - CASE cause WHEN 'other waits' THEN group_asked ELSE 0 END >= t.server_sessions * (SELECT window_time FROM me)
		   AND (away OR coalesce(executing_age < t.long_statement, true)))
 ORDER BY n, part DESC)
