
-- ---------------------------------------------------------------------------
-- What is happening now
-- ---------------------------------------------------------------------------

CREATE FUNCTION pgnetlat_now(
	OUT pid integer,
	OUT client text,
	OUT state text,
	OUT rate double precision,
	OUT rtt double precision,
	OUT server_net_client text,
	OUT doing text)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED COST 1000 ROWS 20;

COMMENT ON FUNCTION pgnetlat_now() IS
	'for interactive use: the other sessions that are not idle, over the last 10 seconds, the worst first; at most 110 columns wide in psql';

CREATE VIEW pgnetlat_now AS
SELECT n.pid,
	   n.client,
	   n.state,
	   n.rate,
	   n.rtt,
	   n.server_net_client,
	   n.doing
  FROM pgnetlat_now() n;

COMMENT ON VIEW pgnetlat_now IS
	'for interactive use: the other sessions that are not idle, over the last 10 seconds, the worst first; at most 110 columns wide in psql';
COMMENT ON COLUMN pgnetlat_now.pid IS 'process ID of the backend';
COMMENT ON COLUMN pgnetlat_now.client IS 'application_name, or the role if that is empty, and the address';
COMMENT ON COLUMN pgnetlat_now.state IS 'as in pgnetlat_sessions, and for how long; in xact: waiting in a transaction';
COMMENT ON COLUMN pgnetlat_now.rate IS 'requests per second';
COMMENT ON COLUMN pgnetlat_now.rtt IS 'milliseconds: round-trip time; NULL on a Unix-domain socket';
COMMENT ON COLUMN pgnetlat_now.server_net_client IS 'percent of the time that was neither idle nor pending: server, network, client; and as a bar (# server, ! server held up by a lock, another server or for want of a processor, = network, . client); NULL if there was none';
COMMENT ON COLUMN pgnetlat_now.doing IS 'the session whose lock it waits for and what that one is doing, or that it waits for a standby or another server, or its wait event; and the beginning of its query, or of its latest one if it is not executing';

GRANT SELECT ON pgnetlat_now TO PUBLIC;
