/*-------------------------------------------------------------------------
 *
 * walsenders.c
 *	  See walsenders.h.
 *
 * There is one entry per walsender that core allows (max_wal_senders), with the
 * same number as its WalSnd.  Nothing is done when a walsender ends: a socket's
 * cookie keeps the kernel from taking a later one for it, and it says nothing of one
 * that is gone.
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
#include "storage/shmem.h"
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
walsenders_shmem_init(void)
{
	bool		found;

	entries = ShmemInitStruct("pgnetlat walsenders", walsenders_shmem_size(), &found);
	if (found)
		return;
	memset(entries, 0, walsenders_shmem_size());
	for (int i = 0; i < max_wal_senders; i++)
		SpinLockInit(&entries[i].mutex);
}

/* Called by a walsender that has told its client that it is ready. */
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

/*
 * All that have registered and live, in the current memory context.  Core knows which
 * of them do.
 */
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
