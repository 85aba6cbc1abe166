/*-------------------------------------------------------------------------
 *
 * tcpstate.h
 *	  The state of a TCP connection, read from what the kernel says.
 *
 * Plain C without server headers or system calls, so that it can be tested and
 * fuzzed alone: nothing that comes from the kernel is taken on trust.
 * tcpinfo.c asks the kernel.
 *
 * The round trip is tcpi_min_rtt.  tcpi_rtt contains the client's think time,
 * because the client's acknowledgement rides on its next request for as long
 * as it may be delayed (40 ms and more).  The minimum is windowed:
 * net.ipv4.tcp_min_rtt_wlen seconds, 300 by default.  Of some connections it
 * contains think time, too: see sample/paths.h.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_TCPSTATE_H
#define PGNETLAT_TCPSTATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The counters of a connection since it was established.  All but
 * bytes_received have 32 bits in the kernel; tcpstate_continue() widens them.
 */
typedef struct TcpCounters
{
	int64_t		retransmits;	/* segments, but for those that the peer had
								 * already, if the kernel knows these */
	int64_t		bytes_received; /* the end of the stream counts as one */
	int64_t		packets_sent;
	int64_t		packets_received;
} TcpCounters;

typedef struct TcpInfo
{
	int64_t		measured_at;	/* monotonic; 0: never measured */
	int64_t		rtt;			/* ns, of the path; 0: not known */
	int64_t		least;			/* ns: the kernel's minimum; 0: it has no
								 * sample */
	int64_t		srtt;			/* ns; smoothed, includes delayed ACKs */
	int64_t		busy;			/* ns with unacknowledged data, since connect */
	int64_t		rwnd_limited;	/* of busy: the peer's window was closed */
	int64_t		sndbuf_limited; /* of busy: the send buffer was too small */
	int64_t		bytes_acked;	/* by the peer, since connect */
	int64_t		data_sent_at;	/* monotonic, to the kernel's tick: when data
								 * was last sent, for the first time or again */
	int64_t		silent_since;	/* monotonic: latest acknowledgement, if the
								 * peer owes one after repeated sending; else
								 * 0 */
	int64_t		unsent;			/* bytes written and not acknowledged */
	uint32_t	owner;			/* user ID; set by tcpinfo_diag_query() only */
	uint32_t	sent_again;		/* all retransmitted segments, modulo 2^32 */
	TcpCounters counters;
} TcpInfo;

/* Identifies a connection to the kernel. */
typedef struct TcpEndpoints
{
	int			family;			/* AF_INET or AF_INET6; 0: not a TCP
								 * connection */
	uint8_t		local_address[16];
	uint8_t		remote_address[16];
	uint16_t	local_port;		/* network byte order */
	uint16_t	remote_port;
	uint32_t	scope;			/* the interface of a link-local address; else
								 * 0 */
	uint64_t	cookie;			/* the socket's own number; 0: the kernel has
								 * none */
} TcpEndpoints;

/* Listening sockets, as many as there is room for. */
#define TCP_LISTENERS		32

typedef struct TcpListeners
{
	int			count;
	TcpEndpoints sockets[TCP_LISTENERS];	/* the local end; an address of
											 * zeros is any */
} TcpListeners;

/* What a message from the kernel means for the question asked. */
typedef enum TcpReply
{
	TCP_REPLY_FOREIGN,			/* no reply to this question: read on */
	TCP_REPLY_VALID,
	TCP_REPLY_GONE,				/* there is no such connection */
	TCP_REPLY_REFUSED			/* the kernel will not, or cannot, reply */
} TcpReply;

/* Pause after a question without a useful reply. */
#define TCP_PAUSE_NS		INT64_C(1000000000)

/* Size of a socket diagnosis question, in bytes. */
#define TCP_QUESTION_SIZE	72

extern bool tcpstate_read(const void *kernel, size_t length, int64_t now, TcpInfo *info);
extern void tcpstate_continue(TcpInfo *fresh, const TcpInfo *known);
extern void tcpstate_counters_add(TcpCounters *sum, const TcpCounters *term);
extern void tcpstate_counters_subtract(TcpCounters *difference, const TcpCounters *term);

extern void tcpstate_question(const TcpEndpoints *endpoints, uint32_t sequence,
							  uint8_t question[TCP_QUESTION_SIZE]);
extern TcpReply tcpstate_reply(const uint8_t *bytes, size_t length,
							   const TcpEndpoints *endpoints, uint32_t sequence,
							   int64_t now, TcpInfo *info);
extern void tcpstate_listeners_question(int family, uint32_t sequence,
										uint8_t question[TCP_QUESTION_SIZE]);
extern TcpReply tcpstate_listeners_reply(const uint8_t *bytes, size_t length, uint32_t owner,
										 uint32_t sequence, TcpListeners *found);

/*
 * Keep the later of two measurements of a connection.  The earlier one may have
 * more retransmissions, if some turned out to be duplicates: they do not fall.
 */
static inline void
tcpstate_latest(TcpInfo *latest, const TcpInfo *other)
{
	int64_t		retransmits = latest->counters.retransmits;

	if (other->measured_at > latest->measured_at)
		*latest = *other;
	else
		retransmits = other->counters.retransmits;
	if (latest->counters.retransmits < retransmits)
		latest->counters.retransmits = retransmits;
}

#endif							/* PGNETLAT_TCPSTATE_H */
