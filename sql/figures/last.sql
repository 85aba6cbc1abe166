
-- ---------------------------------------------------------------------------
-- The caller's own latest request
-- ---------------------------------------------------------------------------

CREATE VIEW pgnetlat_last AS
SELECT r.start, r.queryid, r.statements, r.rows, r.bytes_sent, r.exec_time, r.send_time, r.recv_time, s.rtt,
	   r.exec_time + r.send_time + r.recv_time + coalesce(s.rtt, 0) AS application_time,
	   r.wait_time, r.network_time, r.client_time, r.idle_time
  FROM pgnetlat_recent(pg_backend_pid()) r
  LEFT JOIN (SELECT rtt FROM pgnetlat_sessions() WHERE pid = pg_backend_pid()) s ON true
 ORDER BY r.start DESC
 LIMIT 1;

COMMENT ON VIEW pgnetlat_last IS
	'the session''s own latest request before this one, one row; none if it is the first, or the session is not counted; times in milliseconds';
COMMENT ON COLUMN pgnetlat_last.start IS 'when the request was read';
COMMENT ON COLUMN pgnetlat_last.queryid IS 'query identifier of its last statement; NULL if none has one';
COMMENT ON COLUMN pgnetlat_last.statements IS 'statements completed in it';
COMMENT ON COLUMN pgnetlat_last.rows IS 'rows returned or affected';
COMMENT ON COLUMN pgnetlat_last.bytes_sent IS 'bytes of the response, before encryption';
COMMENT ON COLUMN pgnetlat_last.exec_time IS 'milliseconds: the server was working';
COMMENT ON COLUMN pgnetlat_last.send_time IS 'milliseconds: handing bytes to the socket';
COMMENT ON COLUMN pgnetlat_last.recv_time IS 'milliseconds: waiting for more data from the client';
COMMENT ON COLUMN pgnetlat_last.rtt IS 'milliseconds: the path''s round-trip time, as in pgnetlat_sessions; NULL on a Unix-domain socket';
COMMENT ON COLUMN pgnetlat_last.application_time IS 'milliseconds: time that the application waited for the response: exec_time + send_time + recv_time + rtt; what its own clock shows beyond that is the driver''s time';
COMMENT ON COLUMN pgnetlat_last.wait_time IS 'milliseconds: the wait between it and this request';
COMMENT ON COLUMN pgnetlat_last.network_time IS 'milliseconds: part of wait_time: the round trip';
COMMENT ON COLUMN pgnetlat_last.client_time IS 'milliseconds: part of wait_time: the client was thinking';
COMMENT ON COLUMN pgnetlat_last.idle_time IS 'milliseconds: part of wait_time: longer than pgnetlat.idle_threshold outside a transaction';

GRANT SELECT ON pgnetlat_last TO PUBLIC;
