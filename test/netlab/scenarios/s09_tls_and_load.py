"""TLS, and a server whose processors are saturated.

Truth under TLS: the payload's direction. A saturated server wakes its backends up late; between the
arrival of a request and the moment at which the backend has read it, pgnetlat sees a wait. How long that
was comes from packets and system calls; the table says where it landed.
"""

import os
import subprocess
import time

from harness import pgclient

from measure import NS_PER_MS
from scenarios.common import ask, label

TITLE = "TLS; saturated CPUs"


def run(lab, results, short):
    request = pgclient.query("SELECT 1")
    for rtt in (0.005,) if short else (0.0005, 0.005, 0.05):
        lab.path(rtt)
        results.case = f"TLS, {label(rtt)}"
        ask(lab, results, "tun", min(400, int((1 if short else 3) / rtt)), request, tls=True)
        results.case = f"TLS, think 5 ms, {label(rtt)}"
        ask(lab, results, "tun", min(200, int((1 if short else 3) / (rtt + 0.005))), request, think=0.005, tls=True)

    lab.path(0.005)
    lab.run("unix", [lab.program("pgbench"), "-i", "-q", "-s", "1"])
    busy_loop = ["sh", "-c", "while :; do :; done"]
    processors = len(os.sched_getaffinity(0))
    pgbench = [lab.program("pgbench"), "-n", "-S", "-c", 6, "-T", 600]
    loads = [("otherwise idle", []), ("2 busy loops per processor", [busy_loop] * 2 * processors)]
    if not short:
        # Information only.  On two processors it can starve the kernel's own threads ("workqueue lockup"),
        # and with them tracing, for longer than a run in CI may take.
        loads.append(("pgbench -S with 6 sessions beside it", [pgbench]))
    for name, commands in loads:
        processes = [lab.start("unix", command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                     for command in commands]
        try:
            time.sleep(1)
            results.case = f"server {name}, {label(0.005)}"
            m = ask(lab, results, "tun", 100 if short else 300, request, required=False)
        finally:
            for process in processes:
                lab.stop(process)
        where_it_landed(results, m)


def where_it_landed(results, m):
    """What the late waking up did to each column, per exchange."""
    exchanges = m.within()
    wakeup = [burst.wakeup for burst in m.bursts if burst and m.before.now <= burst.read < m.after.now]
    count = len(exchanges)
    mean = sum(wakeup) / NS_PER_MS / max(len(wakeup), 1)
    results.add("waking up, per exchange", mean, mean, unit="ms", note="packets and system calls")
    network = m.packets.network / NS_PER_MS / count
    client = m.packets.client / NS_PER_MS / count
    results.add("network, per exchange", network, m.shown["network_time"] / count)
    results.add("client, per exchange", client, m.shown["client_time"] / count)
    if "run_queue_time" in m.shown:
        results.add("run_queue_time, per exchange", mean, m.shown["run_queue_time"] / count)
