/*-------------------------------------------------------------------------
 *
 * stepped_clock.c
 *	  A wall clock that steps when a test says so; to be preloaded (LD_PRELOAD).
 *
 * It is ahead of the machine's by so many nanoseconds as the file holds (an
 * int64) that the environment variable STEPPED_CLOCK names.  The file is
 * mapped: a step is seen by all processes at once.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S	INT64_C(1000000000)

static const volatile int64_t *ahead;

static void __attribute__((constructor))
map_file(void)
{
	const char *path = getenv("STEPPED_CLOCK");
	int			file = path ? open(path, O_RDONLY) : -1;
	void	   *map;

	if (file < 0)
		return;
	map = mmap(NULL, sizeof(*ahead), PROT_READ, MAP_SHARED, file, 0);
	if (map != MAP_FAILED)
		ahead = map;
	close(file);
}

int
clock_gettime(clockid_t clock, struct timespec *ts)
{
	int			result = syscall(SYS_clock_gettime, clock, ts);

	if (result == 0 && clock == CLOCK_REALTIME && ahead)
	{
		int64_t		time = ts->tv_sec * NS_PER_S + ts->tv_nsec + *ahead;

		ts->tv_sec = time / NS_PER_S;
		ts->tv_nsec = time % NS_PER_S;
	}
	return result;
}

int
gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
	struct timespec ts;

	(void) zone;
	if (clock_gettime(CLOCK_REALTIME, &ts) != 0)
		return -1;
	tv->tv_sec = ts.tv_sec;
	tv->tv_usec = ts.tv_nsec / 1000;
	return 0;
}
