"""What `pgnetlat_what_if()` predicts, against what comes true.

pgbench runs at one round trip. `pgnetlat_what_if()` predicts from that run what its throughput and the time of a
transaction would be at other round trips, or if statements travelled together. Then pgbench runs like that.

Truth: pgbench's own counts of transactions. Counting begins when all of its clients are connected, because they
connect one after the other, and the early ones wait. The round trips asked for are those that the kernel measures
on each path under that load, for a busy line is a little faster. In brackets: `predicted_throughput_low` to
`predicted_throughput_high`; a prediction for a shorter path meets its goal as well if the truth is between them.
"""

import re
import statistics

from harness import poll

import measure
from scenarios.common import label

TITLE = "Predictions"

# Fewer transactions are no mean: pgbench counts whole ones in each second.
TRANSACTIONS = 200

# What fails the suite: a prediction for a longer path that is off by so much, or takes less time than the path. A
# machine that is busy with something else in one of the runs takes milliseconds more, in the worst case as many as
# the path; predictions for a short path, or for batches, may consist of nothing else then.
NOISE = 0.6
LEAST = 0.97                    # of the path

SLOWER = "What turns take depends on how long the server and the client have waited, and on who else keeps the" \
    " processors warm. The account shows one state of that, and the law in `src/prediction.c` is one machine's." \
    " With many clients, pgbench and the line need the processors that the server needs."
REASONS = {"transaction time": SLOWER, "throughput": SLOWER}

PROGRESS = re.compile(r"progress: [\d.]+ s, ([\d.]+) tps")

PREDICTION = """
    SELECT transaction_time, throughput, predicted_transaction_time, predicted_throughput,
           predicted_throughput_low, predicted_throughput_high
      FROM pgnetlat_what_if({arguments}) WHERE application_name = 'pgbench' AND datname = current_database()
"""

STATEMENT = "\\set aid random(1, 100000)\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n"


class Run:
    """pgbench at one round trip: what it did, and what is predicted from that."""

    def __init__(self, lab, rtt, clients, script, seconds, questions, statements=1):
        self.clients = clients
        lab.path(rtt)
        command = [lab.program("pgbench"), "-n", "-P", 1, "-c", clients, "-j", min(clients, 2), "-T", 600, *script]
        program = lab.start("tun", command, log="predicted")
        try:
            poll.until(lambda: sum(row["requests"] >= 10 for row in measure.snapshots(lab, "pgbench").values())
                       >= clients, "pgbench's sessions", 60)
            measure.think(0.5)
            lab.admin.query("SELECT pgnetlat_reset()")
            first = len(self.progress(lab))
            measure.think(seconds)
            self.predictions = {name: predict(lab, arguments) for name, arguments in questions.items()}
            self.measured = predict(lab, "")
            self.rtt = statistics.mean(row["rtt"] for row in measure.snapshots(lab, "pgbench").values())
            # The second that was being counted when all of this began is not of it.
            poll.until(lambda: len(self.progress(lab)) > first + 1, "pgbench's progress")
            self.throughput = statistics.mean(self.progress(lab)[first + 1:]) * statements
            self.transaction_time = clients / self.throughput * 1000
        finally:
            lab.stop(program)
            poll.until(lambda: not measure.snapshots(lab, "pgbench"), "an end of pgbench's sessions")

    @staticmethod
    def progress(lab):
        """Transactions per second, of each second."""
        return [float(tps) for tps in PROGRESS.findall(lab.space.log("predicted"))]


def predict(lab, arguments):
    """The measured and the predicted figures, as soon as there are enough transactions for that."""
    def known():
        row, = lab.admin.dictionaries(PREDICTION.format(arguments=arguments))
        return row if None not in row.values() else None

    row = poll.until(known, "a prediction", 60)
    return {name: float(value) for name, value in row.items()}


def compare(results, prediction, run, allowed, bounds_count=False, required=False):
    """A prediction beside what came true, "allowed" a share of it or None for no goal."""
    low, high = (prediction[f"predicted_throughput_{bound}"] for bound in ("low", "high"))
    contained = bounds_count and low <= run.throughput <= high
    goal = "" if allowed is None else f"{allowed * 100:g} %" + (", or within bounds" if bounds_count else "")
    path = LEAST * run.rtt
    for name, truth, shown, path_alone, unit, note in (
            ("transaction time", run.transaction_time, prediction["predicted_transaction_time"], path, "ms", ""),
            ("throughput", run.throughput, prediction["predicted_throughput"], run.clients * 1000 / path, "/s",
             f"{low:.4g} to {high:.4g}")):
        margin = allowed and allowed * truth
        fails_at = max(NOISE * truth, (path_alone - truth) * (-1 if unit == "ms" else 1))
        results.add(name, truth, shown, unit=unit, note=note, goal=goal, required=required, fails_at=fails_at,
                    allowed=abs(shown - truth) + margin if contained else margin)


def round_trips(lab, results, short):
    rtts = (0.0005, 0.05) if short else (0.0005, 0.001, 0.005, 0.05)
    script = ["-S", "-M", "prepared"]
    for clients in (1,) if short else (1, 16, 64):
        questions = {rtt: f"rtt => {Run(lab, rtt, clients, script, 1 if short else 3, {}).rtt}" for rtt in rtts}
        runs = {rtt: Run(lab, rtt, clients, script, 2.5 if short else max(8, TRANSACTIONS * rtt / clients), questions)
                for rtt in rtts}
        for rtt in rtts:
            results.case = f"{clients} clients, {label(rtt)}: as measured"
            compare(results, runs[rtt].measured, runs[rtt], None)
            for other in (o for o in rtts if o != rtt):
                results.case = f"{clients} clients, from {label(rtt)} to {other * 1000:g} ms"
                forward = other > rtt
                compare(results, runs[rtt].predictions[other], runs[other],
                        0.1 if not forward else 0.03 if clients == 1 else 0.05, bounds_count=not forward,
                        required=forward)


def batches(lab, results, short):
    single = lab.directory / "single.sql"
    single.write_text(STATEMENT)
    sizes = (10,) if short else (10, 100)
    for mode in ("extended",) if short else ("extended", "prepared"):
        run = Run(lab, 0.01, 1, ["-f", single, "-M", mode], 2.5 if short else 8,
                  {size: f"batch => {size}" for size in sizes})
        for size in sizes:
            together = lab.directory / f"together{size}.sql"
            together.write_text("\\startpipeline\n" + STATEMENT * size + "\\endpipeline\n")
            truth = Run(lab, 0.01, 1, ["-f", together, "-M", mode], 2.5 if short else 8, {}, statements=size)
            results.case = f"from single statements to batches of {size}, {mode}, {label(0.01)}"
            compare(results, run.predictions[size], truth, 0.05)


def run(lab, results, short):
    lab.run("unix", [lab.program("pgbench"), "-i", "-q", "-s", "1"])
    # Many clients take the processors of a line that polls, and it theirs.
    with lab.all_processors():
        round_trips(lab, results, short)
        batches(lab, results, short)
