/* Sources: exec_split.c ledger.c */
/*
 * random_ledger.c: the properties of ledger_model.h over as many random events
 * as there is time for.
 *
 *	random_ledger EVENTS [SEED]		sequences of up to 2,000 events; their seeds
 *									are SEED, SEED + 1 ...
 *	random_ledger --replay SEED		that sequence, event by event
 *
 * Without a SEED the clock gives one.  A seed that breaks a property is added
 * to the file random_ledger.seeds.
 */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "ledger_model.h"

/* Prints what has changed since the latest event. */
static void
show_step(const Model *model, const LedgerTotals *before, int64_t then)
{
	static const char *const phases[] = {"off", "executing", "sending", "turning", "waiting"};
	LedgerTotals gain = model->ledger.totals;

	ledger_totals_subtract(&gain, before);
	printf("%6" PRId64 "  +%-9" PRId64 " %-9s exec %" PRId64 " send %" PRId64 " recv %" PRId64
		   " network %" PRId64 " client %" PRId64 " idle %" PRId64 " requests %" PRId64 "\n",
		   model->events, model->now - then, phases[model->ledger.phase], gain.exec, gain.send,
		   gain.recv, gain.network, gain.client, gain.idle, gain.requests);
}

/* Runs the sequence of a seed.  Returns its events; -1 if a property is broken. */
static int64_t
run_seed(uint64_t seed, bool shown)
{
	ModelRandom random = {seed, 0};
	Model		model;
	LedgerTotals before;
	int64_t		then;

	/* most sequences are short, since a new beginning is what they share */
	random.left = 4;
	random.left = 3 * (1 + (model_random_byte(&random) & 1 ?
							model_random_byte(&random) : 8 * model_random_byte(&random)));
	model_begin(&model);
	do
	{
		before = model.ledger.totals;
		then = model.now;
		if (!model_step(&model, model_random_byte, &random))
			break;
		if (shown)
			show_step(&model, &before, then);
	} while (model.broken == NULL);
	if (model.broken == NULL)
		return model.events;
	printf("seed %" PRIu64 ", event %" PRId64 ": not %s\n", seed, model.events, model.broken);
	return -1;
}

static int
run_events(int64_t wanted, uint64_t seed)
{
	int64_t		events = 0;
	uint64_t	first = seed;

	printf("the first seed is %" PRIu64 "\n", first);
	for (; events < wanted; seed++)
	{
		int64_t		ran = run_seed(seed, false);
		FILE	   *kept;

		if (ran >= 0)
		{
			events += ran;
			continue;
		}
		kept = fopen("random_ledger.seeds", "a");
		if (kept == NULL || fprintf(kept, "%" PRIu64 "\n", seed) < 0 || fclose(kept) != 0)
			perror("random_ledger.seeds");
		printf("random_ledger --replay %" PRIu64 " shows its events\n", seed);
		return 1;
	}
	printf("%" PRId64 " events in %" PRIu64 " sequences broke no property\n", events, seed - first);
	return 0;
}

int
main(int argc, char **argv)
{
	char	   *end = "";

	if (argc == 3 && strcmp(argv[1], "--replay") == 0)
		return run_seed(strtoull(argv[2], NULL, 10), true) < 0;
	if (argc == 2 || argc == 3)
	{
		int64_t		events = strtoll(argv[1], &end, 10);

		if (events > 0 && *end == '\0')
			return run_events(events, argc == 3 ? strtoull(argv[2], NULL, 10) :
							  (uint64_t) time(NULL) * 1000000);
	}
	fprintf(stderr, "usage: %s EVENTS [SEED] | --replay SEED\n", argv[0]);
	return 2;
}
