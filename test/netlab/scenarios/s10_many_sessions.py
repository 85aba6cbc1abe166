"""64 sessions at once, and pgbouncer in between.

Truth: packets, summed over the sessions. Behind a pooler the server's round trip is the one to the
pooler: here the pooler is beside the server and the client 10 ms away, so that the true network time of
the path is client time to pgnetlat, as documented. The rows compare with the server's own connections.

64 sessions have few processors to share with their client: a request that has arrived waits until its
backend gets one, which looks like a client that thinks. `run_queue_time` knows: its row compares it with the
time from the packets' arrival until they were read. `run_queue_wait_time` is what is taken of that from
`client_share`.
"""

import shutil

from scenarios.common import label, program

TITLE = "Many sessions; pgbouncer"


def run(lab, results, short):
    lab.run("unix", [lab.program("pgbench"), "-i", "-q", "-s", "1"])
    for path, rtt in (("tun", 0.02),) if short else (("lo", None), ("tun", 0.005), ("tun", 0.05)):
        lab.path(rtt or 0)
        results.case = f"64 sessions of pgbench -S, {label(rtt) if rtt else 'loopback'}"
        command = [lab.program("pgbench"), "-n", "-S", "-M", "prepared", "-c", 64, "-j", 2, "-T", 600]
        m = program(lab, results, path, command, sessions=64, seconds=1 if short else 3, settle=1 if short else 2,
                    required=False)
        if m.packets and m.calls and "run_queue_time" in m.shown:
            results.add("run_queue_time, beside the time until requests were read",
                        (m.calls.wait - m.packets.wait) / 1e6, m.shown["run_queue_time"])
            results.add("run_queue_wait_time, beside the same",
                        (m.calls.wait - m.packets.wait) / 1e6, m.shown["run_queue_wait_time"])

    lab.path(0.01)
    for mode in ("transaction", "session"):
        results.case = f"pgbouncer, {mode} pooling, {label(0.01)} to the client"
        pooled(lab, results, mode, short)


def pooled(lab, results, mode, short):
    if shutil.which("pgbouncer") is None:
        results.skip("pgbouncer is not installed")
        return
    pooler = lab.start_pgbouncer(mode, default_pool_size=4)
    try:
        command = [lab.program("pgbench"), "-n", "-S", "-c", 4, "-T", 600]
        # The server's connections run over the loopback device, the client's over the path.
        measurement = program(lab, results, "tun", command, sessions=4, seconds=1 if short else 3,
                              port=lab.pooler_port, capture_path="lo", required=False)
        shown = measurement.shown
        results.at_least("client_time holds the path behind the pooler: client_time / wait", 0.8,
                         shown["client_time"] / (shown["client_time"] + shown["network_time"]), unit="")
        rtt = next(iter(measurement.after.values()))["rtt"]
        results.add("rtt (to the pooler)", float("nan"), rtt if rtt is not None else float("nan"))
    finally:
        lab.stop(pooler)
