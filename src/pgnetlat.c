/*-------------------------------------------------------------------------
 *
 * pgnetlat.c
 *	  Installs the hooks, the shared memory and the sampler.
 *
 * src/README is the map of the sources.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat.h"
#include "connecting.h"
#include "explain.h"
#include "late_memory.h"
#include "miscadmin.h"
#include "sampler.h"
#include "settings.h"
#include "shared_memory.h"
#include "statement_hooks.h"
#include "tcop/pquery.h"
#include "tcop/utility.h"
#include "utils/portal.h"
#include "wire.h"

/* Child processes inherit our pointers into shared memory. */
#ifdef EXEC_BACKEND
#error pgnetlat needs a server that forks its backends
#endif

PG_MODULE_MAGIC_EXT(.name = "pgnetlat",.version = PGNETLAT_VERSION);

extern PGDLLEXPORT void _PG_init(void);

static void
install_hooks(void)
{
	wire_install();
	statement_hooks_install();
	explain_install();
}

/* ---------------------------------------------------------------------------
 * Loaded by a session
 * ---------------------------------------------------------------------------
 */

static ProcessUtility_hook_type next_ProcessUtility;
static bool is_counted = false;

static void
count_session(void)
{
	is_counted = true;
	install_hooks();
}

/* LOAD of a library that is there already does nothing, in core. */
static void
watch_for_load(PROCESS_UTILITY_PARAMS)
{
	bool		is_load = !is_counted && IsA(pstmt->utilityStmt, LoadStmt) &&
		strstr(castNode(LoadStmt, pstmt->utilityStmt)->filename, "pgnetlat");

	next_ProcessUtility(PROCESS_UTILITY_ARGS);
	if (is_load)
		count_session();
}

/* Is this LOAD, and not a call of one of our functions? */
static bool
is_loaded_by_statement(void)
{
	PlannedStmt *statement;

	if (ActivePortal == NULL || list_length(ActivePortal->stmts) != 1)
		return false;
	statement = linitial_node(PlannedStmt, ActivePortal->stmts);
	return statement->utilityStmt && IsA(statement->utilityStmt, LoadStmt);
}

/*
 * Where there is no memory for it, a library that is not preloaded is not an
 * error: CREATE EXTENSION works, and each function says what is missing.
 */
static void
load_late(void)
{
	if (!COMPAT_HAS_NAMED_MEMORY)
		return;
	late_is_used = true;
	connecting_in_progress = false;
	settings_define();
	if (MyBackendType != B_BACKEND)
		return;
	if (IsInitProcessingMode() || is_loaded_by_statement())
		count_session();
	else
	{
		next_ProcessUtility = ProcessUtility_hook ? ProcessUtility_hook : standard_ProcessUtility;
		ProcessUtility_hook = watch_for_load;
	}
}

void
_PG_init(void)
{
	if (IsBinaryUpgrade)
		return;
	if (!process_shared_preload_libraries_in_progress)
	{
		load_late();
		return;
	}
	settings_define();
	shmem_install();
	connecting_install();
	install_hooks();
	sampler_register();
}
