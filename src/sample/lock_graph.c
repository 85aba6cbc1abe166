/*-------------------------------------------------------------------------
 *
 * lock_graph.c
 *	  See lock_graph.h.
 *
 * Core's GetBlockerStatusData(), on which pg_blocking_pids() is built as well,
 * tells about one process: who holds, and who awaits, the lock that it waits
 * for.  That holds for all others that wait for the same lock, so there is one
 * question for each lock, not for each process that waits.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/twophase.h"
#include "compat.h"
#include "lock_graph.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "session_slot.h"
#include "storage/lock.h"
#include "storage/procarray.h"
#include "utils/memutils.h"

/* Questions to the lock manager in a round, and how long a chain may be. */
#define ROUND_QUESTIONS			64
#define CHAIN_MAX				256

/* Who is behind whom, in the lock manager. */
typedef struct LockEdge
{
	int			pid;			/* must be first */
	bool		blocked;
	bool		advisory;		/* by a lock that may outlive a transaction */
	int			blocker;		/* leader of its lock group; 0: see below */
	int			vxid_backend;	/* of the prepared transaction that it is
								 * behind */
	LocalTransactionId vxid_local;
} LockEdge;

static HTAB *edges = NULL;		/* what is known in this round */
static int	questions = 0;		/* to the lock manager, so far */
static LockRoot latest;			/* that was found; its pid is 0 if there is
								 * none */
static MemoryContext replies = NULL;	/* of the lock manager, one at a time */

/*
 * From now on what was known is forgotten.  What is found out is kept in a memory
 * context, which must last as long as the round.
 */
void
lock_graph_begin_round(MemoryContext context)
{
	HASHCTL		info;

	memset(&info, 0, sizeof(info));
	info.keysize = sizeof(int);
	info.entrysize = sizeof(LockEdge);
	info.hcxt = context;
	edges = hash_create("pgnetlat lock waits", 64, &info,
						HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	questions = 0;
	latest.holder.pid = 0;
	replies = AllocSetContextCreate(context, "pgnetlat lock manager",
									ALLOCSET_DEFAULT_SIZES);
}

/* Among the locks on one object: does one hold up what another waits for? */
static bool
conflicts(const LockInstanceData *waiter, LOCKMASK mask)
{
	LockMethod	method = GetLockTagsMethodTable(&waiter->locktag);

	return (method->conflictTab[waiter->waitLockMode] & mask) != 0;
}

/* Who holds a lock, of all who have to do with it. */
typedef struct LockHolders
{
	const LockInstanceData *locks;
	int			count;
	const LockInstanceData *first[MAX_LOCKMODES];	/* found for who waits in
													 * that mode; NULL: none
													 * yet */
} LockHolders;

/*
 * Whom is one of those who wait for a lock behind?  The first in the list of
 * those who hold it in a conflicting way, who got it first; or else one who
 * waits for it in such a way, and longest.  Most often that is the same for all
 * who wait in the same mode, and they are many.
 */
static const LockInstanceData *
find_blocker(LockHolders *holders, const LockInstanceData *waiter)
{
	const LockInstanceData *ahead = NULL;
	const LockInstanceData *first = holders->first[waiter->waitLockMode];
	bool		first_of_all = true;

	if (first && (first->leaderPid != waiter->leaderPid || first->pid == 0))
		return first;
	for (int i = 0; i < holders->count; i++)
	{
		const LockInstanceData *other = &holders->locks[i];

		if (other == waiter || (other->leaderPid == waiter->leaderPid && other->pid != 0))
		{
			first_of_all = first_of_all && !conflicts(waiter, other->holdMask);
			continue;
		}
		if (conflicts(waiter, other->holdMask))
		{
			if (first_of_all)
				holders->first[waiter->waitLockMode] = other;
			return other;
		}
		if (other->waitLockMode != NoLock &&
			conflicts(waiter, LOCKBIT_ON(other->waitLockMode)) &&
			other->waitStart < waiter->waitStart &&
			(ahead == NULL || other->waitStart < ahead->waitStart))
			ahead = other;
	}
	return ahead;
}

static LockEdge *
add_edge(int pid)
{
	bool		found;
	LockEdge   *edge = hash_search(edges, &pid, HASH_ENTER, &found);

	if (!found)
		memset((char *) edge + sizeof(edge->pid), 0, sizeof(*edge) - sizeof(edge->pid));
	return edge;
}

static void
set_edge(LockEdge *edge, const LockInstanceData *blocker)
{
	if (blocker == NULL || edge->blocked)
		return;
	edge->blocked = true;
	edge->advisory = blocker->locktag.locktag_type == LOCKTAG_ADVISORY;
	edge->blocker = blocker->leaderPid;
	compat_lock_vxid(blocker, &edge->vxid_backend, &edge->vxid_local);
}

/*
 * Ask the lock manager about one process, and note down what that says of
 * others.  What a member of its lock group waits for, it waits for.
 */
static void
ask_lock_manager(int pid)
{
	MemoryContext old = MemoryContextSwitchTo(replies);
	BlockedProcsData *data = GetBlockerStatusData(pid);

	questions++;
	add_edge(pid);
	for (int i = 0; i < data->nprocs; i++)
	{
		const BlockedProcData *proc = &data->procs[i];
		LockHolders holders = {
			.locks = &data->locks[proc->first_lock],
			.count = proc->num_locks
		};

		for (int j = 0; j < proc->num_locks; j++)
		{
			const LockInstanceData *waiter = &holders.locks[j];

			if (waiter->waitLockMode != NoLock && waiter->pid != 0)
				set_edge(add_edge(waiter->leaderPid), find_blocker(&holders, waiter));
		}
	}
	MemoryContextSwitchTo(old);
	MemoryContextReset(replies);
}

/* NULL if there have been too many questions. */
static const LockEdge *
edge_of(int pid)
{
	const LockEdge *edge = hash_search(edges, &pid, HASH_FIND, NULL);

	if (edge)
		return edge;
	if (questions >= ROUND_QUESTIONS)
		return NULL;
	ask_lock_manager(pid);
	return hash_search(edges, &pid, HASH_FIND, NULL);
}

/*
 * From a process that waits to the root: the last edge of the chain.  NULL if it
 * does not wait any more, or nobody can tell (in a deadlock there is no root).
 */
static const LockEdge *
find_root(int pid)
{
	const LockEdge *last = NULL;

	for (int i = 0; i < CHAIN_MAX; i++)
	{
		const LockEdge *edge = edge_of(pid);

		if (edge == NULL)
			return NULL;
		if (!edge->blocked)
			return last;
		last = edge;
		pid = edge->blocker;
		if (pid == 0)
			return last;
	}
	return NULL;
}

/* A prepared transaction has a PGPROC of its own, which says whose it is. */
static void
describe_prepared(const LockEdge *edge, BlockerKey *key)
{
	strlcpy(key->backend_type, "prepared transaction", NAMEDATALEN);
	for (int i = 0; i < max_prepared_xacts; i++)
	{
		const PGPROC *proc = &PreparedXactProcs[i];

		if (proc->pid == 0 && compat_proc_has_vxid(proc, edge->vxid_backend, edge->vxid_local))
		{
			key->client.datid = proc->databaseId;
			key->client.userid = proc->roleId;
		}
	}
}

/* Any process that is not a session of ours, by what core's status says. */
static void
describe_process(int pid, BlockerKey *key)
{
	int			count = pgstat_fetch_stat_numbackends();

	strlcpy(key->backend_type, "unknown", NAMEDATALEN);
	for (int i = 0; i < count; i++)
	{
		const PgBackendStatus *status = compat_local_beentry(i);
		const char *type = NULL;

		if (status == NULL || status->st_procpid != pid)
			continue;
		if (status->st_backendType == B_BG_WORKER)
			type = GetBackgroundWorkerTypeByPid(pid);
		if (type == NULL)
			type = GetBackendTypeDesc(status->st_backendType);
		strlcpy(key->backend_type, type, NAMEDATALEN);
		key->client.datid = status->st_databaseid;
		key->client.userid = status->st_userid;
		clients_set_address(&key->client, &status->st_clientaddr.addr);
		if (status->st_appname)
			clients_set_name(&key->client, status->st_appname, NULL, NULL);
		break;
	}
	pgstat_clear_backend_activity_snapshot();
}

static PGPROC *
find_proc(int pid)
{
	PGPROC	   *proc = BackendPidGetProc(pid);

	return proc ? proc : AuxiliaryPidGetProc(pid);
}

/*
 * Whom does a process wait for?  False if it does not wait any more, or nobody
 * can tell.
 */
bool
lock_graph_root(int pid, LockRoot *root)
{
	const LockEdge *edge = find_root(pid);
	LockHolder *holder = &root->holder;

	if (edge == NULL)
		return false;
	if (edge->blocker != 0 && edge->blocker == latest.holder.pid)
	{
		*root = latest;
		root->advisory = edge->advisory;
		return true;
	}
	memset(root, 0, sizeof(*root));
	root->advisory = edge->advisory;
	holder->pid = edge->blocker;
	holder->slot = -1;
	if (holder->pid == 0)
	{
		describe_prepared(edge, &holder->key);
		return true;
	}
	holder->slot = slot_find_pid(holder->pid);
	if (holder->slot >= 0)
	{
		holder->session = slot_get(holder->slot)->published.session;
		root->proc = slot_get(holder->slot)->published.proc;
	}
	else
	{
		describe_process(holder->pid, &holder->key);
		root->proc = find_proc(holder->pid);
	}
	if (root->proc == NULL)
		return false;
	root->lxid = compat_lxid(root->proc);
	latest = *root;
	return true;
}
