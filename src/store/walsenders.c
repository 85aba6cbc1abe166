/*-------------------------------------------------------------------------
 *
 * walsenders.c
 *	  The walsenders' sockets.
 *
 * There is one entry per possible walsender (max_wal_senders), with the number
 * of its WalSnd.  Nothing is done when a walsender ends: the kernel does not
 * reply for a socket that is gone, and the socket's cookie tells it from a
 * later one.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "libpq/libpq-be.h"
#include "miscadmin.h"
#include "replication/walsender.h"
#include "replication/walsender_private.h"
#include "storage/spin.h"
#include "walsenders.h"

typedef struct WalsenderEntry
{
	slock_t		mutex;			/* protects the rest */
	WalsenderSocket socket;
} WalsenderEntry;

static WalsenderEntry *entries = NULL;

Size
walsenders_shmem_size(void)
{
	return mul_size(max_wal_senders, sizeof(WalsenderEntry));
}

void
walsenders_shmem_attach(void *memory, bool is_new)
{
	entries = memory;
	for (int i = 0; is_new && i < max_wal_senders; i++)
		SpinLockInit(&entries[i].mutex);
}

/*
 * Register this walsender's socket, when its client has been told that it is
 * ready.
 */
void
walsenders_register(void)
{
	WalsenderEntry *entry;
	WalsenderSocket socket;

	if (entries == NULL || MyWalSnd == NULL || MyProcPort == NULL)
		return;
	entry = &entries[MyWalSnd - WalSndCtl->walsnds];
	socket.pid = MyProcPid;
	tcpinfo_endpoints(MyProcPort->sock, &MyProcPort->laddr.addr,
					  &MyProcPort->raddr.addr, &socket.endpoints);
	SpinLockAcquire(&entry->mutex);
	entry->socket = socket;
	SpinLockRelease(&entry->mutex);
}

/* A palloc'd array of the registered walsenders that core says are alive. */
WalsenderSocket *
walsenders_all(int *count)
{
	WalsenderSocket *sockets = palloc(Max(max_wal_senders, 1) * sizeof(WalsenderSocket));

	*count = 0;
	for (int i = 0; i < max_wal_senders; i++)
	{
		WalsenderSocket *socket = &sockets[*count];

		SpinLockAcquire(&entries[i].mutex);
		*socket = entries[i].socket;
		SpinLockRelease(&entries[i].mutex);
		if (socket->pid != 0 &&
			((volatile WalSnd *) &WalSndCtl->walsnds[i])->pid == socket->pid)
			(*count)++;
	}
	return sockets;
}
