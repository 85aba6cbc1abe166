/*-------------------------------------------------------------------------
 *
 * walsenders.h
 *	  The walsenders: what each of them publishes, and sums over those that
 *	  have ended.
 *
 * There is one place per walsender that core allows (max_wal_senders), with
 * the same number as its WalSnd.  Unlike the slot of a session it has one
 * spinlock, under which the walsender itself, the sampler and readers write
 * and read everything: a walsender makes a system call for each event that it
 * books, so a few instructions more do not matter, and all that was shown stays
 * true without watermarks.
 *
 * When a walsender ends, what it has counted is added to its group: that of
 * its kind, application_name and address.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_WALSENDERS_H
#define PGNETLAT_WALSENDERS_H

#include "clock.h"
#include "session_slot.h"
#include "tcpinfo.h"
#include "walsender_account.h"

/* What a walsender is for: what it began first, for as long as it lives. */
typedef enum WalsenderKind
{
	WALSENDER_COMMANDS = 0,		/* nothing of what follows, so far */
	WALSENDER_PHYSICAL,
	WALSENDER_LOGICAL,
	WALSENDER_BASE_BACKUP
} WalsenderKind;

#define WALSENDER_KINDS		(WALSENDER_BASE_BACKUP + 1)

/* Who it is: set when it begins, but for its kind and name. */
typedef struct WalsenderIdentity
{
	int			pid;
	Oid			userid;
	SessionTransport transport;
	TcpEndpoints endpoints;
	TimestampTz backend_start;
	WalsenderKind kind;
	char		application_name[NAMEDATALEN];
} WalsenderIdentity;

/* A walsender as of one moment. */
typedef struct WalsenderObservation
{
	WalsenderIdentity identity;
	TimestampTz stats_since;
	int64		clock_offset;	/* see clock.h */
	WalsenderPhase phase;
	bool		idle;			/* by the latest sample */
	WalsenderTotals totals;		/* since it began, or a reset, as the next */
	TcpCounters tcp_counters;
	int64		pending;
	TcpInfo		tcp;			/* measured_at is 0: nothing is known */
	int64		flush_lag;		/* the latest that core knows of, in ns; or -1 */
	int			sync_priority;	/* as in pg_stat_replication */
} WalsenderObservation;

/* Sums over walsenders of one kind, application and address. */
typedef struct WalsenderGroup
{
	WalsenderKind kind;
	char		application_name[NAMEDATALEN];
	int			family;			/* as in TcpEndpoints */
	uint8		address[16];
	int64		live;
	int64		ended;
	WalsenderTotals totals;
	TcpCounters tcp_counters;
	int64		pending;
} WalsenderGroup;

/* So many groups at most; all that find no place are the last one's. */
#define WALSENDER_GROUPS	64

extern Size walsenders_shmem_size(void);
extern void walsenders_shmem_init(void);
extern int	walsenders_count(void);

/* Functions for the walsender itself */
typedef struct WalsenderSlot WalsenderSlot;

extern WalsenderSlot *walsenders_attach(int index, const WalsenderIdentity *identity);
extern void walsenders_detach(WalsenderSlot *slot);
extern WalsenderAccount *walsenders_lock(WalsenderSlot *slot);
extern void walsenders_unlock(WalsenderSlot *slot);
extern void walsenders_get_tcp(WalsenderSlot *slot, TcpInfo *tcp);
extern void walsenders_set_tcp(WalsenderSlot *slot, const TcpInfo *tcp);
extern void walsenders_set_kind(WalsenderSlot *slot, WalsenderKind kind,
								const char *application_name);

/* Functions for the sampler */
extern void walsenders_tick(int64 now, TcpDiag *diag);
extern int64 walsenders_next_due(int64 now, int64 interval);

/* Functions for readers */
extern bool walsenders_observe(int index, WalsenderObservation *observation);
extern WalsenderGroup *walsenders_groups(int *count);
extern void walsenders_reset(TimestampTz timestamp);

#endif							/* PGNETLAT_WALSENDERS_H */
