
-- ---------------------------------------------------------------------------
-- Blockers: who held locks that others waited for
-- ---------------------------------------------------------------------------

CREATE FUNCTION pgnetlat_blockers(
	OUT datid oid,
	OUT datname name,
	OUT usesysid oid,
	OUT usename name,
	OUT application_name text,
	OUT client_addr inet,
	OUT backend_type text,
	OUT queryid bigint,
	OUT blocked_sessions bigint,
	OUT blocked_sessions_max bigint,
	OUT blocked_time double precision,
	OUT blocked_by_exec_time double precision,
	OUT blocked_by_send_time double precision,
	OUT blocked_by_recv_time double precision,
	OUT blocked_by_network_time double precision,
	OUT blocked_by_client_time double precision,
	OUT blocked_by_other_time double precision,
	OUT blocked_time_max double precision,
	OUT stats_since timestamptz)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED COST 100 ROWS 100;

COMMENT ON FUNCTION pgnetlat_blockers() IS
	'who blocked others with locks: by database, role, application, address, type of process and statement; times in milliseconds; all but the holder''s identity is NULL where the caller may not see it';

CREATE VIEW pgnetlat_blockers AS
SELECT * FROM pgnetlat_blockers();

COMMENT ON VIEW pgnetlat_blockers IS
	'who blocked others with locks, after which statement, and what the holder was doing';
COMMENT ON COLUMN pgnetlat_blockers.datid IS 'OID of the holder''s database; NULL if it has none';
COMMENT ON COLUMN pgnetlat_blockers.datname IS 'name of the database; NULL if it has been dropped';
COMMENT ON COLUMN pgnetlat_blockers.usesysid IS 'OID of the holder''s role; NULL if it has none';
COMMENT ON COLUMN pgnetlat_blockers.usename IS 'name of the role; NULL if it has been dropped';
COMMENT ON COLUMN pgnetlat_blockers.application_name IS 'application_name of the holder; (evicted) in the row of evicted entries';
COMMENT ON COLUMN pgnetlat_blockers.client_addr IS 'address of the holder''s client; NULL on a Unix-domain socket or if it has none';
COMMENT ON COLUMN pgnetlat_blockers.backend_type IS 'as in pg_stat_activity, or prepared transaction; NULL in the row of evicted entries';
COMMENT ON COLUMN pgnetlat_blockers.queryid IS 'query identifier of the statement that the holder was executing, or had executed last; NULL if not known';
COMMENT ON COLUMN pgnetlat_blockers.blocked_sessions IS 'sessions that the holder blocks now';
COMMENT ON COLUMN pgnetlat_blockers.blocked_sessions_max IS 'most sessions that the holder blocked at any one time';
COMMENT ON COLUMN pgnetlat_blockers.blocked_time IS 'milliseconds: time for which the holder blocked sessions, including those queued behind other waiters; sampled; the sum of the parts that follow';
COMMENT ON COLUMN pgnetlat_blockers.blocked_by_exec_time IS 'milliseconds: the holder was executing';
COMMENT ON COLUMN pgnetlat_blockers.blocked_by_send_time IS 'milliseconds: the holder was handing bytes to its socket';
COMMENT ON COLUMN pgnetlat_blockers.blocked_by_recv_time IS 'milliseconds: the holder was waiting for more data from its client inside a request';
COMMENT ON COLUMN pgnetlat_blockers.blocked_by_network_time IS 'milliseconds: the holder was waiting for its client: the round trip';
COMMENT ON COLUMN pgnetlat_blockers.blocked_by_client_time IS 'milliseconds: the holder was waiting for its client, which was thinking';
COMMENT ON COLUMN pgnetlat_blockers.blocked_by_other_time IS 'milliseconds: the rest; all of it for holders that are not client sessions';
COMMENT ON COLUMN pgnetlat_blockers.blocked_time_max IS 'milliseconds: longest time for which the holder blocked one session';
COMMENT ON COLUMN pgnetlat_blockers.stats_since IS 'when counting began for this row';

CREATE FUNCTION pgnetlat_blockers_last(duration interval DEFAULT '1 min')
RETURNS SETOF pgnetlat_blockers
AS 'MODULE_PATHNAME', 'pgnetlat_blockers'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED COST 100 ROWS 100;

COMMENT ON FUNCTION pgnetlat_blockers_last(interval) IS
	'pgnetlat_blockers over the given time up to now, at most 15 minutes: since stats_since; blocked_sessions_max and blocked_time_max are NULL';

GRANT SELECT ON pgnetlat_blockers TO PUBLIC;
