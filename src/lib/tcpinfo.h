/*-------------------------------------------------------------------------
 *
 * tcpinfo.h
 *	  Asks the kernel about TCP connections.
 *
 * Where the kernel does not say, the functions return false, and everything
 * that depends on them is NULL.  tcpstate.h says what the replies mean.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_TCPINFO_H
#define PGNETLAT_TCPINFO_H

#include <sys/ioctl.h>
#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "tcpstate.h"

/*
 * libpq-be.h cannot be included here: it brings in netinet/tcp.h, which clashes
 * with the linux/tcp.h that tcpstate.c and tcpinfo.c need.
 */
struct sockaddr_storage;

/* A socket for questions about the connections of other processes. */
typedef struct TcpDiag
{
	int			sock;			/* -1: not open; the next question opens it */
	uint32		sequence;		/* number of the latest question */
	int64		ask_again;		/* not before this moment (monotonic) */
} TcpDiag;

extern void tcpinfo_endpoints(pgsocket sock, const struct sockaddr_storage *local,
							  const struct sockaddr_storage *remote,
							  TcpEndpoints *endpoints);
extern bool tcpinfo_of_socket(pgsocket sock, const TcpInfo *known, int64 now,
							  TcpInfo *info);
extern int64 tcpinfo_unsent(pgsocket sock);
extern int64 tcpinfo_bytes_acknowledged(pgsocket sock);

/* Has anything arrived that the process has not read?  For the hot path. */
static inline bool
tcpinfo_has_input(pgsocket sock)
{
#if defined(FIONREAD)
	static int	available;		/* static for the reason given in clock_read() */

#ifdef SYS_ioctl
	/* ioctl() spills all its possible arguments to the stack first */
	return syscall(SYS_ioctl, sock, FIONREAD, &available) == 0 && available > 0;
#else
	return ioctl(sock, FIONREAD, &available) == 0 && available > 0;
#endif
#else
	return false;
#endif
}

extern void tcpinfo_diag_close(TcpDiag *diag);
extern TcpReply tcpinfo_diag_query(TcpDiag *diag, const TcpEndpoints *endpoints,
								   const TcpInfo *known, int64 now, TcpInfo *info);
extern bool tcpinfo_diag_listeners(TcpDiag *diag, uint32 owner, TcpListeners *found);

#endif							/* PGNETLAT_TCPINFO_H */
