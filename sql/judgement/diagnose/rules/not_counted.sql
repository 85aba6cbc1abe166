
-- Where sessions load the library, those of before it was set are not counted.
 UNION ALL
SELECT 0, 'not counted', 'note', 'none', 0, NULL,
	   format('%s of %s sessions connected before pgnetlat was loaded', client_sessions - counted_sessions, client_sessions),
	   'They are counted when they connect again: restart the application, or its pool.', NULL
  FROM i
 WHERE counted_sessions <= 0.9 * client_sessions
