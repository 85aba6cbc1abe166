
-- ---------------------------------------------------------------------------
-- Replication
-- ---------------------------------------------------------------------------

CREATE FUNCTION pgnetlat_walsenders(
	OUT pid integer,
	OUT usesysid oid,
	OUT application_name text,
	OUT client_addr inet,
	OUT client_port integer,
	OUT backend_start timestamptz,
	OUT kind text,
	OUT transport text,
	OUT state text,
	OUT stats_since timestamptz,
	OUT total_time double precision,
	OUT send_time double precision,
	OUT send_network_time double precision,
	OUT send_client_time double precision,
	OUT busy_time double precision,
	OUT idle_time double precision,
	OUT pending_time double precision,
	OUT bytes_sent bigint,
	OUT bytes_received bigint,
	OUT packets_sent bigint,
	OUT packets_received bigint,
	OUT retransmits bigint,
	OUT rtt double precision,
	OUT srtt double precision,
	OUT rtt_at timestamptz,
	OUT replies bigint,
	OUT flushes bigint,
	OUT flush_time double precision,
	OUT flush_network_time double precision,
	OUT flush_standby_time double precision,
	OUT flush_lag double precision,
	OUT sync_priority integer)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED COST 100 ROWS 10;

COMMENT ON FUNCTION pgnetlat_walsenders() IS
	'account of every walsender, times in milliseconds; all but its identity is NULL where the caller may not see it';

CREATE VIEW pgnetlat_walsenders AS
SELECT w.pid,
	   w.usesysid,
	   u.rolname AS usename,
	   w.application_name,
	   w.client_addr,
	   w.client_port,
	   w.backend_start,
	   w.kind,
	   w.transport,
	   w.state,
	   w.stats_since,
	   w.total_time,
	   w.send_time,
	   w.send_network_time,
	   w.send_client_time,
	   w.busy_time,
	   w.idle_time,
	   w.pending_time,
	   w.bytes_sent,
	   w.bytes_received,
	   w.packets_sent,
	   w.packets_received,
	   w.retransmits,
	   w.rtt,
	   w.srtt,
	   w.rtt_at,
	   w.replies,
	   w.flushes,
	   w.flush_time,
	   w.flush_network_time,
	   w.flush_standby_time,
	   w.flush_lag,
	   w.sync_priority,
	   CASE WHEN w.sync_priority OPERATOR(pg_catalog.>) 0
			THEN (SELECT pg_catalog.sum(c.exec_replication_time) FROM pgnetlat_clients() c)
	   END AS exec_replication_time
  FROM pgnetlat_walsenders() w
  LEFT JOIN pg_catalog.pg_roles u ON u.oid = w.usesysid;

COMMENT ON VIEW pgnetlat_walsenders IS
	'account of every walsender: where its time goes, what blocks it, and what its receiver''s flushes cost';
COMMENT ON COLUMN pgnetlat_walsenders.pid IS 'process ID of the walsender';
COMMENT ON COLUMN pgnetlat_walsenders.usesysid IS 'OID of its role';
COMMENT ON COLUMN pgnetlat_walsenders.usename IS 'name of the role; NULL if it has been dropped';
COMMENT ON COLUMN pgnetlat_walsenders.application_name IS 'its application_name when it began what it is for';
COMMENT ON COLUMN pgnetlat_walsenders.client_addr IS 'address of the receiver; NULL on a Unix-domain socket';
COMMENT ON COLUMN pgnetlat_walsenders.client_port IS 'TCP port of the receiver; -1 on a Unix-domain socket';
COMMENT ON COLUMN pgnetlat_walsenders.backend_start IS 'when it was started';
COMMENT ON COLUMN pgnetlat_walsenders.kind IS 'physical, logical or base backup; commands while it has done nothing of these';
COMMENT ON COLUMN pgnetlat_walsenders.transport IS 'unix, tcp, tls or gss';
COMMENT ON COLUMN pgnetlat_walsenders.state IS 'sending, busy, idle, or disabled while pgnetlat.enabled is off';
COMMENT ON COLUMN pgnetlat_walsenders.stats_since IS 'when counting began: when it told its client that it was ready, or at the latest reset';
COMMENT ON COLUMN pgnetlat_walsenders.total_time IS 'milliseconds: all of the time since stats_since; the sum of send_time, busy_time, idle_time and pending_time';
COMMENT ON COLUMN pgnetlat_walsenders.send_time IS 'milliseconds: what it had to send was going to the socket, or was left because the socket took no more';
COMMENT ON COLUMN pgnetlat_walsenders.send_network_time IS 'milliseconds: of send_time: blocked by the network';
COMMENT ON COLUMN pgnetlat_walsenders.send_client_time IS 'milliseconds: of send_time: blocked by the receiver, whose receive window was closed';
COMMENT ON COLUMN pgnetlat_walsenders.busy_time IS 'milliseconds: it was working: reading WAL or files, decoding, reading replies; sampled';
COMMENT ON COLUMN pgnetlat_walsenders.idle_time IS 'milliseconds: it was waiting for something to send, or for a command; sampled';
COMMENT ON COLUMN pgnetlat_walsenders.pending_time IS 'milliseconds: what cannot be attributed yet; the only time here that can decrease';
COMMENT ON COLUMN pgnetlat_walsenders.bytes_sent IS 'bytes of messages to the receiver, before encryption';
COMMENT ON COLUMN pgnetlat_walsenders.bytes_received IS 'as counted by the kernel; NULL where it counts none';
COMMENT ON COLUMN pgnetlat_walsenders.packets_sent IS 'segments, as counted by the kernel; NULL where it counts none';
COMMENT ON COLUMN pgnetlat_walsenders.packets_received IS 'segments, as counted by the kernel; NULL where it counts none';
COMMENT ON COLUMN pgnetlat_walsenders.retransmits IS 'segments sent again; NULL where the kernel counts none';
COMMENT ON COLUMN pgnetlat_walsenders.rtt IS 'milliseconds: round-trip time of the path to the receiver: the minimum that the kernel has measured; NULL if it has none';
COMMENT ON COLUMN pgnetlat_walsenders.srtt IS 'milliseconds: the kernels smoothed round-trip time, which includes delayed acknowledgements';
COMMENT ON COLUMN pgnetlat_walsenders.rtt_at IS 'when the kernel was asked';
COMMENT ON COLUMN pgnetlat_walsenders.replies IS 'messages in which the receiver said how far it was; what was read at once counts as one';
COMMENT ON COLUMN pgnetlat_walsenders.flushes IS 'of these, those that confirmed a flush of which core measured the lag';
COMMENT ON COLUMN pgnetlat_walsenders.flush_time IS 'milliseconds: sum of these lags: from when WAL was sent until its flush was confirmed';
COMMENT ON COLUMN pgnetlat_walsenders.flush_network_time IS 'milliseconds: of flush_time: one round trip of the path for each';
COMMENT ON COLUMN pgnetlat_walsenders.flush_standby_time IS 'milliseconds: of flush_time: the rest, which is the receivers work, and what WAL took to get through a slow line';
COMMENT ON COLUMN pgnetlat_walsenders.flush_lag IS 'milliseconds: the latest such lag, as in pg_stat_replication; NULL if core has none';
COMMENT ON COLUMN pgnetlat_walsenders.sync_priority IS 'as in pg_stat_replication; 0 if commits do not wait for it';
COMMENT ON COLUMN pgnetlat_walsenders.exec_replication_time IS 'milliseconds: what all sessions together have waited for standbys in commits, beside the walsenders that are such standbys; NULL for others';

CREATE FUNCTION pgnetlat_replication(
	OUT kind text,
	OUT application_name text,
	OUT client_addr inet,
	OUT walsenders bigint,
	OUT ended_walsenders bigint,
	OUT total_time double precision,
	OUT send_time double precision,
	OUT send_network_time double precision,
	OUT send_client_time double precision,
	OUT busy_time double precision,
	OUT idle_time double precision,
	OUT pending_time double precision,
	OUT bytes_sent bigint,
	OUT bytes_received bigint,
	OUT packets_sent bigint,
	OUT packets_received bigint,
	OUT retransmits bigint,
	OUT replies bigint,
	OUT flushes bigint,
	OUT flush_time double precision,
	OUT flush_network_time double precision,
	OUT flush_standby_time double precision)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED COST 100 ROWS 10;

COMMENT ON FUNCTION pgnetlat_replication() IS
	'sums over walsenders, those that have ended included, by kind, application and address; times in milliseconds; all but kind and application is NULL without pg_read_all_stats';

CREATE VIEW pgnetlat_replication AS
SELECT r.kind,
	   r.application_name,
	   r.client_addr,
	   r.walsenders,
	   r.ended_walsenders,
	   r.total_time,
	   r.send_time,
	   r.send_network_time,
	   r.send_client_time,
	   r.busy_time,
	   r.idle_time,
	   r.pending_time,
	   r.bytes_sent,
	   r.bytes_received,
	   r.packets_sent,
	   r.packets_received,
	   r.retransmits,
	   r.replies,
	   r.flushes,
	   r.flush_time,
	   r.flush_network_time,
	   r.flush_standby_time
  FROM pgnetlat_replication() r;

COMMENT ON VIEW pgnetlat_replication IS
	'sums over walsenders since the server was started or the latest reset, by kind, application and address';
COMMENT ON COLUMN pgnetlat_replication.kind IS 'as in pgnetlat_walsenders; NULL in the row of those that found no place';
COMMENT ON COLUMN pgnetlat_replication.application_name IS 'that of the walsenders; (others) in the row of those that found no place';
COMMENT ON COLUMN pgnetlat_replication.client_addr IS 'address of the receiver; NULL on a Unix-domain socket';
COMMENT ON COLUMN pgnetlat_replication.walsenders IS 'those that are connected';
COMMENT ON COLUMN pgnetlat_replication.ended_walsenders IS 'those that have ended';
COMMENT ON COLUMN pgnetlat_replication.total_time IS 'milliseconds: all of their time; the sum of send_time, busy_time, idle_time and pending_time';
COMMENT ON COLUMN pgnetlat_replication.send_time IS 'milliseconds: what it had to send was going to the socket, or was left because the socket took no more';
COMMENT ON COLUMN pgnetlat_replication.send_network_time IS 'milliseconds: of send_time: blocked by the network';
COMMENT ON COLUMN pgnetlat_replication.send_client_time IS 'milliseconds: of send_time: blocked by the receiver, whose receive window was closed';
COMMENT ON COLUMN pgnetlat_replication.busy_time IS 'milliseconds: it was working: reading WAL or files, decoding, reading replies; sampled';
COMMENT ON COLUMN pgnetlat_replication.idle_time IS 'milliseconds: it was waiting for something to send, or for a command; sampled';
COMMENT ON COLUMN pgnetlat_replication.pending_time IS 'milliseconds: what cannot be attributed yet; the only time here that can decrease';
COMMENT ON COLUMN pgnetlat_replication.bytes_sent IS 'bytes of messages to the receivers, before encryption';
COMMENT ON COLUMN pgnetlat_replication.bytes_received IS 'as counted by the kernel; NULL where it counts none';
COMMENT ON COLUMN pgnetlat_replication.packets_sent IS 'segments, as counted by the kernel; NULL where it counts none';
COMMENT ON COLUMN pgnetlat_replication.packets_received IS 'segments, as counted by the kernel; NULL where it counts none';
COMMENT ON COLUMN pgnetlat_replication.retransmits IS 'segments sent again; NULL where the kernel counts none';
COMMENT ON COLUMN pgnetlat_replication.replies IS 'messages in which the receiver said how far it was; what was read at once counts as one';
COMMENT ON COLUMN pgnetlat_replication.flushes IS 'of these, those that confirmed a flush of which core measured the lag';
COMMENT ON COLUMN pgnetlat_replication.flush_time IS 'milliseconds: sum of these lags: from when WAL was sent until its flush was confirmed';
COMMENT ON COLUMN pgnetlat_replication.flush_network_time IS 'milliseconds: of flush_time: one round trip of the path for each';
COMMENT ON COLUMN pgnetlat_replication.flush_standby_time IS 'milliseconds: of flush_time: the rest, which is the receivers work, and what WAL took to get through a slow line';

GRANT SELECT ON pgnetlat_walsenders, pgnetlat_replication TO PUBLIC;
