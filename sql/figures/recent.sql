
-- ---------------------------------------------------------------------------
-- Flight recorder: the last exchanges of one session
-- ---------------------------------------------------------------------------

CREATE FUNCTION pgnetlat_recent(
	IN pid integer,
	OUT start timestamptz,                     -- when the request was read
	OUT exec_time double precision,            -- milliseconds: the server was working
	OUT send_time double precision,            -- milliseconds: handing bytes to the socket
	OUT recv_time double precision,            -- milliseconds: waiting for more data from the client
	OUT wait_time double precision,            -- milliseconds: the wait after the exchange
	OUT network_time double precision,         -- milliseconds: part of wait_time: the round trip
	OUT client_time double precision,          -- milliseconds: part of wait_time: the client was thinking
	OUT idle_time double precision,            -- milliseconds: part of wait_time: longer than pgnetlat.idle_threshold outside a transaction
	OUT queryid bigint,                        -- query identifier of its last statement; NULL if none has one
	OUT statements bigint,                     -- statements completed in it
	OUT rows bigint,                           -- rows returned or affected
	OUT bytes_sent bigint,                     -- bytes of the response, before encryption
	OUT xact_status "char",                    -- after the exchange: I outside a transaction, T inside, E inside a failed one
	OUT pipelined bigint,                      -- 1 if its request had arrived when the previous response left, otherwise 0
	OUT fetched bigint,                        -- 1 if it was a FETCH, otherwise 0
	OUT overhead bigint,                       -- 1 if it did no work: SET, SHOW, DISCARD, DEALLOCATE, or a constant such as SELECT 1; otherwise 0
	OUT trace_id text)                         -- trace of a tracer that puts a traceparent into application_name; NULL if none
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED COST 100 ROWS 50;

COMMENT ON FUNCTION pgnetlat_recent(integer) IS
	'the latest exchanges of the session with this process ID, as far as its flight recorder holds them completely: oldest first, each with the wait after it; times in milliseconds';
