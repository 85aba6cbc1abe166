
-- Verdict: lossy path
-- Precedence: 100
-- Headline: is on a network that loses packets
-- Meaning: 1 % of the packets or more are sent again. If responses are large on average, a full
--   link may be dropping packets; if they are short, the path itself is bad
-- Lost: the extra time of responses and requests
--
-- A path that loses packets, so that responses and requests take longer than a round
-- trip.  A full link drops packets, too.  One client group's figures rule that out only
-- if its responses are, on average, too short to fill a link.
 UNION ALL
SELECT n, 'lossy path', 'loss', 'sending', seen + unseen, seen + unseen,
	   concat(format('%s of %s packets were sent again; responses took %s longer than the path%s', lossy.retransmits, lossy.packets_sent,
					 pgnetlat_time_text(seen), ', requests about ' || pgnetlat_time_text(nullif(unseen, 0))),
			  CASE WHEN large THEN format('; %s MB went at %s MB/s', pgnetlat_figure_text(bytes_sent / 1e6),
										  pgnetlat_figure_text(bytes_sent / nullif(seen + trips_all, 0) / 1e3)) END),
	   CASE WHEN large
			THEN 'Do clients with small results lose packets on this path, too?  If not, large results fill a link, which then drops packets: send less (fewer columns and rows, aggregates), compress, or get more bandwidth.  If they do, have the path examined (cables, duplex, MTU).'
			ELSE 'Have the path examined (cables, duplex, overloaded links, MTU): the retransmits of other client groups show which part of it they share.' END,
	   NULL
  FROM lossy JOIN accounts USING (n)
