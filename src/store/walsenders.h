/*-------------------------------------------------------------------------
 *
 * walsenders.h
 *	  Knows which socket each walsender sends through.
 *
 * pg_stat_replication shows what a walsender does, and the kernel counts
 * exactly what happens on its connection.  Only the link between the two is
 * missing, since core knows just the remote end.  So each walsender registers
 * its socket once, when it is ready for commands.  Readers of
 * pgnetlat_walsenders ask the kernel about these sockets only.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_WALSENDERS_H
#define PGNETLAT_WALSENDERS_H

#include "tcpinfo.h"

/* All zero: none. */
typedef struct WalsenderSocket
{
	int			pid;
	TcpEndpoints endpoints;		/* family 0: not TCP */
} WalsenderSocket;

extern Size walsenders_shmem_size(void);
extern void walsenders_shmem_attach(void *memory, bool is_new);

extern void walsenders_register(void);
extern WalsenderSocket *walsenders_all(int *count);

#endif							/* PGNETLAT_WALSENDERS_H */
