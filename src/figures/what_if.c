/*-------------------------------------------------------------------------
 *
 * what_if.c
 *	  SQL functions that predict: pgnetlat_what_if() and
 *	  pgnetlat_what_if_session().
 *
 * What was measured is taken from the accounts of a window; prediction.c makes
 * a workload of it and predicts.  Processors are the only thing that client
 * groups share in the model: of those that the server has, a group could have
 * what the others leave, on average, and certainly what it had.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "accumulate.h"
#include "clients.h"
#include "clock.h"
#include "compat.h"
#include "miscadmin.h"
#include "process.h"
#include "rows.h"
#include "session_slot.h"
#include "utils/timestamp.h"
#include "what_if.h"
#include "windows.h"

/* However busy the others are, a group gets some of the processors. */
#define LEAST_PROCESSORS	0.05

/* ---------------------------------------------------------------------------
 * Client groups
 * ---------------------------------------------------------------------------
 */

/*
 * The server's processors, and what all groups took of them in the window of
 * which these are copies.
 */
Processors
what_if_processors(const ClientEntry *entries, int count)
{
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz began = now - 1;
	Processors	processors = {.count = process_processors()};

	for (int i = 0; i < count; i++)
	{
		processors.taken += processor_time_of_totals(&entries[i].counters.totals);
		began = Min(began, entries[i].since);
	}
	processors.length = (now - began) * (double) NS_PER_US;
	return processors;
}

/*
 * How many a group could have: all but what the others take, on average.  No
 * less than it had while it was occupied; but what looks like work may have been
 * a wait.
 */
static double
processors_for(const ClientEntry *entry, const Workload *workload, const Processors *all)
{
	double		others = all->taken - processor_time_of_totals(&entry->counters.totals);
	double		left = all->count - others / all->length;
	double		had = workload->throughput / 1000 * workload->processor_time;

	return Min(all->count, Max(Max(left, had), all->count * LEAST_PROCESSORS));
}

/*
 * What a group did, per transaction; false if there is nothing that could be
 * said.
 */
bool
what_if_workload(const ClientEntry *entry, const Processors *processors, Workload *workload)
{
	const ClientCounters *counters = &entry->counters;

	/* of groups that were evicted nobody knows how many sessions there were */
	if (entry->is_evicted ||
		!workload_from_totals(workload, &counters->totals, counters->rtt,
							  entry->key.family != 0, counters->occupied))
		return false;
	workload->processors = processors_for(entry, workload, processors);
	return true;
}
