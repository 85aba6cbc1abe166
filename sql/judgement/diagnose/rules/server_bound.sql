
-- The server takes long for requests.  Says what for; lock waits belong to other rules.
 UNION ALL
(SELECT DISTINCT ON (n)
	   n, 'server-bound', 'loss', 'execution', part,
	   CASE WHEN cause IN ('CPU', 'I/O') THEN part / 2 WHEN cause = 'replication' THEN part END,
	   format('%s: %s per request', cause, pgnetlat_time_text(working / req, part / req)), advice, NULL
  FROM accounts, pgnetlat_thresholds
 CROSS JOIN LATERAL (VALUES
	('CPU', cpu, server_share, slow_request,
	 'EXPLAIN (ANALYZE, BUFFERS) the statements with the most exec_cpu_time in pgnetlat_statements (the saving is that of a server twice as fast).'),
	('I/O', exec_io_time, server_share, slow_request,
	 'EXPLAIN (ANALYZE, BUFFERS) the statements with the most exec_io_time in pgnetlat_statements; see pg_stat_io, shared_buffers and the disks (the saving is that of a server twice as fast).'),
	('replication', exec_replication_time, away_share, away_request,
	 'See pgnetlat_walsenders: the standby, its disk, or the network to it; synchronous_commit = local or off does not wait, where losing the last transactions is acceptable.'),
	('remote', exec_remote_time, away_share, away_request,
	 'Ask the other server what it does: EXPLAIN VERBOSE shows what it is sent; fetch_size and batch_size of postgres_fdw save round trips to it.'),
	('other waits', exec_other_time, server_share, slow_request,
	 'pgnetlat_waits shows which wait events these are.')) causes (cause, part, share_of, each, advice)
 WHERE kind = 'client' AND requests >= min_served AND part >= share_of * working AND part >= each * req
 ORDER BY n, part DESC)
