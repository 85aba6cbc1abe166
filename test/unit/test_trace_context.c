/* Sources: trace_context.c */
/*
 * test_trace_context.c: what is a traceparent in a name, what is not, and what is
 * left of the name.
 */
#include <stdlib.h>

#include "trace_context_model.h"

#include "check.h"

#define TRACE	"4bf92f3577b34da6a3ce929d0e0e4736"
#define PARENT	"00-" TRACE "-00f067aa0ba902b7-01"

/* Check what is left of a name, and which trace it had; NULL: none is known. */
static void
check_taken(const char *name, const char *rest, const char *trace)
{
	char		left[MODEL_SIZE];
	char		text[TRACE_ID_TEXT];
	TraceId		found;
	const char *wrong = model_take(name);

	CHECK(wrong == NULL, "%s: %s", name, wrong ? wrong : "");
	strcpy(left, name);
	CHECK(trace_context_take(left, MODEL_LONGEST, &found), "%s: a traceparent is found", name);
	CHECK(strcmp(left, rest) == 0, "%s: \"%s\" is left", name, left);
	if (trace == NULL)
		CHECK(!trace_id_is_set(&found), "%s: no trace is known", name);
	else
		CHECK(strcmp(trace_id_text(&found, text), trace) == 0, "%s: trace %s", name, text);
}

static void
check_none(const char *name)
{
	char		left[MODEL_SIZE];
	TraceId		found;
	const char *wrong = model_take(name);

	CHECK(wrong == NULL, "%s: %s", name, wrong ? wrong : "");
	strcpy(left, name);
	CHECK(!trace_context_take(left, MODEL_LONGEST, &found), "%s: this is a name", name);
}

static void
test_forms(void)
{
	check_taken(PARENT, "", TRACE);
	check_taken("_DD_" PARENT, "", TRACE);
	check_taken("00-4BF92F3577B34DA6A3CE929D0E0E4736-00F067AA0BA902B7-01", "", TRACE);
	check_taken("cc-" TRACE "-00f067aa0ba902b7-ff", "", TRACE);
	check_taken("00-00000000000000000000000000000001-0000000000000000-00", "",
				"00000000000000000000000000000001");
	/* a tracer without a trace */
	check_taken("00-00000000000000000000000000000000-0000000000000000-00", "", NULL);
}

static void
test_names(void)
{
	check_taken("shop " PARENT, "shop", TRACE);
	check_taken("shop/" PARENT, "shop", TRACE);
	check_taken("shop-" PARENT, "shop", TRACE);
	check_taken("shop" PARENT, "shop", TRACE);
	check_taken("shop _DD_" PARENT, "shop", TRACE);
	check_taken("shop: [" PARENT "]", "shop", TRACE);
	check_taken("[shop] " PARENT, "[shop]", TRACE);
	check_taken("a b - " PARENT, "a b", TRACE);
	check_taken(PARENT " shop", "shop", TRACE);
	check_taken(PARENT ";shop", "shop", TRACE);
	check_taken(PARENT "-shop", "shop", TRACE);
	check_taken("[" PARENT "] shop", "shop", TRACE);
	check_taken("(" PARENT ")(a)", "(a)", TRACE);
	check_taken("a|" PARENT "|b", "a b", TRACE);
	check_taken(" - " PARENT " - ", "", TRACE);
	check_taken("((((" PARENT "))))", "", TRACE);
	/* a hexadecimal digit may be the name's */
	check_taken("cafe00-" TRACE "-00f067aa0ba902b7-01", "cafe", TRACE);
	check_taken("00-" TRACE "-00f067aa0ba902b7-01cafe", "cafe", TRACE);
}

static void
test_others(void)
{
	static const char *const names[] = {
		"", "shop", "00-", "-", "----", "_DD_", "00-shop", TRACE, "00-" TRACE, "00-" TRACE "-",
		"00-" TRACE "-00f067aa0ba902b7", "00-" TRACE "-00f067aa0ba902b7-", "00-" TRACE "-00f067aa0ba902b7-0",
		"0-" TRACE "-00f067aa0ba902b7-01", "-" TRACE "-00f067aa0ba902b7-01",
		"0x-" TRACE "-00f067aa0ba902b7-01", "00-" TRACE "-00f067aa0ba902b7-0g",
		"00-" TRACE "0-00f067aa0ba902b7-01", "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
		"00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01",
		"00-" TRACE "-00f067aa0ba902b-01", "00-" TRACE "-00f067aa0ba902b70-01",
		"00_" TRACE "_00f067aa0ba902b7_01", "00 " TRACE " 00f067aa0ba902b7 01",
		"00--" TRACE "-00f067aa0ba902b7-01", "00-4bf92f35-77b3-4da6-a3ce-929d0e0e4736",
		/* as long as the server allows */
		"a name with a number: 4bf92f3577b34da6a3ce929d0e0e47364bf92f357",
		"a name of sixty-three bytes which ends in a number, 00-4bf92f35",
		"00-4bf92f3577b34da6 is in front, and too short, in this name.",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		check_none(names[i]);
}

/* The server keeps 63 bytes: of a traceparent that is cut off enough must be there. */
static void
test_cut(void)
{
	for (size_t kept = 0; kept < strlen(PARENT); kept++)
	{
		char		name[MODEL_LONGEST + 1];
		char		rest[MODEL_LONGEST + 1] = {0};

		memset(name, 'x', MODEL_LONGEST - kept);
		memcpy(rest, name, MODEL_LONGEST - kept);
		memcpy(name + MODEL_LONGEST - kept, PARENT, kept);
		name[MODEL_LONGEST] = '\0';
		if (kept < 19)
			check_none(name);
		else
			check_taken(name, rest, kept < 35 ? NULL : TRACE);
		/* that is no traceparent in a name that was not cut off */
		check_none(name + 1);
	}
}

/* Random changes to traceparents, and random places for them. */
static void
test_spoilt(void)
{
	static const char alphabet[] = "0123456789abcdefABCDEFg-_ []()\x7f\xc3\xa4";

	srand(1);
	for (int i = 0; i < 300000; i++)
	{
		char		name[MODEL_SIZE] = {0};
		size_t		before = rand() % 40;
		size_t		behind = rand() % 40;
		const char *wrong;

		for (size_t j = 0; j < before + behind + strlen(PARENT); j++)
			name[j] = alphabet[rand() % (sizeof(alphabet) - 1)];
		memcpy(name + before, PARENT, strlen(PARENT));
		for (int j = rand() % 3; j > 0; j--)
			name[rand() % strlen(name)] = alphabet[rand() % (sizeof(alphabet) - 1)];
		if (rand() % 2)
			name[rand() % (strlen(name) + 1)] = '\0';
		wrong = model_take(name);
		CHECK(wrong == NULL, "%s: %s", name, wrong ? wrong : "");
	}
}

int
main(void)
{
	test_forms();
	test_names();
	test_others();
	test_cut();
	test_spoilt();
	return CHECKS_DONE("test_trace_context");
}
