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
#include "settings.h"
#include "miscadmin.h"
#include "sampler.h"
#include "shared_memory.h"
#include "statement_hooks.h"
#include "wire.h"

/* Child processes inherit our pointers into shared memory. */
#ifdef EXEC_BACKEND
#error pgnetlat needs a server that forks its backends
#endif

PG_MODULE_MAGIC_EXT(.name = "pgnetlat",.version = PGNETLAT_VERSION);

extern PGDLLEXPORT void _PG_init(void);

/*
 * A library that is not preloaded is not an error: CREATE EXTENSION works, and
 * each function says what is missing.
 */
void
_PG_init(void)
{
	if (!process_shared_preload_libraries_in_progress || IsBinaryUpgrade)
		return;

	settings_define();
	shmem_install();
	wire_install();
	connecting_install();
	statement_hooks_install();
	sampler_register();
}
