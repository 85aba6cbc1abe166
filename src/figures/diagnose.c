/*-------------------------------------------------------------------------
 *
 * diagnose.c
 *	  pgnetlat_diagnose(): what is wrong, the most expensive first.
 *
 * The subjects and their figures over a window are collected here; verdict.c
 * judges them.  What is lost is shown once:
 *
 * - What is about single sessions (verdict_is_of_session()) is shown of the
 *   session if nearly all that its client group lost is this one's, and of the
 *   group otherwise.
 * - Round trips of a repeated statement are not the group's as well.
 * - What sessions wait for others is not more than what others hold them up, so
 *   that who can do something about it comes first.
 *
 * Savings of client groups are predicted from the very workload that
 * pgnetlat_what_if() starts from, so that the two say the same.
 *
 * Subjects that are not for the caller's eyes are left out, but for their part
 * in the server's sums.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <arpa/inet.h>

#include "accumulate.h"
#include "blockers.h"
#include "clock.h"
#include "commands/dbcommands.h"
#include "compat.h"
#include "diagnose.h"
#include "lib/stringinfo.h"
#include "blockers.h"
#include "miscadmin.h"
#include "pools.h"
#include "rows.h"
#include "statements.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"
#include "what_if.h"
#include "windows.h"

StaticAssertDecl(SLOT_NOT_BLOCKED == VERDICT_NOBODY, "blocked_by is the same in both");

/* So much of what a group lost is one session's: then it is that session. */
#define MOST_OF_GROUP		0.9

typedef struct Subject
{
	VerdictFigures figures;
	ClientKey	key;			/* of a statement: only datid and userid */
	uint64		queryid;		/* of a statement */
	int			pid;			/* of a session */
	Workload	workload;		/* of a client group ... */
	bool		has_workload;	/* ... if there is one */
	VerdictFinding findings[VERDICT_FINDINGS];
	int			count;
} Subject;

typedef struct Subjects
{
	Subject    *subjects;
	int			count;
	int			room;
} Subjects;

typedef struct Diagnosis
{
	int64		length;			/* of the window, as asked for, ... */
	int64		window;			/* ... and as there is one */
	Subjects	clients;		/* ordered by key */
	Subjects	sessions;
	Subjects	statements;
	Subject		server;
	int64		held_up;		/* by sessions that live, all together */
} Diagnosis;

/* One row. */
typedef struct Finding
{
	const Subject *subject;
	const VerdictFinding *finding;
} Finding;

/* ---------------------------------------------------------------------------
 * Figures
 * ---------------------------------------------------------------------------
 */

static void
session_figures(const SlotObservation *observation, VerdictFigures *figures)
{
	memset(figures, 0, sizeof(*figures));
	figures->subject = VERDICT_OF_SESSION;
	figures->totals = observation->account.totals;
	figures->window = Max(ledger_busy_total(&figures->totals) + figures->totals.idle +
						  observation->account.pending, 1);
	figures->rtt = observation->tcp.measured_at != 0 ? observation->tcp.rtt : 0;
	figures->retransmits = observation->tcp_counters.retransmits;
	figures->packets_sent = observation->tcp_counters.packets_sent;
	figures->bytes_received = observation->tcp_counters.bytes_received;
	figures->sessions = 1;
	figures->held_up = observation->held_up;
	figures->state = observation->account.state;
	figures->state_age = Max(observation->observed_at - observation->account.state_since, 0);
	figures->blocked_by = observation->blocked_by;
}

static void
client_figures(const ClientEntry *entry, int64 window, VerdictFigures *figures)
{
	memset(figures, 0, sizeof(*figures));
	figures->subject = VERDICT_OF_CLIENT;
	figures->window = Max(window, 1);
	figures->totals = entry->counters.totals;
	figures->rtt = entry->counters.rtt;
	figures->retransmits = entry->counters.tcp.retransmits;
	figures->packets_sent = entry->counters.tcp.packets_sent;
	figures->bytes_received = entry->counters.tcp.bytes_received;
	figures->sessions = entry->live.sessions;
	figures->ended_sessions = entry->counters.ended_sessions;

	/* the client waits for two round trips that the server does not see */
	figures->connections = entry->counters.connect.connections;
	figures->connect_time = entry->counters.connect.time +
		2 * entry->counters.rtt * figures->connections;
	figures->blocked_by = VERDICT_NOBODY;
}

static void
statement_figures(const StatementWindow *statement, int64 window, VerdictFigures *figures)
{
	memset(figures, 0, sizeof(*figures));
	figures->subject = VERDICT_OF_STATEMENT;
	figures->window = Max(window, 1);
	figures->blocked_by = VERDICT_NOBODY;
	figures->calls = statement->totals.calls;
	figures->repeats = statement->totals.repeats;
	figures->repeat_network = statement->totals.repeat_network;
	figures->client = statement->totals.client;
	figures->in_xact_wait = statement->totals.in_xact_wait;
	figures->time = statement->totals.exec + statement->totals.send + statement->totals.recv +
		statement->totals.network + statement->totals.client;
}

/*
 * The short form of a session that was observed over a window.
 */
Verdict
diagnose_session(const SlotObservation *observation)
{
	VerdictFigures figures;

	session_figures(observation, &figures);
	return verdict_short(&figures);
}

/*
 * The same of a copy of a client group over a window that ends now.
 */
Verdict
diagnose_client(const ClientEntry *entry, TimestampTz ends)
{
	VerdictFigures figures;

	if (entry->is_evicted)
		return VERDICT_NONE;
	client_figures(entry, Max(ends - entry->since, 0) * NS_PER_US, &figures);
	return verdict_short(&figures);
}

/* ---------------------------------------------------------------------------
 * Collecting the subjects
 * ---------------------------------------------------------------------------
 */

static Subject *
add_subject(Subjects *list)
{
	if (list->count == list->room)
	{
		list->room = Max(list->room * 2, 64);
		list->subjects = list->subjects ?
			repalloc_huge(list->subjects, list->room * sizeof(Subject)) :
			palloc_extended(list->room * sizeof(Subject), MCXT_ALLOC_HUGE);
	}
	memset(&list->subjects[list->count], 0, sizeof(Subject));
	return &list->subjects[list->count++];
}

static int
compare_keys(const void *a, const void *b)
{
	return memcmp(&((const Subject *) a)->key, &((const Subject *) b)->key, sizeof(ClientKey));
}

static Subject *
find_client(const Diagnosis *diagnosis, const ClientKey *key)
{
	Subject		wanted;

	if (diagnosis->clients.count == 0)
		return NULL;
	wanted.key = *key;
	return bsearch(&wanted, diagnosis->clients.subjects, diagnosis->clients.count,
				   sizeof(Subject), compare_keys);
}

/*
 * What predictions of a group start from.  Per request: what happens within a
 * single transaction is enough to predict from, and as many requests save as much
 * as the transactions that they make up.
 */
static bool
request_workload(ClientEntry *entry, const Processors *processors, Workload *workload)
{
	int64		transactions = entry->counters.totals.transactions;
	bool		known;

	entry->counters.totals.transactions = 0;
	known = what_if_workload(entry, processors, workload);
	entry->counters.totals.transactions = transactions;
	return known;
}

static void
collect_clients(Diagnosis *diagnosis)
{
	int			count;
	ClientEntry *entries = clients_copy_window(diagnosis->length, &count);
	Processors	processors = what_if_processors(entries, count);
	VerdictFigures *server = &diagnosis->server.figures;

	diagnosis->window = clients_window_length(diagnosis->length);
	server->subject = VERDICT_OF_SERVER;
	server->window = diagnosis->window;
	server->blocked_by = VERDICT_NOBODY;
	for (int i = 0; i < count; i++)
	{
		Subject    *subject;

		ledger_totals_add(&server->totals, &entries[i].counters.totals);
		if (entries[i].is_evicted || !rows_may_see(entries[i].key.userid))
			continue;
		subject = add_subject(&diagnosis->clients);
		subject->key = entries[i].key;
		client_figures(&entries[i], diagnosis->window, &subject->figures);
		subject->has_workload = request_workload(&entries[i], &processors, &subject->workload);
	}
	if (diagnosis->clients.count > 0)
		qsort(diagnosis->clients.subjects, diagnosis->clients.count, sizeof(Subject),
			  compare_keys);
}

/* How many connections are there, and how many would have been enough? */
static void
collect_pool(Diagnosis *diagnosis)
{
	int			count;
	PoolCopy   *pools = pools_copy_window(diagnosis->length, &count);
	VerdictFigures *server = &diagnosis->server.figures;

	for (int i = 0; i < count; i++)
	{
		if (pools[i].kind != POOL_OF_ALL || !rows_may_see(pools[i].key.userid))
			continue;
		server->sessions = pools[i].sessions;
		server->max_connections = MaxConnections;
		server->pool_size =
			Max(concurrency_quantile(&pools[i].distribution, 999, pools[i].busy_max), 1);
		server->pool_time = concurrency_total(&pools[i].distribution);
	}
}

/* To which group does it belong? */
static void
session_client_key(const SlotObservation *observation, ClientKey *key)
{
	SlotStatus	status;

	memset(key, 0, sizeof(*key));
	slot_copy_status(observation, &status);
	clients_set_connection(key, &observation->endpoints);
	key->datid = observation->datid;
	key->userid = observation->userid;
	clients_set_name(key, status.application_name, NULL, NULL);
}

/* All but the caller's own. */
static void
collect_sessions(Diagnosis *diagnosis)
{
	SlotObservation observation;
	Subject    *client;
	Subject    *subject;

	for (int i = 0; i < slot_count(); i++)
	{
		if (i == slot_my_index() || !windows_observe(i, diagnosis->length, &observation) ||
			observation.closed)
			continue;
		diagnosis->held_up += observation.held_up;
		if (!rows_may_see(observation.userid))
			continue;
		subject = add_subject(&diagnosis->sessions);
		session_figures(&observation, &subject->figures);
		subject->figures.window = diagnosis->window;
		subject->pid = observation.pid;
		session_client_key(&observation, &subject->key);
		client = find_client(diagnosis, &subject->key);
		if (client)
			client->figures.held_up += observation.held_up;
	}
}

/*
 * What holders did while others waited: of their clients, since the statistics
 * of blockers were reset.
 */
static void
collect_blockers(Diagnosis *diagnosis)
{
	int			count;
	BlockerEntry *entries = blockers_copy(&count);

	for (int i = 0; i < count; i++)
	{
		const BlockerCounters *counters = &entries[i].counters;
		Subject    *client = find_client(diagnosis, &entries[i].key.client);
		VerdictHeld *held;

		if (!client)
			continue;
		held = &client->figures.held_while;
		held->exec += counters->exec;
		held->send += counters->send;
		held->recv += counters->recv;
		held->network += counters->network;
		held->client += counters->client;
	}
	for (int i = 0; i < diagnosis->sessions.count; i++)
	{
		Subject    *session = &diagnosis->sessions.subjects[i];
		const Subject *client = find_client(diagnosis, &session->key);

		if (client)
			session->figures.held_while = client->figures.held_while;
	}
}

/* Of the groups that may have sent a repeated statement, each one's part of it. */
static void
explain_repeats(Diagnosis *diagnosis, const StatementWindow *statement,
				const VerdictFinding *finding)
{
	double		network = 0;

	for (int pass = 0; pass < 2; pass++)
	{
		for (int i = 0; i < diagnosis->clients.count; i++)
		{
			Subject    *client = &diagnosis->clients.subjects[i];
			double		part;

			if (client->key.datid != statement->key.dbid ||
				client->key.userid != statement->key.userid)
				continue;
			if (pass == 0)
			{
				network += client->figures.totals.network;
				continue;
			}
			part = network > 0 ? client->figures.totals.network / network : 0;
			client->figures.explained += statement->totals.repeat_network * part;
			client->figures.explained_others +=
				(finding->lost - statement->totals.repeat_network) * part;
		}
	}
}

/* Only those of which there is something to say. */
static void
collect_statements(Diagnosis *diagnosis)
{
	int			count;
	StatementWindow *statements = statements_copy_window(diagnosis->length, &count);

	for (int i = 0; i < count; i++)
	{
		Subject		subject;
		Subject    *kept;

		if (!rows_may_see(statements[i].key.userid))
			continue;
		memset(&subject, 0, sizeof(subject));
		statement_figures(&statements[i], diagnosis->window, &subject.figures);
		subject.count = verdict_find(&subject.figures, subject.findings);
		if (subject.count == 0)
			continue;
		subject.key.datid = statements[i].key.dbid;
		subject.key.userid = statements[i].key.userid;
		subject.queryid = statements[i].key.queryid;
		explain_repeats(diagnosis, &statements[i], &subject.findings[0]);
		kept = add_subject(&diagnosis->statements);
		*kept = subject;
	}
}

/* ---------------------------------------------------------------------------
 * Judging them
 * ---------------------------------------------------------------------------
 */

static VerdictFinding *
find_finding(Subject *subject, Verdict verdict)
{
	for (int i = 0; i < subject->count; i++)
	{
		if (subject->findings[i].verdict == verdict)
			return &subject->findings[i];
	}
	return NULL;
}

static void
drop_finding(Subject *subject, const VerdictFinding *finding)
{
	int			place = finding - subject->findings;

	subject->count--;
	memmove(&subject->findings[place], &subject->findings[place + 1],
			(subject->count - place) * sizeof(VerdictFinding));
}

static void
judge(const Diagnosis *diagnosis, Subject *subject)
{
	int64		lock = diagnosis->server.figures.totals.exec_part[EXEC_LOCK];
	VerdictFinding *held_up;

	subject->count = verdict_find(&subject->figures, subject->findings);
	held_up = find_finding(subject, VERDICT_HELD_UP);

	/*
	 * If most of what is waited for locks is booked, it is its part of what
	 * is booked.  Sessions were looked at later than their groups.
	 */
	if (held_up && lock > 0 && diagnosis->held_up >= lock / 2)
		held_up->lost = Min(held_up->lost,
							(int64) (diagnosis->held_up *
									 Min((double) held_up->lost / lock, 1)));
}

/* Of one verdict of a group: is it that session, or the group? */
static void
choose_subject(Subject *client, Subject *session)
{
	for (int i = session->count - 1; i >= 0; i--)
	{
		VerdictFinding *own = &session->findings[i];
		VerdictFinding *all;

		if (!verdict_is_of_session(own->verdict))
		{
			drop_finding(session, own);
			continue;
		}
		all = client ? find_finding(client, own->verdict) : NULL;
		if (all == NULL)
			continue;
		if (own->lost >= MOST_OF_GROUP * all->lost)
			drop_finding(client, all);
		else
			drop_finding(session, own);
	}
}

/* Nothing is balanced of which something else is said elsewhere. */
static void
drop_balanced(Subject *client)
{
	VerdictFinding *balanced = find_finding(client, VERDICT_BALANCED);

	if (balanced)
		drop_finding(client, balanced);
}

static void
judge_all(Diagnosis *diagnosis)
{
	judge(diagnosis, &diagnosis->server);
	for (int i = 0; i < diagnosis->clients.count; i++)
	{
		Subject    *client = &diagnosis->clients.subjects[i];

		judge(diagnosis, client);
		if (client->figures.explained > 0)
			drop_balanced(client);
	}
	for (int i = 0; i < diagnosis->sessions.count; i++)
	{
		Subject    *session = &diagnosis->sessions.subjects[i];
		Subject    *client = find_client(diagnosis, &session->key);

		judge(diagnosis, session);
		choose_subject(client, session);
		if (client && session->count > 0)
			drop_balanced(client);
	}
}

static void
predict_savings(const Diagnosis *diagnosis)
{
	for (int i = 0; i < diagnosis->clients.count; i++)
	{
		Subject    *client = &diagnosis->clients.subjects[i];

		CHECK_FOR_INTERRUPTS();
		for (int j = 0; client->has_workload && j < client->count; j++)
			verdict_predict(&client->figures, &client->workload, &client->findings[j]);
	}
}

/* ---------------------------------------------------------------------------
 * Rows
 * ---------------------------------------------------------------------------
 */

static int
append_findings(Finding *rows, int count, const Subject *subject)
{
	for (int i = 0; i < subject->count; i++)
	{
		rows[count].subject = subject;
		rows[count++].finding = &subject->findings[i];
	}
	return count;
}

static int
append_all(Finding *rows, int count, const Subjects *list)
{
	for (int i = 0; i < list->count; i++)
		count = append_findings(rows, count, &list->subjects[i]);
	return count;
}

static Finding *
collect_rows(const Diagnosis *diagnosis, int *count)
{
	Size		room = 1;
	Finding    *rows;

	room += diagnosis->clients.count;
	room += diagnosis->sessions.count;
	room += diagnosis->statements.count;
	rows = palloc_extended(room * VERDICT_FINDINGS * sizeof(Finding), MCXT_ALLOC_HUGE);
	*count = append_findings(rows, 0, &diagnosis->server);
	*count = append_all(rows, *count, &diagnosis->statements);
	*count = append_all(rows, *count, &diagnosis->clients);
	*count = append_all(rows, *count, &diagnosis->sessions);
	return rows;
}

/* The most expensive first. */
static int
compare_findings(const void *a, const void *b)
{
	const Finding *left = a;
	const Finding *right = b;

	if (left->finding->lost != right->finding->lost)
		return left->finding->lost > right->finding->lost ? -1 : 1;
	if (left->finding->verdict != right->finding->verdict)
		return left->finding->verdict < right->finding->verdict ? -1 : 1;
	if (left->subject->pid != right->subject->pid)
		return left->subject->pid < right->subject->pid ? -1 : 1;
	return left < right ? -1 : 1;
}

static const char *
kind_name(VerdictSubject kind)
{
	switch (kind)
	{
		case VERDICT_OF_SESSION:
			return "session";
		case VERDICT_OF_CLIENT:
			return "client";
		case VERDICT_OF_STATEMENT:
			return "statement";
		default:
			return "server";
	}
}

/* For people: who, or what, it is. */
static char *
subject_text(const Subject *subject)
{
	StringInfoData text;
	const ClientKey *key = &subject->key;
	const char *role = GetUserNameFromId(key->userid, true);
	char		address[INET6_ADDRSTRLEN];

	initStringInfo(&text);
	if (subject->figures.subject == VERDICT_OF_SERVER)
	{
		appendStringInfoString(&text, "server");
		return text.data;
	}
	if (role == NULL)
		role = "?";
	if (subject->figures.subject == VERDICT_OF_STATEMENT)
	{
		appendStringInfo(&text, "statement %lld of %s", (long long) subject->queryid, role);
		return text.data;
	}
	appendStringInfoString(&text, key->application_name[0] != '\0' ? key->application_name : role);
	if (key->family != 0 && inet_ntop(key->family, key->address, address, sizeof(address)))
		appendStringInfo(&text, "@%s", address);
	if (subject->pid != 0)
		appendStringInfo(&text, ", process %d", subject->pid);
	return text.data;
}

/* Nanoseconds of the window as milliseconds of each second. */
static void
row_rate(RowBuilder *row, const char *column, int64 time, const VerdictFigures *figures)
{
	if (time == VERDICT_UNKNOWN)
		row_null(row, column);
	else
		row_float8(row, column, time * 1000.0 / figures->window);
}

/* To join with; NULL where it does not apply. */
static void
row_identifiers(RowBuilder *row, const Subject *subject)
{
	const ClientKey *key = &subject->key;
	VerdictSubject kind = subject->figures.subject;
	bool		has_client = kind == VERDICT_OF_SESSION || kind == VERDICT_OF_CLIENT;

	if (subject->pid != 0)
		row_int32(row, "pid", subject->pid);
	else
		row_null(row, "pid");
	if (subject->queryid != 0)
		row_int64(row, "queryid", (int64) subject->queryid);
	else
		row_null(row, "queryid");
	row_oid(row, "usesysid", key->userid);
	row_name(row, "usename", GetUserNameFromId(key->userid, true));
	row_oid(row, "datid", key->datid);
	row_name(row, "datname", get_database_name(key->datid));
	row_text(row, "application_name", has_client ? key->application_name : NULL);
	row_address(row, "client_addr", key->family, key->address);
}

static void
finding_row(RowBuilder *row, const Finding *finding)
{
	const VerdictFigures *figures = &finding->subject->figures;
	int64		saving = finding->finding->saving;
	int64		whole = verdict_time(figures);
	char		evidence[VERDICT_EVIDENCE_SIZE];

	verdict_evidence(figures, finding->finding, evidence);
	row_text(row, "subject_kind", kind_name(figures->subject));
	row_text(row, "subject", subject_text(finding->subject));
	row_text(row, "verdict", verdict_name(finding->finding->verdict));
	row_text(row, "evidence", evidence);
	row_text(row, "advice", verdict_advice(figures, finding->finding));
	row_rate(row, "lost_time", finding->finding->lost, figures);
	row_rate(row, "saving", saving, figures);
	/* what others waited is no share of one's own time */
	if (saving == VERDICT_UNKNOWN || whole <= 0 || finding->finding->verdict == VERDICT_HOLDS_UP)
		row_null(row, "saving_share");
	else
		row_float8(row, "saving_share", Min(saving / (double) whole, 1));
	row_identifiers(row, finding->subject);
	row_emit(row);
}

/*
 * One row per finding.
 */
PG_FUNCTION_INFO_V1(pgnetlat_diagnose);

Datum
pgnetlat_diagnose(PG_FUNCTION_ARGS)
{
	RowBuilder	row;
	Diagnosis	diagnosis;
	Finding    *rows;
	int			count;

	rows_begin(fcinfo, &row);
	memset(&diagnosis, 0, sizeof(diagnosis));
	diagnosis.length = rows_window_length(PG_GETARG_INTERVAL_P(0));
	accumulate_all();
	collect_clients(&diagnosis);
	collect_sessions(&diagnosis);
	collect_blockers(&diagnosis);
	collect_statements(&diagnosis);
	collect_pool(&diagnosis);
	judge_all(&diagnosis);
	predict_savings(&diagnosis);
	rows = collect_rows(&diagnosis, &count);
	qsort(rows, count, sizeof(Finding), compare_findings);
	for (int i = 0; i < count; i++)
		finding_row(&row, &rows[i]);
	return (Datum) 0;
}
