/*-------------------------------------------------------------------------
 *
 * mva.c
 *	  See mva.h.
 *
 * The network is one of product form: Lazowska, Zahorjan, Graham and Sevcik,
 * "Quantitative System Performance", 1984, chapters 6 and 8 (processors are a
 * station whose rate depends on the length of its queue: j sessions are served
 * at a rate of min(j, processors)).  Processors are shared, so what matters of
 * demands is their mean, not their distribution.
 *
 * Its throughput is what mean value analysis computes: M. Reiser and S. S.
 * Lavenberg, "Mean-Value Analysis of Closed Multichain Queuing Networks",
 * Journal of the ACM 27 (2), 1980.  For stations like this one, its recursion
 * over the number of sessions needs the probability of each length of the queue:
 *
 *		R(n)   = sum over j of  j * demand / min(j, processors) * p(j - 1 | n - 1)
 *		X(n)   = n / (delay + R(n))
 *		p(j|n) = demand / min(j, processors) * X(n) * p(j - 1 | n - 1)
 *		p(0|n) = 1 - sum over j > 0 of p(j|n)
 *
 * The last line is a difference of nearly equal numbers when the processors are
 * hardly ever idle, and the errors add up: M. Reiser, "Mean-Value Analysis and
 * Convolution Method for Queue-Dependent Servers in Closed Queueing Networks",
 * Performance Evaluation 1, 1981.  But with a single station beside the delay,
 * the probabilities of all lengths for the full number of sessions are known up
 * to a factor:
 *
 *		p(j|N) / p(j-1|N) = (N - j + 1) / delay * demand / min(j, processors)
 *
 * which sums up positive numbers only, and takes N steps instead of N * N.  The
 * unit test compares it with the recursion.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "mva.h"

#include <math.h>
#include <stdint.h>

/* Weights grow up to this, then all of them are scaled down by it. */
#define WEIGHT_MAX		1e250

/* The demand is found to so many bits, and more. */
#define HALVINGS		60

static inline double
rate(double sessions, double processors)
{
	return sessions < processors ? sessions : processors;
}

/* A round takes no time, or none but on processors. */
static MvaSolution
solve_without_delay(double sessions, double demand, double processors)
{
	MvaSolution solution;

	solution.queue = sessions;
	solution.throughput = demand > 0 ? rate(sessions, processors) / demand : INFINITY;
	solution.residence = demand > 0 ? sessions / solution.throughput : 0;
	return solution;
}

/* The network with a whole number of sessions, at least one. */
static MvaSolution
solve_whole(double sessions, const MvaNetwork *network)
{
	MvaSolution solution;
	double		relative = network->demand / network->delay;
	double		weight = 1;
	double		weights = 1;
	double		served = 0;
	double		queued = 0;

	/* as a difference, no delay at all may be a little less than that */
	if (!(network->delay > 0) || !isfinite(relative))
		return solve_without_delay(sessions, network->demand, network->processors);
	for (int64_t j = 1; j <= (int64_t) sessions; j++)
	{
		double		busy = rate((double) j, network->processors);

		weight *= (sessions - j + 1) * relative / busy;
		weights += weight;
		served += weight * busy;
		queued += weight * j;
		if (weight > WEIGHT_MAX)
		{
			weight /= WEIGHT_MAX;
			weights /= WEIGHT_MAX;
			served /= WEIGHT_MAX;
			queued /= WEIGHT_MAX;
		}
		/* from its maximum on, the weight falls ever faster */
		if (weight < weights * 1e-20 && (sessions - j) * relative < busy)
			break;
	}
	solution.queue = queued / weights;
	if (network->demand > 0)
	{
		solution.throughput = served / weights / network->demand;
		solution.residence = solution.queue / solution.throughput;
	}
	else
	{
		solution.throughput = sessions / network->delay;
		solution.residence = 0;
	}
	return solution;
}

/*
 * Throughput, and how long each round takes at the processors.  Between two
 * whole numbers of sessions, these numbers are present in turn; less than one
 * session is one that is present some of the time.
 */
MvaSolution
mva_solve(const MvaNetwork *network)
{
	double		whole = floor(network->sessions);
	double		rest = network->sessions - whole;
	MvaSolution more;
	MvaSolution solution;

	if (rest == 0)
		return solve_whole(whole, network);
	more = solve_whole(whole + 1, network);
	if (whole == 0 || isinf(more.throughput))
	{
		more.throughput *= rest;
		more.queue *= rest;
		return more;
	}
	solution = solve_whole(whole, network);
	solution.throughput += rest * (more.throughput - solution.throughput);
	solution.queue += rest * (more.queue - solution.queue);
	solution.residence = solution.throughput > 0 ? solution.queue / solution.throughput : 0;
	return solution;
}

/*
 * The demand with which a round takes "residence" at the processors: what is
 * measured contains the time in the run queue, which depends on how many
 * sessions there are, and how slow they are elsewhere.  "demand" of the network
 * is not looked at.
 */
double
mva_demand(const MvaNetwork *network, double residence)
{
	MvaNetwork	trial = *network;
	double		alone = residence * rate(1, network->processors);
	double		low = log(alone / fmax(network->sessions, 1));
	double		high = log(alone);

	if (!(residence > 0))
		return 0;
	/* one session alone does not wait */
	if (network->sessions <= 1)
		return alone;
	for (int i = 0; i < HALVINGS; i++)
	{
		double		middle = (low + high) / 2;

		trial.demand = exp(middle);
		if (mva_solve(&trial).residence > residence)
			high = middle;
		else
			low = middle;
	}
	return exp((low + high) / 2);
}
