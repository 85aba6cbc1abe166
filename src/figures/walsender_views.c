/*-------------------------------------------------------------------------
 *
 * walsender_views.c
 *	  SQL functions about walsenders.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat.h"
#include "port/pg_bswap.h"
#include "rows.h"
#include "walsenders.h"

static const char *const kind_names[WALSENDER_KINDS] = {
	[WALSENDER_COMMANDS] = "commands",
	[WALSENDER_PHYSICAL] = "physical",
	[WALSENDER_LOGICAL] = "logical",
	[WALSENDER_BASE_BACKUP] = "base backup",
};

static const char *
state_name(const WalsenderObservation *one)
{
	switch (one->phase)
	{
		case WALSENDER_OFF:
			return "disabled";
		case WALSENDER_SENDING:
			return "sending";
		case WALSENDER_AT_WORK:
			break;
	}
	return one->idle ? "idle" : "busy";
}

/* The columns that a walsender and a group of them have in common: the time, ... */
static void
row_walsender_times(RowBuilder *row, const WalsenderTotals *totals, int64 pending)
{
	row_ms(row, "total_time", totals->send + totals->busy + totals->idle + pending);
	row_ms(row, "send_time", totals->send);
	row_ms(row, "send_network_time", totals->send_network);
	row_ms(row, "send_client_time", totals->send_client);
	row_ms(row, "busy_time", totals->busy);
	row_ms(row, "idle_time", totals->idle);
	row_ms(row, "pending_time", pending);
	row_int64(row, "bytes_sent", totals->bytes_sent);
}

/* ... what the kernel has counted, ... */
static void
row_walsender_packets(RowBuilder *row, const TcpCounters *counters, bool known)
{
	if (!known)
	{
		row_null(row, "bytes_received");
		row_null(row, "packets_sent");
		row_null(row, "packets_received");
		row_null(row, "retransmits");
		return;
	}
	row_int64(row, "bytes_received", counters->bytes_received);
	row_int64(row, "packets_sent", counters->packets_sent);
	row_int64(row, "packets_received", counters->packets_received);
	row_int64(row, "retransmits", counters->retransmits);
}

/* ... and what the receiver has said. */
static void
row_walsender_replies(RowBuilder *row, const WalsenderTotals *totals)
{
	row_int64(row, "replies", totals->replies);
	row_int64(row, "flushes", totals->flushes);
	row_ms(row, "flush_time", totals->flush);
	row_ms(row, "flush_network_time", totals->flush_network);
	row_ms(row, "flush_standby_time", totals->flush - totals->flush_network);
}

static void
walsender_account(RowBuilder *row, const WalsenderObservation *one)
{
	const TcpEndpoints *endpoints = &one->identity.endpoints;
	bool		known = one->tcp.measured_at != 0;

	row_address(row, "client_addr", endpoints->family, endpoints->remote_address);
	row_int32(row, "client_port",
			  endpoints->family != 0 ? pg_ntoh16(endpoints->remote_port) : -1);
	row_timestamp(row, "backend_start", one->identity.backend_start);
	row_text(row, "kind", kind_names[one->identity.kind]);
	row_transport(row, "transport", one->identity.transport);
	row_text(row, "state", state_name(one));
	row_timestamp(row, "stats_since", one->stats_since);
	row_walsender_times(row, &one->totals, one->pending);
	row_walsender_packets(row, &one->tcp_counters, known);
	if (known && one->tcp.rtt > 0)
		row_ms(row, "rtt", one->tcp.rtt);
	else
		row_null(row, "rtt");
	if (known)
		row_ms(row, "srtt", one->tcp.srtt);
	else
		row_null(row, "srtt");
	row_timestamp(row, "rtt_at", known ?
				  clock_to_timestamp(one->clock_offset, one->tcp.measured_at) : 0);
	row_walsender_replies(row, &one->totals);
	if (one->flush_lag >= 0)
		row_ms(row, "flush_lag", one->flush_lag);
	else
		row_null(row, "flush_lag");
	row_int32(row, "sync_priority", one->sync_priority);
}

/*
 * One row per walsender.
 */
PG_FUNCTION_INFO_V1(pgnetlat_walsenders);

Datum
pgnetlat_walsenders(PG_FUNCTION_ARGS)
{
	RowBuilder	row;
	WalsenderObservation one;

	rows_begin(fcinfo, &row);
	for (int i = 0; i < walsenders_count(); i++)
	{
		if (!walsenders_observe(i, &one))
			continue;
		row_int32(&row, "pid", one.identity.pid);
		row_oid(&row, "usesysid", one.identity.userid);
		row_text(&row, "application_name", one.identity.application_name);
		if (rows_may_see(one.identity.userid))
			walsender_account(&row, &one);
		else
			row_null_rest(&row);
		row_emit(&row);
	}
	return (Datum) 0;
}

/*
 * One row per group of walsenders, with those that have ended.
 */
PG_FUNCTION_INFO_V1(pgnetlat_replication);

Datum
pgnetlat_replication(PG_FUNCTION_ARGS)
{
	RowBuilder	row;
	WalsenderGroup *groups;
	int			count;

	rows_begin(fcinfo, &row);
	groups = walsenders_groups(&count);
	for (int i = 0; i < count; i++)
	{
		const WalsenderGroup *group = &groups[i];
		bool		others = i == WALSENDER_GROUPS - 1;

		row_text(&row, "kind", others ? NULL : kind_names[group->kind]);
		row_text(&row, "application_name", others ? "(others)" : group->application_name);
		/* they may have been of several roles */
		if (!rows_may_see(InvalidOid))
		{
			row_null_rest(&row);
			row_emit(&row);
			continue;
		}
		row_address(&row, "client_addr", group->family, group->address);
		row_int64(&row, "walsenders", group->live);
		row_int64(&row, "ended_walsenders", group->ended);
		row_walsender_times(&row, &group->totals, group->pending);
		row_walsender_packets(&row, &group->tcp_counters, others || group->family != 0);
		row_walsender_replies(&row, &group->totals);
		row_emit(&row);
	}
	return (Datum) 0;
}
