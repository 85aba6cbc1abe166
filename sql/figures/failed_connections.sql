
-- ---------------------------------------------------------------------------
-- Connections that failed
-- ---------------------------------------------------------------------------

CREATE FUNCTION pgnetlat_failed_connections(
	OUT datname text,
	OUT usename text,
	OUT client_addr inet,
	OUT failed_connections bigint,
	OUT first_failed timestamptz,
	OUT last_failed timestamptz)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED COST 100 ROWS 10;

COMMENT ON FUNCTION pgnetlat_failed_connections() IS
	'connections that failed, by what they asked for and where they came from; no rows without pg_read_all_stats';

CREATE VIEW pgnetlat_failed_connections AS
SELECT * FROM pgnetlat_failed_connections();

COMMENT ON VIEW pgnetlat_failed_connections IS
	'connections that ended after authentication had begun and before the first ReadyForQuery, since the server was started or the latest reset; 128 rows are kept, of the most frequent and the latest; no rows without pg_read_all_stats';
COMMENT ON COLUMN pgnetlat_failed_connections.datname IS 'the database that was asked for, which need not exist; NULL in the row of those that were evicted';
COMMENT ON COLUMN pgnetlat_failed_connections.usename IS 'the role that was asked for, which need not exist; NULL in the row of those that were evicted';
COMMENT ON COLUMN pgnetlat_failed_connections.client_addr IS 'where they came from; NULL on a Unix-domain socket, and in the row of those that were evicted';
COMMENT ON COLUMN pgnetlat_failed_connections.failed_connections IS 'failed attempts: wrong password, rejected, no such database or role, too many connections, clients that hung up';
COMMENT ON COLUMN pgnetlat_failed_connections.first_failed IS 'when the first of them ended';
COMMENT ON COLUMN pgnetlat_failed_connections.last_failed IS 'when the latest of them ended';

GRANT SELECT ON pgnetlat_failed_connections TO PUBLIC;
