
-- Verdict: not counted
-- Precedence: 240
-- Headline: has sessions that are not counted
-- Meaning: many of the sessions have not loaded the library
--
-- Where sessions load the library, those of before it was set, and those for which it is not
-- set, are not counted.
 UNION ALL
SELECT 0, 'not counted', 'note', 'none', 0, NULL,
	   format('%s of %s sessions have not loaded pgnetlat', client_sessions - counted_sessions, client_sessions),
	   'Restart the application, or its pool: sessions are counted when they connect again, if session_preload_libraries is set for them.', NULL
  FROM i, t
 WHERE counted_sessions <= (1 - t.not_counted) * client_sessions
