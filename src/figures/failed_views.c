/*-------------------------------------------------------------------------
 *
 * failed_views.c
 *	  Who failed to connect.
 *
 * The view pgnetlat_failed_connections has the names that were asked for, which
 * need not exist.  Where they do, the role's other figures are in
 * pgnetlat_clients, and there is a row for these as well.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_database.h"
#include "commands/dbcommands.h"
#include "compat.h"
#include "failed_connections.h"
#include "failed_views.h"
#include "mb/pg_wchar.h"
#include "rows.h"
#include "utils/acl.h"

/*
 * Those of roles and databases that exist, as groups of an application_name of
 * their own.  Names are unique, so there are no two of one group.
 */
FailedGroup *
failed_connection_groups(int *count)
{
	int			entries;
	FailedConnections *failed = failed_connections_copy(&entries);
	FailedGroup *groups = palloc0(Max(entries, 1) * sizeof(FailedGroup));

	*count = 0;
	for (int i = 0; i < entries; i++)
	{
		Oid			datid = get_database_oid(failed[i].database, true);
		Oid			role = get_role_oid(failed[i].role, true);
		FailedGroup *group = &groups[*count];

		if (!OidIsValid(datid) || !OidIsValid(role))
			continue;
		group->group.key.datid = datid;
		group->group.key.userid = role;
		group->group.key.family = failed[i].family;
		memcpy(group->group.key.address, failed[i].address, sizeof(failed[i].address));
		strlcpy(group->group.key.application_name, "(failed)", NAMEDATALEN);
		group->group.since = failed[i].since;
		group->count = failed[i].count;
		(*count)++;
	}
	return groups;
}

/* Nobody has looked at the encoding of what came with a start-up packet. */
static void
row_typed_name(RowBuilder *row, const char *column, char *name)
{
	if (!pg_verifymbstr(name, strlen(name), true))
	{
		for (char *c = name; *c != '\0'; c++)
		{
			if (IS_HIGHBIT_SET(*c))
				*c = '?';
		}
	}
	row_text(row, column, name);
}

/*
 * One row per names and address; one more without any for those that found no
 * place.  What strangers have typed is not for everybody.
 */
PG_FUNCTION_INFO_V1(pgnetlat_failed_connections);

Datum
pgnetlat_failed_connections(PG_FUNCTION_ARGS)
{
	RowBuilder	row;
	FailedConnections *failed;
	int			count;

	rows_begin(fcinfo, &row);
	if (!rows_may_see(InvalidOid))
		return (Datum) 0;
	failed = failed_connections_copy(&count);
	for (int i = 0; i < count; i++)
	{
		if (i == FAILED_CONNECTIONS_ENTRIES)
		{
			row_null(&row, "datname");
			row_null(&row, "usename");
		}
		else
		{
			row_typed_name(&row, "datname", failed[i].database);
			row_typed_name(&row, "usename", failed[i].role);
		}
		row_address(&row, "client_addr", failed[i].family, failed[i].address);
		row_int64(&row, "failed_connections", failed[i].count);
		row_timestamp(&row, "first_failed", failed[i].since);
		row_timestamp(&row, "last_failed", failed[i].latest);
		row_emit(&row);
	}
	return (Datum) 0;
}
