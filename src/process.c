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
#include <sys/resource.h>
#include <unistd.h>

#include "process.h"

/*
 * The time for which this process was ready to run and did not get a
 * processor, since it started, and how often it got one; false where the kernel
 * does not say.
 */
bool
process_run_queue(int64 *time, int64 *runs)
{
#ifdef __linux__
	char		text[96];
	long long	on_cpu;
	long long	waiting;
	long long	count;
	int			fd = open("/proc/self/schedstat", O_RDONLY | O_CLOEXEC);
	ssize_t		length;

	if (fd < 0)
		return false;
	length = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (length <= 0)
		return false;
	text[length] = '\0';
	if (sscanf(text, "%lld %lld %lld", &on_cpu, &waiting, &count) == 3)
	{
		*time = waiting;
		*runs = count;
		return true;
	}
#endif
	return false;
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
