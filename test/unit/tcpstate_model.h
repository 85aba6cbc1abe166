/*
 * tcpstate_model.h: invariants for any datagram that seems to be the kernel's
 * reply; for test_tcpstate.c and fuzz_tcpstate.c.
 */
#ifndef TCPSTATE_MODEL_H
#define TCPSTATE_MODEL_H

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "tcpstate.h"

#define MODEL_SEQUENCE	4711
#define MODEL_NOW		INT64_C(1000000000000)
#define MODEL_OWNER		1000

/*
 * A reply as the kernel builds it, without gaps, to be corrupted field by
 * field.
 */
#pragma pack(push, 1)
typedef struct ModelReply
{
	struct nlmsghdr header;
	struct inet_diag_msg socket;
	struct nlattr other;
	uint32_t	other_value;
	struct nlattr info_header;
	struct tcp_info info;
} ModelReply;
#pragma pack(pop)

/* 10.0.0.1, port 5432, to 10.0.0.2, port 40000 */
static void
model_endpoints(TcpEndpoints *endpoints)
{
	memset(endpoints, 0, sizeof(*endpoints));
	endpoints->family = AF_INET;
	endpoints->local_address[0] = endpoints->remote_address[0] = 10;
	endpoints->local_address[3] = 1;
	endpoints->remote_address[3] = 2;
	endpoints->local_port = htons(5432);
	endpoints->remote_port = htons(40000);
	endpoints->cookie = UINT64_C(0x1234567890);
}

static void
model_reply(const TcpEndpoints *endpoints, ModelReply *reply)
{
	memset(reply, 0, sizeof(*reply));
	reply->header.nlmsg_len = sizeof(*reply);
	reply->header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
	reply->header.nlmsg_seq = MODEL_SEQUENCE;
	reply->socket.idiag_family = (uint8_t) endpoints->family;
	reply->socket.idiag_state = 1;
	reply->socket.id.idiag_sport = endpoints->local_port;
	reply->socket.id.idiag_dport = endpoints->remote_port;
	memcpy(reply->socket.id.idiag_src, endpoints->local_address, 16);
	memcpy(reply->socket.id.idiag_dst, endpoints->remote_address, 16);
	reply->socket.id.idiag_cookie[0] = (uint32_t) endpoints->cookie;
	reply->socket.id.idiag_cookie[1] = (uint32_t) (endpoints->cookie >> 32);
	reply->socket.idiag_wqueue = 77;
	reply->socket.idiag_uid = MODEL_OWNER;
	reply->other.nla_len = NLA_HDRLEN + 1;	/* three bytes of padding follow */
	reply->other.nla_type = INET_DIAG_SHUTDOWN;
	reply->info_header.nla_len = NLA_HDRLEN + sizeof(reply->info);
	reply->info_header.nla_type = INET_DIAG_INFO;
	reply->info.tcpi_state = 1;
	reply->info.tcpi_min_rtt = 25;
	reply->info.tcpi_rtt = 40;
	reply->info.tcpi_total_retrans = 3;
#ifdef TCP_TX_DELAY
	reply->info.tcpi_dsack_dups = 2;
#endif
	reply->info.tcpi_segs_out = 100;
	reply->info.tcpi_segs_in = 200;
	reply->info.tcpi_bytes_received = 5000;
	reply->info.tcpi_busy_time = 30;
	reply->info.tcpi_rwnd_limited = 20;
	reply->info.tcpi_last_data_sent = 10;
}

/* Does the datagram contain the beginning of the right reply anywhere? */
static bool
model_holds_answer(const uint8_t *bytes, size_t length, const TcpEndpoints *endpoints)
{
	for (size_t at = 0; at + NLMSG_HDRLEN + sizeof(struct inet_diag_msg) <= length; at++)
	{
		struct nlmsghdr header;
		struct inet_diag_msg socket;

		memcpy(&header, bytes + at, sizeof(header));
		memcpy(&socket, bytes + at + NLMSG_HDRLEN, sizeof(socket));
		if (header.nlmsg_seq == MODEL_SEQUENCE && header.nlmsg_type == SOCK_DIAG_BY_FAMILY &&
			(socket.idiag_state == 1 || socket.idiag_state == 8) &&
			socket.id.idiag_sport == endpoints->local_port &&
			socket.id.idiag_dport == endpoints->remote_port &&
			socket.id.idiag_cookie[0] == (uint32_t) endpoints->cookie &&
			socket.id.idiag_cookie[1] == (uint32_t) (endpoints->cookie >> 32))
			return true;
	}
	return false;
}

static bool
model_is_sane(const TcpInfo *info)
{
	return info->measured_at == MODEL_NOW && info->rtt >= 0 && info->srtt >= 0 &&
		info->busy >= 0 && info->rwnd_limited >= 0 && info->data_sent_at <= MODEL_NOW &&
		info->silent_since <= MODEL_NOW && info->unsent >= 0 && info->counters.retransmits >= 0 &&
		info->counters.bytes_received >= 0 && info->counters.packets_sent >= 0 &&
		info->counters.packets_received >= 0;
}

static bool
model_not_below(const TcpCounters *a, const TcpCounters *b)
{
	return a->retransmits >= b->retransmits && a->bytes_received >= b->bytes_received &&
		a->packets_sent >= b->packets_sent && a->packets_received >= b->packets_received;
}

/*
 * Does the datagram contain a socket listening at this address and port
 * anywhere?
 */
static bool
model_holds_listener(const uint8_t *bytes, size_t length, const TcpEndpoints *found)
{
	for (size_t at = 0; at + NLMSG_HDRLEN + sizeof(struct inet_diag_msg) <= length; at++)
	{
		struct nlmsghdr header;
		struct inet_diag_msg socket;

		memcpy(&header, bytes + at, sizeof(header));
		memcpy(&socket, bytes + at + NLMSG_HDRLEN, sizeof(socket));
		if (header.nlmsg_seq == MODEL_SEQUENCE && header.nlmsg_type == SOCK_DIAG_BY_FAMILY &&
			socket.idiag_state == 10 && socket.idiag_uid == MODEL_OWNER &&
			socket.idiag_family == found->family &&
			socket.id.idiag_sport == found->local_port &&
			memcmp(socket.id.idiag_src, found->local_address, 4) == 0)
			return true;
	}
	return false;
}

/* Read a datagram as the reply to a question about listening sockets. */
static const char *
model_read_listeners(const uint8_t *bytes, size_t length)
{
	TcpListeners found = {.count = 0};

	(void) tcpstate_listeners_reply(bytes, length, MODEL_OWNER, MODEL_SEQUENCE, &found);
	if (found.count < 0 || found.count > TCP_LISTENERS)
		return "more listeners than there is room for";
	for (int i = 0; i < found.count; i++)
	{
		if (!model_holds_listener(bytes, length, &found.sockets[i]))
			return "a listener that is not there";
	}
	return NULL;
}

/* Read a datagram.  Returns NULL, or what is wrong. */
static const char *
model_read(const uint8_t *bytes, size_t length)
{
	const char *wrong = model_read_listeners(bytes, length);
	TcpEndpoints endpoints;
	TcpInfo		untouched;
	TcpInfo		info;
	TcpInfo		known;
	TcpReply	reply;

	if (wrong)
		return wrong;
	model_endpoints(&endpoints);
	memset(&untouched, 0x5a, sizeof(untouched));
	info = untouched;
	reply = tcpstate_reply(bytes, length, &endpoints, MODEL_SEQUENCE, MODEL_NOW, &info);
	if (reply != TCP_REPLY_VALID)
		return memcmp(&info, &untouched, sizeof(info)) == 0 ? NULL : "no answer, but figures";
	if (!model_holds_answer(bytes, length, &endpoints))
		return "the answer to something else was taken";
	if (!model_is_sane(&info))
		return "impossible figures were taken";

	/* continuing a known measurement never makes a counter fall */
	known = info;
	known.measured_at = 1;
	known.counters.retransmits = INT64_C(0x1fffffff0);
	known.counters.packets_sent = 90;
	known.counters.packets_received = INT64_C(0xfffffff0);
	known.counters.bytes_received = info.counters.bytes_received;
	tcpstate_continue(&info, &known);
	if (!model_not_below(&info.counters, &known.counters))
		return "a counter fell";
	return NULL;
}

#endif
