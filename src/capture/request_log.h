/*-------------------------------------------------------------------------
 *
 * request_log.h
 *	  Logs each slow exchange in the server's log.
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_REQUEST_LOG_H
#define PGNETLAT_REQUEST_LOG_H

#include "trace_context.h"

/* An exchange; times in nanoseconds. */
typedef struct RequestLine
{
	int64		duration;		/* the sum of the next four */
	int64		exec;
	int64		send;
	int64		recv;
	int64		network;		/* of turns inside the exchange */
	int64		send_blocked;	/* part of send */
	int64		send_client;	/* part of that: the client was not reading */
	int64		bytes;			/* of the response */
	int64		wait;			/* before the exchange */
	bool		wait_in_xact;
	int64		rtt;			/* 0: none, or not known */
	uint64		queryid;		/* 0: none */
	TraceId		trace;			/* zero: none */
} RequestLine;

extern Size request_log_shmem_size(void);
extern void request_log_shmem_attach(void *memory, bool is_new);

extern void request_log_write(int64 now, const RequestLine *line);

#endif							/* PGNETLAT_REQUEST_LOG_H */
