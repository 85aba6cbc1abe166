# pgnetlat: is it the network, the client, or the server?

MODULE_big = pgnetlat
EXTENSION = pgnetlat
DATA = pgnetlat--1.0.sql pgnetlat--1.0--1.1.sql
PGFILEDESC = "pgnetlat - where sessions' time goes: server, network, client"

OBJS = \
	$(WIN32RES) \
	src/active_sessions.o \
	src/aggregate_views.o \
	src/blockers.o \
	src/client_key.o \
	src/clients.o \
	src/concurrency.o \
	src/connect_cost.o \
	src/connecting.o \
	src/diagnose.o \
	src/accumulate.o \
	src/exec_samples.o \
	src/exec_split.o \
	src/settings.o \
	src/histogram.o \
	src/history.o \
	src/known.o \
	src/ledger.o \
	src/lock_graph.o \
	src/lock_waits.o \
	src/locks.o \
	src/mva.o \
	src/now_view.o \
	src/persist.o \
	src/pgnetlat.o \
	src/pool_view.o \
	src/pools.o \
	src/prediction.o \
	src/pooler.o \
	src/pooler_clients.o \
	src/pooler_suffix.o \
	src/process.o \
	src/recorder.o \
	src/request_log.o \
	src/rows.o \
	src/sampler.o \
	src/exchange.o \
	src/shared_memory.o \
	src/session_slot.o \
	src/snapshots.o \
	src/statement_hooks.o \
	src/statements.o \
	src/table.o \
	src/tally.o \
	src/tcpinfo.o \
	src/tcpstate.o \
	src/tls_handshake.o \
	src/verdict.o \
	src/views.o \
	src/wait_events.o \
	src/walsender_account.o \
	src/walsender_views.o \
	src/walsender_wire.o \
	src/walsenders.o \
	src/what_if.o \
	src/windows.o \
	src/wire.o

# "make installcheck" asks a running server that has the library preloaded, as
# any user who may create extensions there, and leaves its statistics alone.
# The TAP tests start servers of their own and need IPC::Run: TAP=1 asks for
# them, PROVE_TESTS for some of them.
REGRESS = pgnetlat settings
ifneq ($(TAP)$(PROVE_TESTS),)
TAP_TESTS = 1
endif

# The control file is the only place that states the version.
PGNETLAT_VERSION = $(shell sed -n "s/^default_version = '\(.*\)'/\1/p" $(srcdir)/pgnetlat.control)

PG_CPPFLAGS = -I$(srcdir)/src -DPGNETLAT_VERSION='"$(PGNETLAT_VERSION)"'
# The server's own headers have unused parameters.  What is marked PGDLLEXPORT is
# exported and nothing else, on majors that do not see to that by themselves, too.
PG_CFLAGS = -Wall -Wextra -Wno-unused-parameter -fvisibility=hidden -fno-plt

EXTRA_CLEAN = test/unit/test_burst test/unit/test_chains test/unit/test_concurrency test/unit/test_connect_cost test/unit/test_exec_split test/unit/test_ledger test/unit/test_histogram test/unit/test_pooler_suffix test/unit/test_mva test/unit/test_prediction test/unit/test_snapshots test/unit/test_table test/unit/test_tcpstate test/unit/test_verdict test/unit/test_walsender_account \
	test/unit/fuzz_ledger test/unit/fuzz_pooler_suffix test/unit/fuzz_tcpstate

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

# The archive for PGXN: what is committed, less what .gitattributes leaves out.
DISTVERSION = $(shell sed -n 's/^ *"version": "\(.*\)",$$/\1/p' $(srcdir)/META.json | head -n 1)
dist:
	cd $(srcdir) && git archive --format=zip --prefix=pgnetlat-$(DISTVERSION)/ \
		--output=$(CURDIR)/pgnetlat-$(DISTVERSION).zip HEAD

.PHONY: dist

# Every object depends on every header: few files, and no stale objects.  In a
# VPATH build the folder for them is not there yet.
$(OBJS) $(OBJS:.o=.bc): $(wildcard $(srcdir)/src/*.h) $(srcdir)/pgnetlat.control | $(CURDIR)/src
$(CURDIR)/src:
	$(MKDIR_P) $@
