/*-------------------------------------------------------------------------
 *
 * slow_disk.c
 *	  A disk that is slow while a test says so; to be preloaded (LD_PRELOAD).
 *
 * While there is a file with the name that the environment variable SLOW_DISK
 * holds, each read at a position, and each fdatasync(), takes 10 ms longer.  So
 * what a server waits for is as long on any machine, whatever is in its page
 * cache, and whether or not its disks flush at all.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE

#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define TAKES_NS	10000000L

ssize_t		pread64(int file, void *buffer, size_t size, off64_t offset);
ssize_t		preadv64(int file, const struct iovec *parts, int count, off64_t offset);

static void
be_slow(void)
{
	const char *path = getenv("SLOW_DISK");
	struct timespec left = {0, TAKES_NS};

	if (path == NULL || access(path, F_OK) != 0)
		return;
	while (nanosleep(&left, &left) != 0)
		continue;
}

ssize_t
pread64(int file, void *buffer, size_t size, off64_t offset)
{
	be_slow();
	return syscall(SYS_pread64, file, buffer, size, offset);
}

ssize_t
pread(int file, void *buffer, size_t size, off_t offset)
{
	return pread64(file, buffer, size, offset);
}

ssize_t
preadv64(int file, const struct iovec *parts, int count, off64_t offset)
{
	be_slow();
	/* the position as two words, of which the kernel takes the first for all */
	return syscall(SYS_preadv, file, parts, count, (long) offset, 0L);
}

ssize_t
preadv(int file, const struct iovec *parts, int count, off_t offset)
{
	return preadv64(file, parts, count, offset);
}

int
fdatasync(int file)
{
	be_slow();
	return (int) syscall(SYS_fdatasync, file);
}
