"""COPY FROM STDIN over a slow line and from a slow producer; pg_dump and pg_restore.

Truth of the exchange: packets. Truth of receiving: the time in which the backend was blocked in
epoll_wait(), less the round trip in which it asked for data; the table is unlogged and small enough to
need no disk. pgnetlat samples: *as sampled* is what the backend's system calls show at the moments at which the
sampler was woken up. The programs' exchanges and waits: system calls.
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
from scenarios.common import DEEP_QUEUE, MBIT

# From the sampler's waking up until it has looked at a session.
LOOK_NS = 200_000

# What is lost around the samples, in ms.
SAMPLING = 3

TITLE = "COPY FROM STDIN, pg_dump, pg_restore"


def run(lab, results, short):
    lab.admin.query("DROP TABLE IF EXISTS copied")
    lab.admin.query("CREATE UNLOGGED TABLE copied (line text)")

    size = 1_000_000 if short else 8_000_000
    lab.path(0.01, rate=10 * MBIT, queue=DEEP_QUEUE)
    results.case = f"COPY of {size / 1e6:g} MB over 10 Mbit/s"
    copy_in(lab, results, [size], 0)

    lab.path(0.0005)
    for pause in (0.001, 0.02):
        count = int((1 if short else 3) / pause)
        results.case = f"COPY of {count} rows, a pause of {pause * 1000:g} ms before each"
        copy_in(lab, results, [100] * count, pause)

    dump_and_restore(lab, results, short)


def copy_in(lab, results, rows, pause):
    lab.admin.query("TRUNCATE copied")
    sampler = int(lab.admin.query("SELECT sampler_pid FROM pgnetlat_info")[0][0])
    with Measurement(lab, "tun") as m:
        if m.trace:
            m.trace.follow(sampler)
        m.begin()
        m.client.send(pgclient.query("COPY copied FROM STDIN"))
        m.client.until(b"G")
        for size in rows:
            if pause:
                measure.think(pause)
            data = b"".join(pgclient.copy_data(b"x" * (min(size, 1000) - 1) + b"\n")
                            for _ in range(max(1, size // 1000)))
            m.client.send(data)
        m.client.send(pgclient.copy_done())
        m.client.until_ready()
        m.end()
    m.compare(results)
    burst = m.burst_of(m.within()[0])
    if burst:
        compare_receiving(results, m, burst, sampler)


def compare_receiving(results, m, burst, sampler):
    """recv_time against the time that the backend was blocked, and against the samples that there were."""
    invited = syscalls.first_from([t for t, call in m.trace.calls[m.pid] if call == "s"], burst.read)
    # The invitation costs a round trip, the shortest that the server knows. The rest is sampled.
    asked = min(invited + round(m.after["rtt"] * NS_PER_MS), burst.sent)
    receiving = m.blocked(asked, burst.sent) / NS_PER_MS
    samples = list(looks(m, sampler, asked, burst.sent))
    least, most = (sum(sample[i] for sample in samples) / NS_PER_MS for i in (0, 1))
    shown = m.shown["recv_time"]
    # A sample is right or wrong by chance: the standard deviation of those that there were.
    part = min(receiving / ((burst.sent - invited) / NS_PER_MS), 1)
    deviation = math.sqrt(part * (1 - part) * sum((sample[2] / NS_PER_MS) ** 2 for sample in samples))
    longest = max((sample[2] for sample in samples), default=0) / NS_PER_MS
    results.between("recv_time", receiving, least, most, shown, margin=0.2 * receiving,
                    allowed=max(0.03 * receiving, 2 * longest + 2 * deviation),
                    goal="3 %, or two samples and two standard deviations")
    # The true time is right, too: a sampler that lost its processor in the middle of a look may find either.
    results.between("recv_time, as sampled", (least + most) / 2, min(least, receiving),
                    max(most, receiving), shown, margin=SAMPLING,
                    allowed=(most - least) / 2 + SAMPLING, goal="as the samples were")


def looks(m, sampler, since, until):
    """The sampler's looks at a backend: how long it was blocked then, at least and at most, and since the look before."""
    waits, displaced = m.trace.waits[m.pid], m.trace.displaced[sampler]
    before = since
    for _, woken in m.trace.waits[sampler]:
        if not since < woken < until:
            continue
        end = woken + LOOK_NS
        end += syscalls.displaced_within(displaced, woken, end)
        blocked = syscalls.covered(waits, woken, end)
        late = end - woken - LOOK_NS
        length = woken - before
        yield (length if blocked == end - woken else 0), (length + late if blocked else 0), length
        before = woken


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
        status = process.wait(120)
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
        compare_with_calls(results, session, trace, shown)
    whole = measure.exchanges_of(shown) + measure.waits_of(shown)
    for name in ("exec_time", "send_time", "recv_time", "network_time", "client_time"):
        results.add(f"part of {name}", float("nan"), shown[name] / whole, unit="")


def compare_with_calls(results, session, trace, shown):
    """Exchanges and waits of a whole session, from its first wait to its last."""
    calls = trace.calls[session.pid]
    bursts = syscalls.bursts(session.exchanges, calls)
    if None in bursts:
        return
    syscalls.note_displacement(bursts, trace.steps[session.pid], trace.displaced[session.pid])
    doubt = sum(burst.late_read + burst.late_sent for burst in bursts) / NS_PER_MS
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
                    allowed=max(0.01 * figure, 0.005 * len(bursts)), fails_at=0.1 * (exchange + wait) + doubt)


def group(lab, application):
    rows = lab.admin.dictionaries(
        f"SELECT * FROM pgnetlat_clients WHERE application_name = '{application}'")
    names = (*measure.TIMES, *measure.COUNTS)
    return {name: sum(float(row[name]) for row in rows)
            for name in names if rows and rows[0].get(name) is not None}
