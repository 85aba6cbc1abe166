/*-------------------------------------------------------------------------
 *
 * now_view.c
 *	  pgnetlat_now: what a person reads while something is wrong.
 *
 * A row for each session that is not idle, the worst first, with rounded
 * figures, and in psql never wider than NOW_WIDTH columns of a terminal.  What
 * that needs (how wide a character is, which backend blocks another) is easier
 * to get here than in SQL, and all rows are known before the first is
 * returned: the last column gets the room that the others leave.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <arpa/inet.h>
#include <math.h>

#include "catalog/pg_type.h"
#include "compat.h"
#include "exec_samples.h"
#include "diagnose.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "rows.h"
#include "session_slot.h"
#include "utils/array.h"
#include "utils/backend_status.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "windows.h"

#define NOW_WIDTH			110
#define NOW_COLUMNS			7
#define NOW_SEPARATORS		(3 * NOW_COLUMNS - 1)	/* as psql draws them */
#define NOW_WINDOW_NS		(10 * NS_PER_S)

/* Longer in a state in which others may wait for it: that comes first. */
#define NOW_STUCK_NS		NS_PER_S

/* Asking whom a backend is blocked by takes the lock manager's locks. */
#define NOW_BLOCKED_MAX		20

#define CLIENT_WIDTH		24
#define ADDRESS_WIDTH		15	/* the end of a longer one */
#define BAR_WIDTH			8
#define QUERY_BYTES			1024	/* of the text, from which its beginning
									 * is cut */

/* Widths of the columns before the last: at least those of their names. */
typedef struct NowWidths
{
	int			pid;
	int			client;
	int			state;
	int			rate;
	int			rtt;
	int			parts;
} NowWidths;

typedef struct NowRow
{
	int			pid;
	int			slot;
	uint64		session;
	bool		stuck;
	int64		age;			/* ns in its state */
	LedgerState session_state;
	uint32		wait_event;
	Verdict		verdict;
	char	   *client;
	int			client_width;
	char		state[32];
	char		rate[16];
	char		rtt[16];
	char		parts[32];
	char	   *query;
} NowRow;

static const char *const state_words[LEDGER_NUM_STATES] = {
	[LEDGER_STATE_DISABLED] = "disabled",
	[LEDGER_STATE_EXECUTING] = "executing",
	[LEDGER_STATE_SENDING] = "sending",
	[LEDGER_STATE_RECEIVING] = "receiving",
	[LEDGER_STATE_WAITING] = "waiting",
	[LEDGER_STATE_WAITING_IN_XACT] = "in xact",
	[LEDGER_STATE_IDLE] = "idle",
};

/* What the holder of a lock is doing. */
typedef struct Deed
{
	const char *long_text;
	const char *short_text;
} Deed;

static const Deed deeds[LEDGER_NUM_STATES] = {
	[LEDGER_STATE_DISABLED] = {"is not counted", "not counted"},
	[LEDGER_STATE_EXECUTING] = {"executes", "executes"},
	[LEDGER_STATE_SENDING] = {"sends", "sends"},
	[LEDGER_STATE_RECEIVING] = {"waits for more of its request", "receives"},
	[LEDGER_STATE_WAITING] = {"waits for its client", "waits"},
	[LEDGER_STATE_WAITING_IN_XACT] = {"thinks in its transaction", "thinks"},
	[LEDGER_STATE_IDLE] = {"is idle", "idle"},
};

/* ---------------------------------------------------------------------------
 * Text for a terminal
 * ---------------------------------------------------------------------------
 */

/*
 * Append what fits into so many columns of a terminal.  White space and control
 * characters become single spaces; texts are of any database, whose encoding
 * may be another than ours: what cannot be is a question mark.  Returns how
 * many columns were taken.
 */
static int
append_clipped(StringInfo buffer, const char *text, int columns)
{
	int			encoding = GetDatabaseEncoding();
	const char *end = text + strlen(text);
	int			used = 0;
	bool		space = true;	/* none at the beginning */

	while (text < end)
	{
		int			length = pg_encoding_verifymbchar(encoding, text, end - text);
		int			width = length > 0 ? pg_encoding_dsplen(encoding, text) : -1;
		bool		is_space = *text == ' ' || iscntrl((unsigned char) *text);

		if (length <= 0)
			length = 1;
		if (is_space || width < 0)
			width = 1;
		if (is_space && space)
		{
			text += length;
			continue;
		}
		if (used + width > columns)
			break;
		if (is_space)
			appendStringInfoChar(buffer, ' ');
		else if (pg_encoding_verifymbchar(encoding, text, end - text) <= 0)
			appendStringInfoChar(buffer, '?');
		else
			appendBinaryStringInfo(buffer, text, length);
		space = is_space;
		used += width;
		text += length;
	}
	return used;
}

/* Three digits or so, in at most five characters up to 99999. */
static void
format_number(char *buffer, size_t size, double value, int decimals)
{
	if (value >= 99.5)
		decimals = 0;
	else if (value >= 9.95)
		decimals = Min(decimals, 1);
	snprintf(buffer, size, "%.*f", decimals, value);
}

/* A duration in at most six characters; nothing if it is hardly one. */
static void
format_age(char *buffer, size_t size, int64 age)
{
	double		seconds = age / (double) NS_PER_S;

	if (seconds < 0.05)
		buffer[0] = '\0';
	else if (seconds < 9.95)
		snprintf(buffer, size, "%.1f s", seconds);
	else if (seconds < 99.5)
		snprintf(buffer, size, "%.0f s", seconds);
	else if (seconds < 99.5 * 60)
		snprintf(buffer, size, "%.0f min", seconds / 60);
	else if (seconds < 99.5 * 3600)
		snprintf(buffer, size, "%.0f h", seconds / 3600);
	else
		snprintf(buffer, size, "%.0f d", Min(seconds / 86400, 9999));
}

/* Of the server's part: it waited for a lock, another server or a processor. */
static int64
held_up_part(const LedgerTotals *totals)
{
	return totals->exec_part[EXEC_LOCK] + totals->exec_part[EXEC_REPLICATION] +
		totals->exec_part[EXEC_REMOTE] + totals->run_queue_wait;
}

/*
 * Percentages of server, network and client, which sum to 100, and the same as
 * a bar, in which the server's part is in two: it worked, and it was held up.
 * Nothing if there was nothing but idle and pending time.
 */
static void
format_parts(NowRow *row, const LedgerTotals *totals)
{
	double		whole = ledger_busy_total(totals);
	double		server = ledger_server_part(totals) / whole;
	double		network = ledger_network_part(totals) / whole;
	double		works = Max(server - held_up_part(totals) / whole, 0);
	int			to_works;
	int			to_server = rint(100 * server);
	int			to_network = rint(100 * (server + network));
	int			used;

	row->parts[0] = '\0';
	if (whole <= 0)
		return;
	used = snprintf(row->parts, sizeof(row->parts), "%d/%d/%d",
					to_server, to_network - to_server, 100 - to_network);
	used += snprintf(row->parts + used, sizeof(row->parts) - used, "%*s",
					 (int) strlen("33/33/34") + 1 - used, "");
	to_works = rint(BAR_WIDTH * works);
	to_server = rint(BAR_WIDTH * server);
	to_network = rint(BAR_WIDTH * (server + network));
	for (int i = 0; i < BAR_WIDTH; i++)
		row->parts[used++] = i < to_works ? '#' : i < to_server ? '!' : i < to_network ? '=' : '.';
	row->parts[used] = '\0';
}

/* ---------------------------------------------------------------------------
 * A session's row
 * ---------------------------------------------------------------------------
 */

/*
 * What core's status says, copied by core's protocol: application_name and the
 * beginning of the query.
 */
static void
copy_status(const SlotObservation *observation, char *application, char *query)
{
	volatile PgBackendStatus *status = observation->status;
	int			bytes = Min(pgstat_track_activity_query_size, QUERY_BYTES);

	for (;;)
	{
		int			before;
		int			after;

		application[0] = query[0] = '\0';
		pgstat_begin_read_activity(status, before);
		if (status->st_procpid == observation->pid)
		{
			strlcpy(application, (char *) status->st_appname, NAMEDATALEN);
			strlcpy(query, (char *) status->st_activity_raw, bytes);
		}
		pgstat_end_read_activity(status, after);
		if (pgstat_read_activity_complete(before, after))
			break;
		CHECK_FOR_INTERRUPTS();
	}
}

/* Application or role, and address; returns how many columns that takes. */
static int
append_client(StringInfo buffer, const SlotObservation *observation, const char *application)
{
	ClientKey	client;
	char		text[INET6_ADDRSTRLEN] = "";
	const char *address = text;
	const char *name;
	int			length;
	int			columns;

	clients_set_connection(&client, &observation->endpoints);
	clients_set_name(&client, application, NULL, NULL);
	name = client.application_name;
	if (name[0] == '\0')
		name = GetUserNameFromId(observation->userid, true);
	if (client.family != 0)
		inet_ntop(client.family, client.address, text, sizeof(text));
	length = strlen(text);
	if (length > ADDRESS_WIDTH)
	{
		address = text + length - ADDRESS_WIDTH;
		text[length - ADDRESS_WIDTH] = '~';
		length = ADDRESS_WIDTH;
	}

	columns = append_clipped(buffer, name ? name : "",
							 CLIENT_WIDTH - (length > 0 ? length + 1 : 0));
	if (length > 0)
	{
		appendStringInfo(buffer, "@%s", address);
		columns += length + 1;
	}
	return columns;
}

static void
set_client(NowRow *row, const SlotObservation *observation, const char *application)
{
	StringInfoData buffer;

	initStringInfo(&buffer);
	row->client_width = append_client(&buffer, observation, application);
	row->client = buffer.data;
}

static void
set_state(NowRow *row)
{
	char		age[16];

	format_age(age, sizeof(age), row->age);
	snprintf(row->state, sizeof(row->state), "%s%s%s", state_words[row->session_state],
			 age[0] != '\0' ? " " : "", age);
}

static bool
waits_for_lock(const NowRow *row)
{
	return row->session_state == LEDGER_STATE_EXECUTING &&
		slot_waits_for_lock(row->wait_event);
}

/* In a state in which it holds up others, or is held up, for long enough? */
static bool
is_stuck(const NowRow *row)
{
	if (row->age < NOW_STUCK_NS)
		return false;
	switch (row->session_state)
	{
		case LEDGER_STATE_WAITING_IN_XACT:
		case LEDGER_STATE_SENDING:
		case LEDGER_STATE_RECEIVING:
			return true;
		default:
			return waits_for_lock(row);
	}
}

/* "recent" is the same session over the window of verdicts. */
static void
make_row(NowRow *row, int slot, const SlotObservation *observation,
		 const SlotObservation *recent)
{
	const LedgerTotals *totals = &observation->account.totals;
	double		window = (double) (ledger_busy_total(totals) + totals->idle +
								   observation->account.pending) / NS_PER_S;
	char		application[NAMEDATALEN];
	char		query[QUERY_BYTES];

	memset(row, 0, sizeof(*row));
	row->pid = observation->pid;
	row->slot = slot;
	row->session = observation->session;
	row->session_state = observation->account.state;
	row->age = Max(observation->observed_at - observation->account.state_since, 0);
	row->wait_event = observation->wait_event;
	row->stuck = is_stuck(row);
	row->verdict = diagnose_session(recent);
	copy_status(observation, application, query);
	row->query = pstrdup(query);
	set_client(row, observation, application);
	set_state(row);
	if (window > 0)
		format_number(row->rate, sizeof(row->rate), totals->requests / window, 1);
	if (observation->tcp.measured_at != 0 && observation->tcp.rtt > 0)
		format_number(row->rtt, sizeof(row->rtt),
					  observation->tcp.rtt / (double) NS_PER_MS, 2);
	format_parts(row, totals);
}

/* Those that are not idle, of others, and for the caller's eyes. */
static NowRow *
collect_rows(int *count)
{
	int			room = 64;
	NowRow	   *rows = palloc(room * sizeof(NowRow));

	*count = 0;
	for (int i = 0; i < slot_count(); i++)
	{
		SlotObservation observation;
		SlotObservation recent;

		if (i == slot_my_index() ||
			!windows_observe_both(i, NOW_WINDOW_NS, &observation, DIAGNOSE_RECENT_NS, &recent) ||
			observation.closed || observation.account.state == LEDGER_STATE_IDLE ||
			observation.account.state == LEDGER_STATE_DISABLED || !rows_may_see(observation.userid))
			continue;
		if (*count == room)
		{
			room *= 2;
			rows = repalloc_huge(rows, room * sizeof(NowRow));
		}
		make_row(&rows[(*count)++], i, &observation, &recent);
	}
	return rows;
}

/* The worst first. */
static int
compare_rows(const void *a, const void *b)
{
	const NowRow *left = a;
	const NowRow *right = b;

	if (left->stuck != right->stuck)
		return left->stuck ? -1 : 1;
	if (left->age != right->age)
		return left->age > right->age ? -1 : 1;
	return left->pid - right->pid;
}

/* ---------------------------------------------------------------------------
 * The last column: what it waits for, and the query
 * ---------------------------------------------------------------------------
 */

/* What a session is doing, and for how long, in words; and in few words. */
static void
format_deed(const SlotObservation *observation, char *long_text, char *short_text,
			size_t size)
{
	const Deed *deed = &deeds[observation->account.state];
	char		age[16];

	format_age(age, sizeof(age),
			   Max(observation->observed_at - observation->account.state_since, 0));
	snprintf(long_text, size, "%s%s%s", deed->long_text, age[0] != '\0' ? ", " : "", age);
	snprintf(short_text, size, "%s%s%s", deed->short_text, age[0] != '\0' ? " " : "", age);
}

/*
 * Which session it waits for, and what that one is doing, if that is for the
 * caller's eyes; as much as fits into so many columns.
 */
static void
append_session(StringInfo buffer, int pid, int columns)
{
	SlotObservation observation;
	SlotStatus	status;
	StringInfoData client;
	char		long_text[64];
	char		short_text[64];
	int			width;

	int			slot = slot_find_pid(pid);

	appendStringInfo(buffer, "waits for %d", pid);
	if (slot < 0 || !slot_observe(slot, &observation) || observation.pid != pid ||
		!rows_may_see(observation.userid))
		return;
	slot_copy_status(&observation, &status);
	format_deed(&observation, long_text, short_text, sizeof(long_text));
	initStringInfo(&client);
	width = append_client(&client, &observation, status.application_name);
	if (buffer->len + 1 + width + 2 + (int) strlen(long_text) <= columns)
		appendStringInfo(buffer, " %s: %s", client.data, long_text);
	else if (buffer->len + 2 + (int) strlen(short_text) <= columns)
		appendStringInfo(buffer, ": %s", short_text);
	else
		appendStringInfo(buffer, ": %s", deeds[observation.account.state].short_text);
}

/* Whom it waits for, at the root of a chain of lock waits. */
static void
append_holder(StringInfo buffer, int pid, int columns)
{
	if (pid == 0)
		appendStringInfoString(buffer, "waits for prepared xact");
	else
		append_session(buffer, pid, columns);
	appendStringInfoString(buffer, "; ");
}

/* Who holds the lock that it waits for, or stands before it in the queue? */
static void
append_blockers(StringInfo buffer, int pid)
{
	Datum		array = DirectFunctionCall1(pg_blocking_pids, Int32GetDatum(pid));
	Datum	   *pids;
	int			count;

	deconstruct_array(DatumGetArrayTypeP(array), INT4OID, sizeof(int32), true,
					  TYPALIGN_INT, &pids, NULL, &count);
	if (count == 0)
		return;
	if (DatumGetInt32(pids[0]) == 0)
		appendStringInfoString(buffer, "behind prepared xact");
	else
		appendStringInfo(buffer, "behind %d", DatumGetInt32(pids[0]));
	if (count > 1)
		appendStringInfo(buffer, " +%d", count - 1);
	appendStringInfoString(buffer, ": ");
}

/* Waits for others, which no EXPLAIN will show, are called what they are. */
static void
append_wait_event(StringInfo buffer, uint32 wait_event)
{
	switch (exec_samples_part(wait_event))
	{
		case EXEC_CPU:
			break;
		case EXEC_REPLICATION:
			appendStringInfoString(buffer, "for standby: ");
			break;
		case EXEC_REMOTE:
			appendStringInfoString(buffer, "for other server: ");
			break;
		default:
			appendStringInfo(buffer, "%s: ", pgstat_get_wait_event(wait_event));
	}
}

/* What is wrong with it; false if nothing is, or nobody knows. */
static bool
append_verdict(StringInfo buffer, const NowRow *row)
{
	if (row->verdict == VERDICT_NONE || row->verdict == VERDICT_BALANCED)
		return false;
	appendStringInfo(buffer, "%s: ", verdict_name(row->verdict));
	return true;
}

/* What is going on now comes before what it lost most time to lately. */
static void
append_wait(StringInfo buffer, const NowRow *row, bool ask_for_blockers, int columns)
{
	SlotObservation observation;

	switch (row->session_state)
	{
		case LEDGER_STATE_EXECUTING:
			if (waits_for_lock(row) && slot_observe(row->slot, &observation) &&
				observation.session == row->session && observation.blocked_by != SLOT_NOT_BLOCKED)
				append_holder(buffer, observation.blocked_by, columns);
			else if (waits_for_lock(row) && ask_for_blockers)
				append_blockers(buffer, row->pid);
			if (buffer->len == 0)
				append_wait_event(buffer, row->wait_event);
			if (buffer->len == 0)
				(void) append_verdict(buffer, row);
			break;
		case LEDGER_STATE_WAITING:
		case LEDGER_STATE_WAITING_IN_XACT:
			if (!append_verdict(buffer, row) && row->query[0] != '\0')
				appendStringInfoString(buffer, "after ");
			break;
		default:
			(void) append_verdict(buffer, row);
			break;
	}
}

static char *
doing(const NowRow *row, bool ask_for_blockers, int columns)
{
	StringInfoData what;
	StringInfoData clipped;

	initStringInfo(&what);
	append_wait(&what, row, ask_for_blockers, columns);
	appendStringInfoString(&what, row->query);
	initStringInfo(&clipped);
	append_clipped(&clipped, what.data, columns);
	return clipped.data;
}

/* ---------------------------------------------------------------------------
 * The rows
 * ---------------------------------------------------------------------------
 */

static void
widen(int *width, int needed)
{
	*width = Max(*width, needed);
}

/* How much room the other columns leave to the last. */
static int
room_for_last(const NowRow *rows, int count)
{
	NowWidths	widths = {
		.pid = strlen("pid"),
		.client = strlen("client"),
		.state = strlen("state"),
		.rate = strlen("rate"),
		.rtt = strlen("rtt"),
		.parts = strlen("server_net_client")
	};
	char		pid[16];

	for (int i = 0; i < count; i++)
	{
		const NowRow *row = &rows[i];

		widen(&widths.pid, snprintf(pid, sizeof(pid), "%d", row->pid));
		widen(&widths.client, row->client_width);
		widen(&widths.state, strlen(row->state));
		widen(&widths.rate, strlen(row->rate));
		widen(&widths.rtt, strlen(row->rtt));
		widen(&widths.parts, strlen(row->parts));
	}
	return Max(NOW_WIDTH - NOW_SEPARATORS -
			   (widths.pid + widths.client + widths.state + widths.rate + widths.rtt +
				widths.parts), 0);
}

/* As a number, with no more digits than the text has. */
static void
row_number(RowBuilder *row, const char *column, const char *text)
{
	if (text[0] != '\0')
		row_float8(row, column, strtod(text, NULL));
	else
		row_null(row, column);
}

/*
 * One row per session that is not idle.
 */
PG_FUNCTION_INFO_V1(pgnetlat_now);

Datum
pgnetlat_now(PG_FUNCTION_ARGS)
{
	RowBuilder	row;
	NowRow	   *rows;
	int			count;
	int			room;
	int			blocked = 0;

	rows_begin(fcinfo, &row);
	rows = collect_rows(&count);
	qsort(rows, count, sizeof(NowRow), compare_rows);
	room = room_for_last(rows, count);
	for (int i = 0; i < count; i++)
	{
		bool		ask = waits_for_lock(&rows[i]) && blocked++ < NOW_BLOCKED_MAX;

		row_int32(&row, "pid", rows[i].pid);
		row_text(&row, "client", rows[i].client);
		row_text(&row, "state", rows[i].state);
		row_number(&row, "rate", rows[i].rate);
		row_number(&row, "rtt", rows[i].rtt);
		row_text(&row, "server_net_client", rows[i].parts[0] != '\0' ? rows[i].parts : NULL);
		row_text(&row, "doing", doing(&rows[i], ask, room));
		row_emit(&row);
	}
	return (Datum) 0;
}
