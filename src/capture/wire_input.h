/*-------------------------------------------------------------------------
 *
 * wire_input.h
 *	  Looks at what has arrived from the client and has not been read.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_WIRE_INPUT_H
#define PGNETLAT_WIRE_INPUT_H

#include "exchange.h"

/* Types of messages to the client. */
#define MSG_PARSE_COMPLETE			'1'
#define MSG_BIND_COMPLETE			'2'
#define MSG_CLOSE_COMPLETE			'3'
#define MSG_NOTIFICATION			'A'
#define MSG_COMMAND_COMPLETE		'C'
#define MSG_DATA_ROW				'D'
#define MSG_ERROR					'E'
#define MSG_COPY_IN					'G'
#define MSG_COPY_OUT				'H'
#define MSG_EMPTY_QUERY				'I'
#define MSG_NOTICE					'N'
#define MSG_PARAMETER_STATUS		'S'
#define MSG_AUTHENTICATION			'R'
#define MSG_ROW_DESCRIPTION			'T'
#define MSG_FUNCTION_RESULT			'V'
#define MSG_COPY_BOTH				'W'
#define MSG_READY_FOR_QUERY			'Z'
#define MSG_COPY_DATA				'd'
#define MSG_NO_DATA					'n'
#define MSG_PORTAL_SUSPENDED		's'
#define MSG_PARAMETERS				't'

/* and from the client, which also sends MSG_COPY_DATA */
#define MSG_COPY_DONE				'c'
#define MSG_COPY_FAIL				'f'
#define MSG_FLUSH					'H'
#define MSG_SYNC					'S'

/* The value of an error's field; "" if it is missing. */
static inline const char *
error_field(const char *body, char field)
{
	for (; *body != '\0'; body += strlen(body) + 1)
	{
		if (*body == field)
			return body + 1;
	}
	return "";
}

/* Does it leave the session alive? */
static inline bool
is_error(const char *body)
{
	return strcmp(error_field(body, PG_DIAG_SEVERITY_NONLOCALIZED), "ERROR") == 0;
}

/* Is this COPY data or its end, which core skips outside COPY? */
static inline bool
is_copied(int type)
{
	return type == MSG_COPY_DATA || type == MSG_COPY_DONE || type == MSG_COPY_FAIL;
}

/* What has arrived from the client and has not been read. */
typedef struct WireInput
{
	int			next;			/* the type of the message in core's buffer; 0
								 * if that is empty */
	bool		in_buffer;
	bool		in_kernel;		/* false if the kernel was not asked */
} WireInput;

extern WireInput wire_look_at_input(bool copy_in, int64 now);
extern void wire_input_begins(int64 now);
extern void wire_input_ended(int64 now, bool copied);
extern void wire_copy_fails(bool session_lives);

#endif							/* PGNETLAT_WIRE_INPUT_H */
