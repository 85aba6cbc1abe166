"""Loads that nobody has tuned the model for: predicted from one round trip, measured at two others."""

import contextlib
import dataclasses

import formulas
import pgbench
from page import Section, cells, figure, percent, table
from scenarios.common import setting

TITLE = "Loads nobody has tuned for"


@dataclasses.dataclass
class Load:
    name: str
    clients: int
    arguments: tuple                # of pgbench
    base: float                     # round trips in milliseconds: where it is measured,
    others: tuple                   # and what is predicted
    script: str = ""
    fsync: str = "off"


SIMPLE, EXTENDED, PREPARED = (("-M", mode) for mode in ("simple", "extended", "prepared"))

READ = "\\set aid random(1, 100000)\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n"
HOT = """
\\set aid random(1, 100000)
BEGIN;
UPDATE hot SET n = n + 1 WHERE i = 1;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :aid;
COMMIT;
"""
THINKING = """
\\set aid random(1, 100000)
BEGIN;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
\\sleep 3 ms
UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :aid;
COMMIT;
"""
CONVERSATION = "BEGIN;\n" + READ * 20 + "COMMIT;\n"
PIPELINE = "\\startpipeline\n" + READ * 8 + "\\endpipeline\n"
PIPELINED_WRITES = """
\\startpipeline
BEGIN;
INSERT INTO sink SELECT 1, 'x';
INSERT INTO sink SELECT 2, 'x';
INSERT INTO sink SELECT 3, 'x';
COMMIT;
\\endpipeline
"""

LOADS = (
    Load("TPC-B, 8 clients", 8, ("-b", "tpcb-like", *SIMPLE), 2, (0.2, 20)),
    Load("one hot row, 12 clients", 12, EXTENDED, 2, (0.5, 10), HOT),
    Load("writes, 3 clients", 3, ("-b", "simple-update", *PREPARED), 5, (0.5, 50)),
    Load("20 statements, 2 clients", 2, SIMPLE, 1, (0.2, 10), CONVERSATION),
    Load("sums of 20,000 rows, 1 client", 1, PREPARED, 1, (0.2, 20),
         "SELECT sum(i) FROM generate_series(1, 20000) i;\n"),
    Load("the same, 16 clients: no CPU is left", 16, PREPARED, 20, (0.5, 50),
         "SELECT sum(i) FROM generate_series(1, 20000) i;\n"),
    Load("results of 200 kB, 4 clients", 4, SIMPLE, 5, (0.5, 20),
         "SELECT repeat('x', 1000) FROM generate_series(1, 200) i;\n"),
    Load("results of 10 kB, 24 clients", 24, EXTENDED, 5, (0.5, 50),
         "SELECT repeat('x', 1000) FROM generate_series(1, 10) i;\n"),
    Load("pipelines of 8, 6 clients", 6, EXTENDED, 5, (0.5, 50), PIPELINE),
    Load("pipelined transactions, 10 clients", 10, PREPARED, 2, (0.2, 20), PIPELINED_WRITES),
    Load("thinks for 3 ms in the transaction, 5 clients", 5, PREPARED, 2, (0.5, 20), THINKING),
    Load("thinks for 20 ms between reads, 48 clients", 48, PREPARED, 5, (0.5, 50), READ + "\\sleep 20 ms\n"),
    Load("commits wait for the disk, 8 clients", 8, EXTENDED, 2, (0.2, 20), "INSERT INTO sink VALUES (1, 'x');\n", "on"),
    Load("a mix of reads, TPC-B and sums, 64 clients", 64,
         # not prepared: pgbench keeps all clients waiting while it prepares the statements of one
         ("-b", "select-only@12", "-b", "tpcb-like@1", *EXTENDED), 10, (1, 40),
         "SELECT sum(i) FROM generate_series(1, 3000) i;\n"),
)

SHORT = (0, 3, 9)


def prepare(lab):
    lab.run("unix", [lab.program("pgbench"), "-i", "-q", "-s", "4"])
    for statement in ("DROP TABLE IF EXISTS hot, sink", "CREATE TABLE hot AS SELECT i, 0 AS n FROM generate_series(1, 10) i",
                      "CREATE TABLE sink (id int, payload text)"):
        lab.admin.query(statement)


def measured(lab, load, rtt, seconds, questions=None):
    lab.path(rtt / 1000)
    arguments = list(load.arguments)
    if load.script:
        arguments += ["-f", lab.space.write("load.sql", load.script)]
    return pgbench.Run(lab, "tun", load.clients, arguments, seconds, questions)


def seconds_for(load, rtt, short):
    statements = max(load.script.count(";"), 7 if "tpcb-like" in load.arguments else 1)
    return max(1.5 if short else 4, min(60 * statements * rtt / load.clients / 1000, 8))


def predict(lab, load, short):
    """Predictions for the other paths, as they are without any load, and what came true there."""
    questions = {other: f"rtt => {pgbench.ping(lab, other)}" for other in load.others}
    with setting(lab, "fsync", load.fsync) if load.fsync != "off" else contextlib.nullcontext():
        base = measured(lab, load, load.base, seconds_for(load, load.base, short), questions)
        for other in load.others:
            after = measured(lab, load, other, seconds_for(load, other, short))
            what = f"{load.name}, {load.base:g} to {other:g} ms"
            yield other, base, after, pgbench.prediction(what, base.predictions[other], after)


TEXT = """\
No constant of the model behind `pgnetlat_what_if()` was fitted to the throughput of these loads. But of the models that did
equally well on these loads and on others, the shortest was taken. Each load runs over one path, is predicted for a shorter
and a longer one, and runs over these afterwards. Throughput is in transactions per second. A measured throughput in **bold**
is out of bounds.

"""

SUMMARY = """\
Of {quality.count} predictions, half are within {quality.median} of the truth, nine of ten within {quality.ninth}, and
{quality.within} of the truths lie within the bounds. For a longer path: {longer.median}, {longer.ninth},
{longer.within}; for a shorter one: {shorter.median}, {shorter.ninth}, {shorter.within}.

A longer path is easy to predict, since what is added is known. With a shorter path, server and client take up more of the
time, on CPUs that are then busier. How long their turns and queues become is only partly in the account.
"""


COLUMNS = ("load", "measured at", "then at", "predicted before (bounds)", "measured after", "off by")


def run(lab, short):
    prepare(lab)
    rows, of = [], {True: [], False: []}
    with lab.all_processors():
        for load in (LOADS[i] for i in SHORT) if short else LOADS:
            title = load.name
            for other, base, _, p in predict(lab, load, short):
                print(f"     {p.what}: {p.error:+.1%}{'' if p.within else ', out of bounds'}", flush=True)
                of[other > load.base].append(p)
                truth = figure(p.measured) if p.within else f"**{figure(p.measured)}**"
                rows.append((title, title and f"{load.base:g} ms: {figure(base.throughput)}", f"{other:g} ms", cells(p),
                             truth, percent(p.error)))
                title = ""
    every = of[True] + of[False]
    quality, longer, shorter = (formulas.quality(which).said() for which in (every, of[True], of[False]))
    text = "\n".join((TEXT.rstrip("\n") + "\n", table(COLUMNS, rows),
                      SUMMARY.format(quality=quality, longer=longer, shorter=shorter)))
    return Section(TITLE, text,
                   f"**Loads nobody has tuned for**: {quality.count} predictions, half within {quality.median}, nine of"
                   f" ten within {quality.ninth}; {quality.within} of the truths within the bounds.", every)
