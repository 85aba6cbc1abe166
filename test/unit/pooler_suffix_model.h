/*
 * pooler_suffix_model.h: invariants for any application_name; for
 * test_pooler_suffix.c and fuzz_pooler_suffix.c.
 */
#ifndef POOLER_SUFFIX_MODEL_H
#define POOLER_SUFFIX_MODEL_H

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "pooler_suffix.h"

#define MODEL_LONGEST	63

/* Print what pgbouncer would have appended for a TCP client. */
static int
model_print(const PoolerClient *client, char *text, size_t size)
{
	char		address[INET6_ADDRSTRLEN];

	inet_ntop(client->family, client->address, address, sizeof(address));
	return snprintf(text, size, client->family == AF_INET6 ? " - [%s]:%d" : " - %s:%d",
					address, client->port);
}

static bool
model_is_zero(const void *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++)
	{
		if (((const char *) bytes)[i] != 0)
			return false;
	}
	return true;
}

/* Read a name.  Returns NULL, or what is wrong. */
static const char *
model_read(const char *name, size_t length)
{
	PoolerClient client;
	size_t		rest = pooler_suffix_read(name, length, MODEL_LONGEST, &client);
	size_t		used;
	char		text[80];
	int			printed;

	if (client.poolers == 0)
		return rest == length && model_is_zero(&client, sizeof(client)) ? NULL :
			"no suffix, but something was read";
	if (rest >= length || memcmp(name + rest, " - ", 3) != 0)
		return "the suffix does not begin where the name ends";
	if (client.port < 0 || client.port > 65535)
		return "no such port";
	if (client.family != AF_INET && client.family != AF_INET6)
		return client.family == 0 && client.port == 0 &&
			model_is_zero(client.address, sizeof(client.address)) ? NULL :
			"a Unix-domain socket with an address";
	if (client.family == AF_INET && !model_is_zero(client.address + 4, 12))
		return "an address longer than it is";

	/* the suffix is exactly what a pooler prints for that, or a part of it */
	printed = model_print(&client, text, sizeof(text));
	used = length - rest;
	if (client.port == 0)
		return length >= MODEL_LONGEST && printed > 1 ? NULL : "a suffix without port";
	if (client.family == AF_INET && memcmp(name + rest, " - [", 4) == 0)
		return NULL;			/* printed as one of IPv6 */
	if (used < (size_t) printed || memcmp(name + rest, text, printed) != 0)
		return "the suffix says something else";
	if (used > (size_t) printed && (client.poolers < 2 || memcmp(name + rest + printed, " - ", 3) != 0))
		return "there is more than the suffix";
	return NULL;
}

#endif
