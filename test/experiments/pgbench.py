"""A load of pgbench's while it runs: what the client measures, what pgnetlat shows, and what it predicts from that."""

import functools
import re
import statistics
import time

from harness import poll

import formulas
import measure

PROGRESS = re.compile(r"progress: [\d.]+ s, ([\d.]+) tps, lat ([\d.]+) ms")

# Sessions are warm after so many requests.
WARM_UP = 10
SETTLE = 0.5

ACCOUNT = """
    SELECT m.*, (c.exec_time + c.send_time) / c.requests AS execution, c.network_time / c.requests AS network,
           c.client_time / c.requests AS client, c.requests
      FROM pgnetlat_mean_transactions(NULL, '1 min') m, pgnetlat_clients_last() c
     WHERE m.application_name = 'pgbench' AND c.application_name = 'pgbench'
"""

PREDICTION = """
    SELECT predicted_transaction_time, predicted_throughput, predicted_throughput_low, predicted_throughput_high
      FROM pgnetlat_what_if({question}) WHERE application_name = 'pgbench' AND datname = current_database()
"""


@functools.cache
def ping(lab, rtt):
    """What a path of so many milliseconds is, as a connection sees it that is alone and does nothing."""
    lab.path(rtt / 1000)
    with lab.connect("tun", application_name="ping") as client:
        # the kernel is asked for its minimum once a second
        until = time.monotonic() + 1.5
        while time.monotonic() < until:
            client.query("SELECT 1")
            time.sleep(0.01)
        return measure.snapshot(lab, client.pid)["rtt"]


def prediction(what, reply, run):
    """The throughput that was predicted, and that of the run which came afterwards."""
    return formulas.Prediction(what, reply["predicted_throughput"], run.throughput, "/s",
                               low=reply["predicted_throughput_low"], high=reply["predicted_throughput_high"])


class Run:
    """"questions" are arguments of pgnetlat_what_if() by name; the answers are in "predictions"."""

    def __init__(self, lab, path, clients, arguments, seconds, questions=None, environment=None):
        self.lab, self.clients = lab, clients
        command = [lab.program("pgbench"), "-n", "-P", 1, "-c", clients, "-j", min(clients, 2), "-T", 600, *arguments]
        program = lab.start(path, command, log="pgbench", environment=environment)
        try:
            poll.until(self.all_warm, lambda: f"pgbench's sessions\n{lab.space.log('pgbench')[-1000:]}", 60)
            time.sleep(SETTLE)
            lab.admin.query("SELECT pgnetlat_reset()")
            first = len(self.progress())
            time.sleep(seconds)
            self.predictions = {name: self.ask(question) for name, question in (questions or {}).items()}
            self.account = self.numbers(poll.until(lambda: lab.admin.dictionaries(ACCOUNT), "an account", 60)[0])
            self.rtt = statistics.mean(row["rtt"] or 0 for row in self.sessions().values())
            # the second that was being counted when all of this began is not of it
            poll.until(lambda: len(self.progress()) > first + 1, "pgbench's progress")
            self.evaluate(self.progress()[first + 1:])
        finally:
            lab.stop(program)
            poll.until(lambda: not self.sessions(), "an end of pgbench's sessions")

    def sessions(self):
        return measure.snapshots(self.lab, "pgbench")

    def all_warm(self):
        return sum(row["requests"] >= WARM_UP for row in self.sessions().values()) >= self.clients

    def progress(self):
        """Transactions per second and their mean latency, of each second."""
        return [(float(tps), float(latency)) for tps, latency in PROGRESS.findall(self.lab.space.log("pgbench"))]

    def evaluate(self, seconds):
        """By their latency, since slow transactions are few in a second."""
        count = sum(tps for tps, _ in seconds)
        self.transaction_time = sum(tps * latency for tps, latency in seconds) / count
        self.counted = count / len(seconds)
        self.throughput = 1000 * self.clients / self.transaction_time

    def ask(self, question):
        def known():
            row, = self.lab.admin.dictionaries(PREDICTION.format(question=question))
            return row if None not in row.values() else None

        return self.numbers(poll.until(known, "a prediction", 60))

    @staticmethod
    def numbers(row):
        def number(text):
            try:
                return float(text)
            except (TypeError, ValueError):
                return text

        return {name: number(value) for name, value in row.items()}
