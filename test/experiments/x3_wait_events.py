"""pg_gather: how the network shows in wait events, and what they cannot tell apart."""

import collections
import contextlib
import threading
import time

import charts
import formulas
import measure
import syscalls
from page import Section, share, table
from scenarios import s11_four_cases
from scenarios.common import DEEP_QUEUE, MBIT

TITLE = "What wait events say about the network (pg_gather)"

RTT = 0.02
RATE = 40 * MBIT

# as pg_gather asks
LOOK = """
    SELECT pid, coalesce(wait_event, 'CPU') FROM pg_stat_get_activity(nullif(pg_sleep(0.01)::text, '')::int)
     WHERE (state <> 'idle' OR state IS NULL) AND pid <> pg_backend_pid()
"""

NET_DELAY = "Net/Delay*"

TEXT = """\
**Published.** pg_gather samples the wait events of each session {looks:,} times, every 10 ms. A large result on a slow
network is ClientWrite (1,821 of 2,000 samples), and a bulk load is ClientRead. In transactions, ClientRead is normally 5
to 10 %, and the largest wait event on a slow network. Between transactions, a session is idle for a moment. This is
estimated as Net/Delay* = expected samples − samples that saw the session. "From the database's side it is hard to tell
the network from the application."

**Here.** One session runs the four cases over the loopback device, and over a path of {rtt:g} ms and {rate:g} Mbit/s,
while pg_gather's own query samples it every 10 ms. A fifth case was added: no network at all, but an application
that takes 25 ms between its transactions. pg_gather's figures are percentages of its samples; all others are percentages
of the wall clock. The truth comes from packets at both ends of the path, and from the kernel's trace of the backend's
system calls. On one machine there is no path, so all time between exchanges is the client's. An exchange consists of
execution, sending, and receiving.

"""

LATER = """\
- *ClientRead* is path and application together. So is *Net/Delay\\**, which also includes the pauses between samples.
  The last two rows look alike to pg_gather, but one needs a better network, and the other a better application. pgnetlat
  tells them apart correctly.
- *ClientWrite* says that the client does not read the data as fast as the server produces it. pgnetlat says whether the
  path (sending) or the client (a slow reader) is the cause.
- pg_gather judges a session that is rarely active by few samples. pgnetlat counts each wait, and its length.
"""

# What has to be longer than kernels can buffer, on the slow network.
LONG = ("large result", "bulk load")

PARTS = ("exec_time", "send_time", "recv_time", "network_time", "client_time", "idle_time")


class Sampler(threading.Thread):
    """Samples as pg_gather does, until it is told to stop."""

    def __init__(self, lab, pid):
        super().__init__()
        self.client = lab.connect("unix", application_name="sampler")
        self.pid, self.looks, self.seen = str(pid), 0, []
        self.going = True

    def run(self):
        self.client.query(f"PREPARE pidevents AS {LOOK}")
        while self.going:
            self.looks += 1
            self.seen += [(self.looks, event) for pid, event in self.client.query("EXECUTE pidevents") if pid == self.pid]

    def shares(self):
        """Of the looks, by wait event; what was missing is Net/Delay*."""
        counts = collections.Counter(event for _, event in self.seen)
        counts[NET_DELAY] = formulas.net_delay([look for look, _ in self.seen], self.looks)
        return {event: count / self.looks for event, count in counts.most_common() if count / self.looks >= 0.005}


@contextlib.contextmanager
def looked_at(lab, pid):
    sampler = Sampler(lab, pid)
    with contextlib.closing(sampler.client):
        sampler.start()
        try:
            yield sampler
        finally:
            sampler.going = False
            sampler.join()


def slow_application(client, short):
    for _ in range(20):
        client.query("SELECT sum(i) FROM generate_series(1, 20000) i")
        measure.think(0.025)


def cases():
    """(name, network, path, what is done)"""
    for name, (body, _) in s11_four_cases.CASES.items():
        for network, path in (("fast", "lo"), ("slow", "tun")):
            yield name, network, path, body
    yield "slow application", "fast", "lo", slow_application


def run(lab, short):
    lab.admin.query("DROP TABLE IF EXISTS loaded, counted")
    lab.admin.query("CREATE UNLOGGED TABLE loaded (line text)")
    lab.admin.query("CREATE TABLE counted AS SELECT i, 0 AS n FROM generate_series(0, 9) i")
    lab.path(RTT, rate=RATE, queue=DEEP_QUEUE)
    rows, bars, worst = [], [], 0
    for name, network, path, body in cases():
        sampled, shown, packets = watch(lab, path, body, 1.5 if short else 6,
                                       quick=short or path == "lo" or name not in LONG)
        rows.append((name, network, say(sampled), say(shown), say(packets)))
        bars.append((f"{name}, {network} network", sampled, shown, packets))
        worst = max(worst, abs(shown["network"] - packets["network"]), abs(shown["client"] - packets["client"])) \
            if path == "tun" and name != "large result" else worst
    text = TEXT.format(looks=formulas.LOOKS, rtt=RTT * 1000, rate=RATE / MBIT) + table(
        ("case", "network", "pg_gather would have said", "pgnetlat says", "the truth"), rows) + "\n" + LATER
    net_delay = [share(sampled.get(NET_DELAY, 0)) for title, sampled, _, _ in bars
                 if title in ("connection utilisation, slow network", "slow application, fast network")]
    return Section(TITLE, text,
                   "**What wait events say** (pg_gather): a slow network and a slow application look the same,"
                   f" Net/Delay\\* {' and '.join(net_delay)}; pgnetlat tells them apart, and is off by at most"
                   f" {share(max(worst, 0.001), 1)} of the wall clock.", [],
                   pictures={"cases": charts.stacks(bars)})


def watch(lab, path, body, seconds, quick):
    """The looks, the account and the packets of one session, as shares."""
    with measure.Measurement(lab, path, captured=path == "tun" or not syscalls.available()) as m:
        with looked_at(lab, m.pid) as sampler:
            m.begin()
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                body(m.client, quick)
            m.end()
    whole = sum(m.shown[part] for part in PARTS)
    slow_reader = m.shown["send_client_time"]
    shown = {"execution": m.shown["exec_time"], "sending": m.shown["send_time"] - slow_reader,
             "slow reader": slow_reader, "receiving": m.shown["recv_time"], "network": m.shown["network_time"],
             "client": m.shown["client_time"]}
    shown = {name: time / whole for name, time in shown.items()}
    return sampler.shares(), shown, truth(m, path)


def truth(m, path):
    """Exchanges as the backend's system calls have it, or, where they are not known, packets."""
    source = m.calls or m.packets
    wall = source.exchange + source.wait
    network = m.packets.network if path == "tun" else 0
    return {"exchange": source.exchange / wall, "network": network / wall,
            "client": (source.wait - network - source.idle) / wall}


def say(shares):
    return ", ".join(f"{name} {share(part)}" for name, part in shares.items() if part >= 0.005).replace("*", "\\*")
