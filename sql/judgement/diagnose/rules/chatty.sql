
-- Verdict: chatty
-- Precedence: 140
-- Headline: makes many round trips for each transaction
-- Meaning: many round trips per transaction, or rows fetched in small portions
-- Lost: the round trips
--
-- Many round trips for a transaction.  Fetching further rows is not extra work, but other
-- statements are: they still take their time when they share a round trip.
 UNION ALL
SELECT n, 'chatty', CASE WHEN is_dump THEN 'note' ELSE 'loss' END, 'trips', lost,
	   CASE WHEN NOT is_dump THEN lost * greatest(1 - t.trips_kept / nullif(xact_trips, 0), 0) END,
	   format('%s per transaction, %s each, %s %s%s', pgnetlat_count_text(xact_trips, 'round trip', 'round trips'),
			  pgnetlat_time_text(path), CASE xact_trips WHEN 1 THEN 'takes' ELSE 'take' END, pgnetlat_time_text(working / xacts, trips / xacts),
			  CASE WHEN fetching THEN '. Most fetch further rows' END),
	   CASE WHEN is_dump THEN 'Run it on or near the server: its statements cannot share round trips.'
			WHEN fetching THEN 'Fetch more rows at a time: raise the fetch size (setFetchSize, itersize, prefetch), or read the result as a whole.'
			ELSE 'Send several statements in each round trip: pipeline or batch them, or put them into one statement or function.  Otherwise, run the application closer to the server.' END,
	   queryid
  FROM (SELECT a.*, top.queryid, trips / nullif(path, 0) / xacts AS xact_trips, f.fetching,
			   application_name ~ '^pg_(dump|restore)' AS is_dump,
			   trips + CASE WHEN f.fetching THEN req * least(greatest(working - trips, 0) / req, path, t.driver_time) ELSE 0 END AS lost
		  FROM accounts a
		 CROSS JOIN t
		  -- each FETCH is a statement of its own
		  LEFT JOIN LATERAL (SELECT st.queryid,
									st.network_time >= t.fetch_share * trips
									AND (EXISTS (SELECT FROM recent r WHERE r.datid = st.dbid AND r.usesysid = st.userid AND r.queryid = st.queryid AND r.fetched > 0)
										 OR (SELECT t.query FROM texts t WHERE (t.userid, t.dbid, t.queryid) = (st.userid, st.dbid, st.queryid)) ~* '^\s*fetch\s') AS is_fetch
							   FROM statements st
							  WHERE st.dbid = a.datid AND st.userid = a.usesysid AND place = 1 AND share > t.top_statement) top ON true
		 CROSS JOIN LATERAL (SELECT round_trips >= t.fetches * greatest(statements, 1) OR is_fetch IS TRUE AS fetching) f
		 WHERE kind = 'client' AND path >= t.min_rtt AND requests >= t.min_requests
		   AND trips >= t.chatty_trips * path * xacts AND trips >= t.chatty_time * xacts
		   AND trips >= t.chatty_share * working) a, t
