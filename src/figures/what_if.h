/*-------------------------------------------------------------------------
 *
 * what_if.h
 *	  What client groups did, as predictions start from it: for who predicts
 *	  beside pgnetlat_what_if(), and wants to say the same.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_WHAT_IF_H
#define PGNETLAT_WHAT_IF_H

#include "clients.h"
#include "prediction.h"

/* The processors of the server, in a window. */
typedef struct Processors
{
	double		count;
	double		length;			/* of the window, ns */
	double		taken;			/* by all groups, ns */
} Processors;

extern Processors what_if_processors(const ClientEntry *entries, int count);
extern bool what_if_workload(const ClientEntry *entry, const Processors *processors,
							 Workload *workload);

#endif							/* PGNETLAT_WHAT_IF_H */
