/*-------------------------------------------------------------------------
 *
 * tcpinfo.h
 *	  What the kernel knows of one TCP connection.
 *
 * The only place for differences between operating systems: where the kernel
 * does not tell, the functions return false and everything that depends on
 * them is NULL.
 *
 * The round trip is tcpi_min_rtt.  tcpi_rtt contains the client's think time,
 * because the client's acknowledgement rides on its next request for as long
 * as it may be delayed (40 ms and more).  The minimum is windowed:
 * net.ipv4.tcp_min_rtt_wlen seconds, 300 by default.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_TCPINFO_H
#define PGNETLAT_TCPINFO_H

#include <sys/ioctl.h>

/*
 * libpq-be.h cannot be included here: it brings in netinet/tcp.h, which clashes
 * with the linux/tcp.h that tcpinfo.c needs.
 */
struct sockaddr_storage;

typedef struct TcpInfo
{
	int64		measured_at;	/* monotonic; 0: never measured */
	int64		rtt;			/* ns; 0: the kernel has no sample */
	int64		srtt;			/* ns; smoothed, includes delayed ACKs */
	int64		busy;			/* ns with unacknowledged data, since connect */
	int64		rwnd_limited;	/* of busy: the peer's window was closed */
	int64		retransmits;	/* segments, since connect */
	int64		bytes_received;
	int64		packets_sent;
	int64		packets_received;
	int64		data_sent_at;	/* monotonic, to the kernel's tick: when data was
								 * last sent, for the first time or again */
	int64		unsent;			/* bytes written and not acknowledged */
} TcpInfo;

/* The counters of TcpInfo that are summed over sessions. */
typedef struct TcpCounters
{
	int64		retransmits;
	int64		bytes_received;
	int64		packets_sent;
	int64		packets_received;
} TcpCounters;

/* Both ends of a connection, as the kernel's socket diagnosis wants them. */
typedef struct TcpEndpoints
{
	int			family;			/* AF_INET or AF_INET6; 0: not a TCP connection */
	uint8		local_address[16];
	uint8		remote_address[16];
	uint16		local_port;		/* network byte order */
	uint16		remote_port;
} TcpEndpoints;

extern void tcpinfo_endpoints(const struct sockaddr_storage *local,
							  const struct sockaddr_storage *remote,
							  TcpEndpoints *endpoints);
extern bool tcpinfo_of_socket(pgsocket sock, int64 now, TcpInfo *info);
extern int64 tcpinfo_unsent(pgsocket sock);

/* Has anything arrived that the process has not read?  For the hot path. */
static inline bool
tcpinfo_has_input(pgsocket sock)
{
#ifdef FIONREAD
	static int	available;		/* as in clock_read() */

	available = 0;
	return ioctl(sock, FIONREAD, &available) == 0 && available > 0;
#else
	return false;
#endif
}

extern int	tcpinfo_diag_open(void);
extern bool tcpinfo_diag_query(int diag, const TcpEndpoints *endpoints, int64 now,
							   TcpInfo *info);

extern int64 tcpinfo_run_queue_time(void);
extern long tcpinfo_times_blocked(void);

extern void tcpinfo_counters(const TcpInfo *info, TcpCounters *counters);
extern void tcpinfo_latest(TcpInfo *latest, const TcpInfo *other);

#endif							/* PGNETLAT_TCPINFO_H */
