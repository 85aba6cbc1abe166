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
#include <signal.h>
#endif
#include <sys/resource.h>
#include <unistd.h>

#include "miscadmin.h"
#include "process.h"
#include "utils/float.h"

/*
 * Read the first line of a small file, without its newline; false if there is
 * none.
 */
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

/*
 * Read the run queue figures of a process of this server; false where the
 * kernel does not report them.
 */
bool
process_run_queue(int pid, RunQueue *run_queue)
{
	char		path[64];
	char		line[96];

	snprintf(path, sizeof(path), "/proc/%d/schedstat", pid);
	return read_line(path, line, sizeof(line)) &&
		sscanf(line, "%*d " INT64_FORMAT " " INT64_FORMAT,
			   &run_queue->time, &run_queue->runs) == 2;
}

/*
 * How often this process has given up its processor to wait for something;
 * constant where the kernel does not report it.
 */
long
process_times_blocked(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_SELF, &usage) != 0)
		return 0;
	return usage.ru_nvcsw;
}

/* Processors to which the server is bound; 0: unknown. */
static int
bound_processors(void)
{
	int			count = 0;
#ifdef __linux__
	/* Linux can have 8,192 processors */
	cpu_set_t	set[8192 / CPU_SETSIZE];

	/* the postmaster's, since this backend's own affinity may differ */
	if (sched_getaffinity(PostmasterPid, sizeof(set), set) == 0)
		count = CPU_COUNT_S(sizeof(set), set);
#endif
	return count;
}

/*
 * The number of processors that the quotas of the control groups (version 2)
 * leave to this process: the least of all quotas, from its own group to the
 * outermost.  Infinite without any.
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

/* How many processors the server may use, which need not be a whole number. */
double
process_processors(void)
{
	int			count = bound_processors();

	if (count <= 0)
		count = (int) sysconf(_SC_NPROCESSORS_ONLN);
	return Min(Max(count, 1), quota_of_processors());
}

/*
 * Is this process in core's handler of SIGQUIT, which interrupts anything?
 * Only there is that signal blocked.
 */
bool
process_is_quitting(void)
{
	sigset_t	blocked;

	return sigprocmask(SIG_BLOCK, NULL, &blocked) == 0 && sigismember(&blocked, SIGQUIT) == 1;
}
