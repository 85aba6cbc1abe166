/*-------------------------------------------------------------------------
 *
 * mva.h
 *	  A closed queueing network: sessions that take turns in waiting for the
 *	  network and their clients, and at the server's processors.
 *
 * A given number of sessions goes round for ever.  A round consists of a delay,
 * in which no session is in another's way, and of a visit to a station of some
 * processors, where each session needs one for a while: its demand.  If there
 * are more sessions there than processors, they share them.
 *
 * Plain C, no server headers.  Times may have any unit, throughput is per that
 * unit.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_MVA_H
#define PGNETLAT_MVA_H

typedef struct MvaNetwork
{
	double		sessions;		/* on average, so not necessarily whole */
	double		delay;			/* of each round; 0 or more */
	double		demand;			/* on a processor, in each round; 0 or more */
	double		processors;		/* more than 0; not necessarily whole, for
								 * some may be half as fast as others, or
								 * taken */
} MvaNetwork;

typedef struct MvaSolution
{
	double		throughput;		/* rounds of all sessions; infinite if a round
								 * takes no time */
	double		residence;		/* time at the processors, in each round */
	double		queue;			/* sessions there, on average */
} MvaSolution;

extern MvaSolution mva_solve(const MvaNetwork *network);
extern double mva_demand(const MvaNetwork *network, double residence);

#endif							/* PGNETLAT_MVA_H */
