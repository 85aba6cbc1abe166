"""What reading costs when there is much to read: thousands of statements, a thousand client groups.

Each role has a table, whose columns make statements that differ, and connects once, under
one name after another.  Every fifth statement returns many rows; after half of these, the
next one is run for each row, and takes long enough for a finding.
"""

import results

FULL = {"roles": 25, "names": 40, "kinds": 5}       # 1,000 client groups, 5,000 statements
SHORT = {"roles": 2, "names": 5, "kinds": 5}
ROWS = 60                                           # of the statement for whose rows another one is executed,
PAUSE = 0.005                                       # each time for so many seconds
REPETITIONS = 3

VIEW_BUDGET = 250               # ms of the backend's CPU time
SCRAPE_BUDGET = 100             # ms: all metrics
FUNCTIONS = ["pgnetlat_diagnose()", "pgnetlat_top_statements(NULL)", "pgnetlat_query_texts()", "pgnetlat_report()",
             "pgnetlat_what_if(rtt => 1)"]
VIEWS = "SELECT relname FROM pg_class WHERE relkind = 'v' AND relname LIKE 'pgnetlat%' ORDER BY relname"
METRICS = "pgnetlat_metrics_"

# As installed: a plan that the server compiles costs what that takes.
SETTINGS = {"jit": "on", "listen_addresses": "127.0.0.1", "pgnetlat.max_clients": 2000, "pgnetlat.max_statements": 10000,
            "pg_stat_statements.max": 10000}


def measure(tally, cluster, time_query, short):
    """The CPU time of each view and function; "time_query" as in scale."""
    size = SHORT if short else FULL
    of = (f"{results.number(size['roles'] * size['names'] * size['kinds'])} statements, "
          f"{results.number(size['roles'] * size['names'])} client groups")
    print(f"# {of}", flush=True)
    table = tally.table(f"Views and functions: {of}", ["view", "rows", "CPU time"])
    server = cluster.server("pgnetlat,pg_stat_statements", SETTINGS)
    server.host = "127.0.0.1"
    server.start(free_port=True)
    try:
        prepare(server, size)
        names = [name for name, in server.rows(VIEWS)] + FUNCTIONS
        load(server, size)
        spent = {}
        for name in names:
            _, spent[name], rows = time_query(server, f"SELECT * FROM {name}", 1 if short else REPETITIONS)
            table.add(name, rows, f"{spent[name]:.1f} ms")
        kept = int(server.value("SELECT count(*) FROM pgnetlat_statements"))
    finally:
        server.stop()
    if kept < size["roles"] * size["names"] * size["kinds"]:
        raise RuntimeError(f"{kept} statements are known: {of} were wanted")
    # An exporter has the histograms as rows or as arrays, never both.
    scrape = (sum(time for name, time in spent.items() if name.startswith(METRICS))
              - min(spent[METRICS + "bucket"], spent[METRICS + "distribution"]))
    table.add("all metrics", "", f"{scrape:.1f} ms")
    if short:
        tally.works(of)
        return
    for name, time in spent.items():
        if not name.startswith(METRICS):
            tally.judge("CPU time of a view or function", time, VIEW_BUDGET, "ms", of=f"`{name}`, {of}", digits=1,
                        required=False)
    tally.judge("CPU time of a scrape of all metrics", scrape, SCRAPE_BUDGET, "ms", of=of, digits=1, required=False)
    tally.figure("crowd", "views", of, max((time, name) for name, time in spent.items() if not name.startswith(METRICS)))
    tally.figure("crowd", "scrape", of, scrape)


def prepare(server, size):
    """Roles and their tables."""
    columns = ", ".join(f"c{number} int DEFAULT 1" for number in range(size["names"] * size["kinds"]))
    server.sql("CREATE EXTENSION pgnetlat", "CREATE EXTENSION pg_stat_statements",
               *(f"CREATE ROLE role{role} LOGIN; CREATE TABLE crowd{role} (id int, {columns});"
                 f"INSERT INTO crowd{role} SELECT generate_series(1, {ROWS}); GRANT SELECT ON crowd{role} TO role{role}"
                 for role in range(size["roles"])))


def load(server, size):
    """What all of them do at the same time, within a few seconds."""
    clients = [server.space.start([server.bindir / "psql", "-Xq", "-o", "/dev/null", "-v", "ON_ERROR_STOP=1", "-f",
                                   server.space.write(f"crowd{role}.sql", "".join(statements(role, size)))],
                                  environment=server.environment(user=f"role{role}"))
               for role in range(size["roles"])]
    if any([client.wait() for client in clients]):
        raise RuntimeError("a client has failed")


def statements(role, size):
    for name in range(size["names"]):
        yield f"SET application_name = 'application {name}';\n"
        for kind in range(size["kinds"]):
            column = f"c{name * size['kinds'] + kind}"
            text = (f"SELECT id /* an application that says where it comes from, in {200 * '.'} */ FROM crowd{role}"
                    f" WHERE {column} = 1")
            if kind == 1 and name % 2 == 0:
                for row in range(ROWS):
                    yield f"{text} AND id = {row} AND (SELECT pg_sleep({PAUSE})) IS NOT NULL;\n"
            else:
                yield f"{text}{'' if kind == 0 else ' LIMIT 1'};\n"
