
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
-- and every number that is open to debate is here, with its unit: ms, bytes/s, sessions (a
-- part of one session's time), share (from 0 to 1), ratio, count.  make lists the names in
-- figures.sql, whose "t" has them as columns, and takes the library's constants from its
-- header (burst.h).

-- What somebody has set, through pgnetlat_set_threshold().
CREATE TABLE pgnetlat_threshold_settings (
	name text PRIMARY KEY CHECK (name NOT LIKE 'burst%'),
	value double precision NOT NULL CHECK (value BETWEEN 0 AND 1e12));

COMMENT ON TABLE pgnetlat_threshold_settings IS 'thresholds that are not at their default; pg_dump keeps them';
COMMENT ON COLUMN pgnetlat_threshold_settings.name IS 'name of the threshold';
COMMENT ON COLUMN pgnetlat_threshold_settings.value IS 'what it has been set to';

DO $$BEGIN
	PERFORM pg_catalog.pg_extension_config_dump('pgnetlat_threshold_settings', '');
END$$;

CREATE VIEW pgnetlat_thresholds AS
SELECT d.name, coalesce(s.value, d."default") AS value, d."default", d.unit, d.description
  FROM (VALUES
	('min_lost', 250, 'ms', 'a finding has cost at least this much in the window'),
	('min_lost_sessions', 0.01, 'sessions', 'a finding has cost at least this part of one session''s time'),
	('min_requests', 20, 'count', 'fewer requests say nothing about clients and networks'),
	('min_served', 50, 'count', 'fewer requests are a few long statements: how long each takes says nothing about the server'),
	('min_rtt', 0.1, 'ms', 'a shorter round trip is on the same machine'),
	('near_rtt', 0.5, 'ms', 'the round trip within one zone of a cloud: what moving the application closer would bring'),
	('chatty_trips', 5, 'count', 'chatty: round trips per transaction'),
	('chatty_time', 5, 'ms', 'chatty: time of round trips per transaction; repeated statement: per burst; narrow path: time of a large response beyond its round trip'),
	('chatty_share', 0.3, 'share', 'chatty: round trips'' part of the time in requests and transactions'),
	('fetch_share', 0.5, 'share', 'chatty: part of the round trips that a FETCH makes'),
	('top_statement', 0.5, 'share', 'chatty: part of the role''s network time with which a statement is named'),
	('trips_kept', 2, 'count', 'round trips of a transaction whose statements are sent together: one for them, one for COMMIT'),
	('fetches', 3, 'count', 'with more round trips per statement than this, most are assumed to fetch further rows'),
	('driver_time', 5, 'ms', 'the most that a driver needs for a request; repeated statement: the longest wait between two executions, if the server sees no path'),
	('overhead_share', 0.15, 'share', 'session overhead: part of the latest requests of a client group'),
	('overhead_sessions', 0.02, 'sessions', 'session overhead: a finding has cost at least this part of one session''s time'),
	('network_share', 0.5, 'share', 'network-bound: round trips'' part of the time that is not idle'),
	('far_rtt', 2, 'ratio', 'network-bound: the round trip is at least this many times near_rtt'),
	('network_life', 0.1, 'share', 'network-bound: round trips'' part of all time, of at least one session'),
	('repeats', 4, 'count', 'repeated statement: repeats per burst'),
	('repeat_share', 0.3, 'share', 'repeated statement: repeats'' part of the network time of the role in the database'),
	('repeat_think', 3, 'ms', 'repeated statement: a client outside a transaction thinks no longer than this per call'),
	('repeat_in_xact', 0.5, 'share', 'repeated statement: repeats with less of their network time in transactions are taken for single calls'),
	('dump_share', 0.5, 'share', 'repeated statement: if this part of the role''s network time is that of pg_dump, nobody can change the statement'),
	('loop_in_xact', 0.8, 'share', 'repeated statement: part of the client''s waits that is inside transactions'),
	('loop_rows', 5, 'count', 'repeated statement: rows per call of the statement for whose rows it is executed'),
	('loop_least', 0.5, 'ratio', 'repeated statement: at least this many executions per row, and bursts per call, of that statement'),
	('loop_most', 1.2, 'ratio', 'repeated statement: at most this many executions per row, and bursts per call, of that statement'),
	('loops_sought', 50, 'count', 'repeated statement: number of statements, the most expensive ones, that are matched with one for whose rows they are executed'),
	('repeated_shown', 20, 'count', 'repeated statement: maximum number of findings, the most expensive ones'),
	('paired_calls', 200, 'count', 'repeated statement: minimum executions of a statement that does not repeat, but is executed as often as another one has rows'),
	('paired_rows', 0.01, 'share', 'repeated statement: these executions and rows differ in number by at most this part'),
	('loss_rate', 0.01, 'share', 'lossy path: part of the packets that were sent again'),
	('min_retransmits', 10, 'count', 'lossy path: at least this many packets sent again'),
	('loss_share', 0.25, 'share', 'lossy path: explains network-bound if it costs this part of the round trips'),
	('first_window', 10, 'count', 'lossy path, narrow path: packets that TCP sends before the first acknowledgement; longer responses can fill a link'),
	('fast_path', 13000000, 'bytes/s', 'narrow path: bytes per second of a better path'),
	('fast_client', 8000000, 'bytes/s', 'slow reader, slow loader: bytes per second of a client that is not slow'),
	('stream_share', 0.3, 'share', 'narrow path, slow reader, slow loader: part of the time in requests and transactions'),
	('window_all', 0.9, 'share', 'slow reader: if the receive window was closed for less than this part of the time that sending was blocked, the evidence also has that time'),
	('window_closed', 0.2, 'share', 'slow reader: the receive window was closed for at least this part of the time that sending was blocked; narrow path: for less'),
	('connections', 20, 'count', 'reconnects: connections that were set up and ended'),
	('connect_trips', 2, 'count', 'reconnects: round trips that setting up a connection takes before the server knows of it'),
	('connect_share', 0.2, 'share', 'reconnects: connecting''s part of the time that is not idle'),
	('connect_sessions', 0.05, 'sessions', 'reconnects: a finding has cost at least this part of one session''s time'),
	('held_connections', 0.66, 'share', 'too many connections: part of max_connections that is in use'),
	('pool_share', 0.2, 'share', 'too many connections: part of the connections that would have been enough'),
	('pool_least', 5, 'count', 'pool exhausted: at least this many connections of a role to a database'),
	('pools_named', 3, 'count', 'pool exhausted: number of pools that the evidence names'),
	('pool_time', 5000, 'ms', 'too many connections, pool exhausted: sampled for at least this long'),
	('think', 5, 'ms', 'idle in transaction, client-bound: think time per request, if it is most of the time'),
	('pause', 20, 'ms', 'idle in transaction: think time per request, otherwise'),
	('think_share', 0.5, 'share', 'idle in transaction, client-bound: part of the time in requests and transactions'),
	('think_free', 0.5, 'share', 'idle in transaction, client-bound: others waited for its locks for less than this part of its think time'),
	('xact_think', 100, 'ms', 'idle in transaction: think time per transaction'),
	('think_life', 0.6, 'share', 'client-bound: part of all time, of at least one session'),
	('loop_share', 0.8, 'share', 'client-bound: client''s part of the time of a connection that never pauses'),
	('loop_think', 1, 'ms', 'client-bound: minimum think time per request of such a connection'),
	('loop_pause', 10, 'ms', 'client-bound: maximum think time per request; longer ones are a schedule'),
	('loop_busy', 0.9, 'share', 'client-bound, hidden path: part of the window for which a connection that never pauses is busy'),
	('proxy_near', 3, 'ms', 'hidden path: minimum length of waits in transactions, or in a loop, that are all alike'),
	('proxy_alike', 1.5, 'ratio', 'hidden path: nine in ten of them are at most this many times as long as one in ten'),
	('proxy_wait', 20, 'ms', 'hidden path: minimum mean wait'),
	('proxy_wait_max', 500, 'ms', 'hidden path: maximum mean wait'),
	('proxy_low', 5, 'ms', 'hidden path: the shortest of these waits is longer than this'),
	('proxy_requests', 3, 'count', 'hidden path: requests per transaction, for waits in transactions'),
	('proxy_longer', 2, 'ratio', 'hidden path: a session whose waits are longer than the group''s by more than this factor thinks, too'),
	('proxy_tight', 0.9, 'share', 'hidden path: part of the waits within a factor of five'),
	('proxy_connect', 1.5, 'ratio', 'hidden path: if connecting takes at least this many times the mean wait, waits outside transactions are put down to the path as well'),
	('slow_request', 10, 'ms', 'server-bound by CPU, I/O, other waits: time per request'),
	('server_share', 0.5, 'share', 'server-bound by CPU, I/O, other waits: part of the time in requests and transactions'),
	('server_sessions', 0.5, 'sessions', 'server-bound: part of one session''s time, if there are few requests'),
	('spill_share', 0.02, 'share', 'server-bound: if waits for temporary files are at least this part of it, the evidence has them'),
	('faster_server', 2, 'ratio', 'server-bound by CPU, I/O: the saving is that of a server this many times as fast'),
	('away_request', 5, 'ms', 'server-bound by a standby or another server: time per request'),
	('away_share', 0.3, 'share', 'server-bound by a standby or another server: part of the time in requests and transactions'),
	('long_statement', 60000, 'ms', 'long statement: time for which it has been executing'),
	('long_working', 0.5, 'share', 'long statement: part of its time in which it did not wait for locks, standbys or other servers'),
	('long_cpu', 0.8, 'share', 'long statement: if at least this part of it was on a CPU, the evidence says so'),
	('long_io', 0.5, 'share', 'long statement: if it waited for files for at least this part, the evidence says so'),
	('stopped', 5000, 'ms', 'outage: time for which a session has been blocked, or has got nothing done'),
	('stopped_waiting', 0.5, 'share', 'outage: part of that time for which it has waited, as far as is known'),
	('failed_logins', 5, 'count', 'connections fail: refused connections of a role to a database in the last minute'),
	('lock_xact', 20, 'ms', 'blocked, lock contention: lock waits per transaction'),
	('short_lock_xact', 2, 'ms', 'lock contention: lock waits per transaction, where lock waits are most of the time'),
	('contending', 0.5, 'ratio', 'lock contention: a client group''s sessions waited for locks at least this many times as long as others waited for theirs, and the other way round'),
	('contention_rest', 0.5, 'share', 'lock contention: if round trips or thinking take at least this part of the time without lock waits, the advice is about them'),
	('refused_named', 3, 'count', 'connections fail: number of cases that the evidence names, by role, database and reason'),
	('lock_share', 0.2, 'share', 'blocked, lock contention: part of the time in requests and transactions'),
	('holder_sessions', 0.05, 'sessions', 'blocks others: what others lost, as a part of one session''s time, if no session waits now'),
	('one_holder', 0.7, 'share', 'if one session of a client group has this part of the time for which the group blocks others, it is the holder'),
	('locks_explained', 0.8, 'share', 'if this part of a database''s lock waits has a known holder, holders explain them all'),
	('holder_lag', 500, 'ms', 'of a lock wait in progress, up to this much may not be charged to its holder yet'),
	('leader_standby', 5000, 'ms', 'blocks others: a session that began to wait for an advisory lock within this time of connecting does so by design, as the standby of a leader'),
	('starved_request', 2, 'ms', 'starved: time spent waiting for a CPU per request'),
	('starved_share', 0.4, 'share', 'starved: part of the time for which a CPU was wanted'),
	('starved_time', 1000, 'ms', 'starved: time spent waiting for a CPU, if there are few requests'),
	('starved_sessions', 0.25, 'sessions', 'starved: a finding has cost at least this part of one session''s time'),
	('short_starved_request', 0.04, 'ms', 'starved: minimum time spent waiting for a CPU per request, where starved_busy is less than starved_request'),
	('starved_busy', 0.25, 'share', 'starved: part of all time that is not idle, where it is less than starved_request'),
	('starved_client', 4, 'ratio', 'a client on this machine is assumed to have waited for a CPU at most this many times as long as its sessions'),
	('most_of_group', 0.5, 'share', 'if findings about single sessions explain this part of a client group''s loss, there is none about the group'),
	('recent_sessions', 50, 'count', 'number of sessions whose latest exchanges are read: those with the most requests'),
	('heads_sought', 20, 'count', 'blocks others: number of waiting sessions, the longest first, among which DDL in front of a queue is looked for'),
	('one_session', 0.9, 'share', 'if one session has this part of a client group''s loss, the finding is about the session'),
	('sessions_named', 3, 'count', 'a finding that more sessions of a client group share than this is reported for the group'),
	('not_counted', 0.1, 'share', 'not counted: part of the sessions that have not loaded the library'),
	('changed_share', 0.3, 'ratio', 'pgnetlat_compare(): a time or a rate differs by at least this part'),
	('changed_sessions', 0.05, 'sessions', 'pgnetlat_compare(): a difference costs or saves at least this part of one session''s time'),
	('burst_think', @BURST_THINK_NS@, 'ms', 'fixed, in the library: a client that thinks longer outside a transaction ends a burst'),
	('burst_fewest', @BURST_FEWEST@, 'count', 'fixed, in the library: the fewest executions for the rows of another statement'),
	('burst_runs', @BURST_RUNS@, 'count', 'fixed, in the library: statements that are told apart in a burst'),
	('burst_loop', @BURST_LOOP@, 'count', 'fixed, in the library: executions in a row that are a loop without another statement'),
	('burst_loop_think', @BURST_LOOP_THINK_NS@, 'ms', 'fixed, in the library: a client thinks no longer before each execution of such a loop')
  ) d (name, "default", unit, description)
  LEFT JOIN pgnetlat_threshold_settings s ON s.name = d.name;

COMMENT ON VIEW pgnetlat_thresholds IS 'thresholds of the rules of pgnetlat_diagnose(), and of pgnetlat_compare(), a row each; pgnetlat_set_threshold() sets one';
COMMENT ON COLUMN pgnetlat_thresholds.name IS 'name of the threshold';
COMMENT ON COLUMN pgnetlat_thresholds.value IS 'value that the rules use';
COMMENT ON COLUMN pgnetlat_thresholds."default" IS 'value unless another one is set';
COMMENT ON COLUMN pgnetlat_thresholds.unit IS 'ms, bytes/s, sessions (a part of one session''s time), share (from 0 to 1), ratio or count';
COMMENT ON COLUMN pgnetlat_thresholds.description IS 'which rules use it, and for what';

GRANT SELECT ON pgnetlat_thresholds TO PUBLIC;

CREATE FUNCTION pgnetlat_refuse_threshold(message text, hint text)
RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$BEGIN
	RAISE EXCEPTION USING MESSAGE = message, HINT = hint, ERRCODE = 'invalid_parameter_value';
END$$;

COMMENT ON FUNCTION pgnetlat_refuse_threshold(text, text) IS 'internal: raises an error';

CREATE FUNCTION pgnetlat_set_threshold(name text, value double precision)
RETURNS double precision
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
	SELECT pgnetlat_refuse_threshold(
			format('threshold "%s" does not exist', $1), 'SELECT name FROM pgnetlat_thresholds lists them.')
	 WHERE NOT EXISTS (SELECT FROM pgnetlat_thresholds t WHERE t.name = $1);
	SELECT pgnetlat_refuse_threshold(
			format('threshold "%s" cannot be set', $1), 'It is a constant of the library.')
	 WHERE $1 LIKE 'burst%';
	SELECT pgnetlat_refuse_threshold(
			format('invalid value for threshold "%s": %s', t.name, $2),
			CASE t.unit WHEN 'share' THEN 'A share is from 0 to 1.' ELSE format('Its unit is %s, and valid values are from 0 to 1e12.', t.unit) END)
	  FROM pgnetlat_thresholds t
	 WHERE t.name = $1 AND NOT $2 BETWEEN 0 AND CASE t.unit WHEN 'share' THEN 1 ELSE 1e12 END;
	DELETE FROM pgnetlat_threshold_settings s WHERE s.name = $1 AND $2 IS NULL;
	INSERT INTO pgnetlat_threshold_settings AS s (name, value)
	SELECT $1, $2 WHERE $2 IS NOT NULL
		ON CONFLICT ON CONSTRAINT pgnetlat_threshold_settings_pkey DO UPDATE SET value = excluded.value;
	SELECT t.value FROM pgnetlat_thresholds t WHERE t.name = $1;
END;

COMMENT ON FUNCTION pgnetlat_set_threshold(text, double precision) IS
	'sets a threshold of pgnetlat_diagnose(), from its next call on, and returns its value; NULL restores the default; an unknown name or a value out of range is an error; only for the owner of the extension, and for roles to which EXECUTE is granted';

REVOKE ALL ON FUNCTION pgnetlat_set_threshold(text, double precision) FROM PUBLIC;

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
RETURN (SELECT CASE WHEN current_setting('pgnetlat.hide_statements', true) = 'on' THEN NULL WHEN length(line) > 80 THEN left(line, 77) || '...' ELSE line END
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
COMMENT ON FUNCTION pgnetlat_query_start(text) IS 'internal: the beginning of a statement, on one line; NULL if the server''s log is not to show it';
COMMENT ON FUNCTION pgnetlat_prepared_text(name, timestamptz) IS 'internal: the oldest prepared transaction of a database, for sentences, and its name if it is the only one';
