
-- ---------------------------------------------------------------------------
-- What is wrong, and what to do about it
-- ---------------------------------------------------------------------------

CREATE FUNCTION pgnetlat_diagnose(
	IN duration interval DEFAULT '1 min',
	OUT subject_kind text,
	OUT subject text,
	OUT verdict text,
	OUT evidence text,
	OUT advice text,
	OUT lost_time double precision,
	OUT saving double precision,
	OUT saving_share double precision,
	OUT pid integer,
	OUT queryid bigint,
	OUT usesysid oid,
	OUT usename name,
	OUT datid oid,
	OUT datname name,
	OUT application_name text,
	OUT client_addr inet)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED COST 1000 ROWS 20;

COMMENT ON FUNCTION pgnetlat_diagnose(interval) IS
	'what is wrong, the most expensive first, over the given time up to now, at most 15 minutes: one row per finding, with figures and the next step; lost_time and saving in milliseconds per second; nothing about sessions that the caller may not see';
