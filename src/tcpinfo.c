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

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#ifdef __linux__
/* linux/tcp.h, not netinet/tcp.h: glibc's tcp_info ends before tcpi_min_rtt */
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#endif
#include <netinet/in.h>

#include "clock.h"
#include "tcpinfo.h"

/*
 * Fill in both ends of a client connection; family 0 if it is not TCP.
 */
void
tcpinfo_endpoints(const struct sockaddr_storage *local,
				  const struct sockaddr_storage *remote,
				  TcpEndpoints *endpoints)
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
	}
}

void
tcpinfo_counters(const TcpInfo *info, TcpCounters *counters)
{
	counters->retransmits = info->retransmits;
	counters->bytes_received = info->bytes_received;
	counters->packets_sent = info->packets_sent;
	counters->packets_received = info->packets_received;
}

/* Two measurements of one connection: keep the later one. */
void
tcpinfo_latest(TcpInfo *latest, const TcpInfo *other)
{
	if (other->measured_at > latest->measured_at)
		*latest = *other;
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

/*
 * The time for which this process was ready to run and did not get a
 * processor, since it started; -1 where the kernel does not say.
 */
int64
tcpinfo_run_queue_time(void)
{
#ifdef __linux__
	char		text[96];
	long long	on_cpu;
	long long	waiting;
	int			fd = open("/proc/self/schedstat", O_RDONLY | O_CLOEXEC);
	ssize_t		length;

	if (fd < 0)
		return -1;
	length = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (length <= 0)
		return -1;
	text[length] = '\0';
	if (sscanf(text, "%lld %lld", &on_cpu, &waiting) == 2)
		return waiting;
#endif
	return -1;
}

/*
 * How often this process has given up its processor to wait for something;
 * always the same where the kernel does not say.
 */
long
tcpinfo_times_blocked(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_SELF, &usage) != 0)
		return 0;
	return usage.ru_nvcsw;
}

#if defined(__linux__) && defined(TCP_INFO)

/* Older kernels return a shorter structure; what is missing reads as zero. */
static void
from_kernel(const struct tcp_info *kernel, int64 now, TcpInfo *info)
{
	/* ~0: no sample yet; 0 also on kernels before 4.9 */
	info->rtt = kernel->tcpi_min_rtt == PG_UINT32_MAX ? 0 :
		(int64) kernel->tcpi_min_rtt * NS_PER_US;
	info->srtt = (int64) kernel->tcpi_rtt * NS_PER_US;
	info->busy = (int64) kernel->tcpi_busy_time * NS_PER_US;
	info->rwnd_limited = (int64) kernel->tcpi_rwnd_limited * NS_PER_US;
	info->retransmits = kernel->tcpi_total_retrans;
	info->bytes_received = kernel->tcpi_bytes_received;
	info->packets_sent = kernel->tcpi_segs_out;
	info->packets_received = kernel->tcpi_segs_in;
	info->data_sent_at = now - (int64) kernel->tcpi_last_data_sent * NS_PER_MS;
	info->unsent = 0;
	info->measured_at = now;
}

/*
 * Ask the kernel about a connection of this process.  Returns false, and
 * leaves "info" alone, where it does not answer.
 */
bool
tcpinfo_of_socket(pgsocket sock, int64 now, TcpInfo *info)
{
	struct tcp_info kernel;
	socklen_t	length = sizeof(kernel);

	memset(&kernel, 0, sizeof(kernel));
	if (getsockopt(sock, IPPROTO_TCP, TCP_INFO, &kernel, &length) != 0)
		return false;
	from_kernel(&kernel, now, info);
	return true;
}

/* A socket for tcpinfo_diag_query(), or -1. */
int
tcpinfo_diag_open(void)
{
	int			diag = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	struct timeval timeout = {.tv_sec = 0,.tv_usec = 100000};

	/* the kernel answers at once; never hang on it all the same */
	if (diag >= 0)
		(void) setsockopt(diag, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	return diag;
}

static bool
diag_send(int diag, const TcpEndpoints *endpoints)
{
	struct
	{
		struct nlmsghdr header;
		struct inet_diag_req_v2 body;
	}			request;
	struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};

	memset(&request, 0, sizeof(request));
	request.header.nlmsg_len = sizeof(request);
	request.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
	request.header.nlmsg_flags = NLM_F_REQUEST;
	request.body.sdiag_family = endpoints->family;
	request.body.sdiag_protocol = IPPROTO_TCP;
	request.body.idiag_ext = 1 << (INET_DIAG_INFO - 1);
	request.body.idiag_states = -1;
	request.body.id.idiag_sport = endpoints->local_port;
	request.body.id.idiag_dport = endpoints->remote_port;
	memcpy(request.body.id.idiag_src, endpoints->local_address, 16);
	memcpy(request.body.id.idiag_dst, endpoints->remote_address, 16);
	request.body.id.idiag_cookie[0] = INET_DIAG_NOCOOKIE;
	request.body.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
	return sendto(diag, &request, sizeof(request), 0,
				  (struct sockaddr *) &kernel, sizeof(kernel)) == sizeof(request);
}

static bool
diag_parse(const struct nlmsghdr *header, int64 now, TcpInfo *info)
{
	const struct inet_diag_msg *message = NLMSG_DATA(header);
	const char *at = (const char *) (message + 1);
	int			left;

	if (header->nlmsg_type != SOCK_DIAG_BY_FAMILY ||
		header->nlmsg_len < NLMSG_LENGTH(sizeof(*message)))
		return false;
	left = header->nlmsg_len - NLMSG_LENGTH(sizeof(*message));
	while (left >= (int) sizeof(struct nlattr))
	{
		const struct nlattr *attribute = (const struct nlattr *) at;
		int			step = NLMSG_ALIGN(attribute->nla_len);

		if (attribute->nla_len < sizeof(*attribute) || attribute->nla_len > left)
			return false;
		if (attribute->nla_type == INET_DIAG_INFO)
		{
			struct tcp_info kernel;

			memset(&kernel, 0, sizeof(kernel));
			memcpy(&kernel, attribute + 1,
				   Min(sizeof(kernel), attribute->nla_len - sizeof(*attribute)));
			from_kernel(&kernel, now, info);
			info->unsent = message->idiag_wqueue;
			return true;
		}
		at += step;
		left -= step;
	}
	return false;
}

/*
 * Ask the kernel about a connection of any process in this network namespace.
 */
bool
tcpinfo_diag_query(int diag, const TcpEndpoints *endpoints, int64 now, TcpInfo *info)
{
	union
	{
		struct nlmsghdr header;
		char		bytes[4096];
	}			answer;
	ssize_t		length;

	if (diag < 0 || endpoints->family == 0 || !diag_send(diag, endpoints))
		return false;
	length = recv(diag, &answer, sizeof(answer), 0);
	if (length < (ssize_t) sizeof(answer.header) || !NLMSG_OK(&answer.header, length))
		return false;
	return diag_parse(&answer.header, now, info);
}

#else							/* no TCP_INFO */

bool
tcpinfo_of_socket(pgsocket sock, int64 now, TcpInfo *info)
{
	return false;
}

int
tcpinfo_diag_open(void)
{
	return -1;
}

bool
tcpinfo_diag_query(int diag, const TcpEndpoints *endpoints, int64 now, TcpInfo *info)
{
	return false;
}

#endif
