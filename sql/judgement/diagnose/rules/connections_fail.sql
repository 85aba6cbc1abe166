
-- Verdict: connections fail
-- Precedence: 210
-- Headline: refuses connections
-- Meaning: several connections of a role are refused in a minute. An outage if a role that
--   exists gets no connection at all
--
-- Connections that are refused, by what they ask for.  If a role that exists gets none,
-- nothing of its application works.  Whoever guesses names and passwords is a note.
 UNION ALL
SELECT 0, 'connections fail', (array_agg(how_bad ORDER BY array_position(ARRAY['outage', 'loss', 'note'], how_bad)))[1], 'none', 0, NULL,
	   concat(string_agg(format('%s of %s connections of %s to %s were refused in the last minute%s: %s', failures, failures + succeeded,
								coalesce(pgnetlat_one_line(usename), 'unknown roles'), coalesce(pgnetlat_one_line(datname), 'unknown databases'),
								coalesce(' (from ' || addresses || ')', ''), reason),
						 '.  ' ORDER BY place) FILTER (WHERE place <= t.refused_named), '.',
			  '  ' || nullif(pgnetlat_count_text(count(*) FILTER (WHERE place > t.refused_named), 'more case', 'more cases'), '0 more cases')
			  || ': see pgnetlat_failed_connections.'),
	   (array_agg(cure ORDER BY place))[1] || '  The server''s log has each refusal.', NULL
  FROM (SELECT x.*, succeeded, how_bad, reason, cure, row_number() OVER (ORDER BY array_position(ARRAY['outage', 'loss', 'note'], how_bad), failures DESC, usename, datname) AS place
		  FROM (SELECT datname, usename, last_sqlstate, sum(failed_last_minute)::bigint AS failures,
					   string_agg(DISTINCT host(client_addr), ', ') AS addresses
				  FROM failed
				 WHERE failed_last_minute > 0 AND last_sqlstate IS NOT NULL
				 GROUP BY datname, usename, last_sqlstate) x
		 CROSS JOIN t
		 CROSS JOIN LATERAL (SELECT coalesce(sum(connections), 0)::bigint AS succeeded FROM c
							  WHERE c.usename::text = x.usename AND c.datname::text = x.datname) s
		 CROSS JOIN LATERAL (SELECT CASE WHEN NOT EXISTS (SELECT FROM pg_roles WHERE rolname::text = x.usename) THEN 'note'
										 WHEN succeeded = 0 THEN 'outage'
										 WHEN failures >= succeeded THEN 'loss' ELSE 'note' END AS how_bad) h
		 CROSS JOIN LATERAL (
			SELECT CASE last_sqlstate WHEN '28P01' THEN 'the password is wrong'
					   WHEN '28000' THEN 'no such role, or pg_hba.conf does not let it in'
					   WHEN '3D000' THEN 'no such database'
					   WHEN '42501' THEN 'no CONNECT privilege'
					   WHEN '53300' THEN 'a connection limit is reached'
					   WHEN '55000' THEN 'the database takes no connections'
					   WHEN '57P03' THEN 'the server takes no connections'
					   ELSE 'SQLSTATE ' || last_sqlstate END AS reason,
				   CASE last_sqlstate WHEN '28P01' THEN 'Give the application the role''s password, or set it: ALTER ROLE ... PASSWORD.'
					   WHEN '28000' THEN 'See pg_hba_file_rules, and whether the role exists and may log in.'
					   WHEN '3D000' THEN 'Create the database, or correct what the application connects to.'
					   WHEN '42501' THEN 'Give the role the privilege: GRANT CONNECT ON DATABASE ... TO ...'
					   WHEN '53300' THEN 'See rolconnlimit in pg_roles, datconnlimit in pg_database, and max_connections: end idle sessions, or raise the limit.'
					   WHEN '55000' THEN 'Let the database take connections: ALTER DATABASE ... ALLOW_CONNECTIONS true.'
					   ELSE 'See what has changed on the server.' END AS cure) r
		 CROSS JOIN LATERAL (SELECT last_sqlstate = '53300' AND EXISTS (SELECT FROM held WHERE used_up) AS known) k
		  CROSS JOIN LATERAL (SELECT 1 WHERE failures >= t.failed_logins AND NOT known) l (keep)) f
 CROSS JOIN t
HAVING count(*) > 0
