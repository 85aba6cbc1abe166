/*-------------------------------------------------------------------------
 *
 * trace_context.h
 *	  Takes a tracer's trace context out of application_name.
 *
 * Tracers put a W3C traceparent into application_name before each statement,
 * so that who looks at the session finds the trace:
 *
 *		00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
 *		_DD_00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
 *
 * That is no name: it changes with each request.  There may be one before or
 * behind it.  The server cuts names off after NAMEDATALEN - 1 bytes, perhaps
 * in the traceparent.
 *
 * Any client may choose such a name.  So it is used only for labels.
 *
 * Plain C without server headers, so that it can be tested and fuzzed alone.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_TRACE_CONTEXT_H
#define PGNETLAT_TRACE_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zero: none, as in W3C's Trace Context. */
typedef struct TraceId
{
	uint64_t	half[2];
} TraceId;

/* The size of its text, with the zero byte. */
#define TRACE_ID_TEXT	33

static inline bool
trace_id_is_set(const TraceId *trace)
{
	return (trace->half[0] | trace->half[1]) != 0;
}

extern bool trace_context_take(char *name, size_t longest, TraceId *trace);
extern const char *trace_id_text(const TraceId *trace, char *text);

#endif							/* PGNETLAT_TRACE_CONTEXT_H */
