/*-------------------------------------------------------------------------
 *
 * process.c
 *	  See process.h.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#ifdef __linux__
#include <sched.h>
#endif
#include <sys/resource.h>
#include <unistd.h>

#include "miscadmin.h"
#include "process.h"
#include "utils/float.h"

#ifdef __linux__
/* The first line of a small file, without its end; false if there is none. */
static bool
read_line(const char *path, char *line, size_t size)
{
	int			fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t		length;

	if (fd < 0)
		return false;
	length = read(fd, line, size - 1);
	close(fd);
	if (length <= 0)
		return false;
	line[length] = '\0';
	line[strcspn(line, "\n")] = '\0';
	return true;
}
#endif

/* What the scheduler says of a process; false where it does not. */
static bool
read_schedstat(const char *process, int64 *time, int64 *runs, int64 *on_cpu)
{
#ifdef __linux__
	char		path[64];
	char		line[96];
	long long	running;
	long long	waiting;
	long long	count;

	snprintf(path, sizeof(path), "/proc/%s/schedstat", process);
	if (read_line(path, line, sizeof(line)) &&
		sscanf(line, "%lld %lld %lld", &running, &waiting, &count) == 3)
	{
		*time = waiting;
		*runs = count;
		*on_cpu = running;
		return true;
	}
#endif
	return false;
}

/*
 * The time for which this process was ready to run and did not get a
 * processor, since it started, how often it got one, and for how long; false
 * where the kernel does not say.
 */
bool
process_run_queue(int64 *time, int64 *runs, int64 *on_cpu)
{
	return read_schedstat("self", time, runs, on_cpu);
}

/*
 * The same time of another process of this server.
 */
bool
process_run_queue_of(int pid, int64 *time)
{
	char		process[16];
	int64		runs;
	int64		on_cpu;

	snprintf(process, sizeof(process), "%d", pid);
	return read_schedstat(process, time, &runs, &on_cpu);
}

/*
 * How often this process has given up its processor to wait for something;
 * always the same where the kernel does not say.
 */
long
process_times_blocked(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_SELF, &usage) != 0)
		return 0;
	return usage.ru_nvcsw;
}

#ifdef __linux__
/* Linux can have 8,192 processors. */
#define MOST_PROCESSORS		8192

/* Processors to which the server is bound; 0: unknown. */
static int
bound_processors(void)
{
	cpu_set_t  *set = CPU_ALLOC(MOST_PROCESSORS);
	size_t		size = CPU_ALLOC_SIZE(MOST_PROCESSORS);
	int			count = 0;

	/* this backend may have been bound otherwise than all others */
	if (set != NULL && sched_getaffinity(PostmasterPid, size, set) == 0)
		count = CPU_COUNT_S(size, set);
	CPU_FREE(set);
	return count;
}

/*
 * How many processors' time the control groups (version 2) leave to this
 * process, at most: each of them, from its own to the outermost, may have a
 * quota.  Infinite without any.
 */
static double
quota_of_processors(void)
{
	char		group[MAXPGPATH];
	char		path[MAXPGPATH + 32];
	char		text[64];
	double		least = get_float8_infinity();
	char	   *end;

	if (!read_line("/proc/self/cgroup", group, sizeof(group)) ||
		strncmp(group, "0::/", 4) != 0 || strstr(group, "/..") != NULL)
		return least;
	for (;;)
	{
		double		quota;
		double		period;

		snprintf(path, sizeof(path), "/sys/fs/cgroup%s/cpu.max", group + 3);
		if (read_line(path, text, sizeof(text)) &&
			sscanf(text, "%lf %lf", &quota, &period) == 2 && quota > 0 && period > 0)
			least = Min(least, quota / period);
		end = strrchr(group, '/');
		if (end == NULL)
			return least;
		*end = '\0';
	}
}
#endif

/*
 * How many processors the server may use: not necessarily a whole number.
 */
double
process_processors(void)
{
#ifdef __linux__
	int			bound = bound_processors();
	double		quota = quota_of_processors();

	if (bound > 0)
		return Min(bound, quota);
#endif
#ifdef _SC_NPROCESSORS_ONLN
	{
		long		online = sysconf(_SC_NPROCESSORS_ONLN);

		if (online > 0)
			return online;
	}
#endif
	return 1;
}
