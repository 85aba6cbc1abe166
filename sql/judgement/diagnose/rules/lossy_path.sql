
-- Verdict: lossy path
-- Precedence: 100
-- Headline: is on a network that loses packets
-- Meaning: a notable part of the packets is sent again. If responses are large on average, a
--   full link may be dropping packets; if they are short, the path itself is bad
-- Lost: the extra time of responses and requests
--
-- A path that loses packets, so that responses and requests take longer than a round
-- trip.  A full link drops packets, too.  One client group's figures rule that out only
-- if its responses are, on average, too short to fill a link.
 UNION ALL
SELECT n, 'lossy path', 'loss', 'sending', seen + unseen, seen + unseen,
	   format('%s of %s packets%s were sent again. Responses took %s longer than the round trips%s', lossy.retransmits, lossy.packets_sent,
			  CASE WHEN large THEN format(' (%s MB at %s MB/s)', pgnetlat_figure_text(bytes_sent / 1e6),
										  pgnetlat_figure_text(bytes_sent / nullif(seen + trips_all, 0) / 1e3)) END,
			  pgnetlat_time_text(seen), ', and requests about ' || pgnetlat_time_text(nullif(unseen, 0))),
	   CASE WHEN large
			THEN 'Check whether clients with small results lose packets on this path, too.  If not, large results fill a link, which then drops packets: send less (fewer columns and rows, aggregates), compress, or get more bandwidth.  If they do, have the path examined (cables, duplex, MTU).'
			ELSE 'Have the path examined (cables, duplex, overloaded links, MTU): the retransmits of other client groups show which part of the path is bad.' END,
	   NULL
  FROM lossy JOIN accounts USING (n)
