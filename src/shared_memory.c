/*-------------------------------------------------------------------------
 *
 * shared_memory.c
 *	  Sizes and initializes the shared memory of all modules.
 *
 * Each module owns its segment, whose contents are not known here.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "active_sessions.h"
#include "blockers.h"
#include "clients.h"
#include "accumulate.h"
#include "failed_connections.h"
#include "history.h"
#include "locks.h"
#include "persist.h"
#include "pools.h"
#include "pooler_clients.h"
#include "recorder.h"
#include "request_log.h"
#include "sampler.h"
#include "shared_memory.h"
#include "session_slot.h"
#include "settings.h"
#include "statements.h"
#include "storage/ipc.h"
#include "storage/shmem.h"
#include "table.h"
#include "tally.h"
#include "wait_events.h"
#include "walsenders.h"
#include "windows.h"

static const struct
{
	Size		(*size) (void);
	void		(*init) (void);
}			modules[] = {
	{slot_shmem_size, slot_shmem_init},
	{active_shmem_size, active_shmem_init},
	{recorder_shmem_size, recorder_shmem_init},
	{tally_shmem_size, tally_shmem_init},
	{wait_events_shmem_size, wait_events_shmem_init},
	{windows_shmem_size, windows_shmem_init},
	{accumulate_shmem_size, accumulate_shmem_init},
	{statements_shmem_size, statements_shmem_init},
	{clients_shmem_size, clients_shmem_init},
	{history_shmem_size, history_shmem_init},
	{blockers_shmem_size, blockers_shmem_init},
	{pools_shmem_size, pools_shmem_init},
	{failed_connections_shmem_size, failed_connections_shmem_init},
	{walsenders_shmem_size, walsenders_shmem_init},
	{request_log_shmem_size, request_log_shmem_init},
	{pooler_clients_shmem_size, pooler_clients_shmem_init},
	{sampler_shmem_size, sampler_shmem_init},
};

static shmem_request_hook_type prev_shmem_request = NULL;
static shmem_startup_hook_type prev_shmem_startup = NULL;
static bool ready = false;

bool
shmem_is_ready(void)
{
	return ready;
}

/* Bytes of shared memory, not counting the locks. */
Size
shmem_size(void)
{
	Size		size = 0;

	for (size_t i = 0; i < lengthof(modules); i++)
		size = add_size(size, modules[i].size());
	return size;
}

static void
request_locks(void)
{
	int			counts[LOCK_KINDS];

	for (int i = 0; i < LOCK_KINDS; i++)
		counts[i] = 1;
	counts[LOCK_ACCUMULATE] = LOCK_ACCUMULATE_PARTITIONS;
	counts[LOCK_CLIENTS] = table_partitions(pgnetlat_max_clients);
	counts[LOCK_STATEMENTS] = table_partitions(pgnetlat_max_statements);
	counts[LOCK_BLOCKERS] = table_partitions(pgnetlat_max_blockers);
	counts[LOCK_POOLS] = table_partitions(pgnetlat_max_pools + 1);
	locks_request(counts);
}

static void
pgnetlat_shmem_request(void)
{
	if (prev_shmem_request)
		prev_shmem_request();
	RequestAddinShmemSpace(shmem_size());
	request_locks();
}

/* Only in the postmaster: see pgnetlat.c. */
static void
pgnetlat_shmem_startup(void)
{
	if (prev_shmem_startup)
		prev_shmem_startup();

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	locks_shmem_init();
	for (size_t i = 0; i < lengthof(modules); i++)
		modules[i].init();
	LWLockRelease(AddinShmemInitLock);
	ready = true;

	on_shmem_exit(persist_save, (Datum) 0);
	persist_load();
}

void
shmem_install(void)
{
	prev_shmem_request = shmem_request_hook;
	shmem_request_hook = pgnetlat_shmem_request;
	prev_shmem_startup = shmem_startup_hook;
	shmem_startup_hook = pgnetlat_shmem_startup;
}
