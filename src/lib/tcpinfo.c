/*-------------------------------------------------------------------------
 *
 * tcpinfo.c
 *	  See tcpinfo.h.
 *
 * A backend asks about its own socket with getsockopt(TCP_INFO).  A backend
 * that is blocked in send() cannot, so the sampler asks for it, over
 * NETLINK_SOCK_DIAG, which needs no privilege (as "ss -ti" does;
 * sock_diag(7)).
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#ifdef __linux__
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/sockios.h>
/* not netinet/tcp.h, see tcpstate.c */
#include <linux/tcp.h>
#endif

#include "tcpinfo.h"

/* The number by which the kernel identifies the socket. */
static uint64
socket_cookie(pgsocket sock)
{
	uint64		cookie = 0;
#ifdef SO_COOKIE
	socklen_t	length = sizeof(cookie);

	if (getsockopt(sock, SOL_SOCKET, SO_COOKIE, &cookie, &length) != 0 ||
		length != sizeof(cookie))
		return 0;
#endif
	return cookie;
}

/* Read one end of a connection; false if it is not TCP. */
static bool
read_end(const struct sockaddr_storage *end, uint8 *address, uint16 *port, uint32 *scope)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *) end;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *) end;

	if (end->ss_family != AF_INET && end->ss_family != AF_INET6)
		return false;
	if (end->ss_family == AF_INET)
		memcpy(address, &v4->sin_addr, sizeof(v4->sin_addr));
	else
		memcpy(address, &v6->sin6_addr, sizeof(v6->sin6_addr));
	*port = end->ss_family == AF_INET ? v4->sin_port : v6->sin6_port;
	*scope = end->ss_family == AF_INET ? 0 : v6->sin6_scope_id;
	return true;
}

/*
 * Fill in both ends of a client connection; family 0 if it is not TCP.
 */
void
tcpinfo_endpoints(pgsocket sock, const struct sockaddr_storage *local,
				  const struct sockaddr_storage *remote, TcpEndpoints *endpoints)
{
	memset(endpoints, 0, sizeof(*endpoints));
	if (!read_end(local, endpoints->local_address, &endpoints->local_port, &endpoints->scope) ||
		!read_end(remote, endpoints->remote_address, &endpoints->remote_port, &endpoints->scope))
		return;
	endpoints->family = local->ss_family;
	endpoints->cookie = socket_cookie(sock);
}

/*
 * Bytes that were handed to the kernel and that the peer has not acknowledged.
 */
int64
tcpinfo_unsent(pgsocket sock)
{
#ifdef SIOCOUTQ
	int			queued = 0;

	if (ioctl(sock, SIOCOUTQ, &queued) == 0)
		return queued;
#endif
	return 0;
}

#if defined(__linux__) && defined(TCP_INFO)
#define KERNEL_TELLS
#endif

/*
 * Ask the kernel about a connection of this process; "known" is the previous
 * measurement.  Returns false, and leaves "info" alone, if the kernel does not
 * reply.  A connection that was reset still has its counters.
 */
bool
tcpinfo_of_socket(pgsocket sock, const TcpInfo *known, int64 now, TcpInfo *info)
{
#ifdef KERNEL_TELLS
	struct tcp_info kernel;
	socklen_t	length = sizeof(kernel);

	if (getsockopt(sock, IPPROTO_TCP, TCP_INFO, &kernel, &length) == 0 &&
		tcpstate_read(&kernel, length, now, info))
	{
		tcpstate_continue(info, known);
		return true;
	}
#endif
	return false;
}

/* How many bytes a connection's peer has acknowledged; 0 where the kernel does not know. */
int64
tcpinfo_bytes_acknowledged(pgsocket sock)
{
	TcpInfo		nothing = {.measured_at = 0};
	TcpInfo		info;

	return tcpinfo_of_socket(sock, &nothing, 0, &info) ? info.bytes_acked : 0;
}

/* ---------------------------------------------------------------------------
 * The connections of others
 * ---------------------------------------------------------------------------
 */

void
tcpinfo_diag_close(TcpDiag *diag)
{
	if (diag->sock >= 0)
		close(diag->sock);
	diag->sock = -1;
}

#ifdef KERNEL_TELLS

/* Longest time to wait for a reply, which normally comes at once. */
#define DIAG_TIMEOUT_US		20000

/* The kernel fills datagrams of up to 32 kB, if the buffer has room. */
#define DIAG_BYTES			32768

/* Datagrams to read before giving up on the reply to a question. */
#define DIAG_DATAGRAMS		16

/* Send a question, on a socket that takes messages from the kernel only. */
static bool
diag_send(TcpDiag *diag, const uint8 question[TCP_QUESTION_SIZE])
{
	struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
	struct timeval timeout = {.tv_sec = 0,.tv_usec = DIAG_TIMEOUT_US};

	if (diag->sock < 0)
	{
		diag->sock = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
		if (diag->sock < 0 ||
			connect(diag->sock, (struct sockaddr *) &kernel, sizeof(kernel)) != 0 ||
			setsockopt(diag->sock, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) != 0)
			return false;
	}
	return send(diag->sock, question, TCP_QUESTION_SIZE, 0) == TCP_QUESTION_SIZE;
}

/* Receive a datagram, which may be the reply; NULL if there is none. */
static const uint8 *
diag_receive(TcpDiag *diag, ssize_t *length)
{
	static uint8 bytes[DIAG_BYTES];

	do
		*length = recv(diag->sock, bytes, sizeof(bytes), MSG_TRUNC);
	while (*length < 0 && errno == EINTR);
	return *length < 0 || *length > (ssize_t) sizeof(bytes) ? NULL : bytes;
}

static TcpReply
ask_about_connection(TcpDiag *diag, const TcpEndpoints *endpoints, int64 now, TcpInfo *info)
{
	uint8		question[TCP_QUESTION_SIZE];
	TcpReply	reply = TCP_REPLY_FOREIGN;

	tcpstate_question(endpoints, ++diag->sequence, question);
	if (!diag_send(diag, question))
		return TCP_REPLY_REFUSED;
	for (int i = 0; i < DIAG_DATAGRAMS && reply == TCP_REPLY_FOREIGN; i++)
	{
		ssize_t		length;
		const uint8 *bytes = diag_receive(diag, &length);

		if (bytes == NULL)
			return TCP_REPLY_REFUSED;
		reply = tcpstate_reply(bytes, length, endpoints, diag->sequence, now, info);
	}
	return reply;
}

static bool
ask_for_listeners(TcpDiag *diag, int family, uint32 owner, TcpListeners *found)
{
	uint8		question[TCP_QUESTION_SIZE];
	TcpReply	reply = TCP_REPLY_FOREIGN;

	tcpstate_listeners_question(family, ++diag->sequence, question);
	if (!diag_send(diag, question))
		return false;
	for (int i = 0; i < DIAG_DATAGRAMS && reply == TCP_REPLY_FOREIGN; i++)
	{
		ssize_t		length;
		const uint8 *bytes = diag_receive(diag, &length);

		if (bytes == NULL)
			return false;
		reply = tcpstate_listeners_reply(bytes, length, owner, diag->sequence, found);
	}
	return reply == TCP_REPLY_VALID;
}

#endif							/* KERNEL_TELLS */

/*
 * Ask the kernel about a connection of any process in this network namespace;
 * "known" is the previous measurement, or NULL. "info" is set if the kernel
 * replies.
 *
 * After a refusal the next question gets a new socket, but only after a pause.
 */
TcpReply
tcpinfo_diag_query(TcpDiag *diag, const TcpEndpoints *endpoints, const TcpInfo *known,
				   int64 now, TcpInfo *info)
{
#ifdef KERNEL_TELLS
	TcpReply	reply;

	if (now < diag->ask_again)
		return TCP_REPLY_REFUSED;
	reply = ask_about_connection(diag, endpoints, now, info);
	if (reply == TCP_REPLY_VALID && known)
		tcpstate_continue(info, known);
	if (reply == TCP_REPLY_VALID || reply == TCP_REPLY_GONE)
		return reply;
	diag->ask_again = now + TCP_PAUSE_NS;
	tcpinfo_diag_close(diag);
#endif
	return TCP_REPLY_REFUSED;
}

/*
 * Find the sockets on which processes of "owner" listen.  False where the
 * kernel does not say.
 */
bool
tcpinfo_diag_listeners(TcpDiag *diag, uint32 owner, TcpListeners *found)
{
	found->count = 0;
#ifdef KERNEL_TELLS
	if (ask_for_listeners(diag, AF_INET, owner, found) &&
		ask_for_listeners(diag, AF_INET6, owner, found))
		return true;
	/* discards the rest of a reply */
	tcpinfo_diag_close(diag);
#endif
	return false;
}
