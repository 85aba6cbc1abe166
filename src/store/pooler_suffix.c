/*-------------------------------------------------------------------------
 *
 * pooler_suffix.c
 *	  Parses the suffix that a pooler appends to application_name.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "pooler_suffix.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define SEPARATOR			" - "
#define SEPARATOR_LENGTH	(sizeof(SEPARATOR) - 1)
#define LOCAL				"unix"
#define LOCAL_LENGTH		(sizeof(LOCAL) - 1)

#define DIGITS				"0123456789"

#define PORT_DIGITS			5
#define MAX_PORT			65535

/* No application_name is longer, including its zero byte. */
#define LONGEST_NAME		256

/*
 * Read a colon and a port, the end of a suffix.  Even if the suffix may have
 * been cut off the colon must be there: otherwise the address may be
 * incomplete.
 */
static bool
read_port(const char *text, bool cut, int *port)
{
	size_t		digits;

	if (*text++ != ':')
		return false;
	digits = strspn(text, DIGITS);
	if (text[digits] != '\0' || digits > PORT_DIGITS)
		return false;
	*port = 0;
	if (cut)
		return true;
	if (digits == 0 || text[0] == '0')
		return false;
	*port = atoi(text);
	return *port <= MAX_PORT;
}

/* Read an address, exactly as inet_ntop() prints it. */
static bool
read_address(const char *at, size_t length, int family, PoolerClient *client)
{
	static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
	char		given[INET6_ADDRSTRLEN];
	char		printed[INET6_ADDRSTRLEN];
	uint8_t		address[16] = {0};

	if (length >= sizeof(given))
		return false;
	memcpy(given, at, length);
	given[length] = '\0';
	if (strlen(given) != length || inet_pton(family, given, address) != 1 ||
		inet_ntop(family, address, printed, sizeof(printed)) == NULL ||
		strcmp(given, printed) != 0)
		return false;

	/* an IPv4 address on an IPv6 socket is the same host */
	if (family == AF_INET6 && memcmp(address, mapped, sizeof(mapped)) == 0)
	{
		family = AF_INET;
		memmove(address, address + sizeof(mapped), 4);
		memset(address + 4, 0, sizeof(address) - 4);
	}
	client->family = family;
	memcpy(client->address, address, sizeof(address));
	return true;
}

/* Read a TCP client: an address, in brackets if it has colons, and a port. */
static bool
read_tcp(const char *text, bool cut, PoolerClient *client)
{
	bool		bracket = text[0] == '[';
	const char *address = text + bracket;
	const char *end = strchr(address, bracket ? ']' : ':');

	return end != NULL &&
		read_address(address, (size_t) (end - address), bracket ? AF_INET6 : AF_INET, client) &&
		read_port(end + bracket, cut, &client->port);
}

/*
 * Read a client on the pooler's Unix-domain socket: a process and its host, if
 * the pooler knows them, and the port.  A name that was cut off has only the
 * beginning.
 */
static bool
read_local(const char *text, bool cut)
{
	int			port;

	if (strncmp(text, LOCAL, LOCAL_LENGTH) != 0)
		return false;
	text += LOCAL_LENGTH;
	if (*text == '(')
	{
		text += strcspn(text, ")");
		text += *text == ')';
		if (cut && *text == '\0')
			return true;
	}
	return read_port(text, cut, &port);
}

/*
 * Read the suffixes of a name, which was cut off if it has "longest" bytes or
 * more.  Returns the length of the name without them, and sets "client" from
 * the first one.
 */
size_t
pooler_suffix_read(const char *name, size_t length, size_t longest, PoolerClient *client)
{
	bool		cut = length >= longest;
	char		rest[LONGEST_NAME];
	int			poolers = 0;

	memset(client, 0, sizeof(*client));
	if (length >= sizeof(rest) || memchr(name, '\0', length) != NULL)
		return length;
	memcpy(rest, name, length);
	rest[length] = '\0';
	for (;;)
	{
		PoolerClient found = {0};
		char	   *last = NULL;

		for (char *at = rest; (at = strstr(at, SEPARATOR)) != NULL; at++)
			last = at;
		if (last == NULL || (!read_local(last + SEPARATOR_LENGTH, cut) &&
							 !read_tcp(last + SEPARATOR_LENGTH, cut, &found)))
			return strlen(rest);
		*last = '\0';
		*client = found;
		client->poolers = ++poolers;
		cut = false;
	}
}

/* Is this the same connection, as far as is known? */
bool
pooler_suffix_same(const PoolerClient *a, const PoolerClient *b)
{
	return a->poolers == b->poolers && a->family == b->family && a->port == b->port &&
		memcmp(a->address, b->address, sizeof(a->address)) == 0;
}
