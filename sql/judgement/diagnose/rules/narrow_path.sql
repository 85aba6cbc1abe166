
-- Verdict: narrow path
-- Precedence: 110
-- Headline: is on a network that is too narrow for its results
-- Meaning: sending is blocked by the path, which is slow, or large responses take much longer
--   than the path
-- Lost: the time that sending was blocked, and what large responses took beyond the round trip
--
-- A path that limits what is sent over it: sending is blocked, or large responses take
-- much longer than the round trip.
 UNION ALL
SELECT n, 'narrow path', 'loss', 'sending', lost, greatest(lost - bytes_sent * 1000 / t.fast_path, 0),
	   concat(format('The network limited sending for %s. %s MB went at %s MB/s', pgnetlat_time_text(working, lost),
					 pgnetlat_figure_text(bytes_sent / 1e6), pgnetlat_figure_text(bytes_sent / nullif(lost, 0) / 1e3)),
			  CASE WHEN retransmits >= t.min_retransmits
			  THEN format(', and %s of %s packets were sent again', retransmits, packets_sent) END),
	   'Send less (fewer columns and rows, aggregates, COPY in binary), compress on the way, or get a path with more bandwidth.',
	   NULL
  FROM (SELECT accounts.*, send_blocked_time - send_client_time AS blocked,
			   send_blocked_time - send_client_time + CASE WHEN send_blocked_time > send_client_time OR large AND beyond >= t.chatty_time * req
												   THEN beyond ELSE 0 END AS lost
		  FROM accounts, t) a, t
 WHERE path > 0 AND send_client_time < t.window_closed * send_blocked_time + 1e-6 AND lost > 0 AND lost >= t.stream_share * working
   AND bytes_sent * 1000 < t.fast_path * lost
