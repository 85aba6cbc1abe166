/*-------------------------------------------------------------------------
 *
 * blockers_view.c
 *	  The SQL function for holders.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "blockers.h"
#include "compat.h"
#include "rows.h"

/*
 * Only those who may see the holder's session learn who it is; others see that
 * there is one.
 */
static void
blocker_row(RowBuilder *row, const BlockerEntry *entry, bool is_window)
{
	const ClientKey *client = &entry->key.client;
	const BlockerCounters *counters = &entry->counters;
	bool		evicted = entry->key.backend_type[0] == '\0';

	row_database_and_role(row, client->datid, client->userid);
	row_text(row, "application_name", evicted ? "(evicted)" : client->application_name);
	if (!rows_may_see(client->userid))
	{
		row_null_rest(row);
		row_emit(row);
		return;
	}
	row_address(row, "client_addr", client->family, client->address);
	row_text(row, "backend_type", evicted ? NULL : entry->key.backend_type);
	if (entry->key.queryid != 0)
		row_int64(row, "queryid", (int64) entry->key.queryid);
	else
		row_null(row, "queryid");
	row_int64(row, "blocked_sessions", entry->sessions);
	row_int64(row, "blocked_sessions_max", counters->sessions_max);
	if (is_window)
		row_null_last(row, 1);
	row_ms(row, "blocked_time", counters->blocked);
	row_ms(row, "blocked_by_exec_time", counters->exec);
	row_ms(row, "blocked_by_send_time", counters->send);
	row_ms(row, "blocked_by_recv_time", counters->recv);
	row_ms(row, "blocked_by_network_time", counters->network);
	row_ms(row, "blocked_by_client_time", counters->client);
	row_ms(row, "blocked_by_other_time", counters->blocked - counters->exec - counters->send -
		   counters->recv - counters->network - counters->client);
	row_ms(row, "blocked_time_max", counters->blocked_max);
	if (is_window)
		row_null_last(row, 1);
	row_timestamp(row, "stats_since", entry->since);
	row_emit(row);
}

/*
 * One row per holder's client group, or type of process, and statement.  It is
 * also pgnetlat_blockers_last(), with the length of a window.
 */
PG_FUNCTION_INFO_V1(pgnetlat_blockers);

Datum
pgnetlat_blockers(PG_FUNCTION_ARGS)
{
	RowBuilder	row;
	int64		length = rows_begin_window(fcinfo, &row);
	BlockerEntry *entries;
	int			count;

	entries = blockers_copy(length, &count);
	for (int i = 0; i < count; i++)
		blocker_row(&row, &entries[i], length > 0);
	return (Datum) 0;
}
