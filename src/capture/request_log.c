/*-------------------------------------------------------------------------
 *
 * request_log.c
 *	  Writes slow exchanges to the server's log.
 *
 * The line is written after the response has been handed over, while core is
 * still in its sending code.  There, nothing may be sent to the client, so the
 * line goes to the server's log only, and no error may be raised.  Interrupts
 * are held off, because core checks for them after each message.
 *
 * Logging must not slow down a server on which everything has become slow.  So
 * the number of lines per second is limited, for each session and for all of
 * them.  A session's next line says how many it has left out.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "clock.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "request_log.h"
#include "utils/builtins.h"

/* Lines per second, of a session and of the server. */
#define SESSION_LINES		10
#define SERVER_LINES		100

/*
 * The latest second in which lines were written, and how many.  Sessions
 * update the server's without a lock, which may cost or add some lines.
 */
typedef struct LineCount
{
	volatile int64 second;
	volatile int lines;
} LineCount;

static LineCount *server_lines = NULL;
static LineCount session_lines;
static int64 left_out = 0;

Size
request_log_shmem_size(void)
{
	return MAXALIGN(sizeof(LineCount));
}

void
request_log_shmem_attach(void *memory, bool is_new)
{
	server_lines = memory;
}

/*
 * Count one more line in this second; false if there would be more than
 * "most".
 */
static bool
count_line(LineCount *count, int64 second, int most)
{
	if (count->second != second)
	{
		count->second = second;
		count->lines = 0;
	}
	return count->lines < most && ++count->lines > 0;
}

static double
ms(int64 time)
{
	return time / (double) NS_PER_MS;
}

/* What mainly blocked sending, if anything. */
static const char *
reason_of_send(const RequestLine *line)
{
	if (line->send_blocked * 2 < line->send || line->send_blocked == 0)
		return "";
	return line->send_client * 2 >= line->send_blocked ?
		" (client not reading)" : " (network)";
}

static void
write_line(const RequestLine *line)
{
	StringInfoData message;
	char		trace[TRACE_ID_TEXT];
	text	   *bytes = DatumGetTextPP(DirectFunctionCall1(pg_size_pretty,
														   Int64GetDatum(line->bytes)));

	initStringInfo(&message);
	appendStringInfo(&message, "duration %.1f ms: exec %.1f, send %.1f%s, recv %.1f",
					 ms(line->duration), ms(line->exec), ms(line->send), reason_of_send(line),
					 ms(line->recv));
	if (line->network > 0)
		appendStringInfo(&message, ", network %.1f", ms(line->network));
	appendStringInfo(&message, ", %s; wait before it %.1f ms%s", text_to_cstring(bytes),
					 ms(line->wait), line->wait_in_xact ? " in transaction" : "");
	if (line->rtt > 0)
		appendStringInfo(&message, "; rtt %.1f ms", ms(line->rtt));
	if (line->queryid != 0)
		appendStringInfo(&message, "; query identifier " INT64_FORMAT, (int64) line->queryid);
	if (trace_id_is_set(&line->trace))
		appendStringInfo(&message, "; trace %s", trace_id_text(&line->trace, trace));
	if (left_out > 0)
		appendStringInfo(&message, "; " INT64_FORMAT " more were not logged", left_out);
	ereport(LOG_SERVER_ONLY,
			(errmsg_internal("%s", message.data),
			 errhidestmt(true),
			 errhidecontext(true)));
	pfree(message.data);
}

/*
 * Write the line of an exchange that has just ended.  Never raises an error.
 */
void
request_log_write(int64 now, const RequestLine *line)
{
	MemoryContext context = CurrentMemoryContext;
	uint32		holdoff = InterruptHoldoffCount;
	uint32		cancel_holdoff = QueryCancelHoldoffCount;
	int64		second = now / NS_PER_S;

	if (!count_line(&session_lines, second, SESSION_LINES) ||
		!count_line(server_lines, second, SERVER_LINES))
	{
		left_out++;
		return;
	}
	HOLD_INTERRUPTS();
	PG_TRY();
	{
		write_line(line);
		left_out = 0;
	}
	PG_CATCH();
	{
		/* out of memory, or another library's hook has failed */
		MemoryContextSwitchTo(context);
		FlushErrorState();
	}
	PG_END_TRY();
	/* an error has reset these, so restore them */
	InterruptHoldoffCount = holdoff;
	QueryCancelHoldoffCount = cancel_holdoff;
}
