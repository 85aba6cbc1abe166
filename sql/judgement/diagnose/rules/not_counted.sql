
-- Verdict: not counted
-- Precedence: 240
-- Headline: has sessions that are not counted
-- Meaning: many of the sessions connected before sessions loaded the library
--
-- Where sessions load the library, those of before it was set are not counted.
 UNION ALL
SELECT 0, 'not counted', 'note', 'none', 0, NULL,
	   format('%s of %s sessions connected before pgnetlat was loaded', client_sessions - counted_sessions, client_sessions),
	   'They are counted when they connect again: restart the application, or its pool.', NULL
  FROM i, t
 WHERE counted_sessions <= (1 - t.not_counted) * client_sessions
