/*-------------------------------------------------------------------------
 *
 * tcpinfo.c
 *	  See tcpinfo.h.
 *
 * A backend asks about its own socket with getsockopt(TCP_INFO).  The sampler
 * asks about the sockets of others, for a backend that is blocked in send()
 * cannot: over NETLINK_SOCK_DIAG, which needs no privilege (what "ss -ti"
 * uses; sock_diag(7)).
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
/* as in tcpstate.c */
#include <linux/tcp.h>
#endif

#include "tcpinfo.h"

/* The socket's own number, by which the kernel knows it from all others. */
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

/*
 * Fill in both ends of a client connection; family 0 if it is not TCP.
 */
void
tcpinfo_endpoints(pgsocket sock, const struct sockaddr_storage *local,
				  const struct sockaddr_storage *remote, TcpEndpoints *endpoints)
{
	memset(endpoints, 0, sizeof(*endpoints));
	if (local->ss_family != remote->ss_family)
		return;
	if (local->ss_family == AF_INET)
	{
		const struct sockaddr_in *l = (const struct sockaddr_in *) local;
		const struct sockaddr_in *r = (const struct sockaddr_in *) remote;

		endpoints->family = AF_INET;
		memcpy(endpoints->local_address, &l->sin_addr, sizeof(l->sin_addr));
		memcpy(endpoints->remote_address, &r->sin_addr, sizeof(r->sin_addr));
		endpoints->local_port = l->sin_port;
		endpoints->remote_port = r->sin_port;
	}
	else if (local->ss_family == AF_INET6)
	{
		const struct sockaddr_in6 *l = (const struct sockaddr_in6 *) local;
		const struct sockaddr_in6 *r = (const struct sockaddr_in6 *) remote;

		endpoints->family = AF_INET6;
		memcpy(endpoints->local_address, &l->sin6_addr, sizeof(l->sin6_addr));
		memcpy(endpoints->remote_address, &r->sin6_addr, sizeof(r->sin6_addr));
		endpoints->local_port = l->sin6_port;
		endpoints->remote_port = r->sin6_port;
		endpoints->scope = r->sin6_scope_id;
	}
	else
		return;
	endpoints->cookie = socket_cookie(sock);
}

/* Bytes that the kernel has taken and the peer has not acknowledged. */
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

/*
 * Ask the kernel about a connection of this process, of which "known" is known
 * already.  Returns false, and leaves "info" alone, where it does not reply.
 * A connection that was reset still has its counters.
 */
bool
tcpinfo_of_socket(pgsocket sock, const TcpInfo *known, int64 now, TcpInfo *info)
{
	struct tcp_info kernel;
	socklen_t	length = sizeof(kernel);
	TcpInfo		fresh;

	if (getsockopt(sock, IPPROTO_TCP, TCP_INFO, &kernel, &length) != 0 ||
		!tcpstate_read(&kernel, length, now, &fresh) ||
		!tcpstate_continue(&fresh, known))
		return false;
	*info = fresh;
	return true;
}

/*
 * The bytes of a connection that this process has read, and those that its peer
 * has acknowledged.  Returns false where the kernel does not know.
 */
bool
tcpinfo_stream(pgsocket sock, int64 *read, int64 *acknowledged)
{
	struct tcp_info kernel;
	socklen_t	length = sizeof(kernel);
	int			waiting = 0;

	if (getsockopt(sock, IPPROTO_TCP, TCP_INFO, &kernel, &length) != 0 ||
		length < offsetof(struct tcp_info, tcpi_bytes_received) +
		sizeof(kernel.tcpi_bytes_received) ||
		ioctl(sock, FIONREAD, &waiting) != 0)
		return false;
	*read = (int64) kernel.tcpi_bytes_received - waiting;
	*acknowledged = kernel.tcpi_bytes_acked;
	return true;
}

/* Longest time to wait for a reply; the kernel gives it at once. */
#define DIAG_TIMEOUT_US		20000

/* Datagrams to look at in search of the reply to one question. */
#define DIAG_DATAGRAMS		8

/* Before the first question; the socket is opened when there is one. */
void
tcpinfo_diag_init(TcpDiag *diag)
{
	memset(diag, 0, sizeof(*diag));
	diag->sock = -1;
}

/* The next question opens it again. */
void
tcpinfo_diag_close(TcpDiag *diag)
{
	if (diag->sock >= 0)
		close(diag->sock);
	diag->sock = -1;
}

static bool
diag_open(TcpDiag *diag)
{
	struct timeval timeout = {.tv_sec = 0,.tv_usec = DIAG_TIMEOUT_US};

	if (diag->sock >= 0)
		return true;
	diag->replied = false;
	diag->sock = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	if (diag->sock < 0)
		return false;
	return setsockopt(diag->sock, SOL_SOCKET, SO_RCVTIMEO, &timeout,
					  sizeof(timeout)) == 0;
}

static bool
diag_send_bytes(TcpDiag *diag, const uint8 *question, size_t size)
{
	struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};

	return sendto(diag->sock, question, size, 0, (struct sockaddr *) &kernel,
				  sizeof(kernel)) == (ssize_t) size;
}

static bool
diag_send(TcpDiag *diag, const TcpEndpoints *endpoints)
{
	uint8		question[TCP_QUESTION_SIZE];

	tcpstate_question(endpoints, ++diag->sequence, question);
	return diag_send_bytes(diag, question, sizeof(question));
}

/* One datagram from the kernel; its length, or -1. */
static ssize_t
diag_receive(TcpDiag *diag, uint8 *bytes, size_t size)
{
	for (int i = 0; i < DIAG_DATAGRAMS; i++)
	{
		struct sockaddr_nl sender;
		socklen_t	length = sizeof(sender);
		ssize_t		received;

		memset(&sender, 0, sizeof(sender));
		received = recvfrom(diag->sock, bytes, size, MSG_TRUNC,
							(struct sockaddr *) &sender, &length);
		if (received < 0 && errno == EINTR)
			continue;
		if (received < 0 || received > (ssize_t) size)
			return -1;
		/* other processes have other numbers */
		if (length >= sizeof(sender) && sender.nl_family == AF_NETLINK &&
			sender.nl_pid == 0)
			return received;
	}
	return -1;
}

static TcpReply
diag_ask(TcpDiag *diag, const TcpEndpoints *endpoints, int64 now, TcpInfo *info)
{
	uint8		bytes[4096];

	if (!diag_open(diag) || !diag_send(diag, endpoints))
		return TCP_REPLY_REFUSED;
	for (int i = 0; i < DIAG_DATAGRAMS; i++)
	{
		ssize_t		length = diag_receive(diag, bytes, sizeof(bytes));
		TcpReply	reply;

		if (length < 0)
			break;
		reply = tcpstate_reply(bytes, length, endpoints, diag->sequence, now, info);
		if (reply != TCP_REPLY_FOREIGN)
			return reply;
	}
	return TCP_REPLY_REFUSED;
}

/*
 * Ask the kernel about a connection of any process in this network namespace,
 * of which "known" is known already.  "info" is set if it replies.
 *
 * Whoever is refused gets a new socket, and not before a pause.  A kernel
 * without tcp_diag says of each connection that there is none, so at first
 * that is a refusal too.
 */
TcpReply
tcpinfo_diag_query(TcpDiag *diag, const TcpEndpoints *endpoints, const TcpInfo *known,
				   int64 now, TcpInfo *info)
{
	TcpInfo		fresh;
	TcpReply	reply;

	if (!tcpstate_may_ask(&diag->backoff, now))
		return TCP_REPLY_REFUSED;
	reply = diag_ask(diag, endpoints, now, &fresh);
	if (reply == TCP_REPLY_VALID)
	{
		diag->replied = true;
		tcpstate_got_reply(&diag->backoff);
		if (!tcpstate_continue(&fresh, known))
			return TCP_REPLY_GONE;
		*info = fresh;
		return reply;
	}
	if (reply == TCP_REPLY_GONE && diag->replied)
		return reply;
	tcpstate_was_refused(&diag->backoff, now);
	tcpinfo_diag_close(diag);
	return TCP_REPLY_REFUSED;
}

/* The kernel fills datagrams of up to 32 kB, as long as it is asked for more. */
#define LISTENERS_BYTES		32768
#define LISTENERS_DATAGRAMS	16

static bool
ask_for_listeners(TcpDiag *diag, int family, uint32 owner, TcpListeners *found)
{
	static uint8 bytes[LISTENERS_BYTES];
	uint8		question[TCP_QUESTION_SIZE];
	TcpReply	reply = TCP_REPLY_FOREIGN;

	tcpstate_listeners_question(family, ++diag->sequence, question);
	if (!diag_open(diag) || !diag_send_bytes(diag, question, sizeof(question)))
		return false;
	for (int i = 0; i < LISTENERS_DATAGRAMS && reply == TCP_REPLY_FOREIGN; i++)
	{
		ssize_t		length = diag_receive(diag, bytes, sizeof(bytes));

		if (length < 0)
			return false;
		reply = tcpstate_listeners_reply(bytes, length, owner, diag->sequence, found);
	}
	return reply == TCP_REPLY_VALID;
}

/*
 * Where do processes of this user listen?  False where the kernel does not say.
 * Where it does, it has tcp_diag: see tcpinfo_diag_query().
 */
bool
tcpinfo_diag_listeners(TcpDiag *diag, uint32 owner, TcpListeners *found)
{
	found->count = 0;
	if (!ask_for_listeners(diag, AF_INET, owner, found) ||
		!ask_for_listeners(diag, AF_INET6, owner, found))
	{
		/* what is left of a reply is in nobody's way */
		tcpinfo_diag_close(diag);
		return false;
	}
	diag->replied = true;
	return true;
}

#else							/* no TCP_INFO */

bool
tcpinfo_diag_listeners(TcpDiag *diag, uint32 owner, TcpListeners *found)
{
	return false;
}

bool
tcpinfo_of_socket(pgsocket sock, const TcpInfo *known, int64 now, TcpInfo *info)
{
	return false;
}

bool
tcpinfo_stream(pgsocket sock, int64 *read, int64 *acknowledged)
{
	return false;
}

void
tcpinfo_diag_init(TcpDiag *diag)
{
	memset(diag, 0, sizeof(*diag));
	diag->sock = -1;
}

void
tcpinfo_diag_close(TcpDiag *diag)
{
}

TcpReply
tcpinfo_diag_query(TcpDiag *diag, const TcpEndpoints *endpoints, const TcpInfo *known,
				   int64 now, TcpInfo *info)
{
	return TCP_REPLY_REFUSED;
}

#endif
