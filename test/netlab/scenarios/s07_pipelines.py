"""Pipelines: statements under one Sync, many Syncs in flight, pgbench's pipeline mode, psycopg's.

Truth: packets. What is under one Sync is one exchange; a request that had arrived before the previous
response left is pipelined and has no wait.
"""

from harness import pgclient

from scenarios.common import ask, label, program

TITLE = "Pipelines"

PSYCOPG = """
import psycopg
with psycopg.connect("application_name=pipeline", autocommit=True) as connection:
    while True:
        with connection.pipeline():
            for i in range({batch}):
                connection.execute("SELECT 1")
"""


def run(lab, results, short):
    statement = pgclient.parse("SELECT 1") + pgclient.bind() + pgclient.execute()
    for rtt in (0.005,) if short else (0.0005, 0.005, 0.05):
        lab.path(rtt)
        iterations = max(10, min(300, int((1 if short else 3) / rtt)))
        seconds = 1 if short else max(2, 40 * rtt)
        for batch in (1, 10, 100):
            results.case = f"{batch} statements under one Sync, {label(rtt)}"
            ask(lab, results, "tun", iterations, statement * batch + pgclient.sync())
        for syncs in (10, 100):
            results.case = f"{syncs} Syncs in flight, {label(rtt)}"
            ask(lab, results, "tun", max(5, iterations // 10), (statement + pgclient.sync()) * syncs,
                responses=syncs)
        for batch in (1, 10, 100):
            if short and batch != 10:
                continue
            script = lab.directory / f"pipeline{batch}.sql"
            script.write_text("\\startpipeline\n" + "SELECT 1;\n" * batch + "\\endpipeline\n")
            results.case = f"pgbench pipeline of {batch}, {label(rtt)}"
            program(lab, results, "tun", [lab.program("pgbench"), "-n", "-M", "extended", "-T", 600,
                                          "-f", script], seconds=seconds)
            results.case = f"psycopg pipeline of {batch}, {label(rtt)}"
            psycopg(lab, results, batch, seconds)


def psycopg(lab, results, batch, seconds):
    python = "/usr/bin/python3"         # the one that Debian's python3-psycopg belongs to
    try:
        lab.run("unix", [python, "-c", "import psycopg"])
    except RuntimeError:
        results.skip(f"psycopg 3 for {python} is not installed")
        return
    program(lab, results, "tun", [python, "-c", PSYCOPG.format(batch=batch)], seconds=seconds,
            application="pipeline")
