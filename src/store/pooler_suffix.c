/*-------------------------------------------------------------------------
 *
 * pooler_suffix.c
 *	  See pooler_suffix.h.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "pooler_suffix.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#define SEPARATOR			" - "
#define SEPARATOR_LENGTH	(sizeof(SEPARATOR) - 1)
#define LOCAL				"unix"
#define LOCAL_LENGTH		(sizeof(LOCAL) - 1)

/* Digits of a port, and of a process ID (a suffix may give more bits than Linux). */
#define PORT_DIGITS			5
#define PID_DIGITS			20
#define MAX_PORT			65535

/* A part of a name, without a zero byte behind it. */
typedef struct Text
{
	const char *at;
	size_t		length;
	bool		cut;			/* there may have been more of it */
} Text;

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static size_t
count_digits(const Text *text)
{
	size_t		count = 0;

	while (count < text->length && is_digit(text->at[count]))
		count++;
	return count;
}

static void
skip(Text *text, size_t length)
{
	text->at += length;
	text->length -= length;
}

static bool
skip_char(Text *text, char c)
{
	if (text->length == 0 || text->at[0] != c)
		return false;
	skip(text, 1);
	return true;
}

/*
 * A colon and a port are all that is left.  Of one that may have been cut off
 * the colon must be there: otherwise what is before may have been cut off as
 * well.
 */
static bool
read_port(Text text, int *port)
{
	int			value = 0;

	if (!skip_char(&text, ':') || count_digits(&text) != text.length ||
		text.length > PORT_DIGITS)
		return false;
	*port = 0;
	if (text.cut)
		return true;
	if (text.length == 0 || text.at[0] == '0')
		return false;
	for (size_t i = 0; i < text.length; i++)
		value = 10 * value + (text.at[i] - '0');
	*port = value;
	return value <= MAX_PORT;
}

/* An address in the one form in which inet_ntop() prints it. */
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

	/* of IPv4, seen through a socket of IPv6: it is the same host */
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

/* TCP: an address, in brackets if it has colons itself; and a port. */
static bool
read_tcp(Text text, PoolerClient *client)
{
	bool		bracket = skip_char(&text, '[');
	const char *address = text.at;
	const char *end = text.length > 0 ? memchr(text.at, bracket ? ']' : ':', text.length) : NULL;
	size_t		length;

	if (end == NULL)
		return false;
	length = end - address;
	skip(&text, length + (bracket ? 1 : 0));
	return read_address(address, length, bracket ? AF_INET6 : AF_INET, client) &&
		read_port(text, &client->port);
}

static bool
is_of_host_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) ||
		c == '.' || c == '-' || c == '_';
}

/*
 * The pooler's Unix-domain socket: a process and its host, if it knows them, and
 * the port.  Where the name was cut off, only its beginning.
 */
static bool
read_local(Text text)
{
	int			port;

	if (text.length < LOCAL_LENGTH || memcmp(text.at, LOCAL, LOCAL_LENGTH) != 0)
		return false;
	skip(&text, LOCAL_LENGTH);
	if (skip_char(&text, '('))
	{
		size_t		digits = count_digits(&text);

		if (digits == 0 || digits > PID_DIGITS)
			return false;
		skip(&text, digits);
		if (!skip_char(&text, '@'))
			return false;
		while (text.length > 0 && is_of_host_name(text.at[0]))
			skip(&text, 1);
		if (text.cut && text.length == 0)
			return true;
		if (!skip_char(&text, ')'))
			return false;
		if (text.cut && text.length == 0)
			return true;
	}
	return read_port(text, &port);
}

/* Where does the last separator begin?  False if there is none. */
static bool
find_separator(const char *name, size_t length, size_t *at)
{
	if (length < SEPARATOR_LENGTH)
		return false;
	for (size_t i = length - SEPARATOR_LENGTH + 1; i-- > 0;)
	{
		if (memcmp(name + i, SEPARATOR, SEPARATOR_LENGTH) == 0)
		{
			*at = i;
			return true;
		}
	}
	return false;
}

/*
 * Read the suffixes of a name, which were cut off if it has "longest" bytes or
 * more.  Returns the length of the name without them; what the first one says
 * is in "client".
 */
size_t
pooler_suffix_read(const char *name, size_t length, size_t longest, PoolerClient *client)
{
	bool		cut = length >= longest;
	size_t		at;
	int			poolers = 0;

	memset(client, 0, sizeof(*client));
	while (find_separator(name, length, &at))
	{
		PoolerClient found = {0};
		Text		text = {name + at + SEPARATOR_LENGTH, length - at - SEPARATOR_LENGTH, cut};

		if (read_local(text))
			memset(&found, 0, sizeof(found));
		else if (!read_tcp(text, &found))
			break;
		*client = found;
		client->poolers = ++poolers;
		length = at;
		cut = false;
	}
	return length;
}

/* Is it the same connection, as far as that is known? */
bool
pooler_suffix_same(const PoolerClient *a, const PoolerClient *b)
{
	return a->poolers == b->poolers && a->family == b->family && a->port == b->port &&
		memcmp(a->address, b->address, sizeof(a->address)) == 0;
}
