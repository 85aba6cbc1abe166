
-- ---------------------------------------------------------------------------
-- Diagnosis: what is wrong, and what to do about it
-- ---------------------------------------------------------------------------

-- pgnetlat_diagnose() is one SQL function.  Its body is put together from
--
--	diagnose/figures.sql	what the rules read: accounts, statements, locks
--	diagnose/rules/*.sql	a rule each: what it applies to, what was lost, what
--							could be saved, the evidence, the advice
--	diagnose/findings.sql	each loss shown once, the most expensive first
--
-- and every number that is open to debate is here.  Times are in milliseconds, sizes in
-- bytes, and shares run from 0 to 1.
CREATE VIEW pgnetlat_thresholds AS
SELECT 250::float8 AS min_lost,
	   0.01::float8 AS min_lost_sessions,
	   20::float8 AS min_requests,
	   50::float8 AS min_served,
	   0.1::float8 AS min_rtt,
	   0.5::float8 AS near_rtt,
	   5::float8 AS chatty_trips,
	   5::float8 AS chatty_time,
	   0.3::float8 AS chatty_share,
	   2::float8 AS trips_kept,
	   3::float8 AS fetches,
	   5::float8 AS driver_time,
	   0.5::float8 AS network_share,
	   0.1::float8 AS network_life,
	   4::float8 AS repeats,
	   0.3::float8 AS repeat_share,
	   3::float8 AS repeat_think,
	   5::float8 AS loop_rows,
	   0.5::float8 AS loop_least,
	   1.2::float8 AS loop_most,
	   50::float8 AS loops_sought,
	   20::float8 AS repeated_shown,
	   200::float8 AS paired_calls,
	   0.01::float8 AS paired_rows,
	   0.01::float8 AS loss_rate,
	   10::float8 AS min_retransmits,
	   0.25::float8 AS loss_share,
	   10::float8 AS first_window,
	   13e6::float8 AS fast_path,
	   8e6::float8 AS fast_client,
	   0.3::float8 AS stream_share,
	   0.2::float8 AS window_closed,
	   20::float8 AS connections,
	   0.2::float8 AS connect_share,
	   0.05::float8 AS connect_sessions,
	   0.66::float8 AS held_connections,
	   0.2::float8 AS pool_share,
	   5000::float8 AS pool_time,
	   5::float8 AS think,
	   20::float8 AS pause,
	   0.5::float8 AS think_share,
	   100::float8 AS xact_think,
	   0.6::float8 AS think_life,
	   0.8::float8 AS loop_share,
	   1::float8 AS loop_think,
	   10::float8 AS loop_pause,
	   3::float8 AS proxy_near,
	   1.5::float8 AS proxy_alike,
	   20::float8 AS proxy_wait,
	   500::float8 AS proxy_wait_max,
	   0.9::float8 AS proxy_tight,
	   1.5::float8 AS proxy_connect,
	   10::float8 AS slow_request,
	   0.5::float8 AS server_share,
	   0.5::float8 AS server_sessions,
	   0.02::float8 AS spill_share,
	   5::float8 AS away_request,
	   0.3::float8 AS away_share,
	   60000::float8 AS long_statement,
	   5000::float8 AS stopped,
	   5::float8 AS failed_logins,
	   20::float8 AS lock_xact,
	   2::float8 AS short_lock_xact,
	   0.2::float8 AS lock_share,
	   0.05::float8 AS holder_sessions,
	   0.7::float8 AS one_holder,
	   0.8::float8 AS locks_explained,
	   500::float8 AS holder_lag,
	   5000::float8 AS leader_standby,
	   2::float8 AS starved_request,
	   0.4::float8 AS starved_share,
	   0.25::float8 AS starved_sessions,
	   0.04::float8 AS short_starved_request,
	   0.25::float8 AS starved_busy,
	   4::float8 AS starved_client,
	   0.9::float8 AS one_session,
	   3::float8 AS sessions_named,
	   0.3::float8 AS changed_share,
	   0.05::float8 AS changed_sessions;

COMMENT ON VIEW pgnetlat_thresholds IS 'the thresholds of the rules of pgnetlat_diagnose(), and of pgnetlat_compare(); times in milliseconds';
COMMENT ON COLUMN pgnetlat_thresholds.min_lost IS 'a finding has cost at least this much in the window';
COMMENT ON COLUMN pgnetlat_thresholds.min_lost_sessions IS 'a finding has cost at least this part of one session''s time';
COMMENT ON COLUMN pgnetlat_thresholds.min_requests IS 'fewer requests say nothing about clients and networks';
COMMENT ON COLUMN pgnetlat_thresholds.min_served IS 'fewer requests are a few long statements: how long each takes says nothing about the server';
COMMENT ON COLUMN pgnetlat_thresholds.min_rtt IS 'a shorter round trip is on the same machine';
COMMENT ON COLUMN pgnetlat_thresholds.near_rtt IS 'the round trip within one zone of a cloud, which moving the application would bring';
COMMENT ON COLUMN pgnetlat_thresholds.chatty_trips IS 'chatty: round trips per transaction';
COMMENT ON COLUMN pgnetlat_thresholds.chatty_time IS 'chatty: time of round trips per transaction; repeated statement: per burst; narrow path: time of a large response beyond its round trip';
COMMENT ON COLUMN pgnetlat_thresholds.chatty_share IS 'chatty: round trips'' part of the time in requests and transactions';
COMMENT ON COLUMN pgnetlat_thresholds.trips_kept IS 'round trips of a transaction whose statements travel together: one for them, one for COMMIT';
COMMENT ON COLUMN pgnetlat_thresholds.fetches IS 'with more round trips per statement than this, most are assumed to fetch further rows';
COMMENT ON COLUMN pgnetlat_thresholds.driver_time IS 'the most that a driver needs for a request; repeated statement: without a round trip to the server, the longest wait between two';
COMMENT ON COLUMN pgnetlat_thresholds.network_share IS 'network-bound: round trips'' part of the time that is not idle';
COMMENT ON COLUMN pgnetlat_thresholds.network_life IS 'network-bound: round trips'' part of all time, of at least one session';
COMMENT ON COLUMN pgnetlat_thresholds.repeats IS 'repeated statement: repeats per burst';
COMMENT ON COLUMN pgnetlat_thresholds.repeat_share IS 'repeated statement: repeats'' part of the network time of the role in the database';
COMMENT ON COLUMN pgnetlat_thresholds.repeat_think IS 'repeated statement: a client outside a transaction thinks no longer than this per call';
COMMENT ON COLUMN pgnetlat_thresholds.loop_rows IS 'repeated statement: rows per call of the statement for whose rows it is executed';
COMMENT ON COLUMN pgnetlat_thresholds.loop_least IS 'repeated statement: at least this many executions per row, and bursts per call, of that statement';
COMMENT ON COLUMN pgnetlat_thresholds.loop_most IS 'repeated statement: at most this many executions per row, and bursts per call, of that statement';
COMMENT ON COLUMN pgnetlat_thresholds.loops_sought IS 'repeated statement: the statement for whose rows one is executed is looked for only for so many, the most expensive ones';
COMMENT ON COLUMN pgnetlat_thresholds.repeated_shown IS 'repeated statement: at most so many findings, the most expensive ones';
COMMENT ON COLUMN pgnetlat_thresholds.paired_calls IS 'repeated statement: executions, if none repeats but there are as many as another statement has rows';
COMMENT ON COLUMN pgnetlat_thresholds.paired_rows IS 'repeated statement: their number differs from that of the rows by at most this part';
COMMENT ON COLUMN pgnetlat_thresholds.loss_rate IS 'lossy path: part of the packets that were sent again';
COMMENT ON COLUMN pgnetlat_thresholds.min_retransmits IS 'lossy path: at least this many packets sent again';
COMMENT ON COLUMN pgnetlat_thresholds.loss_share IS 'lossy path: explains network-bound if it costs this part of the round trips';
COMMENT ON COLUMN pgnetlat_thresholds.first_window IS 'lossy path, narrow path: packets that TCP sends before the first acknowledgement; longer responses can fill a link';
COMMENT ON COLUMN pgnetlat_thresholds.fast_path IS 'narrow path: bytes per second of a better path';
COMMENT ON COLUMN pgnetlat_thresholds.fast_client IS 'slow reader, slow loader: bytes per second of a client that is not slow';
COMMENT ON COLUMN pgnetlat_thresholds.stream_share IS 'narrow path, slow reader, slow loader: part of the time in requests and transactions';
COMMENT ON COLUMN pgnetlat_thresholds.window_closed IS 'slow reader: the receive window was closed for at least this part of the time that sending was blocked; narrow path: for less';
COMMENT ON COLUMN pgnetlat_thresholds.connections IS 'reconnects: connections that were set up and ended';
COMMENT ON COLUMN pgnetlat_thresholds.connect_share IS 'reconnects: part of the time that is not idle spent connecting';
COMMENT ON COLUMN pgnetlat_thresholds.connect_sessions IS 'reconnects: a finding has cost at least this part of one session''s time';
COMMENT ON COLUMN pgnetlat_thresholds.held_connections IS 'too many connections: part of max_connections that is in use';
COMMENT ON COLUMN pgnetlat_thresholds.pool_share IS 'too many connections: part of the connections that would have been enough';
COMMENT ON COLUMN pgnetlat_thresholds.pool_time IS 'too many connections: sampled for at least this long';
COMMENT ON COLUMN pgnetlat_thresholds.think IS 'idle in transaction, client-bound: think time per request, if it is most of the time';
COMMENT ON COLUMN pgnetlat_thresholds.pause IS 'idle in transaction: think time per request, otherwise';
COMMENT ON COLUMN pgnetlat_thresholds.think_share IS 'idle in transaction, client-bound: part of the time in requests and transactions';
COMMENT ON COLUMN pgnetlat_thresholds.xact_think IS 'idle in transaction: think time per transaction';
COMMENT ON COLUMN pgnetlat_thresholds.think_life IS 'client-bound: part of all time, of at least one session';
COMMENT ON COLUMN pgnetlat_thresholds.loop_share IS 'client-bound: client''s part of the time of a connection that never pauses';
COMMENT ON COLUMN pgnetlat_thresholds.loop_think IS 'client-bound: minimum think time per request of such a connection';
COMMENT ON COLUMN pgnetlat_thresholds.loop_pause IS 'client-bound: maximum think time per request; longer ones are a schedule';
COMMENT ON COLUMN pgnetlat_thresholds.proxy_near IS 'hidden path: minimum of waits in transactions, or in a loop, that are all alike';
COMMENT ON COLUMN pgnetlat_thresholds.proxy_alike IS 'hidden path: nine in ten of them are at most this many times as long as one in ten';
COMMENT ON COLUMN pgnetlat_thresholds.proxy_wait IS 'hidden path: minimum mean wait';
COMMENT ON COLUMN pgnetlat_thresholds.proxy_wait_max IS 'hidden path: maximum mean wait';
COMMENT ON COLUMN pgnetlat_thresholds.proxy_tight IS 'hidden path: part of the waits within a factor of five';
COMMENT ON COLUMN pgnetlat_thresholds.proxy_connect IS 'hidden path: if connecting takes at least this many times the mean wait, waits outside transactions are put down to the path as well';
COMMENT ON COLUMN pgnetlat_thresholds.slow_request IS 'server-bound by CPU, I/O, other waits: time per request';
COMMENT ON COLUMN pgnetlat_thresholds.server_share IS 'server-bound by CPU, I/O, other waits: part of the time in requests and transactions';
COMMENT ON COLUMN pgnetlat_thresholds.server_sessions IS 'server-bound: part of one session''s time, if there are few requests';
COMMENT ON COLUMN pgnetlat_thresholds.spill_share IS 'server-bound: samples of waits for temporary files as a part of it, to be mentioned';
COMMENT ON COLUMN pgnetlat_thresholds.away_request IS 'server-bound by a standby or another server: time per request';
COMMENT ON COLUMN pgnetlat_thresholds.away_share IS 'server-bound by a standby or another server: part of the time in requests and transactions';
COMMENT ON COLUMN pgnetlat_thresholds.long_statement IS 'long statement: time for which it has been executing';
COMMENT ON COLUMN pgnetlat_thresholds.stopped IS 'outage: time for which a session has been blocked, or has got nothing done';
COMMENT ON COLUMN pgnetlat_thresholds.failed_logins IS 'connections fail: refused connections of a role to a database in the last minute';
COMMENT ON COLUMN pgnetlat_thresholds.lock_xact IS 'blocked, lock contention: lock waits per transaction';
COMMENT ON COLUMN pgnetlat_thresholds.short_lock_xact IS 'lock contention: lock waits per transaction, where lock waits are most of the time';
COMMENT ON COLUMN pgnetlat_thresholds.lock_share IS 'blocked, lock contention: part of the time in requests and transactions';
COMMENT ON COLUMN pgnetlat_thresholds.holder_sessions IS 'blocks others: what others lost, as a part of one session''s time, if no session waits now';
COMMENT ON COLUMN pgnetlat_thresholds.one_holder IS 'if one session of a client group has this part of the time for which the group blocks others, it is the holder';
COMMENT ON COLUMN pgnetlat_thresholds.locks_explained IS 'if this part of a database''s lock waits has a known holder, holders explain them all';
COMMENT ON COLUMN pgnetlat_thresholds.holder_lag IS 'of a lock wait in progress, up to this much may not be charged to its holder yet';
COMMENT ON COLUMN pgnetlat_thresholds.leader_standby IS 'blocks others: a session that began to wait for an advisory lock within this time of connecting does so by design, as the standby of a leader';
COMMENT ON COLUMN pgnetlat_thresholds.starved_request IS 'starved: time spent waiting for a CPU per request';
COMMENT ON COLUMN pgnetlat_thresholds.starved_share IS 'starved: part of the time for which a CPU was wanted';
COMMENT ON COLUMN pgnetlat_thresholds.starved_sessions IS 'starved: a finding has cost at least this part of one session''s time';
COMMENT ON COLUMN pgnetlat_thresholds.short_starved_request IS 'starved: minimum time spent waiting for a CPU per request, where starved_busy is less than starved_request';
COMMENT ON COLUMN pgnetlat_thresholds.starved_busy IS 'starved: part of all time that is not idle, where it is less than starved_request';
COMMENT ON COLUMN pgnetlat_thresholds.starved_client IS 'a client on this machine is assumed to have waited for a CPU at most this many times as long as its sessions';
COMMENT ON COLUMN pgnetlat_thresholds.one_session IS 'if one session has this part of a client group''s loss, the finding is about the session';
COMMENT ON COLUMN pgnetlat_thresholds.sessions_named IS 'a finding that more sessions of a client group share than this is reported for the group';
COMMENT ON COLUMN pgnetlat_thresholds.changed_share IS 'pgnetlat_compare(): a time or a rate differs by at least this part';
COMMENT ON COLUMN pgnetlat_thresholds.changed_sessions IS 'pgnetlat_compare(): a difference costs or saves at least this part of one session''s time';

GRANT SELECT ON pgnetlat_thresholds TO PUBLIC;

-- Figures in sentences, with about three digits.
CREATE FUNCTION pgnetlat_figure_text(figure float8)
RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN figure >= 99.5 OR figure = round(figure) THEN round(figure)::text
			ELSE round(figure::numeric, CASE WHEN figure >= 9.95 THEN 1 ELSE 2 END)::text END;

-- "80 of 95 ms": in milliseconds, or in seconds if the whole is ten seconds or more.
CREATE FUNCTION pgnetlat_time_text(whole float8, part float8 DEFAULT NULL)
RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN whole >= 10000
			THEN coalesce(pgnetlat_figure_text(part / 1000) || ' of ', '') || pgnetlat_figure_text(whole / 1000) || ' s'
			ELSE coalesce(pgnetlat_figure_text(part) || ' of ', '') || pgnetlat_figure_text(whole) || ' ms' END;

CREATE FUNCTION pgnetlat_count_text(count float8, singular text, plural text)
RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN round(count::numeric, 2) = 1 THEN '1 ' || singular
			ELSE concat(pgnetlat_figure_text(count), ' ', plural) END;

-- The beginning of a statement, on one line.
CREATE FUNCTION pgnetlat_query_start(query text)
RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
RETURN (SELECT CASE WHEN length(line) > 80 THEN left(line, 77) || '...' ELSE line END
		  FROM pgnetlat_one_line(query) AS line);

-- The oldest prepared transaction of a database, and its name if it is the only one.
CREATE FUNCTION pgnetlat_prepared_text(IN datname name, IN at timestamptz, OUT oldest text, OUT name text)
LANGUAGE sql VOLATILE PARALLEL RESTRICTED
BEGIN ATOMIC
	SELECT CASE WHEN count(*) > 1 THEN format('one of %s; the oldest is ', count(*)) ELSE '' END
		   || (array_agg(format('%s of %s, prepared %s ago', quote_literal(pgnetlat_legible(x.gid)), pgnetlat_legible(x.owner::text),
								pgnetlat_age(greatest(extract(epoch FROM at - x.prepared)::float8 * 1000, 50))) ORDER BY x.prepared, x.gid))[1],
		   CASE WHEN count(*) = 1 THEN min(quote_literal(pgnetlat_legible(x.gid))) END
	  FROM pg_prepared_xacts x WHERE x.database = pgnetlat_prepared_text.datname;
END;

COMMENT ON FUNCTION pgnetlat_figure_text(float8) IS 'internal: figure with about three digits, for sentences';
COMMENT ON FUNCTION pgnetlat_time_text(float8, float8) IS 'internal: milliseconds for sentences, or a part of a whole';
COMMENT ON FUNCTION pgnetlat_count_text(float8, text, text) IS 'internal: number with its noun';
COMMENT ON FUNCTION pgnetlat_query_start(text) IS 'internal: the beginning of a statement, on one line';
COMMENT ON FUNCTION pgnetlat_prepared_text(name, timestamptz) IS 'internal: the oldest prepared transaction of a database, for sentences, and its name if it is the only one';
