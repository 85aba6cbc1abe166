
-- Verdict: slow loader
-- Precedence: 130
-- Headline: does not send its data as fast as the server takes it
-- Meaning: COPY waits for data, which comes slowly
-- Lost: the wait
--
-- A client that is slow to send what it loads.
 UNION ALL
SELECT n, 'slow loader', 'loss', 'receiving', recv_time, recv_time,
	   concat('The server waited ', pgnetlat_time_text(working, recv_time), ' for more data of a request, as in COPY FROM STDIN',
			  CASE WHEN bytes_received > 0
			  THEN format('. %s MB came at %s MB/s', pgnetlat_figure_text(bytes_received / 1e6),
						  pgnetlat_figure_text(bytes_received / nullif(recv_time, 0) / 1e3)) END),
	   'Prepare the data before COPY, load from several connections, or move the loader closer: the server could load faster.',
	   NULL
  FROM accounts, t
 WHERE recv_time > 0 AND recv_time >= t.stream_share * working
   AND coalesce(bytes_received, 0) * 1000 < t.fast_client * recv_time
