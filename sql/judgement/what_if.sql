
-- ---------------------------------------------------------------------------
-- Predictions
-- ---------------------------------------------------------------------------

-- The model: what a mean transaction would take, in seven steps.  doc/diagnose.md has
-- the same formula for people, and report/model.js computes it on the page of
-- pgnetlat_report(), with the same names; test/report compares them.
--
-- Where the account leaves a time open, there are three answers: the likely one, and the
-- shortest and the longest, which give the bounds.  The constants:
--
--		warm, colder, warm_wait		a turn of server and client takes 0.035 + 0.08 *
--						log10(1 + wait / 0.25) ms: 0.075, 0.146 and 0.214 ms were measured
--						with one client at round trips of 0.5, 5 and 50 ms, since caches
--						are colder, and CPUs asleep, after a longer wait
--		doubt			this may make no difference, or six times as much: with many
--						clients, or on a busy machine
--		wakeup			what a round trip takes of a CPU to wake up and to read the
--						request, which the account has as the client's time: 0.01 ms with
--						64 clients, 0.02 to 0.05 with a few, by the kernel's account
--		client_turn		what a client on the server's host takes of a CPU for a round
--						trip, at most
--		margin			the bounds are so much wider if the time, or the number of
--						sessions, changes by a factor of e or more; by less in proportion
--						to the logarithm
CREATE FUNCTION pgnetlat_bound(
	IN bound text,
	IN likely double precision,
	IN one double precision,
	IN other double precision)
RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
	SELECT CASE bound WHEN 'slow' THEN greatest(one, other) WHEN 'fast' THEN least(one, other) ELSE likely END;
END;

COMMENT ON FUNCTION pgnetlat_bound IS
	'which value pgnetlat_predict() uses for a time that the account leaves open between two: the likely one, the longer, or the shorter';

CREATE FUNCTION pgnetlat_predict(
	IN transaction_time double precision,
	IN busy_sessions double precision,
	IN processors double precision,
	IN statements double precision,
	IN round_trips double precision,
	IN rtt double precision DEFAULT 0,
	IN network_time double precision DEFAULT 0,
	IN stream_time double precision DEFAULT 0,
	IN client_time double precision DEFAULT 0,
	IN in_xact_wait_time double precision DEFAULT 0,
	IN cpu_time double precision DEFAULT 0,
	IN io_time double precision DEFAULT 0,
	IN other_time double precision DEFAULT 0,
	IN lock_time double precision DEFAULT 0,
	IN queue_time double precision DEFAULT 0,
	IN new_rtt double precision DEFAULT NULL,
	IN new_batch double precision DEFAULT NULL,
	IN new_speed double precision DEFAULT NULL,
	IN new_sessions double precision DEFAULT NULL,
	OUT predicted_time double precision,
	OUT throughput double precision,
	OUT throughput_low double precision,
	OUT throughput_high double precision)
RETURNS SETOF record
LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 1
BEGIN ATOMIC
	SELECT 1000 * asked.to_sessions / nullif(p.likely, 0),
		   p.likely,
		   least(p.low, p.likely) * (1 - c.margin * least(p.change, 1)),
		   greatest(p.high, p.likely) * (1 + c.margin * least(p.change, 1))
	  FROM (VALUES (0.035, 0.08, 0.25, 6, 0.03, 0.1, 0.05)) c(warm, colder, warm_wait, doubt, wakeup, client_turn, margin)
		   -- what is asked for: a transaction takes whole round trips, unless it is one
		   -- statement and several share a round trip
		  CROSS JOIN LATERAL (SELECT coalesce(new_rtt, rtt, 0) AS to_rtt,
						   coalesce(new_speed, 1) AS to_speed,
						   coalesce(new_sessions, busy_sessions) AS to_sessions,
						   CASE WHEN new_batch > 1
								THEN least(round_trips, CASE WHEN round_trips < 1.5 THEN statements / new_batch
															 ELSE ceil(statements / new_batch - 1e-9) END)
								ELSE round_trips END AS to_trips
					 WHERE transaction_time > 0 AND busy_sessions > 0
					   AND (new_rtt IS NULL OR (new_rtt >= 0 AND new_rtt <= 60000 AND rtt IS NOT NULL))
					   AND (new_batch IS NULL OR (new_batch >= 1 AND new_batch <= 1000000 AND (new_batch = 1 OR statements > 0)))
					   AND (new_speed IS NULL OR (new_speed >= 0.001 AND new_speed <= 1000))
					   AND (new_sessions IS NULL OR (new_sessions >= 1 AND new_sessions <= 262143))
					OFFSET 0) asked
		   -- what is known; elsewhere_time: waits for standbys, other servers and the like
		  CROSS JOIN LATERAL (SELECT coalesce(rtt, 0) AS from_rtt,
						   network_time - stream_time AS trip_time,
						   coalesce(client_time / nullif(round_trips, 0), 0) AS think_time,
						   transaction_time - network_time - client_time - cpu_time - io_time -
						   lock_time - queue_time AS elsewhere_time
					OFFSET 0) today
		  CROSS JOIN LATERAL (
	SELECT max(result.throughput) FILTER (WHERE bound = 'likely') AS likely,
		   max(result.throughput) FILTER (WHERE bound = 'slow') AS low,
		   max(result.throughput) FILTER (WHERE bound = 'fast') AS high,
		   greatest(abs(ln(nullif(max(result.time) FILTER (WHERE bound = 'likely'), 0) / nullif(transaction_time, 0))),
					abs(ln(nullif(asked.to_sessions, 0) / nullif(busy_sessions, 0)))) AS change
	  FROM (VALUES ('likely'), ('slow'), ('fast')) b(bound)
		   -- 1. Round trips at their new length.  What large responses take beyond them is a
		   -- window's worth per round trip, or depends on the bandwidth; the former is likely
		   -- if it is a round trip or more.  At best, the client's time was the path's, too.
		  CROSS JOIN LATERAL (SELECT greatest(today.trip_time - round_trips * today.from_rtt, 0) +
						   asked.to_trips * asked.to_rtt AS new_trip_time,
						   coalesce(asked.to_rtt / nullif(today.from_rtt, 0), 1) AS longer
					OFFSET 0) path
		  CROSS JOIN LATERAL (SELECT stream_time * pgnetlat_bound(bound, CASE WHEN stream_time >= today.from_rtt THEN path.longer ELSE 1 END,
														path.longer, 1) AS new_stream_time,
						   client_time * CASE WHEN bound = 'fast' AND stream_time >= today.from_rtt / 2
											  THEN least(path.longer, 1) ELSE 1 END AS new_client_time
					OFFSET 0) large
		   -- 2. What turns of server and client take longer, as there are more or fewer of them,
		   -- after longer or shorter waits.
		  CROSS JOIN LATERAL (SELECT asked.to_trips * (c.warm + c.colder * log(1 + (asked.to_rtt + today.think_time) / c.warm_wait)) -
						   round_trips * (c.warm + c.colder * log(1 + (today.from_rtt + today.think_time) / c.warm_wait))
						   AS longer
					OFFSET 0) turn
		  CROSS JOIN LATERAL (SELECT greatest(pgnetlat_bound(bound, turn.longer, turn.longer * c.doubt, 0),
									-0.95 * (cpu_time + large.new_client_time)) AS longer,
						   pgnetlat_bound(bound, today.elsewhere_time, today.elsewhere_time,
										  today.elsewhere_time / asked.to_speed) AS new_elsewhere_time
					OFFSET 0) turns
		   -- 3. A transaction alone, which waits for no other session.
		  CROSS JOIN LATERAL (SELECT path.new_trip_time + large.new_stream_time + large.new_client_time + turns.longer +
						   (cpu_time + io_time) / asked.to_speed + turns.new_elsewhere_time AS time
					OFFSET 0) alone
		   -- 4. For how long it holds locks: the waits in it, of whose round trips the one after
		   -- the last request is none, and the work of the server.
		  CROSS JOIN LATERAL (SELECT today.trip_time * greatest(1 - 1 / nullif(round_trips, 0), 0) AS today,
						   path.new_trip_time * greatest(1 - 1 / nullif(asked.to_trips, 0), 0) AS new
					OFFSET 0) inside
		  CROSS JOIN LATERAL (SELECT in_xact_wait_time + cpu_time + io_time + queue_time +
						   greatest(today.elsewhere_time - other_time, 0) AS today,
						   in_xact_wait_time +
						   least(in_xact_wait_time / nullif(inside.today, 0), 1) * (inside.new - inside.today) +
						   turns.longer * greatest(1 - 1 / nullif(asked.to_trips, 0), 0) +
						   (cpu_time + io_time + queue_time) / asked.to_speed +
						   greatest(turns.new_elsewhere_time - other_time, 0) AS new
					OFFSET 0) hold
		  CROSS JOIN LATERAL (SELECT coalesce(greatest(hold.new, 0) / nullif(hold.today, 0), 1) AS longer OFFSET 0) held
		  CROSS JOIN LATERAL (SELECT lock_time * pgnetlat_bound(bound, held.longer, held.longer, 1) AS new_lock_time,
						   queue_time / asked.to_speed AS new_queue_time
					OFFSET 0) each
		   -- 5. Waits for others take longer with what these do, with their number, and if they
		   -- are there more often: at most as often as today, since that is what was measured.
		  CROSS JOIN LATERAL (SELECT transaction_time / nullif(alone.time + each.new_lock_time + each.new_queue_time, 0) AS often,
						   CASE WHEN bound <> 'fast' OR asked.to_sessions = busy_sessions THEN asked.to_sessions / nullif(busy_sessions, 0)
								WHEN asked.to_sessions > busy_sessions THEN 1
								ELSE 0 END AS many
					OFFSET 0) meet
		  CROSS JOIN LATERAL (SELECT meet.many * (each.new_lock_time * least(meet.often * each.new_lock_time / nullif(lock_time, 0), 1) +
										each.new_queue_time * least(meet.often / asked.to_speed, 1)) AS time
					OFFSET 0) waits
		   -- 6. All sessions' turns on the CPUs, one after the other.  They gain nothing from shorter
		   -- waits, and today they take no longer than a transaction.  At worst, what was taken for
		   -- waiting for a CPU, up to four fifths of the work, was work, clients have their turns
		   -- there, too, and additional sessions wait for each other.
		  CROSS JOIN LATERAL (SELECT cpu_time + CASE bound WHEN 'slow' THEN least(queue_time, 4 * cpu_time) ELSE 0 END AS work,
						   CASE bound WHEN 'fast' THEN 0 ELSE c.wakeup END AS wakeup,
						   CASE bound WHEN 'slow' THEN least(client_time, round_trips * c.client_turn) ELSE 0 END AS client
					OFFSET 0) beside
		  CROSS JOIN LATERAL (SELECT busy_sessions / nullif(processors, 0) * (beside.work + round_trips * beside.wakeup + beside.client) AS today,
						   asked.to_sessions / nullif(processors, 0) *
						   ((beside.work + asked.to_trips * beside.wakeup) / asked.to_speed + beside.client) AS new
					OFFSET 0) processor
		  CROSS JOIN LATERAL (SELECT processor.new * least(transaction_time / nullif(processor.today, 0), 1) AS time OFFSET 0) busy
		   -- 7. The longer of both.
		  CROSS JOIN LATERAL (SELECT greatest(alone.time + waits.time, busy.time, 0) +
						   CASE bound WHEN 'slow' THEN greatest(1 - busy_sessions / nullif(asked.to_sessions, 0), 0) * busy.time
										ELSE 0 END AS time
					OFFSET 0) total
		  CROSS JOIN LATERAL (SELECT total.time, 1000 * asked.to_sessions / nullif(total.time, 0) AS throughput) result) p;
END;

COMMENT ON FUNCTION pgnetlat_predict IS
	'the model of pgnetlat_what_if(), for a mean transaction in milliseconds; no row if an argument is out of range or a figure is not known';

-- What a mean transaction took (a mean request, if no transaction has ended), for each
-- client group or for one session.  Execution that was not sampled is split like sampled
-- execution if that is at least a tenth, and counts as work on a processor otherwise.  A
-- group could use the processors that the others leave free, on average.
CREATE FUNCTION pgnetlat_mean_transactions(
	IN pid integer,
	IN duration interval,
	OUT datid oid,
	OUT datname name,
	OUT usesysid oid,
	OUT usename name,
	OUT application_name text,
	OUT client_addr inet,
	OUT transactions bigint,
	OUT requests bigint,
	OUT counted bigint,
	OUT busy_sessions double precision,
	OUT processors double precision,
	OUT transaction_time double precision,
	OUT statements double precision,
	OUT round_trips double precision,
	OUT rtt double precision,
	OUT server_time double precision,
	OUT network_time double precision,
	OUT client_time double precision,
	OUT stream_time double precision,
	OUT in_xact_wait_time double precision,
	OUT cpu_time double precision,
	OUT io_time double precision,
	OUT other_time double precision,
	OUT lock_time double precision,
	OUT queue_time double precision)
RETURNS SETOF record
LANGUAGE sql VOLATILE PARALLEL RESTRICTED COST 1000 ROWS 100
BEGIN ATOMIC
	SELECT a.datid, a.datname, a.usesysid, a.usename, a.application_name, a.client_addr,
		   a.transactions, a.requests, n.counted,
		   CASE WHEN n.counted > 0 THEN a.busy_time / nullif(a.window_time, 0) END,
		   greatest(i.processors - (sum(w.work - w.queued) OVER () - (w.work - w.queued)) / nullif(a.window_time, 0),
					i.processors / 20),
		   a.busy_time / nullif(n.counted, 0),
		   a.statements / nullif(n.counted, 0)::double precision,
		   t.paid / nullif(n.counted, 0),
		   -- no round trip on a Unix-domain socket; NULL if not known
		   CASE WHEN a.client_addr IS NULL AND a.packets_received = 0 THEN coalesce(t.rtt, 0) ELSE t.rtt END,
		   (a.exec_time + a.send_time - a.send_blocked_time + a.run_queue_wait_time) / nullif(n.counted, 0),
		   (a.network_time + a.send_blocked_time - a.send_client_time) / nullif(n.counted, 0),
		   greatest(a.client_time - a.run_queue_wait_time + a.recv_time + a.send_client_time, 0) / nullif(n.counted, 0),
		   -- a small response has left by the time the backend begins to wait
		   (a.send_blocked_time - a.send_client_time +
			CASE WHEN a.bytes_sent >= 14000 * t.paid
				 THEN greatest(a.network_time - t.paid * t.rtt, 0) ELSE 0 END) / nullif(n.counted, 0),
		   a.in_xact_wait_time / nullif(n.counted, 0),
		   (w.work - w.queued) / nullif(n.counted, 0),
		   a.exec_io_time * e.factor / nullif(n.counted, 0),
		   a.exec_other_time * e.factor / nullif(n.counted, 0),
		   a.exec_lock_time * e.factor / nullif(n.counted, 0),
		   (a.run_queue_wait_time + w.queued) / nullif(n.counted, 0)
	  FROM (SELECT c.datid, c.datname, c.usesysid, c.usename, c.application_name, c.client_addr, c.window_time,
				   c.transactions, c.requests, c.statements, c.round_trips, c.rtt, c.bytes_sent, c.packets_received,
				   greatest(c.total_time - c.idle_time - c.pending_time, 0) AS busy_time, c.idle_time,
				   @c.parts@, @c.beside@, c.run_queue_time, c.run_queue_wait_time,
				   c.exec_cpu_time, c.exec_io_time, c.exec_lock_time, c.exec_other_time, c.exec_unsampled_time
			  FROM pgnetlat_clients_last(pgnetlat_mean_transactions.duration) c
			 WHERE pgnetlat_mean_transactions.pid IS NULL
			 UNION ALL
			SELECT s.datid, s.datname, s.usesysid, s.usename, s.application_name, s.client_addr, s.window_time,
				   s.transactions, s.requests, s.statements, s.round_trips, s.rtt, s.bytes_sent,
				   CASE s.transport WHEN 'unix' THEN 0 ELSE 1 END,
				   greatest(s.total_time - s.idle_time - s.pending_time, 0), s.idle_time,
				   @s.parts@, @s.beside@, coalesce(s.run_queue_time, 0),
				   coalesce(s.run_queue_wait_time, 0),
				   s.exec_cpu_time, s.exec_io_time, s.exec_lock_time, s.exec_other_time, s.exec_unsampled_time
			  FROM pgnetlat_sessions_last(pgnetlat_mean_transactions.duration) s
			 WHERE s.pid = pgnetlat_mean_transactions.pid AND s.total_time IS NOT NULL) a
	 CROSS JOIN pgnetlat_info() i
	  -- the transactions of evicted groups cannot be told apart
	  LEFT JOIN LATERAL (SELECT CASE WHEN a.transactions > 0 THEN a.transactions ELSE a.requests END AS counted) n
		ON n.counted > 0 AND a.busy_time > 0 AND a.window_time > 0 AND a.usesysid IS NOT NULL,
	   -- idle waits have no round trip, and one session's may be longer than the others'
	   LATERAL (SELECT CASE WHEN a.rtt > 0
							THEN greatest(least(a.network_time / a.rtt, a.round_trips), a.round_trips - floor(a.idle_time / 1000))
							ELSE a.round_trips END AS paid) p,
	   LATERAL (SELECT p.paid, CASE WHEN a.rtt > 0 THEN least(a.rtt, a.network_time / nullif(p.paid, 0)) ELSE a.rtt END AS rtt) t,
	   LATERAL (SELECT CASE WHEN a.exec_unsampled_time < 0.9 * a.exec_time
							THEN a.exec_time / nullif(a.exec_time - a.exec_unsampled_time, 0) END AS factor) known,
	   LATERAL (SELECT coalesce(known.factor, 1) AS factor,
					   CASE WHEN known.factor IS NULL THEN a.exec_unsampled_time ELSE 0 END AS unsampled) e,
	   LATERAL (SELECT a.exec_cpu_time * e.factor + e.unsampled + a.send_time - a.send_blocked_time AS work) c,
	   LATERAL (SELECT c.work,
					   greatest(least(a.run_queue_time - a.run_queue_wait_time, 0.8 * c.work), 0) AS queued) w;
END;

COMMENT ON FUNCTION pgnetlat_mean_transactions(integer, interval) IS
	'the mean transaction of each client group over the given time up to now, or of the session with this process ID: the starting point of pgnetlat_what_if(), in milliseconds';

CREATE FUNCTION pgnetlat_what_if(
	IN rtt double precision DEFAULT NULL,
	IN batch double precision DEFAULT NULL,
	IN server_speed double precision DEFAULT NULL,
	IN sessions integer DEFAULT NULL,
	IN duration interval DEFAULT '1 min',
	OUT datid oid,                             -- OID of the database
	OUT datname name,                          -- name of the database
	OUT usesysid oid,                          -- OID of the role
	OUT usename name,                          -- name of the role
	OUT application_name text,                 -- application_name of the sessions, without a pooler's suffix
	OUT client_addr inet,                      -- address of the clients; NULL on a Unix-domain socket
	OUT busy_sessions double precision,        -- sessions that were neither idle nor pending, on average
	OUT transactions bigint,                   -- transactions committed or rolled back
	OUT requests bigint,                       -- exchanges completed: request/response cycles
	OUT round_trips double precision,          -- per transaction
	OUT server_time double precision,          -- milliseconds per transaction: the server's part
	OUT network_time double precision,         -- milliseconds per transaction: the network's part
	OUT client_time double precision,          -- milliseconds per transaction: the client's part
	OUT transaction_time double precision,     -- milliseconds: what a transaction took, the sum of these three
	OUT throughput double precision,           -- transactions per second
	OUT predicted_transaction_time double precision, -- milliseconds: what a transaction would take; NULL, like the other predictions, if nothing is predicted
	OUT predicted_throughput double precision, -- transactions per second
	OUT predicted_throughput_low double precision, -- lower bound
	OUT predicted_throughput_high double precision, -- upper bound
	OUT change double precision)               -- predicted_throughput divided by throughput
RETURNS SETOF record
LANGUAGE sql VOLATILE PARALLEL RESTRICTED COST 1000 ROWS 100
BEGIN ATOMIC
	SELECT m.datid, m.datname, m.usesysid, m.usename, m.application_name, m.client_addr,
		   m.busy_sessions, m.transactions, m.requests, m.round_trips,
		   m.server_time, m.network_time, m.client_time, m.transaction_time,
		   1000 * m.busy_sessions / nullif(m.transaction_time, 0),
		   p.predicted_time, p.throughput, p.throughput_low, p.throughput_high,
		   p.throughput * m.transaction_time / nullif(1000 * m.busy_sessions, 0)
	  FROM pgnetlat_mean_transactions(NULL, pgnetlat_what_if.duration) m
	  LEFT JOIN LATERAL pgnetlat_predict(m.transaction_time, m.busy_sessions, m.processors, m.statements,
				m.round_trips, m.rtt, m.network_time, m.stream_time, m.client_time, m.in_xact_wait_time,
				m.cpu_time, m.io_time, m.other_time, m.lock_time, m.queue_time,
				pgnetlat_what_if.rtt, pgnetlat_what_if.batch, pgnetlat_what_if.server_speed,
				pgnetlat_what_if.sessions) p
		ON m.counted >= 20;
END;

COMMENT ON FUNCTION pgnetlat_what_if(double precision, double precision, double precision, integer, interval) IS
	'by client group, what a transaction took over the given time up to now, in milliseconds, and what is predicted if a round trip took rtt milliseconds, batch statements shared a round trip, the server were server_speed times as fast, or sessions sessions were busy; NULL: unchanged; nothing is predicted from fewer than 20 transactions, or for arguments out of range';

CREATE FUNCTION pgnetlat_what_if_session(
	IN pid integer,
	IN rtt double precision DEFAULT NULL,
	IN batch double precision DEFAULT NULL,
	IN server_speed double precision DEFAULT NULL,
	IN duration interval DEFAULT '1 min',
	OUT transactions bigint,
	OUT requests bigint,
	OUT round_trips double precision,
	OUT server_time double precision,
	OUT network_time double precision,
	OUT client_time double precision,
	OUT transaction_time double precision,
	OUT throughput double precision,
	OUT predicted_transaction_time double precision,
	OUT predicted_throughput double precision,
	OUT predicted_throughput_low double precision,
	OUT predicted_throughput_high double precision,
	OUT change double precision)
RETURNS SETOF record
LANGUAGE sql VOLATILE PARALLEL RESTRICTED COST 100 ROWS 1
BEGIN ATOMIC
	SELECT m.transactions, m.requests, m.round_trips,
		   m.server_time, m.network_time, m.client_time, m.transaction_time,
		   1000 * m.busy_sessions / nullif(m.transaction_time, 0),
		   p.predicted_time, p.throughput, p.throughput_low, p.throughput_high,
		   p.throughput * m.transaction_time / nullif(1000 * m.busy_sessions, 0)
	  FROM pgnetlat_mean_transactions(coalesce(pgnetlat_what_if_session.pid, 0),
									  pgnetlat_what_if_session.duration) m
	  LEFT JOIN LATERAL pgnetlat_predict(m.transaction_time, m.busy_sessions, m.processors, m.statements,
				m.round_trips, m.rtt, m.network_time, m.stream_time, m.client_time, m.in_xact_wait_time,
				m.cpu_time, m.io_time, m.other_time, m.lock_time, m.queue_time,
				pgnetlat_what_if_session.rtt, pgnetlat_what_if_session.batch,
				pgnetlat_what_if_session.server_speed) p
		ON m.counted >= 20;
END;

COMMENT ON FUNCTION pgnetlat_what_if_session(integer, double precision, double precision, double precision, interval) IS
	'pgnetlat_what_if() for the session with this process ID: the same columns except those that name a client group';
