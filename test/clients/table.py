#!/usr/bin/python3
"""Write doc/clients.md from the figures of "run --json FILE".

    table.py FILE...
"""

import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
PAGE = HERE.parent.parent / "doc" / "clients.md"
ROUND_TRIPS = (0.5, 10, 100)

# What a case shows: (driver, case, name of the driver, how it was used)
PARAMETER = [
    ("psycopg3", "execute", "psycopg 3", "as it is: prepares at the sixth execution, which takes 2"),
    ("psycopg3", "execute_never_prepared", "psycopg 3", "`prepare_threshold=None`"),
    ("psycopg3", "simple_protocol", "psycopg 3", "`ClientCursor`: parameters become literals"),
    ("asyncpg", "fetch", "asyncpg", "as it is: prepares, and keeps 100 statements"),
    ("asyncpg", "no_statement_cache", "asyncpg", "`statement_cache_size=0`, as behind poolers"),
    ("asyncpg", "pool", "asyncpg", "from a pool, which resets the session when it gets it back"),
    ("sqlalchemy", "autocommit", "SQLAlchemy", "over psycopg 3, `AUTOCOMMIT`; connecting asks 7 questions"),
    ("django", "get_each", "Django", "as it is: parameters become literals"),
    ("pgx", "cache_statement", "pgx", "as it is: `cache_statement`"),
    ("pgx", "cache_describe", "pgx", "`default_query_exec_mode=cache_describe`"),
    ("pgx", "describe_exec", "pgx", "`default_query_exec_mode=describe_exec`"),
    ("pgx", "exec", "pgx", "`default_query_exec_mode=exec`"),
    ("pgx", "simple_protocol", "pgx", "`default_query_exec_mode=simple_protocol`"),
    ("database_sql_pgx", "with_argument", "database/sql with pgx", "as it is"),
    ("lib_pq", "with_argument", "database/sql with lib/pq", "as it is: prepares each time"),
    ("lib_pq", "binary_parameters", "database/sql with lib/pq", "`binary_parameters=yes`"),
    ("lib_pq", "prepared", "database/sql with lib/pq", "`db.Prepare` once"),
    ("node_pg", "with_parameter", "node-postgres", "as it is"),
    ("node_pg", "named", "node-postgres", "with a `name`: prepared"),
    ("postgres_js", "with_parameter", "postgres.js", "as it is: asks for the types of arrays, once for each connection"),
    ("postgres_js", "no_types", "postgres.js", "`fetch_types: false`"),
    ("postgres_js", "never_prepared", "postgres.js", "`prepare: false`"),
    ("tokio_postgres", "query", "tokio-postgres", "`query` with text: prepares each time"),
    ("tokio_postgres", "prepared", "tokio-postgres", "`prepare` once"),
    ("tokio_postgres", "query_typed", "tokio-postgres", "`query_typed`"),
    ("sqlx", "query", "sqlx", "as it is"),
    ("sqlx", "not_persistent", "sqlx", "`persistent(false)`"),
    ("sqlx", "pool", "sqlx", "from a pool, which tests a connection when it gets it back and before it gives it away"),
    ("pgjdbc", "prepared", "pgjdbc", "as it is: begins with SET application_name"),
    ("pgjdbc", "application_name_at_start", "pgjdbc", "`assumeMinServerVersion=12`: no SET"),
    ("pgjdbc", "simple_protocol", "pgjdbc", "`preferQueryMode=simple`"),
    ("pgjdbc", "hikari", "pgjdbc", "from HikariCP; connecting asks 3 questions"),
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

# 2 MB at once
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

# The same objects by one statement for each of them, and by few
ORM = [
    ("django", "lazy_loading", "Django", "20 objects, and the parent of each when it is used"),
    ("django", "select_related", "Django", "the same with `select_related`"),
    ("django", "lazy_sets", "Django", "20 objects, and the children of each when they are used"),
    ("django", "prefetch_related", "Django", "the same with `prefetch_related`"),
    ("sqlalchemy", "lazy_loading", "SQLAlchemy", "20 objects, and the children of each; connecting included"),
    ("sqlalchemy", "eager_loading", "SQLAlchemy", "the same with `selectinload`"),
]

PROGRAMS = [
    ("programs", "psql_single_string", "psql", "`-c` with three statements in one text"),
    ("programs", "psql_statements", "psql", "ten statements from a file"),
    ("programs", "psql_on_error_rollback", "psql", "a transaction of three statements, of which one fails, with"
     " `ON_ERROR_ROLLBACK`: a savepoint around each"),
    ("programs", "psql_gexec", "psql", "`\\gexec` of five statements"),
    ("programs", "psql_describe", "psql", "`\\d` of a table, and `\\dt`"),
    ("programs", "psql_copy_in", "psql", "five times `\\copy ... FROM`"),
    ("programs", "psql_copy_out", "psql", "three times `\\copy ... TO`"),
    ("programs", "psql_fetch_count", "psql", "`FETCH_COUNT` 100, 1000 rows"),
    ("programs", "pg_dump", "pg_dump", "one table of 1000 rows; most of it are questions to the catalogs"),
    ("programs", "pg_dump_inserts", "pg_dump", "the same with `--inserts`: a cursor, 100 rows at a time"),
    ("programs", "pg_restore", "pg_restore", "`-j 2`, two such tables: three connections, some of it at the same time"),
]

# ... and how often it does it
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
    ("django", "Django, `CONN_MAX_AGE` 0"), ("programs", "psql -c"), ("psycopg3_tls", "psycopg 3, with TLS and a password"),
    ("psycopg3_p256", "the same, with OpenSSL's `Groups = P-256`"),
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
        """Round trips of the first and of any later unit, which consists of so many executions."""
        after = self.executions(driver, case, verb)
        size = len(after) // (units or len(after))
        after = after[size - 1::size]
        steps = [after[0]] + [b - a for a, b in zip(after, after[1:])]
        return steps[0], steps[-1]

    def turns(self, driver, case):
        return self.cases[driver, case]["turns"]


def milliseconds(turns):
    return " | ".join(f"{turns * trip:.1f}" if turns * trip < 10 and turns * trip % 1 else f"{turns * trip:.0f}"
                      for trip in ROUND_TRIPS)


def plain(number):
    return f"{number:g}" if number == int(number) else f"{number:.1f}"


def table(title, first, rows):
    yield f"## {title}\n"
    yield first
    columns = "| driver | how | first time | later | 0.5 ms | 10 ms | 100 ms |"
    yield columns
    yield "|---|---|--:|--:|--:|--:|--:|"
    yield from rows
    yield ""


def rows(figures, definitions, verb=None, units=None):
    for definition in definitions:
        driver, case, name, how, *rest = definition
        if (driver, case) not in figures.cases:
            continue
        verb_here, units_here = rest or (verb, units)
        first, later = figures.first_and_later(driver, case, verb_here, units_here)
        yield f"| {name} | {how} | {plain(first)} | {plain(later)} | {milliseconds(later)} |"


def whole(title, first, figures, definitions):
    """Round trips of whole cases."""
    yield f"## {title}\n"
    if first:
        yield first
    yield "| driver | how | round trips | 0.5 ms | 10 ms | 100 ms |"
    yield "|---|---|--:|--:|--:|--:|"
    for driver, case, name, how in definitions:
        if (driver, case) in figures.cases:
            turns = figures.turns(driver, case)
            yield f"| {name} | {how} | {turns} | {milliseconds(turns)} |"
    yield ""


def page(figures):
    trips = "what the round trips of a later one take"
    yield "# What drivers do on the wire\n"
    yield ("Generated by `test/clients/run --json` and `test/clients/table.py` from packets, captured over a path with a\n"
           "round trip of 10 ms. Round trips are counted, not timed: times at 0.5, 10 and 100 ms are the counts times the\n"
           "round trip, without the time of any work. `round_trips` and `network_time` of pgnetlat show the same for your\n"
           "own sessions.\n")
    yield ("A round trip is a message that the client sent after it had waited for everything that the server was going to\n"
           "say. Drivers in the versions that `test/clients/` pins; PostgreSQL 15. Neither TLS nor a\n"
           "password but where it says so: once a connection is there, the counts are the same.\n")
    yield from table("One statement with a parameter, again and again",
                     "First: up to the first result, not including the connection, but including what the driver\n"
                     f"asks on its own before. Times: {trips}.\n",
                     rows(figures, PARAMETER, "SELECT"))
    yield from table("A transaction of five inserts",
                     "Seven round trips, unless the driver prepares, or sends BEGIN or the inserts together.\n",
                     rows(figures, TRANSACTION, "COMMIT"))
    yield from table("Many statements at once", "Round trips of one batch.\n", rows(figures, BATCH))
    yield from table("A small COPY FROM STDIN",
                     "COPY costs two round trips if the client waits to be asked for the data.\n",
                     rows(figures, COPY, "COPY"))
    yield from table("A large result",
                     "2000 rows of 1 kB each, all at once: a round trip, however long it is. What it takes beyond that is\n"
                     "bandwidth.\n",
                     rows(figures, LARGE, "SELECT"))
    yield from whole("1000 rows in pieces of 100", "", figures, PIECES)
    yield "## Connect, SELECT 1, disconnect\n"
    yield ("From the TCP handshake to the result: one round trip for TCP, one for the protocol's startup, what the driver\n"
           "asks on its own, and the statement. A password (SCRAM) adds two, TLS 1.3 two more (one before the handshake to\n"
           "ask for it), or three if the client has not guessed which key exchange the server wants: before PostgreSQL 18\n"
           "that is P-256, for which Java offers a key at once, and OpenSSL and Go do not. Times: of a later one.\n")
    yield "| driver | first time | later | 0.5 ms | 10 ms | 100 ms |"
    yield "|---|--:|--:|--:|--:|--:|"
    for driver, name in CONNECT:
        case = figures.cases.get((driver, "short_connections"))
        if case:
            first, *_, later = case["connection_turns"]
            yield f"| {name} | {first} | {later} | {milliseconds(later)} |"
    yield ""
    yield from whole("An ORM's objects", "A statement for each of many objects (N+1) costs a round trip for each.\n",
                     figures, ORM)
    yield from whole("PostgreSQL's own programs", "Without connecting, which takes two.\n", figures, PROGRAMS)
    watch = figures.cases.get(("programs", "psql_watch"))
    if watch:
        _, later = figures.first_and_later("programs", "psql_watch", "SELECT")
        yield f"Round trips of `\\watch` each time: {later}.\n"
    yield "## What that means\n"
    yield ("- Whatever prepares anew each time pays twice. Keep the statement, or use the form that specifies the\n"
           "  parameters' types.\n"
           "- A setting made for poolers (no prepared statements) may cost a round trip for each statement: asyncpg and\n"
           "  postgres.js then describe each statement first; psycopg 3, pgx (`exec`) and node-postgres do not.\n"
           "- An ORM that fetches the related objects of each object pays for each; told beforehand what is needed, it\n"
           "  asks once or twice.\n"
           "- A connection costs as much as several statements, and more with TLS and a password: keep it, or let a pool\n"
           "  keep it. Some pools then ask on their own before or after each use (`pool_pre_ping`, sqlx, asyncpg).\n"
           "- A large result costs no round trips beyond the first, but a cursor costs one for each piece: take large\n"
           "  pieces.\n"
           "- Batches pay only once if the driver sends them together: node-postgres queues them, and pays for each.\n"
           "- At 0.5 ms nobody notices; at 10 ms a page with 50 statements has lost half a second; at 100 ms nothing else\n"
           "  matters.")


def main():
    PAGE.write_text("\n".join(page(Figures(sys.argv[1:]))) + "\n")
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
