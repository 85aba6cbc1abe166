/*-------------------------------------------------------------------------
 *
 * loadgen.c
 *	  A load of simple queries that costs little itself, in slices.
 *
 * Opens connections with libpq, then talks to their sockets directly: one
 * thread sends a Query message, waits until a ReadyForQuery comes back, and
 * sends the next.  Between slices every connection is switched to one of two
 * sides by running a statement in it.  Prints a line for each slice: its number,
 * side, start and end, responses, processor time of the backends, and the median,
 * 95th and 99th percentile of the response times; times in ns.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <libpq-fe.h>

#define NS_PER_S	INT64_C(1000000000)
#define NS_PER_MS	INT64_C(1000000)
#define MAX_EVENTS	64

static int	clients = 1;
static int	slices = 0;			/* 0: until standard input is closed */
static int64_t slice_time = 100 * NS_PER_MS;
static int64_t settle_time = 2 * NS_PER_MS;
static double rate = 0;			/* queries a second in all; 0: as fast as can be */
static bool idle = false;
static bool stuck = false;
static int	wake_ups = 0;		/* ms between them; 0: there is something to do */
static unsigned seed = 1;
static const char *query = "SELECT 1";
static const char *sides[2];	/* what switches a connection to a side */

static PGconn **connections;
static int64_t *sent;			/* when each connection has sent its query */
static int64_t *times;			/* response times of a slice */
static size_t times_length;		/* places in it */
static char *message;			/* the query as a message of the protocol */
static size_t message_length;

static void
usage(void)
{
	fprintf(stderr,
			"usage: loadgen [option...]\n"
			"  -c N    connections (1)\n"
			"  -n N    slices, an even number (0: until standard input is closed)\n"
			"  -t MS   length of a slice (100)\n"
			"  -w MS   time before a slice that is not counted (2)\n"
			"  -q SQL  query (SELECT 1)\n"
			"  -a SQL  what switches a connection to side A\n"
			"  -b SQL  what switches it to side B\n"
			"  -r N    queries a second in all, in turn on all connections\n"
			"  -i      stay idle\n"
			"  -x      all connections execute the query, whose response nobody waits for\n"
			"  -s N    seed of the order of sides\n"
			"  -z MS   wake up that often, and do nothing: no connections\n");
	exit(2);
}

static void
fail(const char *what, const char *why)
{
	fprintf(stderr, "loadgen: %s: %s\n", what, why);
	exit(1);
}

static int64_t
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

/* Time on a processor of a process, ns; 0 where the kernel does not tell. */
static int64_t
cpu_time(int pid)
{
	char		path[64];
	FILE	   *file;
	long long	time = 0;

	snprintf(path, sizeof(path), "/proc/%d/schedstat", pid);
	file = fopen(path, "r");
	if (file == NULL)
		return 0;
	if (fscanf(file, "%lld", &time) != 1)
		time = 0;
	fclose(file);
	return time;
}

static int64_t
backends_cpu_time(void)
{
	int64_t		sum = 0;

	for (int i = 0; i < clients; i++)
		sum += cpu_time(PQbackendPID(connections[i]));
	return sum;
}

static void
open_connections(void)
{
	connections = calloc(clients, sizeof(PGconn *));
	sent = calloc(clients, sizeof(*sent));
	for (int i = 0; i < clients; i++)
	{
		connections[i] = PQconnectdb("application_name=loadgen");
		if (PQstatus(connections[i]) != CONNECTION_OK)
			fail("could not connect", PQerrorMessage(connections[i]));
	}
}

static void
build_message(void)
{
	size_t		length = strlen(query) + 1;
	uint32_t	word = 4 + length;

	message_length = 1 + 4 + length;
	message = malloc(message_length);
	message[0] = 'Q';
	for (int i = 0; i < 4; i++)
		message[1 + i] = word >> (24 - 8 * i);
	memcpy(message + 5, query, length);
}

static void
send_query(int i)
{
	if (send(PQsocket(connections[i]), message, message_length, 0) != (ssize_t) message_length)
		fail("could not send", strerror(errno));
}

/*
 * Take what has come in; has the response ended?  It has when the last six
 * bytes are a ReadyForQuery: the responses asked for are a few rows, so that
 * nothing else can look like it.
 */
static bool
receive(int i)
{
	static const char ready[] = {'Z', 0, 0, 0, 5, 'I'};
	char		buffer[8192];
	ssize_t		length = recv(PQsocket(connections[i]), buffer, sizeof(buffer), MSG_DONTWAIT);

	if (length < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (length <= 0)
		fail("connection lost", length < 0 ? strerror(errno) : "end of file");
	if (buffer[0] == 'E')
		fail("query failed", query);
	return length >= (ssize_t) sizeof(ready) &&
		memcmp(buffer + length - sizeof(ready), ready, sizeof(ready)) == 0;
}

static void
switch_to(int side)
{
	for (int i = 0; i < clients && sides[side]; i++)
	{
		PGresult   *result = PQexec(connections[i], sides[side]);

		if (PQresultStatus(result) != PGRES_COMMAND_OK &&
			PQresultStatus(result) != PGRES_TUPLES_OK)
			fail(sides[side], PQerrorMessage(connections[i]));
		PQclear(result);
	}
}

static void
add_time(size_t at, int64_t time)
{
	if (at >= times_length)
	{
		times_length = times_length ? 2 * times_length : 1 << 16;
		times = realloc(times, times_length * sizeof(*times));
		if (times == NULL)
			fail("could not keep response times", strerror(errno));
	}
	times[at] = time;
}

static int
compare_times(const void *a, const void *b)
{
	int64_t		x = *(const int64_t *) a,
				y = *(const int64_t *) b;

	return (x > y) - (x < y);
}

/* Keep all connections busy until "end"; the number of responses. */
static int64_t
run_until(int poller, int64_t end)
{
	struct epoll_event events[MAX_EVENTS];
	int64_t		responses = 0;
	int			busy = clients;

	for (int i = 0; i < clients; i++)
	{
		sent[i] = now_ns();
		send_query(i);
	}
	while (busy > 0)
	{
		int			count = epoll_wait(poller, events, MAX_EVENTS, -1);
		int64_t		now = now_ns();
		bool		go_on = now < end;

		for (int e = 0; e < count; e++)
		{
			int			i = events[e].data.u32;

			if (!receive(i))
				continue;
			add_time(responses++, now - sent[i]);
			if (go_on)
			{
				sent[i] = now;
				send_query(i);
			}
			else
				busy--;
		}
	}
	return responses;
}

static void
run_slice(int poller, int number, int side)
{
	int64_t		start,
				end,
				cpu,
				responses;

	switch_to(side);
	run_until(poller, now_ns() + settle_time);
	cpu = backends_cpu_time();
	start = now_ns();
	responses = run_until(poller, start + slice_time);
	end = now_ns();
	cpu = backends_cpu_time() - cpu;
	qsort(times, responses, sizeof(*times), compare_times);
	printf("%d %c %lld %lld %lld %lld %lld %lld %lld\n", number, "AB"[side], (long long) start,
		   (long long) end, (long long) responses, (long long) cpu,
		   (long long) times[responses / 2], (long long) times[responses * 95 / 100],
		   (long long) times[responses * 99 / 100]);
}

/* Pairs of slices, one of each side, in random order. */
static void
run_slices(void)
{
	int			poller = epoll_create1(0);

	for (int i = 0; i < clients; i++)
	{
		struct epoll_event event = {.events = EPOLLIN,.data.u32 = i};

		epoll_ctl(poller, EPOLL_CTL_ADD, PQsocket(connections[i]), &event);
	}
	srandom(seed);
	for (int i = 0; i < slices; i += 2)
	{
		int			first = (random() >> 8) & 1;

		run_slice(poller, i, first);
		run_slice(poller, i + 1, !first);
	}
}

/* Look whether standard input is closed, for that long; -1: until it is. */
static bool
input_closed(int64_t wait)
{
	struct pollfd input = {.fd = 0,.events = POLLIN};
	struct timespec timeout = {wait / NS_PER_S, wait % NS_PER_S};
	char		byte;

	if (wait > 0 && rate > 0)
	{
		nanosleep(&timeout, NULL);
		wait = 0;
	}
	if (poll(&input, 1, wait < 0 ? -1 : wait / NS_PER_MS) <= 0)
		return false;
	return read(0, &byte, 1) <= 0;
}

/* What it costs merely to wake up, as a backend does that waits for its latch. */
static void
wake_up(void)
{
	int			poller = epoll_create1(0);
	struct epoll_event event = {.events = EPOLLIN};

	/* late as the sampler may be */
	prctl(PR_SET_TIMERSLACK, wake_ups * NS_PER_MS / 2, 0, 0, 0);
	epoll_ctl(poller, EPOLL_CTL_ADD, 0, &event);
	printf("ready\n");
	fflush(stdout);
	while (epoll_wait(poller, &event, 1, wake_ups) == 0)
		;
}

/* A steady load, or none, until standard input is closed. */
static void
run_steadily(void)
{
	int64_t		due = now_ns();

	for (int i = 0; i < clients && stuck; i++)
		send_query(i);
	printf("ready\n");
	fflush(stdout);
	for (int i = 0;; i = (i + 1) % clients)
	{
		int64_t		wait = due - now_ns();

		struct pollfd response = {.fd = PQsocket(connections[i]),.events = POLLIN};

		/* behind schedule: at once */
		if (input_closed(idle ? -1 : wait > 0 ? wait : 0))
			return;
		if (idle)
			continue;
		send_query(i);
		while (poll(&response, 1, -1) < 0 || !receive(i))
			;
		if (rate > 0)
			due += NS_PER_S / rate;
	}
}

int
main(int argc, char **argv)
{
	int			option;

	while ((option = getopt(argc, argv, "c:n:t:w:q:a:b:r:ixs:z:")) != -1)
		switch (option)
		{
			case 'c':
				clients = atoi(optarg);
				break;
			case 'n':
				slices = atoi(optarg);
				break;
			case 't':
				slice_time = atof(optarg) * NS_PER_MS;
				break;
			case 'w':
				settle_time = atof(optarg) * NS_PER_MS;
				break;
			case 'q':
				query = optarg;
				break;
			case 'a':
				sides[0] = optarg;
				break;
			case 'b':
				sides[1] = optarg;
				break;
			case 'r':
				rate = atof(optarg);
				break;
			case 'i':
				idle = true;
				break;
			case 'x':
				idle = stuck = true;
				break;
			case 's':
				seed = atoi(optarg);
				break;
			case 'z':
				wake_ups = atoi(optarg);
				break;
			default:
				usage();
		}
	if (optind != argc || clients < 1)
		usage();
	if (wake_ups > 0)
	{
		wake_up();
		return 0;
	}
	build_message();
	open_connections();
	if (slices > 0)
		run_slices();
	else
		run_steadily();
	for (int i = 0; i < clients; i++)
		PQfinish(connections[i]);
	return 0;
}
