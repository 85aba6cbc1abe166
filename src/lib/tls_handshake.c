/*-------------------------------------------------------------------------
 *
 * tls_handshake.c
 *	  See tls_handshake.h.
 *
 * How many round trips a handshake takes depends on the version of the
 * protocol, and on whether the client has guessed which key exchange the server
 * wants: if not, the server asks again.  With PostgreSQL's default before 18,
 * psql guesses wrong.  Only the messages tell, and OpenSSL shows them to whoever
 * asks: each one that the server reads after one that it has written, it has
 * waited for.  What it has not waited for are the session tickets that it sends
 * last.
 *
 * Core has a hook where the library's context is set up, which is meant for
 * passphrases.  We leave that to whoever had it before us.  The connection's
 * messages are looked at until its first data has come; after that, OpenSSL
 * calls nobody.  Where there is no such hook, the caller has to guess.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "clock.h"
#include "compat.h"
#include "libpq/libpq-be.h"
#include "tls_handshake.h"

#if defined(USE_OPENSSL) && defined(__ELF__) && COMPAT_HAS_TLS_INIT_HOOK

/* in libssl, which the server has loaded */
#pragma weak SSL_CTX_set_msg_callback
#pragma weak SSL_set_msg_callback
#pragma weak SSL_version

/* Messages and records, as their standards number them. */
#define HANDSHAKE_NEW_SESSION_TICKET	4
#define RECORD_APPLICATION_DATA			23

static openssl_tls_init_hook_typ prev_tls_init_hook = NULL;

static TlsHandshake seen;
static bool seen_anything = false;
static bool has_written = false;	/* and read nothing since */

/* Called with each message, and with the type of each record. */
static void
look_at_message(int is_written, int version, int content_type, const void *data,
				size_t length, SSL *ssl, void *arg)
{
	uint8		type = length > 0 ? *(const uint8 *) data : 0;

	if (content_type == SSL3_RT_HANDSHAKE && type != HANDSHAKE_NEW_SESSION_TICKET)
	{
		seen_anything = true;
		if (has_written && !is_written)
			seen.trips++;
		has_written = is_written;
	}
	/* in TLS 1.3, every record that is encrypted looks like data outside */
	else if (!is_written && type == RECORD_APPLICATION_DATA &&
			 (content_type == SSL3_RT_INNER_CONTENT_TYPE ||
			  (content_type == SSL3_RT_HEADER && SSL_version(ssl) < TLS1_3_VERSION)))
	{
		if (has_written)
			seen.trips++;
		seen.ended = clock_now();
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

void
tls_handshake_install(void)
{
	if (SSL_CTX_set_msg_callback == NULL || SSL_set_msg_callback == NULL ||
		SSL_version == NULL)
		return;
	prev_tls_init_hook = openssl_tls_init_hook;
	openssl_tls_init_hook = look_at_context;
}

/* Did this backend's connection have a handshake? */
bool
tls_handshake_seen(TlsHandshake *handshake)
{
	*handshake = seen;
	return seen_anything && seen.ended != 0;
}

#else

void
tls_handshake_install(void)
{
}

bool
tls_handshake_seen(TlsHandshake *handshake)
{
	return false;
}

#endif
