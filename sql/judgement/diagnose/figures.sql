
-- The query, without its texts if they are not asked for: pg_stat_statements reads all of
-- its own at each call.  Planning takes as long as running it, so what is called is
-- pgnetlat_diagnose() (findings.sql), which keeps the plan.  For that, this must be what the
-- planner can put in the place of its call: neither STRICT, nor VOLATILE, nor with a setting.
CREATE FUNCTION pgnetlat_findings(duration interval, with_texts boolean)
RETURNS TABLE (
	severity text, subject_kind text, subject text, verdict text, evidence text, advice text,
	lost_sessions double precision, saving_sessions double precision, saving_share double precision,
	pid integer, queryid bigint, usesysid oid, usename name, datid oid, datname name, application_name text, client_addr inet)
LANGUAGE sql STABLE PARALLEL RESTRICTED COST 100000 ROWS 20
BEGIN ATOMIC
WITH
	-- Figures, each read once.  t/PgNetlat/Figures.pm puts tables in their place.
	c AS MATERIALIZED (SELECT * FROM pgnetlat_clients_last(duration)),
	s AS MATERIALIZED (SELECT * FROM pgnetlat_sessions_last(duration)),
	st AS MATERIALIZED (SELECT * FROM pgnetlat_statements_last(duration)),
	p AS MATERIALIZED (SELECT * FROM pgnetlat_pools_last(duration)),
	b AS MATERIALIZED (SELECT * FROM pgnetlat_blockers_last(duration)),
	h AS (SELECT * FROM pgnetlat_histogram()),
	-- (all columns of core's views would have to be in the version to which pg_upgrade leads)
	failed AS MATERIALIZED (SELECT * FROM pgnetlat_failed_connections()),
	standbys AS (SELECT pid, application_name, sync_state FROM pg_stat_replication),
	activity AS MATERIALIZED (
		SELECT pid, datid, usesysid, usename, application_name, backend_type, backend_start, xact_start, query_start, state, wait_event_type,
			   wait_event, query_id, query
		  FROM pg_stat_activity),
	w AS (SELECT * FROM pgnetlat_waits()),
	i AS (SELECT * FROM pgnetlat_info()),
	databases AS (SELECT datid, temp_bytes, deadlocks FROM pg_stat_database),
	-- The thresholds, one column each.
	t AS MATERIALIZED (
		SELECT
@thresholds@
		  FROM (SELECT jsonb_object_agg(name, value) AS v FROM pgnetlat_thresholds) x),
	me AS MATERIALIZED (
		SELECT pg_backend_pid() AS pid, clock_timestamp() AS now,
			   pg_has_role('pg_read_all_stats', 'USAGE') AS sees_all,
			   coalesce((SELECT max(window_time) FROM c), 0) AS window_time),

	-- Statements that the caller may see, of thousands only those that a rule may ask for:
	-- that have cost something, repeat, return many rows, or are the costliest of their role.
	statements AS MATERIALIZED (
		SELECT -row_number() OVER () AS n, x.*, row_number() OVER (PARTITION BY dbid, userid ORDER BY network_time DESC) AS place
		  FROM (SELECT st.dbid, st.userid, st.queryid, calls, rows, st.repeats, repeat_network_time, network_time, client_time, in_xact_wait_time,
					   exec_time + send_time + recv_time + network_time + client_time AS time, role_network
				  FROM st
				  JOIN (SELECT dbid, userid, sum(network_time) AS role_network, max(network_time) AS role_most
						  FROM st WHERE queryid IS NOT NULL GROUP BY 1, 2) roles USING (dbid, userid)
				 CROSS JOIN me
				 CROSS JOIN t
				 WHERE queryid IS NOT NULL AND (sees_all OR pg_has_role(st.userid, 'USAGE'))
				   AND (network_time = nullif(role_most, 0) OR st.repeats >= t.min_requests OR calls > 0 AND rows >= t.loop_rows * calls
						OR exec_time + send_time + recv_time + network_time + client_time >= t.min_lost)) x),
	parents AS MATERIALIZED (
		SELECT dbid, userid, queryid, calls, rows, (network_time + client_time) / nullif(calls, 0) AS wait
		  FROM statements, t
		 WHERE calls > 0 AND rows >= t.loop_rows * calls),

	-- What a role's client groups have in common, by database: read for each statement that repeats.
	roles AS MATERIALIZED (
		SELECT datid AS dbid, usesysid AS userid,
			   sum(round_trips) FILTER (WHERE pooler_addr IS NOT NULL OR pooler_requests > 0) AS named,
			   max(c.network_time) FILTER (WHERE application_name ~ '^pg_(dump|restore)') AS dumped,
			   bool_or(round_trips >= t.chatty_trips * greatest(transactions, 1)) AS chatty
		  FROM c, t
		 GROUP BY 1, 2),

	-- Those that repeat; the statement for whose rows each of the most expensive may be executed.
	often AS MATERIALIZED (
		SELECT st.*, greatest(calls - st.repeats, 1) AS bursts, row_number() OVER (ORDER BY time DESC) AS rank
		  FROM statements st, t WHERE st.repeats >= t.min_requests),
	loops AS MATERIALIZED (
		-- the last of a loop is followed by the client's other work, the parent is not
		SELECT DISTINCT ON (st.n) st.n, p.queryid AS parent, bursts BETWEEN t.loop_least * p.calls AND t.loop_most * p.calls AS in_full,
			   least((st.network_time + st.client_time) / nullif(st.calls, 0), p.wait) AS wait
		  FROM often st
		  JOIN parents p USING (dbid, userid)
		 CROSS JOIN t
		 WHERE st.rank <= t.loops_sought AND st.time >= t.min_lost AND p.queryid <> st.queryid
		   AND st.calls BETWEEN t.loop_least * p.rows AND t.loop_most * p.rows
		 ORDER BY st.n, in_full DESC, abs(p.rows - st.calls), p.queryid),

	-- Statements that clients run one by one (rules/repeated_statement.sql).  "parent" is
	-- the statement for whose rows one is executed.  Through a pooler that does not name
	-- its clients, their single calls follow each other like those of a loop, and many
	-- count as repeats: then there are far more bursts than calls of the parent.
	looped AS MATERIALIZED (
		SELECT st.n, dbid, userid, st.queryid, calls, st.repeats, repeat_network_time, time, trip, driver,
			   parent, server, wait, trip < t.min_rtt AS hidden, wait < t.min_rtt AS pooled,
			   CASE WHEN trip < t.min_rtt THEN st.repeats * (server + wait)
			   ELSE repeat_network_time + st.repeats * driver END AS lost
		  FROM often st
		 CROSS JOIN t
		 CROSS JOIN LATERAL (SELECT repeat_network_time / greatest(st.repeats, 1) AS trip,
									(time - network_time - client_time) / greatest(calls, 1) AS server) x
		 CROSS JOIN LATERAL (SELECT least(greatest(time - repeat_network_time, 0) / greatest(calls, 1),
										  trip, t.driver_time) AS driver) y
		  LEFT JOIN loops USING (n)
		  LEFT JOIN roles USING (dbid, userid)
		 -- Nobody can change what pg_dump asks.
		 WHERE (dumped >= t.dump_share * role_network) IS NOT TRUE
		   -- In a pipeline, nobody waits.  In a transaction pool, the pool has the waits.
		   AND CASE WHEN trip < t.min_rtt THEN wait <= t.driver_time
				AND (in_full AND wait >= t.min_rtt OR calls <= named)
			   ELSE st.repeats >= t.repeats * bursts AND repeat_network_time >= bursts * t.chatty_time
				AND (in_xact_wait_time >= t.loop_in_xact * (repeat_network_time + client_time)
					 OR client_time <= calls * t.repeat_think)
				-- Single calls of other clients are bursts, too.  Two calls in a
				-- transaction are not a loop.
				OR repeat_network_time >= t.repeat_share * role_network
				   AND CASE WHEN in_xact_wait_time < t.repeat_in_xact * repeat_network_time
					   THEN in_full OR st.repeats >= t.repeats * bursts
					   ELSE chatty END END),

	-- An application's pool may give each execution another connection, or run commands of
	-- its own in between, so that nothing repeats.  Then a statement that has much of its
	-- role's network time is executed as often as another one has rows.
	repeated AS MATERIALIZED (
		SELECT *, false AS apart FROM looped
		 UNION ALL
		SELECT n, dbid, userid, st.queryid, calls, further, further * trip, time, trip, driver,
			   parent, server, NULL, false, false, further * (trip + driver), true
		  FROM statements st
		 CROSS JOIN t
		 CROSS JOIN LATERAL (SELECT p.queryid AS parent, st.calls - p.calls AS further
							   FROM parents p
							  WHERE p.dbid = st.dbid AND p.userid = st.userid AND p.queryid <> st.queryid
								AND abs(p.rows - st.calls) <= t.paired_rows * st.calls
							  ORDER BY abs(p.rows - st.calls), p.queryid LIMIT 1) x
		 CROSS JOIN LATERAL (SELECT network_time / nullif(calls, 0) AS trip, (time - network_time - client_time) / nullif(calls, 0) AS server) y
		 CROSS JOIN LATERAL (SELECT least(server, trip, t.driver_time) AS driver) z
		 WHERE st.network_time >= t.repeat_share * role_network AND st.calls >= t.paired_calls
		   AND st.rows >= t.loop_least * st.calls AND st.network_time >= t.min_rtt * st.calls
		   AND NOT EXISTS (SELECT FROM looped l WHERE l.n = st.n)),
	explained AS (
		SELECT dbid, userid, sum(repeat_network_time) AS network, sum(lost - repeat_network_time) AS other
		  FROM repeated GROUP BY dbid, userid),

	-- The latest exchanges of the sessions with the most requests.
	recent AS MATERIALIZED (
		SELECT s.datid, s.usesysid, s.application_name, s.client_addr, r.queryid, r.wait_time, r.xact_status, r.fetched, r.overhead,
			   r.exec_time + r.send_time + r.network_time AS cost
		  FROM (SELECT * FROM s WHERE requests > 0 ORDER BY requests DESC, s.pid LIMIT (SELECT t.recent_sessions::bigint FROM t)) s
		 CROSS JOIN LATERAL pgnetlat_recent(s.pid) r),

	-- Sessions that are waiting for a lock.  Standbys of a leader wait for an advisory lock
	-- by design, from when they connect.  "held_time" is the part of the wait whose holder
	-- has figures that the caller may see.
	waiters AS MATERIALIZED (
		SELECT w.*, CASE WHEN number <= heads_sought THEN pg_blocking_pids(pid) END AS ahead
		  FROM (SELECT s.pid, s.datid, s.blocked_by, x.age, wait_event, pgnetlat_legible(query) AS query,
					   coalesce(nullif(s.application_name, ''), s.usename) AS name,
					   coalesce(wait_event = 'advisory' AND extract(epoch FROM query_start - activity.backend_start) * 1000 < t.leader_standby,
								false) AS by_design,
					   CASE WHEN CASE WHEN blocked_by IN (SELECT v.pid FROM s v)
								 THEN blocked_by IN (SELECT v.pid FROM s v WHERE v.requests IS NOT NULL)
								 ELSE EXISTS (SELECT FROM b WHERE backend_type <> 'client backend' AND blocked_time > 0) END
					   THEN least(x.age, exec_lock_time) END AS held_time,
					   CASE wait_event WHEN 'relation' THEN row_number() OVER (PARTITION BY wait_event ORDER BY x.age DESC) END AS number, t.heads_sought
				  FROM s JOIN activity USING (pid) CROSS JOIN me CROSS JOIN t
				 CROSS JOIN LATERAL (SELECT greatest(extract(epoch FROM now - s.state_change), 0)::float8 * 1000 AS age) x
				 WHERE blocked_by IS NOT NULL) w),

	-- For a table, sessions that could share it with the holder queue behind one that
	-- cannot, mostly DDL: if that one gives up, they go on.
	queues AS (
		SELECT head.blocked_by, count(*) AS heads, min(head.pid) AS pid, min(head.query) AS query,
			   string_agg(format('pg_cancel_backend(%s)', head.pid), ', ' ORDER BY head.pid) AS cancel,
			   (SELECT count(*) FROM waiters w
				 WHERE w.blocked_by = head.blocked_by AND wait_event = 'relation' AND (w.blocked_by = ANY (ahead)) IS NOT TRUE) AS behind
		  FROM waiters head
		 WHERE head.blocked_by = ANY (head.ahead)
		   AND EXISTS (SELECT FROM waiters w
						WHERE w.blocked_by = head.blocked_by AND head.pid = ANY (w.ahead) AND NOT w.blocked_by = ANY (w.ahead))
		 GROUP BY head.blocked_by),

	-- The same by holder; prepared transactions by database.
	waiting AS MATERIALIZED (
		SELECT w.*,
			   concat(pgnetlat_count_text(coalesce(nullif(sessions, 0), standbys), 'session', 'sessions'), CASE apps WHEN 1 THEN ' of ' || name ELSE format(' (%s)', names) END,
					  CASE WHEN sessions > 0 THEN CASE sessions WHEN 1 THEN ' is' ELSE ' are' END || ' blocked now'
					  ELSE CASE standbys WHEN 1 THEN ' has' ELSE ' have' END || ' waited for an advisory lock since connecting' END) AS who,
			   ', ' || behind || concat(' of them behind pid ', q.pid, CASE WHEN heads > 1 THEN ' and others' END,
										': ' || pgnetlat_query_start(nullif(q.query, ''))) AS queue,
			   'To let the ' || CASE behind WHEN 1 THEN 'one' ELSE behind::text END || ' behind it go on now: SELECT ' || cancel || '.  ' AS cure
		  FROM (SELECT blocked_by, CASE blocked_by WHEN 0 THEN datid END AS datid,
					   count(*) FILTER (WHERE NOT by_design)::float8 AS sessions, count(*) FILTER (WHERE by_design)::float8 AS standbys,
					   max(age) FILTER (WHERE NOT by_design) AS age, coalesce(sum(held_time) FILTER (WHERE by_design), 0) AS standby_time,
					   bool_and(wait_event = 'advisory') IS TRUE AS advisory,
					   bool_or(query ~* '^\s*(create|alter|drop|truncate|reindex|cluster|vacuum|lock|refresh)\s') AS ddl,
					   bool_or(query ~* '^\s*create\s+(unique\s+)?index\s+(?!concurrently)') AS creates_index
				  FROM waiters GROUP BY 1, 2) w
		  LEFT JOIN queues q USING (blocked_by)
		 CROSS JOIN LATERAL (
			SELECT count(*) AS apps, min(name) AS name,
				   string_agg(name || ' ' || number, ', ' ORDER BY place) FILTER (WHERE place <= 5) || CASE WHEN count(*) > 5 THEN ', ...' ELSE '' END AS names
			  FROM (SELECT name, count(*) AS number, row_number() OVER (ORDER BY count(*) DESC, name) AS place
					  FROM waiters v
					 WHERE v.blocked_by = w.blocked_by AND (w.datid IS NULL OR v.datid = w.datid) AND v.by_design = (w.sessions = 0)
					 GROUP BY name) x) apps),

	-- Holders that are no client sessions.  Which process it is is known while sessions wait
	-- for it.
	holders AS MATERIALIZED (
		SELECT -1000000000 - row_number() OVER () AS n, h.*, w.blocked_by, nullif(w.blocked_by, 0) AS pid, w.sessions, w.age, w.who, w.queue, w.cure, w.ddl, w.query
		  FROM (SELECT b.datid, min(b.datname) AS datname, backend_type, CASE WHEN min(usesysid) = max(usesysid) THEN min(usesysid) END AS usesysid,
					   sum(blocked_time) AS blocking
				  FROM b
				 WHERE backend_type <> 'client backend' AND blocked_time > 0
				 GROUP BY b.datid, backend_type) h
		  LEFT JOIN LATERAL (
			SELECT waiting.*, pgnetlat_query_start(nullif(a.query, '')) AS query
			  FROM waiting LEFT JOIN activity a ON a.pid = blocked_by
			 WHERE CASE blocked_by WHEN 0 THEN h.backend_type = 'prepared transaction' AND waiting.datid = h.datid
				   ELSE a.backend_type = h.backend_type AND a.datid IS NOT DISTINCT FROM h.datid END
			 ORDER BY sessions DESC, blocked_by LIMIT 1) w ON true),

	-- Of each session's execution, what it slept (VACUUM's cost delay, pg_sleep), which
	-- somebody wants, as a part of other waits, and the part with temporary files.
	waits AS MATERIALIZED (
		SELECT pid, sum(time) FILTER (WHERE wait_event LIKE 'Vacuum%') / max(others) AS sleeping,
			   sum(time) FILTER (WHERE wait_event = 'PgSleep') / max(others) AS asked_to_sleep,
			   sum(time) FILTER (WHERE wait_event LIKE 'BufFile%') / nullif(sum(time), 0) AS spilling
		  FROM (SELECT *, nullif(sum(time) FILTER (WHERE wait_event_type NOT IN ('CPU', 'IO', 'Lock')) OVER (PARTITION BY pid), 0) AS others
				  FROM w WHERE state = 'executing') x
		 GROUP BY pid),

	-- Client groups and sessions.  A group's round trip is the shortest of its sessions',
	-- since a busy session does not make the path longer.
	observed AS (
		SELECT 'client' AS kind, NULL::integer AS pid, datid, datname, usesysid, usename, application_name, client_addr,
			   sessions, ended_sessions, requests, statements, transactions, round_trips, total_time, @parts@, @beside@,
			   rtt, retransmits, packets_sent, packets_received, bytes_sent,
			   bytes_received, coalesce(run_queue_time, 0) AS run_queue_time,
			   coalesce(run_queue_wait_time, 0) AS run_queue_wait_time, @executing@, connections, connect_time,
			   NULL::float8 AS blocking_time, NULL::integer AS blocked_by, NULL::text AS state,
			   NULL::float8 AS state_age, NULL::float8 AS silent, NULL::float8 AS held_time, NULL::float8 AS standby_time,
			   0::float8 AS sleeping, 0::float8 AS asked_to_sleep, 0::float8 AS spilling
		  FROM c, me
		 WHERE (sees_all OR pg_has_role(usesysid, 'USAGE'))
		   -- whoever asks is no finding
		   AND NOT (sessions = 1 AND ended_sessions = 0
					AND EXISTS (SELECT FROM s WHERE s.pid = me.pid AND s.datid = c.datid AND s.usesysid = c.usesysid
								   AND s.application_name = c.application_name AND s.client_addr IS NOT DISTINCT FROM c.client_addr))
		 UNION ALL
		SELECT 'session', s.pid, datid, datname, usesysid, usename, application_name, client_addr,
			   1, 0, requests, statements, transactions, round_trips, total_time, @parts@, @beside@,
			   rtt, retransmits, packets_sent, packets_received, bytes_sent,
			   bytes_received, coalesce(run_queue_time, 0) AS run_queue_time,
			   coalesce(run_queue_wait_time, 0) AS run_queue_wait_time, @executing@, 0, 0,
			   blocking_time, blocked_by, state, extract(epoch FROM now - state_change)::float8 * 1000,
			   extract(epoch FROM now - unanswered_since)::float8 * 1000, held_time, standby_time,
			   exec_other_time * coalesce(waits.sleeping, 0),
			   exec_other_time * coalesce(waits.asked_to_sleep, (SELECT 1 FROM activity WHERE activity.pid = s.pid AND wait_event = 'PgSleep'), 0),
			   exec_time * coalesce(waits.spilling, 0)
		  FROM s
		  LEFT JOIN waits USING (pid)
		  LEFT JOIN (SELECT waiters.pid, held_time FROM waiters) w USING (pid)
		  LEFT JOIN (SELECT waiting.blocked_by AS pid, standby_time FROM waiting) i USING (pid)
		 CROSS JOIN me
		 WHERE s.pid <> me.pid AND requests IS NOT NULL),
	grouped AS (
		SELECT o.*,
			   CASE kind WHEN 'session' THEN o.rtt
				ELSE coalesce(min(o.rtt) FILTER (WHERE kind = 'session') OVER same, o.rtt) END AS path,
			   CASE kind WHEN 'session' THEN coalesce(o.blocking_time, 0)
			   ELSE greatest(sum(o.blocking_time) OVER same, ended.blocking, 0) END AS blocking,
			   coalesce(sum(o.blocking_time) OVER same, max(ended.blocking) OVER same) AS group_blocking,
			   max(o.blocking_time) OVER same AS blocking_most,
			   max(o.state_age) FILTER (WHERE state = 'waiting in transaction') OVER same AS xact_age,
			   CASE kind WHEN 'session' THEN o.blocked_by ELSE min(o.blocked_by) OVER same END AS waits_for,
			   max(o.state_age) FILTER (WHERE state = 'executing') OVER same AS executing_age,
			   CASE kind WHEN 'session' THEN (state = 'waiting in transaction')::integer
			   ELSE count(*) FILTER (WHERE state = 'waiting in transaction') OVER same END AS open_xacts,
			   sum(o.sleeping) OVER same AS group_sleeping, sum(o.asked_to_sleep) OVER same AS group_asked, sum(o.spilling) OVER same AS group_spilling,
			   max(exec_lock_time) FILTER (WHERE kind = 'client') OVER same AS group_lock,
			   CASE kind WHEN 'session' THEN o.held_time ELSE sum(o.held_time) OVER same END AS behind,
			   coalesce(CASE kind WHEN 'session' THEN o.standby_time ELSE sum(o.standby_time) OVER same END, 0) AS standbys_time,
			   greatest(max(network_time / nullif(total_time, 0)) OVER same, 0) AS network_of_life,
			   greatest(max(client_time / nullif(total_time, 0)) OVER same, 0) AS client_of_life,
			   network_time / nullif(sum(network_time) FILTER (WHERE kind = 'client')
									 OVER (PARTITION BY o.datid, o.usesysid), 0) AS share
		  FROM observed o
		  -- all holders, with those that have ended
		  LEFT JOIN (SELECT datid, usesysid, application_name, client_addr, sum(blocked_time) AS blocking
					   FROM b GROUP BY 1, 2, 3, 4) ended
			ON kind = 'client' AND ended.datid = o.datid AND ended.usesysid = o.usesysid
			   AND ended.application_name = o.application_name AND ended.client_addr IS NOT DISTINCT FROM o.client_addr
		 WINDOW same AS (PARTITION BY o.datid, o.usesysid, o.application_name, o.client_addr)),

	-- Each lock wait belongs to its holder's finding.  Sessions of one group contend if they
	-- wait for one another, and none is the holder much more than others: then the group
	-- is the holder.  "lock_open" is the part of a wait whose holder is not known now.
	contention AS (
		SELECT g.*, exec_lock_time - least(exec_lock_time, CASE WHEN contends THEN blocking ELSE coalesce(behind, 0) END) AS lock_open
		  FROM (SELECT grouped.*, (group_blocking > 0 AND coalesce(blocking_most < t.one_holder * group_blocking, true)
								   AND group_blocking >= t.contending * group_lock AND group_lock >= t.contending * group_blocking) IS TRUE AS contends
				  FROM grouped, t) g),

	-- Locks are a database's, and so are their holders.  "unexplained" is the part of all
	-- open waits that no holder's figures have; what is not booked yet of a wait in
	-- progress may still get one.
	locks AS MATERIALIZED (
		SELECT datid, CASE WHEN held + waiting * t.holder_lag < t.locks_explained * waited
					  THEN least((waited - held) / nullif(open, 0), 1) END AS unexplained
		  FROM (SELECT datid, sum(exec_lock_time) FILTER (WHERE kind = 'client') AS waited,
					   sum(lock_open) FILTER (WHERE kind = 'client') AS open,
					   coalesce(sum(blocking) FILTER (WHERE kind = 'client'), 0)
					   + coalesce((SELECT sum(h.blocking) FROM holders h WHERE h.datid = g.datid OR h.datid IS NULL), 0) AS held,
					   count(*) FILTER (WHERE kind = 'session' AND coalesce(blocked_by > 0, pid IN (
							SELECT activity.pid FROM activity WHERE wait_event_type = 'Lock'))) AS waiting
				  FROM contention g GROUP BY datid) x, t),

	-- What the rules read.  "think" is the client's think time in transactions: one wait
	-- comes after each transaction, the others are inside.  Waits outside are not a loss,
	-- since the server cannot tell a client that computes from one that has nothing to
	-- do.
	accounts AS MATERIALIZED (
		SELECT row_number() OVER () AS n, g.*, x.*, y.*,
			   coalesce(e.network * share, 0) AS explained,
			   greatest(trips_all - coalesce(e.network * share, 0), 0) AS trips,
			   greatest(busy - client_time + y.think, 1e-6) AS working,
			   -- a client on this machine may just be waiting for a CPU
			   greatest(y.think - CASE WHEN path >= t.min_rtt THEN 0 ELSE t.starved_client * run_queue_time END
						- coalesce(e.other * share, 0), 0) AS sure_think,
			   greatest(client_time - CASE WHEN path >= t.min_rtt THEN 0 ELSE t.starved_client * run_queue_time END
						- coalesce(e.other * share, 0), 0) AS sure_client,
			   greatest(exec_cpu_time - greatest(run_queue_time - run_queue_wait_time, 0), 0) AS cpu,
			   CASE WHEN contends THEN exec_lock_time - lock_open ELSE 0 END + lock_open * coalesce(unexplained, 0) AS lock_left
		  FROM contention g
		 CROSS JOIN t
		  LEFT JOIN locks USING (datid)
		  LEFT JOIN explained e ON e.dbid = g.datid AND e.userid = g.usesysid AND kind = 'client'
		 CROSS JOIN LATERAL (
			SELECT exec_time + send_time + recv_time + network_time + client_time AS busy,
				   greatest(requests, 1)::float8 AS req, greatest(transactions + open_xacts, 1)::float8 AS xacts,
				   greatest(1 - transactions::float8 / greatest(requests, 1), 0) AS inside) x
		 CROSS JOIN LATERAL (
			SELECT greatest(least(in_xact_wait_time - network_time * inside, client_time), 0) AS think,
				   CASE WHEN path > 0 THEN least(network_time, round_trips * path) ELSE network_time END AS trips_all,
				   CASE WHEN path > 0 THEN greatest(network_time - round_trips * path, 0) ELSE 0 END AS beyond,
				   packets_sent > t.first_window * requests AS large) y),

	-- Waits of groups on this machine that are all alike, in transactions and outside: one
	-- in ten is shorter than "low", one in ten longer than "high".  No application thinks
	-- like that, but a path behind a proxy takes always as long.
	alike AS MATERIALIZED (
		SELECT n, r.in_xact, x[1] AS low, x[2] AS high
		  FROM (SELECT a.n, xact_status <> 'I' AS in_xact,
					   percentile_cont(ARRAY[0.1, 0.9]) WITHIN GROUP (ORDER BY wait_time) AS x
				  FROM accounts a
				  JOIN recent ON recent.datid = a.datid AND recent.usesysid = a.usesysid
					   AND recent.application_name = a.application_name AND recent.client_addr IS NOT DISTINCT FROM a.client_addr
				 CROSS JOIN t
				 WHERE a.kind = 'client' AND path < t.min_rtt AND wait_time > 0
				 GROUP BY a.n, xact_status <> 'I', t.min_requests
				HAVING count(*) >= t.min_requests) r, t
		 WHERE x[1] >= t.proxy_near AND x[2] <= t.proxy_alike * x[1]),

	-- What lost packets cost.  The server does not see the loss of a client's own
	-- packets: as many are assumed to be lost, each for as long, if the client was silent
	-- for that long.
	lossy AS MATERIALIZED (
		SELECT n, retransmits, packets_sent, seen,
			   least(seen * least(packets_received, greatest(requests, bytes_received / 1400.0)) / greatest(packets_sent, 1),
					 client_time) AS unseen
		  FROM (SELECT *, greatest(beyond + send_blocked_time - send_client_time, 0) AS seen FROM accounts) a,
			   t
		 WHERE path > 0 AND retransmits >= t.min_retransmits AND retransmits >= t.loss_rate * packets_sent),

	-- A session that waits in a circle has no holder.  pg_stat_database has no count for the
	-- window, but if nearly all lock waits of a database have holders, deadlocks cost nothing.
	deadlocked AS MATERIALIZED (
		SELECT datid, format('pg_stat_database counts %s since its last reset: if the number is still growing, have all transactions lock rows in the same order; the server''s log has the statements.',
							 pgnetlat_count_text(deadlocks, 'deadlock', 'deadlocks')) AS hint
		  FROM databases d CROSS JOIN t
		 WHERE deadlocks > 0
		   AND (SELECT sum(exec_lock_time) * t.locks_explained FROM c WHERE c.datid = d.datid)
			   > (SELECT coalesce(sum(blocked_time), 0) FROM b WHERE b.datid = d.datid)),

	-- Sessions that have been executing one request for long, and have mostly waited, as far as
	-- is known: not a report that is seen in a short wait.  "wants" is what for.
	stopped_sessions AS MATERIALIZED (
		SELECT s.pid, s.datid, s.usesysid, s.application_name, s.client_addr, activity.wait_event_type, activity.wait_event, age, lost,
			   CASE WHEN wait_event_type = 'Lock' THEN 'lock'
			   WHEN wait_event = 'SyncRep' THEN 'standby'
			   WHEN wait_event_type = 'IO' THEN 'I/O'
			   WHEN exec_remote_time >= t.stopped_waiting * lost THEN 'another server'
			   WHEN wait_event_type IN ('LWLock', 'BufferPin')
					OR wait_event_type = 'IPC' AND wait_event !~ '^(SyncRep|ExecuteGather|Parallel|BgWorker|MessageQueue|Hash|Append|Btree)'
			   THEN 'the server' END AS wants
		  FROM s
		  JOIN activity USING (pid)
		 CROSS JOIN me
		 CROSS JOIN t
		 CROSS JOIN LATERAL (SELECT extract(epoch FROM me.now - s.state_change)::float8 * 1000 AS age) x
		 CROSS JOIN LATERAL (SELECT least(age, s.window_time) AS lost) y
		 WHERE s.state = 'executing' AND age >= t.stopped
		   AND exec_unsampled_time + CASE WHEN wait_event_type = 'Lock' THEN exec_lock_time
										  WHEN wait_event = 'SyncRep' THEN exec_replication_time
										  WHEN wait_event_type = 'IO' THEN exec_io_time
										  ELSE greatest(exec_other_time, exec_remote_time) END >= t.stopped_waiting * lost),

	-- Connections, and who holds them.
	held AS MATERIALIZED (
		SELECT sessions, max_connections, sessions >= max_connections - reserved AS used_up, holders, idle_most
		  FROM (SELECT sum(number)::bigint AS sessions,
					   string_agg(format('%s by %s (%s idle)', number, name, idle), ', ' ORDER BY number DESC, name) FILTER (WHERE place <= 3) AS holders,
					   (array_agg(usename ORDER BY idle DESC, name))[1] AS idle_most
				  FROM (SELECT usename, pgnetlat_one_line(coalesce(nullif(application_name, ''), usename)) AS name, count(*) AS number,
							   count(*) FILTER (WHERE state = 'idle') AS idle, row_number() OVER (ORDER BY count(*) DESC) AS place
						  FROM activity
						 WHERE backend_type = 'client backend'
						 GROUP BY 1, 2) x) y
		 CROSS JOIN (SELECT current_setting('max_connections')::integer AS max_connections,
							current_setting('superuser_reserved_connections')::integer
							+ coalesce(current_setting('reserved_connections', true)::integer, 0) AS reserved) z),

	-- Of each role's costliest statement; read if a rule asks.
	texts AS MATERIALIZED (SELECT * FROM pgnetlat_query_texts(ARRAY(SELECT queryid FROM statements WHERE place = 1))),

	-- What the rules find: how bad it is, the kind of time, so that none is counted twice,
	-- how much of it was lost in the window, and how much the cure would save.
	found (n, verdict, severity, of_time, lost, saving, evidence, advice, queryid) AS (
		SELECT NULL::bigint, NULL::text, NULL::text, NULL::text, NULL::float8, NULL::float8, NULL::text, NULL::text, NULL::bigint
		 WHERE false
