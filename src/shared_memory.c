/*-------------------------------------------------------------------------
 *
 * shared_memory.c
 *	  Sizes and initializes the shared memory of all modules.
 *
 * There is one piece of memory, with the locks and then what each module keeps
 * there, which is not known here.
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
#include "journal.h"
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

/*
 * A module is told where its memory is, in each process; "is_new" if it is all
 * zero, and to be filled.
 */
static const struct
{
	Size		(*size) (void);
	void		(*attach) (void *memory, bool is_new);
}			modules[] = {
	{slot_shmem_size, slot_shmem_attach},
	{active_shmem_size, active_shmem_attach},
	{recorder_shmem_size, recorder_shmem_attach},
	{tally_shmem_size, tally_shmem_attach},
	{wait_events_shmem_size, wait_events_shmem_attach},
	{windows_shmem_size, windows_shmem_attach},
	{accumulate_shmem_size, accumulate_shmem_attach},
	{statements_shmem_size, statements_shmem_attach},
	{clients_shmem_size, clients_shmem_attach},
	{history_shmem_size, history_shmem_attach},
	{blockers_shmem_size, blockers_shmem_attach},
	{pools_shmem_size, pools_shmem_attach},
	{failed_connections_shmem_size, failed_connections_shmem_attach},
	{walsenders_shmem_size, walsenders_shmem_attach},
	{request_log_shmem_size, request_log_shmem_attach},
	{pooler_clients_shmem_size, pooler_clients_shmem_attach},
	{sampler_shmem_size, sampler_shmem_attach},
	{journal_shmem_size, journal_shmem_attach},
};

static shmem_request_hook_type prev_shmem_request = NULL;
static shmem_startup_hook_type prev_shmem_startup = NULL;
static bool ready = false;

/* Does this process see the memory? */
bool
shmem_is_ready(void)
{
	return ready;
}

static void
count_locks(int counts[LOCK_KINDS])
{
	for (int i = 0; i < LOCK_KINDS; i++)
		counts[i] = 1;
	counts[LOCK_ACCUMULATE] = LOCK_ACCUMULATE_PARTITIONS;
	counts[LOCK_CLIENTS] = table_partitions(pgnetlat_max_clients);
	counts[LOCK_STATEMENTS] = table_partitions(pgnetlat_max_statements);
	counts[LOCK_BLOCKERS] = table_partitions(pgnetlat_max_blockers);
	counts[LOCK_POOLS] = table_partitions(pgnetlat_max_pools + 1);
}

/* Bytes of shared memory. */
Size
shmem_size(void)
{
	int			counts[LOCK_KINDS];
	Size		size;

	count_locks(counts);
	size = locks_shmem_size(counts);
	for (size_t i = 0; i < lengthof(modules); i++)
		size = add_size(size, CACHELINEALIGN(modules[i].size()));
	return size;
}

/*
 * Tell all modules where their memory is.  Nothing in it is an address in it,
 * since processes may see it at different ones.
 */
void
shmem_attach(char *memory, const int tranches[LOCK_KINDS], bool is_new)
{
	int			counts[LOCK_KINDS];

	if (is_new)
		memset(memory, 0, shmem_size());
	count_locks(counts);
	locks_shmem_attach(memory, counts, tranches, is_new);
	memory += locks_shmem_size(counts);
	for (size_t i = 0; i < lengthof(modules); i++)
	{
		modules[i].attach(memory, is_new);
		memory += CACHELINEALIGN(modules[i].size());
	}
	ready = true;
}

static void
pgnetlat_shmem_request(void)
{
	if (prev_shmem_request)
		prev_shmem_request();
	RequestAddinShmemSpace(shmem_size());
}

/* Only in the postmaster: see pgnetlat.c. */
static void
pgnetlat_shmem_startup(void)
{
	int			tranches[LOCK_KINDS] = {0};
	bool		found;

	if (prev_shmem_startup)
		prev_shmem_startup();

	locks_register(tranches);
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	shmem_attach(ShmemInitStruct("pgnetlat", shmem_size(), &found), tranches, true);
	LWLockRelease(AddinShmemInitLock);

	on_shmem_exit(persist_save, (Datum) 0);
	persist_load(true);
}

void
shmem_install(void)
{
	prev_shmem_request = shmem_request_hook;
	shmem_request_hook = pgnetlat_shmem_request;
	prev_shmem_startup = shmem_startup_hook;
	shmem_startup_hook = pgnetlat_shmem_startup;
}
