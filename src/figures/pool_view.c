/*-------------------------------------------------------------------------
 *
 * pool_view.c
 *	  SQL functions about how many sessions are busy at once.
 *
 * Who may not see a role's sessions learns how many there are, as in
 * pgnetlat_sessions.  Not how many are busy: whoever polls that could time each
 * query.  That goes for the sums over all roles as well.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "accumulate.h"
#include "commands/dbcommands.h"
#include "compat.h"
#include "miscadmin.h"
#include "pools.h"
#include "rows.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

/* NULL if nothing is known. */
static void
row_level(RowBuilder *row, const char *column, int64 level)
{
	if (level >= 0)
		row_int64(row, column, level);
	else
		row_null(row, column);
}

static void
pool_distribution(RowBuilder *row, const PoolCounts *pool)
{
	static const char *const columns[] = {"busy_p50", "busy_p95", "busy_p99", "busy_p999"};
	static const int per_mille[] = {500, 950, 990, 999};
	int			level = -1;

	for (size_t i = 0; i < lengthof(columns); i++)
	{
		if (pool->kind != POOL_EVICTED)
			level = concurrency_quantile(&pool->distribution, per_mille[i], pool->busy_max);
		row_level(row, columns[i], level);
	}
	row_int64(row, "busy_max", pool->busy_max);
	/* for 99.9 % of the time; no connections serve nobody */
	row_level(row, "pool_size", level < 0 ? level : Max(level, 1));
}

static void
pool_row(RowBuilder *row, const PoolCounts *pool, bool with_window)
{
	row_oid(row, "datid", pool->datid);
	row_name(row, "datname", pool->kind == POOL_EVICTED ? "(evicted)" :
			 get_database_name(pool->datid));
	row_oid(row, "usesysid", pool->userid);
	row_name(row, "usename", pool->kind == POOL_OF_ROLE ?
			 GetUserNameFromId(pool->userid, true) : NULL);
	row_int64(row, "sessions", pool->sessions);
	if (!rows_may_see(pool->userid))
	{
		row_null_rest(row);
		row_emit(row);
		return;
	}
	row_int64(row, "sessions_max", pool->sessions_max);
	row_level(row, "busy", pools_are_sampled() ? pool->busy : -1);
	if (pool->time > 0)
		row_float8(row, "busy_avg", pool->busy_time / (double) pool->time);
	else
		row_null(row, "busy_avg");
	pool_distribution(row, pool);
	row_timestamp(row, "stats_since", pool->since);
	if (with_window)
		row_ms(row, "window_time", pool->time);
	row_emit(row);
}

/*
 * One row per database and role with sessions, now or before; one for all
 * sessions; and one for pools that were evicted, if there are any.  Over a window
 * if the function has a parameter (pgnetlat_pools_last), with its length.
 */
PG_FUNCTION_INFO_V1(pgnetlat_pools);

Datum
pgnetlat_pools(PG_FUNCTION_ARGS)
{
	RowBuilder	row;
	PoolCounts *copies;
	int64		length = POOLS_WHOLE;
	int			count;

	rows_begin(fcinfo, &row);
	if (PG_NARGS() > 0)
		length = rows_window_length(PG_GETARG_INTERVAL_P(0));
	accumulate_all();
	copies = pools_copy(length, &count);
	for (int i = 0; i < count; i++)
		pool_row(&row, &copies[i], length != POOLS_WHOLE);
	return (Datum) 0;
}
