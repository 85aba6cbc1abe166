
-- Tells a caller who may not see all sessions.
 UNION ALL
SELECT 0, 'not visible', 'none', 0, NULL,
	   format('%s of %s sessions are hidden from %s, and what is wrong with them', count(*) FILTER (WHERE requests IS NULL), count(*), current_user),
	   format('GRANT pg_read_all_stats TO %I, or ask as a role that has it.', current_user), NULL
  FROM s HAVING count(*) FILTER (WHERE requests IS NULL) > 0
