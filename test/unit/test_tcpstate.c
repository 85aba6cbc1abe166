/* Sources: tcpstate.c */
/* test_tcpstate.c: counters that wrap around, and the kernel's replies. */
#include "tcpstate.h"

#include "check.h"

#define WRAP	INT64_C(0x100000000)

/* A measurement whose three narrow counters all have this value. */
static TcpInfo
measured(int64_t at, int64_t narrow, int64_t bytes)
{
	TcpInfo		info = {0};

	info.measured_at = at;
	info.rtt = at;
	info.counters.retransmits = narrow;
	info.counters.packets_sent = narrow;
	info.counters.packets_received = narrow;
	info.counters.bytes_received = bytes;
	return info;
}

static void
test_wrap(void)
{
	TcpInfo		known = measured(1, 0xfffffff0, 1000);
	TcpInfo		fresh = measured(2, 0x10, 1001);
	TcpInfo		first = {0};

	tcpstate_continue(&fresh, &known);
	CHECK_EQUAL(fresh.counters.packets_sent, WRAP + 0x10, "packets sent across a wrap");
	CHECK_EQUAL(fresh.counters.packets_received, WRAP + 0x10, "packets received across a wrap");
	CHECK_EQUAL(fresh.counters.retransmits, WRAP + 0x10, "retransmits across a wrap");
	CHECK_EQUAL(fresh.counters.bytes_received, 1001, "bytes received, which do not wrap");

	/* nothing is known yet: the kernel's values */
	fresh = measured(2, 0xfffffff0, 1001);
	tcpstate_continue(&fresh, &first);
	CHECK_EQUAL(fresh.counters.packets_sent, 0xfffffff0, "packets sent of the first measurement");

	/* the same once more */
	known = measured(1, 3 * WRAP + 5, 1000);
	fresh = measured(2, 5, 1000);
	tcpstate_continue(&fresh, &known);
	CHECK_EQUAL(fresh.counters.packets_sent, 3 * WRAP + 5,
				"packets sent of the same measurement once more");
}

/* A counter of 64 bits of which 32 are read, over many wraps. */
static void
test_many_wraps(void)
{
	TcpInfo		known = measured(1, 0, 0);
	int64_t		truth = 0;

	for (int i = 1; i < 1000; i++)
	{
		int64_t		step = (i * INT64_C(2654435761)) % (WRAP - WRAP / 8);
		TcpInfo		fresh;

		truth += step;
		fresh = measured(i + 1, truth % WRAP, truth);
		tcpstate_continue(&fresh, &known);
		CHECK_EQUAL(fresh.counters.packets_sent, truth, "packets sent over many wraps");
		known = fresh;
	}
}

static void
test_older(void)
{
	TcpInfo		known = measured(1, WRAP + 100, 1000);
	TcpInfo		fresh = measured(2, 90, 1000);

	/* a question asked earlier and answered late */
	tcpstate_continue(&fresh, &known);
	CHECK_EQUAL(fresh.counters.packets_sent, WRAP + 100, "packets sent after an older answer");

	/* the peer reports that one of those sent again was a duplicate */
	known.counters.retransmits = fresh.counters.retransmits = 7;
	known.counters.retransmits++;
	tcpstate_continue(&fresh, &known);
	CHECK_EQUAL(fresh.counters.retransmits, 8, "retransmits never fall");

	/* around zero */
	known = measured(1, WRAP + 5, 1000);
	fresh = measured(2, 0xfffffff0, 1000);
	tcpstate_continue(&fresh, &known);
	CHECK_EQUAL(fresh.counters.packets_sent, WRAP + 5,
				"packets sent after an older answer around zero");
}

/* The session and the sampler take turns at measuring a connection. */
static void
test_two_sources(void)
{
	TcpInfo		published = measured(10, WRAP - 4, 1000);
	TcpInfo		known;
	TcpInfo		sampled;
	TcpInfo		shown;

	/* the sampler, across the wrap; then the session a little later */
	sampled = measured(11, 2, 1100);
	tcpstate_continue(&sampled, &published);
	shown = published;
	tcpstate_latest(&shown, &sampled);
	CHECK_EQUAL(shown.counters.packets_sent, WRAP + 2, "packets sent as the sampler measured them");
	CHECK_EQUAL(shown.rtt, 11, "the round trip of the sampler's measurement");

	known = measured(12, 3, 1200);
	tcpstate_continue(&known, &published);
	tcpstate_latest(&published, &known);
	shown = published;
	tcpstate_latest(&shown, &sampled);
	CHECK_EQUAL(shown.counters.packets_sent, WRAP + 3, "packets sent as the session measured them");
	CHECK_EQUAL(shown.rtt, 12, "the round trip of the session's measurement");

	/* the later one counts, whoever has measured it */
	sampled = measured(11, WRAP + 7, 1300);
	shown = published;
	tcpstate_latest(&shown, &sampled);
	CHECK_EQUAL(shown.rtt, 12, "the round trip of the later measurement");
}

#ifdef __linux__

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tcpstate_model.h"

/* The end of the last mapped page. */
static uint8_t *
end_of_memory(void)
{
	static uint8_t *end = NULL;

	if (end == NULL)
	{
		size_t		page = (size_t) sysconf(_SC_PAGESIZE);
		uint8_t    *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
								 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (pages == MAP_FAILED || mprotect(pages + page, page, PROT_NONE) != 0)
			abort();
		end = pages + page;
	}
	return end;
}

/* Read a datagram of this length; no byte after it may be read. */
static TcpReply
read_datagram(const void *bytes, size_t length, const TcpEndpoints *endpoints, TcpInfo *info)
{
	uint8_t    *copy = end_of_memory() - length;

	memcpy(copy, bytes, length);
	return tcpstate_reply(copy, length, endpoints, MODEL_SEQUENCE, MODEL_NOW, info);
}

/* One reply with one thing wrong. */
#define CHECK_SPOILT(spoil, expected) \
	do { \
		model_endpoints(&endpoints); \
		model_reply(&endpoints, &reply); \
		spoil; \
		CHECK_EQUAL(read_datagram(&reply, sizeof(reply), &endpoints, &info), \
					expected, #spoil); \
	} while (0)

static void
test_answer(void)
{
	TcpEndpoints endpoints;
	ModelReply	reply;
	TcpInfo		info;

	CHECK_SPOILT((void) 0, TCP_REPLY_VALID);
	CHECK_EQUAL(info.measured_at, MODEL_NOW, "measured_at of the answer");
	CHECK_EQUAL(info.rtt, 25000, "rtt of the answer");
	CHECK_EQUAL(info.srtt, 40000, "srtt of the answer");
	CHECK_EQUAL(info.busy, 30000, "busy of the answer");
	CHECK_EQUAL(info.rwnd_limited, 20000, "rwnd_limited of the answer");
	CHECK_EQUAL(info.data_sent_at, MODEL_NOW - 10000000, "data_sent_at of the answer");
	CHECK_EQUAL(info.unsent, 77, "unsent of the answer");
	CHECK_EQUAL(info.sent_again, 3, "sent_again of the answer");
#ifdef TCP_TX_DELAY
	CHECK_EQUAL(info.counters.retransmits, 1, "retransmits without duplicates");
#endif
	CHECK_EQUAL(info.counters.packets_sent, 100, "packets_sent of the answer");
	CHECK_EQUAL(info.counters.packets_received, 200, "packets_received of the answer");
	CHECK_EQUAL(info.counters.bytes_received, 5000, "bytes_received of the answer");

	CHECK_EQUAL(info.silent_since, 0, "silent_since of a peer that answers");

	CHECK_SPOILT(reply.info.tcpi_retransmits = 1, TCP_REPLY_VALID);
	CHECK_EQUAL(info.silent_since, 0, "silent_since after one retransmission");
	CHECK_SPOILT((reply.info.tcpi_retransmits = 2, reply.info.tcpi_last_ack_recv = 600), TCP_REPLY_VALID);
	CHECK_EQUAL(info.silent_since, MODEL_NOW - 600000000, "silent_since after two");
	CHECK_SPOILT((reply.info.tcpi_probes = 3, reply.info.tcpi_last_ack_recv = 700), TCP_REPLY_VALID);
	CHECK_EQUAL(info.silent_since, MODEL_NOW - 700000000, "silent_since after probes");

	/* a network that duplicates packets */
	CHECK_SPOILT(reply.info.tcpi_dsack_dups = 9, TCP_REPLY_VALID);
	CHECK(info.counters.retransmits >= 0 && info.counters.retransmits <= 3,
		  "more duplicates than were sent again");

	CHECK_SPOILT(reply.info.tcpi_min_rtt = UINT32_MAX, TCP_REPLY_VALID);
	CHECK_EQUAL(info.rtt, 0, "rtt if the kernel does not know it");
	CHECK_SPOILT(reply.info.tcpi_busy_time = UINT64_MAX, TCP_REPLY_VALID);
	CHECK(info.busy > 0, "an impossible time is not negative");
	CHECK_SPOILT(reply.info.tcpi_bytes_received = UINT64_MAX, TCP_REPLY_REFUSED);

	/* the client has sent its last byte */
	CHECK_SPOILT(reply.socket.idiag_state = 8, TCP_REPLY_VALID);
	/* kernels without cookies */
	CHECK_SPOILT(endpoints.cookie = 0, TCP_REPLY_VALID);
}

static void
test_other_sockets(void)
{
	TcpEndpoints endpoints;
	ModelReply	reply;
	TcpInfo		info;

	/* a listening socket, in the reply of a kernel without cookies */
	CHECK_SPOILT((endpoints.cookie = 0, reply.socket.idiag_state = 10,
				  reply.socket.id.idiag_dport = 0,
				  memset(reply.socket.id.idiag_dst, 0, 16)), TCP_REPLY_GONE);
	/* all states but established (1) and close_wait (8) */
	for (int state = 0; state < 256; state++)
	{
		if (state != 1 && state != 8)
			CHECK_SPOILT(reply.socket.idiag_state = (uint8_t) state, TCP_REPLY_GONE);
	}
	CHECK_SPOILT(reply.socket.id.idiag_sport++, TCP_REPLY_GONE);
	CHECK_SPOILT(reply.socket.id.idiag_dport++, TCP_REPLY_GONE);
	/* a later connection from the same port */
	CHECK_SPOILT(reply.socket.id.idiag_cookie[0]++, TCP_REPLY_GONE);
	CHECK_SPOILT(reply.socket.id.idiag_cookie[1]++, TCP_REPLY_GONE);
}

static void
test_other_messages(void)
{
	TcpEndpoints endpoints;
	ModelReply	reply;
	TcpInfo		info;
	struct
	{
		struct nlmsghdr header;
		struct nlmsgerr error;
	}			error = {0};
	struct
	{
		ModelReply	late;
		ModelReply	answer;
	}			both;

	/* the answer to another question, even about the same connection */
	CHECK_SPOILT(reply.header.nlmsg_seq--, TCP_REPLY_FOREIGN);
	CHECK_SPOILT(reply.header.nlmsg_seq = 0, TCP_REPLY_FOREIGN);
	CHECK_SPOILT(reply.header.nlmsg_type = NLMSG_NOOP, TCP_REPLY_FOREIGN);
	CHECK_SPOILT(reply.header.nlmsg_type = NLMSG_DONE, TCP_REPLY_GONE);

	/* a late reply and the right one together */
	model_endpoints(&endpoints);
	model_reply(&endpoints, &both.late);
	model_reply(&endpoints, &both.answer);
	both.late.header.nlmsg_seq--;
	both.late.info.tcpi_segs_in = 1;
	CHECK_EQUAL(read_datagram(&both, sizeof(both), &endpoints, &info), TCP_REPLY_VALID,
				"the reply to two messages");
	CHECK_EQUAL(info.counters.packets_received, 200,
				"packets received of the right message of two");

	error.header.nlmsg_len = sizeof(error);
	error.header.nlmsg_type = NLMSG_ERROR;
	error.header.nlmsg_seq = MODEL_SEQUENCE;
	error.error.error = -ENOENT;
	CHECK_EQUAL(read_datagram(&error, sizeof(error), &endpoints, &info), TCP_REPLY_GONE,
				"the reply without such a connection");
	error.error.error = -EPERM;
	CHECK_EQUAL(read_datagram(&error, sizeof(error), &endpoints, &info), TCP_REPLY_REFUSED,
				"the reply without permission");
	error.error.error = 0;
	CHECK_EQUAL(read_datagram(&error, sizeof(error), &endpoints, &info), TCP_REPLY_REFUSED,
				"the reply with neither error nor answer");
	error.header.nlmsg_len = NLMSG_HDRLEN + 3;
	CHECK_EQUAL(read_datagram(&error, NLMSG_HDRLEN + 3, &endpoints, &info),
				TCP_REPLY_REFUSED, "the reply with an error cut short");
	error.error.error = -ENOENT;
	error.header.nlmsg_len = sizeof(error);
	error.header.nlmsg_seq--;
	CHECK_EQUAL(read_datagram(&error, sizeof(error), &endpoints, &info), TCP_REPLY_FOREIGN,
				"the reply with another question's error");
}

static void
test_lengths(void)
{
	TcpEndpoints endpoints;
	ModelReply	reply;
	TcpInfo		info;
	const size_t before_info = offsetof(ModelReply, info);

	/* the datagram is shorter than it says, or says that it is shorter */
	model_endpoints(&endpoints);
	model_reply(&endpoints, &reply);
	for (size_t length = 0; length < sizeof(reply); length++)
	{
		CHECK_EQUAL(read_datagram(&reply, length, &endpoints, &info), TCP_REPLY_FOREIGN,
					"the reply to a datagram cut short");
		reply.header.nlmsg_len = (uint32_t) length;
		CHECK(read_datagram(&reply, length, &endpoints, &info) != TCP_REPLY_VALID,
			  "a message of %zu bytes is not valid", length);
		reply.header.nlmsg_len = sizeof(reply);
	}
	CHECK_SPOILT(reply.header.nlmsg_len = UINT32_MAX, TCP_REPLY_FOREIGN);

	/* another socket's message without padding */
	for (size_t length = NLMSG_HDRLEN; length < sizeof(reply); length++)
	{
		reply.header.nlmsg_len = (uint32_t) length;
		reply.header.nlmsg_seq = MODEL_SEQUENCE - 1;
		CHECK_EQUAL(read_datagram(&reply, length, &endpoints, &info), TCP_REPLY_FOREIGN,
					"the reply to another message without padding");
	}

	/* the structure of older kernels, and impossible ones */
	for (size_t length = 0; length <= sizeof(reply.info); length++)
	{
		TcpReply	expected = length < 104 ? TCP_REPLY_REFUSED : TCP_REPLY_VALID;

		CHECK_SPOILT(reply.info_header.nla_len = (uint16_t) (NLA_HDRLEN + length), expected);
	}
	CHECK_SPOILT(reply.info_header.nla_len =
				 (uint16_t) (NLA_HDRLEN + offsetof(struct tcp_info, tcpi_min_rtt)),
				 TCP_REPLY_VALID);
	CHECK_EQUAL(info.rtt, 0, "rtt of an old kernel");

	/* attributes that lie about their length */
	for (size_t length = 0; length < NLA_HDRLEN; length++)
	{
		CHECK_SPOILT(reply.info_header.nla_len = (uint16_t) length, TCP_REPLY_REFUSED);
		CHECK_SPOILT(reply.other.nla_len = (uint16_t) length, TCP_REPLY_REFUSED);
	}
	CHECK_SPOILT(reply.info_header.nla_len++, TCP_REPLY_REFUSED);
	CHECK_SPOILT(reply.info_header.nla_len = UINT16_MAX, TCP_REPLY_REFUSED);
	CHECK_SPOILT(reply.other.nla_len = UINT16_MAX, TCP_REPLY_REFUSED);
	CHECK_SPOILT(reply.other.nla_len = (uint16_t) (before_info - offsetof(ModelReply, other)),
				 TCP_REPLY_REFUSED);
	/* an attribute of another kind */
	CHECK_SPOILT(reply.info_header.nla_type = INET_DIAG_MEMINFO, TCP_REPLY_REFUSED);
}

/* A good reply with some bytes changed, and cut off or extended. */
static void
test_random(void)
{
	TcpEndpoints endpoints;
	ModelReply	reply;
	uint8_t		bytes[sizeof(reply) + 64];
	const char *wrong = NULL;
	int			answers = 0;

	model_endpoints(&endpoints);
	srandom(1);
	for (int round = 0; round < 300000 && wrong == NULL; round++)
	{
		size_t		length = sizeof(reply);
		TcpInfo		info;

		memset(bytes, (int) random(), sizeof(bytes));
		model_reply(&endpoints, &reply);
		memcpy(bytes, &reply, sizeof(reply));
		for (long i = random() % 5; i > 0; i--)
			bytes[(size_t) random() % sizeof(reply)] = (uint8_t) random();
		if (random() % 4 == 0)
			length = (size_t) random() % (sizeof(bytes) + 1);
		answers += read_datagram(bytes, length, &endpoints, &info) == TCP_REPLY_VALID;
		wrong = model_read(end_of_memory() - length, length);
	}
	CHECK(wrong == NULL, "%s", wrong);
	CHECK(answers > 1000 && answers < 300000,
		  "random replies have some but not only valid ones (%d)", answers);
}

static void
test_question(void)
{
	TcpEndpoints endpoints;
	uint8_t		question[TCP_QUESTION_SIZE];
	struct nlmsghdr header;
	struct inet_diag_req_v2 body;

	model_endpoints(&endpoints);
	endpoints.scope = 3;
	tcpstate_question(&endpoints, 99, question);
	memcpy(&header, question, sizeof(header));
	memcpy(&body, question + NLMSG_HDRLEN, sizeof(body));
	CHECK_EQUAL(header.nlmsg_len, sizeof(question), "the question's length");
	CHECK_EQUAL(header.nlmsg_seq, 99, "the question's sequence number");
	CHECK_EQUAL(body.id.idiag_if, 3, "the question's interface");
	CHECK_EQUAL(body.id.idiag_cookie[0], 0x34567890, "the low half of the question's cookie");
	CHECK_EQUAL(body.id.idiag_cookie[1], 0x12, "the high half of the question's cookie");
	endpoints.cookie = 0;
	tcpstate_question(&endpoints, 99, question);
	memcpy(&body, question + NLMSG_HDRLEN, sizeof(body));
	CHECK_EQUAL(body.id.idiag_cookie[0], INET_DIAG_NOCOOKIE, "the low half of no cookie");
	CHECK_EQUAL(body.id.idiag_cookie[1], INET_DIAG_NOCOOKIE, "the high half of no cookie");
}

/* ---------------------------------------------------------------------------
 * Listening sockets
 * ---------------------------------------------------------------------------
 */

static TcpReply
listeners(const void *bytes, size_t length, TcpListeners *found)
{
	found->count = 0;
	return tcpstate_listeners_reply(bytes, length, MODEL_OWNER, MODEL_SEQUENCE, found);
}

/* One listening socket, corrupted. */
#define CHECK_LISTENER(spoil, expected, number) \
	do { \
		model_endpoints(&endpoints); \
		model_reply(&endpoints, &reply); \
		reply.socket.idiag_state = 10; \
		reply.socket.idiag_uid = MODEL_OWNER; \
		spoil; \
		CHECK_EQUAL(listeners(&reply, sizeof(reply), &found), expected, #spoil); \
		CHECK_EQUAL(found.count, number, #spoil); \
	} while (0)

static void
test_listeners(void)
{
	TcpEndpoints endpoints;
	TcpListeners found;
	ModelReply	reply;
	ModelReply	many[TCP_LISTENERS + 3];

	CHECK_LISTENER((void) 0, TCP_REPLY_FOREIGN, 1);
	CHECK(found.sockets[0].local_port == endpoints.local_port,
		  "the socket has the port where it listens");
	CHECK(memcmp(found.sockets[0].local_address, endpoints.local_address, 4) == 0,
		  "the socket has the address where it listens");
	CHECK_EQUAL(found.sockets[0].remote_port, 0, "the remote port of a listening socket");

	CHECK_LISTENER(reply.socket.idiag_uid++, TCP_REPLY_FOREIGN, 0);
	CHECK_LISTENER(reply.socket.idiag_state = 1, TCP_REPLY_FOREIGN, 0);
	CHECK_LISTENER(reply.socket.idiag_family = AF_UNIX, TCP_REPLY_FOREIGN, 0);
	CHECK_LISTENER(reply.header.nlmsg_seq++, TCP_REPLY_FOREIGN, 0);
	CHECK_LISTENER(reply.header.nlmsg_len++, TCP_REPLY_FOREIGN, 0);
	CHECK_LISTENER(reply.header.nlmsg_type = NLMSG_DONE, TCP_REPLY_VALID, 0);
	CHECK_LISTENER(reply.header.nlmsg_type = NLMSG_ERROR, TCP_REPLY_REFUSED, 0);

	/* more sockets than there is room for */
	CHECK_LISTENER((void) 0, TCP_REPLY_FOREIGN, 1);
	for (size_t i = 0; i < sizeof(many) / sizeof(many[0]); i++)
		many[i] = reply;
	CHECK_EQUAL(listeners(many, sizeof(many), &found), TCP_REPLY_FOREIGN,
				"the reply to many listening sockets");
	CHECK_EQUAL(found.count, TCP_LISTENERS, "the number of many listening sockets");
	for (size_t length = 0; length < sizeof(reply); length++)
	{
		CHECK_EQUAL(listeners(&reply, length, &found), TCP_REPLY_FOREIGN,
					"the reply to a listening socket cut short");
		CHECK_EQUAL(found.count, 0, "the number of listening sockets cut short");
	}
}

/* A real listening socket. */
static void
test_listeners_kernel(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET,.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t	size = sizeof(address);
	int			listener = socket(AF_INET, SOCK_STREAM, 0);
	int			netlink = socket(AF_NETLINK, SOCK_DGRAM, NETLINK_SOCK_DIAG);
	struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
	TcpListeners found = {.count = 0};
	TcpReply	reply = TCP_REPLY_FOREIGN;
	uint8_t		question[TCP_QUESTION_SIZE];
	uint8_t		bytes[32768];
	bool		is_there = false;

	tcpstate_listeners_question(AF_INET, MODEL_SEQUENCE, question);
	if (netlink < 0 || bind(listener, (struct sockaddr *) &address, size) != 0 ||
		listen(listener, 1) != 0 ||
		getsockname(listener, (struct sockaddr *) &address, &size) != 0 ||
		sendto(netlink, question, sizeof(question), 0, (struct sockaddr *) &kernel,
			   sizeof(kernel)) < 0)
	{
		printf("skipped: the kernel's own reply: %s\n", strerror(errno));
		return;
	}
	while (reply == TCP_REPLY_FOREIGN)
	{
		ssize_t		received = recv(netlink, bytes, sizeof(bytes), 0);

		if (received < 0)
			break;
		reply = tcpstate_listeners_reply(bytes, received, getuid(), MODEL_SEQUENCE, &found);
	}
	CHECK_EQUAL(reply, TCP_REPLY_VALID, "the kernel's last reply");
	for (int i = 0; i < found.count; i++)
		is_there |= found.sockets[i].local_port == address.sin_port;
	CHECK(is_there || found.count == TCP_LISTENERS, "the kernel's reply has the test's socket");
}

static void
test_replies(void)
{
	test_answer();
	test_listeners();
	test_listeners_kernel();
	test_other_sockets();
	test_other_messages();
	test_lengths();
	test_random();
	test_question();
}

#else

static void
test_replies(void)
{
}

#endif

/* Differences of all counters. */
static void
test_arithmetic(void)
{
	TcpCounters sum = {1, 20, 300, 4000};
	const TcpCounters term = {5, 60, 700, 8000};

	tcpstate_counters_add(&sum, &term);
	CHECK_EQUAL(sum.retransmits, 6, "the sum of retransmits");
	CHECK_EQUAL(sum.bytes_received, 80, "the sum of bytes_received");
	CHECK_EQUAL(sum.packets_sent, 1000, "the sum of packets_sent");
	CHECK_EQUAL(sum.packets_received, 12000, "the sum of packets_received");
	tcpstate_counters_subtract(&sum, &term);
	CHECK_EQUAL(sum.retransmits, 1, "the difference of retransmits");
	CHECK_EQUAL(sum.bytes_received, 20, "the difference of bytes_received");
	CHECK_EQUAL(sum.packets_sent, 300, "the difference of packets_sent");
	CHECK_EQUAL(sum.packets_received, 4000, "the difference of packets_received");
	tcpstate_counters_subtract(&sum, &term);
	CHECK_EQUAL(sum.retransmits, 0, "retransmits below zero");
	CHECK_EQUAL(sum.packets_sent, 0, "packets_sent below zero");
}

int
main(void)
{
	test_arithmetic();
	test_wrap();
	test_many_wraps();
	test_older();
	test_two_sources();
	test_replies();
	return CHECKS_DONE("tcpstate");
}
