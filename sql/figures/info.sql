
-- ---------------------------------------------------------------------------
-- The extension itself
-- ---------------------------------------------------------------------------

CREATE FUNCTION pgnetlat_info(
	OUT version text,
	OUT loaded_by text,
	OUT problem text,
	OUT counted_sessions integer,
	OUT client_sessions integer,
	OUT sampler_pid integer,
	OUT sampler_start timestamptz,
	OUT sampler_last_tick timestamptz,
	OUT sampler_ticks bigint,
	OUT sampler_cpu_time double precision,
	OUT sampler_errors bigint,
	OUT sampler_last_error timestamptz,
	OUT statements bigint,
	OUT statements_max bigint,
	OUT statements_evicted bigint,
	OUT clients bigint,
	OUT clients_max bigint,
	OUT clients_evicted bigint,
	OUT shared_memory_bytes bigint,
	OUT stats_reset timestamptz,
	OUT blockers bigint,
	OUT blockers_max bigint,
	OUT blockers_evicted bigint,
	OUT processors double precision)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED COST 100 ROWS 1;

COMMENT ON FUNCTION pgnetlat_info() IS
	'version, how the library was loaded, health of the sampler (sampler_pid is NULL while it is down), evictions and memory';

CREATE VIEW pgnetlat_info AS
SELECT * FROM pgnetlat_info();

COMMENT ON VIEW pgnetlat_info IS
	'the extension itself: version, state of the sampler, evictions and memory';
COMMENT ON COLUMN pgnetlat_info.version IS 'version of the library that the server has loaded';
COMMENT ON COLUMN pgnetlat_info.loaded_by IS 'server (shared_preload_libraries), or sessions: then only sessions that have loaded the library are counted';
COMMENT ON COLUMN pgnetlat_info.problem IS 'if sessions load the library, what the server could not provide: shared memory (then the columns after this one are NULL) or a background worker; NULL if it provided both';
COMMENT ON COLUMN pgnetlat_info.counted_sessions IS 'client sessions that are connected and counted';
COMMENT ON COLUMN pgnetlat_info.client_sessions IS 'client sessions that are connected';
COMMENT ON COLUMN pgnetlat_info.sampler_pid IS 'process ID of the background worker; NULL while it is down';
COMMENT ON COLUMN pgnetlat_info.sampler_start IS 'when the sampler was started; NULL while it is down';
COMMENT ON COLUMN pgnetlat_info.sampler_last_tick IS 'when the sampler last took a sample without an error';
COMMENT ON COLUMN pgnetlat_info.sampler_ticks IS 'samples taken since the server was started; a few per second while no session is active';
COMMENT ON COLUMN pgnetlat_info.sampler_cpu_time IS 'milliseconds: CPU time that the sampler has used';
COMMENT ON COLUMN pgnetlat_info.sampler_errors IS 'errors of the sampler since the server was started; one a minute is in the server''s log';
COMMENT ON COLUMN pgnetlat_info.sampler_last_error IS 'when the sampler last met an error: if this is later than sampler_last_tick, the sampler is failing';
COMMENT ON COLUMN pgnetlat_info.statements IS 'entries in use for pgnetlat_statements';
COMMENT ON COLUMN pgnetlat_info.statements_max IS 'maximum number of entries: pgnetlat.max_statements';
COMMENT ON COLUMN pgnetlat_info.statements_evicted IS 'entries evicted so far';
COMMENT ON COLUMN pgnetlat_info.clients IS 'entries in use for pgnetlat_clients';
COMMENT ON COLUMN pgnetlat_info.clients_max IS 'maximum number of entries: pgnetlat.max_clients';
COMMENT ON COLUMN pgnetlat_info.clients_evicted IS 'entries evicted so far';
COMMENT ON COLUMN pgnetlat_info.shared_memory_bytes IS 'shared memory in use';
COMMENT ON COLUMN pgnetlat_info.stats_reset IS 'time of the latest reset';
COMMENT ON COLUMN pgnetlat_info.blockers IS 'entries in use for pgnetlat_blockers';
COMMENT ON COLUMN pgnetlat_info.blockers_max IS 'maximum number of entries: pgnetlat.max_blockers';
COMMENT ON COLUMN pgnetlat_info.processors IS 'CPUs that the server may use; not a whole number if a control group limits it so';
COMMENT ON COLUMN pgnetlat_info.blockers_evicted IS 'entries evicted so far';

CREATE FUNCTION pgnetlat_reset()
RETURNS timestamptz
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED COST 1000;

COMMENT ON FUNCTION pgnetlat_reset() IS
	'discards everything counted so far, in every session; returns the time of the reset';

REVOKE ALL ON FUNCTION pgnetlat_reset() FROM PUBLIC;

GRANT SELECT ON pgnetlat_info TO PUBLIC;
