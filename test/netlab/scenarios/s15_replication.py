"""Replication over the line: what a synchronous commit waits for, and who blocks a walsender.

Truth: packets. One commit at a time, and a receiver (`pg_receivewal --synchronous`) that confirms each
flush. From when WAL leaves until the confirmation of its position has come back is the flush: `flush_lag`, of which the
path has `rtt`. A flush takes no longer than its commit does for the client. On the slow line, the receiver takes all that
comes, so that nobody but the line limits the walsender.
"""

import operator
import pathlib
import struct
import tempfile
import time

import capture
import measure
from harness import poll
from scenarios.common import DEEP_QUEUE, MBIT

TITLE = "Replication: a commit's flush, and a slow line"
NS_PER_MS = 1_000_000
RECEIVER = "pg_receivewal"
COLUMNS = ("busy_time", "network_limited_time", "receiver_limited_time", "buffer_limited_time", "bytes_acked",
           "bytes_queued")


def run(lab, results, short):
    commits = 20 if short else 200
    results.case = f"{commits} commits, one at a time, round trip 10 ms"
    lab.path(0.01)
    lab.admin.query("ALTER SYSTEM SET synchronous_standby_names = 'pg_receivewal'")
    stolen = -measure.stolen()
    try:
        with lab.capture("tun") as packets:
            lags, rtt, waited, took = commit(lab, commits)
        stolen += measure.stolen()
    finally:
        lab.admin.query("ALTER SYSTEM RESET synchronous_standby_names")
        lab.admin.query("SELECT pg_reload_conf()")
    flush(results, packets, commits, lags, rtt, waited, took, stolen)

    # more than the kernel takes into its send buffer, 4 MB by default
    megabytes = 8 if short else 20
    results.case = f"{megabytes} MB of WAL over 20 Mbit/s, round trip 10 ms"
    lab.path(0.01, rate=20 * MBIT, queue=DEEP_QUEUE)
    slow_line(lab, results, megabytes)


class Receiver:
    def __init__(self, lab, *options):
        self.lab = lab
        directory = lab.space.own(pathlib.Path(tempfile.mkdtemp(prefix="wal.", dir=lab.directory)))
        self.process = lab.start("tun", [lab.program(RECEIVER), "-D", directory, "--no-loop", *options])

    def __enter__(self):
        poll.until(lambda: self.streams(), lambda: "the receiver gets WAL", 20)
        return self

    def __exit__(self, *exc_info):
        self.lab.stop(self.process)

    def streams(self):
        return self.lab.admin.query("SELECT 1 FROM pg_stat_replication WHERE state = 'streaming'")

    def row(self, columns=COLUMNS):
        row = self.lab.admin.query(f"SELECT {', '.join(columns)} FROM pgnetlat_walsenders"
                                   f" WHERE application_name = '{RECEIVER}'")[0]
        return dict(zip(columns, map(float, row)))


def replication_time(lab, pid):
    return float(lab.admin.query("SELECT exec_replication_time FROM pgnetlat_sessions"
                                 f" WHERE pid = {pid}")[0][0])


def commit(lab, count):
    """Commits over the Unix-domain socket: the lag of each flush, the path's round trip, the time waited and taken."""
    client = lab.connect("unix", application_name="commits")
    pid = client.query("SELECT pg_backend_pid()")[0][0]
    with Receiver(lab, "--synchronous") as receiver:
        lab.admin.query("SELECT pg_reload_conf()")
        poll.until(lambda: lab.admin.query("SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'"),
                   lambda: "commits wait for the receiver", 20)
        client.query("SELECT pg_logical_emit_message(true, 'lab', 'x')")
        waited = replication_time(lab, pid)
        took, lags = 0, []
        for _ in range(count):
            began = time.monotonic_ns()
            client.query("SELECT pg_logical_emit_message(true, 'lab', 'x')")
            took += time.monotonic_ns() - began
            lags.append(receiver.row(["flush_lag"])["flush_lag"])
        waited = replication_time(lab, pid) - waited
        rtt = receiver.row(["rtt"])["rtt"]
    client.close()
    return lags, rtt, waited, took


def flush(results, packets, commits, lags, rtt, waited, took, stolen):
    """Compare flush_lag with the packets.

    "took" is the time of the commits, in ns.  An error below that is no failure, because messages that share a packet,
    which are those of slow flushes, are left out.  "stolen" is the time that the hypervisor took meanwhile.
    """
    flushes, work = zip(*list(conversations(packets))[-commits:])
    whole = sum(flushes) / len(flushes) / NS_PER_MS
    path = min(map(operator.sub, flushes, work)) / NS_PER_MS
    results.add("flush_lag, on average", whole, sum(lags) / len(lags), allowed=0.03 * whole, goal="3 %", required=True,
                fails_at=max(0.5 * whole, took / NS_PER_MS / commits - whole) + stolen / NS_PER_MS / commits)
    results.add("rtt", path, rtt, allowed=0.02 * path, goal="2 %", required=True, fails_at=0.1 * path)
    results.at_least("exec_replication_time", 0.8 * rtt * commits, waited)


def conversations(packets):
    """Of each flush that was confirmed: its length, and the receiver's work, in ns."""
    sent, confirmed = messages(packets.server)
    arrived, said = messages(packets.client)
    flushed = 0
    for position in sorted(confirmed):
        # like the server, take the last position that is confirmed
        covered = [end for end in sent if flushed < end <= position]
        flushed = position
        if covered and max(covered) in arrived and position in said:
            yield confirmed[position] - sent[max(covered)], said[position] - arrived[max(covered)]


def messages(path):
    """The moments of WAL by its end, and of replies by the flush that they confirm, on one side of the path.

    Messages that share a packet with others are left out: those of a single commit do not.
    """
    wal, replies = {}, {}
    for packet in capture.read_packets(path):
        body = bytes(packet.payload)
        if len(body) < 22 or body[:1] != b"d" or struct.unpack_from("!I", body, 1)[0] != packet.length - 1:
            continue
        if body[5:6] == b"w":
            wal.setdefault(struct.unpack_from("!Q", body, 6)[0] + packet.length - 30, packet.time)
        elif body[5:6] == b"r":
            replies.setdefault(struct.unpack_from("!Q", body, 14)[0], packet.time)
    return wal, replies


def slow_line(lab, results, megabytes):
    with Receiver(lab) as receiver:
        before = receiver.row()
        lab.admin.query("SELECT pg_logical_emit_message(true, 'lab', repeat('x', 1000000))"
                        f" FROM generate_series(1, {megabytes})")
        poll.until(lambda: receiver.row()["bytes_acked"] - before["bytes_acked"] > megabytes * 1e6 and
                   receiver.row()["bytes_queued"] == 0,
                   lambda: "all WAL has arrived", 60)
        after = receiver.row()
    shown = {name: after[name] - before[name] for name in COLUMNS}
    results.at_least("network's share of busy_time", 0.8,
                     (shown["network_limited_time"] + shown["buffer_limited_time"]) / max(shown["busy_time"], 1),
                     unit="", required=True)
    results.at_least("busy_time", 0.9 * megabytes * 8e6 / (20 * MBIT) * 1000, shown["busy_time"], required=True)
