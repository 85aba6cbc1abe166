/*-------------------------------------------------------------------------
 *
 * client_key.h
 *	  Which client group this session belongs to.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_CLIENT_KEY_H
#define PGNETLAT_CLIENT_KEY_H

#include "clients.h"

extern void client_key_of_session(ClientKey *key, ClientPooler *pooler);

#endif							/* PGNETLAT_CLIENT_KEY_H */
