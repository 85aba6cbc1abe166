/*-------------------------------------------------------------------------
 *
 * late_memory.c
 *	  Shared memory and the sampler where the library is not preloaded.
 *
 * The memory itself has no name, since it comes and goes, its size is that of
 * the settings when it was made, and core never tries again to make what it
 * could not make under a name.  The name is that of a small piece, which says
 * where the memory is.  It has the layout of the memory in it: processes with
 * another version of the library have memory and a sampler of their own.
 *
 * While there is no memory, a file says what is wrong and when it was tried.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/stat.h>
#include <unistd.h>

#include "compat.h"
#include "late_memory.h"
#include "locks.h"
#include "miscadmin.h"
#include "persist.h"
#include "sampler.h"
#include "settings.h"
#include "shared_memory.h"
#include "storage/dsm.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "utils/memutils.h"
#include "utils/pidfile.h"
#include "utils/timestamp.h"

/* Changes if a structure changes its meaning but not its size. */
#define LAYOUT				"pgnetlat " PGNETLAT_VERSION " layout 1"

#define PROBLEM_FILE		"pg_stat_tmp/pgnetlat.problem"
#define TRY_AGAIN_S			60

typedef struct LateControl
{
	LWLock		lock;			/* protects the rest */
	int			tranches[LOCK_KINDS];
	dsm_handle	handle;			/* of the memory; DSM_HANDLE_INVALID: none */
	MemorySizes sizes;			/* with which it was made */
	int			sessions;		/* that have joined it and not left */
	TimestampTz unused_since;	/* if there are none */
	int			sampler_pid;	/* 0: none */
	TimestampTz sampler_tried;	/* latest attempt to start it */
	bool		no_worker;		/* that failed */
} LateControl;

bool		late_is_used = false;

static LateControl *control = NULL;
static dsm_segment *memory = NULL;
static TimestampTz tried = 0;	/* by this session */
static bool has_joined = false;

/* ---------------------------------------------------------------------------
 * Finding and making the memory
 * ---------------------------------------------------------------------------
 */

static void
begin_control(BEGIN_MEMORY_PARAMS)
{
	LateControl *new = begun;

	memset(new, 0, sizeof(*new));
	locks_register(new->tranches);
	LWLockInitialize(&new->lock, new->tranches[LOCK_MEMORY]);
	new->handle = DSM_HANDLE_INVALID;
}

static void
lock_control(void)
{
	MemorySizes any = {{100, 100, 100, 100, 100, 100}};
	MemorySizes own;
	char		name[NAMEDATALEN];

	if (control == NULL)
	{
		settings_sizes(&own, false);
		settings_sizes(&any, true);
		snprintf(name, sizeof(name), LAYOUT " %zx", shmem_size());
		settings_sizes(&own, true);
		control = compat_named_memory(name, sizeof(LateControl), begin_control);
		locks_register(control->tranches);
	}
	LWLockAcquire(&control->lock, LW_EXCLUSIVE);
}

/* What raises errors, and catches them, may have released all locks. */
static void
unlock_control(void)
{
	if (LWLockHeldByMe(&control->lock))
		LWLockRelease(&control->lock);
}

/* Make the memory, with the figures that were saved. */
static void
make_memory(void)
{
	dsm_segment *made;

	settings_sizes(&control->sizes, false);
	made = dsm_create(shmem_size(), 0);
	dsm_pin_mapping(made);
	shmem_attach(dsm_segment_address(made), control->tranches, true);
	persist_load(false);
	dsm_pin_segment(made);
	memory = made;
	control->handle = dsm_segment_handle(made);
	(void) unlink(PROBLEM_FILE);
}

/* See the memory that there is, and not one that was given up. */
static void
map_memory(void)
{
	if (memory && dsm_segment_handle(memory) == control->handle)
		return;
	if (memory)
		dsm_detach(memory);
	memory = dsm_attach(control->handle);
	if (memory == NULL)
		elog(ERROR, "could not map dynamic shared memory segment");
	dsm_pin_mapping(memory);
	settings_sizes(&control->sizes, true);
	shmem_attach(dsm_segment_address(memory), control->tranches, false);
}

/* For readers: is there memory, found now if need be? */
bool
late_memory_find(void)
{
	bool		found;

	if (!late_is_used)
		return false;
	lock_control();
	found = control->handle != DSM_HANDLE_INVALID;
	if (found)
		map_memory();
	unlock_control();
	return found;
}

/* ---------------------------------------------------------------------------
 * Problems
 * ---------------------------------------------------------------------------
 */

static void
log_problem(const char *problem, const char *hint)
{
	ereport(LOG_SERVER_ONLY,
			(errcode(ERRCODE_INSUFFICIENT_RESOURCES),
			 errmsg("%s", problem),
			 errhint("%s  pgnetlat tries again once a minute.", hint),
			 errhidestmt(true)));
}

/* There is no memory, because of the current error. */
static void
note_error(MemoryContext context)
{
	ErrorData  *error;
	char	   *problem;
	FILE	   *file;

	MemoryContextSwitchTo(context);
	error = CopyErrorData();
	FlushErrorState();
	LWLockReleaseAll();
	problem = psprintf("pgnetlat has no shared memory: %s", error->message);
	file = AllocateFile(PROBLEM_FILE, PG_BINARY_W);
	if (file)
	{
		fputs(problem, file);
		FreeFile(file);
	}
	log_problem(problem, "Sessions are not counted.  Check \"dynamic_shared_memory_type\", and "
				"on Linux the free space in \"/dev/shm\".");
	pfree(problem);
	FreeErrorData(error);
}

/* Has another session found recently that there is no memory to be had? */
static bool
was_tried_recently(void)
{
	struct stat st;

	return stat(PROBLEM_FILE, &st) == 0 && time(NULL) - st.st_mtime < TRY_AGAIN_S &&
		time(NULL) >= st.st_mtime;
}

/*
 * What is missing; NULL: nothing.  The result is valid until the next call.
 */
const char *
late_memory_problem(void)
{
	static char problem[1024];
	FILE	   *file;
	size_t		length;

	if (!late_is_used)
		return NULL;
	if (shmem_is_ready())
		return control->no_worker && control->sampler_pid == 0 ?
			"pgnetlat has no sampler: no background worker slots are available" : NULL;
	file = AllocateFile(PROBLEM_FILE, PG_BINARY_R);
	if (file == NULL)
		return NULL;
	length = fread(problem, 1, sizeof(problem) - 1, file);
	problem[length] = '\0';
	FreeFile(file);
	return length > 0 ? problem : NULL;
}

/* ---------------------------------------------------------------------------
 * Counted sessions
 * ---------------------------------------------------------------------------
 */

/* Exit callback, after the session has left its slot. */
static void
leave(int code, Datum arg)
{
	if (!has_joined)
		return;
	lock_control();
	if (--control->sessions == 0)
		control->unused_since = GetCurrentTimestamp();
	unlock_control();
}

/* Start a sampler if there is none. */
static void
start_sampler(void)
{
	TimestampTz now = GetCurrentTimestamp();
	bool		is_missing;

	lock_control();
	is_missing = control->sampler_pid == 0 &&
		now >= control->sampler_tried + TRY_AGAIN_S * USECS_PER_SEC;
	if (is_missing)
		control->sampler_tried = now;
	unlock_control();
	if (!is_missing)
		return;
	control->no_worker = !sampler_start();
	if (control->no_worker)
		log_problem("pgnetlat has no sampler: no background worker slots are available",
					"Consider increasing the configuration parameter \"max_worker_processes\".");
}

static void
join(void)
{
	lock_control();
	if (control->handle == DSM_HANDLE_INVALID)
		make_memory();
	map_memory();
	control->sessions++;
	has_joined = true;
	unlock_control();
}

/*
 * This session is to be counted.  Returns false if it cannot be: then try again
 * later.  Called when the client has its response, outside a transaction.
 */
bool
late_memory_join(void)
{
	MemoryContext context = CurrentMemoryContext;
	uint32		holdoff = InterruptHoldoffCount;
	uint32		cancel_holdoff = QueryCancelHoldoffCount;
	TimestampTz now = GetCurrentTimestamp();

	if (!late_is_used)
		return true;
	if ((tried != 0 && now < tried + TRY_AGAIN_S * USECS_PER_SEC) || was_tried_recently())
		return false;
	/* this ends the session if there is no place left */
	if (tried == 0)
		before_shmem_exit(leave, (Datum) 0);
	tried = now;
	HOLD_INTERRUPTS();
	PG_TRY();
	{
		join();
		start_sampler();
	}
	PG_CATCH();
	{
		note_error(context);
	}
	PG_END_TRY();
	/* an error has reset these, so restore them */
	InterruptHoldoffCount = holdoff;
	QueryCancelHoldoffCount = cancel_holdoff;
	return has_joined;
}

/*
 * For a session that has joined: is the sampler still missing?  If so, start it
 * now and then.
 */
bool
late_memory_lacks_sampler(void)
{
	if (control == NULL || !control->no_worker || control->sampler_pid != 0)
		return false;
	start_sampler();
	return true;
}

/* ---------------------------------------------------------------------------
 * The sampler
 * ---------------------------------------------------------------------------
 */

/* Become the memory's sampler; false if there is no memory, or another one. */
bool
late_memory_serve(void)
{
	bool		serves;

	if (!late_is_used)
		return true;
	lock_control();
	serves = control->handle != DSM_HANDLE_INVALID && control->sampler_pid == 0;
	if (serves)
	{
		map_memory();
		control->sampler_pid = MyProcPid;
	}
	unlock_control();
	return serves;
}

void
late_memory_stop_serving(void)
{
	if (control && control->sampler_pid == MyProcPid)
		control->sampler_pid = 0;
}

/*
 * If no session has been counted for a while, save the figures and give up the
 * memory; then the sampler has to end.
 */
bool
late_memory_retire(void)
{
	bool		is_unused;

	if (!late_is_used || *(volatile int *) &control->sessions > 0 ||
		GetCurrentTimestamp() < control->unused_since + pgnetlat_sampler_timeout * USECS_PER_SEC)
		return false;
	lock_control();
	is_unused = control->sessions == 0;
	if (is_unused)
	{
		persist_save(0, BoolGetDatum(true));
		dsm_unpin_segment(control->handle);
		control->handle = DSM_HANDLE_INVALID;
		control->sampler_pid = 0;
		control->sampler_tried = 0;
	}
	unlock_control();
	return is_unused;
}

static bool
server_is_stopping(void)
{
	FILE	   *file = AllocateFile("postmaster.pid", PG_BINARY_R);
	char		line[MAXPGPATH] = "";

	if (file == NULL)
		return false;
	for (int i = 0; i < LOCK_FILE_LINE_PM_STATUS; i++)
	{
		if (fgets(line, sizeof(line), file) == NULL)
			line[0] = '\0';
	}
	FreeFile(file);
	return strncmp(line, "stopping", strlen("stopping")) == 0;
}

/*
 * The sampler was told to end.  If the server ends, so do all sessions; then
 * save the figures.
 */
void
late_memory_at_shutdown(void)
{
	if (!late_is_used || !server_is_stopping())
		return;
	while (*(volatile int *) &control->sessions > 0)
	{
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, 10,
						 PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
	}
	persist_save(0, BoolGetDatum(true));
}
