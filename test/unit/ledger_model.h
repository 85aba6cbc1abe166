/*
 * ledger_model.h: drives a ledger with an arbitrary sequence of events, as the
 * backend, the sampler and readers would, and checks its invariants after each
 * step:
 *
 *	- the parts add up to the time that passed, to the nanosecond, for
 *	  every reader;
 *	- no part is negative, and no part of a part exceeds its whole;
 *	- what is booked never falls, except that a reset sets it to zero;
 *	- a sum to which the account's gains are added never falls, its parts
 *	  add up, too, and it has no more than the account had at some time.
 *
 * The sequence comes from a function that returns bytes: random ones, which a
 * seed brings back, or the fuzzer's input.
 */
#ifndef LEDGER_MODEL_H
#define LEDGER_MODEL_H

#include <stdlib.h>
#include <string.h>

#include "ledger.h"

/* The seven parts that must add up to the time that passed. */
static int64_t
ledger_total(const LedgerAccount *account)
{
	return ledger_busy_total(&account->totals) + account->totals.idle + account->pending;
}

typedef struct Model
{
	Ledger		ledger;
	LedgerSampled sampled;
	uint64_t	sampled_exchange;	/* the exchange of "sampled" */
	int64_t		now;
	int64_t		counted_from;	/* start, or latest reset */
	int64_t		off_time;		/* time not counted since then */
	LedgerTotals booked;		/* as last seen */
	LedgerTotals sum;			/* sum of the gains */
	int64_t		longest;		/* the largest total seen */
	const char *broken;			/* the broken invariant, or NULL */
	int64_t		events;			/* how many there were */
} Model;

typedef int (*ModelByte) (void *source);	/* 0..255, or -1 at the end */

static const LedgerSampled *
model_sampled(const Model *model)
{
	return model->sampled_exchange == model->ledger.exchange_number ? &model->sampled : NULL;
}

#define MODEL_CHECK(model, condition) \
	do { \
		if (!(condition) && (model)->broken == NULL) \
			(model)->broken = #condition; \
	} while (0)

static void
model_check_totals(Model *model, const LedgerTotals *totals)
{
	const int64_t *field = (const int64_t *) totals;

	for (unsigned i = 0; i < sizeof(LedgerTotals) / sizeof(int64_t); i++)
		MODEL_CHECK(model, field[i] >= 0);
	MODEL_CHECK(model, totals->send_client <= totals->send_blocked);
	MODEL_CHECK(model, totals->send_blocked <= totals->send);
	MODEL_CHECK(model, totals->in_xact_wait <= totals->network + totals->client);
	MODEL_CHECK(model, totals->pipelined <= totals->requests);
	MODEL_CHECK(model, exec_parts_sum(totals->exec_part) <= totals->exec);
}

/* Check that what is booked has not fallen since the latest event. */
static void
model_check_booked(Model *model)
{
	LedgerTotals gain = model->ledger.totals;
	const int64_t *field = (const int64_t *) &gain;

	ledger_totals_subtract(&gain, &model->booked);
	for (unsigned i = 0; i < sizeof(LedgerTotals) / sizeof(int64_t); i++)
		MODEL_CHECK(model, field[i] >= 0);
	model->booked = model->ledger.totals;
}

static int64_t
model_at_least(int64_t at, int64_t mark)
{
	return at > mark ? at : mark;
}

/*
 * A reader looks.  An executing backend may be blocked in reading, or in
 * sending a response without having published it; and samples give the parts
 * of execution.
 */
static void
model_look(Model *model, LedgerBlocked blocked)
{
	LedgerAccount account;
	LedgerTotals gain;
	const int64_t *field = (const int64_t *) &gain;

	if (model->ledger.phase != LEDGER_EXECUTING)
		blocked = LEDGER_NOT_BLOCKED;
	ledger_project(&model->ledger, model_sampled(model), model->now, blocked, &account);
	MODEL_CHECK(model, account.pending >= 0);
	MODEL_CHECK(model, ledger_total(&account) ==
				model->now - model->counted_from - model->off_time);
	for (int i = 0; i < NUM_EXEC_PARTS; i++)
		account.totals.exec_part[i] = model->now / (i + 3) % 1000;
	exec_parts_fit(account.totals.exec_part, account.totals.exec);
	model_check_totals(model, &account.totals);
	ledger_totals_gain(&model->sum, &account.totals, &gain);
	for (unsigned i = 0; i < sizeof(LedgerTotals) / sizeof(int64_t); i++)
		MODEL_CHECK(model, field[i] >= 0);
	model_check_totals(model, &model->sum);
	model->longest = model_at_least(ledger_total(&account), model->longest);
	MODEL_CHECK(model, ledger_whole(&model->sum) <= model->longest);
}

/* The sampler's visit, as in sampler.c. */
static void
model_sample(Model *model, bool receiving, bool drained)
{
	Ledger	   *ledger = &model->ledger;

	if (model->sampled_exchange != ledger->exchange_number)
	{
		memset(&model->sampled, 0, sizeof(model->sampled));
		model->sampled_exchange = ledger->exchange_number;
		model->sampled.visited = ledger->since;
	}
	if (ledger->phase == LEDGER_EXECUTING)
	{
		if (receiving)
		{
			int64_t		from = model_at_least(model->sampled.visited, ledger->since);

			from = model_at_least(from, model->counted_from);
			if (model->now > from)
				model->sampled.recv += model->now - from;
		}
		model->sampled.visited = model->now;
	}
	else if (ledger->phase == LEDGER_SENDING)
	{
		if (model->sampled.send_began != ledger->since)
			model->sampled.send_client = 0;
		model->sampled.send_began = ledger->since;
		model->sampled.send_client += (model->now - ledger->since) / 16;
	}
	else if (ledger->phase == LEDGER_WAITING && receiving && !drained)
		model->sampled.lost = true;
	else if (ledger->phase == LEDGER_WAITING &&
			 (ledger->wait.draining || model->sampled.lost) && drained &&
			 !model->sampled.drained)
	{
		model->sampled.drained = true;
		model->sampled.drain.total = (model->now - ledger->since) / 2;
		model->sampled.drain.client = model->sampled.drain.total / 3;
	}
}

static void
model_terms(LedgerWaitTerms *terms, int choice)
{
	memset(terms, 0, sizeof(*terms));
	terms->rtt = (choice & 7) * 100;
	terms->idle_threshold = 2000;
	terms->in_xact = (choice & 8) != 0;
	terms->pipelined = (choice & 16) != 0;
	terms->draining = (choice & 32) != 0;
}

/* The shortcuts and the functions that they stand for must agree. */
static void
model_check_same(Model *model, const Ledger *expected)
{
	Ledger		got = model->ledger;

	got.may_block = expected->may_block;	/* means nothing in a wait */
	MODEL_CHECK(model, memcmp(&got, expected, sizeof(got)) == 0);
}

/*
 * A request was read: with the plain function if possible, and with the
 * general one.
 */
static void
model_request_begin(Model *model, int64_t at, const LedgerDrain *drain)
{
	Ledger		expected = model->ledger;
	LedgerWait	wait;
	LedgerWait	plain;

	ledger_wait_end(&expected, at, true, drain, &wait);
	if (drain == NULL && ledger_wait_is_plain(&model->ledger, at))
	{
		plain = ledger_wait_end_plain(&model->ledger, at);
		MODEL_CHECK(model, plain.length == wait.length && plain.network == wait.network &&
					plain.client == wait.client && plain.idle == wait.idle &&
					plain.in_xact == wait.in_xact);
		model_check_same(model, &expected);
	}
	model->ledger = expected;
}

/* A response that cannot block was sent: as one event and as two. */
static void
model_answer(Model *model, int64_t sending_since, const LedgerWaitTerms *terms)
{
	const LedgerSampled *sampled = model_sampled(model);
	Ledger		expected = model->ledger;

	ledger_send_begin(&expected, sending_since, false);
	ledger_exchange_end(&expected, model->now, sampled, 0, terms);
	if (sampled == NULL && !terms->draining && !terms->pipelined &&
		ledger_response_is_plain(&model->ledger, sending_since))
	{
		ledger_response_plain(&model->ledger, sending_since, model->now, terms);
		model_check_same(model, &expected);
	}
	model->ledger = expected;
}

/* Event numbers from here on are looks of readers. */
#define MODEL_LOOKS		15
#define MODEL_EVENTS	(MODEL_LOOKS + 3)

/* One event, which is skipped if it does not fit the phase. */
static void
model_event(Model *model, int event, int choice)
{
	Ledger	   *ledger = &model->ledger;
	LedgerWaitTerms terms;
	const LedgerSampled *sampled = model_sampled(model);
	const LedgerDrain *drain = sampled && sampled->drained ? &sampled->drain : NULL;
	LedgerWait	wait;
	LedgerDrain measured = {(choice & 15) * 50, (choice & 3) * 50};

	/* what the kernel measured when the session itself asks */
	if (drain == NULL && ledger->wait.draining && (choice & 1))
		drain = &measured;
	model_terms(&terms, choice);

	/* half of the events have a time that is too early */
	int64_t		at = (choice & 64) ? model->now - (choice & 63) : model->now;

	switch (event)
	{
		case 0:
			if (ledger->phase == LEDGER_OFF)
				ledger_start(ledger, model->now, (choice & 128) != 0, &terms);
			break;
		case 1:
			if (ledger->phase == LEDGER_WAITING)
				model_request_begin(model, at, drain);
			break;
		case 2:
			if (ledger->phase == LEDGER_WAITING)
				ledger_wait_end(ledger, at, false, drain, &wait);
			break;
		case 3:
			if (ledger->phase == LEDGER_EXECUTING)
				ledger_send_begin(ledger, at, (choice & 32) != 0);
			break;
		case 4:
			if (ledger->phase == LEDGER_SENDING)
				ledger_send_end(ledger, at, sampled, (choice & 7) * 30);
			break;
		case 5:
			if (ledger->phase == LEDGER_SENDING)
			{
				ledger_exchange_end(ledger, at, sampled, (choice & 3) * 30, &terms);
			}
			break;
		case 6:
			if (ledger->phase != LEDGER_OFF)
			{
				ledger_stop(ledger, at, sampled, drain, &wait);
				model->off_time += model->now -
					model_at_least(ledger->since, model->counted_from);
			}
			break;
		case 7:
			/* a reset, applied at once or by the next reader */
			if ((choice & 7) == 0)
			{
				ledger_reset(ledger, model->now);
				memset(&model->booked, 0, sizeof(model->booked));
				memset(&model->sum, 0, sizeof(model->sum));
				model->longest = 0;
				model->counted_from = model->now;
				model->off_time = 0;
				model->sampled_exchange = UINT64_MAX;
			}
			break;
		case 8:
			if (ledger->phase == LEDGER_EXECUTING)
				model_answer(model, at, &terms);
			break;
		case 9:
			model_sample(model, choice & 1, choice & 2);
			break;
		case 10:
			if (ledger->phase == LEDGER_EXECUTING)
				ledger_turn_begin(ledger, at, (choice & 7) * 100);
			break;
		case 11:
			if (ledger->phase == LEDGER_TURNING)
				ledger_turn_end(ledger, at, choice & 1);
			break;
		case 12:
			if (ledger->phase == LEDGER_WAITING || ledger->phase == LEDGER_EXECUTING)
				ledger_was_work(ledger);
			break;
		case 13:
			(void) ledger_wait_notified(ledger, at);
			break;
		case 14:
			ledger_invite(ledger, at, (choice & 7) * 100);
			break;
		default:
			model_look(model, choice % 3);
			break;
	}
}

static void
model_begin(Model *model)
{
	LedgerWaitTerms terms;

	memset(model, 0, sizeof(*model));
	model->now = model->counted_from = 1000000;
	model_terms(&terms, 0);
	ledger_start(&model->ledger, model->now, false, &terms);
}

/* One event and what must hold after it; false at the end. */
static bool
model_step(Model *model, ModelByte next, void *source)
{
	int			event;
	int			choice;
	int			step;
	int64_t		passed;

	if (model->broken != NULL || (event = next(source)) < 0 ||
		(choice = next(source)) < 0 || (step = next(source)) < 0)
		return false;

	/* mostly short steps, now and then a long one */
	passed = step < 240 ? step : (int64_t) (step - 239) * (step & 1 ? 500 : 200000);
	model->now += passed;
	if (model->ledger.phase == LEDGER_OFF)
		model->off_time += passed;
	model_event(model, event % MODEL_EVENTS, choice);
	model_check_booked(model);
	model_look(model, (event >> 6) % 3);
	model->events++;
	return true;
}

/* Random bytes: splitmix64, which is small, and the same everywhere. */
typedef struct ModelRandom
{
	uint64_t	state;			/* the seed, before the first byte */
	int			left;			/* bytes until the end */
} ModelRandom;

static inline int
model_random_byte(void *source)
{
	ModelRandom *random = source;
	uint64_t	z = (random->state += UINT64_C(0x9E3779B97F4A7C15));

	if (random->left-- <= 0)
		return -1;
	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return (z ^ (z >> 31)) & 255;
}

#endif
