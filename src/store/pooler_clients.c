/*-------------------------------------------------------------------------
 *
 * pooler_clients.c
 *	  See pooler_clients.h.
 *
 * The kernel finds a connection at once if it is told both of its ends, of which
 * the suffix names one only.  The other one is a port at which the pooler listens,
 * at one of the host's addresses: both can be listed without a look at all
 * connections that there are.
 *
 * Each slot has a place for its session's question, which is handed over by a
 * flag.  The table of round trips has one writer, the sampler, and a change count.
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
#include "port/atomics.h"
#include "port/pg_bswap.h"
#include "postmaster/postmaster.h"
#include "seqlock.h"
#include "session_slot.h"
#include "storage/shmem.h"

/* The table has places in sets; what is in one set replaces the oldest there. */
#define SETS				64
#define PLACES_IN_SET		4

/* A path is not what it was so long ago: the kernel's own window. */
#define TRIP_LIFE_NS		(300 * NS_PER_S)

/* Where a user listens: so many addresses with a port each, known for so long. */
#define MAX_DOORS			32
#define DOORS_LIFE_NS		NS_PER_S

/* Whoever copies from the table tries it so many times, and then does without. */
#define MAX_TRIES			100

/* Hashed and compared as bytes: no padding, and what is unused is zero. */
typedef struct TripKey
{
	Oid			role;
	int32		client_family;
	int32		pooler_family;	/* 0: it uses a Unix-domain socket */
	uint8		client[16];
	uint8		pooler[16];
} TripKey;

typedef struct Trip
{
	TripKey		key;
	int64		rtt;			/* ns */
	int64		measured_at;	/* 0: the place is free */
} Trip;

typedef struct PoolerClientsShared
{
	SeqLock		lock;			/* protects trips */
	Trip		trips[SETS][PLACES_IN_SET];
	pg_atomic_uint32 waiting;	/* so many questions */
	PoolerQuestion questions[FLEXIBLE_ARRAY_MEMBER];
} PoolerClientsShared;

/* Where a system user listens. */
typedef struct Doors
{
	uint32		owner;
	int64		listed_at;		/* 0: never */
	int			count;
	TcpEndpoints door[MAX_DOORS];	/* the local end */
} Doors;

static PoolerClientsShared *shared = NULL;

/*
 * By slot: 1 if there is a question.  Set by the session, cleared by the sampler;
 * in shared memory, behind the questions.
 */
static volatile uint8 *asked = NULL;

/* the sampler's own */
static TcpDiag diag = {.sock = -1};
static Doors doors;
static int	next_slot = 0;

Size
pooler_clients_shmem_size(void)
{
	return add_size(offsetof(PoolerClientsShared, questions),
					add_size(mul_size(slot_count(), sizeof(PoolerQuestion)), slot_count()));
}

void
pooler_clients_shmem_init(void)
{
	bool		found;

	shared = ShmemInitStruct("pgnetlat pooler clients", pooler_clients_shmem_size(), &found);
	if (!found)
	{
		memset(shared, 0, pooler_clients_shmem_size());
		pg_atomic_init_u32(&shared->waiting, 0);
	}
	asked = (uint8 *) &shared->questions[slot_count()];
}

/* ---------------------------------------------------------------------------
 * The table
 * ---------------------------------------------------------------------------
 */

static Trip *
set_of(TripKey *key, Oid role, const PoolerClient *client, const TcpEndpoints *connection)
{
	memset(key, 0, sizeof(*key));
	key->role = role;
	key->client_family = client->family;
	memcpy(key->client, client->address, sizeof(key->client));
	key->pooler_family = connection->family;
	if (connection->family != 0)
		memcpy(key->pooler, connection->remote_address, sizeof(key->pooler));
	return shared->trips[hash_bytes((const unsigned char *) key, sizeof(*key)) % SETS];
}

static bool
copy_trip(const Trip *set, const TripKey *key, Trip *copy)
{
	for (int try = 0; try < MAX_TRIES; try++)
	{
		uint32		changecount = seqlock_read_begin(&shared->lock);
		bool		found = false;

		for (int i = 0; i < PLACES_IN_SET && !found; i++)
		{
			*copy = set[i];
			found = copy->measured_at != 0 && memcmp(&copy->key, key, sizeof(*key)) == 0;
		}
		if (seqlock_read_valid(&shared->lock, changecount))
			return found;
	}
	return false;
}

/*
 * The round trip between the pooler at the other end of a connection and that
 * client of a session, in nanoseconds, and when it was measured; 0 if it is not
 * known.
 */
int64
pooler_clients_rtt(Oid role, const PoolerClient *client, const TcpEndpoints *connection,
				   int64 now, int64 *measured_at)
{
	TripKey		key;
	Trip		trip;

	/* behind several poolers, the nearest one's client is another pooler */
	if (client->poolers != 1 || client->family == 0 ||
		!copy_trip(set_of(&key, role, client, connection), &key, &trip) ||
		now - trip.measured_at >= TRIP_LIFE_NS)
		return 0;
	if (measured_at)
		*measured_at = trip.measured_at;
	return trip.rtt;
}

/* In the place of the same key, or else of the oldest in its set. */
static void
store(const PoolerQuestion *question, int64 rtt, int64 now)
{
	Trip		trip = {.rtt = rtt,.measured_at = now};
	Trip	   *set = set_of(&trip.key, question->role, &question->client, &question->connection);
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
	seqlock_write_begin(&shared->lock);
	*place = trip;
	seqlock_write_end(&shared->lock);
}

/* ---------------------------------------------------------------------------
 * Questions
 * ---------------------------------------------------------------------------
 */

/*
 * Does this session's question, or that of the one before it in its slot, wait for
 * its answer?
 */
bool
pooler_clients_is_asked(void)
{
	return asked[slot_my_index()] != 0;
}

/*
 * Ask for a client's round trip; no question waits.
 */
void
pooler_clients_ask(const PoolerQuestion *question)
{
	shared->questions[slot_my_index()] = *question;
	pg_write_barrier();
	asked[slot_my_index()] = 1;
	pg_atomic_fetch_add_u32(&shared->waiting, 1);
}

/* ---------------------------------------------------------------------------
 * The sampler
 * ---------------------------------------------------------------------------
 */

/* The kernel's reply about a connection of somebody's. */
static bool
ask_kernel(const TcpEndpoints *endpoints, int64 now, TcpInfo *info)
{
	static const TcpInfo nothing = {.measured_at = 0};

	return tcpinfo_diag_query(&diag, endpoints, &nothing, now, info) == TCP_REPLY_VALID;
}

/*
 * To whom does the other end of the connection belong?  False if it is not on
 * this host, or not in this network namespace.
 */
static bool
find_owner(const PoolerQuestion *question, int64 now, uint32 *owner)
{
	const TcpEndpoints *ours = &question->connection;
	TcpEndpoints other;
	TcpInfo		info;

	*owner = question->owner;
	if (ours->family == 0)
		return question->owner_known;

	/* of this one there is a reply, so that "there is none" is one as well */
	if (!diag.replied && !ask_kernel(ours, now, &info))
		return false;
	memset(&other, 0, sizeof(other));
	other.family = ours->family;
	memcpy(other.local_address, ours->remote_address, sizeof(other.local_address));
	memcpy(other.remote_address, ours->local_address, sizeof(other.remote_address));
	other.local_port = ours->remote_port;
	other.remote_port = ours->local_port;
	other.scope = ours->scope;
	if (!ask_kernel(&other, now, &info))
		return false;
	*owner = info.owner;
	return true;
}

static void
add_door(int family, const void *address, uint16 port)
{
	TcpEndpoints *door = &doors.door[doors.count];

	if (doors.count == MAX_DOORS)
		return;
	memset(door, 0, sizeof(*door));
	door->family = family;
	memcpy(door->local_address, address, family == AF_INET ? 4 : 16);
	door->local_port = port;
	doors.count++;
}

/* A socket that listens at any address does so at this one of the host's. */
static void
add_door_at(struct sockaddr *address, struct sockaddr *netmask, void *listener)
{
	const TcpEndpoints *socket = listener;

	if (address->sa_family == AF_INET)
		add_door(AF_INET, &((struct sockaddr_in *) address)->sin_addr, socket->local_port);
	else if (address->sa_family == AF_INET6 && socket->family == AF_INET6)
		add_door(AF_INET6, &((struct sockaddr_in6 *) address)->sin6_addr, socket->local_port);
}

/* Where does that user listen?  Not the server itself, which has other clients. */
static void
list_doors(uint32 owner, int64 now)
{
	static const uint8 any[16] = {0};
	TcpListeners listeners;

	if (doors.owner == owner && now - doors.listed_at < DOORS_LIFE_NS)
		return;
	doors.owner = owner;
	doors.listed_at = now;
	doors.count = 0;
	if (!tcpinfo_diag_listeners(&diag, owner, &listeners))
		return;
	for (int i = 0; i < listeners.count; i++)
	{
		TcpEndpoints *socket = &listeners.sockets[i];

		if (socket->local_port == pg_hton16((uint16) PostPortNumber))
			continue;
		if (memcmp(socket->local_address, any, sizeof(any)) == 0)
			(void) pg_foreach_ifaddr(add_door_at, socket);
		else
			add_door(socket->family, socket->local_address, socket->local_port);
	}
}

static void
answer(const PoolerQuestion *question, int64 now)
{
	const PoolerClient *client = &question->client;
	uint32		owner;

	if (!find_owner(question, now, &owner))
		return;
	list_doors(owner, now);
	for (int i = 0; i < doors.count; i++)
	{
		TcpEndpoints endpoints = doors.door[i];
		TcpInfo		info;

		if (endpoints.family != client->family)
			continue;
		memcpy(endpoints.remote_address, client->address, sizeof(endpoints.remote_address));
		endpoints.remote_port = pg_hton16((uint16) client->port);
		if (!ask_kernel(&endpoints, now, &info) || info.owner != owner)
			continue;
		if (info.rtt > 0)
			store(question, info.rtt, now);
		return;
	}
}

/*
 * Answer a question, if there is one: of one slot after the other, so that nobody
 * who asks often keeps others waiting.
 */
void
pooler_clients_tick(int64 now)
{
	PoolerQuestion question;

	if (likely(pg_atomic_read_u32(&shared->waiting) == 0))
		return;
	for (int i = 0; i < slot_count(); i++)
	{
		next_slot = (next_slot + 1) % slot_count();
		if (asked[next_slot] != 0)
			break;
	}
	if (asked[next_slot] == 0)
		return;
	pg_read_barrier();
	question = shared->questions[next_slot];
	answer(&question, now);
	/* behind what was stored */
	pg_memory_barrier();
	asked[next_slot] = 0;
	pg_atomic_fetch_sub_u32(&shared->waiting, 1);
}
