/*-------------------------------------------------------------------------
 *
 * connecting.c
 *	  See connecting.h.
 *
 * When was the socket accepted?  From 18 on core says so.  Before that it is
 * taken to be when the postmaster began to fork, which it does next.
 *
 * Until the server's first message nothing calls us, and the process does
 * nothing but wait for its client and work.  So what it has not spent on a
 * processor it has spent waiting for its client, or for a processor; except
 * where log_hostname is on, and it may have asked for a name.
 *
 * The round trips before the first message are those that encryption takes,
 * granted or not.  Each request for it has eight bytes, and each refusal has
 * one.  So on a connection without encryption, the bytes that the client has
 * acknowledged by then are the requests that were refused.  On one with TLS,
 * they are what the kernel has received and the TLS library has not read.  The
 * handshake itself is looked at where that is possible (tls_handshake.h), or else
 * takes one round trip with TLS 1.3, and two before that; that of GSSAPI takes one.
 *
 * In authentication, each question but the last word is a round trip.  How
 * long the answer takes is measured where nobody else can be waited for; where
 * encryption or the protocol does not let us wait, it is what the process has
 * not spent on a processor until its next message.  Either way, the time for which
 * the process then waits for a processor is not the client's.
 *
 * A connection that fails leaves with an error, or just leaves; the exit
 * callback sees both.  By then its transaction may have failed as well, and a
 * new one is needed to look up the names of role and database: the same as core
 * does at the end of sessions that have temporary tables.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <pthread.h>
#include <time.h>

#include "access/xact.h"
#include "accumulate.h"
#include "catalog/pg_database.h"
#include "clock.h"
#include "commands/dbcommands.h"
#include "compat.h"
#include "connecting.h"
#include "libpq/libpq-be.h"
#include "miscadmin.h"
#include "port/pg_bswap.h"
#include "postmaster/postmaster.h"
#include "process.h"
#include "settings.h"
#include "storage/ipc.h"
#include "tcpinfo.h"
#include "tls_handshake.h"
#include "utils/acl.h"
#include "utils/relcache.h"

/* in the libraries that the server has loaded if it was built with OpenSSL */
#if defined(USE_OPENSSL) && defined(__ELF__)
#pragma weak SSL_get_rbio
#pragma weak BIO_number_read
#endif

#define MSG_AUTHENTICATION			'R'

/* Of a request for encryption, in bytes. */
#define ENCRYPTION_REQUEST_SIZE		8

/* Clients ask for two kinds of encryption, once each. */
#define MAX_ENCRYPTION_REQUESTS		2

typedef struct Connecting
{
	bool		noted;			/* the first message has been seen */
	bool		asked;			/* the latest message wants an answer, ... */
	bool		may_wait;		/* ... which certainly comes, */
	int64		asked_at;		/* and has left; 0: or not */
	int64		asked_processor;
	long		asked_blocked;
	int64		run_queue;		/* when the first message was seen */
	CompatConnectTimes core;	/* wall-clock times */
	TimestampTz negotiated;
	ConnectEvents events;
} Connecting;

bool		connecting_in_progress = true;

static Connecting connecting;

/* Around the fork of this process; 0: it was not forked by the postmaster. */
static int64 fork_began = 0;
static int64 fork_ended = 0;

/* In the postmaster, and inherited by the process that it forks. */
static void
before_fork(void)
{
	fork_began = clock_now();
}

static void
after_fork(void)
{
	fork_ended = clock_now();
}

void
connecting_install(void)
{
	(void) pthread_atfork(before_fork, NULL, after_fork);
}

/* For how long this process has had a processor, in nanoseconds. */
static int64
processor_time(void)
{
	return clock_read(CLOCK_PROCESS_CPUTIME_ID);
}

/* For how long it was ready to run without one; 0 if nobody knows. */
static int64
run_queue_time(void)
{
	int64		time;
	int64		runs;
	int64		on_cpu;

	return process_run_queue(&time, &runs, &on_cpu) ? time : 0;
}

/* ---------------------------------------------------------------------------
 * Until the first message
 * ---------------------------------------------------------------------------
 */

/*
 * What of the bytes that the client has sent the TLS library has not read: the
 * requests that came before the handshake, in all "received".
 */
static int
requests_before_tls(int64 received)
{
#if defined(USE_OPENSSL) && defined(__ELF__)
	if (SSL_get_rbio != NULL && BIO_number_read != NULL && MyProcPort->ssl != NULL)
	{
		int64		read = BIO_number_read(SSL_get_rbio(MyProcPort->ssl));
		int64		requests = (received - read) / ENCRYPTION_REQUEST_SIZE;

		if (requests >= 0 && requests <= MAX_ENCRYPTION_REQUESTS)
			return requests;
	}
#endif
	return 1;
}

/* Guess, where nobody has looked. */
static int
tls_handshake_trips(void)
{
#ifdef USE_SSL
	const char *version = be_tls_get_version(MyProcPort);

	if (version != NULL && strcmp(version, "TLSv1.3") != 0)
		return 2;
#endif
	return 1;
}

static bool
gss_is_in_use(void)
{
#ifdef ENABLE_GSS
	return MyProcPort->gss && MyProcPort->gss->enc;
#else
	return false;
#endif
}

/* The round trips that encryption has taken; and when that was over, if known. */
static int
trips_for_encryption(int64 *over)
{
	TlsHandshake handshake;
	int64		received = 0;
	int64		acknowledged = 0;
	bool		known = tcpinfo_stream(MyProcPort->sock, &received, &acknowledged);

	if (MyProcPort->ssl_in_use)
	{
		int			requests = known ? requests_before_tls(received) : 1;

		if (!tls_handshake_seen(&handshake))
			return requests + tls_handshake_trips();
		*over = handshake.ended;
		return requests + handshake.trips;
	}
	if (gss_is_in_use())
		return 2;
	return known ? Min(acknowledged, MAX_ENCRYPTION_REQUESTS) : 0;
}

/* What has gone on until now, when the server has something to say. */
static void
note_negotiation(void)
{
	ConnectEvents *events = &connecting.events;
	int64		now = clock_now();
	int64		blocked;

	connecting.run_queue = run_queue_time();
	compat_connect_times(&connecting.core);
	connecting.negotiated = GetCurrentStatementStartTimestamp();
	events->is_tcp = MyProcPort->raddr.addr.ss_family != AF_UNIX;
	events->encrypted = MyProcPort->ssl_in_use || gss_is_in_use();
	if (events->is_tcp)
		events->trips = trips_for_encryption(&events->negotiated);
	if (fork_ended == 0)
		return;
	blocked = now - fork_ended - processor_time();
	events->blocked = Max(blocked, 0);
	/* before it ran for the first time, it did not wait for the client */
	events->run_queue = Max(connecting.run_queue - (fork_ended - fork_began), 0);
	if (log_hostname)
		events->run_queue = events->blocked;
}

/* ---------------------------------------------------------------------------
 * Connections that fail
 * ---------------------------------------------------------------------------
 */

/* Whose connection it would have been, as far as that exists. */
static void
fill_in_key(ClientKey *key)
{
	const Port *port = MyProcPort;

	memset(key, 0, sizeof(*key));
	clients_set_address(key, &port->raddr.addr);
	if (port->application_name)
		clients_set_name(key, port->application_name, NULL, NULL);
	if (!criticalSharedRelcachesBuilt)
		return;
	AbortOutOfAnyTransaction();
	StartTransactionCommand();
	if (port->user_name)
		key->userid = get_role_oid(port->user_name, true);
	if (port->database_name)
		key->datid = get_database_oid(port->database_name, true);
	/* core aborts the transaction */
}

/* The process ends; its PGPROC is still there. */
static void
exit_while_connecting(int code, Datum arg)
{
	ClientKey	key;

	if (!connecting_in_progress)
		return;
	connecting_in_progress = false;
	if (!pgnetlat_enabled)
		return;
	fill_in_key(&key);
	accumulate_failed_connection(&key);
}

/* ---------------------------------------------------------------------------
 * Messages
 * ---------------------------------------------------------------------------
 */

/* Is this a client backend in authentication, or just behind it? */
static bool
is_connecting(void)
{
	return connecting_in_progress && MyBackendType == B_BACKEND && MyProcPort != NULL &&
		MyProc != NULL && IsTransactionState();
}

/*
 * The client has answered, which nobody has waited for.  What wanted no answer
 * has not kept the process from going on.
 */
static void
note_silent_answer(void)
{
	int64		wait = clock_now() - connecting.asked_at;

	wait -= processor_time() - connecting.asked_processor;
	connecting.events.auth_wait += Max(wait, 0);
	if (!connecting.may_wait && process_times_blocked() != connecting.asked_blocked)
		connecting.events.auth_trips++;
	connecting.asked_at = 0;
}

static void
note_authentication(uint32 request)
{
	switch (request)
	{
		case AUTH_REQ_OK:
		case AUTH_REQ_SASL_FIN:
			connecting.asked = false;
			break;
		case AUTH_REQ_PASSWORD:
		case AUTH_REQ_MD5:
		case AUTH_REQ_GSS:
		case AUTH_REQ_SSPI:
		case AUTH_REQ_SASL:
		case AUTH_REQ_SASL_CONT:
			connecting.asked = connecting.may_wait = true;
			break;
		default:
			/* the last word of GSSAPI looks like those that go on */
			connecting.asked = true;
			connecting.may_wait = false;
			break;
	}
	if (request != AUTH_REQ_OK)
		return;
	if (connecting.events.auth_wait > 0)
		connecting.events.auth_run_queue = run_queue_time() - connecting.run_queue;
	connecting.events.auth_ended = clock_now();
}

/*
 * A message that may be one of authentication, or an error that ends it.
 */
void
connecting_note_message(char type, const char *body, size_t length)
{
	uint32		request;

	if (!is_connecting())
		return;
	if (!connecting.noted)
	{
		connecting.noted = true;
		before_shmem_exit(exit_while_connecting, (Datum) 0);
		note_negotiation();
	}
	if (connecting.asked_at != 0)
		note_silent_answer();
	if (type != MSG_AUTHENTICATION || length < sizeof(request))
		return;
	memcpy(&request, body, sizeof(request));
	note_authentication(pg_ntoh32(request));
}

/* Does the latest message want an answer? */
bool
connecting_has_asked(void)
{
	return connecting.asked;
}

/*
 * That message has been sent, at "now".  Can its answer be waited for?
 */
bool
connecting_asked(int64 now)
{
	connecting.asked = false;
	connecting.asked_at = now;
	connecting.asked_processor = processor_time();
	connecting.asked_blocked = process_times_blocked();
	if (connecting.may_wait)
		connecting.events.auth_trips++;
	return connecting.may_wait;
}

/* The answer has come. */
void
connecting_answered(int64 now)
{
	connecting.events.auth_wait += now - connecting.asked_at;
	connecting.asked_at = 0;
}

/* ---------------------------------------------------------------------------
 * The end
 * ---------------------------------------------------------------------------
 */

static inline int64
moment(int64 clock_offset, TimestampTz timestamp, int64 otherwise)
{
	return timestamp != 0 ? clock_from_timestamp(clock_offset, timestamp) : otherwise;
}

/*
 * The first ReadyForQuery left at "now".  What the connection has cost; false
 * if that is not known.
 */
bool
connecting_done(int64 now, int64 clock_offset, int64 rtt, ConnectTotals *cost)
{
	ConnectEvents *events = &connecting.events;
	const CompatConnectTimes *core = &connecting.core;
	int64		started = moment(clock_offset, MyStartTimestamp, 0);

	memset(cost, 0, sizeof(*cost));
	connecting_in_progress = false;
	if (!connecting.noted)
		return false;
	if (fork_ended != 0)
		started = fork_ended;
	events->started = moment(clock_offset, core->started, started);
	events->accepted = moment(clock_offset, core->accepted,
							  fork_ended != 0 ? fork_began : started);
	if (events->negotiated == 0)
		events->negotiated = moment(clock_offset, connecting.negotiated, started);
	events->auth_began = moment(clock_offset, core->auth_began, events->negotiated);
	events->ready = now;
	events->rtt = rtt;
	connect_cost(events, cost);
	return true;
}
