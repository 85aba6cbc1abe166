/*-------------------------------------------------------------------------
 *
 * walsender_wire.c
 *	  See walsender_wire.h.
 *
 * A walsender sends through the same table of functions as every backend
 * (wire.c), but seldom waits in them.  While it streams it puts messages into
 * core's buffer, which grows as needed, calls flush_if_writable(), and goes on
 * with what the socket did not take later: until then it is sending, whatever
 * else it does.  A base backup, and a COPY of an initial synchronization, are
 * sent by calls that wait: those that fill core's buffer, and flush().
 *
 * So these functions take the places of wire.c's in the table, in a walsender
 * only, and nothing changes for other backends.
 *
 * Nothing calls back when a reply has been read.  But core looks at the pending
 * output, or flushes it, right after it has read what there is, and has then put
 * down in its WalSnd what the reply said.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat.h"
#include "libpq/libpq-be.h"
#include "miscadmin.h"
#include "replication/slot.h"
#include "replication/walsender_private.h"
#include "settings.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "utils/backend_status.h"
#include "utils/guc.h"
#include "walsender_wire.h"
#include "walsenders.h"

/* Types of messages, as in the protocol's documentation. */
#define MSG_COPY_BOTH			'W'
#define MSG_COPY_OUT			'H'
#define MSG_ROW_DESCRIPTION		'T'

/* What is known of the receiver's window may be so old. */
#define WINDOW_AGE_NS			(10 * NS_PER_MS)

/* This walsender's view of the wire. */
typedef struct WalsenderWire
{
	PQcommMethods *methods;		/* the table */
	PQcommMethods next;			/* whom we stand in front of */
	WalsenderSlot *slot;
	bool		is_tcp;
	bool		counting;
	bool		sending;		/* the account says so, ... */
	int64		send_began;		/* ... since then */
	bool		kind_known;
	bool		in_noblock;		/* the message just makes core's buffer grow */
	bool		buffer_grew;
	size_t		buffered;		/* in core's buffer, at most, until it grows */
	int64		bytes;			/* put there, and not published */
	int64		next_question;	/* do not ask the kernel before, unless
								 * blocked */

	/* what core knew of the receiver when it was looked at last */
	TimestampTz reply_time;
	XLogRecPtr	flush;
	TimeOffset	flush_lag;
} WalsenderWire;

static WalsenderWire my;

/* ---------------------------------------------------------------------------
 * The kernel
 * ---------------------------------------------------------------------------
 */

/* Ask about the connection; without a reply, measured_at in "info" is 0. */
static void
ask_kernel(int64 now, TcpInfo *info)
{
	TcpInfo		known;

	info->measured_at = 0;
	if (!my.is_tcp || pgnetlat_rtt_interval < 0)
		return;
	walsenders_get_tcp(my.slot, &known);
	if (!tcpinfo_of_socket(MyProcPort->sock, &known, now, info))
		info->measured_at = 0;
	my.next_question = now + pgnetlat_rtt_interval * NS_PER_MS;
}

/* Publish what it has said, if anything; while the account is locked. */
static int64
publish_kernel_info(const TcpInfo *info)
{
	if (info->measured_at == 0)
		return WINDOW_UNKNOWN;
	walsenders_set_tcp(my.slot, info);
	return info->rwnd_limited;
}

/* ---------------------------------------------------------------------------
 * Events
 * ---------------------------------------------------------------------------
 */

/* A setting switches counting on and off. */
static void
see_whether_enabled(void)
{
	WalsenderAccount *account;
	TcpInfo		info;
	int64		now;

	if (likely(my.counting == pgnetlat_enabled))
		return;
	now = clock_now();
	ask_kernel(now, &info);
	my.counting = pgnetlat_enabled;
	my.sending = false;
	my.bytes = 0;
	account = walsenders_lock(my.slot);
	if (my.counting)
	{
		walsender_start(account, now,
						MyProcPort->raddr.addr.ss_family == AF_UNIX);
		(void) publish_kernel_info(&info);
	}
	else
		walsender_stop(account, now, publish_kernel_info(&info));
	walsenders_unlock(my.slot);
}

/*
 * Something is about to be handed to the socket at "now", or the socket would
 * not take all of it.  For how long the receiver's window has been closed so far
 * must be known, in case that blocks.
 */
static void
begin_send(int64 now)
{
	WalsenderAccount *account;
	TcpInfo		info;

	if (my.sending || !my.counting)
		return;
	walsenders_get_tcp(my.slot, &info);
	if (now - info.measured_at > WINDOW_AGE_NS)
		ask_kernel(now, &info);
	my.sending = true;
	my.send_began = now;
	account = walsenders_lock(my.slot);
	walsender_send_begin(account, now, publish_kernel_info(&info));
	walsenders_unlock(my.slot);
}

/*
 * The socket has taken what it was given from "began" on, and now it is "now".
 * If nobody had to wait for that, it was not begun as a sending.
 */
static void
end_send(int64 began, int64 now)
{
	WalsenderAccount *account;
	TcpInfo		info = {.measured_at = 0};

	if (!my.counting)
		return;
	if ((my.sending && now - my.send_began >= LEDGER_BLOCKED_NS) ||
		now >= my.next_question)
		ask_kernel(now, &info);
	account = walsenders_lock(my.slot);
	account->totals.bytes_sent += my.bytes;
	walsender_sent(account, began, now);
	walsender_send_end(account, now, publish_kernel_info(&info));
	walsenders_unlock(my.slot);
	my.sending = false;
	my.bytes = 0;
}

/* The socket has taken a part of what it was given from "began" on. */
static void
leave_pending(int64 began)
{
	WalsenderAccount *account;

	begin_send(began);
	if (!my.counting)
		return;
	account = walsenders_lock(my.slot);
	account->totals.bytes_sent += my.bytes;
	walsenders_unlock(my.slot);
	my.bytes = 0;
}

/* What has core heard of the receiver since it was looked at last? */
static void
note_reply(void)
{
	const WalSnd *walsnd = MyWalSnd;
	WalsenderAccount *account;
	TcpInfo		info;
	bool		flushed;

	if (likely(walsnd->replyTime == my.reply_time && walsnd->flush == my.flush))
		return;
	flushed = walsnd->flush > my.flush && walsnd->flushLag >= 0 &&
		walsnd->flushLag != my.flush_lag;
	my.reply_time = walsnd->replyTime;
	my.flush = walsnd->flush;
	my.flush_lag = walsnd->flushLag;
	if (!my.counting)
		return;
	walsenders_get_tcp(my.slot, &info);
	account = walsenders_lock(my.slot);
	account->totals.replies++;
	if (flushed)
		walsender_flush_confirmed(account, my.flush_lag * NS_PER_US, info.rtt);
	walsenders_unlock(my.slot);
}

/*
 * A message of a type by which what it is for shows.  Core has acquired the
 * slot of logical decoding before it sends this, and set the state of a base
 * backup.
 */
static void
note_kind(char type)
{
	WalsenderKind kind = WALSENDER_COMMANDS;

	if (MyWalSnd->state == WALSNDSTATE_BACKUP)
		kind = WALSENDER_BASE_BACKUP;
	else if (type == MSG_COPY_BOTH)
		kind = MyReplicationSlot != NULL && SlotIsLogical(MyReplicationSlot) ?
			WALSENDER_LOGICAL : WALSENDER_PHYSICAL;
	if (kind == WALSENDER_COMMANDS)
		return;
	my.kind_known = true;
	walsenders_set_kind(my.slot, kind, application_name ? application_name : "");
}

/* ---------------------------------------------------------------------------
 * The functions in the table
 * ---------------------------------------------------------------------------
 */

/* A message that may have to wait for the socket. */
static int
send_message(char type, const char *body, size_t length)
{
	int64		began = clock_now();
	int			result;

	begin_send(began);
	result = my.next.putmessage(type, body, length);
	end_send(began, clock_now());
	return result;
}

static int
walsender_putmessage(char type, const char *body, size_t length)
{
	size_t		size = length + COMPAT_MESSAGE_HEADER;
	size_t		buffered = my.buffered + size;

	if (!my.kind_known &&
		(type == MSG_COPY_BOTH || type == MSG_COPY_OUT || type == MSG_ROW_DESCRIPTION))
		note_kind(type);
	my.bytes += size;
	my.buffered = buffered;
	if (my.in_noblock || (buffered <= COMPAT_SEND_BUFFER_SIZE && !my.buffer_grew))
		return my.next.putmessage(type, body, length);
	my.buffered = compat_send_buffer_after(buffered - size, size);
	return send_message(type, body, length);
}

/* Core makes room for the message, and puts it there by our putmessage. */
static void
walsender_putmessage_noblock(char type, const char *body, size_t length)
{
	my.in_noblock = my.buffer_grew = true;
	my.next.putmessage_noblock(type, body, length);
	my.in_noblock = false;
}

static int
walsender_flush(void)
{
	int64		began;
	int			result;

	my.in_noblock = false;
	see_whether_enabled();
	note_reply();
	if (!my.next.is_send_pending())
		return my.next.flush();
	began = clock_now();
	begin_send(began);
	result = my.next.flush();
	end_send(began, clock_now());
	my.buffered = 0;
	return result;
}

static int
walsender_flush_if_writable(void)
{
	int64		began;
	int			result;

	my.in_noblock = false;
	see_whether_enabled();
	note_reply();
	if (!my.next.is_send_pending())
		return my.next.flush_if_writable();
	began = clock_now();
	result = my.next.flush_if_writable();
	if (my.next.is_send_pending())
		leave_pending(began);
	else
	{
		end_send(began, clock_now());
		my.buffered = 0;
	}
	return result;
}

static bool
walsender_is_send_pending(void)
{
	note_reply();
	return my.next.is_send_pending();
}

/* ---------------------------------------------------------------------------
 * The walsender's life
 * ---------------------------------------------------------------------------
 */

static void
walsender_exit(int code, Datum arg)
{
	WalsenderAccount *account;
	TcpInfo		info;
	int64		now = clock_now();

	if (my.slot == NULL)
		return;
	ask_kernel(now, &info);
	account = walsenders_lock(my.slot);
	if (my.counting)
		account->totals.bytes_sent += my.bytes;
	walsender_stop(account, now, publish_kernel_info(&info));
	walsenders_unlock(my.slot);
	walsenders_detach(my.slot);
	my.slot = NULL;
	*my.methods = my.next;
}

/*
 * This process is a walsender, and has told its client that it is ready: from
 * now on count what it sends.  Its functions replace those in "methods" (ours)
 * and call those in "next".
 */
void
walsender_wire_install(PQcommMethods *methods, const PQcommMethods *next)
{
	WalsenderIdentity identity;

	if (MyWalSnd == NULL || MyProcPort == NULL || MyBEEntry == NULL)
		return;
	memset(&identity, 0, sizeof(identity));
	identity.pid = MyProcPid;
	identity.userid = MyBEEntry->st_userid;
	identity.transport = slot_my_transport();
	if (identity.transport != TRANSPORT_UNIX)
		tcpinfo_endpoints(MyProcPort->sock, &MyProcPort->laddr.addr,
						  &MyProcPort->raddr.addr, &identity.endpoints);
	identity.backend_start = MyStartTimestamp;
	strlcpy(identity.application_name, application_name ? application_name : "",
			NAMEDATALEN);
	my.slot = walsenders_attach(MyWalSnd - WalSndCtl->walsnds, &identity);
	if (my.slot == NULL)
		return;
	my.methods = methods;
	my.next = *next;
	my.is_tcp = identity.endpoints.family != 0;
	my.flush_lag = -1;
	see_whether_enabled();
	before_shmem_exit(walsender_exit, (Datum) 0);

	methods->putmessage = walsender_putmessage;
	methods->putmessage_noblock = walsender_putmessage_noblock;
	methods->flush = walsender_flush;
	methods->flush_if_writable = walsender_flush_if_writable;
	methods->is_send_pending = walsender_is_send_pending;
}
