/*
 * check.h: shared by the unit tests.  A failed check prints where and what,
 * and the program goes on; CHECKS_DONE() prints the counts and returns.
 */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>

static int	checks_passed = 0;
static int	checks_failed = 0;

#define CHECK(condition, ...) \
	do { \
		if (condition) \
			checks_passed++; \
		else \
		{ \
			checks_failed++; \
			printf("%s:%d: not true: %s: ", __FILE__, __LINE__, #condition); \
			printf(__VA_ARGS__); \
			printf("\n"); \
		} \
	} while (0)

#define CHECK_EQUAL(got, expected, what) \
	CHECK((got) == (expected), "%s is %lld, expected %lld", what, \
		  (long long) (got), (long long) (expected))

#define CHECKS_DONE(name) \
	(printf("%s: %d passed, %d failed\n", name, checks_passed, checks_failed), \
	 checks_failed > 0)

#endif
