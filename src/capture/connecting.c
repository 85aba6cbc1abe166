/*-------------------------------------------------------------------------
 *
 * connecting.c
 *	  Measures this backend's connection while it is being set up.
 *
 * Nothing calls us before the server's first message, which is when we find
 * out what came before it.
 *
 * The socket was accepted just before the postmaster forked, which we see.
 *
 * The server answers a request for encryption with one byte.  So the number of
 * bytes that the client has acknowledged, at the start-up packet or where TLS
 * begins, is the number of requests.
 *
 * The number of round trips of a TLS handshake depends on the version, and on
 * whether the client has guessed the key exchange that the server wants: with
 * PostgreSQL's default before 18, psql guesses wrong, and the server asks
 * again.  Only the messages show that.  OpenSSL passes them to a callback,
 * which we set in core's hook for passphrases.  19 ignores that hook with
 * ssl_sni; without the callback, one request, unless core knows that there was
 * none, and a handshake of one round trip with TLS 1.3 and two before are
 * assumed, which ends when authentication begins.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <pthread.h>

#include "access/xact.h"
#include "clock.h"
#include "compat.h"
#include "connecting.h"
#include "failed_connections.h"
#include "libpq/libpq-be.h"
#include "miscadmin.h"
#include "port/pg_bswap.h"
#include "session_slot.h"
#include "settings.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "tcpinfo.h"
#include "utils/timeout.h"
#include "wire_input.h"

/* Clients ask for two kinds of encryption, once each. */
#define MAX_ENCRYPTION_REQUESTS		2

typedef struct Connecting
{
	bool		noted;			/* the first message has been seen */
	bool		encrypted;
	int			round_trips;	/* all but the last one */
	TimestampTz auth_began;
	int64		auth_ended;
} Connecting;

/* What the TLS library has shown of the handshake. */
typedef struct TlsHandshake
{
	bool		begun;
	bool		finished;		/* by the client */
	bool		has_written;	/* and not read since */
	int			round_trips;	/* of the requests for it, too */
	int64		ended;			/* 0: not known */
} TlsHandshake;

bool		connecting_in_progress = true;

static Connecting connecting;
static TlsHandshake handshake;

static emit_log_hook_type prev_emit_log = NULL;

/* The error that ends the connection; 0: none. */
static int	fatal_sqlstate = 0;

/* When the postmaster began to fork this process; 0: not known. */
static int64 fork_began = 0;

/*
 * Runs in the postmaster, and the forked process inherits the value; that process
 * may fork, too, as some PAM modules do to check a password.
 */
static void
before_fork(void)
{
	if (!IsUnderPostmaster)
		fork_began = clock_now();
}

/* ---------------------------------------------------------------------------
 * The TLS handshake
 * ---------------------------------------------------------------------------
 */

/* The number of requests for encryption that the server has answered. */
static int
encryption_requests(void)
{
	return Min(tcpinfo_bytes_acknowledged(MyProcPort->sock), MAX_ENCRYPTION_REQUESTS);
}

#if defined(USE_OPENSSL) && defined(__ELF__) && COMPAT_HAS_TLS_INIT_HOOK

/* in libraries that a server built with OpenSSL has loaded */
#pragma weak SSL_CTX_set_msg_callback
#pragma weak SSL_set_msg_callback

static openssl_tls_init_hook_typ prev_tls_init_hook = NULL;

/*
 * Called with each message, and with each record's header.  A read after a write
 * has cost a round trip.  The client's last message is Finished, after which it
 * sends data; before TLS 1.3, it waits for the server's Finished first.
 */
static void
look_at_message(int is_written, int version, int content_type, const void *data,
				size_t length, SSL *ssl, void *arg)
{
	uint8		type = length > 0 ? *(const uint8 *) data : 0;

	if (content_type == SSL3_RT_HANDSHAKE && type != SSL3_MT_NEWSESSION_TICKET)
	{
		if (!handshake.begun)
			handshake.round_trips = encryption_requests();
		handshake.begun = true;
		handshake.round_trips += handshake.has_written && !is_written;
		handshake.has_written = is_written;
		handshake.finished |= !is_written && type == SSL3_MT_FINISHED;
	}
	else if (handshake.finished && !is_written)
	{
		handshake.round_trips += handshake.has_written;
		handshake.ended = clock_now();
		SSL_set_msg_callback(ssl, NULL);
	}
}

static void
look_at_context(SSL_CTX *context, bool isServerStart)
{
	if (prev_tls_init_hook)
		prev_tls_init_hook(context, isServerStart);
	SSL_CTX_set_msg_callback(context, look_at_message);
}

static void
install_tls_callback(void)
{
	if (SSL_CTX_set_msg_callback == NULL || SSL_set_msg_callback == NULL)
		return;
	prev_tls_init_hook = openssl_tls_init_hook;
	openssl_tls_init_hook = look_at_context;
}

#else

static void
install_tls_callback(void)
{
}

#endif

static int
tls_round_trips(void)
{
	int			requests = compat_tls_is_direct(MyProcPort) ? 0 : 1;

	if (handshake.ended != 0)
		return handshake.round_trips;
#ifdef USE_SSL
	if (strcmp(be_tls_get_version(MyProcPort), "TLSv1.3") != 0)
		return requests + 2;
#endif
	return requests + 1;
}

/* ---------------------------------------------------------------------------
 * Messages
 * ---------------------------------------------------------------------------
 */

/* The round trips before the start-up packet, without TCP's handshake. */
static int
encryption_round_trips(SessionTransport transport)
{
	if (transport == TRANSPORT_TLS)
		return tls_round_trips();
	return transport == TRANSPORT_GSS ? 2 : encryption_requests();
}

/* The server logs why it refuses a connection. */
static void
note_log_entry(ErrorData *edata)
{
	if (connecting_in_progress && edata->elevel == FATAL)
		fatal_sqlstate = edata->sqlerrcode;
	if (prev_emit_log)
		prev_emit_log(edata);
}

/* Exit callback, while the process still has its PGPROC. */
static void
exit_while_connecting(int code, Datum arg)
{
	ClientKey	address;

	if (!connecting_in_progress || !pgnetlat_enabled)
		return;
	memset(&address, 0, sizeof(address));
	clients_set_address(&address, &MyProcPort->raddr.addr);
	failed_connections_count(MyProcPort->database_name, MyProcPort->user_name, &address,
							 fatal_sqlstate);
}

/* The server sends its first message. */
static void
note_first_message(void)
{
	SessionTransport transport = slot_my_transport();

	connecting.noted = true;
	before_shmem_exit(exit_while_connecting, (Datum) 0);
	connecting.encrypted = transport == TRANSPORT_TLS || transport == TRANSPORT_GSS;

	/*
	 * authentication starts that timer; a statement may start it again later
	 */
	connecting.auth_began = get_timeout_start_time(STATEMENT_TIMEOUT);
	if (transport != TRANSPORT_UNIX)
		connecting.round_trips = 1 + encryption_round_trips(transport);
}

/*
 * A message that may be one of authentication, or an error that ends it.
 */
void
connecting_note_message(char type, const char *body, size_t length)
{
	uint32		request;

	if (MyBackendType != B_BACKEND || MyProcPort == NULL || MyProc == NULL)
		return;
	if (!connecting.noted && IsTransactionState())
		note_first_message();
	if (type != MSG_AUTHENTICATION || length < sizeof(request))
		return;
	memcpy(&request, body, sizeof(request));
	request = pg_ntoh32(request);
	if (request == AUTH_REQ_OK)
		connecting.auth_ended = clock_now();
	/* these two are the server's last word; the client answers the others */
	else if (request != AUTH_REQ_SASL_FIN && request != AUTH_REQ_GSS_CONT)
		connecting.round_trips++;
}

void
connecting_install(void)
{
	(void) pthread_atfork(before_fork, NULL, NULL);
	prev_emit_log = emit_log_hook;
	emit_log_hook = note_log_entry;
	install_tls_callback();
}

/*
 * Return what the connection has cost when the first ReadyForQuery was about
 * to leave, at "ready"; all zero if that is not known.
 */
void
connecting_done(int64 ready, int64 clock_offset, ConnectTotals *cost)
{
	int64		started = clock_from_timestamp(clock_offset, MyStartTimestamp);
	int64		accepted = fork_began != 0 ? fork_began : started;
	int64		auth_began;
	int64		tls_ended;

	connecting_in_progress = false;
	memset(cost, 0, sizeof(*cost));
	if (!connecting.noted || connecting.auth_began == 0 || connecting.auth_ended == 0)
		return;

	/* these come from two clocks: keep them in order */
	auth_began = clock_from_timestamp(clock_offset, connecting.auth_began);
	auth_began = Min(Max(auth_began, accepted), connecting.auth_ended);
	tls_ended = handshake.ended != 0 ? handshake.ended : auth_began;
	cost->connections = 1;
	cost->time = ready - accepted;
	cost->tls = connecting.encrypted ? Max(tls_ended - Max(started, accepted), 0) : 0;
	cost->auth = connecting.auth_ended - auth_began;
	cost->round_trips = connecting.round_trips + 1;
}
