/*-------------------------------------------------------------------------
 *
 * pooler_clients.c
 *	  Measures round trips between poolers on this host and their clients.
 *
 * The kernel finds a connection at once if it is given both ends, but the
 * suffix names only one.  The other end is one of the host's addresses, with a
 * port at which the pooler listens.  Both can be listed without scanning all
 * connections.
 *
 * There is room for one question, which a session uses if it is free.  Only
 * the sampler writes to the table of round trips, which has a change count.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <netinet/in.h>

#include "clock.h"
#include "common/hashfn.h"
#include "libpq/ifaddr.h"
#include "pooler_clients.h"
#include "port/pg_bswap.h"
#include "postmaster/postmaster.h"
#include "seqlock.h"

/*
 * The table consists of sets; a new round trip replaces the oldest in its set.
 */
#define SETS				64
#define PLACES_IN_SET		4

/* A round trip expires after this time, the kernel's own window. */
#define TRIP_LIFE_NS		(300 * NS_PER_S)

/* Hashed and compared as bytes: no padding, and unused bytes are zero. */
typedef struct TripKey
{
	Oid			role;
	uint32		owner;			/* of the pooler's end */
	int32		client_family;
	int32		pooler_family;	/* 0: Unix-domain socket */
	uint8		client[16];
	uint8		pooler[16];
} TripKey;

typedef struct Trip
{
	TripKey		key;
	int64		rtt;			/* ns: minimum over the last TRIP_LIFE_NS */
	int64		least_at;		/* when that was measured */
	int64		measured_at;	/* the latest one; 0: unused */
} Trip;

typedef enum QuestionState
{
	QUESTION_NONE,
	QUESTION_BEING_WRITTEN,
	QUESTION_ASKED
} QuestionState;

typedef struct PoolerClientsShared
{
	SeqLock		lock;			/* protects trips */
	Trip		trips[SETS][PLACES_IN_SET];
	pg_atomic_uint32 state;		/* QuestionState */
	PoolerQuestion question;
} PoolerClientsShared;

static PoolerClientsShared *shared = NULL;

/* used by the sampler */
static TcpDiag diag = {.sock = -1};

Size
pooler_clients_shmem_size(void)
{
	return MAXALIGN(sizeof(PoolerClientsShared));
}

void
pooler_clients_shmem_attach(void *memory, bool is_new)
{
	shared = memory;
	if (is_new)
		pg_atomic_init_u32(&shared->state, QUESTION_NONE);
}

static Trip *
set_of(TripKey *key, Oid role, uint32 owner, const PoolerClient *client,
	   const TcpEndpoints *connection)
{
	memset(key, 0, sizeof(*key));
	key->role = role;
	key->owner = owner;
	key->client_family = client->family;
	memcpy(key->client, client->address, sizeof(key->client));
	key->pooler_family = connection->family;
	if (connection->family != 0)
		memcpy(key->pooler, connection->remote_address, sizeof(key->pooler));
	return shared->trips[hash_bytes((const unsigned char *) key, sizeof(*key)) % SETS];
}

/*
 * The round trip, in nanoseconds, between a client and the pooler at the other
 * end of a connection, and when it was measured, unless that is NULL; 0 if not
 * known.
 */
int64
pooler_clients_rtt(Oid role, uint32 owner, const PoolerClient *client,
				   const TcpEndpoints *connection, int64 now, int64 *measured_at)
{
	TripKey		key;
	Trip		set[PLACES_IN_SET];
	uint32		changecount;

	/* behind several poolers, the nearest one's client is a pooler */
	if (client->poolers != 1 || client->family == 0 ||
		!seqlock_copy(&shared->lock, set, set_of(&key, role, owner, client, connection),
					  sizeof(set), &changecount))
		return 0;
	for (int i = 0; i < PLACES_IN_SET; i++)
	{
		if (set[i].measured_at == 0 || now - set[i].measured_at >= TRIP_LIFE_NS ||
			memcmp(&set[i].key, &key, sizeof(key)) != 0)
			continue;
		if (measured_at)
			*measured_at = set[i].measured_at;
		return set[i].rtt;
	}
	return 0;
}

/*
 * Ask for a client's round trip.  Returns false if another question is
 * pending.
 */
bool
pooler_clients_ask(const PoolerQuestion *question)
{
	uint32		none = QUESTION_NONE;

	if (!pg_atomic_compare_exchange_u32(&shared->state, &none, QUESTION_BEING_WRITTEN))
		return false;
	shared->question = *question;
	pg_write_barrier();
	pg_atomic_write_u32(&shared->state, QUESTION_ASKED);
	return true;
}

/* ---------------------------------------------------------------------------
 * The sampler
 * ---------------------------------------------------------------------------
 */

/* The search for a client's connection. */
typedef struct Search
{
	const PoolerClient *client;
	uint32		owner;			/* owner of the pooler's end */
	uint16		port;			/* port at which the pooler listens */
	int64		now;
	int64		rtt;			/* 0: not found yet */
} Search;

static void
try_address(Search *search, int family, const void *address)
{
	const PoolerClient *client = search->client;
	TcpEndpoints endpoints = {.family = family,.local_port = search->port};
	TcpInfo		info;

	if (search->rtt > 0 || family != client->family)
		return;
	memcpy(endpoints.local_address, address, family == AF_INET ? 4 : 16);
	memcpy(endpoints.remote_address, client->address, sizeof(endpoints.remote_address));
	endpoints.remote_port = pg_hton16((uint16) client->port);
	if (tcpinfo_diag_query(&diag, &endpoints, NULL, search->now, &info) == TCP_REPLY_VALID &&
		info.owner == search->owner)
		search->rtt = info.rtt;
}

static void
try_interface(struct sockaddr *address, struct sockaddr *netmask, void *search)
{
	if (address->sa_family == AF_INET)
		try_address(search, AF_INET, &((struct sockaddr_in *) address)->sin_addr);
	else if (address->sa_family == AF_INET6)
		try_address(search, AF_INET6, &((struct sockaddr_in6 *) address)->sin6_addr);
}

/* Find the round trip that a question asks for; 0 if not known. */
static int64
find_rtt(const PoolerQuestion *question, int64 now)
{
	static const uint8 any[16] = {0};
	Search		search = {.client = &question->client,.owner = question->owner,.now = now};
	TcpListeners listeners;

	if (!tcpinfo_diag_listeners(&diag, search.owner, &listeners))
		return 0;
	for (int i = 0; i < listeners.count; i++)
	{
		TcpEndpoints *listener = &listeners.sockets[i];

		search.port = listener->local_port;
		/* the server's own clients are not the pooler's */
		if (search.port == pg_hton16((uint16) PostPortNumber))
			continue;
		if (memcmp(listener->local_address, any, sizeof(any)) == 0)
			(void) pg_foreach_ifaddr(try_interface, &search);
		else
			try_address(&search, listener->family, listener->local_address);
	}
	return search.rtt;
}

/*
 * Store in place of the same key, or else of the oldest in its set.  A connection's first
 * round trips may be longer than those of connections before it, which took the same
 * path: a longer one counts when the least has expired.
 */
static void
store(const PoolerQuestion *question, int64 rtt, int64 now)
{
	Trip		trip = {.rtt = rtt,.least_at = now,.measured_at = now};
	Trip	   *set = set_of(&trip.key, question->role, question->owner, &question->client,
							 &question->connection);
	Trip	   *place = set;

	for (int i = 0; i < PLACES_IN_SET; i++)
	{
		if (memcmp(&set[i].key, &trip.key, sizeof(trip.key)) == 0)
		{
			place = &set[i];
			break;
		}
		if (set[i].measured_at < place->measured_at)
			place = &set[i];
	}
	if (memcmp(&place->key, &trip.key, sizeof(trip.key)) == 0 && place->measured_at != 0 &&
		place->rtt <= rtt && now - place->least_at < TRIP_LIFE_NS)
	{
		trip.rtt = place->rtt;
		trip.least_at = place->least_at;
	}
	seqlock_write_begin(&shared->lock);
	*place = trip;
	seqlock_write_end(&shared->lock);
}

/* Answer the pending question, if there is one. */
void
pooler_clients_tick(int64 now)
{
	int64		rtt;

	if (likely(pg_atomic_read_u32(&shared->state) != QUESTION_ASKED))
		return;
	pg_read_barrier();
	rtt = find_rtt(&shared->question, now);
	if (rtt > 0)
		store(&shared->question, rtt, now);
	pg_memory_barrier();
	pg_atomic_write_u32(&shared->state, QUESTION_NONE);
}
