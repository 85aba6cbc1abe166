/*-------------------------------------------------------------------------
 *
 * trace_context.c
 *	  Finds a traceparent in application_name.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "trace_context.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Version, trace, span, and flags, in hexadecimal digits. */
#define TRACEPARENT			"00-00000000000000000000000000000000-0000000000000000-00"
#define TRACEPARENT_LENGTH	(sizeof(TRACEPARENT) - 1)
#define TRACE_ID_AT			3
#define TRACE_ID_DIGITS		32

/*
 * One that was cut off has at least half of the trace's digits, which no other
 * name is likely to have at its end.
 */
#define LEAST_LENGTH		(TRACE_ID_AT + TRACE_ID_DIGITS / 2)

/* What dd-trace-java puts in front. */
#define MARK				"_DD_"
#define MARK_LENGTH			(sizeof(MARK) - 1)

/* What may be between a name and a traceparent. */
#define SEPARATORS			" \t,;:/\\|-_+=#.&@~*!?<>'\"`"
#define OPENING				SEPARATORS "([{"
#define CLOSING				SEPARATORS ")]}"

/* The value of a hexadecimal digit; -1 if it is none. */
static int
digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* How many bytes of "text" are as in a traceparent. */
static size_t
match(const char *text)
{
	size_t		length = 0;

	while (length < TRACEPARENT_LENGTH &&
		   (TRACEPARENT[length] == '-' ? text[length] == '-' : digit_value(text[length]) >= 0))
		length++;
	return length;
}

/* Join what is before and behind a traceparent. */
static void
join(char *name, size_t before, const char *behind)
{
	size_t		rest;

	if (before >= MARK_LENGTH && strncmp(name + before - MARK_LENGTH, MARK, MARK_LENGTH) == 0)
		before -= MARK_LENGTH;
	while (before > 0 && strchr(OPENING, name[before - 1]) != NULL)
		before--;
	behind += strspn(behind, CLOSING);
	rest = strlen(behind);
	if (before > 0 && rest > 0)
		name[before++] = ' ';
	memmove(name + before, behind, rest + 1);
}

/*
 * Take the traceparent out of a name, which was cut off if it has "longest"
 * bytes or more.  Returns false if there is none.  What is left may be empty.
 * "trace" is set to the trace's number; to zero if that is not known.
 */
bool
trace_context_take(char *name, size_t longest, TraceId *trace)
{
	bool		cut = strlen(name) >= longest;

	memset(trace, 0, sizeof(*trace));
	for (char *at = name; *at != '\0'; at++)
	{
		size_t		length = match(at);

		if (length < TRACEPARENT_LENGTH &&
			(!cut || at[length] != '\0' || length < LEAST_LENGTH))
			continue;
		for (int i = 0; length >= TRACE_ID_AT + TRACE_ID_DIGITS && i < TRACE_ID_DIGITS; i++)
			trace->half[i / 16] = trace->half[i / 16] << 4 | digit_value(at[TRACE_ID_AT + i]);
		join(name, at - name, at + length);
		return true;
	}
	return false;
}

/* Print a trace's number into "text", of TRACE_ID_TEXT bytes, which is returned. */
const char *
trace_id_text(const TraceId *trace, char *text)
{
	snprintf(text, TRACE_ID_TEXT, "%016" PRIx64 "%016" PRIx64, trace->half[0], trace->half[1]);
	return text;
}
