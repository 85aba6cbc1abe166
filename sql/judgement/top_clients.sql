
-- ---------------------------------------------------------------------------
-- The busiest clients, for people
-- ---------------------------------------------------------------------------

CREATE FUNCTION pgnetlat_top_clients(
	IN duration interval DEFAULT '1 min',
	IN max_rows integer DEFAULT 20,
	OUT database name,
	OUT role name,
	OUT application text,
	OUT client_addr inet,
	OUT sessions bigint,
	OUT busy numeric,
	OUT rate numeric,
	OUT rtt numeric,
	OUT server integer,
	OUT network integer,
	OUT client integer)
RETURNS SETOF record
LANGUAGE sql VOLATILE PARALLEL RESTRICTED COST 1000 ROWS 20
BEGIN ATOMIC
	SELECT c.datname, c.usename, c.application_name, c.client_addr, c.sessions,
		   round((b.time / nullif(c.window_time, 0))::numeric, 2),
		   round((1000 * c.requests / nullif(c.window_time, 0))::numeric, 1),
		   round(c.rtt::numeric, 2),
		   -- rounded so that they add up to 100
		   round(100 * c.server_share)::integer,
		   round(100 * (c.server_share + c.network_share))::integer - round(100 * c.server_share)::integer,
		   100 - round(100 * (c.server_share + c.network_share))::integer
	  FROM pgnetlat_clients_last(pgnetlat_top_clients.duration) c,
		   LATERAL (SELECT c.total_time - c.idle_time - c.pending_time AS time) b
	 WHERE b.time > 0
	 ORDER BY b.time DESC, c.requests DESC
	 LIMIT greatest(pgnetlat_top_clients.max_rows, 0);
END;

COMMENT ON FUNCTION pgnetlat_top_clients(interval, integer) IS
	'for interactive use: the client groups that were busiest over the given time up to now; columns as in the view of this name';

CREATE VIEW pgnetlat_top_clients AS
SELECT * FROM pgnetlat_top_clients();

COMMENT ON VIEW pgnetlat_top_clients IS
	'for interactive use: the 20 client groups that were busiest in the last minute';
COMMENT ON COLUMN pgnetlat_top_clients.database IS 'name of the database';
COMMENT ON COLUMN pgnetlat_top_clients.role IS 'name of the role';
COMMENT ON COLUMN pgnetlat_top_clients.application IS 'application_name, as in pgnetlat_clients';
COMMENT ON COLUMN pgnetlat_top_clients.client_addr IS 'address of the clients, as in pgnetlat_clients';
COMMENT ON COLUMN pgnetlat_top_clients.sessions IS 'sessions connected now';
COMMENT ON COLUMN pgnetlat_top_clients.busy IS 'average number of sessions that were not idle';
COMMENT ON COLUMN pgnetlat_top_clients.rate IS 'requests per second';
COMMENT ON COLUMN pgnetlat_top_clients.rtt IS 'milliseconds: round-trip time; NULL if none was measured';
COMMENT ON COLUMN pgnetlat_top_clients.server IS 'server_share of pgnetlat_clients, in percent';
COMMENT ON COLUMN pgnetlat_top_clients.network IS 'network_share of pgnetlat_clients, in percent';
COMMENT ON COLUMN pgnetlat_top_clients.client IS 'client_share of pgnetlat_clients, in percent';

GRANT SELECT ON pgnetlat_top_clients TO PUBLIC;
