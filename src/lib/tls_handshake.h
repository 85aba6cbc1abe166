/*-------------------------------------------------------------------------
 *
 * tls_handshake.h
 *	  What the TLS library says of the handshake of this backend's connection.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_TLS_HANDSHAKE_H
#define PGNETLAT_TLS_HANDSHAKE_H

typedef struct TlsHandshake
{
	int			trips;			/* round trips */
	int64		ended;			/* when the first data came; 0: not known */
} TlsHandshake;

extern void tls_handshake_install(void);
extern bool tls_handshake_seen(TlsHandshake *handshake);

#endif							/* PGNETLAT_TLS_HANDSHAKE_H */
