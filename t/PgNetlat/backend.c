/*
 * Functions that do to their backend what no client can.
 *
 * Copyright (c) 2026, the pgnetlat authors
 */
#include "postgres.h"

#include <signal.h>
#include <unistd.h>

#include "access/transam.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/backend_status.h"
#include "utils/guc.h"
#include "utils/wait_event.h"

PG_MODULE_MAGIC;

extern PGDLLEXPORT void _PG_init(void);
extern PGDLLEXPORT Datum stop_in_status(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum hold_reset_lock(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum hold_xid_lock(PG_FUNCTION_ARGS);

static int	exit_callbacks = 0;

static void
do_nothing(int code, Datum arg)
{
}

/*
 * Takes as many of core's places for callbacks before_shmem_exit() as backend.exit_callbacks
 * says, when the library is loaded.
 */
void
_PG_init(void)
{
	DefineCustomIntVariable("backend.exit_callbacks", "Sets how many callbacks to register.", NULL,
							&exit_callbacks, 0, 0, 100, PGC_USERSET, 0, NULL, NULL, NULL);
	for (int i = 0; i < exit_callbacks; i++)
		before_shmem_exit(do_nothing, (Datum) 0);
}

/*
 * Stops where a debugger may: while the backend writes its status in shared memory,
 * where core's change count is odd.  It goes on with SIGCONT.
 */
PG_FUNCTION_INFO_V1(stop_in_status);

Datum
stop_in_status(PG_FUNCTION_ARGS)
{
	volatile PgBackendStatus *status = MyBEEntry;

	status->st_changecount++;
	pg_memory_barrier();
	kill(getpid(), SIGSTOP);
	pg_memory_barrier();
	status->st_changecount++;
	PG_RETURN_VOID();
}

/*
 * Holds the lock that keeps resets out, for so many milliseconds.  Our shared
 * memory, of so many bytes, begins with the locks.
 */
PG_FUNCTION_INFO_V1(hold_reset_lock);

Datum
hold_reset_lock(PG_FUNCTION_ARGS)
{
	bool		found;
	LWLockPadded *lock = ShmemInitStruct("pgnetlat", PG_GETARG_INT64(1), &found);

	while (strcmp(GetLWLockIdentifier(PG_WAIT_LWLOCK, lock->lock.tranche), "pgnetlat_reset") != 0)
		lock++;
	LWLockAcquire(&lock->lock, LW_EXCLUSIVE);
	pg_usleep(1000L * PG_GETARG_INT32(0));
	LWLockRelease(&lock->lock);
	PG_RETURN_VOID();
}

/*
 * Holds the lock without which no transaction gets an ID, until the statement is
 * cancelled, or for so many milliseconds.  Its wait event shows that it has it.
 */
PG_FUNCTION_INFO_V1(hold_xid_lock);

Datum
hold_xid_lock(PG_FUNCTION_ARGS)
{
	LWLockAcquire(XidGenLock, LW_EXCLUSIVE);
	pgstat_report_wait_start(PG_WAIT_EXTENSION);
	for (int waited = 0; waited < PG_GETARG_INT32(0) && !QueryCancelPending; waited += 10)
		pg_usleep(10000L);
	pgstat_report_wait_end();
	LWLockRelease(XidGenLock);
	PG_RETURN_VOID();
}
