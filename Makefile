# pgnetlat: is it the network, the client, or the server?

MODULE_big = pgnetlat
EXTENSION = pgnetlat
DATA = sql/pgnetlat-top.psql sql/pgnetlat-timing.psql
DATA_built = pgnetlat--1.0.sql
PGFILEDESC = "pgnetlat - where sessions' time goes: server, network, client"

# The rooms of the house (src/README), and every file in them.
ROOMS = lib store capture sample figures
OBJS = $(WIN32RES) $(patsubst $(srcdir)/%.c,%.o,$(sort $(wildcard $(srcdir)/src/*.c $(srcdir)/src/*/*.c)))

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

PG_CPPFLAGS = -I$(srcdir)/src $(addprefix -I$(srcdir)/src/, $(ROOMS)) -DPGNETLAT_VERSION='"$(PGNETLAT_VERSION)"'
# The server's own headers have unused parameters.  What is marked PGDLLEXPORT is
# exported and nothing else, on majors that do not see to that by themselves, too.
PG_CFLAGS = -Wall -Wextra -Wno-unused-parameter -fvisibility=hidden -fno-plt

# Unit tests and fuzzers are built beside their sources.
EXTRA_CLEAN = $(basename $(wildcard test/unit/test_*.c test/unit/fuzz_*.c test/unit/random_*.c))

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

# Sums of a dozen fields, as core unrolls the loop of its checksums.
src/store/statements.o: CFLAGS += $(CFLAGS_UNROLL_LOOPS)

# The archive for PGXN: what is committed, less what .gitattributes leaves out.
DISTVERSION = $(shell sed -n 's/^ *"version": "\(.*\)",$$/\1/p' $(srcdir)/META.json | head -n 1)
dist:
	cd $(srcdir) && git archive --format=zip --prefix=pgnetlat-$(DISTVERSION)/ \
		--output=$(CURDIR)/pgnetlat-$(DISTVERSION).zip HEAD

.PHONY: dist

# Unit tests, pg_regress and the main TAP tests, in a private server: two minutes.
check-quick:
	$(srcdir)/scripts/test --quick

.PHONY: check-quick

# The extension's script, from its parts.  Each rule says in its header what it is.
RULES = $(sort $(wildcard $(srcdir)/sql/judgement/diagnose/rules/*.sql))
SCRIPT_PARTS = $(addprefix $(srcdir)/sql/, \
	figures/sessions.sql figures/waits.sql figures/recent.sql figures/last.sql figures/clients.sql \
	figures/history.sql figures/statements.sql figures/blockers.sql figures/walsenders.sql \
	figures/failed_connections.sql \
	figures/pools.sql figures/info.sql \
	judgement/now.sql judgement/top_clients.sql judgement/what_if.sql \
	judgement/diagnose/thresholds.sql judgement/diagnose/figures.sql \
	$(patsubst $(srcdir)/sql/%,%,$(RULES)) \
	judgement/diagnose/findings.sql judgement/diagnose/rules.sql judgement/brief.sql judgement/guard.sql \
	$(addprefix journal/, tables.sql questions.sql compare.sql) report/page.sql report/data.sql journal/record.sql \
	metrics/server.sql metrics/detail.sql judgement/bound_operators.sql)

# The page of pgnetlat_report(): its template, which includes the other files.
REPORT = $(addprefix $(srcdir)/report/, template.html style.css model.js charts.js page.js)
include_file = -e '/^@include $(notdir $(1))@$$/{' -e 'r $(1)' -e 'd' -e '}'

# What sql/lists.awk puts into the script.
LISTS = $(addprefix $(srcdir)/, sql/account.columns src/store/burst.h sql/judgement/diagnose/thresholds.sql)

pgnetlat--1.0.sql: $(srcdir)/sql/header.sql $(SCRIPT_PARTS) $(REPORT) $(srcdir)/sql/lists.awk $(LISTS)
	cat $(srcdir)/sql/header.sql $(SCRIPT_PARTS) | sed $(call include_file,$(firstword $(REPORT))) | \
		sed $(foreach file,$(wordlist 2,9,$(REPORT)),$(call include_file,$(file))) | \
		LC_ALL=C awk -f $(srcdir)/sql/lists.awk $(LISTS) $(RULES) - >$@.new
	mv $@.new $@

# The pages, and what exporters, Prometheus and Grafana read, as a tree like this one, so
# that links from page to page lead somewhere.  A link to what only the source has becomes
# plain text.  Packages say with pagesdir where they have them; none if it is empty.
pagesdir ?= $(docdir)/extension/pgnetlat
pages_tree = $(DESTDIR)$(pagesdir)
PAGES = $(patsubst $(srcdir)/%,%,$(filter-out %.py %/requirements.txt, $(wildcard $(addprefix $(srcdir)/, \
	README.md CHANGELOG.md $(addprefix doc/*., md svg png tsv) monitoring/README.md monitoring/generate \
	monitoring/*/*.*))))
only_in_source = (\.\./)*(CONTRIBUTING|SECURITY|containers|sql|src|test)

install: install-pages
install-pages:
ifneq ($(pagesdir),)
	@for page in $(PAGES); do \
		to='$(pages_tree)'/$$page; \
		$(MKDIR_P) "$$(dirname "$$to")" && \
		case $$page in \
			*.md) sed -E 's,\[([^]]*)\]\($(only_in_source)[^)]*\),\1,g' '$(srcdir)'/$$page >"$$to" && chmod 644 "$$to" ;; \
			*/generate) $(INSTALL_SCRIPT) '$(srcdir)'/$$page "$$to" ;; \
			*) $(INSTALL_DATA) '$(srcdir)'/$$page "$$to" ;; \
		esac || exit 1; \
	done
endif

uninstall: uninstall-pages
uninstall-pages:
ifneq ($(pagesdir),)
	@if cd '$(pages_tree)' 2>/dev/null; then \
		rm -f $(PAGES) && find . -depth -type d -exec rmdir {} \; 2>/dev/null; \
		cd / && rmdir '$(pages_tree)' 2>/dev/null; \
	fi; true
endif

.PHONY: install-pages uninstall-pages

# Every object depends on every header: few files, and no stale objects.  In a
# VPATH build the folders for them are not there yet.
FOLDERS = $(CURDIR)/src $(addprefix $(CURDIR)/src/, $(ROOMS))
$(OBJS) $(OBJS:.o=.bc): $(wildcard $(srcdir)/src/*.h $(srcdir)/src/*/*.h) $(srcdir)/pgnetlat.control | $(FOLDERS)
$(FOLDERS):
	$(MKDIR_P) $@
