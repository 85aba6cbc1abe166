/*-------------------------------------------------------------------------
 *
 * exchange_internal.h
 *	  Shared by the files that implement exchange.h.
 *
 *	exchange.c			the events, with their records and the tally
 *	exchange_kernel.c	what the kernel is asked
 *	exchange_session.c	where the account begins and ends
 *
 * Copyright (c) 2026, the pgnetlat authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGNETLAT_EXCHANGE_INTERNAL_H
#define PGNETLAT_EXCHANGE_INTERNAL_H

#include "exchange.h"

/* A TcpInfo that the kernel has not been asked for. */
#define NOT_ASKED				{.measured_at = 0}

/* exchange_kernel.c */
extern const LedgerSampled *exchange_sampled(void);
extern bool exchange_ask_kernel(int64 now, TcpInfo *info);
extern void exchange_publish_kernel_info(const TcpInfo *info);
extern void exchange_publish_run_queue(const RunQueue *run_queue);
extern void exchange_skip_run_queue(void);
extern void exchange_use_clock_offset(void);
extern void exchange_refresh_clock_offset(void);
extern bool exchange_measure_drain(int64 now, TcpInfo *info, LedgerDrain *drain);
extern const LedgerDrain *exchange_best_drain(const LedgerDrain *measured);
extern bool exchange_measure_retransmission(int64 now, TcpInfo *info, LedgerDrain *drain);
extern int64 exchange_blocked_by_client(int64 now, TcpInfo *info);
extern bool exchange_response_drains(int64 now, int64 bytes, bool last, TcpInfo *info);

/* exchange.c */
extern void exchange_start(void);
extern bool exchange_may_be_plain(void);
extern LedgerWaitTerms exchange_next_wait(bool pipelined, char xact_status);
extern void exchange_publish_sent(int64 bytes);
extern void exchange_close_record(int64 at, int64 bytes, const LedgerSampled *sampled);
extern void exchange_count_exchange(bool is_request, bool in_xact);
extern void exchange_end_of_wait(const LedgerWait *wait, bool is_request);
extern void exchange_note_trip(int64 network);
extern void exchange_end_record(LedgerWait wait);
extern const LedgerTotals *exchange_before(void);

#endif							/* PGNETLAT_EXCHANGE_INTERNAL_H */
