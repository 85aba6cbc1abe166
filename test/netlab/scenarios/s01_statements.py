"""The same statements over different paths.

`SELECT 1` of the raw client with the simple and the extended protocol and as a prepared statement, and
pgbench's read-only and TPC-B scripts in its three protocol modes. Truth: packets and system calls; on
the Unix-domain socket, where there are no packets, system calls alone.
"""

from harness import pgclient

from scenarios.common import ask, label, program

TITLE = "Statements over a Unix-domain socket, loopback and round trips up to 320 ms"

REQUESTS = {
    "simple": pgclient.query("SELECT 1"),
    "extended": pgclient.extended("SELECT 1"),
    "prepared": pgclient.prepared("one"),
}
RTTS = (0.0005, 0.005, 0.05, 0.32)


def run(lab, results, short):
    paths = [("unix", None), ("lo", None)]
    paths += [("tun", rtt) for rtt in (RTTS[:2] if short else RTTS)]
    for path, rtt in paths:
        name = label(rtt) if rtt else {"unix": "Unix-domain socket", "lo": "loopback"}[path]
        lab.path(rtt or 0)
        iterations = max(12, min(1000, int((1 if short else 3) / (rtt or 0.001))))
        for protocol, request in REQUESTS.items():
            if short and protocol == "simple" and path != "unix":
                continue
            results.case = f"SELECT 1, {protocol}, {name}"
            ask(lab, results, path, iterations, request, setup=["PREPARE one AS SELECT 1"])

    pgbench(lab, results, paths, short)


def pgbench(lab, results, paths, short):
    lab.run("unix", [lab.program("pgbench"), "-i", "-q", "-s", "1"])
    for path, rtt in paths:
        if short and path == "tun" and rtt > 0.001:
            continue
        name = label(rtt) if rtt else {"unix": "Unix-domain socket", "lo": "loopback"}[path]
        lab.path(rtt or 0)
        for script in ("select-only", "tpcb-like"):
            for mode in ("simple", "extended", "prepared"):
                if (short and mode != "prepared") or (rtt and rtt > 0.1 and mode != "prepared"):
                    continue
                results.case = f"pgbench {script}, {mode}, {name}"
                command = [lab.program("pgbench"), "-n", "-c", 1, "-T", 600, "-b", script, "-M", mode]
                seconds = 1 if short else 1.5 if not rtt else max(2.0, min(12.0, 100 * rtt))
                program(lab, results, path, command, seconds=seconds,
                        settle=max(0.3, 10 * (rtt or 0)))
