
-- A session that holds locks for which others wait, or its client group if several do.
-- What the others lost is counted only here.
 UNION ALL
SELECT n, 'blocks others', CASE WHEN w.age >= stopped THEN 'outage' ELSE 'loss' END, 'others', blocking,
	   blocking * avoidable / nullif(avoidable + executing, 0),
	   concat('others waited ', pgnetlat_time_text(blocking), ' for its locks',
			  ', mostly while ' || CASE greatest(client, executing, network, send, recv)
								   WHEN nullif(client, 0) THEN 'its client was thinking'
								   WHEN nullif(executing, 0) THEN 'it was executing'
								   WHEN nullif(network, 0) THEN 'it waited for round trips'
								   WHEN nullif(send, 0) THEN 'it was sending a result'
								   WHEN nullif(recv, 0) THEN 'it waited for data from its client' END,
			  CASE WHEN w.sessions > 0
			  THEN format('; %s now: %s', pgnetlat_count_text(w.sessions, 'session waits', 'sessions wait'), w.names) END,
			  CASE a.state WHEN 'waiting in transaction'
			  THEN format('; idle in transaction for %s', pgnetlat_age(greatest(a.state_age, 50))) END,
			  CASE a.state WHEN 'executing' THEN '; executes ' ELSE '; its last statement: ' END
			  || pgnetlat_query_start(nullif(q.query, ''))),
	   concat('To end it now: SELECT pg_terminate_backend(' ||
			  CASE WHEN w.sessions > 0 OR a.state = 'waiting in transaction' THEN a.pid END || ').  ',
			  CASE WHEN pgnetlat_legible(q.query) ~* '^\s*create\s+(unique\s+)?index\s' OR w.creates_index
				   THEN 'CREATE INDEX CONCURRENTLY does not block writers, nor make them queue behind it.'
				   WHEN client >= greatest(executing, network) AND client > 0
				   THEN 'Have the application commit before it does anything else; idle_in_transaction_session_timeout ends transactions that are forgotten.'
				   WHEN executing >= network AND executing > 0
				   THEN 'EXPLAIN the statement that pgnetlat_blockers shows, and take the lock as late in the transaction as possible.'
				   WHEN network > 0
				   THEN 'Make fewer round trips after the lock has been taken: pipeline, batch, or move the transaction into one statement or function.'
				   ELSE 'Commit as soon as the work is done; pgnetlat_blockers shows after which statements others waited.' END,
			  CASE WHEN w.ddl THEN '  SET lock_timeout before DDL, so that nobody queues behind it for long.' END),
	   NULL
  FROM accounts a
 CROSS JOIN pgnetlat_thresholds
  LEFT JOIN waiting w ON w.blocked_by = a.pid
  LEFT JOIN activity q ON q.pid = a.pid
 CROSS JOIN LATERAL (
	SELECT coalesce(sum(blocked_by_exec_time), 0) AS executing, coalesce(sum(blocked_by_client_time), 0) AS client,
		   coalesce(sum(blocked_by_network_time), 0) AS network, coalesce(sum(blocked_by_send_time), 0) AS send,
		   coalesce(sum(blocked_by_recv_time), 0) AS recv,
		   coalesce(sum(blocked_time - blocked_by_exec_time - blocked_by_other_time), 0) AS avoidable
	  FROM b
	 WHERE b.datid = a.datid AND b.usesysid = a.usesysid AND b.application_name = a.application_name
	   AND b.client_addr IS NOT DISTINCT FROM a.client_addr) held
 WHERE NOT contends
   AND (blocking >= holder_sessions * (SELECT window_time FROM me) OR blocking > 0 AND w.sessions > 0)
