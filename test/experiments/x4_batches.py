"""Craig Ringer: 500 INSERTs over 320 ms, one by one, in a pipeline, by COPY."""

import clients
from formulas import Prediction
from page import Section, percent, share, table

TITLE = "500 INSERTs at 320 ms (explicit and hidden latencies)"

RTT = 0.320
ROWS = 500
SHORT_ROWS = 25

TEXT = """\
**Published.** 500 INSERTs over a round trip of 320 ms: one by one 167.0 s, in libpq's pipeline mode 1.2 s.

**Here.** psycopg inserts {rows} rows, each in a transaction of its own. Then, before anything else runs,
`pgnetlat_what_if(batch => {rows})` and `pgnetlat_diagnose()` are called. The pipelines, psycopg's and libpq's own (in
pgbench), and COPY come afterwards.

"""

LATER = """\
`pgnetlat_diagnose()` had called it *{verdict}*. `batch` counts one round trip for the whole pipeline. A new connection
takes some more, because TCP begins with ten packets and doubles their number with each round trip (slow start), and
psycopg sends each statement in a packet of its own. libpq fills packets, and its connection is at full speed by the third
pipeline. The model knows the statements, but not how a client will pack them: it is off by {miss:.1f} of {took:.0f} s.
"""


def run(lab, short):
    rows = SHORT_ROWS if short else ROWS
    clients.prepare(lab)
    lab.path(RTT)
    took = clients.run(lab, "rows", "one by one", rows)
    reply = clients.ask(lab, "rows", f"batch => {rows}")
    finding = clients.finding(lab, "rows")
    predicted = reply["predicted_transaction_time"] * rows / 1000

    def compared(what, measured):
        return Prediction(f"{rows} INSERTs, {what}", predicted, measured, "s", low=rows / reply["predicted_throughput_high"],
                          high=rows / reply["predicted_throughput_low"])

    pipelines = [compared("psycopg's pipeline", clients.run(lab, "rows", "pipeline", rows))]
    seconds = libpq_pipelines(lab, rows)
    pipelines += [compared("libpq's first pipeline", seconds[0]), compared("libpq's third pipeline", seconds[-1])]
    copy = clients.run(lab, "rows", "COPY", rows)
    pipeline = pipelines[0].measured

    saving = Prediction(f"{rows} INSERTs, saved by psycopg's pipeline", took - predicted, took - pipeline, "s")
    text = TEXT.format(rows=rows) + table(
        ("", "published", "predicted before", "measured after", "off by"),
        [("one by one", "167.0 s", "", f"{took:.1f} s", ""),
         *((p.what.split(", ")[1], published, f"{predicted:.2f} s", f"{p.measured:.2f} s", percent(p.error))
           for p, published in zip(pipelines, ("", "1.2 s", ""))),
         ("saved by psycopg's", "165.8 s", f"{saving.predicted:.1f} s", f"{saving.measured:.1f} s", percent(saving.error)),
         ("COPY", "", "", f"{copy:.2f} s", "")]) + "\n" + LATER.format(
             verdict=finding["verdict"], took=took, miss=abs(pipeline - predicted))
    return Section(TITLE, text,
                   f"**{rows} INSERTs at 320 ms**: {took:.0f} s one by one, {pipeline:.1f} s in a pipeline (published: 167"
                   f" and 1.2); the saving was predicted beforehand, {share(abs(saving.error), 1)} off.",
                   [*pipelines, saving])


def libpq_pipelines(lab, rows):
    """Seconds of each of three pipelines on one connection."""
    inserts = "INSERT INTO sink VALUES (1, 'x');\n" * rows
    script = lab.space.write("pipeline.sql", f"\\startpipeline\n{inserts}\\endpipeline\n")
    lab.run("tun", [lab.program("pgbench"), "-n", "-t", 3, "-M", "extended", "-f", script, "-l",
                    "--log-prefix", "pipelines"])
    log, = lab.space.directory.glob("pipelines.*")
    seconds = [int(line.split()[2]) / 1e6 for line in log.read_text().splitlines()]
    log.unlink()
    return seconds
