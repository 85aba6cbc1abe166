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
 * A request for encryption has eight bytes, and a refusal has one.  So on a
 * connection without encryption, the number of bytes that the client has
 * acknowledged is the number of requests that were refused.  On one with TLS,
 * the requests are what the kernel has received and the TLS library has not
 * read.
 *
 * The number of round trips of a TLS handshake depends on the version, and on
 * whether the client has guessed the key exchange that the server wants: with
 * PostgreSQL's default before 18, psql guesses wrong, and the server asks
 * again.  Only the messages show that.  OpenSSL passes them to a callback,
 * which we set in core's hook for passphrases.  19 ignores that hook with
 * ssl_sni; without the callback, a handshake counts as one round trip with TLS
 * 1.3 and two before, and as over when authentication begins.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <pthread.h>

#include "access/xact.h"
#include "clients.h"
#include "clock.h"
#include "compat.h"
#include "connecting.h"
#include "failed_connections.h"
#include "libpq/libpq-be.h"
#include "miscadmin.h"
#include "port/pg_bswap.h"
#include "settings.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "tcpinfo.h"
#include "utils/timeout.h"

#define MSG_AUTHENTICATION			'R'

/* Size of a request for encryption, in bytes. */
#define ENCRYPTION_REQUEST_SIZE		8

/* Clients ask for two kinds of encryption, once each. */
#define MAX_ENCRYPTION_REQUESTS		2

typedef struct Connecting
{
	bool		noted;			/* the first message has been seen */
	bool		gss_continues;	/* the latest message is a GSSAPI token */
	bool		encrypted;
	int			round_trips;	/* all but the last one */
	TimestampTz auth_began;
	int64		auth_ended;
} Connecting;

/* What the TLS library has shown of the handshake. */
typedef struct TlsHandshake
{
	int			round_trips;
	bool		has_written;	/* and not read since */
	int64		ended;			/* when the first data came; 0: not known */
} TlsHandshake;

bool		connecting_in_progress = true;

static Connecting connecting;
static TlsHandshake handshake;

/* When the postmaster began to fork this process; 0: not known. */
static int64 fork_began = 0;

/* Runs in the postmaster; the forked process inherits the value. */
static void
before_fork(void)
{
	fork_began = clock_now();
}

/* ---------------------------------------------------------------------------
 * The TLS handshake
 * ---------------------------------------------------------------------------
 */

#if defined(USE_OPENSSL) && defined(__ELF__)

/* in libraries that a server built with OpenSSL has loaded */
#pragma weak SSL_get_rbio
#pragma weak BIO_number_read

/*
 * How many requests for encryption came before the handshake.  From 17 on
 * there may be none.
 */
static int
requests_before_tls(int64 received)
{
	if (SSL_get_rbio != NULL && BIO_number_read != NULL && MyProcPort->ssl != NULL)
	{
		int64		read = BIO_number_read(SSL_get_rbio(MyProcPort->ssl));
		int64		requests = (received - read) / ENCRYPTION_REQUEST_SIZE;

		if (requests >= 0 && requests <= MAX_ENCRYPTION_REQUESTS)
			return requests;
	}
	return 1;
}

#else

static int
requests_before_tls(int64 received)
{
	return 1;
}

#endif

#if defined(USE_OPENSSL) && defined(__ELF__) && COMPAT_HAS_TLS_INIT_HOOK

#pragma weak SSL_CTX_set_msg_callback
#pragma weak SSL_set_msg_callback
#pragma weak SSL_version

/* Numbers of messages and records in the TLS standards. */
#define HANDSHAKE_NEW_SESSION_TICKET	4
#define RECORD_APPLICATION_DATA			23

static openssl_tls_init_hook_typ prev_tls_init_hook = NULL;

/*
 * Called with each message, and with the type of each record.  A read after a
 * write has cost a round trip.
 */
static void
look_at_message(int is_written, int version, int content_type, const void *data,
				size_t length, SSL *ssl, void *arg)
{
	uint8		type = length > 0 ? *(const uint8 *) data : 0;

	if (content_type == SSL3_RT_HANDSHAKE && type != HANDSHAKE_NEW_SESSION_TICKET)
	{
		if (handshake.has_written && !is_written)
			handshake.round_trips++;
		handshake.has_written = is_written;
	}
	/* in TLS 1.3, every encrypted record has the type of data */
	else if (!is_written && type == RECORD_APPLICATION_DATA &&
			 (content_type == SSL3_RT_INNER_CONTENT_TYPE ||
			  (content_type == SSL3_RT_HEADER && SSL_version(ssl) < TLS1_3_VERSION)))
	{
		if (handshake.has_written)
			handshake.round_trips++;
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
	if (SSL_CTX_set_msg_callback == NULL || SSL_set_msg_callback == NULL ||
		SSL_version == NULL)
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
#ifdef USE_SSL
	const char *version = be_tls_get_version(MyProcPort);

	if (handshake.ended == 0 && version != NULL && strcmp(version, "TLSv1.3") != 0)
		return 2;
#endif
	return handshake.ended != 0 ? handshake.round_trips : 1;
}

/* ---------------------------------------------------------------------------
 * Messages
 * ---------------------------------------------------------------------------
 */

static bool
gss_is_in_use(void)
{
#ifdef ENABLE_GSS
	return MyProcPort->gss && MyProcPort->gss->enc;
#else
	return false;
#endif
}

/* The round trips before the start-up packet, without TCP's handshake. */
static int
encryption_round_trips(void)
{
	int64		received = 0;
	int64		acknowledged = 0;
	bool		known = tcpinfo_stream(MyProcPort->sock, &received, &acknowledged);

	if (MyProcPort->ssl_in_use)
		return (known ? requests_before_tls(received) : 1) + tls_round_trips();
	if (gss_is_in_use())
		return 2;
	return known ? Min(acknowledged, MAX_ENCRYPTION_REQUESTS) : 0;
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
	failed_connections_count(MyProcPort->database_name, MyProcPort->user_name, &address);
}

/* The server sends its first message. */
static void
note_first_message(void)
{
	connecting.noted = true;
	before_shmem_exit(exit_while_connecting, (Datum) 0);
	connecting.encrypted = MyProcPort->ssl_in_use || gss_is_in_use();

	/*
	 * authentication starts that timer; a statement may start it again later
	 */
	connecting.auth_began = get_timeout_start_time(STATEMENT_TIMEOUT);
	if (MyProcPort->raddr.addr.ss_family != AF_UNIX)
		connecting.round_trips = 1 + encryption_round_trips();
}

/*
 * Count the requests for authentication that the client answers.  It answers a
 * GSSAPI token only if another one follows.
 */
static void
note_authentication(uint32 request)
{
	if (connecting.gss_continues && request == AUTH_REQ_GSS_CONT)
		connecting.round_trips++;
	connecting.gss_continues = false;
	switch (request)
	{
		case AUTH_REQ_OK:
			connecting.auth_ended = clock_now();
			break;
		case AUTH_REQ_SASL_FIN:
			break;
		case AUTH_REQ_GSS_CONT:
			connecting.gss_continues = true;
			break;
		default:
			connecting.round_trips++;
			break;
	}
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
	note_authentication(pg_ntoh32(request));
}

void
connecting_install(void)
{
	(void) pthread_atfork(before_fork, NULL, NULL);
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
