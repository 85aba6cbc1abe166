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
 * processor, since it started; -1 where the kernel does not say.
 */
int64
process_run_queue_time(void)
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
process_times_blocked(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_SELF, &usage) != 0)
		return 0;
	return usage.ru_nvcsw;
}
