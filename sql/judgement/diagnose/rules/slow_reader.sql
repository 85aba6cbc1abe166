
-- Verdict: slow reader
-- Precedence: 120
-- Headline: does not read its results as fast as the server sends them
-- Meaning: sending is blocked by a client that is not reading: its window was closed for a
--   notable part of that time
-- Lost: the time that sending was blocked
--
-- A client that does not read what it is sent.  After each pause of one that takes portions,
-- the sender fills its window at the path's pace, so all blocked time is the client's if
-- the window is closed for much of it: a path that is narrow never lets it close.
 UNION ALL
SELECT n, 'slow reader', 'loss', 'sending', send_blocked_time, send_blocked_time,
	   format('The client was not reading for %s%s. It read %s MB at %s MB/s', pgnetlat_time_text(working, send_client_time),
			  CASE WHEN send_client_time < t.window_all * send_blocked_time
			  THEN ', and sending was blocked for ' || pgnetlat_time_text(working, send_blocked_time) END,
			  pgnetlat_figure_text(bytes_sent / 1e6), pgnetlat_figure_text(bytes_sent / nullif(send_blocked_time, 0) / 1e3)),
	   'Have the client read the whole result before it works on the rows, or ask for fewer of them (LIMIT, a cursor).  Until the result has been read, the statement holds its snapshot.',
	   NULL
  FROM accounts, t
 WHERE send_client_time > 0 AND send_client_time >= t.window_closed * send_blocked_time
   AND send_blocked_time >= t.stream_share * working
   AND bytes_sent * 1000 < t.fast_client * send_blocked_time
