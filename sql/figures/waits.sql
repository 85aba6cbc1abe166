
-- ---------------------------------------------------------------------------
-- Waits: the sampled profile of each connected session
-- ---------------------------------------------------------------------------

CREATE FUNCTION pgnetlat_waits(
	OUT pid integer,
	OUT state text,
	OUT wait_event_type text,
	OUT wait_event text,
	OUT samples bigint,
	OUT "time" double precision)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED COST 100 ROWS 500;

COMMENT ON FUNCTION pgnetlat_waits() IS
	'sampled wait events by session and state; CPU where there is no wait event; time in milliseconds';

CREATE VIEW pgnetlat_waits AS
SELECT * FROM pgnetlat_waits();

COMMENT ON VIEW pgnetlat_waits IS
	'sampled wait events of each connected session, by state; without pg_read_all_stats, no rows for other roles'' sessions';
COMMENT ON COLUMN pgnetlat_waits.pid IS 'process ID of the backend';
COMMENT ON COLUMN pgnetlat_waits.state IS 'state of the session, as in pgnetlat_sessions; NULL in the row whose wait_event is other';
COMMENT ON COLUMN pgnetlat_waits.wait_event_type IS 'as in pg_stat_activity; CPU where there is no wait event; NULL in the row whose wait_event is other';
COMMENT ON COLUMN pgnetlat_waits.wait_event IS 'as in pg_stat_activity; CPU where there is no wait event; other for the events for which the session has no room';
COMMENT ON COLUMN pgnetlat_waits.samples IS 'number of samples';
COMMENT ON COLUMN pgnetlat_waits."time" IS 'milliseconds: the time that the samples stand for';

GRANT SELECT ON pgnetlat_waits TO PUBLIC;
