
-- ---------------------------------------------------------------------------
-- Predictions
-- ---------------------------------------------------------------------------

-- The model.  A transaction consists of delays, in which sessions do not hinder
-- each other, and of two queues, for locks and for processors.  Sessions begin the
-- next transaction as soon as they can.
--
--		network_time	round trips: in proportion to their number and their
--						length; it includes
--		stream_time		what large responses take beyond that: a window's worth
--						per round trip, where that is less than the path could
--						carry meanwhile
--		client_time		the client thinks
--		cpu_time		on processors; io_time: reading and writing files
--		held_up_time	waits for standbys and other servers; other_time:
--						anything else
--		lock_time		waits for locks
--		queue_time		waits for a processor
--
-- The account shows how long the queues are, and so how much throughput each of
-- them would still admit: throughput ^ -3 is (delays / sessions) ^ -3 plus one such
-- term for each queue.  A closed network of queues gives this to within a few
-- percent, and it reproduces what was measured if nothing is changed.  A queue's
-- term is at most 1.25 times the time spent in it; the rest of a short queue is a
-- delay, since its own sessions did not cause it.  The term of the locks scales
-- with the time for which transactions hold them, and that of the processors with
-- the time on them; the number of processors is a hard limit.  A transaction's
-- statements take its locks, so the wait after COMMIT is not part of the time for
-- which they are held; nor is other_time, which is that of the waiters.
--
-- The bounds of the prediction come from what the account cannot tell:
--
--		locks			the time for which they are held changes likewise, or
--						not at all
--		streams			what large responses take beyond a round trip scales
--						with it, or depends on the bandwidth; the likely
--						prediction takes the former if it is a round trip or more
--		warmth			after a longer wait, caches are colder and processors
--						asleep: 0.035 + 0.08 * log10(1 + wait / 0.25) ms of each
--						turn of server and client, as measured; it may be none,
--						or six times as much on a busy machine.  Where the
--						processors are the limit, turns wait for them as well
--		held_up			what is waited for becomes faster with the server
--		beside			the client's turns need the server's processors
--		newcomers		additional sessions wait for each other; with fewer
--						sessions, none may wait
--
-- They are widened by a twentieth if a transaction takes e times as long or more,
-- and by less, in proportion to the logarithm, below that.
--
-- The page of pgnetlat_report() computes it, too, in report/model.js: test/report
-- compares them.
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
	SELECT 1000 * s.to_sessions / max(x.throughput) FILTER (WHERE a.likely),
		   max(x.throughput) FILTER (WHERE a.likely),
		   min(x.least) * (1 - 0.05 * least(abs(ln(max(x.throughput) FILTER (WHERE a.likely) * transaction_time / (1000 * s.to_sessions))), 1)),
		   max(x.most) * (1 + 0.05 * least(abs(ln(max(x.throughput) FILTER (WHERE a.likely) * transaction_time / (1000 * s.to_sessions))), 1))
	  FROM (SELECT true, true, stream_time >= rtt, 1.0, false, false
			 UNION ALL
			SELECT false, l.yes, t.yes, w.degree, h.yes, b.yes
			  FROM (VALUES (true), (false)) l(yes),
				   (VALUES (true), (false)) t(yes),
				   (VALUES (0.0), (6.0)) w(degree),
				   (VALUES (true), (false)) h(yes),
				   (VALUES (true), (false)) b(yes))
		   a(likely, locks, streams, warmth, held_up, beside),
		   -- the arguments; a transaction takes whole round trips, unless it is one
		   -- statement and several share a round trip
		   LATERAL (SELECT coalesce(rtt, 0) AS old_rtt,
						   coalesce(new_rtt, rtt, 0) AS to_rtt,
						   coalesce(new_speed, 1) AS to_speed,
						   coalesce(new_sessions, busy_sessions) AS to_sessions,
						   CASE WHEN new_batch > 1
								THEN least(round_trips, CASE WHEN round_trips < 1.5 THEN statements / new_batch
															 ELSE ceil(statements / new_batch - 1e-9) END)
								ELSE round_trips END AS to_round_trips,
						   transaction_time - network_time - client_time -
						   cpu_time - io_time - lock_time - queue_time AS held_up_time,
						   network_time - stream_time AS trip_time
					OFFSET 0) s,
		   -- what turns take longer because they come after a wait: for the path and the
		   -- client, or for the other sessions' turns on the processors if that is longer
		   LATERAL (SELECT coalesce(client_time / nullif(round_trips, 0), 0) AS client,
						   CASE WHEN a.likely THEN cpu_time / processors ELSE 0 END AS others) waits_for,
		   LATERAL (SELECT greatest(s.old_rtt + waits_for.client,
									coalesce(busy_sessions * waits_for.others / nullif(round_trips, 0), 0)) AS old,
						   greatest(s.to_rtt + waits_for.client,
									coalesce(s.to_sessions * waits_for.others / nullif(s.to_round_trips, 0), 0)) AS new
					) waited,
		   LATERAL (SELECT round_trips * (0.035 + 0.08 * log(1 + waited.old / 0.25)) AS old,
						   s.to_round_trips * (0.035 + 0.08 * log(1 + waited.new / 0.25)) AS new) turn,
		   -- they cannot take less than nothing
		   LATERAL (SELECT coalesce(1 - least(a.warmth * turn.old / nullif(cpu_time + client_time, 0),
											  CASE WHEN turn.new < turn.old THEN 0.95 END) *
									(1 - turn.new / nullif(turn.old, 0)), 1) AS work,
						   greatest(s.trip_time - round_trips * s.old_rtt, 0) + s.to_round_trips * s.to_rtt AS trips,
						   stream_time * CASE WHEN a.streams AND s.old_rtt > 0 THEN s.to_rtt / s.old_rtt ELSE 1 END AS streams,
						   s.held_up_time / CASE WHEN a.held_up THEN s.to_speed ELSE 1 END AS held_up
					OFFSET 0) n,
		   -- how long a lock is held, which excludes the wait after COMMIT
		   LATERAL (SELECT greatest(1 - 1 / nullif(round_trips, 0), 0) AS old,
						   greatest(1 - 1 / nullif(s.to_round_trips, 0), 0) AS new,
						   least(greatest(1 - 1 / nullif(round_trips, 0), 1 / nullif(round_trips, 0)), 1) AS server
					) within,
		   LATERAL (SELECT s.trip_time * within.old AS trips,
						   least(s.trip_time * within.old, in_xact_wait_time) AS known) waits,
		   LATERAL (SELECT within.server * (cpu_time + io_time + queue_time) + in_xact_wait_time +
						   greatest(s.held_up_time - other_time, 0) AS old,
						   within.server * n.work * (cpu_time + io_time + queue_time) / s.to_speed +
						   n.work * (in_xact_wait_time - waits.known) +
						   greatest(n.held_up - other_time, 0) +
						   n.trips * within.new * coalesce(waits.known / nullif(waits.trips, 0), 1) AS new
					) hold,
		   -- without queues
		   LATERAL (SELECT (transaction_time - queue_time - CASE WHEN a.locks THEN lock_time ELSE 0 END) AS old,
						   n.trips + n.streams + n.work * (client_time + (cpu_time + io_time) / s.to_speed) +
						   n.held_up + CASE WHEN a.locks THEN 0 ELSE lock_time END AS new,
						   cpu_time + CASE WHEN a.beside THEN least(client_time, turn.old) ELSE 0 END AS demand,
						   n.work * (cpu_time / s.to_speed +
									 CASE WHEN a.beside THEN least(client_time, turn.old) ELSE 0 END) AS new_demand
					OFFSET 0) delay,
		   -- the throughput that the queues admit; the longer queue has the larger share
		   LATERAL (SELECT least(coalesce(CASE WHEN a.locks THEN lock_time ELSE 0 END / nullif(transaction_time - delay.old, 0), 0), 1) AS lock,
						   coalesce(greatest(hold.new, 0) / nullif(greatest(hold.old, 0), 0), 1) AS lock_change,
						   coalesce(greatest(delay.new_demand, 0) / nullif(greatest(delay.demand, 0), 0), 1) AS processor_change,
						   greatest(transaction_time ^ 3 - delay.old ^ 3, 0) AS cubes OFFSET 0) share,
		   LATERAL (SELECT least(share.cubes * share.lock, (1.25 * greatest(hold.old + lock_time, 0)) ^ 3) AS lock,
						   least(share.cubes * (1 - share.lock), (1.25 * greatest(cpu_time + queue_time, 0)) ^ 3) AS processor
					OFFSET 0) queue,
		   -- waiting that this does not explain; then 1 / throughput
		   LATERAL (SELECT (greatest(transaction_time ^ 3 - queue.lock - queue.processor, 0) ^ (1 / 3.0) - delay.old) *
						   (share.lock * share.lock_change + (1 - share.lock) * share.processor_change) AS new) extra,
		   LATERAL (SELECT ((greatest(delay.new + extra.new, 0) / s.to_sessions) ^ 3 +
							(queue.lock * share.lock_change ^ 3 + queue.processor * share.processor_change ^ 3) /
							busy_sessions ^ 3) ^ (1 / 3.0) AS free,
						   least(delay.demand / processors, transaction_time / busy_sessions) *
						   share.processor_change AS processor
					OFFSET 0) inverse,
		   LATERAL (SELECT 1000 / nullif(greatest(inverse.free, inverse.processor), 0) AS throughput,
						   1000 / nullif(greatest(CASE WHEN s.to_sessions < busy_sessions
													   THEN delay.new / s.to_sessions
													   ELSE inverse.free END, inverse.processor), 0) AS most,
						   1000 / nullif(greatest(inverse.free, inverse.processor) +
								   greatest(1 - busy_sessions / s.to_sessions, 0) * inverse.processor, 0) AS least
					) x
	 WHERE transaction_time > 0 AND busy_sessions > 0
	   AND (new_rtt IS NULL OR (new_rtt >= 0 AND new_rtt <= 60000 AND rtt IS NOT NULL))
	   AND (new_batch IS NULL OR (new_batch >= 1 AND new_batch <= 1000000 AND (new_batch = 1 OR statements > 0)))
	   AND (new_speed IS NULL OR (new_speed >= 0.001 AND new_speed <= 1000))
	   AND (new_sessions IS NULL OR (new_sessions >= 1 AND new_sessions <= 262143))
	 GROUP BY s.to_sessions;
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
		   CASE WHEN n.counted > 0 THEN a.busy_time / a.window_time END,
		   greatest(i.processors - (sum(w.work - w.queued) OVER () - (w.work - w.queued)) / nullif(a.window_time, 0),
					i.processors / 20),
		   a.busy_time / n.counted,
		   a.statements / n.counted::double precision,
		   t.paid / n.counted,
		   -- no round trip on a Unix-domain socket; NULL if not known
		   CASE WHEN a.client_addr IS NULL AND a.packets_received = 0 THEN coalesce(t.rtt, 0) ELSE t.rtt END,
		   (a.exec_time + a.send_time - a.send_blocked_time + a.run_queue_wait_time) / n.counted,
		   (a.network_time + a.send_blocked_time - a.send_client_time) / n.counted,
		   greatest(a.client_time - a.run_queue_wait_time + a.recv_time + a.send_client_time, 0) / n.counted,
		   -- a small response has left by the time the backend begins to wait
		   (a.send_blocked_time - a.send_client_time +
			CASE WHEN a.bytes_sent >= 14000 * t.paid
				 THEN greatest(a.network_time - t.paid * t.rtt, 0) ELSE 0 END) / n.counted,
		   a.in_xact_wait_time / n.counted,
		   (w.work - w.queued) / n.counted,
		   a.exec_io_time * e.factor / n.counted,
		   a.exec_other_time * e.factor / n.counted,
		   a.exec_lock_time * e.factor / n.counted,
		   (a.run_queue_wait_time + w.queued) / n.counted
	  FROM (SELECT c.datid, c.datname, c.usesysid, c.usename, c.application_name, c.client_addr, c.window_time,
				   c.transactions, c.requests, c.statements, c.round_trips, c.rtt, c.bytes_sent, c.packets_received,
				   greatest(c.total_time - c.idle_time - c.pending_time, 0) AS busy_time, c.idle_time,
				   c.exec_time, c.send_time, c.recv_time, c.network_time, c.client_time, c.in_xact_wait_time,
				   c.send_blocked_time, c.send_client_time, c.run_queue_time, c.run_queue_wait_time,
				   c.exec_cpu_time, c.exec_io_time, c.exec_lock_time, c.exec_other_time, c.exec_unsampled_time
			  FROM pgnetlat_clients_last(pgnetlat_mean_transactions.duration) c
			 WHERE pgnetlat_mean_transactions.pid IS NULL
			 UNION ALL
			SELECT s.datid, s.datname, s.usesysid, s.usename, s.application_name, s.client_addr, s.window_time,
				   s.transactions, s.requests, s.statements, s.round_trips, s.rtt, s.bytes_sent,
				   CASE s.transport WHEN 'unix' THEN 0 ELSE 1 END,
				   greatest(s.total_time - s.idle_time - s.pending_time, 0), s.idle_time,
				   s.exec_time, s.send_time, s.recv_time, s.network_time, s.client_time, s.in_xact_wait_time,
				   s.send_blocked_time, s.send_client_time, coalesce(s.run_queue_time, 0),
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
							THEN a.exec_time / (a.exec_time - a.exec_unsampled_time) END AS factor) known,
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
		   1000 * m.busy_sessions / m.transaction_time,
		   p.predicted_time, p.throughput, p.throughput_low, p.throughput_high,
		   p.throughput * m.transaction_time / (1000 * m.busy_sessions)
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
		   1000 * m.busy_sessions / m.transaction_time,
		   p.predicted_time, p.throughput, p.throughput_low, p.throughput_high,
		   p.throughput * m.transaction_time / (1000 * m.busy_sessions)
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
