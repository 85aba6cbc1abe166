
-- ---------------------------------------------------------------------------
-- Replication
-- ---------------------------------------------------------------------------

CREATE FUNCTION pgnetlat_walsender_sockets(
	OUT pid integer,
	OUT rtt double precision,
	OUT srtt double precision,
	OUT retransmits bigint,
	OUT bytes_acked bigint,
	OUT bytes_queued bigint,
	OUT busy_time double precision,
	OUT receiver_limited_time double precision,
	OUT buffer_limited_time double precision)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED COST 100 ROWS 10;

COMMENT ON FUNCTION pgnetlat_walsender_sockets() IS
	'what the kernel counts for each walsender''s TCP socket, times in milliseconds; no rows without pg_read_all_stats';

CREATE VIEW pgnetlat_walsenders AS
SELECT r.pid,
	   r.usesysid,
	   r.usename,
	   r.application_name,
	   r.client_addr,
	   r.client_port,
	   r.backend_start,
	   r.state,
	   r.sync_state,
	   r.sync_priority,
	   pg_catalog.date_part('epoch', r.flush_lag) OPERATOR(pg_catalog.*) 1000 AS flush_lag,
	   s.rtt,
	   s.srtt,
	   s.retransmits,
	   s.bytes_acked,
	   s.bytes_queued,
	   t.total_time,
	   t.total_time OPERATOR(pg_catalog.-) s.busy_time AS sender_time,
	   s.busy_time,
	   s.busy_time OPERATOR(pg_catalog.-) s.receiver_limited_time
		   OPERATOR(pg_catalog.-) s.buffer_limited_time AS network_limited_time,
	   s.receiver_limited_time,
	   s.buffer_limited_time
  FROM pg_catalog.pg_stat_replication r
  LEFT JOIN pgnetlat_walsender_sockets() s ON s.pid OPERATOR(pg_catalog.=) r.pid
 -- in a short life, the kernel's ticks may add up to more than the whole
 CROSS JOIN LATERAL (
	   SELECT GREATEST(s.busy_time,
					   pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()
							OPERATOR(pg_catalog.-) r.backend_start)
					   OPERATOR(pg_catalog.*) 1000) AS total_time) t;

COMMENT ON VIEW pgnetlat_walsenders IS
	'pg_stat_replication with what the kernel counts for each walsender''s socket: where the time of the connection went';
COMMENT ON COLUMN pgnetlat_walsenders.pid IS 'process ID of the walsender';
COMMENT ON COLUMN pgnetlat_walsenders.usesysid IS 'OID of its role';
COMMENT ON COLUMN pgnetlat_walsenders.usename IS 'name of the role';
COMMENT ON COLUMN pgnetlat_walsenders.application_name IS 'as in pg_stat_replication';
COMMENT ON COLUMN pgnetlat_walsenders.client_addr IS 'address of the receiver; NULL on a Unix-domain socket';
COMMENT ON COLUMN pgnetlat_walsenders.client_port IS 'TCP port of the receiver; -1 on a Unix-domain socket';
COMMENT ON COLUMN pgnetlat_walsenders.backend_start IS 'when the walsender was started';
COMMENT ON COLUMN pgnetlat_walsenders.state IS 'as in pg_stat_replication: startup, catchup, streaming, backup or stopping';
COMMENT ON COLUMN pgnetlat_walsenders.sync_state IS 'as in pg_stat_replication: async, potential, sync or quorum';
COMMENT ON COLUMN pgnetlat_walsenders.sync_priority IS 'as in pg_stat_replication; 0 if commits do not wait for it';
COMMENT ON COLUMN pgnetlat_walsenders.flush_lag IS 'milliseconds: as in pg_stat_replication, from when WAL was sent until its flush was confirmed: the round trip plus the receiver''s work; NULL if core has none';
COMMENT ON COLUMN pgnetlat_walsenders.rtt IS 'milliseconds: round-trip time to the receiver, the kernel''s windowed minimum; NULL if the kernel has none or this is not a TCP connection, and then so are the columns below except total_time';
COMMENT ON COLUMN pgnetlat_walsenders.srtt IS 'milliseconds: the kernel''s smoothed round-trip time, which includes delayed acknowledgements';
COMMENT ON COLUMN pgnetlat_walsenders.retransmits IS 'TCP segments sent again, including those that the receiver had already received';
COMMENT ON COLUMN pgnetlat_walsenders.bytes_acked IS 'bytes that the receiver''s kernel has acknowledged, those of encryption included';
COMMENT ON COLUMN pgnetlat_walsenders.bytes_queued IS 'bytes that the walsender has handed over and the receiver''s kernel has not acknowledged';
COMMENT ON COLUMN pgnetlat_walsenders.total_time IS 'milliseconds: since backend_start; the sum of sender_time and busy_time';
COMMENT ON COLUMN pgnetlat_walsenders.sender_time IS 'milliseconds: nothing was in flight: the walsender had nothing to send, or was not ready to send it';
COMMENT ON COLUMN pgnetlat_walsenders.busy_time IS 'milliseconds: the receiver''s kernel had not acknowledged all bytes; in the kernel''s ticks; the sum of the three parts that follow';
COMMENT ON COLUMN pgnetlat_walsenders.network_limited_time IS 'milliseconds: part of busy_time: limited by the round trip or the bandwidth of the path';
COMMENT ON COLUMN pgnetlat_walsenders.receiver_limited_time IS 'milliseconds: part of busy_time: the receiver''s window was closed';
COMMENT ON COLUMN pgnetlat_walsenders.buffer_limited_time IS 'milliseconds: part of busy_time: limited by this host''s send buffer';

CREATE VIEW pgnetlat_replication AS
SELECT w.application_name,
	   w.client_addr,
	   pg_catalog.count(*) AS walsenders,
	   pg_catalog.max(w.flush_lag) AS flush_lag,
	   pg_catalog.min(w.rtt) AS rtt,
	   pg_catalog.sum(w.retransmits)::bigint AS retransmits,
	   pg_catalog.sum(w.bytes_acked)::bigint AS bytes_acked,
	   pg_catalog.sum(w.bytes_queued)::bigint AS bytes_queued,
	   pg_catalog.sum(w.total_time) AS total_time,
	   pg_catalog.sum(w.sender_time) AS sender_time,
	   pg_catalog.sum(w.network_limited_time) AS network_limited_time,
	   pg_catalog.sum(w.receiver_limited_time) AS receiver_limited_time,
	   pg_catalog.sum(w.buffer_limited_time) AS buffer_limited_time
  FROM pgnetlat_walsenders w
 GROUP BY w.application_name, w.client_addr;

COMMENT ON VIEW pgnetlat_replication IS
	'pgnetlat_walsenders by receiver, for exporters: sums over the current connections';
COMMENT ON COLUMN pgnetlat_replication.application_name IS 'application_name of the walsenders';
COMMENT ON COLUMN pgnetlat_replication.client_addr IS 'address of the receiver; NULL on a Unix-domain socket';
COMMENT ON COLUMN pgnetlat_replication.walsenders IS 'number of walsenders with this name and address';
COMMENT ON COLUMN pgnetlat_replication.flush_lag IS 'milliseconds: the longest among these walsenders';
COMMENT ON COLUMN pgnetlat_replication.rtt IS 'milliseconds: the shortest among these walsenders';
COMMENT ON COLUMN pgnetlat_replication.retransmits IS 'sum: TCP segments sent again';
COMMENT ON COLUMN pgnetlat_replication.bytes_acked IS 'sum: bytes that the receivers'' kernels have acknowledged';
COMMENT ON COLUMN pgnetlat_replication.bytes_queued IS 'sum: bytes handed over and not acknowledged';
COMMENT ON COLUMN pgnetlat_replication.total_time IS 'milliseconds: sum: since backend_start';
COMMENT ON COLUMN pgnetlat_replication.sender_time IS 'milliseconds: sum: nothing was in flight';
COMMENT ON COLUMN pgnetlat_replication.network_limited_time IS 'milliseconds: sum: bytes were in flight, limited by the path';
COMMENT ON COLUMN pgnetlat_replication.receiver_limited_time IS 'milliseconds: sum: bytes were in flight, limited by the receiver';
COMMENT ON COLUMN pgnetlat_replication.buffer_limited_time IS 'milliseconds: sum: bytes were in flight, limited by the send buffer';

GRANT SELECT ON pgnetlat_walsenders, pgnetlat_replication TO PUBLIC;
