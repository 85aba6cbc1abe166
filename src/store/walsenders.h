/*-------------------------------------------------------------------------
 *
 * walsenders.h
 *	  Which socket each walsender sends through.
 *
 * What a walsender does, core shows in pg_stat_replication; what becomes of it
 * on its way, the kernel counts, exactly and since the connection began.  All
 * that is missing is which of the kernel's sockets is whose: core knows the
 * remote end only.  So each walsender registers its socket once, when it is
 * ready for commands.  Whoever reads pgnetlat_walsenders asks the kernel about
 * those sockets, and about no others.
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
extern void walsenders_shmem_init(void);

extern void walsenders_register(void);
extern WalsenderSocket *walsenders_all(int *count);

#endif							/* PGNETLAT_WALSENDERS_H */
