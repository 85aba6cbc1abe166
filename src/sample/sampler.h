/*-------------------------------------------------------------------------
 *
 * sampler.h
 *	  The background worker "pgnetlat sampler".
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_SAMPLER_H
#define PGNETLAT_SAMPLER_H

#include "datatype/timestamp.h"
#include "snapshots.h"

/* The sampler's health.  Only the sampler writes it, each field atomically. */
typedef struct SamplerStatus
{
	int			pid;			/* 0: not running */
	TimestampTz started;
	TimestampTz last_tick;
	TimestampTz last_error;
	int64		ticks;			/* since the server started, like the next two */
	int64		errors;
	int64		cpu_time;		/* ns */
	SnapshotSchedule schedule;	/* a restarted sampler continues it */
} SamplerStatus;

extern Size sampler_shmem_size(void);
extern void sampler_shmem_attach(void *memory, bool is_new);
extern void sampler_register(void);
extern bool sampler_start(void);
extern void sampler_get_status(SamplerStatus *copy);

extern PGDLLEXPORT void pgnetlat_sampler_main(Datum arg);

#endif							/* PGNETLAT_SAMPLER_H */
