
-- ---------------------------------------------------------------------------
-- Flight recorder: the last exchanges of one session
-- ---------------------------------------------------------------------------

CREATE FUNCTION pgnetlat_recent(
	IN pid integer,
	OUT start timestamptz,
	OUT exec_time double precision,
	OUT send_time double precision,
	OUT recv_time double precision,
	OUT wait_time double precision,
	OUT network_time double precision,
	OUT client_time double precision,
	OUT idle_time double precision,
	OUT queryid bigint,
	OUT statements bigint,
	OUT rows bigint,
	OUT bytes_sent bigint,
	OUT xact_status "char",
	OUT pipelined boolean)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED COST 100 ROWS 50;

COMMENT ON FUNCTION pgnetlat_recent(integer) IS
	'the last exchanges of the session with this process ID, as far as its flight recorder holds them completely, oldest first, each with the wait after it; times in milliseconds';
