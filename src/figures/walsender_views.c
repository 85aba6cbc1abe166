/*-------------------------------------------------------------------------
 *
 * walsender_views.c
 *	  The SQL function for walsenders' sockets.
 *
 * The view pgnetlat_walsenders joins pgnetlat_walsender_sockets() with
 * pg_stat_replication.  All figures are the kernel's, from the beginning of
 * the connection until now.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "clock.h"
#include "compat.h"
#include "rows.h"
#include "tcpinfo.h"
#include "walsenders.h"

/*
 * Nothing is kept from one question to the next.  So retransmits are all of
 * them: without those that are reported as duplicates later, they would fall.
 */
static void
row_socket(RowBuilder *row, const TcpInfo *info)
{
	row_rtt(row, "rtt", info->rtt);
	row_ms(row, "srtt", info->srtt);
	row_int64(row, "retransmits", info->sent_again);
	row_int64(row, "bytes_acked", info->bytes_acked);
	row_int64(row, "bytes_queued", info->unsent);
	row_ms(row, "busy_time", info->busy);
	row_ms(row, "receiver_limited_time", info->rwnd_limited);
	row_ms(row, "buffer_limited_time", info->sndbuf_limited);
}

/*
 * One row per walsender over TCP that the kernel knows.  The kernel is asked
 * about all of them before the first row is built, since an error must not
 * leave a socket open.
 */
PG_FUNCTION_INFO_V1(pgnetlat_walsender_sockets);

Datum
pgnetlat_walsender_sockets(PG_FUNCTION_ARGS)
{
	RowBuilder	row;
	TcpDiag		diag = {.sock = -1};
	WalsenderSocket *sockets;
	TcpInfo    *infos;
	int			count;

	rows_begin(fcinfo, &row);
	/* as core shows them in pg_stat_replication */
	if (!rows_may_see(InvalidOid))
		return (Datum) 0;
	sockets = walsenders_all(&count);
	infos = palloc0(Max(count, 1) * sizeof(TcpInfo));
	for (int i = 0; i < count; i++)
	{
		if (sockets[i].endpoints.family != 0)
			(void) tcpinfo_diag_query(&diag, &sockets[i].endpoints, NULL,
									  clock_now(), &infos[i]);
	}
	tcpinfo_diag_close(&diag);
	for (int i = 0; i < count; i++)
	{
		if (infos[i].measured_at == 0)
			continue;
		row_int32(&row, "pid", sockets[i].pid);
		row_socket(&row, &infos[i]);
		row_emit(&row);
	}
	return (Datum) 0;
}
