/*-------------------------------------------------------------------------
 *
 * compat.h
 *	  Gives older major versions the interfaces of the newest one.
 *
 * No other file tests PG_VERSION_NUM; persist.c only stores it.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_COMPAT_H
#define PGNETLAT_COMPAT_H

#if PG_VERSION_NUM < 150000
#error "pgnetlat requires PostgreSQL 15 or later"
#endif

#if SIZEOF_VOID_P < 8
#error "pgnetlat requires a platform with 64-bit words"
#endif

#if PG_VERSION_NUM >= 170000
#include "storage/dsm_registry.h"
#endif

#include "fmgr.h"
#include "libpq/libpq.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "tcop/dest.h"
#include "utils/backend_status.h"
#include "utils/wait_event.h"

/* 17 renamed PGPROC's number, and pq_buffer_has_data() became a count. */
#if PG_VERSION_NUM >= 170000
#include "storage/procnumber.h"
#else
#define MyProcNumber (MyProc->pgprocno)
#define pq_buffer_remaining_data() ((ssize_t) pq_buffer_has_data())
#endif

/*
 * Does core's receive buffer, which is not empty, hold more than "bytes"
 * bytes?  Before 17 this cannot be known: false.
 */
static inline bool
compat_buffer_has_more(ssize_t bytes)
{
#if PG_VERSION_NUM >= 170000
	return pq_buffer_remaining_data() > bytes;
#else
	return false;
#endif
}

/* 18 lets extensions have options of EXPLAIN; 19 lets them check a setting's, too. */
#define COMPAT_HAS_EXPLAIN_OPTIONS	(PG_VERSION_NUM >= 180000)
#if PG_VERSION_NUM >= 190000
#define compat_register_explain_option(name, handler) \
	RegisterExtensionExplainOption(name, handler, GUCCheckBooleanExplainOption)
#else
#define compat_register_explain_option(name, handler) \
	RegisterExtensionExplainOption(name, handler)
#endif

/* The size of a result that EXPLAIN (SERIALIZE) has made; 0 of others, and where no option shows it. */
#if COMPAT_HAS_EXPLAIN_OPTIONS
#include "commands/explain_dr.h"
#include "executor/executor.h"
#endif

static inline uint64
compat_serialized_bytes(DestReceiver *dest)
{
#if COMPAT_HAS_EXPLAIN_OPTIONS
	if (dest->mydest == DestExplainSerialize)
		return GetSerializationMetrics(dest).bytesSent;
#endif
	return 0;
}

/* 16 moved EnableQueryId(). */
#if PG_VERSION_NUM >= 160000
#include "nodes/queryjumble.h"
#else
#include "utils/queryjumble.h"
#endif

/* 16 moved the macros for variable-length types out of postgres.h. */
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

/* 17 added named wait events of extensions. */
#if PG_VERSION_NUM < 170000
static inline uint32
WaitEventExtensionNew(const char *wait_event_name)
{
	return PG_WAIT_EXTENSION;
}
#endif

/*
 * Does a backend with this wait event wait for a standby?  17 lets logical
 * decoding wait for one, and 19 has WAIT FOR LSN.
 */
static inline bool
compat_waits_for_standby(uint32 wait_event)
{
	switch (wait_event)
	{
		case WAIT_EVENT_SYNC_REP:
#if PG_VERSION_NUM >= 170000
		case WAIT_EVENT_WAIT_FOR_STANDBY_CONFIRMATION:
#endif
#if PG_VERSION_NUM >= 190000
		case WAIT_EVENT_WAIT_FOR_WAL_FLUSH:
		case WAIT_EVENT_WAIT_FOR_WAL_REPLAY:
		case WAIT_EVENT_WAIT_FOR_WAL_WRITE:
#endif
			return true;
		default:
			return false;
	}
}

/*
 * 16 exports only what is marked, and marks what SQL calls.  We are built with
 * -fvisibility=hidden on every major, so 15 needs the same marks.
 */
#if PG_VERSION_NUM < 160000 && defined(__GNUC__)
#undef PGDLLEXPORT
#define PGDLLEXPORT __attribute__((visibility("default")))

#undef PG_FUNCTION_INFO_V1
#define PG_FUNCTION_INFO_V1(function) \
	extern PGDLLEXPORT Datum function(PG_FUNCTION_ARGS); \
	extern PGDLLEXPORT const Pg_finfo_record *CppConcat(pg_finfo_, function)(void); \
	const Pg_finfo_record * \
	CppConcat(pg_finfo_, function)(void) \
	{ \
		static const Pg_finfo_record info = {1}; \
		return &info; \
	} \
	extern int	no_such_variable
#endif

/* 18 added a name and a version to the magic block. */
#if PG_VERSION_NUM < 180000
#define PG_MODULE_MAGIC_EXT(...) PG_MODULE_MAGIC
#endif

/* 18 dropped execute_once. */
#if PG_VERSION_NUM >= 180000
#define EXECUTOR_RUN_PARAMS \
	QueryDesc *queryDesc, ScanDirection direction, uint64 count
#define EXECUTOR_RUN_ARGS queryDesc, direction, count
#else
#define EXECUTOR_RUN_PARAMS \
	QueryDesc *queryDesc, ScanDirection direction, uint64 count, bool execute_once
#define EXECUTOR_RUN_ARGS queryDesc, direction, count, execute_once
#endif

/* 19 added the EXPLAIN state. */
#if PG_VERSION_NUM >= 190000
#define PLANNER_PARAMS \
	Query *parse, const char *query_string, int cursorOptions, \
	ParamListInfo boundParams, struct ExplainState *es
#define PLANNER_ARGS parse, query_string, cursorOptions, boundParams, es
#else
#define PLANNER_PARAMS \
	Query *parse, const char *query_string, int cursorOptions, \
	ParamListInfo boundParams
#define PLANNER_ARGS parse, query_string, cursorOptions, boundParams
#endif

#define PROCESS_UTILITY_PARAMS \
	PlannedStmt *pstmt, const char *queryString, bool readOnlyTree, \
	ProcessUtilityContext context, ParamListInfo params, \
	QueryEnvironment *queryEnv, DestReceiver *dest, QueryCompletion *qc
#define PROCESS_UTILITY_ARGS \
	pstmt, queryString, readOnlyTree, context, params, queryEnv, dest, qc

/*
 * 17 moved the two parts of a virtual transaction identifier into one struct.
 */
#if PG_VERSION_NUM >= 170000
#define COMPAT_LXID(proc)			((proc)->vxid.lxid)
#define COMPAT_PROC_BACKEND(proc)	((proc)->vxid.procNumber)
#define COMPAT_LOCK_LXID(lock)		((lock)->vxid.localTransactionId)
#define COMPAT_LOCK_BACKEND(lock)	((lock)->vxid.procNumber)
#else
#define COMPAT_LXID(proc)			((proc)->lxid)
#define COMPAT_PROC_BACKEND(proc)	((proc)->backendId)
#define COMPAT_LOCK_LXID(lock)		((lock)->lxid)
#define COMPAT_LOCK_BACKEND(lock)	((lock)->backend)
#endif

/* The transaction that a process is in; it may end at any time. */
static inline LocalTransactionId
compat_lxid(const PGPROC *proc)
{
	return COMPAT_LXID((const volatile PGPROC *) proc);
}

static inline bool
compat_holds_lock(const PGPROC *proc, const LockInstanceData *lock)
{
	return COMPAT_PROC_BACKEND(proc) == COMPAT_LOCK_BACKEND(lock) &&
		COMPAT_LXID(proc) == COMPAT_LOCK_LXID(lock);
}

/* Core's array of backend status entries, which 17 indexes differently. */
static inline volatile PgBackendStatus *
compat_backend_status(void)
{
#if PG_VERSION_NUM >= 170000
	return MyBEEntry - MyProcNumber;
#else
	return MyBEEntry - (MyBackendId - 1);
#endif
}

/* A client backend in core's list of backends, which begins with 1; NULL: none. */
static inline PgBackendStatus *
compat_client_backend(int number, int *slot)
{
#if PG_VERSION_NUM >= 170000
	LocalPgBackendStatus *local = pgstat_get_local_beentry_by_index(number);

	if (local == NULL || local->backendStatus.st_backendType != B_BACKEND)
		return NULL;
	*slot = local->proc_number;
	return &local->backendStatus;
#else
	return NULL;
#endif
}

/* 17 added shared memory that any process can get while the server runs. */
#define COMPAT_HAS_NAMED_MEMORY		(PG_VERSION_NUM >= 170000)

#if PG_VERSION_NUM >= 190000
#define BEGIN_MEMORY_PARAMS			void *begun, void *arg
#else
#define BEGIN_MEMORY_PARAMS			void *begun
#endif

static inline void *
compat_named_memory(const char *name, Size size, void (*begin) (BEGIN_MEMORY_PARAMS))
{
#if PG_VERSION_NUM >= 190000
	bool		found;

	return GetNamedDSMSegment(name, size, begin, &found, NULL);
#elif PG_VERSION_NUM >= 170000
	bool		found;

	return GetNamedDSMSegment(name, size, begin, &found);
#else
	elog(ERROR, "there is no named shared memory");
#endif
}

/*
 * The number of a kind of lightweight locks, which is "tranche" unless that is
 * zero.  Before 19, each process has to say what its name is.
 */
static inline int
compat_lock_tranche(int tranche, const char *name)
{
#if PG_VERSION_NUM >= 190000
	return tranche != 0 ? tranche : LWLockNewTrancheId(name);
#else
	if (tranche == 0)
		tranche = LWLockNewTrancheId();
	LWLockRegisterTranche(tranche, name);
	return tranche;
#endif
}

/* With ssl_sni, 19 warns of this hook and then ignores it. */
#define COMPAT_HAS_TLS_INIT_HOOK	(PG_VERSION_NUM < 190000)

/*
 * Did the TLS handshake begin before the server had answered a request for it?
 * Then core had read the beginning, and passed it on.  (Not known before 18,
 * where the offset depends on how the server was built.)
 */
static inline bool
compat_tls_is_direct(const Port *port)
{
#if PG_VERSION_NUM >= 180000
	return port->raw_buf_consumed > 0;
#else
	return false;
#endif
}

#define COMPAT_SEND_BUFFER_SIZE		8192	/* PQ_SEND_BUFFER_SIZE, pqcomm.c */
#define COMPAT_MESSAGE_HEADER		5

/*
 * The bytes left in core's send buffer after a message of "length" bytes
 * (header included) was put behind "pending" ones (internal_putbytes() in
 * pqcomm.c).
 *
 * The buffer is sent when it is full and more is to come.  From 17 on, what
 * is left of a message's body at that moment goes out directly if it would
 * fill the buffer again.
 */
static inline size_t
compat_send_buffer_after(size_t pending, size_t length)
{
	if (pending + length <= COMPAT_SEND_BUFFER_SIZE)
		return pending + length;
#if PG_VERSION_NUM >= 170000
	{
		size_t		body = pending + COMPAT_MESSAGE_HEADER;

		if (body > COMPAT_SEND_BUFFER_SIZE)
			body -= COMPAT_SEND_BUFFER_SIZE;
		if (body + length - COMPAT_MESSAGE_HEADER >= (size_t) 2 * COMPAT_SEND_BUFFER_SIZE)
			return 0;
	}
#endif
	return (pending + length - 1) % COMPAT_SEND_BUFFER_SIZE + 1;
}

#endif							/* PGNETLAT_COMPAT_H */
