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

import bisect
import contextlib
import dataclasses
import itertools
import os
import pathlib
import re
import subprocess
import time

import truth

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


@dataclasses.dataclass
class Burst:
    """An exchange, or several that follow each other without a wait (a pipeline)."""
    read: int                   # the first request was read
    sent: int                   # the kernel took the last byte of the last response
    exchanges: int = 1
    request: int = None         # the first request's packet arrived
    in_transaction: bool = False    # the wait after it is in a transaction

    @property
    def wakeup(self):
        """From the packet's arrival until the backend had read it."""
        return self.read - self.request


@dataclasses.dataclass
class Totals:
    bursts: int = 0
    exchanges: int = 0
    exchange: int = 0
    wait: int = 0
    in_transaction: int = 0


def bursts(exchanges, calls, tls=False):
    """The exchanges that the packets show, with the moments of the calls.

    None stands for one whose calls were not found.  Under TLS the first call
    gets a record's header only; the request is there after the last one before
    the answer.
    """
    reads = [t for t, call in calls if call == "r"]
    sends = [t for t, call in calls if call == "s"]
    groups = []
    for exchange in exchanges:
        if exchange.pipelined and groups:
            groups[-1].append(exchange)
        else:
            groups.append([exchange])
    result = []
    for group, following in itertools.zip_longest(groups, groups[1:]):
        read = first_from(reads, group[0].request)
        limit = first_from(reads, following[0].request) if following else None
        if tls and read is not None:
            answer = first_from(sends, read)
            read = reads[bisect.bisect_left(reads, answer) - 1] if answer else read
        i = len(sends) if limit is None else bisect.bisect_left(sends, limit)
        if read is None or i == 0 or sends[i - 1] < read:
            result.append(None)
        else:
            result.append(Burst(read, sends[i - 1], len(group), group[0].request,
                                group[-1].status in "TE"))
    return result


def first_from(moments, moment):
    """The first of some moments that is not before another."""
    i = bisect.bisect_left(moments, moment)
    return moments[i] if i < len(moments) else None


def bursts_alone(calls):
    """Without packets (Unix-domain socket): what was sent ends when something is read."""
    result = []
    state = None
    for moment, call in calls:
        if call == "r" and state != "r":
            result.append(Burst(moment, None))
        elif call == "s" and result:
            result[-1].sent = moment
        state = call
    return [burst for burst in result if burst.sent]


def totals(bursts, since, until):
    """Sums over an interval, as truth.Session.summary() has them; None if a call is missing."""
    result = Totals()
    if any(burst is None for burst in bursts):
        return None
    for burst in bursts:
        if since <= burst.read < until:
            result.bursts += 1
            result.exchanges += burst.exchanges
        result.exchange += truth.overlap(burst.read, burst.sent, since, until)
    # the last wait is still in progress when the trace ends
    reads = [burst.read for burst in bursts[1:]] + [truth.NEVER]
    for burst, read in zip(bursts, reads):
        if burst.in_transaction:
            time = truth.overlap(burst.sent, read, since, until)
            result.in_transaction += time
        else:
            time = truth.shown_of_wait(burst.sent, read, since, until)
        result.wait += time
    return result
