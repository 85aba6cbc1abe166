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

from harness import pgclient, poll

import measure
from measure import Measurement
from scenarios.common import ask

TITLE = "Loss, jitter, changing round trips"
WINDOW = 5
READINGS = 100
PATIENCE = 30
SEGMENT = 1448

# The kernel sends lost packets again after 200 ms, or two round trips.
RETRANSMISSION_NS = 150_000_000


def run(lab, results, short):
    request = pgclient.query("SELECT 1")
    for rtt in (0.005,) if short else (0.005, 0.05):
        results.case = f"loss of 1 %, round trip {rtt * 1000:g} ms"
        lab.path(rtt, loss=0.01)
        m = ask(lab, results, "tun", 300 if short else min(1000, int(20 / rtt)), request,
                constant_path=False)
        # If retransmissions were ignored, it would be 0.6 at 5 ms.
        results.at_least("network_time / round trips and what was lost", 0.7,
                         m.shown["network_time"] / lossy_network(m), unit="", required=True)
        results.case = f"jitter of up to 2 ms each way, round trip {rtt * 1000:g} ms and more"
        lab.path(rtt, jitter=0.002)
        ask(lab, results, "tun", 200 if short else min(1000, int(10 / rtt)), request, constant_path=False)

    results.case = "TPC-B with a loss of 3 %, round trip 5 ms, watched all the time"
    watched(lab, results, 5 if short else 15)

    results.case = "the first response of a connection is lost, round trip 1 ms"
    lost_response(lab, results)
    results.case = "the path is cut in a transaction, round trip 1 ms"
    cut_in_transaction(lab, results)
    results.case = "the client's host is gone in a COPY, round trip 1 ms"
    cut_in_copy(lab, results)

    results.case = "acknowledgements that come later than the kernel's probe, round trip 5 ms"
    late_acknowledgements(lab, results, 8 if short else 20)

    kept = lab.kernel_parameter("net/ipv4/tcp_min_rtt_wlen", WINDOW)
    try:
        for size in (1, 5000):
            kind = f"responses of {size} bytes"
            results.case = f"round trip from 1 to 20 ms in mid-session, {kind}"
            change(lab, results, 0.001, 0.02, WINDOW + 2 if size < SEGMENT else PATIENCE, size)
            results.case = f"round trip from 20 to 1 ms in mid-session, {kind}"
            change(lab, results, 0.02, 0.001, PATIENCE, size)
    finally:
        lab.kernel_parameter("net/ipv4/tcp_min_rtt_wlen", kept)


def lossy_network(m):
    """The network's part of the waits of a session, in ms; the server does not learn that a packet was a little late."""
    waits = [wait for wait in m.session.waits if wait and m.before.now <= wait.end < m.after.now]
    least = min(wait.network for wait in waits)
    return sum(wait.network if wait.network > RETRANSMISSION_NS else least for wait in waits) / 1e6


def watched(lab, results, seconds):
    """Counts, the whole, and the sums of the group never fall, whatever the kernel says later."""
    lab.path(0.005, loss=0.03)
    lab.run("unix", [lab.program("pgbench"), "-i", "-q", "-s", "1"])
    log = open(lab.directory / "watched.log", "a")
    pgbench = lab.start("tun", [lab.program("pgbench"), "-n", "-c", 4, "-T", 600], stdout=log, stderr=log)
    columns = ["total_time", *measure.COUNTS]
    sums = [name for name in (*measure.TIMES, *measure.COUNTS) if name != "pending_time"]
    query = (f"SELECT {', '.join(f'sum({name}::numeric) AS {name}' for name in sums)}"
             " FROM pgnetlat_clients WHERE application_name = 'pgbench'")
    seen, group, readings, fallen = {}, {}, 0, []
    until = time.monotonic() + seconds
    while time.monotonic() < until or readings < READINGS and time.monotonic() < until + PATIENCE:
        for pid, row in measure.snapshots(lab, "pgbench").items():
            before = seen.get(pid, row)
            fallen += [f"{name} {before[name]} {row[name]}" for name in columns
                       if row[name] is not None and row[name] < (before[name] or 0)]
            seen[pid] = row
            readings += 1
        for row in lab.admin.dictionaries(query):
            fallen += [f"group: {name} {group[name]} {row[name]}" for name in sums
                       if float(row[name]) < float(group.get(name) or 0)]
            group = row
    lab.stop(pgbench)
    results.add("columns that fell", 0, len(fallen), allowed=0, unit="", goal="none", required=True,
                note="; ".join(fallen[:3]))
    results.at_least("readings", READINGS, readings, unit="", required=True)
    results.at_least("retransmits", 1, sum(row["retransmits"] or 0 for row in seen.values()), unit="",
                     required=True)


def lost_response(lab, results):
    """Nothing gets through from before the response is sent until the kernel has sent it again."""
    for _ in range(3):
        lab.path(0.001)
        lab.admin.query("SELECT pg_advisory_lock(1)")
        with lab.connect("tun", application_name="lost") as client:
            # At once, because the test is about a short first wait of the connection.
            client.send(pgclient.query("SELECT pg_advisory_lock(1)"))
            wait_for_event(lab, client.pid, "advisory")
            lab.path(0.001, loss=1)
            lab.admin.query("SELECT pg_advisory_unlock(1)")
            # then the response is on its way
            wait_for_event(lab, client.pid, "ClientRead")
            time.sleep(0.05)
            lab.path(0.001)
            client.until_ready()
            client.query("SELECT 1")
            shown = measure.snapshot(lab, client.pid)
        results.at_least("retransmits", 1, shown["retransmits"] or 0, unit="", required=True)
        # The kernel waits for 0.2 s before it sends it again.
        results.at_least("network_time", 100, shown["network_time"], unit="ms", required=True)


def cut_in_transaction(lab, results):
    """The response does not get through for some seconds: nobody thinks meanwhile."""
    lab.path(0.001)
    lab.admin.query("SELECT pg_advisory_lock(1)")
    with lab.connect("tun", application_name="cut") as client:
        client.query("BEGIN")
        client.send(pgclient.query("SELECT pg_advisory_xact_lock(1)"))
        wait_for_event(lab, client.pid, "advisory")
        lab.path(0.001, loss=1)
        lab.admin.query("SELECT pg_advisory_unlock(1)")
        poll.until(lambda: measure.snapshot(lab, client.pid)["pending_time"] > 3000,
                   "a wait that is pending", PATIENCE, interval=0.1)
        unreachable(lab, client.pid)
        lab.path(0.001)
        client.until_ready()
        poll.until(lambda: not lab.admin.query("SELECT 1 FROM pgnetlat_sessions WHERE unanswered_since IS NOT NULL"),
                   "an answer", PATIENCE, interval=0.1)
        client.query("COMMIT")
        shown = measure.snapshot(lab, client.pid)
        (group,) = lab.admin.query("SELECT total_time FROM pgnetlat_clients WHERE application_name = 'cut'")[0]
    results.at_least("network_time", 3000, shown["network_time"], unit="ms", required=True)
    results.at_least("the session's time / its group's", 0.9, shown["total_time"] / float(group), unit="",
                     required=True)


def cut_in_copy(lab, results):
    """The client's host is gone in the middle of a COPY; the advice ends the session."""
    lab.path(0.001, rate=2e6)
    with lab.connect("tun", application_name="gone") as client:
        client.send(pgclient.query("COPY (SELECT repeat('x', 1000) FROM generate_series(1, 100000)) TO STDOUT"))
        wait_for_event(lab, client.pid, "ClientWrite")
        lab.path(0.001, loss=1)
        unreachable(lab, client.pid)
        lab.admin.query(f"SELECT pg_terminate_backend({client.pid})")
        poll.until(lambda: not lab.admin.query(f"SELECT 1 FROM pgnetlat_sessions WHERE pid = {client.pid}"),
                   "the session's end", PATIENCE, interval=0.1)
    lab.path(0.001)
    results.add("sessions that are left", 0, 0, allowed=0, unit="", goal="none", required=True)


def unreachable(lab, pid):
    poll.until(lambda: lab.admin.query("SELECT 1 FROM pgnetlat_diagnose('10 s')"
                                       f" WHERE pid = {pid} AND verdict = 'unreachable' AND severity = 'outage'"),
               "a client that is unreachable", PATIENCE, interval=0.1)


def wait_for_event(lab, pid, event):
    poll.until(lambda: lab.admin.query("SELECT 1 FROM pg_stat_activity"
                                       f" WHERE pid = {pid} AND wait_event = '{event}'"),
               f"a wait for {event}", PATIENCE, interval=0.01)


def late_acknowledgements(lab, results, count):
    """The kernel sends the end of a response again that the client had all along; then the client thinks."""
    request = (pgclient.parse("SELECT 1") + pgclient.bind() + pgclient.execute() + pgclient.sync()) * 10
    lab.path(0.005)
    with Measurement(lab, "tun") as m:
        m.begin()
        for _ in range(count):
            # So that the kernel knows the round trip.
            for _ in range(20):
                m.client.query("SELECT 1")
            m.client.send(request)
            lab.path(0.005, to_server=0.04)
            m.client.until_ready(10)
            measure.think(0.08)
            lab.path(0.005)
            measure.think(0.04)
        m.client.query("SELECT 1")
        m.end()
    truth = m.packets.network / 1e6
    unclear = measure.late_packets(m.session, m.before.now, m.after.now) + m.doubt + m.stolen
    unclear += m.calls.doubt if m.calls else 0
    again = len(m.session.server.from_server.retransmissions)
    results.at_least("segments sent again", 1, again, unit="", required=True)
    results.add("retransmits: they were not lost", 0, m.shown["retransmits"], allowed=again / 2, unit="",
                goal="half of them", required=True)
    results.add("network_time: they were not lost", truth, m.shown["network_time"], allowed=0.03 * truth,
                goal="3 %", required=True, fails_at=0.03 * truth + unclear / 1e6)


def change(lab, results, before, after, seconds, size):
    request = f"SELECT repeat('x', {size})"
    lab.path(before)
    with Measurement(lab, "tun") as m:
        m.begin()
        for _ in range(100):
            m.client.query(request)
        lab.path(after)
        changed = time.monotonic()
        noticed, slowest = None, 0
        while noticed is None and time.monotonic() < changed + seconds:
            # Without pauses: an acknowledgement that rides on the next request is as late as that.
            looked = time.monotonic()
            for _ in range(20):
                m.client.query(request)
            rtt = m.snapshot()["rtt"] / 1000
            if abs(rtt - after) < 0.5 * after:
                noticed = time.monotonic() - changed
            slowest = max(slowest, time.monotonic() - looked)
        m.end()
    m.compare(results, constant_path=False)
    if after > before and size < SEGMENT:
        results.add("is never noticed (the kernel's rule)", 1, int(noticed is None), unit="")
    elif noticed is None:
        results.add("seconds until noticed", 0, float("nan"), unit="s", allowed=0, required=True,
                    goal=f"within {seconds} s")
    else:
        # The longest reading, on a slow machine.
        results.add("seconds until noticed", WINDOW if after > before else 0, noticed, unit="s", allowed=2,
                    goal="the kernel's window + pgnetlat.rtt_interval", required=True, fails_at=2 + slowest)
