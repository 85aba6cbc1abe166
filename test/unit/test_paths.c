/* Sources: paths.c */
/*
 * Unit tests of paths.c: which connections' round trips say something about others.
 */
#include "check.h"
#include "paths.h"

#define MS(x)	((int64_t) ((x) * 1000000))
#define MOST	8

/* Compare paths from one address; the two lists end with 0. */
static void
check(const char *what, const double *first, const double *least, const double *expected)
{
	Path		paths[MOST] = {0};
	int			count = 0;

	for (; first[count] != 0; count++)
	{
		paths[count].first = MS(first[count]);
		paths[count].least = MS(least[count]);
		paths[count].index = count;
	}
	paths_compare(paths, count);
	for (int i = 0; i < count; i++)
		CHECK_EQUAL(paths[i].rtt, MS(expected[paths[i].index]), what);
}

#define LIST(...)	((const double[]) {__VA_ARGS__, 0})

static void
test_rule(void)
{
	check("one alone keeps its own", LIST(10), LIST(5.79), LIST(5.79));
	check("of two, neither is most", LIST(10, 10), LIST(0.5, 5.79), LIST(0.5, 5.79));
	check("a path became faster, and a client thinks", LIST(10, 10.1, 9.9, 10.2),
		  LIST(0.6, 0.61, 0.62, 5.79), LIST(0.6, 0.61, 0.62, 0.62));
	check("it never was below what it was", LIST(10, 10.1, 9.9),
		  LIST(0.6, 0.61, 9.9), LIST(0.6, 0.61, 0.61));
	check("noise on a constant path", LIST(0.6, 0.79, 1.15, 1.22, 1.3),
		  LIST(0.6, 0.79, 1.15, 1.22, 1.3), LIST(0.6, 0.79, 1.15, 1.15, 1.15));
	check("near and far clients behind one address", LIST(0.5, 10, 0.5, 10, 0.5, 0.5),
		  LIST(0.5, 10, 0.5, 10, 0.5, 0.5), LIST(0.5, 10, 0.5, 10, 0.5, 0.5));
	check("a near one that seemed far", LIST(10, 10.2, 10, 10), LIST(10, 0.5, 10, 10),
		  LIST(10, 0.5, 10, 10));
	check("a path became slower, which some have noticed", LIST(10, 10, 10, 10),
		  LIST(10, 20, 10, 10), LIST(10, 20, 10, 10));
}

static void
test_addresses(void)
{
	Path		paths[6] = {0};

	for (int i = 0; i < 6; i++)
	{
		paths[i].family = i % 2;
		paths[i].first = MS(10);
		paths[i].least = i % 2 == 0 || i == 1 ? MS(10) : MS(1);
		paths[i].index = i;
	}
	paths_compare(paths, 6);
	for (int i = 0; i < 6; i++)
		CHECK_EQUAL(paths[i].rtt, paths[i].index % 2 == 0 ? MS(10) : MS(1),
					"another address says nothing");
	paths_compare(paths, 0);
}

int
main(void)
{
	test_rule();
	test_addresses();
	return CHECKS_DONE("paths");
}
