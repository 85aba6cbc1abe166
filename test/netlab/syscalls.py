"""When a backend really received and sent: the kernel's trace of its system calls.

A second, finer truth beside the packets.  Between the arrival of a request's
packet and the moment at which the backend has read it, the kernel has to wake
the backend up; that takes from 3 us to some 100 us, depending on whether the
processor sleeps and on who else wants it.  No packet shows it, so it cannot be
told from the path by packets alone, but the return of recvfrom() is exactly the
moment at which a request was read, and the return of sendto() exactly the one
at which the kernel took the response.  Both come from tracefs, nothing is asked
of the server.

Where the kernel has no tracing, available() is false and callers do without.
"""

import contextlib
import itertools
import os
import pathlib
import re
import subprocess
import time

ROOT = pathlib.Path("/sys/kernel/tracing")
EVENTS = ("sys_exit_recvfrom", "sys_exit_sendto")
BUFFER_KB = 32768

_numbers = itertools.count(1)
_line = re.compile(r"-(\d+)\s+\[\d+\]\s+\S+\s+(\d+)\.(\d{6}): sys_(recvfrom|sendto) -> 0x([0-9a-f]+)")


def available():
    """Mount the tracing file system if nobody has, and say whether it knows these calls."""
    if not (ROOT / "instances").is_dir():
        subprocess.run(["mount", "-t", "tracefs", "tracefs", ROOT], capture_output=True)
    return all((ROOT / "events/syscalls" / event).is_dir() for event in EVENTS)


class Trace:
    """Calls of the children that a process (the postmaster) forks while this is open."""

    def __init__(self, parent):
        self.parent = parent
        self.calls = {}             # pid -> [(time, "r" or "s"), ...], only successful calls

    def __enter__(self):
        self.directory = ROOT / "instances" / f"netlab{os.getpid()}.{next(_numbers)}"
        self.directory.mkdir()
        self._write("trace_clock", "mono")
        self._write("buffer_size_kb", BUFFER_KB)
        self._write("options/event-fork", 1)
        self._write("set_event_pid", self.parent)
        for event in EVENTS:
            self._write(f"events/syscalls/{event}/enable", 1)
        return self

    def __exit__(self, *exc_info):
        for event in EVENTS:
            self._write(f"events/syscalls/{event}/enable", 0)
        with contextlib.suppress(OSError):
            self._read()
        self.directory.rmdir()

    def _write(self, name, value):
        (self.directory / name).write_text(str(value))

    def follow(self, pid):
        """Trace a process that exists already."""
        with open(self.directory / "set_event_pid", "a") as file:
            file.write(f"{pid}\n")

    def _read(self):
        offset = time.clock_gettime_ns(time.CLOCK_REALTIME) - time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        with open(self.directory / "trace") as file:
            for line in file:
                match = _line.search(line)
                if not match:
                    continue
                pid, seconds, fraction, call, result = match.groups()
                result = int(result, 16)
                if result == 0 or result >= 1 << 63:
                    continue
                moment = int(seconds) * 10**9 + int(fraction) * 1000 + offset
                self.calls.setdefault(int(pid), []).append((moment, call[0]))


def moments(exchanges, calls):
    """For each exchange: (request read, last byte taken by the kernel), or None where pipelined.

    The packets say which exchange is which; the calls say when the backend was
    at its socket.
    """
    reads = [t for t, call in calls if call == "r"]
    sends = [t for t, call in calls if call == "s"]
    result = []
    r = s = 0
    for i, exchange in enumerate(exchanges):
        following = exchanges[i + 1] if i + 1 < len(exchanges) else None
        while r < len(reads) and reads[r] < exchange.request:
            r += 1
        if r == len(reads) or exchange.pipelined or (following and following.pipelined):
            result.append(None)
            continue
        # The last send before the next request was read.
        limit = None
        if following:
            limit = next((t for t in reads[r:] if t >= following.request), None)
        while s < len(sends) and sends[s] < reads[r]:
            s += 1
        last = None
        while s < len(sends) and (limit is None or sends[s] < limit):
            last = sends[s]
            s += 1
        result.append((reads[r], last) if last else None)
    return result


def totals(exchanges, calls):
    """(exchanges' time, waits' time, number of waits) between the calls, and by the packets.

    Both over the same waits and exchanges, so that the difference is what the
    kernel and the processor add.
    """
    points = moments(exchanges, calls)
    result = {"exchange": 0, "exchange_packets": 0, "exchanges": 0,
              "wait": 0, "wait_packets": 0, "waits": 0, "wakeup": 0}
    for i, point in enumerate(points):
        if point is None:
            continue
        result["exchanges"] += 1
        result["exchange"] += point[1] - point[0]
        result["exchange_packets"] += exchanges[i].time
        result["wakeup"] += point[0] - exchanges[i].request
        if i + 1 < len(points) and points[i + 1] is not None:
            result["waits"] += 1
            result["wait"] += points[i + 1][0] - point[1]
            result["wait_packets"] += exchanges[i + 1].request - exchanges[i].response
    return result
