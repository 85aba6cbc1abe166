
-- ---------------------------------------------------------------------------
-- Pools: how many sessions are busy at once
-- ---------------------------------------------------------------------------

CREATE FUNCTION pgnetlat_pools(
	OUT datid oid,
	OUT datname name,
	OUT usesysid oid,
	OUT usename name,
	OUT sessions bigint,
	OUT sessions_max bigint,
	OUT busy bigint,
	OUT busy_avg double precision,
	OUT busy_p50 bigint,
	OUT busy_p95 bigint,
	OUT busy_p99 bigint,
	OUT busy_p999 bigint,
	OUT busy_max bigint,
	OUT pool_size bigint,
	OUT stats_since timestamptz,
	OUT window_time double precision)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED COST 1000 ROWS 20;

COMMENT ON FUNCTION pgnetlat_pools() IS
	'how many sessions are busy at once, by database and role, and for all sessions together; everything but the number of sessions is NULL where the caller may not see it';

CREATE VIEW pgnetlat_pools AS
SELECT * FROM pgnetlat_pools();

COMMENT ON VIEW pgnetlat_pools IS
	'how many sessions are busy at once, by database and role, and for all sessions together: the size that a pool of server connections would need';
COMMENT ON COLUMN pgnetlat_pools.datid IS 'OID of the database; NULL in the row of all sessions and in that of evicted pools';
COMMENT ON COLUMN pgnetlat_pools.datname IS 'name of the database; NULL if it has been dropped, and in the row of all sessions; (evicted) in that of evicted pools';
COMMENT ON COLUMN pgnetlat_pools.usesysid IS 'OID of the role; NULL in the row of all sessions and in that of evicted pools';
COMMENT ON COLUMN pgnetlat_pools.usename IS 'name of the role; NULL if it has been dropped, in the row of all sessions and in that of evicted pools';
COMMENT ON COLUMN pgnetlat_pools.sessions IS 'sessions connected now';
COMMENT ON COLUMN pgnetlat_pools.sessions_max IS 'most sessions at any one time';
COMMENT ON COLUMN pgnetlat_pools.busy IS 'sessions in a request or in a transaction, at the latest sample; NULL while the sampler is down';
COMMENT ON COLUMN pgnetlat_pools.busy_avg IS 'average number of busy sessions, sampled';
COMMENT ON COLUMN pgnetlat_pools.busy_p50 IS 'number of busy sessions that was not exceeded for 50 % of the time; exact up to 63, above that at most a sixteenth too high; NULL, like the other figures of busy sessions, if nothing was sampled, and in the row of evicted pools';
COMMENT ON COLUMN pgnetlat_pools.busy_p95 IS 'the same for 95 % of the time';
COMMENT ON COLUMN pgnetlat_pools.busy_p99 IS 'the same for 99 % of the time';
COMMENT ON COLUMN pgnetlat_pools.busy_p999 IS 'the same for 99.9 % of the time';
COMMENT ON COLUMN pgnetlat_pools.busy_max IS 'most sessions busy at any one sample';
COMMENT ON COLUMN pgnetlat_pools.pool_size IS 'server connections that transaction pooling would need to serve these sessions without a wait for 99.9 % of the time; at least so many if busy_max = sessions, since then requests may have queued where the server cannot see them';
COMMENT ON COLUMN pgnetlat_pools.stats_since IS 'when counting began for this row';
COMMENT ON COLUMN pgnetlat_pools.window_time IS 'milliseconds since stats_since';

CREATE FUNCTION pgnetlat_pools_last(duration interval DEFAULT '1 min')
RETURNS SETOF pgnetlat_pools
AS 'MODULE_PATHNAME', 'pgnetlat_pools'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED COST 1000 ROWS 20;

COMMENT ON FUNCTION pgnetlat_pools_last(interval) IS
	'pgnetlat_pools over the given time up to now, at most 15 minutes: since stats_since, which was window_time milliseconds ago; sessions_max is NULL';

GRANT SELECT ON pgnetlat_pools TO PUBLIC;
