/*-------------------------------------------------------------------------
 *
 * pooler.c
 *	  Recognizes the connection pooler behind this session.
 *
 * Recognizing costs time, so only exchanges for which it may matter go event
 * by event: those in which application_name has changed and, once the pooler
 * is known to hand the connection on, all of them.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <unistd.h>

#include "client_key.h"
#include "clock.h"
#include "libpq/libpq-be.h"
#include "miscadmin.h"
#include "pooler.h"
#include "pooler_clients.h"
#include "session_slot.h"
#include "settings.h"
#include "storage/proc.h"
#include "utils/backend_status.h"

/*
 * By default, pgbouncer checks a connection that was unused for a while with
 * an empty query or, before 1.21, with this one.  pgnetlat.pooler_check_query
 * must repeat another server_check_query.
 */
#define USUAL_CHECK_QUERY	"select 1"

/*
 * The sampler should have answered a question after ANSWER_TICKS times the
 * sample_interval.  If nothing is known then, it is asked again after a pause.
 * For a new client, the pause is cut to ASK_NEXT_NS at most, but not dropped:
 * there is room for only one question, and a session that keeps changing its
 * name must leave that room to others.
 */
#define ANSWER_TICKS		2
#define ASK_AGAIN_NS		NS_PER_S
#define ASK_NEXT_NS			(100 * NS_PER_MS)

typedef struct Pooler
{
	PoolerClient client;		/* the client that the connection is used for */
	bool		handed_on;		/* has passed from one client to another */
	bool		released;		/* cleaned up, and not used since */
	bool		owner_sought;
	uint32		owner;			/* system user at the other end of the
								 * connection */
	int64		ask_again;		/* when to ask for this client's round trip;
								 * monotonic */
} Pooler;

static Pooler pooler;

/* Read the client's address from the session's name. */
static void
read_name(const char *name)
{
	ClientKey	key = {0};

	clients_set_name(&key, name, NULL, &pooler.client);
}

/* The session begins. */
void
pooler_attach(const char *name)
{
	memset(&pooler, 0, sizeof(pooler));
	pooler.owner = OWNER_UNKNOWN;
	read_name(name);
}

/* Must each exchange be looked at, and each wait? */
bool
pooler_is_watched(void)
{
	if (pgnetlat_pooler_mode == POOLER_MODE_AUTO)
		return pooler.handed_on || pooler.released;
	return pgnetlat_pooler_mode == POOLER_MODE_TRANSACTION || pooler.released;
}

/* The text of the last statement as pg_stat_activity shows it; or NULL. */
static const char *
last_statement(void)
{
	return pgstat_track_activities && MyBEEntry ? MyBEEntry->st_activity_raw : NULL;
}

static bool
was_cleanup(void)
{
	static const char *const statements[] = {"DISCARD ALL", "RESET ALL"};
	const char *text = last_statement();

	for (size_t i = 0; text && i < lengthof(statements); i++)
	{
		if (pg_strncasecmp(text, statements[i], strlen(statements[i])) == 0)
			return true;
	}
	return false;
}

static bool
was_check(void)
{
	const char *text = last_statement();

	if (text == NULL)
		return false;
	if (pgnetlat_pooler_check_query[0] == '\0')
		return text[0] == '\0' || strcmp(text, USUAL_CHECK_QUERY) == 0;
	/* only the beginning of a long text is known */
	return strncmp(text, pgnetlat_pooler_check_query,
				   pgstat_track_activity_query_size - 1) == 0;
}

/*
 * Was the exchange that has ended the pooler's own?  "in_block": it began or
 * ended in a transaction block; "new_name": the session's name if it has
 * changed in it, or NULL.
 */
bool
pooler_ends_exchange(const char *new_name, bool in_block)
{
	PoolerClient before = pooler.client;

	if (new_name)
		read_name(new_name);
	if (in_block || (before.poolers == 0 && pooler.client.poolers == 0 && !pooler.released))
		return false;
	if (pooler_suffix_same(&before, &pooler.client))
	{
		if (pooler_is_watched() && was_check())
			return true;
		/* the client itself has cleaned up, not the pooler */
		pooler.released = false;
		return false;
	}
	pooler.ask_again = Min(pooler.ask_again, clock_now() + ASK_NEXT_NS);
	pooler.released = pooler.client.poolers == 0 && was_cleanup();
	if (pooler.released)
		pooler.handed_on = false;
	else if (before.poolers > 0 && pooler.client.poolers > 0)
		pooler.handed_on = true;
	return pooler.released || pooler.client.poolers > 0;
}

/* Does the wait that begins belong to the pool? */
bool
pooler_has_wait(char xact_status)
{
	return xact_status == 'I' && pooler_is_watched();
}

/*
 * Find the system user at the other end of our connection; OWNER_UNKNOWN if
 * that is not on this host, or not in this network namespace.
 */
static uint32
find_owner(const TcpEndpoints *ours, int64 now)
{
	TcpEndpoints other = {.family = ours->family,.scope = ours->scope};
	TcpDiag		diag = {.sock = -1};
	TcpInfo		info;
	TcpReply	reply;
	uid_t		uid;
	gid_t		gid;

	if (ours->family == 0)
		return getpeereid(MyProcPort->sock, &uid, &gid) == 0 ? (uint32) uid : OWNER_UNKNOWN;
	memcpy(other.local_address, ours->remote_address, sizeof(other.local_address));
	memcpy(other.remote_address, ours->local_address, sizeof(other.remote_address));
	other.local_port = ours->remote_port;
	other.remote_port = ours->local_port;
	reply = tcpinfo_diag_query(&diag, &other, NULL, now, &info);
	tcpinfo_diag_close(&diag);
	return reply == TCP_REPLY_VALID ? info.owner : OWNER_UNKNOWN;
}

/* Asked once per session, when it is needed. */
uint32
pooler_owner(void)
{
	return pooler.owner;
}

/*
 * The round trip between the pooler at the other end of our connection and its
 * client; 0 if not known.  "again" is set to when to call again, if that is
 * sooner than usual.
 */
int64
pooler_client_rtt(const TcpEndpoints *connection, int64 now, int64 *again)
{
	const PoolerClient *client = &pooler.client;
	int64		measured_at;
	int64		rtt;

	*again = PG_INT64_MAX;
	if (likely(client->poolers == 0) || pgnetlat_rtt_interval < 0)
		return 0;
	if (!pooler.owner_sought)
		pooler.owner = find_owner(connection, now);
	pooler.owner_sought = true;
	if (pooler.owner == OWNER_UNKNOWN)
		return 0;
	rtt = pooler_clients_rtt(MyProc->roleId, pooler.owner, client, connection, now,
							 &measured_at);
	if (client->poolers != 1 || client->port == 0 ||
		(rtt > 0 && now - measured_at < pgnetlat_rtt_interval * NS_PER_MS))
		return rtt;
	if (now >= pooler.ask_again)
	{
		PoolerQuestion question = {.client = *client,.role = MyProc->roleId,
		.owner = pooler.owner,.connection = *connection};

		/* another session's question may be pending */
		if (pooler_clients_ask(&question))
			pooler.ask_again = now + ASK_AGAIN_NS;
		*again = now + ANSWER_TICKS * (pgnetlat_sample_interval * NS_PER_MS);
	}
	else if (rtt == 0)
		*again = pooler.ask_again;
	return rtt;
}
