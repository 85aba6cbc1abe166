/*-------------------------------------------------------------------------
 *
 * extension_views.c
 *	  SQL functions for the extension itself.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "accumulate.h"
#include "blockers.h"
#include "clients.h"
#include "compat.h"
#include "late_memory.h"
#include "process.h"
#include "rows.h"
#include "sampler.h"
#include "session_slot.h"
#include "settings.h"
#include "shared_memory.h"
#include "statements.h"
#include "utils/timestamp.h"

/*
 * One row about the extension itself.
 */
PG_FUNCTION_INFO_V1(pgnetlat_info);

Datum
pgnetlat_info(PG_FUNCTION_ARGS)
{
	RowBuilder	row;
	SamplerStatus sampler;
	const char *problem;
	int			counted = 0;
	int			uncounted = 0;
	int64		entries;
	int64		evicted;

	/* without memory, what is wrong is all that is known */
	problem = late_memory_problem();
	if (problem && !shmem_is_ready())
		rows_begin_anyway(fcinfo, &row);
	else
		rows_begin(fcinfo, &row);
	row_text(&row, "version", PGNETLAT_VERSION);
	row_text(&row, "loaded_by", late_is_used ? "sessions" : "server");
	row_text(&row, "problem", problem);
	if (problem && !shmem_is_ready())
	{
		row_null_rest(&row);
		row_emit(&row);
		return (Datum) 0;
	}
	for (int i = 0; i < slot_count(); i++)
		counted += slot_get(i)->published.session != 0;
	for (int number = 0; slot_next_uncounted(&number) != NULL;)
		uncounted++;
	row_int32(&row, "counted_sessions", counted);
	row_int32(&row, "client_sessions", counted + uncounted);
	sampler_get_status(&sampler);
	row_int32(&row, "sampler_pid", sampler.pid);
	if (sampler.pid == 0)
		row_null_last(&row, 1);
	row_timestamp(&row, "sampler_start", sampler.pid != 0 ? sampler.started : 0);
	row_timestamp(&row, "sampler_last_tick", sampler.last_tick);
	row_int64(&row, "sampler_ticks", sampler.ticks);
	row_ms(&row, "sampler_cpu_time", sampler.cpu_time);
	row_int64(&row, "sampler_errors", sampler.errors);
	row_timestamp(&row, "sampler_last_error", sampler.last_error);
	statements_counts(&entries, &evicted);
	row_int64(&row, "statements", entries);
	row_int64(&row, "statements_max", pgnetlat_max_statements);
	row_int64(&row, "statements_evicted", evicted);
	clients_counts(&entries, &evicted);
	row_int64(&row, "clients", entries);
	row_int64(&row, "clients_max", pgnetlat_max_clients);
	row_int64(&row, "clients_evicted", evicted);
	row_int64(&row, "shared_memory_bytes", shmem_size());
	row_timestamp(&row, "stats_reset", slot_control->reset_timestamp);
	blockers_counts(&entries, &evicted);
	row_int64(&row, "blockers", entries);
	row_int64(&row, "blockers_max", pgnetlat_max_blockers);
	row_int64(&row, "blockers_evicted", evicted);
	row_float8(&row, "processors", process_processors());
	row_emit(&row);
	return (Datum) 0;
}

/*
 * Forget everything counted so far.
 */
PG_FUNCTION_INFO_V1(pgnetlat_reset);
Datum
pgnetlat_reset(PG_FUNCTION_ARGS)
{
	rows_require_preload();
	PG_RETURN_TIMESTAMPTZ(accumulate_reset());
}
