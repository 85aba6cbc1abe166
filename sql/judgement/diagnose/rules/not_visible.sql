
-- Verdict: not visible
-- Precedence: 230
-- Headline: cannot be judged by this role, which may not see other sessions
-- Meaning: the caller may not see all sessions
--
-- Tells a caller who may not see all sessions.
 UNION ALL
SELECT 0, 'not visible', 'note', 'none', 0, NULL,
	   CASE WHEN hidden > 0
			THEN format('%s of %s sessions, and any problems they have, are hidden from %s', hidden, number, current_user)
			ELSE format('Sessions that have ended, and any problems they had, are hidden from %s', current_user) END,
	   format('GRANT pg_read_all_stats TO %I, or run this as a role that has it.', current_user), NULL
  FROM (SELECT count(*) FILTER (WHERE requests IS NULL) AS hidden, count(*) AS number FROM s) x
 WHERE hidden > 0 OR EXISTS (SELECT FROM c WHERE requests IS NULL)
