
-- A client that does not read what it is sent.
 UNION ALL
SELECT n, 'slow reader', 'loss', 'sending', send_client_time, send_client_time,
	   format('the client was not reading for %s; it read %s MB at %s MB/s', pgnetlat_time_text(working, send_client_time),
			  pgnetlat_figure_text(bytes_sent / 1e6), pgnetlat_figure_text(bytes_sent / nullif(send_blocked_time, 0) / 1e3)),
	   'Let the client read the result before it works on the rows, or ask for fewer of them (LIMIT, a cursor); meanwhile the statement holds its snapshot.',
	   NULL
  FROM accounts, pgnetlat_thresholds
 WHERE send_client_time > 0 AND send_client_time >= stream_share * working
   AND bytes_sent * 1000 < fast_client * send_blocked_time
