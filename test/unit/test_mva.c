/* Sources: mva.c */
/*
 * test_mva.c: the queueing network, against closed forms, against the recursion
 * of mean value analysis itself, and within the bounds that every such network
 * keeps.
 */
#include "mva.h"

#include <math.h>
#include <stdlib.h>

#include "check.h"

#define MOST	80

static int
close_to(double a, double b, double tolerance)
{
	return fabs(a - b) <= tolerance * fmax(fabs(a), fabs(b));
}

static MvaSolution
solve(double sessions, double delay, double demand, double processors)
{
	MvaNetwork	network = {sessions, delay, demand, processors};

	return mva_solve(&network);
}

/*
 * The machine repair model with one repairman, M/M/1//N: Erlang's loss formula
 * gives the probability that he is idle.
 */
static double
repairman(int machines, double delay, double demand)
{
	double		offered = delay / demand;
	double		blocked = 1;

	for (int n = 1; n <= machines; n++)
		blocked = offered * blocked / (n + offered * blocked);
	return (1 - blocked) / demand;
}

/* Reiser and Lavenberg's recursion, as it is in mva.c's comment. */
static double
recursion(int sessions, double delay, double demand, double processors)
{
	double		p[MOST + 1] = {1};
	double		throughput = 0;

	for (int n = 1; n <= sessions; n++)
	{
		double		residence = 0;
		double		sum = 0;

		for (int j = 1; j <= n; j++)
			residence += j * demand / fmin(j, processors) * p[j - 1];
		throughput = n / (delay + residence);
		for (int j = n; j >= 1; j--)
		{
			p[j] = demand / fmin(j, processors) * throughput * p[j - 1];
			sum += p[j];
		}
		p[0] = 1 - sum;
	}
	return throughput;
}

static void
test_closed_forms(void)
{
	static const double delays[] = {0.01, 0.5, 1, 5, 50, 5000};

	for (unsigned i = 0; i < sizeof(delays) / sizeof(*delays); i++)
	{
		double		delay = delays[i];

		/* one session never waits */
		CHECK(close_to(solve(1, delay, 2, 1).throughput, 1 / (delay + 2), 1e-12), "one");
		CHECK(close_to(solve(1, delay, 2, 7).residence, 2, 1e-12), "one");
		/* nobody waits where there is a processor for everybody */
		CHECK(close_to(solve(20, delay, 2, 20).throughput, 20 / (delay + 2), 1e-12), "enough");
		for (int n = 1; n <= MOST; n++)
			CHECK(close_to(solve(n, delay, 0.25, 1).throughput, repairman(n, delay, 0.25), 1e-11),
				  "%d machines, delay %g", n, delay);
	}
}

static void
test_recursion(void)
{
	static const double processors[] = {0.5, 1, 1.5, 2, 3, 8};

	for (unsigned i = 0; i < sizeof(processors) / sizeof(*processors); i++)
	{
		for (int n = 1; n <= 24; n++)
		{
			/* not saturated, where the recursion is exact */
			CHECK(close_to(solve(n, 40, 1, processors[i]).throughput,
						   recursion(n, 40, 1, processors[i]), 1e-8),
				  "%d sessions, %g processors", n, processors[i]);
		}
	}
}

/* Asymptotic bounds, and what must hold of every solution. */
static void
check_bounds(double sessions, double delay, double demand, double processors)
{
	MvaSolution s = solve(sessions, delay, demand, processors);
	double		alone = delay + demand / fmin(1, processors);
	double		slack = 1 + 1e-9;

	CHECK(s.throughput * demand <= processors * slack, "no more than the processors give");
	CHECK(s.throughput * alone <= sessions * slack, "no more than without queues");
	CHECK(s.throughput * (delay + fmax(sessions, 1) * demand / fmin(1, processors)) * slack >= sessions,
		  "no less than all one after the other: %g", s.throughput);
	CHECK(s.residence * slack >= demand / fmin(1, processors), "a visit takes its demand");
	CHECK(close_to(s.throughput * (delay + s.residence), sessions, 1e-9), "Little's law");
	CHECK(solve(sessions + 1, delay, demand, processors).throughput * slack >= s.throughput,
		  "more sessions, not less throughput");
	CHECK(solve(sessions, delay * 1.5, demand, processors).throughput <= s.throughput * slack,
		  "more delay, not more throughput");
	CHECK(solve(sessions, delay, demand * 1.5, processors).throughput <= s.throughput * slack,
		  "more demand, not more throughput");
	CHECK(solve(sessions, delay, demand, processors * 1.5).throughput * slack >= s.throughput,
		  "more processors, not less throughput");
}

static double
any(double low, double high)
{
	return low * pow(high / low, random() / (double) RAND_MAX);
}

/* The demand that was put in comes out. */
static void
test_demand(void)
{
	for (int i = 0; i < 300; i++)
	{
		MvaNetwork	network = {any(0.2, 500), any(0.01, 1000), any(0.01, 100), any(0.3, 64)};
		MvaSolution solution = mva_solve(&network);
		double		demand = mva_demand(&network, solution.residence);
		MvaNetwork	found = network;

		found.demand = demand;
		CHECK(close_to(mva_solve(&found).residence, solution.residence, 1e-9),
			  "%g sessions, %g, %g, %g", network.sessions, network.delay, network.demand,
			  network.processors);
		CHECK(close_to(mva_solve(&found).throughput, solution.throughput, 1e-9), "throughput");
	}
}

static void
test_extremes(void)
{
	MvaNetwork	none = {10, 5, 0, 2};

	CHECK(close_to(solve(10, 5, 0, 2).throughput, 2, 1e-12), "no demand");
	CHECK(solve(10, 5, 0, 2).residence == 0, "no demand");
	CHECK(close_to(solve(10, 0, 4, 2).throughput, 0.5, 1e-12), "no delay");
	CHECK(close_to(solve(10, 0, 4, 2).residence, 20, 1e-12), "no delay");
	CHECK(isinf(solve(10, 0, 0, 2).throughput), "nothing at all");
	CHECK(mva_demand(&none, 0) == 0, "no residence");
	/* very many: saturated, or nearly free of queues */
	CHECK(close_to(solve(262143, 1, 1, 4).throughput, 4, 1e-6), "many");
	CHECK(close_to(solve(262143, 1e9, 1, 4).throughput, 262143 / (1e9 + 1), 1e-6), "many");
	CHECK(close_to(solve(262143, 65535, 1, 4).throughput, 4, 0.01), "many, at the knee");
	/* half a session is one that is there half of the time */
	CHECK(close_to(solve(0.5, 3, 1, 1).throughput, 0.125, 1e-12), "half");
	CHECK(close_to(solve(2.5, 3, 1, 1).throughput,
				   (solve(2, 3, 1, 1).throughput + solve(3, 3, 1, 1).throughput) / 2, 1e-12), "two and a half");
}

int
main(void)
{
	srandom(1);
	test_closed_forms();
	test_recursion();
	for (int i = 0; i < 2000; i++)
		check_bounds(any(0.2, 2000), any(0.001, 1000), any(0.001, 100), any(0.3, 128));
	test_demand();
	test_extremes();
	return CHECKS_DONE("mva");
}
