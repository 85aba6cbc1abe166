/*
 * A function that stops its backend where a debugger may: while it writes its status
 * in shared memory, where core's change count is odd.  It goes on with SIGCONT.
 *
 * Copyright (c) 2026, the pgnetlat authors
 */
#include "postgres.h"

#include <signal.h>
#include <unistd.h>

#include "fmgr.h"
#include "port/atomics.h"
#include "utils/backend_status.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(stop_in_status);
extern PGDLLEXPORT Datum stop_in_status(PG_FUNCTION_ARGS);

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
