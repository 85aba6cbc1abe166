"""The four cases of the pg_gather article on how the network shows in wait events, fast and slow.

Large result, bulk load, OLTP transactions, connection utilisation: over the loopback device, and over a
path of 20 ms and 40 Mbit/s. The table shows each column's part of the account; the goal is what the
article's pictures show: which time grows on the slow network.
"""

import math

from harness import pgclient

import measure
from measure import NS_PER_MS, Measurement, TIMES
from scenarios.common import DEEP_QUEUE, MBIT

TITLE = "The four cases of the pg_gather article"


def large_result(client, short):
    rows = 2000 if short else 20000
    client.send(pgclient.query(f"SELECT repeat('x', 1000) FROM generate_series(1, {rows})"))
    client.discard_until_ready()


def bulk_load(client, short):
    client.query("TRUNCATE loaded")
    client.send(pgclient.query("COPY loaded FROM STDIN"))
    client.until(b"G")
    block = b"".join(pgclient.copy_data(b"x" * 999 + b"\n") for _ in range(100))
    for _ in range(20 if short else 200):
        client.send(block)
    client.send(pgclient.copy_done())
    client.until_ready()


def transactions(client, short):
    for i in range(10 if short else 100):
        client.query("BEGIN")
        client.query(f"UPDATE counted SET n = n + 1 WHERE i = {i % 10}")
        client.query(f"SELECT n FROM counted WHERE i = {i % 10}")
        client.query("COMMIT")


def utilisation(client, short):
    for _ in range(20 if short else 100):
        client.query("SELECT sum(i) FROM generate_series(1, 20000) i")
        measure.think(0.005)


# case -> (what is done, which figure must grow on the slow network)
CASES = {
    "large result": (large_result, "send_time"),
    "bulk load": (bulk_load, "recv_time"),
    "OLTP transactions": (transactions, "in_xact_wait_time"),
    "connection utilisation": (utilisation, "network_time"),
}


def run(lab, results, short):
    lab.admin.query("DROP TABLE IF EXISTS loaded, counted")
    lab.admin.query("CREATE UNLOGGED TABLE loaded (line text)")
    lab.admin.query("CREATE TABLE counted AS SELECT i, 0 AS n FROM generate_series(0, 9) i")
    lab.path(0.02, rate=40 * MBIT, queue=DEEP_QUEUE)
    for case, (body, moving) in CASES.items():
        times, truths = {}, {}
        for network, path in (("fast", "lo"), ("slow", "tun")):
            results.case = f"{case}, {network} network"
            with Measurement(lab, path) as m:
                m.begin()
                body(m.client, short)
                m.end()
            m.compare(results, held_back=True, required=False)
            times[network] = m.shown[moving]
            truths[network] = true_time(m, moving)
            whole = sum(m.shown[name] for name in TIMES[:6])
            for name in TIMES[:6]:
                results.add(f"part of {name}", float("nan"), m.shown[name] / whole, unit="")
        results.case = case
        # On a busy machine the fast network is slow as well.
        factor = truths["slow"] / max(truths["fast"], 1) if None not in truths.values() else math.inf
        results.at_least(f"{moving}: slow / fast", min(2, 0.8 * factor),
                         times["slow"] / max(times["fast"], 1), unit="", required=True)


def true_time(m, name):
    """What a column should show of a measurement, in ms; None if there is no trace of it."""
    if name == "network_time":
        return m.packets.network / NS_PER_MS if m.path == "tun" else 0
    if not m.calls:
        return None
    if name == "in_xact_wait_time":
        return m.calls.in_transaction / NS_PER_MS
    # send_time, recv_time: blocked in the middle of an exchange
    return sum(m.blocked(burst.read, burst.sent) for burst in m.bursts
               if m.before.now <= burst.read < m.after.now) / NS_PER_MS
