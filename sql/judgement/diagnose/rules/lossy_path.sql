
-- A path that loses packets, so that responses and requests take longer than a round
-- trip.
 UNION ALL
SELECT n, 'lossy path', 'sending', seen + unseen, seen + unseen,
	   format('%s of %s packets were sent again; responses took %s longer than the path%s', lossy.retransmits, lossy.packets_sent,
			  pgnetlat_time_text(seen), ', requests about ' || pgnetlat_time_text(nullif(unseen, 0))),
	   'Have the path examined (cables, duplex, overloaded links, MTU): retransmits of other client groups tell which part of it they share.' ||
	   CASE WHEN send_blocked_time > send_client_time THEN '  A slow link drops what large results queue up before it: send less (fewer columns and rows, aggregates), or compress.' ELSE '' END,
	   NULL
  FROM lossy JOIN accounts USING (n)
