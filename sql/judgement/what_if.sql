
-- ---------------------------------------------------------------------------
-- Predictions
-- ---------------------------------------------------------------------------

CREATE FUNCTION pgnetlat_what_if(
	IN rtt double precision DEFAULT NULL,
	IN batch double precision DEFAULT NULL,
	IN server_speed double precision DEFAULT NULL,
	IN sessions integer DEFAULT NULL,
	IN duration interval DEFAULT '1 min',
	OUT datid oid,
	OUT datname name,
	OUT usesysid oid,
	OUT usename name,
	OUT application_name text,
	OUT client_addr inet,
	OUT busy_sessions double precision,
	OUT transactions bigint,
	OUT requests bigint,
	OUT round_trips double precision,
	OUT server_time double precision,
	OUT network_time double precision,
	OUT client_time double precision,
	OUT transaction_time double precision,
	OUT throughput double precision,
	OUT predicted_transaction_time double precision,
	OUT predicted_throughput double precision,
	OUT predicted_throughput_low double precision,
	OUT predicted_throughput_high double precision,
	OUT change double precision)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 1000 ROWS 100;

COMMENT ON FUNCTION pgnetlat_what_if(double precision, double precision, double precision, integer, interval) IS
	'by client group, what a transaction took in the window, in milliseconds, and what is predicted if round trips took rtt milliseconds, batch statements shared a round trip, the server were server_speed times as fast, or there were so many sessions; NULL: as it is';

CREATE FUNCTION pgnetlat_what_if_session(
	IN pid integer,
	IN rtt double precision DEFAULT NULL,
	IN batch double precision DEFAULT NULL,
	IN server_speed double precision DEFAULT NULL,
	IN duration interval DEFAULT '1 min',
	OUT transactions bigint,
	OUT requests bigint,
	OUT round_trips double precision,
	OUT server_time double precision,
	OUT network_time double precision,
	OUT client_time double precision,
	OUT transaction_time double precision,
	OUT throughput double precision,
	OUT predicted_transaction_time double precision,
	OUT predicted_throughput double precision,
	OUT predicted_throughput_low double precision,
	OUT predicted_throughput_high double precision,
	OUT change double precision)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 100 ROWS 1;

COMMENT ON FUNCTION pgnetlat_what_if_session(integer, double precision, double precision, double precision, interval) IS
	'the same for the session with this process ID';
