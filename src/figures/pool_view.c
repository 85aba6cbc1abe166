/*-------------------------------------------------------------------------
 *
 * pool_view.c
 *	  SQL functions for pools: how many sessions are busy at once.
 *
 * Those who may not see a role's sessions see their number, as in
 * pgnetlat_sessions, but not how many are busy: anyone who polls that could
 * time each query.  The same is true of the sums over all roles.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "commands/dbcommands.h"
#include "clock.h"
#include "compat.h"
#include "miscadmin.h"
#include "pools.h"
#include "rows.h"
#include "sampler.h"
#include "utils/lsyscache.h"

/* The columns from the distribution, which evicted pools don't have. */
static void
pool_levels(RowBuilder *row, const Pool *pool)
{
	static const char *const columns[] = {"busy_p50", "busy_p95", "busy_p99", "busy_p999"};
	static const int per_mille[] = {500, 950, 990, 999};
	const PoolCounters *counters = &pool->counters;
	int64		time = concurrency_time(&counters->distribution);
	int			level = -1;

	row_float8(row, "busy_avg", counters->busy_time * (double) NS_PER_US / Max(time, 1));
	for (size_t i = 0; i < lengthof(columns); i++)
	{
		level = concurrency_quantile(&counters->distribution, per_mille[i], (int) pool->busy_max);
		row_int64(row, columns[i], level);
	}
	row_int64(row, "busy_max", pool->busy_max);
	/* enough for 99.9 % of the time, and at least 1 */
	row_int64(row, "pool_size", Max(level, 1));
	if (pool->is_evicted || time == 0)
		row_null_last(row, lengthof(columns) + 3);
}

static void
pool_row(RowBuilder *row, const Pool *pool, bool is_sampled, bool is_window)
{
	row_oid(row, "datid", pool->datid);
	row_name(row, "datname", pool->is_evicted ? "(evicted)" : get_database_name(pool->datid));
	row_oid(row, "usesysid", pool->userid);
	row_name(row, "usename", GetUserNameFromId(pool->userid, true));
	row_int64(row, "sessions", pool->sessions);
	if (rows_may_see(pool->userid))
	{
		row_int64(row, "sessions_max", pool->sessions_max);
		if (is_window)
			row_null_last(row, 1);
		row_int64(row, "busy", pool->busy);
		if (!is_sampled)
			row_null_last(row, 1);
		pool_levels(row, pool);
		row_timestamp(row, "stats_since", pool->since);
		row_window_time(row, pool->since);
	}
	else
		row_null_rest(row);
	row_emit(row);
}

/*
 * One row per database and role that has or had sessions, one for all
 * sessions, and an evicted row if there is one.  With a parameter
 * (pgnetlat_pools_last), over a window, and with the window's length.
 */
PG_FUNCTION_INFO_V1(pgnetlat_pools);

Datum
pgnetlat_pools(PG_FUNCTION_ARGS)
{
	SamplerStatus sampler;
	RowBuilder	row;
	int64		length = rows_begin_window(fcinfo, &row);
	Pool	   *pools;
	int			count;

	sampler_get_status(&sampler);
	pools = pools_copy(length, &count);
	for (int i = 0; i < count; i++)
		pool_row(&row, &pools[i], sampler.pid != 0, length > 0);
	return (Datum) 0;
}
