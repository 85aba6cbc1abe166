/*
 * trace_context_model.h: invariants for any application_name; for
 * test_trace_context.c and fuzz_trace_context.c.
 */
#ifndef TRACE_CONTEXT_MODEL_H
#define TRACE_CONTEXT_MODEL_H

#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace_context.h"

#define MODEL_LONGEST	63
#define MODEL_SIZE		256		/* more than any name has */

/* Where a traceparent begins, and its trace, as a regular expression finds them. */
static bool
model_find(const char *name, regmatch_t *at)
{
	static regex_t whole;
	static bool compiled = false;

	if (!compiled)
	{
		regcomp(&whole, "[0-9a-fA-F]{2}-([0-9a-fA-F]{32})-[0-9a-fA-F]{16}-[0-9a-fA-F]{2}", REG_EXTENDED);
		compiled = true;
	}
	return regexec(&whole, name, 2, at, 0) == 0;
}

/* Is this the end of a name? */
static bool
model_ends_with(const char *name, const char *end)
{
	return strlen(end) <= strlen(name) && strcmp(name + strlen(name) - strlen(end), end) == 0;
}

/* Is this the beginning of a name and its end, or one of them? */
static bool
model_is_of(const char *rest, const char *name)
{
	for (size_t i = 0; i <= strlen(rest) && strncmp(rest, name, i) == 0; i++)
	{
		if (model_ends_with(name, rest + i) || (rest[i] == ' ' && model_ends_with(name, rest + i + 1)))
			return true;
	}
	return false;
}

/* Take the traceparent out of a name.  Returns NULL, or what is wrong. */
static const char *
model_take(const char *name)
{
	char	   *rest = malloc(strlen(name) + 1);	/* exactly, for sanitizers */
	char		text[TRACE_ID_TEXT];
	TraceId		trace;
	regmatch_t	at[2];
	bool		found;
	bool		expected = model_find(name, at);
	const char *wrong = NULL;

	strcpy(rest, name);
	found = trace_context_take(rest, MODEL_LONGEST, &trace);
	trace_id_text(&trace, text);
	if (!found && (strcmp(rest, name) != 0 || trace_id_is_set(&trace)))
		wrong = "no traceparent, but something was taken";
	else if (found && (strlen(rest) + 19 > strlen(name) || !model_is_of(rest, name)))
		wrong = "what is left is not a part of the name";
	else if (found != expected && (expected || strlen(name) < MODEL_LONGEST))
		wrong = expected ? "a traceparent was not found" : "a traceparent that is none";
	else if (expected && strncasecmp(text, name + at[1].rm_so, 32) != 0)
		wrong = "another trace";
	free(rest);
	return wrong;
}

#endif
