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
    ("sqlx", "transaction", "sqlx", "`begin()`"),
    ("pgjdbc", "transaction", "pgjdbc", "`setAutoCommit(false)`: BEGIN travels with the first statement"),
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

CONNECT = [
    ("psycopg3", "psycopg 3"), ("asyncpg", "asyncpg"), ("pgx", "pgx"), ("database_sql_pgx", "database/sql with pgx"),
    ("lib_pq", "database/sql with lib/pq"), ("node_pg", "node-postgres"), ("postgres_js", "postgres.js"),
    ("tokio_postgres", "tokio-postgres"), ("sqlx", "sqlx"), ("pgjdbc", "pgjdbc"), ("programs", "psql -c"),
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


def page(figures):
    trips = "what the round trips of a later one take"
    yield "# What drivers do on the wire\n"
    yield ("Generated by `test/clients/run --json` and `test/clients/table.py` from packets, captured over a path with a\n"
           "round trip of 10 ms. Round trips are counted, not timed: times at 0.5, 10 and 100 ms are the counts times the\n"
           "round trip, without the time of any work. `round_trips` and `network_time` of pgnetlat show the same for your own\n"
           "sessions.\n")
    yield ("A round trip is a message that the client sent after it had waited for everything that the server was going to\n"
           "say. Drivers in the versions that `test/clients/` pins; PostgreSQL 15, no TLS, no password.\n")
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
    yield "## 1000 rows in pieces of 100\n"
    yield "| driver | how | round trips | 0.5 ms | 10 ms | 100 ms |"
    yield "|---|---|--:|--:|--:|--:|"
    for driver, case, name, how in PIECES:
        if (driver, case) in figures.cases:
            turns = figures.turns(driver, case)
            yield f"| {name} | {how} | {turns} | {milliseconds(turns)} |"
    yield ""
    yield "## Connect, SELECT 1, disconnect\n"
    yield ("From the TCP handshake to the result: one round trip for TCP, one for the protocol's startup, what the driver\n"
           "asks on its own, and the statement. A password (SCRAM) adds two, TLS 1.3 two more (one before the handshake to\n"
           "ask for it).\n")
    yield "| driver | round trips | 0.5 ms | 10 ms | 100 ms |"
    yield "|---|--:|--:|--:|--:|"
    for driver, name in CONNECT:
        case = figures.cases.get((driver, "short_connections"))
        if case and case["connections"]:
            turns = 1 + (case["startup_turns"] + case["turns"]) / case["connections"]
            yield f"| {name} | {plain(turns)} | {milliseconds(turns)} |"
    yield ""
    yield "## What that means\n"
    yield ("- Whatever prepares anew each time pays twice. Keep the statement, or use the form that specifies the parameters'\n"
           "  types.\n"
           "- A setting made for poolers (no prepared statements) may cost a round trip for each statement: asyncpg and\n"
           "  postgres.js then describe each statement first; psycopg 3, pgx (`exec`) and node-postgres do not.\n"
           "- Batches pay only once if the driver sends them together: node-postgres queues them, and pays for each.\n"
           "- At 0.5 ms nobody notices; at 10 ms a page with 50 statements has lost half a second; at 100 ms nothing else\n"
           "  matters.")


def main():
    PAGE.write_text("\n".join(page(Figures(sys.argv[1:]))) + "\n")
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
