"""Predictions of `pgnetlat_what_if()`, against what comes true.

pgbench runs at one round trip. `pgnetlat_what_if()` predicts from that run what its throughput and the time of a
transaction would be at other round trips, or if statements travelled together. Then pgbench runs like that.

Truth: pgbench's own counts of transactions. Counting begins when all of its clients are connected, because they
connect one after the other, and the early ones wait. A path's round trip is what the kernel measures under that load,
for a busy line is a little faster: predictions are asked for round trips around it, and are taken for the one that
the other run had, in between. All runs are made three times in turn, and medians are shown.

In brackets: `predicted_throughput_low` to `predicted_throughput_high`; a prediction for a shorter path meets its goal
as well if the truth is between them.
"""

import functools
import re
import statistics

from harness import poll

import measure
from scenarios.common import label

TITLE = "Predictions"

# Fewer transactions are no mean: pgbench counts whole ones in each second.
TRANSACTIONS = 200

# A machine that others use is slower for a minute or so.
ROUNDS = 3

# A prediction for a longer path fails if it is shorter than the path, or off by this share of the truth and by more
# than the other run took beside its path. A machine that is busy in one of the runs adds milliseconds, at worst as
# many as the path, and predictions for a short path or for batches may then consist of nothing else.
NOISE = 0.6
LEAST = 0.97                    # of the path

SLOWER = "The time of a turn depends on how long the server and the client have waited, and on how warm the caches are." \
    " The account shows one such state. With many clients, the line and pgbench compete with the server for CPUs," \
    " and need less CPU time for each transaction when their queues are longer."
REASONS = {"transaction time": SLOWER, "throughput": SLOWER}

PROGRESS = re.compile(r"progress: [\d.]+ s, ([\d.]+) tps")

PREDICTION = """
    SELECT transaction_time, throughput, predicted_transaction_time, predicted_throughput,
           predicted_throughput_low, predicted_throughput_high
      FROM pgnetlat_what_if({arguments}) WHERE application_name = 'pgbench' AND datname = current_database()
"""

# A prediction is asked for these times the round trip that a path is expected to have.
AROUND = (0.9, 1.1)

STATEMENT = "\\set aid random(1, 100000)\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n"


class Run:
    """pgbench at one round trip: what it did, and what is predicted from that."""

    def __init__(self, lab, rtt, clients, script, seconds, questions, statements=1):
        self.clients, self.statements = clients, statements
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
            # The first second had begun before the measurement.
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


class Medians:
    """Runs of the same kind, with others between them, as one."""

    def __init__(self, runs):
        self.clients, self.statements = runs[0].clients, runs[0].statements
        self.predictions = {name: medians([run.predictions[name] for run in runs]) for name in runs[0].predictions}
        self.measured = medians([run.measured for run in runs])
        for figure in ("rtt", "throughput", "transaction_time"):
            setattr(self, figure, statistics.median(getattr(run, figure) for run in runs))


def medians(rows):
    """Of each figure."""
    return {name: statistics.median(row[name] for row in rows) for name in rows[0]}


def in_turn(short, kinds):
    """Makes runs of all kinds, one after the other and all of them again; "kinds" are functions by name."""
    rounds = [{name: make() for name, make in kinds.items()} for _ in range(1 if short else ROUNDS)]
    return {name: Medians([runs[name] for runs in rounds]) for name in kinds}


def predict(lab, arguments):
    """The measured and the predicted figures, as soon as there are enough transactions for that."""
    def known():
        row, = lab.admin.dictionaries(PREDICTION.format(arguments=arguments))
        return row if None not in row.values() else None

    row = poll.until(known, "a prediction", 60)
    return {name: float(value) for name, value in row.items()}


def around(rtt):
    """What to ask pgnetlat_what_if() for, so that it is known for all round trips near this one."""
    return {rtt * times: f"rtt => {rtt * times}" for times in AROUND}


def between(predictions, rtt):
    """The prediction for a round trip, of those asked for around it; times are nearly linear in it."""
    (low, of_low), (high, of_high) = sorted(predictions.items())
    part = (rtt - low) / (high - low)

    def time(name):
        of = [1 / row[name] if "throughput" in name else row[name] for row in (of_low, of_high)]
        return of[0] + part * (of[1] - of[0])

    return {name: 1 / time(name) if "throughput" in name else time(name) for name in of_low}


def compare(results, prediction, run, allowed, bounds_count=False, required=False):
    """A prediction beside what came true, "allowed" a share of it or None for no goal."""
    low, high = (prediction[f"predicted_throughput_{bound}"] for bound in ("low", "high"))
    contained = bounds_count and low <= run.throughput <= high
    goal = "" if allowed is None else f"{allowed * 100:g} %" + (", or within bounds" if bounds_count else "")
    path = LEAST * run.rtt / run.statements
    for name, truth, shown, path_alone, unit, note in (
            ("transaction time", run.transaction_time, prediction["predicted_transaction_time"], path, "ms", ""),
            ("throughput", run.throughput, prediction["predicted_throughput"], run.clients * 1000 / path, "/s",
             f"{low:.4g} to {high:.4g}")):
        margin = allowed and allowed * truth
        impossible = shown < path_alone if unit == "ms" else shown > path_alone
        fails_at = 0 if impossible else max(NOISE * truth, (path_alone - truth) * (-1 if unit == "ms" else 1))
        results.add(name, truth, shown, unit=unit, note=note, goal=goal, required=required, fails_at=fails_at,
                    allowed=abs(shown - truth) + margin if contained else margin)


def round_trips(lab, results, short):
    rtts = (0.0005, 0.05) if short else (0.0005, 0.001, 0.005, 0.05)
    script = ["-S", "-M", "prepared"]
    for clients in (1,) if short else (1, 16, 64):
        asked = {rtt: around(Run(lab, rtt, clients, script, 1 if short else 2, {}).rtt) for rtt in rtts}
        questions = {real: arguments for question in asked.values() for real, arguments in question.items()}

        def make(rtt):
            seconds = 2.5 if short else max(4, TRANSACTIONS * rtt / clients)
            return functools.partial(Run, lab, rtt, clients, script, seconds, questions)

        runs = in_turn(short, {rtt: make(rtt) for rtt in rtts})
        for rtt in rtts:
            results.case = f"{clients} clients, {label(rtt)}: as measured"
            compare(results, runs[rtt].measured, runs[rtt], None)
            for other in (o for o in rtts if o != rtt):
                results.case = f"{clients} clients, from {label(rtt)} to {other * 1000:g} ms"
                forward = other > rtt
                known = {real: runs[rtt].predictions[real] for real in asked[other]}
                compare(results, between(known, runs[other].rtt), runs[other],
                        0.1 if not forward else 0.03 if clients == 1 else 0.05, bounds_count=not forward,
                        required=forward)


def batches(lab, results, short):
    single = lab.directory / "single.sql"
    single.write_text(STATEMENT)
    sizes = (10,) if short else (10, 100)

    def make(script, mode, questions, statements=1):
        return functools.partial(Run, lab, 0.01, 1, ["-f", script, "-M", mode], 2.5 if short else 5, questions,
                                 statements)

    for mode in ("extended",) if short else ("extended", "prepared"):
        kinds = {1: make(single, mode, {size: f"batch => {size}" for size in sizes})}
        for size in sizes:
            together = lab.directory / f"together{size}.sql"
            together.write_text("\\startpipeline\n" + STATEMENT * size + "\\endpipeline\n")
            kinds[size] = make(together, mode, {}, size)
        runs = in_turn(short, kinds)
        for size in sizes:
            results.case = f"from single statements to batches of {size}, {mode}, {label(0.01)}"
            compare(results, runs[1].predictions[size], runs[size], 0.05)


def run(lab, results, short):
    lab.run("unix", [lab.program("pgbench"), "-i", "-q", "-s", "1"])
    # Many clients and a line that polls take processors from each other.
    with lab.all_processors():
        round_trips(lab, results, short)
        batches(lab, results, short)
