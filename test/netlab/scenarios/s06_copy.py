"""COPY FROM STDIN over a slow line and from a slow producer; pg_dump and pg_restore.

Truth of the exchange: packets. Truth of receiving: the exchange less the time that the backend ran (its
schedstat), as the table is unlogged and small enough to need no disk. The programs' exchanges and waits:
system calls.
"""

import contextlib
import math
import time

from harness import pgclient

import lab as lab_module
import measure
import syscalls
import truth
from measure import NS_PER_MS, Measurement
from scenarios.common import DEEP_QUEUE, MBIT, attempt

# pgnetlat.sample_interval in ms
TICK = 10

TITLE = "COPY FROM STDIN, pg_dump, pg_restore"


def run(lab, results, short):
    lab.admin.query("DROP TABLE IF EXISTS copied")
    lab.admin.query("CREATE UNLOGGED TABLE copied (line text)")

    size = 1_000_000 if short else 8_000_000
    lab.path(0.01, rate=10 * MBIT, queue=DEEP_QUEUE)
    results.case = f"COPY of {size / 1e6:g} MB over 10 Mbit/s"
    attempt(results, lambda own: copy_in(lab, own, [size], 0))

    lab.path(0.0005)
    for pause in (0.001, 0.02):
        # Samples: a tenth of a second in which the machine stands still must not be a fifth of it.
        count = int((1.5 if short else 3) / pause)
        results.case = f"COPY of {count} rows, a pause of {pause * 1000:g} ms before each"
        attempt(results, lambda own: copy_in(lab, own, [100] * count, pause))

    dump_and_restore(lab, results, short)


def processor_time(pid):
    """Nanoseconds that a process has run."""
    with open(f"/proc/{pid}/schedstat") as file:
        return int(file.read().split()[0])


def copy_in(lab, results, rows, pause):
    lab.admin.query("TRUNCATE copied")
    with Measurement(lab, "tun") as m:
        m.begin()
        m.client.send(pgclient.query("COPY copied FROM STDIN"))
        m.client.until(b"G")
        worked = processor_time(m.pid)
        for size in rows:
            if pause:
                measure.think(pause)
            data = b"".join(pgclient.copy_data(b"x" * (min(size, 1000) - 1) + b"\n")
                            for _ in range(max(1, size // 1000)))
            m.client.send(data)
        m.client.send(pgclient.copy_done())
        m.client.until_ready()
        worked = processor_time(m.pid) - worked
        m.end()
    m.compare(results)
    whole = m.within()[0].time
    receiving = (whole - worked) / NS_PER_MS
    # A sample is right or wrong by chance: the standard deviation of so many of them.
    samples, part = whole / NS_PER_MS / TICK, receiving / (whole / NS_PER_MS)
    deviation = TICK * math.sqrt(max(samples * part * (1 - part), 0))
    results.add("recv_time", receiving, m.shown["recv_time"], required=True, fails_at=0.2 * receiving,
                allowed=max(0.03 * receiving, 2 * TICK + 2 * deviation),
                goal="3 %, or two samples and two standard deviations")
    return m


def dump_and_restore(lab, results, short):
    lab.admin.query("DROP TABLE IF EXISTS dumped")
    lab.admin.query("CREATE TABLE dumped AS SELECT i, repeat('x', 1000) AS line"
                    f" FROM generate_series(1, {2000 if short else 20000}) i")
    dump = lab.directory / "dump"
    for name, rtt, rate in (("fast: 0.5 ms, no limit", 0.0005, 0), ("slow: 20 ms, 40 Mbit/s", 0.02, 40 * MBIT)):
        lab.path(rtt, rate=rate, queue=DEEP_QUEUE)
        results.case = f"pg_dump, {name}"
        program(lab, results, [lab.program("pg_dump"), "-Fc", "-Z0", "-t", "dumped", "postgres"],
                "pg_dump", output=dump)
        lab.admin.query("DROP TABLE dumped")
        results.case = f"pg_restore, {name}"
        program(lab, results, [lab.program("pg_restore"), "-d", "postgres", dump], "pg_restore")


def program(lab, results, command, application, output=None):
    """A program from its start to its end, by the group's account of ended sessions."""
    before = group(lab, application)
    with contextlib.ExitStack() as stack:
        trace = stack.enter_context(syscalls.Trace(lab.server.pid)) if syscalls.available() else None
        capture = stack.enter_context(lab.capture("tun"))
        file = stack.enter_context(open(output or "/dev/null", "wb"))
        process = lab.start("tun", command, stdout=file)
        status = process.wait(300)
        lab.stop(process)
        if status:
            raise RuntimeError(f"{application} ended with {status}")
        time.sleep(0.2)
    session = next(iter(truth.read(capture, lab_module.PORT).values()))
    shown = group(lab, application)
    shown = {name: shown[name] - before.get(name, 0) for name in shown}
    count = len(session.exchanges)
    results.add("requests", count, shown["requests"], allowed=0, unit="", goal="exact", required=True)
    if trace:
        compare_with_calls(results, session, trace.calls.get(session.pid, []), shown)
    whole = measure.exchanges_of(shown) + measure.waits_of(shown)
    for name in ("exec_time", "send_time", "recv_time", "network_time", "client_time"):
        results.add(f"part of {name}", float("nan"), shown[name] / whole, unit="")


def compare_with_calls(results, session, calls, shown):
    """Exchanges and waits of a whole session, from its first wait to its last."""
    bursts = syscalls.bursts(session.exchanges, calls)
    if None in bursts:
        return
    reads = [moment for moment, call in calls if call == "r"]
    goodbye = syscalls.first_from(reads, session.server.from_client.times[-1])
    if goodbye is None:
        return
    sends = [moment for moment, call in calls if call == "s"]
    started = syscalls.first_from(sends, session.startup)
    exchange = sum(burst.sent - burst.read for burst in bursts) / NS_PER_MS
    wait = (goodbye - started) / NS_PER_MS - exchange
    for quantity, figure, value in (("exchange, calls", exchange, measure.exchanges_of(shown)),
                                    ("wait, calls", wait, measure.waits_of(shown))):
        results.add(quantity, figure, value, per=len(bursts), goal="1 % or 5 us each", required=True,
                    allowed=max(0.01 * figure, 0.005 * len(bursts)), fails_at=0.1 * (exchange + wait))


def group(lab, application):
    rows = lab.admin.dictionaries(
        f"SELECT * FROM pgnetlat_clients WHERE application_name = '{application}'")
    names = (*measure.TIMES, *measure.COUNTS)
    return {name: sum(float(row[name]) for row in rows)
            for name in names if rows and rows[0].get(name) is not None}
