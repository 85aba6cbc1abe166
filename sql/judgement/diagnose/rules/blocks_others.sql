
-- Verdict: blocks others
-- Precedence: 10
-- Headline: holds locks that others wait for
-- Meaning: others wait for its locks. The finding names the session, prepared transaction or
--   worker at the head of the lock queue, and the command that ends it
-- Lost: their wait
--
-- A session that holds locks for which others wait, or its client group if several do.
-- What the others lost is counted only here.
 UNION ALL
SELECT n, 'blocks others',
	   CASE WHEN w.age >= t.stopped THEN 'outage' WHEN by_design THEN 'note' ELSE 'loss' END, 'others', lost,
	   CASE WHEN NOT by_design THEN lost * avoidable / nullif(avoidable + executing, 0) END,
	   CASE WHEN w.sessions > 0 OR by_design
			THEN concat(w.who, ' (', pgnetlat_time_text(lost), CASE WHEN NOT by_design THEN ' lost' END, ' so far)', w.queue, '. Holder: ', doing,
						'; mostly ' || CASE most WHEN client THEN 'its client was thinking' WHEN executing THEN 'it was executing'
									   WHEN network THEN 'it waited for round trips' WHEN send THEN 'it was sending a result'
									   WHEN recv THEN 'it was waiting for data' END)
			ELSE concat('Others waited ', pgnetlat_time_text(lost), ' for its locks',
						', mostly while ' || CASE most WHEN client THEN 'its client was thinking' WHEN executing THEN 'it was executing'
											 WHEN network THEN 'it waited for round trips' WHEN send THEN 'it was sending a result'
											 WHEN recv THEN 'it waited for data from its client' END,
						'. Now it is ' || doing) END,
	   concat(w.cure,
			  CASE WHEN w.cure IS NULL THEN 'To end it now: ' ELSE 'To end the holder instead: ' END ||
			  'SELECT pg_terminate_backend(' || CASE WHEN w.sessions > 0 OR a.state = 'waiting in transaction' AND NOT by_design THEN a.pid END || ').  ',
			  CASE WHEN by_design
				   THEN 'Nothing is wrong if they wait by design, as standbys of a leader do.  If the holder has forgotten the lock, its session must call pg_advisory_unlock(), or end.'
				   WHEN w.advisory AND a.state <> 'waiting in transaction'
				   THEN 'Call pg_advisory_unlock(), or take the lock with pg_advisory_xact_lock(): that of pg_advisory_lock() outlives the transaction and, in a pool, the request.'
				   WHEN pgnetlat_legible(q.query) ~* '^\s*create\s+(unique\s+)?index\s' OR w.creates_index
				   THEN 'Use CREATE INDEX CONCURRENTLY: it neither blocks writers nor makes them queue behind it.'
				   WHEN most = send
				   THEN 'Have its client read the result faster, or export from a standby: the client reads slowly, and the locks are held meanwhile.'
				   WHEN most = recv
				   THEN 'Have the data ready before COPY begins, or load a table that nobody else uses yet: COPY waits for its client, and the locks are held meanwhile.'
				   WHEN client >= greatest(executing, network) AND client > 0
				   THEN 'Have the application commit before it does anything else.  Set idle_in_transaction_session_timeout to end forgotten transactions.'
				   WHEN executing >= network AND executing > 0
				   THEN 'EXPLAIN the statement that pgnetlat_blockers shows, and take the lock as late in the transaction as possible.'
				   WHEN network > 0
				   THEN 'Make fewer round trips after the lock has been taken: pipeline, batch, or move the transaction into one statement or function.'
				   ELSE 'Commit as soon as the work is done: pgnetlat_blockers shows after which statements others waited.' END,
			  CASE WHEN w.ddl THEN '  SET lock_timeout before DDL, so that others do not queue behind it for long.' END),
	   NULL
  FROM accounts a
 CROSS JOIN t
  LEFT JOIN waiting w ON w.blocked_by = a.pid
  LEFT JOIN activity q ON q.pid = a.pid
 CROSS JOIN me
 CROSS JOIN LATERAL (
	SELECT coalesce(sum(blocked_by_exec_time), 0) AS executing, coalesce(sum(blocked_by_client_time), 0) AS client,
		   coalesce(sum(blocked_by_network_time), 0) AS network, coalesce(sum(blocked_by_send_time), 0) AS send,
		   coalesce(sum(blocked_by_recv_time), 0) AS recv,
		   coalesce(sum(blocked_time - blocked_by_exec_time - blocked_by_other_time), 0) AS avoidable
	  FROM b
	 WHERE b.datid = a.datid AND b.usesysid = a.usesysid AND b.application_name = a.application_name
	   AND b.client_addr IS NOT DISTINCT FROM a.client_addr) held
 CROSS JOIN LATERAL (
	SELECT nullif(greatest(client, executing, network, send, recv), 0) AS most,
		   greatest(blocking - standbys_time, 0) AS rest) x
 -- standbys alone are worth knowing, and do not count beside sessions that are stopped
 CROSS JOIN LATERAL (
	SELECT coalesce(w.standbys > 0 AND w.sessions = 0 AND rest < t.holder_sessions * me.window_time, false) AS by_design) y
 CROSS JOIN LATERAL (
	SELECT CASE WHEN by_design THEN blocking ELSE rest END AS lost,
		   CASE a.state WHEN 'waiting in transaction' THEN 'idle in transaction' WHEN 'waiting' THEN 'idle outside a transaction'
						WHEN 'idle' THEN 'idle outside a transaction' WHEN 'receiving' THEN 'waiting for data' ELSE a.state END
		   || coalesce(' for ' || nullif(pgnetlat_age(a.state_age), ''), '')
		   || coalesce(CASE WHEN a.state IN ('executing', 'sending', 'receiving') THEN ': ' ELSE ' since ' END
					   || rtrim(pgnetlat_query_start(nullif(q.query, '')), ';'), '') AS doing) z
 WHERE NOT contends
   AND (lost >= t.holder_sessions * me.window_time OR lost > 0 AND (w.sessions > 0 OR by_design))

-- Prepared transactions, autovacuum workers, and other holders that are no client
-- sessions.
 UNION ALL
SELECT n, 'blocks others', CASE WHEN h.age >= t.stopped THEN 'outage' ELSE 'loss' END, 'others', blocking, NULL,
	   CASE WHEN h.sessions > 0
			THEN concat(who, ' (', pgnetlat_time_text(blocking), ' lost so far)', queue, '. Holder: ', coalesce(p.oldest, h.query, 'what it is doing is not known'))
			ELSE concat('Others waited ', pgnetlat_time_text(blocking), ' for its locks') END,
	   concat(cure,
			  CASE backend_type
			  WHEN 'prepared transaction'
			  THEN concat('To end it now: COMMIT PREPARED ' || p.name || ' or ROLLBACK PREPARED ' || p.name || '.  ',
						  'Have the transaction manager end the prepared transactions that it has forgotten: pg_prepared_xacts lists all of them.')
			  WHEN 'autovacuum worker'
			  THEN concat('To end it for now: SELECT pg_cancel_backend(' || h.pid || ').  ',
						  'It gives way by itself after deadlock_timeout, unless it prevents wraparound: then let it finish, with autovacuum_vacuum_cost_delay = 0 if it is slow.')
			  WHEN 'startup'
			  THEN 'Look on the primary for the transaction that took the lock: the startup process holds it until that transaction ends.'
			  ELSE concat('To end it now: SELECT pg_terminate_backend(' || h.pid || ').  ', 'pg_stat_activity shows what it is doing.') END,
			  CASE WHEN ddl THEN '  SET lock_timeout before DDL, so that others do not queue behind it for long.' END),
	   NULL
  FROM holders h
 CROSS JOIN t
 CROSS JOIN me
  LEFT JOIN LATERAL pgnetlat_prepared_text(h.datname, me.now) p ON h.blocked_by = 0
 WHERE blocking >= t.holder_sessions * me.window_time OR h.sessions > 0
