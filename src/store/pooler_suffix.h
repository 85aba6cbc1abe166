/*-------------------------------------------------------------------------
 *
 * pooler_suffix.h
 *	  Reads what a connection pooler says of its client in application_name.
 *
 * With application_name_add_host, pgbouncer appends each client's address to
 * its application_name (pga_details() in its util.c):
 *
 *		shop - 10.0.0.7:51034
 *		shop - [2001:db8::7]:51034
 *		shop - unix:6432						over its Unix-domain socket; the
 *		shop - unix(4711@some.host):6432		port is the pooler's own
 *
 * A client without a name is "app".  The server cuts names off after
 * NAMEDATALEN - 1 bytes, perhaps in the suffix.  Behind several poolers there
 * are several suffixes; the first one is the client's.
 *
 * Any client may choose such a name.  So it is parsed strictly, and used only
 * for labels and for the session's own account.
 *
 * Plain C without server headers, so that it can be tested and fuzzed alone.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_POOLER_SUFFIX_H
#define PGNETLAT_POOLER_SUFFIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A client behind a pooler.  Unused bytes are zero. */
typedef struct PoolerClient
{
	int			poolers;		/* number of poolers; 0: no suffix */
	int			family;			/* AF_INET, AF_INET6; 0: Unix-domain socket */
	uint8_t		address[16];
	int			port;			/* 0: not known because the name was cut off,
								 * or not TCP */
} PoolerClient;

extern size_t pooler_suffix_read(const char *name, size_t length, size_t longest,
								 PoolerClient *client);
extern bool pooler_suffix_same(const PoolerClient *a, const PoolerClient *b);

#endif							/* PGNETLAT_POOLER_SUFFIX_H */
