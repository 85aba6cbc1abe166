/*-------------------------------------------------------------------------
 *
 * delayline.c
 *	  A network path between two network namespaces, as long and as narrow
 *	  as one likes.
 *
 * Each namespace gets a TUN device; what the kernel sends into one of them is
 * held back here and then written into the other.  To the two kernels this is
 * a link with a true round trip: TCP's own estimates, windows, retransmissions
 * and delayed acknowledgements behave as on a long line, which no delay inside
 * a client program can achieve.  It serves where "tc netem" does not exist.
 *
 * The model, for each direction by itself:
 *
 *	packet -> lost? -> [bounded queue, served at "rate"] -> "delay" + jitter
 *
 * - rate: a packet occupies the line for its length / rate.  A packet that
 *	 finds more than "queue" bytes waiting is dropped, as in a router.
 * - delay is constant; jitter adds a uniformly distributed time in
 *	 [0, jitter].  Packets never overtake each other.
 * - loss: each packet is lost with this probability.  The generator is seeded,
 *	 so that a run can be repeated.
 *
 * Both directions are changed while it runs by lines on standard input, each
 * answered by one line on standard output:
 *
 *	set down|up|both [delay=T] [jitter=T] [rate=R] [queue=BYTES] [loss=P]
 *	spin T
 *	stats
 *	quit
 *
 * "down" is from the server's namespace to the client's, "up" the other way.
 * T takes the units ns, us, ms, s; R is in bit/s, with k, M or G (0: no
 * limit).  The end of standard input ends the program, so it cannot outlive
 * the test that started it.
 *
 * Precision.  A timer wakes a process tens of microseconds late on a virtual
 * machine whose processor has gone to sleep, so the last "spin" microseconds
 * before a packet is due are spent polling, and the process asks for a
 * real-time priority.  What remains is recorded: "stats" tells how late the
 * packets were, and --log writes every packet with the moments at which this
 * program read it from, or wrote it into, the server's device (pcap with
 * nanoseconds, raw IP).
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define MAX_PACKET		65536
#define NSEC_PER_SEC	INT64_C(1000000000)

/* Enough for the bandwidth-delay products of the lab, and a limit all the same. */
#define MAX_HELD		65536
#define DEFAULT_QUEUE	(1024 * 1024)
#define MAX_BURST		64

/* pcap file header: nanosecond variant, packets that start with the IP header */
#define PCAP_MAGIC_NSEC 0xa1b23c4d
#define LINKTYPE_RAW	101

typedef struct Packet
{
	struct Packet *next;
	int64_t		due;			/* when to release it, CLOCK_MONOTONIC */
	uint32_t	len;
	uint8_t		data[];
} Packet;

typedef struct Direction
{
	const char *name;
	int			from;			/* TUN that packets are read from */
	int			to;				/* TUN that they are written into */
	bool		from_server;

	/* the path's properties, changed by commands */
	int64_t		delay;			/* ns */
	int64_t		jitter;			/* ns */
	double		rate;			/* bit/s, 0 for no limit */
	int64_t		queue;			/* bytes */
	double		loss;			/* probability */

	/* packets held, in the order of their release */
	Packet	   *head;
	Packet	   *tail;
	int			held;

	int64_t		line_free;		/* when the line has sent what it accepted */
	int64_t		last_due;		/* so that packets do not overtake */

	/* what happened since the last "stats" */
	uint64_t	packets;
	uint64_t	lost;
	uint64_t	overflows;
	uint64_t	refused;		/* the device did not take the packet */
	int64_t		late_sum;		/* ns between due and really written */
	int64_t		late_max;
} Direction;

static Direction down = {.name = "down",.from_server = true,.queue = DEFAULT_QUEUE};
static Direction up = {.name = "up",.queue = DEFAULT_QUEUE};
static int64_t spin_ns = 200 * 1000;
static uint64_t prng_state;
static FILE *log_file;

static void
die(const char *what)
{
	fprintf(stderr, "delayline: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int64_t
clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

/* A number in [0, 1): splitmix64, good enough and the same everywhere. */
static double
next_random(void)
{
	uint64_t	z = (prng_state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	z = z ^ (z >> 31);
	return (double) (z >> 11) / (double) (UINT64_C(1) << 53);
}

/*
 * Create a TUN device in the network namespace that a file such as
 * /proc/PID/ns/net stands for.  The device vanishes with its descriptor.
 */
static int
open_tun(const char *ns_path, const char *dev)
{
	struct ifreq ifr = {.ifr_flags = IFF_TUN | IFF_NO_PI};
	int			ns = open(ns_path, O_RDONLY | O_CLOEXEC);
	int			fd;

	if (ns < 0)
		die(ns_path);
	if (setns(ns, CLONE_NEWNET) < 0)
		die("setns");
	close(ns);

	fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		die("/dev/net/tun");
	snprintf(ifr.ifr_name, IFNAMSIZ, "%s", dev);
	if (ioctl(fd, TUNSETIFF, &ifr) < 0)
		die("TUNSETIFF");
	return fd;
}

static void
log_open(const char *path)
{
	struct
	{
		uint32_t	magic;
		uint16_t	major;
		uint16_t	minor;
		int32_t		zone;
		uint32_t	sigfigs;
		uint32_t	snaplen;
		uint32_t	linktype;
	}			header = {PCAP_MAGIC_NSEC, 2, 4, 0, 0, MAX_PACKET, LINKTYPE_RAW};

	log_file = fopen(path, "wb");
	if (log_file == NULL)
		die(path);
	setvbuf(log_file, NULL, _IOFBF, 1 << 20);
	fwrite(&header, sizeof(header), 1, log_file);
}

static void
log_packet(const uint8_t *data, uint32_t len)
{
	int64_t		now = clock_ns(CLOCK_REALTIME);
	uint32_t	header[4] = {now / NSEC_PER_SEC, now % NSEC_PER_SEC, len, len};

	fwrite(header, sizeof(header), 1, log_file);
	fwrite(data, len, 1, log_file);
}

/*
 * Take one packet in: decide on loss, find its place in the line's queue and
 * with it the moment of its release.
 */
static void
accept_packet(Direction *dir, const uint8_t *data, uint32_t len, int64_t now)
{
	int64_t		due = now;
	Packet	   *packet;

	if (dir->from_server && log_file)
		log_packet(data, len);
	dir->packets++;

	if (dir->loss > 0 && next_random() < dir->loss)
	{
		dir->lost++;
		return;
	}

	if (dir->rate > 0)
	{
		int64_t		start = dir->line_free > now ? dir->line_free : now;
		double		waiting = (start - now) * dir->rate / 8 / NSEC_PER_SEC;

		if (waiting + len > dir->queue)
		{
			dir->overflows++;
			return;
		}
		dir->line_free = start + (int64_t) (len * 8.0 * NSEC_PER_SEC / dir->rate);
		due = dir->line_free;
	}
	if (dir->held >= MAX_HELD)
	{
		dir->overflows++;
		return;
	}

	due += dir->delay;
	if (dir->jitter > 0)
		due += (int64_t) (next_random() * dir->jitter);
	if (due < dir->last_due)
		due = dir->last_due;
	dir->last_due = due;

	packet = malloc(sizeof(Packet) + len);
	if (packet == NULL)
		die("malloc");
	packet->next = NULL;
	packet->due = due;
	packet->len = len;
	memcpy(packet->data, data, len);
	if (dir->tail)
		dir->tail->next = packet;
	else
		dir->head = packet;
	dir->tail = packet;
	dir->held++;
}

/* Read what the kernel has queued in the device, but not for ever. */
static void
read_packets(Direction *dir)
{
	static uint8_t buffer[MAX_PACKET];

	for (int i = 0; i < MAX_BURST; i++)
	{
		ssize_t		len = read(dir->from, buffer, sizeof(buffer));

		if (len < 0)
		{
			/* EIO, EBADFD: the device is not up yet */
			if (errno == EAGAIN || errno == EINTR || errno == EIO || errno == EBADFD)
				return;
			die("read from TUN");
		}
		if (len > 0)
			accept_packet(dir, buffer, len, clock_ns(CLOCK_MONOTONIC));
	}
}

/* Write the packets whose time has come into the other namespace. */
static void
release_packets(Direction *dir)
{
	for (int i = 0; i < MAX_BURST && dir->head; i++)
	{
		Packet	   *packet = dir->head;
		int64_t		late = clock_ns(CLOCK_MONOTONIC) - packet->due;

		if (late < 0)
			return;

		if (!dir->from_server && log_file)
			log_packet(packet->data, packet->len);
		if (write(dir->to, packet->data, packet->len) < 0)
			dir->refused++;

		dir->late_sum += late;
		if (late > dir->late_max)
			dir->late_max = late;

		dir->head = packet->next;
		if (dir->head == NULL)
			dir->tail = NULL;
		dir->held--;
		free(packet);
	}
}

/* "1.5ms" -> nanoseconds; a number alone is in nanoseconds */
static bool
parse_time(const char *text, int64_t *result)
{
	static const struct
	{
		const char *unit;
		double		factor;
	}			units[] = {{"", 1}, {"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
	char	   *end;
	double		value = strtod(text, &end);

	if (end == text || value < 0)
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
	{
		if (strcmp(end, units[i].unit) == 0)
		{
			*result = (int64_t) (value * units[i].factor);
			return true;
		}
	}
	return false;
}

static bool
parse_rate(const char *text, double *result)
{
	char	   *end;
	double		value = strtod(text, &end);

	if (end == text || value < 0)
		return false;
	if (*end == 'k')
		value *= 1e3;
	else if (*end == 'M')
		value *= 1e6;
	else if (*end == 'G')
		value *= 1e9;
	else if (*end != '\0')
		return false;
	*result = value;
	return true;
}

static bool
set_property(Direction *dir, const char *name, const char *value)
{
	if (strcmp(name, "delay") == 0)
		return parse_time(value, &dir->delay);
	if (strcmp(name, "jitter") == 0)
		return parse_time(value, &dir->jitter);
	if (strcmp(name, "rate") == 0)
		return parse_rate(value, &dir->rate);
	if (strcmp(name, "queue") == 0)
		return (dir->queue = atoll(value)) > 0;
	if (strcmp(name, "loss") == 0)
		return (dir->loss = atof(value)) >= 0;
	return false;
}

/* The words after "set" */
static bool
command_set(char **save)
{
	char	   *which = strtok_r(NULL, " ", save);
	char	   *word;

	if (which == NULL ||
		(strcmp(which, "down") && strcmp(which, "up") && strcmp(which, "both")))
		return false;

	while ((word = strtok_r(NULL, " ", save)) != NULL)
	{
		char	   *equals = strchr(word, '=');

		if (equals == NULL)
			return false;
		*equals = '\0';
		if (strcmp(which, "up") != 0 && !set_property(&down, word, equals + 1))
			return false;
		if (strcmp(which, "down") != 0 && !set_property(&up, word, equals + 1))
			return false;
	}
	return true;
}

static void
print_stats(Direction *dir)
{
	printf(" %s.packets=%llu %s.lost=%llu %s.overflows=%llu %s.refused=%llu"
		   " %s.late_mean_us=%.1f %s.late_max_us=%.1f",
		   dir->name, (unsigned long long) dir->packets,
		   dir->name, (unsigned long long) dir->lost,
		   dir->name, (unsigned long long) dir->overflows,
		   dir->name, (unsigned long long) dir->refused,
		   dir->name, dir->packets ? dir->late_sum / 1e3 / dir->packets : 0.0,
		   dir->name, dir->late_max / 1e3);
	dir->packets = dir->lost = dir->overflows = dir->refused = 0;
	dir->late_sum = dir->late_max = 0;
}

static void
run_command(char *line)
{
	char	   *save;
	char	   *word = strtok_r(line, " ", &save);

	if (word == NULL)
		return;
	if (strcmp(word, "quit") == 0)
	{
		if (log_file)
			fclose(log_file);
		exit(0);
	}
	if (strcmp(word, "stats") == 0)
	{
		printf("ok");
		print_stats(&down);
		print_stats(&up);
		printf("\n");
	}
	else if (strcmp(word, "set") == 0 && command_set(&save))
		printf("ok\n");
	else if (strcmp(word, "spin") == 0 && parse_time(save, &spin_ns))
		printf("ok\n");
	else
		printf("error\n");
	fflush(stdout);
}

/* Collect bytes from standard input; run each complete line. */
static void
read_commands(void)
{
	static char buffer[1024];
	static size_t used;
	ssize_t		n = read(STDIN_FILENO, buffer + used, sizeof(buffer) - 1 - used);
	char	   *newline;

	if (n <= 0)
	{
		char		quit[] = "quit";

		run_command(quit);
	}
	used += n;
	buffer[used] = '\0';
	while ((newline = strchr(buffer, '\n')) != NULL)
	{
		*newline = '\0';
		run_command(buffer);
		used -= newline + 1 - buffer;
		memmove(buffer, newline + 1, used + 1);
	}
	if (used >= sizeof(buffer) - 1)
		used = 0;				/* no command is that long */
}

static int64_t
next_due(void)
{
	int64_t		due = INT64_MAX;

	if (down.head && down.head->due < due)
		due = down.head->due;
	if (up.head && up.head->due < due)
		due = up.head->due;
	return due;
}

static void
forward(void)
{
	struct pollfd fds[] = {
		{.fd = down.from,.events = POLLIN},
		{.fd = up.from,.events = POLLIN},
		{.fd = STDIN_FILENO,.events = POLLIN},
	};

	for (;;)
	{
		int64_t		due = next_due();
		int64_t		left = due - clock_ns(CLOCK_MONOTONIC) - spin_ns;
		struct timespec timeout = {0, 0};

		if (due != INT64_MAX && left > 0)
		{
			timeout.tv_sec = left / NSEC_PER_SEC;
			timeout.tv_nsec = left % NSEC_PER_SEC;
		}
		if (ppoll(fds, 3, due == INT64_MAX ? NULL : &timeout, NULL) < 0 && errno != EINTR)
			die("ppoll");

		if (fds[2].revents)
			read_commands();
		read_packets(&down);
		read_packets(&up);
		release_packets(&down);
		release_packets(&up);
	}
}

int
main(int argc, char **argv)
{
	static const struct option options[] = {
		{"server-ns", required_argument, NULL, 's'},
		{"client-ns", required_argument, NULL, 'c'},
		{"device", required_argument, NULL, 'd'},
		{"log", required_argument, NULL, 'l'},
		{"seed", required_argument, NULL, 'r'},
		{"spin", required_argument, NULL, 'p'},
		{NULL, 0, NULL, 0}
	};
	const char *server_ns = NULL;
	const char *client_ns = NULL;
	const char *device = "lab0";
	struct sched_param priority = {.sched_priority = 10};
	int			opt;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1)
	{
		switch (opt)
		{
			case 's':
				server_ns = optarg;
				break;
			case 'c':
				client_ns = optarg;
				break;
			case 'd':
				device = optarg;
				break;
			case 'l':
				log_open(optarg);
				break;
			case 'r':
				prng_state = strtoull(optarg, NULL, 0);
				break;
			case 'p':
				if (!parse_time(optarg, &spin_ns))
					exit(2);
				break;
			default:
				exit(2);
		}
	}
	if (server_ns == NULL || client_ns == NULL)
	{
		fprintf(stderr, "usage: delayline --server-ns FILE --client-ns FILE"
				" [--device NAME] [--log FILE] [--seed N] [--spin T]\n");
		exit(2);
	}

	/*
	 * Without these the path is less even, but it still works: what it really
	 * did is measured, not assumed.
	 */
	prctl(PR_SET_TIMERSLACK, 1);
	sched_setscheduler(0, SCHED_FIFO, &priority);

	down.from = up.to = open_tun(server_ns, device);
	up.from = down.to = open_tun(client_ns, device);

	printf("ready\n");
	fflush(stdout);
	forward();
}
