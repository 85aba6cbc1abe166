
-- ---------------------------------------------------------------------------
-- Connections that failed
-- ---------------------------------------------------------------------------

CREATE FUNCTION pgnetlat_failed_connections(
	OUT datname text,
	OUT usename text,
	OUT client_addr inet,
	OUT failed_connections bigint,
	OUT first_failed timestamptz,
	OUT last_failed timestamptz,
	OUT last_sqlstate text,
	OUT failed_last_minute bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED COST 100 ROWS 10;

COMMENT ON FUNCTION pgnetlat_failed_connections() IS
	'failed connections by requested names and client address; no rows without pg_read_all_stats';

CREATE VIEW pgnetlat_failed_connections AS
SELECT * FROM pgnetlat_failed_connections();

COMMENT ON VIEW pgnetlat_failed_connections IS
	'connections that ended after authentication had begun and before the first ReadyForQuery, since server start or the latest reset; the 128 most frequent and latest rows are kept; no rows without pg_read_all_stats';
COMMENT ON COLUMN pgnetlat_failed_connections.datname IS 'requested database, which need not exist; NULL in the row of evicted entries';
COMMENT ON COLUMN pgnetlat_failed_connections.usename IS 'requested role, which need not exist; NULL in the row of evicted entries';
COMMENT ON COLUMN pgnetlat_failed_connections.client_addr IS 'address of the client; NULL on a Unix-domain socket, and in the row of evicted entries';
COMMENT ON COLUMN pgnetlat_failed_connections.failed_connections IS 'failed attempts: wrong password, rejected, no such database or role, too many connections, clients that disconnected';
COMMENT ON COLUMN pgnetlat_failed_connections.first_failed IS 'when the first one failed';
COMMENT ON COLUMN pgnetlat_failed_connections.last_failed IS 'when the latest one failed';
COMMENT ON COLUMN pgnetlat_failed_connections.last_sqlstate IS 'SQLSTATE of the error with which the latest one was refused; NULL if the client disconnected';
COMMENT ON COLUMN pgnetlat_failed_connections.failed_last_minute IS 'failed attempts of the last minute, accurate to ten seconds; 0 in the row of evicted entries';

GRANT SELECT ON pgnetlat_failed_connections TO PUBLIC;
