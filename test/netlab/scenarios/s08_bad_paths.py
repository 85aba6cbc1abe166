"""Loss, jitter, and a path whose round trip changes in mid-session.

Truth: packets. `network_time` is round trips x the smallest recent round trip as the kernel knows it, so
that what a late packet costs is counted as the client's; these rows say how much. A response that the
kernel had to send again is the network's until then, and so is most of what a lost request costs, for it
carried an acknowledgement, without which the kernel sends its response again. A shorter path
is noticed with the next packet and pgnetlat.rtt_interval. A longer one is noticed only when the kernel
forgets the old minimum, after net.ipv4.tcp_min_rtt_wlen seconds (300 by default; 5 in these
measurements), and only if responses take several segments: a single small segment may have been
acknowledged late, so that the kernel does not let it raise the minimum.
"""

import time

from harness import pgclient

import measure
from measure import Measurement
from scenarios.common import ask, attempt

TITLE = "Loss, jitter, changing round trips"
WINDOW = 5
SEGMENT = 1448


def run(lab, results, short):
    request = pgclient.query("SELECT 1")
    for rtt in (0.005,) if short else (0.005, 0.05):
        results.case = f"loss of 1 %, round trip {rtt * 1000:g} ms"
        lab.path(rtt, loss=0.01)
        m = ask(lab, results, "tun", 300 if short else min(1000, int(20 / rtt)), request,
                constant_path=False)
        # Without looking for what was sent again it would be 0.6 at 5 ms.
        results.at_least("network_time / network, packets", 0.7,
                         m.shown["network_time"] * 1e6 / m.packets.network, unit="", required=True)
        results.case = f"jitter of up to 2 ms each way, round trip {rtt * 1000:g} ms and more"
        lab.path(rtt, jitter=0.002)
        ask(lab, results, "tun", 200 if short else min(1000, int(10 / rtt)), request, constant_path=False)

    results.case = "TPC-B with a loss of 3 %, round trip 5 ms, watched all the time"
    watched(lab, results, 5 if short else 15)

    results.case = "the first response of a connection is lost, round trip 1 ms"
    lost_response(lab, results)

    kept = lab.kernel_parameter("net/ipv4/tcp_min_rtt_wlen", WINDOW)
    try:
        for size in (1, 5000):
            kind = f"responses of {size} bytes"
            results.case = f"round trip from 1 to 20 ms in mid-session, {kind}"
            attempt(results, lambda own: change(lab, own, 0.001, 0.02, 8, size))
            results.case = f"round trip from 20 to 1 ms in mid-session, {kind}"
            attempt(results, lambda own: change(lab, own, 0.02, 0.001, 4, size))
    finally:
        lab.kernel_parameter("net/ipv4/tcp_min_rtt_wlen", kept)


def watched(lab, results, seconds):
    """What a reader has been shown stays, whatever the kernel says later."""
    lab.path(0.005, loss=0.03)
    lab.run("unix", [lab.program("pgbench"), "-i", "-q", "-s", "1"])
    log = open(lab.directory / "watched.log", "a")
    pgbench = lab.start("tun", [lab.program("pgbench"), "-n", "-c", 4, "-T", 600], stdout=log, stderr=log)
    columns = [name for name in measure.TIMES if name != "pending_time"] + list(measure.COUNTS)
    seen, readings, fallen = {}, 0, []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for pid, row in measure.snapshots(lab, "application_name = 'pgbench'").items():
            before = seen.get(pid, row)
            fallen += [f"{name} {before[name]} {row[name]}" for name in columns
                       if row[name] is not None and row[name] < (before[name] or 0)]
            seen[pid] = row
            readings += 1
    lab.stop(pgbench)
    results.add("columns that fell", 0, len(fallen), allowed=0, unit="", goal="none", required=True,
                note="; ".join(fallen[:3]))
    results.at_least("readings", 100, readings, unit="", required=True)
    results.at_least("retransmits", 1, sum(row["retransmits"] or 0 for row in seen.values()), unit="",
                     required=True)


def lost_response(lab, results):
    """Nothing gets through from before the response is sent until the kernel may send it again."""
    for _ in range(3):
        lab.path(0.001)
        with lab.connect("tun", application_name="lost") as client:
            # At once: a short first wait of the connection is what is tested.
            client.send(pgclient.query("SELECT pg_sleep(0.3)"))
            time.sleep(0.15)
            lab.path(0.001, loss=1)
            time.sleep(0.25)
            lab.path(0.001)
            client.until_ready()
            client.query("SELECT 1")
            shown = next(iter(measure.snapshots(lab, f"pid = {client.pid}").values()))
        results.at_least("retransmits", 1, shown["retransmits"] or 0, unit="", required=True)
        # The kernel waits for 0.2 s before it sends it again.
        results.at_least("network_time", 100, shown["network_time"], unit="ms", required=True)


def change(lab, results, before, after, seconds, size):
    request = f"SELECT repeat('x', {size})"
    lab.path(before)
    with Measurement(lab, "tun") as m:
        m.begin()
        for _ in range(100):
            m.client.query(request)
        lab.path(after)
        changed = time.monotonic()
        noticed = None
        while time.monotonic() < changed + seconds:
            # Without pauses: an acknowledgement that rides on the next request is as late as that.
            for _ in range(20):
                m.client.query(request)
            if noticed is None:
                rtt = m.snapshot()["rtt"] / 1000
                if abs(rtt - after) < 0.5 * after:
                    noticed = time.monotonic() - changed
        m.end()
    m.compare(results, constant_path=False)
    if after > before and size < SEGMENT:
        results.add("is never noticed (the kernel's rule)", 1, int(noticed is None), unit="")
    elif noticed is None:
        results.add("seconds until noticed", 0, float("nan"), unit="s", allowed=0, required=True,
                    goal=f"within {seconds} s")
    else:
        results.add("seconds until noticed", WINDOW if after > before else 0, noticed, unit="s", allowed=2,
                    goal="the kernel's window + pgnetlat.rtt_interval", required=True)
    return m
