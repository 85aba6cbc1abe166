/*-------------------------------------------------------------------------
 *
 * pooler_clients.c
 *	  See pooler_clients.h.
 *
 * The kernel finds a connection quickly if it is told both of its ends, of which
 * the suffix names one only.  The other one, the address and port at which the
 * pooler listens, is the same for most of its clients: so a connection that has
 * been found shows the sampler a door, at which it looks for the next ones.  Only
 * where that fails all of the kernel's connections are searched, for no more than
 * a thousandth of a processor's time.
 *
 * The table has one writer, the sampler, and a change count.  Questions are
 * handed over in a short list under a spinlock; if it is full, they are asked
 * again later.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "clock.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "pooler_clients.h"
#include "port/pg_bswap.h"
#include "postmaster/postmaster.h"
#include "seqlock.h"
#include "settings.h"
#include "storage/shmem.h"
#include "storage/spin.h"

/* The table has places in sets; what is in one set replaces the oldest there. */
#define SETS				64
#define PLACES_IN_SET		4

/* So many questions wait for the sampler, which takes some at each tick. */
#define MAX_QUESTIONS		16
#define QUESTIONS_PER_TICK	4

/*
 * After so many times the sample_interval an answer should be there, unless very
 * many sessions are active; who asks once more then asks for nothing new.
 */
#define ANSWER_TICKS		2

/* A path is not what it was so long ago: the kernel's own window. */
#define TRIP_LIFE_NS		(300 * NS_PER_S)

/* Where poolers listen: so many addresses are remembered. */
#define MAX_DOORS			8

/* Of a processor's time, so much at most is spent on searching. */
#define SEARCH_SHARE		1000

/* Hashed and compared as bytes: no padding, and what is unused is zero. */
typedef struct TripKey
{
	int32		client_family;
	int32		pooler_family;	/* 0: it uses a Unix-domain socket */
	uint8		client[16];
	uint8		pooler[16];
} TripKey;

typedef struct Trip
{
	TripKey		key;
	int64		rtt;			/* ns; 0: not known */
	int64		measured_at;	/* that; 0: never */
	int64		asked_at;		/* 0: the place is free */
	TcpBackoff	backoff;		/* of what was not found */
} Trip;

typedef struct PoolerClientsShared
{
	SeqLock		lock;			/* protects trips */
	slock_t		mutex;			/* protects questions */
	volatile int count;
	PoolerQuestion questions[MAX_QUESTIONS];
	Trip		trips[SETS][PLACES_IN_SET];
} PoolerClientsShared;

/* Where a pooler of this user listens, in the kernel's words. */
typedef struct Door
{
	int			family;			/* 0: unused */
	uint8		address[16];
	uint16		port;
	uint32		owner;
	int64		used_at;
} Door;

static PoolerClientsShared *shared = NULL;

/* the sampler's own */
static TcpDiag diag = {.sock = -1};
static Door doors[MAX_DOORS];
static int64 next_search = 0;

Size
pooler_clients_shmem_size(void)
{
	return MAXALIGN(sizeof(PoolerClientsShared));
}

void
pooler_clients_shmem_init(void)
{
	bool		found;

	shared = ShmemInitStruct("pgnetlat pooler clients", pooler_clients_shmem_size(), &found);
	if (found)
		return;
	memset(shared, 0, sizeof(*shared));
	SpinLockInit(&shared->mutex);
}

/* ---------------------------------------------------------------------------
 * The table
 * ---------------------------------------------------------------------------
 */

static void
set_key(TripKey *key, const PoolerClient *client, const TcpEndpoints *connection)
{
	memset(key, 0, sizeof(*key));
	key->client_family = client->family;
	memcpy(key->client, client->address, sizeof(key->client));
	key->pooler_family = connection->family;
	if (connection->family != 0)
		memcpy(key->pooler, connection->remote_address, sizeof(key->pooler));
}

static Trip *
set_of(const TripKey *key)
{
	return shared->trips[hash_bytes((const unsigned char *) key, sizeof(*key)) % SETS];
}

static Trip *
find_in_set(Trip *set, const TripKey *key)
{
	for (int i = 0; i < PLACES_IN_SET; i++)
	{
		if (set[i].asked_at != 0 && memcmp(&set[i].key, key, sizeof(*key)) == 0)
			return &set[i];
	}
	return NULL;
}

/* Copy what is known; false if nobody has asked. */
static bool
look_up(const TripKey *key, Trip *copy)
{
	Trip	   *set = set_of(key);

	for (;;)
	{
		uint32		changecount = seqlock_read_begin(&shared->lock);
		const Trip *trip = find_in_set(set, key);

		if (trip)
			*copy = *trip;
		if (seqlock_read_valid(&shared->lock, changecount))
			return trip != NULL;
		pg_spin_delay();
	}
}

/* The place for a key: its own, a free one, or that which was used last the longest ago. */
static Trip *
place_for(const TripKey *key)
{
	Trip	   *set = set_of(key);
	Trip	   *place = find_in_set(set, key);

	if (place)
		return place;
	place = set;
	for (int i = 1; i < PLACES_IN_SET; i++)
	{
		if (set[i].asked_at < place->asked_at)
			place = &set[i];
	}
	return place;
}

/* The sampler has looked for the connection; rtt < 0: there is none. */
static void
store(const TripKey *key, int64 rtt, int64 now)
{
	Trip	   *place = place_for(key);
	Trip		trip = *place;

	if (trip.asked_at == 0 || memcmp(&trip.key, key, sizeof(*key)) != 0)
	{
		memset(&trip, 0, sizeof(trip));
		trip.key = *key;
	}
	trip.asked_at = now;
	if (rtt < 0)
		tcpstate_was_refused(&trip.backoff, now);
	else
		tcpstate_got_reply(&trip.backoff);
	if (rtt > 0)
	{
		trip.rtt = rtt;
		trip.measured_at = now;
	}
	seqlock_write_begin(&shared->lock);
	*place = trip;
	seqlock_write_end(&shared->lock);
}

static int64
rtt_of(const Trip *trip, int64 now)
{
	return now - trip->measured_at < TRIP_LIFE_NS ? trip->rtt : 0;
}

/*
 * The round trip between the pooler at the other end of a connection and that
 * client, in nanoseconds; 0 if it is not known.
 */
int64
pooler_clients_rtt(const PoolerClient *client, const TcpEndpoints *connection, int64 now)
{
	TripKey		key;
	Trip		trip;

	/* behind several poolers, the nearest one's client is another pooler */
	if (client->poolers != 1 || client->family == 0)
		return 0;
	set_key(&key, client, connection);
	return look_up(&key, &trip) ? rtt_of(&trip, now) : 0;
}

/* ---------------------------------------------------------------------------
 * Questions
 * ---------------------------------------------------------------------------
 */

/* Is a question about the same trip there already?  The mutex is held. */
static bool
is_asked(const TripKey *key)
{
	for (int i = 0; i < shared->count; i++)
	{
		TripKey		other;

		set_key(&other, &shared->questions[i].client, &shared->questions[i].connection);
		if (memcmp(&other, key, sizeof(other)) == 0)
			return true;
	}
	return false;
}

/*
 * Ask for a client's round trip, unless it has been measured within the last
 * "interval" nanoseconds or was not found lately.  Returns when more may be known,
 * or PG_INT64_MAX: there is no need to know more.
 */
int64
pooler_clients_ask(const PoolerQuestion *question, int64 interval, int64 now)
{
	TripKey		key;
	Trip		trip;
	bool		measured = false;

	if (question->client.poolers != 1 || question->client.family == 0 ||
		question->client.port == 0)
		return PG_INT64_MAX;
	set_key(&key, &question->client, &question->connection);
	if (look_up(&key, &trip))
	{
		measured = rtt_of(&trip, now) > 0;
		if (measured && now - trip.measured_at < interval)
			return PG_INT64_MAX;
		if (!tcpstate_may_ask(&trip.backoff, now))
			return measured ? PG_INT64_MAX : trip.backoff.until;
	}
	SpinLockAcquire(&shared->mutex);
	if (shared->count < MAX_QUESTIONS && !is_asked(&key))
		shared->questions[shared->count++] = *question;
	SpinLockRelease(&shared->mutex);
	return measured ? PG_INT64_MAX : now + ANSWER_TICKS * (pgnetlat_sample_interval * NS_PER_MS);
}

/* ---------------------------------------------------------------------------
 * The sampler
 * ---------------------------------------------------------------------------
 */

/* Take some questions, the oldest first; returns how many. */
static int
take_questions(PoolerQuestion *questions)
{
	int			count;

	SpinLockAcquire(&shared->mutex);
	count = Min(shared->count, QUESTIONS_PER_TICK);
	memcpy(questions, shared->questions, count * sizeof(PoolerQuestion));
	shared->count -= count;
	memmove(shared->questions, shared->questions + count,
			shared->count * sizeof(PoolerQuestion));
	SpinLockRelease(&shared->mutex);
	return count;
}

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

	/* so that "there is none" is a reply: see tcpinfo_diag_query() */
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

/* Has the client come through a door that is known? */
static bool
look_behind_doors(const PoolerClient *client, uint32 owner, int64 now, TcpInfo *info)
{
	for (int i = 0; i < MAX_DOORS; i++)
	{
		Door	   *door = &doors[i];
		TcpEndpoints endpoints;

		if (door->family != client->family || door->owner != owner)
			continue;
		memset(&endpoints, 0, sizeof(endpoints));
		endpoints.family = door->family;
		memcpy(endpoints.local_address, door->address, sizeof(endpoints.local_address));
		memcpy(endpoints.remote_address, client->address, sizeof(endpoints.remote_address));
		endpoints.local_port = door->port;
		endpoints.remote_port = pg_hton16((uint16) client->port);
		if (ask_kernel(&endpoints, now, info) && info->owner == owner)
		{
			door->used_at = now;
			return true;
		}
	}
	return false;
}

static void
remember_door(const TcpEndpoints *found, uint32 owner, int64 now)
{
	Door	   *door = doors;

	for (int i = 1; i < MAX_DOORS; i++)
	{
		if (doors[i].used_at < door->used_at)
			door = &doors[i];
	}
	door->family = found->family;
	memcpy(door->address, found->local_address, sizeof(door->address));
	door->port = found->local_port;
	door->owner = owner;
	door->used_at = now;
}

/* Search all connections, if it is time for that. */
static bool
search(const PoolerClient *client, uint32 owner, TcpInfo *info)
{
	TcpSearch	wanted;
	TcpEndpoints found;
	int64		began = clock_now();
	int64		cpu_time = clock_read(CLOCK_PROCESS_CPUTIME_ID);
	TcpReply	reply;

	if (began < next_search)
		return false;
	memset(&wanted, 0, sizeof(wanted));
	wanted.family = client->family;
	memcpy(wanted.remote_address, client->address, sizeof(wanted.remote_address));
	wanted.remote_port = pg_hton16((uint16) client->port);
	wanted.owner = owner;
	/* the server itself has the same owner, perhaps, and other clients */
	wanted.not_local_port = pg_hton16((uint16) PostPortNumber);
	reply = tcpinfo_diag_search(&wanted, began, &found, info);
	cpu_time = clock_read(CLOCK_PROCESS_CPUTIME_ID) - cpu_time;
	next_search = clock_now() + cpu_time * SEARCH_SHARE;
	if (reply != TCP_REPLY_VALID)
		return false;
	remember_door(&found, owner, began);
	diag.replied = true;
	return true;
}

static void
answer(const PoolerQuestion *question, int64 now)
{
	const PoolerClient *client = &question->client;
	TripKey		key;
	TcpInfo		info;
	uint32		owner;
	bool		found;

	set_key(&key, client, &question->connection);
	found = find_owner(question, now, &owner) &&
		(look_behind_doors(client, owner, now, &info) || search(client, owner, &info));
	store(&key, found ? info.rtt : -1, now);
}

/*
 * Answer some of the questions, if there are any.
 */
void
pooler_clients_tick(int64 now)
{
	PoolerQuestion questions[QUESTIONS_PER_TICK];
	int			count;

	if (likely(shared->count == 0))
		return;
	count = take_questions(questions);
	for (int i = 0; i < count; i++)
		answer(&questions[i], now);
}
