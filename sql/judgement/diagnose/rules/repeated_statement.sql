
-- Verdict: repeated statement
-- Precedence: 90
-- Headline: runs again and again, a round trip for each row, where one statement would do
-- Meaning: one statement is executed for each row of another one, or in a loop: an N+1. The
--   evidence names the applications that have just executed it
-- Lost: the round trips, and the time of client and server for each; behind a pooler, the waits
--   that the server sees, and its own time
--
-- A statement that its client runs one by one, for each row of another one or in a loop.
-- Where the round trip ends at a pooler on the server's host, the way beyond is part of
-- the waits, and so is the client's own work: what is saved is not known.
 UNION ALL
SELECT n, 'repeated statement', 'loss', 'trips', lost, CASE WHEN NOT hidden THEN lost END,
	   concat(CASE WHEN hidden
			THEN format('%s of %s executions%s repeat an earlier one, for the rows of statement %s. Each costs %s of server and %s, in all %s',
						repeats, calls, ' by ' || applications, parent, pgnetlat_time_text(server),
						CASE WHEN pooled THEN 'a wait of the pool'
						ELSE pgnetlat_time_text(wait) || ' of waiting for the client or its pooler' END, pgnetlat_time_text(time, lost))
			ELSE format('%s of %s executions%s %s. Each costs %s of round trip and %s of server and driver, in all %s', repeats, calls, ' by ' || applications,
						CASE WHEN apart THEN format('could be part of statement %s, which has as many rows', parent)
						ELSE 'repeat an earlier one of the same burst' END,
						pgnetlat_time_text(trip), pgnetlat_time_text(driver), pgnetlat_time_text(time, lost)) END),
	   CASE queryid
	   WHEN 6000294846852582725 -- SET application_name
	   THEN 'If a tracer sets application_name, let it put its context into a comment of each statement instead: that takes no round trip.'
	   ELSE 'Ask for all rows at once: a JOIN, = ANY(array), or eager loading in an ORM.  For writes: COPY, many rows in one INSERT (reWriteBatchedInserts, executemany), or a pipeline.'
	   END,
	   queryid
  FROM (SELECT * FROM repeated ORDER BY lost DESC, n LIMIT (SELECT t.repeated_shown FROM t)) r
 -- Who has just executed it; else the group with nearly all round trips of the role.
 CROSS JOIN LATERAL (
	SELECT coalesce((SELECT string_agg(DISTINCT coalesce(nullif(application_name, ''), 'sessions without a name'), ', ')
					   FROM recent WHERE datid = dbid AND usesysid = userid AND recent.queryid = r.queryid),
					(SELECT min(nullif(application_name, ''))
					   FROM accounts WHERE kind = 'client' AND datid = dbid AND usesysid = userid AND share >= t.one_session)) AS applications
	  FROM t) a
