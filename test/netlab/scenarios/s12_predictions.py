"""What `pgnetlat_what_if()` predicts, against what comes true.

pgbench runs at one round trip. `pgnetlat_what_if()` predicts from that run what its throughput and the time of a
transaction would be at other round trips, or if statements travelled together. Then pgbench runs like that. A case
is named after the run that the predictions come from.

Truth: pgbench's own counts of transactions. Counting begins when all of its clients are connected, because they
connect one after the other, and the early ones wait. The round trips asked for are those that the kernel measures
on each path.
"""

import re
import statistics

from harness import poll

import measure
from scenarios.common import label

TITLE = "Predictions"

NEAR, FAR = 0.0005, 0.05

# A run at a busy machine may be slower by this factor, and a prediction is not to blame.
NOISE = 0.5

REASONS = {
    "transaction time": "What a statement and its client take depends on how long they have waited: caches are cold,"
    " and processors asleep. By how much, nobody knows who has not seen it: the interval is for that.",
    "throughput": "See transaction time.",
}

PROGRESS = re.compile(r"progress: [\d.]+ s, ([\d.]+) tps")

PREDICTION = """
    SELECT busy_sessions, transactions, round_trips, server_time, network_time, client_time, transaction_time,
           throughput, predicted_transaction_time, predicted_throughput, predicted_throughput_low,
           predicted_throughput_high, change
      FROM pgnetlat_what_if({arguments}) WHERE application_name = 'pgbench' AND datname = current_database()
"""


class Run:
    """pgbench at one round trip: what it did, and what is predicted from that."""

    def __init__(self, lab, rtt, clients, script, seconds, questions, statements=1):
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
            # The line that was being counted when all of this began is not of it.
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
    row, = lab.admin.dictionaries(PREDICTION.format(arguments=arguments))
    return {name: float(value) for name, value in row.items()}


def measured_rtt(lab, rtt):
    """The round trip that the kernel sees on a path, in ms."""
    lab.path(rtt)
    with lab.connect("tun", application_name="ping") as client:
        for _ in range(30):
            client.query("SELECT 1")
        measure.think(1.1)
        client.query("SELECT 1")
        return measure.snapshot(lab, client.pid)["rtt"]


def compare(results, name, prediction, truth, allowed):
    """A prediction, beside what came true: within so much, or else an honest interval."""
    goal = f"{allowed * 100:g} %" if allowed else ""
    results.add(f"transaction time, {name}", truth.transaction_time, prediction["predicted_transaction_time"],
                allowed=allowed and allowed * truth.transaction_time, goal=goal)
    results.add(f"throughput, {name}", truth.throughput, prediction["predicted_throughput"], unit="/s",
                allowed=allowed and allowed * truth.throughput, goal=goal)
    for bound in ("low", "high"):
        results.add(f"{bound}, {name}", truth.throughput, prediction[f"predicted_throughput_{bound}"], unit="/s")


def run(lab, results, short):
    lab.run("unix", [lab.program("pgbench"), "-i", "-q", "-s", "1"])
    seconds = 2.5 if short else 8
    rtts = (NEAR, FAR) if short else (NEAR, 0.001, 0.005, FAR)
    measured = {rtt: measured_rtt(lab, rtt) for rtt in rtts}
    questions = {label(rtt): f"rtt => {measured[rtt]}" for rtt in rtts}
    for clients in (1,) if short else (1, 16, 64):
        runs = {rtt: Run(lab, rtt, clients, ["-S", "-M", "prepared"], seconds, questions) for rtt in rtts}
        for rtt in rtts:
            results.case = f"{clients} clients, from {label(rtt)}"
            for other in rtts:
                forward = other >= rtt
                allowed = (0.03 if clients == 1 else 0.05) if forward else 0.1
                compare(results, label(other), runs[rtt].predictions[label(other)], runs[other],
                        None if other == rtt else allowed)
