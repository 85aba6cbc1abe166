#!/usr/bin/python3
"""Write doc/clients.md, its picture and its tables from the figures of "run --json FILE".

    table.py FILE...            of several files, the later ones replace cases of the earlier ones
"""

import collections
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "lib"))
sys.dont_write_bytecode = True

from harness import picture

PAGE = HERE.parent.parent / "doc" / "clients.md"

# The cases of a table: (driver, case, name of the driver, how it was used)
PARAMETER = [
    ("psycopg3", "execute", "psycopg 3", "default: prepares at the sixth execution, which takes 2"),
    ("psycopg3", "execute_never_prepared", "psycopg 3", "`prepare_threshold=None`"),
    ("psycopg3", "simple_protocol", "psycopg 3", "`ClientCursor`: parameters become literals"),
    ("asyncpg", "fetch", "asyncpg", "default: prepares, and keeps 100 statements"),
    ("asyncpg", "no_statement_cache", "asyncpg", "`statement_cache_size=0`, as behind poolers"),
    ("asyncpg", "pool", "asyncpg", "from a pool, which resets a session when it is returned"),
    ("sqlalchemy", "autocommit", "SQLAlchemy", "over psycopg 3, `AUTOCOMMIT`; connecting sends 7 queries"),
    ("django", "get_each", "Django", "default: parameters become literals"),
    ("pgx", "cache_statement", "pgx", "default: `cache_statement`"),
    ("pgx", "cache_describe", "pgx", "`default_query_exec_mode=cache_describe`"),
    ("pgx", "describe_exec", "pgx", "`default_query_exec_mode=describe_exec`"),
    ("pgx", "exec", "pgx", "`default_query_exec_mode=exec`"),
    ("pgx", "simple_protocol", "pgx", "`default_query_exec_mode=simple_protocol`"),
    ("database_sql_pgx", "with_argument", "database/sql with pgx", "default"),
    ("lib_pq", "with_argument", "database/sql with lib/pq", "default: prepares each time"),
    ("lib_pq", "binary_parameters", "database/sql with lib/pq", "`binary_parameters=yes`"),
    ("lib_pq", "prepared", "database/sql with lib/pq", "`db.Prepare` once"),
    ("node_pg", "with_parameter", "node-postgres", "default"),
    ("node_pg", "named", "node-postgres", "with a `name`: prepared"),
    ("postgres_js", "with_parameter", "postgres.js", "default: queries the array types once per connection"),
    ("postgres_js", "no_types", "postgres.js", "`fetch_types: false`"),
    ("postgres_js", "never_prepared", "postgres.js", "`prepare: false`"),
    ("tokio_postgres", "query", "tokio-postgres", "`query` with text: prepares each time"),
    ("tokio_postgres", "prepared", "tokio-postgres", "`prepare` once"),
    ("tokio_postgres", "query_typed", "tokio-postgres", "`query_typed`"),
    ("sqlx", "query", "sqlx", "default"),
    ("sqlx", "not_persistent", "sqlx", "`persistent(false)`"),
    ("sqlx", "pool", "sqlx", "from a pool, which tests a connection when it is returned and before it is handed out"),
    ("pgjdbc", "prepared", "pgjdbc", "default: begins with SET application_name"),
    ("pgjdbc", "application_name_at_start", "pgjdbc", "`assumeMinServerVersion=12`: no SET"),
    ("pgjdbc", "simple_protocol", "pgjdbc", "`preferQueryMode=simple`"),
    ("pgjdbc", "hikari", "pgjdbc", "from HikariCP; connecting sends 3 queries"),
    ("programs", "pgbench_prepared", "pgbench", "`-M prepared`"),
]

TRANSACTION = [
    ("psycopg3", "transaction", "psycopg 3", "`conn.transaction()`"),
    ("asyncpg", "transaction", "asyncpg", "`conn.transaction()`"),
    ("pgx", "transaction", "pgx", "`pgx.BeginFunc`"),
    ("database_sql_pgx", "transaction", "database/sql with pgx", "`db.BeginTx`"),
    ("lib_pq", "transaction", "database/sql with lib/pq", "`db.BeginTx`; prepares each time"),
    ("node_pg", "transaction", "node-postgres", "BEGIN and COMMIT by hand"),
    ("postgres_js", "transaction", "postgres.js", "`sql.begin`, one statement after the other"),
    ("postgres_js", "transaction_pipelined", "postgres.js", "`sql.begin`, returning all five at once"),
    ("tokio_postgres", "transaction", "tokio-postgres", "`client.transaction()`, prepared in each"),
    ("sqlalchemy", "transactions", "SQLAlchemy", "`execute` of each insert, `commit()`"),
    ("django", "transactions", "Django", "`transaction.atomic()`"),
    ("sqlx", "transaction", "sqlx", "`begin()`"),
    ("pgjdbc", "transaction", "pgjdbc", "`setAutoCommit(false)`: BEGIN travels with the first statement"),
]

# 2 MB at once.
LARGE = [
    ("psycopg3", "large_result", "psycopg 3", "`execute`"),
    ("asyncpg", "large_result", "asyncpg", "`fetch`"),
    ("pgx", "large_result", "pgx", "`Query`"),
    ("database_sql_pgx", "large_result", "database/sql with pgx", "`db.Query`"),
    ("lib_pq", "large_result", "database/sql with lib/pq", "`db.Query`"),
    ("node_pg", "large_result", "node-postgres", "`query`"),
    ("postgres_js", "large_result", "postgres.js", "`sql`"),
    ("tokio_postgres", "large_result", "tokio-postgres", "`query`: prepares each time"),
    ("sqlx", "large_result", "sqlx", "`fetch_all`"),
    ("pgjdbc", "large_result", "pgjdbc", "`executeQuery`"),
]

# The same objects by a statement for each, and by few statements.
ORM = [
    ("django", "lazy_loading", "Django", "20 objects, and the parent of each when it is used"),
    ("django", "select_related", "Django", "the same with `select_related`"),
    ("django", "lazy_sets", "Django", "20 objects, and the children of each when they are used"),
    ("django", "prefetch_related", "Django", "the same with `prefetch_related`"),
    ("sqlalchemy", "lazy_loading", "SQLAlchemy", "20 objects, and the children of each; connecting included"),
    ("sqlalchemy", "eager_loading", "SQLAlchemy", "the same with `selectinload`"),
]

PROGRAMS = [
    ("programs", "psql_single_string", "psql", "`-c` with three statements in one string"),
    ("programs", "psql_statements", "psql", "ten statements from a file"),
    ("programs", "psql_on_error_rollback", "psql", "a transaction of three statements, one of which fails, with"
     " `ON_ERROR_ROLLBACK`: a savepoint around each"),
    ("programs", "psql_gexec", "psql", "`\\gexec` of five statements"),
    ("programs", "psql_describe", "psql", "`\\d` of a table, and `\\dt`"),
    ("programs", "psql_copy_in", "psql", "five times `\\copy ... FROM`"),
    ("programs", "psql_copy_out", "psql", "three times `\\copy ... TO`"),
    ("programs", "psql_fetch_count", "psql", "`FETCH_COUNT` 100, 1000 rows"),
    ("programs", "pg_dump", "pg_dump", "one table of 1000 rows; mostly catalog queries"),
    ("programs", "pg_dump_inserts", "pg_dump", "the same with `--inserts`: a cursor, 100 rows at a time"),
    ("programs", "pg_restore", "pg_restore", "`-j 2`, two such tables: three connections, partly in parallel"),
]

# Followed by the verb of the main statement, and by the number of batches.
BATCH = [
    ("psycopg3", "executemany", "psycopg 3", "`executemany`, 10 rows", "INSERT", 10),
    ("psycopg3", "pipeline", "psycopg 3", "`conn.pipeline()`, 3 statements", "SELECT PAYLOAD", 20),
    ("asyncpg", "executemany", "asyncpg", "`executemany`, 10 rows", "INSERT", 5),
    ("pgx", "batch", "pgx", "`SendBatch`, 20 statements", "INSERT", 5),
    ("pgx", "batch_exec", "pgx", "`SendBatch`, 10 statements, `exec`", "INSERT", 5),
    ("node_pg", "queued", "node-postgres", "20 queries without `await`: the driver sends one after the other", "SELECT", 1),
    ("postgres_js", "pipelined_different", "postgres.js", "3 queries without `await`: pipelined once prepared", "INSERT", 5),
    ("postgres_js", "insert_many", "postgres.js", "`sql(rows)`, 10 rows in one statement", "INSERT", 5),
    ("tokio_postgres", "pipelined", "tokio-postgres", "20 futures at once", "SELECT", 3),
    ("pgjdbc", "batch", "pgjdbc", "`executeBatch`, 20 rows", "INSERT", 5),
    ("pgjdbc", "batch_rewritten", "pgjdbc", "`executeBatch`, 20 rows, `reWriteBatchedInserts=true`", "INSERT", 5),
    ("django", "bulk_create", "Django", "`bulk_create`, 50 rows; BEGIN and COMMIT included", "COMMIT", 1),
    ("sqlalchemy", "insert_all", "SQLAlchemy", "20 objects, one `commit()`; BEGIN and COMMIT included", "COMMIT", 1),
    ("programs", "pgbench_pipeline", "pgbench", "`\\startpipeline`, 3 statements", "SELECT", 10),
]

COPY = [
    ("psycopg3", "copy_in", "psycopg 3", "`cursor.copy`"),
    ("asyncpg", "copy_in", "asyncpg", "`copy_records_to_table`: does not wait to be asked; describes the table once"),
    ("pgx", "copy_from", "pgx", "`CopyFrom`: does not wait to be asked; describes the table once"),
    ("lib_pq", "copy_in", "database/sql with lib/pq", "`pq.CopyIn`; BEGIN and COMMIT included", "COMMIT", None),
    ("node_pg", "copy_in", "node-postgres", "`pg-copy-streams`"),
    ("postgres_js", "copy_in", "postgres.js", "`writable()`"),
    ("tokio_postgres", "copy_in", "tokio-postgres", "`copy_in` with text: prepares each time"),
    ("sqlx", "copy_in", "sqlx", "`copy_in_raw`"),
    ("pgjdbc", "copy_in", "pgjdbc", "`CopyManager.copyIn`"),
    ("programs", "psql_copy_in", "psql", "`\\copy`"),
]

PIECES = [
    ("psycopg3", "server_cursor", "psycopg 3", "named cursor, `itersize` 100; a transaction around it"),
    ("asyncpg", "cursor", "asyncpg", "`cursor(prefetch=100)`; a transaction around it"),
    ("django", "iterator", "Django", "`iterator(chunk_size=100)`: a cursor WITH HOLD"),
    ("sqlalchemy", "yield_per", "SQLAlchemy", "`yield_per=100`; connecting included"),
    ("node_pg", "cursor", "node-postgres", "`pg-cursor`, 100 rows"),
    ("node_pg", "query_stream", "node-postgres", "`pg-query-stream`, `batchSize` 100"),
    ("postgres_js", "cursor", "postgres.js", "`cursor(100)`"),
    ("tokio_postgres", "portal", "tokio-postgres", "`query_portal` with 100; a transaction around it"),
    ("pgjdbc", "fetch_size", "pgjdbc", "`setFetchSize(100)` in a transaction; without one it reads all at once"),
    ("programs", "psql_fetch_count", "psql", "`FETCH_COUNT` 100"),
]

# "later": not the first connection of the program
CONNECT = [
    ("psycopg3", "psycopg 3"), ("asyncpg", "asyncpg"), ("pgx", "pgx"), ("database_sql_pgx", "database/sql with pgx"),
    ("lib_pq", "database/sql with lib/pq"), ("node_pg", "node-postgres"), ("postgres_js", "postgres.js"),
    ("tokio_postgres", "tokio-postgres"), ("sqlx", "sqlx"), ("pgjdbc", "pgjdbc"),
    ("sqlalchemy", "SQLAlchemy, `NullPool`; BEGIN and ROLLBACK included"),
    ("django", "Django, `CONN_MAX_AGE` 0"), ("programs", "psql, `-c`"),
    ("psycopg3_tls", "psycopg 3, with TLS and a password"),
    ("psycopg3_p256", "psycopg 3, the same with OpenSSL's `Groups = P-256`"),
    ("pgx_tls", "pgx, with TLS and a password"), ("pgjdbc_tls", "pgjdbc, with TLS and a password"),
]


class Figures:
    def __init__(self, files):
        """Of files of figures; later ones replace the cases that they contain."""
        self.cases = {(case["driver"], case["case"]): case
                      for file in files for case in json.loads(pathlib.Path(file).read_text())}

    def executions(self, driver, case, verb):
        """After how many round trips each execution of a case's main statement was there."""
        found = [(text, turns) for text, turns in self.cases[driver, case]["executions"]
                 if text.upper().startswith(verb)]
        texts = [text for text, _ in found]
        if not texts:
            raise KeyError(verb)
        main = max(dict.fromkeys(texts), key=texts.count)
        return [turns for text, turns in found if text == main]

    def first_and_later(self, driver, case, verb, units=None):
        """Round trips of the first and of any later of "units" units, each of the same number of executions."""
        after = self.executions(driver, case, verb)
        size = len(after) // (units or len(after))
        after = after[size - 1::size]
        steps = [after[0]] + [b - a for a, b in zip(after, after[1:])]
        return steps[0], steps[-1]

    def turns(self, driver, case):
        return self.cases[driver, case]["turns"]

    def checks(self):
        return [check for case in self.cases.values() for check in case["checks"]]


# A table: its rows are (driver, how, round trips of the first, of a later one); the first is None if there is one only.
Section = collections.namedtuple("Section", "title text rows")

STATEMENT, INSERTS = "One statement with a parameter, again and again", "A transaction of five inserts"
SMALL_COPY, LARGE_RESULT = "A small COPY FROM STDIN", "A large result"
IN_PIECES, CONNECTING = "1000 rows in pieces of 100", "Connect, SELECT 1, disconnect"

# The columns of the page's table, by section.
SUMMARY = {STATEMENT: "statement with a parameter", INSERTS: "transaction of 5 inserts", SMALL_COPY: "small COPY",
           LARGE_RESULT: "large result", IN_PIECES: "1000 rows, 100 at a time", CONNECTING: "connect and SELECT 1"}
DRAWN = {STATEMENT: "#0284c7", INSERTS: "#0d9488", CONNECTING: "#94a3b8"}


def sections(figures):
    yield Section(STATEMENT, "The first time includes queries that the driver sends on its own before, but not connecting.",
                  rows(figures, PARAMETER, "SELECT"))
    yield Section(INSERTS, "Seven round trips, unless the driver prepares, or sends BEGIN or the inserts together.",
                  rows(figures, TRANSACTION, "COMMIT"))
    yield Section("Many statements at once", "Round trips of one batch.", rows(figures, BATCH))
    yield Section(SMALL_COPY, "COPY takes two round trips if the client waits until the server asks for the data.",
                  rows(figures, COPY, "COPY"))
    yield Section(LARGE_RESULT, "2000 rows of 1 kB each, all at once, are one round trip. The rest is bandwidth.",
                  rows(figures, LARGE, "SELECT"))
    yield Section(IN_PIECES, "", whole(figures, PIECES))
    yield Section(CONNECTING,
                  "From the TCP handshake to the result: one round trip for TCP, one for the protocol's startup, queries\n"
                  "that the driver sends on its own, and the statement. A password (SCRAM) adds two. TLS 1.3 adds two, one\n"
                  "of which requests TLS, or three if the client has not guessed the key exchange that the server wants.\n"
                  "Before PostgreSQL 18 that is P-256, for which Java offers a key at once; OpenSSL and Go do not.",
                  connecting(figures))
    yield Section("An ORM's objects", "A statement for each of many objects (N+1) takes a round trip for each.",
                  whole(figures, ORM))
    yield Section("PostgreSQL's own programs", "Without connecting, which takes two.", programs(figures))


def rows(figures, definitions, verb=None, units=None):
    found = []
    for driver, case, name, how, *rest in definitions:
        if (driver, case) in figures.cases:
            found.append((name, how, *figures.first_and_later(driver, case, *(rest or (verb, units)))))
    return found


def whole(figures, definitions):
    """Round trips of whole cases."""
    return [(name, how, None, figures.turns(driver, case)) for driver, case, name, how in definitions
            if (driver, case) in figures.cases]


def connecting(figures):
    found = []
    for driver, name in CONNECT:
        case = figures.cases.get((driver, "short_connections"))
        if case:
            first, *_, later = case["connection_turns"]
            name, _, how = name.partition(", ")
            found.append((name, how, first, later))
    return found


def programs(figures):
    found = whole(figures, PROGRAMS)
    if ("programs", "psql_watch") in figures.cases:
        found.append(("psql", "`\\watch`, each time", None, figures.first_and_later("programs", "psql_watch", "SELECT")[1]))
    return found


HEAD = """\
# What drivers do on the wire

- **A driver that prepares each time pays two round trips.** Keep the prepared statement, or use the form that specifies
  the parameters' types. Settings made for poolers can cost as much: with them, asyncpg and postgres.js describe each
  statement first. psycopg 3, pgx (`exec`) and node-postgres do not.
- **An ORM that fetches the related objects of each object pays for each.** With eager loading, it queries once or twice.
- **A connection costs as much as several statements**, and more with TLS and a password: keep it, or use a pool. Some
  pools send queries of their own before or after each use (`pool_pre_ping`, sqlx, asyncpg).
- **A batch pays one round trip only if the driver sends it together.** node-postgres queues statements and pays for each.
- **A cursor takes one round trip for each piece**: fetch large pieces. A large result at once takes only one.
- **A round trip of 0.5 ms is rarely noticed.** At 10 ms, a web page of 50 statements loses half a second; at 100 ms,
  nothing else matters.

![Round trips of a statement, a transaction and a connection, by driver]({name}.svg)

[{name}_raw.md]({name}_raw.md) has all cases, with the settings of each driver. `test/clients/table.py` wrote both pages
from the figures of `test/clients/run --json`; do not edit them.

## Round trips, by driver

The counts are with the driver's defaults. The first time, which may prepare or connect, is left out. A cursor's count
includes its transaction, and SQLAlchemy's includes connecting. [{name}_raw.md]({name}_raw.md) says how each case was done.

"""

METHOD = """## How it is measured

Each driver runs its cases over a path with a round trip of 10 ms, and packets are captured on both sides. A round trip is
a message that the client sent after it had received everything that the server was going to send. Round trips are counted,
not timed: for your path, multiply the counts by your round trip. pgnetlat's `round_trips` and `network_time` show the same
for your own sessions. [test/clients](../test/clients/README.md) pins the versions of the drivers.

## What is not covered

Other drivers, other versions and most settings are not covered. TLS and passwords were used only where a case says so:
once a connection is set up, they do not change the counts.
"""

RAW_HEAD = """# What drivers do on the wire: all cases

Round trips, the first time and later. `test/clients/table.py` wrote this page; do not edit it. [{name}.md]({name}.md) says
what the figures mean.

"""


def write(path, found, checks=()):
    """The page; the tables and the picture beside it."""
    found = list(found)
    path.write_text(HEAD.format(name=path.stem) + summary(found) + goals(checks) + METHOD)
    path.with_name(f"{path.stem}_raw.md").write_text(
        RAW_HEAD.format(name=path.stem) + "\n".join(table(section) for section in found if section.rows))
    draw(path.with_suffix(".svg"), found)


def by_driver(found, titles):
    """Round trips of a later one, by driver and section: of the driver's first row, which has no settings."""
    drivers = {}
    for section in found:
        if section.title in titles:
            for driver, _, _, later in section.rows:
                drivers.setdefault(driver, {}).setdefault(section.title, later)
    return {driver: own for driver, own in drivers.items() if len(own) > 1}


def summary(found):
    text = f"| driver | {' | '.join(SUMMARY.values())} |\n|---|{'---:|' * len(SUMMARY)}\n"
    for driver, own in by_driver(found, SUMMARY).items():
        text += f"| {driver} | {' | '.join(plain(own[title]) if title in own else '' for title in SUMMARY)} |\n"
    return text + "\n"


def goals(checks):
    """What pgnetlat showed of these cases, beside the packets."""
    if not checks:
        return ""
    exact, timed = ([check for check in checks if check["is_time"] == wanted] for wanted in (False, True))
    text = "## Goals\n\n| goal | bound | met |\n|---|---|---:|\n"
    for title, bound, own in (("Round trips, requests, statements, transactions, sessions, calls, rows", "exact", exact),
                              ("Times, and repeats", "a share of the truth, and what packets leave open", timed)):
        met = sum(check["passed"] for check in own)
        text += f"| {title} | {bound} | {met} of {len(own)} |\n"
    return text + "\n"


def table(section):
    first = any(row[2] is not None for row in section.rows)
    lines = [f"## {section.title}", ""]
    lines += [section.text, ""] if section.text else []
    lines += ["| driver | how | first time | later |" if first else "| driver | how | round trips |",
              "|---|---|---:|---:|" if first else "|---|---|---:|"]
    for driver, how, begin, later in section.rows:
        lines.append(f"| {driver} | {how} |" + (f" {plain(begin)} |" if first else "") + f" {plain(later)} |")
    return "\n".join(lines) + "\n"


def plain(number):
    return f"{number:g}" if number == int(number) else f"{number:.1f}"


def draw(path, found):
    groups = {driver: {title: own[title] for title in DRAWN if title in own}
              for driver, own in by_driver(found, DRAWN).items()}
    drawing = picture.Drawing(760, picture.bars_height(groups) + 60, "Round trips, by driver")
    end = picture.bars(drawing, 190, 16, 500, groups, DRAWN, plain)
    picture.legend(drawing, 60, end + 14, {SUMMARY[title]: colour for title, colour in DRAWN.items()}, 230, 3)
    drawing.save(path)


def main():
    figures = Figures(sys.argv[1:])
    write(PAGE, sections(figures), figures.checks())
    print(f"written: {PAGE}")


if __name__ == "__main__":
    main()
