/*-------------------------------------------------------------------------
 *
 * keylog.c
 *	  Writes down the keys of a server's TLS connections.
 *
 * To be preloaded into a server (LD_PRELOAD) that is linked with OpenSSL.  To the
 * file that SSLKEYLOGFILE names it appends a line for each secret, as OpenSSL
 * gives it: with them, and only with them, the captured packets can be read
 * (tls.py).  Clients know nothing of it, so this works with all of them.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* what libssl declares, as far as it is needed here */
typedef struct ssl_st SSL;
typedef struct ssl_ctx_st SSL_CTX;
typedef void (*KeylogCallback) (const SSL *ssl, const char *line);
typedef SSL *(*NewSsl) (SSL_CTX *context);
typedef void (*SetCallback) (SSL_CTX *context, KeylogCallback callback);

static void
write_down(const SSL *ssl, const char *line)
{
	const char *name = getenv("SSLKEYLOGFILE");
	int			file = name ? open(name, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
	struct iovec parts[2] = {{(void *) line, strlen(line)}, {"\n", 1}};

	(void) ssl;
	/* in one piece, for other backends write as well */
	if (file < 0 || writev(file, parts, 2) < 0)
		abort();
	close(file);
}

/* In the place of the library's own function, which it calls. */
SSL *
SSL_new(SSL_CTX *context)
{
	NewSsl		next = (NewSsl) dlsym(RTLD_NEXT, "SSL_new");
	SetCallback set_callback = (SetCallback) dlsym(RTLD_NEXT, "SSL_CTX_set_keylog_callback");

	set_callback(context, write_down);
	return next(context);
}
