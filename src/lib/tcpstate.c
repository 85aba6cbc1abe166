/*-------------------------------------------------------------------------
 *
 * tcpstate.c
 *	  See tcpstate.h.
 *
 * The kernel looks a connection up by addresses and ports.  If it is gone (it
 * was reset, and its process has not noticed yet), what is found instead may
 * be the listening socket, all of whose figures mean something else, or a
 * later connection from the same port.  So the question names the socket
 * itself by its cookie, if the kernel has cookies, and the reply must have that
 * cookie and the state of a connection.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "tcpstate.h"

#include <string.h>

/* ---------------------------------------------------------------------------
 * Measurements of one connection
 * ---------------------------------------------------------------------------
 */

/*
 * Advance the wide value of a counter to a fresh reading of its lower 32 bits.
 * A gain of nearly 2^32 counts as none: two questions have crossed.
 */
static int64_t
continue_counter(int64_t known, int64_t fresh)
{
	uint32_t	gain = (uint32_t) fresh - (uint32_t) known;

	return gain < UINT32_C(0xf0000000) ? known + gain : known;
}

/*
 * Widen the counters of a fresh measurement, as tcpstate_read() returns it, by
 * continuing those known of the same connection.
 */
void
tcpstate_continue(TcpInfo *fresh, const TcpInfo *known)
{
	TcpCounters *counters = &fresh->counters;

	if (known->measured_at == 0)
		return;
	counters->retransmits = continue_counter(known->counters.retransmits,
											 counters->retransmits);
	counters->packets_sent = continue_counter(known->counters.packets_sent,
											  counters->packets_sent);
	counters->packets_received = continue_counter(known->counters.packets_received,
												  counters->packets_received);
}

void
tcpstate_counters_add(TcpCounters *sum, const TcpCounters *term)
{
	sum->retransmits += term->retransmits;
	sum->bytes_received += term->bytes_received;
	sum->packets_sent += term->packets_sent;
	sum->packets_received += term->packets_received;
}

static int64_t
gain_of(int64_t now, int64_t before)
{
	return now > before ? now - before : 0;
}

/* What has been counted since "term"; nothing where questions have crossed. */
void
tcpstate_counters_subtract(TcpCounters *difference, const TcpCounters *term)
{
	difference->retransmits = gain_of(difference->retransmits, term->retransmits);
	difference->bytes_received = gain_of(difference->bytes_received, term->bytes_received);
	difference->packets_sent = gain_of(difference->packets_sent, term->packets_sent);
	difference->packets_received = gain_of(difference->packets_received,
										   term->packets_received);
}

#ifdef __linux__

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

/* linux/tcp.h, not netinet/tcp.h: glibc's tcp_info ends before tcpi_min_rtt */
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>

/* ---------------------------------------------------------------------------
 * The kernel's struct tcp_info
 * ---------------------------------------------------------------------------
 */

#define NS_PER_MICROSECOND	1000
#define NS_PER_MILLISECOND	1000000

/* What every kernel that has the structure fills in. */
#define OLDEST_TCP_INFO		(offsetof(struct tcp_info, tcpi_total_retrans) + sizeof(uint32_t))

static int64_t
from_microseconds(uint64_t microseconds)
{
	if (microseconds > INT64_MAX / NS_PER_MICROSECOND)
		microseconds = INT64_MAX / NS_PER_MICROSECOND;
	return (int64_t) microseconds * NS_PER_MICROSECOND;
}

/*
 * Read a struct tcp_info of "length" bytes, as of "now".  Older kernels know a
 * shorter structure, newer ones a longer one; missing fields read as zero.
 * Returns false, and leaves "info" alone, if it is shorter than any kernel's.
 */
bool
tcpstate_read(const void *kernel, size_t length, int64_t now, TcpInfo *info)
{
	struct tcp_info read;

	if (length < OLDEST_TCP_INFO)
		return false;
	memset(&read, 0, sizeof(read));
	memcpy(&read, kernel, length < sizeof(read) ? length : sizeof(read));
	if (read.tcpi_bytes_received > INT64_MAX || read.tcpi_bytes_acked > INT64_MAX)
		return false;

	/* ~0: no sample yet; 0 also on kernels before 4.9 */
	info->least = read.tcpi_min_rtt == UINT32_MAX ? 0 : from_microseconds(read.tcpi_min_rtt);
	info->rtt = info->least;
	info->srtt = from_microseconds(read.tcpi_rtt);
	info->busy = from_microseconds(read.tcpi_busy_time);
	info->rwnd_limited = from_microseconds(read.tcpi_rwnd_limited);
	info->sndbuf_limited = from_microseconds(read.tcpi_sndbuf_limited);
	info->bytes_acked = (int64_t) read.tcpi_bytes_acked;
	info->data_sent_at = now - (int64_t) read.tcpi_last_data_sent * NS_PER_MILLISECOND;
	/* once may be too early; any acknowledgement sets both to zero */
	info->silent_since = read.tcpi_retransmits < 2 && read.tcpi_probes < 2 ? 0 :
		now - (int64_t) read.tcpi_last_ack_recv * NS_PER_MILLISECOND;
	info->unsent = 0;
	info->owner = 0;
	info->sent_again = read.tcpi_total_retrans;
	info->counters.retransmits = read.tcpi_total_retrans;
#ifdef TCP_TX_DELAY				/* headers that have it have the field, too */
	info->counters.retransmits = gain_of(read.tcpi_total_retrans, read.tcpi_dsack_dups);
#endif
	info->counters.bytes_received = (int64_t) read.tcpi_bytes_received;
	info->counters.packets_sent = read.tcpi_segs_out;
	info->counters.packets_received = read.tcpi_segs_in;
	info->measured_at = now;
	return true;
}

/* ---------------------------------------------------------------------------
 * Socket diagnosis: sock_diag(7)
 * ---------------------------------------------------------------------------
 */

/*
 * States of a connection, which the kernel's user-space headers do not define.
 */
#define STATE_ESTABLISHED	1
#define STATE_CLOSE_WAIT	8
#define STATE_LISTEN		10

typedef struct Question
{
	struct nlmsghdr header;
	struct inet_diag_req_v2 body;
} Question;

_Static_assert(sizeof(Question) == TCP_QUESTION_SIZE, "size of a question");

static void
begin_question(Question *out, int family, uint16_t flags, uint32_t states, uint32_t sequence)
{
	memset(out, 0, sizeof(*out));
	out->header.nlmsg_len = sizeof(*out);
	out->header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
	out->header.nlmsg_flags = NLM_F_REQUEST | flags;
	out->header.nlmsg_seq = sequence;
	out->body.sdiag_family = (uint8_t) family;
	out->body.sdiag_protocol = IPPROTO_TCP;
	out->body.idiag_states = states;
}

/* Build a question about one connection. */
void
tcpstate_question(const TcpEndpoints *endpoints, uint32_t sequence,
				  uint8_t question[TCP_QUESTION_SIZE])
{
	Question	out;
	struct inet_diag_sockid *id = &out.body.id;
	uint64_t	cookie = endpoints->cookie != 0 ? endpoints->cookie : UINT64_MAX;

	begin_question(&out, endpoints->family, 0, UINT32_MAX, sequence);
	out.body.idiag_ext = 1 << (INET_DIAG_INFO - 1);
	id->idiag_sport = endpoints->local_port;
	id->idiag_dport = endpoints->remote_port;
	memcpy(id->idiag_src, endpoints->local_address, sizeof(id->idiag_src));
	memcpy(id->idiag_dst, endpoints->remote_address, sizeof(id->idiag_dst));
	id->idiag_if = endpoints->scope;
	id->idiag_cookie[0] = (uint32_t) cookie;
	id->idiag_cookie[1] = (uint32_t) (cookie >> 32);
	memcpy(question, &out, sizeof(out));
}

/*
 * Find the datagram's next message that answers the question with this
 * sequence number; false if there is none.
 */
static bool
next_message(const uint8_t **bytes, size_t *length, uint32_t sequence, int *type,
			 const uint8_t **body, size_t *body_length)
{
	while (*length >= NLMSG_HDRLEN)
	{
		struct nlmsghdr header;
		size_t		step;

		memcpy(&header, *bytes, sizeof(header));
		if (header.nlmsg_len < NLMSG_HDRLEN || header.nlmsg_len > *length)
			return false;
		*type = header.nlmsg_type;
		*body = *bytes + NLMSG_HDRLEN;
		*body_length = header.nlmsg_len - NLMSG_HDRLEN;
		step = NLMSG_ALIGN((size_t) header.nlmsg_len);
		if (step > *length)
			step = *length;
		*bytes += step;
		*length -= step;
		if (header.nlmsg_seq == sequence)
			return true;
	}
	return false;
}

/*
 * Is this the connection of a process that has not closed it?  Such a
 * connection has one of two states: the client can go on sending, or has said
 * that it will not.  A reset takes it out of the kernel's tables.
 */
static bool
is_connection(const struct inet_diag_msg *socket, const TcpEndpoints *endpoints)
{
	const struct inet_diag_sockid *id = &socket->id;
	uint64_t	cookie = (uint64_t) id->idiag_cookie[1] << 32 | id->idiag_cookie[0];

	return (socket->idiag_state == STATE_ESTABLISHED ||
			socket->idiag_state == STATE_CLOSE_WAIT) &&
		id->idiag_sport == endpoints->local_port &&
		id->idiag_dport == endpoints->remote_port &&
		(endpoints->cookie == 0 || cookie == endpoints->cookie);
}

/* Read the body of a message about a socket. */
static TcpReply
read_socket(const uint8_t *body, size_t length, const TcpEndpoints *endpoints,
			int64_t now, TcpInfo *info)
{
	struct inet_diag_msg socket;
	size_t		at = NLMSG_ALIGN(sizeof(socket));

	if (length < sizeof(socket))
		return TCP_REPLY_REFUSED;
	memcpy(&socket, body, sizeof(socket));
	if (!is_connection(&socket, endpoints))
		return TCP_REPLY_GONE;
	while (at + NLA_HDRLEN <= length)
	{
		struct nlattr attribute;

		memcpy(&attribute, body + at, sizeof(attribute));
		if (attribute.nla_len < NLA_HDRLEN || attribute.nla_len > length - at)
			break;
		if ((attribute.nla_type & NLA_TYPE_MASK) == INET_DIAG_INFO)
		{
			if (!tcpstate_read(body + at + NLA_HDRLEN, attribute.nla_len - NLA_HDRLEN,
							   now, info))
				break;
			info->unsent = socket.idiag_wqueue;
			info->owner = socket.idiag_uid;
			return TCP_REPLY_VALID;
		}
		at += NLA_ALIGN(attribute.nla_len);
	}
	return TCP_REPLY_REFUSED;
}

/*
 * Is the datagram the reply to the question about this connection with this
 * sequence number? "info" is set if it is, and left alone otherwise.  The
 * reply to another question does not count, even if that was about the same
 * connection.
 */
TcpReply
tcpstate_reply(const uint8_t *bytes, size_t length, const TcpEndpoints *endpoints,
			   uint32_t sequence, int64_t now, TcpInfo *info)
{
	const uint8_t *body;
	size_t		left;
	int			type;
	int32_t		error = 0;

	while (next_message(&bytes, &length, sequence, &type, &body, &left))
	{
		if (type == SOCK_DIAG_BY_FAMILY)
			return read_socket(body, left, endpoints, now, info);
		if (type == NLMSG_DONE)
			return TCP_REPLY_GONE;
		if (type == NLMSG_ERROR)
		{
			memcpy(&error, body, left < sizeof(error) ? 0 : sizeof(error));
			return error == -ENOENT || error == -ESTALE ? TCP_REPLY_GONE : TCP_REPLY_REFUSED;
		}
	}
	return TCP_REPLY_FOREIGN;
}

/* ---------------------------------------------------------------------------
 * Listening sockets, which the kernel keeps apart from connections
 * ---------------------------------------------------------------------------
 */

/* Build a question about all listening sockets of a family. */
void
tcpstate_listeners_question(int family, uint32_t sequence, uint8_t question[TCP_QUESTION_SIZE])
{
	Question	out;

	begin_question(&out, family, NLM_F_DUMP, 1 << STATE_LISTEN, sequence);
	memcpy(question, &out, sizeof(out));
}

static void
add_listener(const uint8_t *body, size_t length, uint32_t owner, TcpListeners *found)
{
	struct inet_diag_msg socket;
	TcpEndpoints *endpoints = &found->sockets[found->count];

	if (length < sizeof(socket) || found->count == TCP_LISTENERS)
		return;
	memcpy(&socket, body, sizeof(socket));
	if (socket.idiag_state != STATE_LISTEN || socket.idiag_uid != owner ||
		(socket.idiag_family != AF_INET && socket.idiag_family != AF_INET6))
		return;
	memset(endpoints, 0, sizeof(*endpoints));
	endpoints->family = socket.idiag_family;
	memcpy(endpoints->local_address, socket.id.idiag_src, endpoints->family == AF_INET ? 4 : 16);
	endpoints->local_port = socket.id.idiag_sport;
	found->count++;
}

/*
 * If a datagram answers the question with this sequence number, add the
 * sockets of an owner that it lists to "found".  Returns TCP_REPLY_VALID for
 * the last datagram, TCP_REPLY_FOREIGN if there may be more.
 */
TcpReply
tcpstate_listeners_reply(const uint8_t *bytes, size_t length, uint32_t owner, uint32_t sequence,
						 TcpListeners *found)
{
	const uint8_t *body;
	size_t		left;
	int			type;

	while (next_message(&bytes, &length, sequence, &type, &body, &left))
	{
		if (type == NLMSG_DONE)
			return TCP_REPLY_VALID;
		if (type == NLMSG_ERROR)
			return TCP_REPLY_REFUSED;
		if (type == SOCK_DIAG_BY_FAMILY)
			add_listener(body, left, owner, found);
	}
	return TCP_REPLY_FOREIGN;
}

#endif							/* __linux__ */
