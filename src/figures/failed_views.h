/*-------------------------------------------------------------------------
 *
 * failed_views.h
 *	  Failed connections among client groups.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_FAILED_VIEWS_H
#define PGNETLAT_FAILED_VIEWS_H

#include "clients.h"

/* A row of pgnetlat_clients in which nothing else is counted. */
typedef struct FailedGroup
{
	ClientEntry group;
	int64		count;
} FailedGroup;

extern FailedGroup *failed_connection_groups(int *count);

#endif							/* PGNETLAT_FAILED_VIEWS_H */
