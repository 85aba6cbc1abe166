
-- A path that limits what is sent over it.
 UNION ALL
SELECT n, 'narrow path', 'sending', lost, greatest(lost - bytes_sent * 1000 / fast_path, 0),
	   format('the network limited sending for %s; %s MB went at %s MB/s', pgnetlat_time_text(working, lost),
			  pgnetlat_figure_text(bytes_sent / 1e6), pgnetlat_figure_text(bytes_sent / lost / 1e3)),
	   'Send less (fewer columns and rows, aggregates, COPY in binary), compress on the way, or get a path with more bandwidth.',
	   NULL
  FROM (SELECT *, send_blocked_time - send_client_time AS blocked,
			   send_blocked_time - send_client_time + CASE WHEN send_blocked_time > send_client_time THEN beyond ELSE 0 END AS lost
		  FROM accounts) a, pgnetlat_thresholds
 WHERE path > 0 AND blocked >= send_client_time AND lost > 0 AND lost >= stream_share * working
   AND bytes_sent * 1000 < fast_path * lost
