"""When a backend really received, sent, waited and ran: the kernel's trace of it.

A second, finer truth beside the packets.  Between the arrival of a request's
packet and the moment at which the backend has read it, the kernel has to wake
the backend up; that takes from 3 us to some 100 us, depending on whether the
processor sleeps and on who else wants it.  No packet shows it, so it cannot be
told from the path by packets alone, but the return of recvfrom() is exactly the
moment at which a request was read, and the return of sendto() exactly the one
at which the kernel took the response.  While a backend is blocked in one of
them it waits in epoll_wait().  All of it comes from tracefs, nothing is asked
of the server.

The scheduler's own trace tells when a process that wanted to run was displaced.
That is what a figure may be off by on a busy machine: the server reads its
clock somewhere between two system calls, and a process that loses the processor
there cannot know on which side.  It is measured, so that nobody has to guess
whether a machine was busy: see Totals.doubt.

Where the kernel has no tracing, available() is false and callers do without.
"""

import atexit
import bisect
import collections
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
EVENTS = ("syscalls/sys_exit_recvfrom", "syscalls/sys_exit_sendto")
# epoll_pwait where a processor knows nothing else
MORE_EVENTS = ("syscalls/sys_enter_epoll_wait", "syscalls/sys_exit_epoll_wait",
               "syscalls/sys_enter_epoll_pwait", "syscalls/sys_exit_epoll_pwait", "sched/sched_switch")
BUFFER_KB = 32768

# Between the return of recvfrom() and core's timestamp a backend needs a few microseconds.
TIMESTAMP_NS = 100_000

_line = re.compile(r"-(\d+)\s+\[\d+\]\s+\S+\s+(\d+)\.(\d{6}): (.+)")
_switch = re.compile(r"prev_pid=(\d+) .*prev_state=(\S+) ==> .*next_pid=(\d+)")
_entries = re.compile(r"entries-in-buffer/entries-written: (\d+)/(\d+)")


def available():
    """Mount the tracing file system if nobody has, and say whether it knows these calls."""
    if not (ROOT / "instances").is_dir():
        subprocess.run(["mount", "-t", "tracefs", "tracefs", ROOT], capture_output=True)
    return all((ROOT / "events" / event).is_dir() for event in EVENTS)


class Instance:
    """A set of buffers of the kernel's.  Making one takes a tenth of a second, so they are used again."""

    idle = []

    def __init__(self):
        self.directory = ROOT / "instances" / f"netlab{os.getpid()}.{len(list(self._all(os.getpid())))}"
        self.directory.mkdir()
        atexit.register(self._remove)
        self.write("trace_clock", "mono")
        self.write("buffer_size_kb", BUFFER_KB)
        self.write("options/event-fork", 1)
        self.events = [event for event in (*EVENTS, *MORE_EVENTS) if (ROOT / "events" / event).is_dir()]

    @staticmethod
    def _all(pid):
        return (ROOT / "instances").glob(f"netlab{pid}.*")

    @classmethod
    def get(cls):
        """A free one."""
        if not cls.idle:
            cls._remove_abandoned()
            cls.idle.append(cls())
        return cls.idle.pop()

    @classmethod
    def _remove_abandoned(cls):
        """Free those of runs that were killed."""
        for directory in cls._all("*"):
            pid = directory.name.removeprefix("netlab").split(".")[0]
            if not os.path.exists(f"/proc/{pid}"):
                with contextlib.suppress(OSError):
                    directory.rmdir()

    def _remove(self):
        with contextlib.suppress(OSError):
            self.directory.rmdir()

    def write(self, name, value):
        (self.directory / name).write_text(str(value))

    def start(self, pid):
        self.write("trace", "")
        self.write("set_event_pid", pid)
        for event in self.events:
            self.write(f"events/{event}/enable", 1)

    def stop(self):
        for event in self.events:
            self.write(f"events/{event}/enable", 0)

    def follow(self, pid):
        # "a" would look for the file's end, which has none
        with open(os.open(self.directory / "set_event_pid", os.O_WRONLY | os.O_APPEND), "w") as file:
            file.write(f"{pid}\n")


class Trace:
    """The children that a process (the postmaster) forks while this is open, and whom it is told to follow.

    calls[pid]      [(moment, "r" or "s"), ...]: the returns of recvfrom() and sendto() that got or sent something
    steps[pid]      [moment, ...]: whenever it returned from one of these, or entered epoll_wait()
    waits[pid]      [(since, until), ...]: in epoll_wait()
    displaced[pid]  [(since, until), ...]: without a processor, though it wanted to run
    """

    def __init__(self, parent):
        self.parent = parent
        self.calls, self.steps, self.waits, self.displaced = (collections.defaultdict(list) for _ in range(4))

    def __enter__(self):
        self.instance = Instance.get()
        self.instance.start(self.parent)
        return self

    def __exit__(self, *exc_info):
        self.instance.stop()
        with open(self.instance.directory / "trace") as file:
            self._read(file)
        Instance.idle.append(self.instance)

    def follow(self, pid):
        """Trace a process that exists already."""
        self.instance.follow(pid)

    def _read(self, lines):
        offset = time.clock_gettime_ns(time.CLOCK_REALTIME) - time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        self._entered, self._displaced = {}, {}
        for line in lines:
            match = _line.search(line)
            if match:
                pid, seconds, fraction, event = match.groups()
                self._note(int(pid), int(seconds) * 10**9 + int(fraction) * 1000 + offset, event)
            elif line[0] == "#" and (match := _entries.search(line)) and match[1] != match[2]:
                raise RuntimeError(f"the trace is incomplete: {line.strip()}")

    def _note(self, pid, moment, event):
        if event.startswith("sched_switch"):
            before, state, after = _switch.search(event).groups()
            if state[0] == "R":
                self._displaced[int(before)] = moment
            if int(after) in self._displaced:
                self.displaced[int(after)].append((self._displaced.pop(int(after)), moment))
            return
        self.steps[pid].append(moment)
        if event.startswith("sys_epoll"):
            if " -> " not in event:
                self._entered[pid] = moment
            elif pid in self._entered:
                self.waits[pid].append((self._entered.pop(pid), moment))
            return
        call, _, result = event.partition(" -> ")
        result = int(result, 16)
        if 0 < result < 1 << 63:
            self.calls[pid].append((moment, "r" if call == "sys_recvfrom" else "s"))


@dataclasses.dataclass
class Burst:
    """An exchange, or several that follow each other without a wait (a pipeline)."""
    read: int                   # the first request was read
    sent: int                   # the kernel took the last byte of the last response
    exchanges: int = 1
    request: int = None         # the first request's packet arrived
    in_transaction: bool = False    # the wait after it is in a transaction
    # How long it did not run while the server was about to read its clock:
    late_read: int = 0
    late_sent: int = 0

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
    idle: int = 0               # the waits outside a transaction that were longer than the threshold
    doubt: int = 0              # how far the server cannot tell exchanges from waits, or from each other
    idle_doubt: int = 0         # of waits that may or may not count as idle


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
    """Without packets (Unix-domain socket): a response ends when the next request is read."""
    result = []
    state = None
    for moment, call in calls:
        if call == "r" and state != "r":
            result.append(Burst(moment, None))
        elif call == "s" and result:
            result[-1].sent = moment
        state = call
    return [burst for burst in result if burst.sent]


def note_displacement(bursts, steps, displaced):
    """Find out where the backend lost the processor while the server was about to read its clock.

    At the end that is between the return of sendto() and the next system call;
    at the beginning within TIMESTAMP_NS of its own time behind recvfrom().  In
    a pipeline it reads it anywhere: where one exchange ends and the next
    begins, which no system call shows.
    """
    for burst in bursts:
        if burst is None:
            continue
        i = bisect.bisect_right(steps, burst.sent)
        burst.late_sent = displaced_within(displaced, burst.sent, steps[i] if i < len(steps) else truth.NEVER)
        if burst.exchanges > 1:
            burst.late_read = displaced_within(displaced, burst.read, burst.sent)
            continue
        until = burst.read + TIMESTAMP_NS
        for since, returned in displaced[bisect.bisect_left(displaced, (burst.read,)):]:
            if since >= min(until, burst.sent):
                break
            burst.late_read += returned - since
            until += returned - since
    return bursts


def displaced_within(displaced, since, until):
    """How long the process did not run, counting absences that began in an interval."""
    i = bisect.bisect_left(displaced, (since,))
    total = 0
    while i < len(displaced) and displaced[i][0] < until:
        total += displaced[i][1] - displaced[i][0]
        i += 1
    return total


def covered(intervals, since, until):
    """How much of an interval some others cover, which are in order."""
    i = max(0, bisect.bisect_left(intervals, (since,)) - 1)
    total = 0
    while i < len(intervals) and intervals[i][0] < until:
        total += truth.overlap(*intervals[i], since, until)
        i += 1
    return total


def totals(bursts, since, until, idle_threshold=1_000_000_000):
    """Sums over an interval, as truth.Session.summary() has them; None if a call is missing."""
    result = Totals()
    if any(burst is None for burst in bursts):
        return None
    for burst in bursts:
        if since <= burst.read < until:
            result.bursts += 1
            result.exchanges += burst.exchanges
        result.exchange += truth.overlap(burst.read, burst.sent, since, until)
        if burst.sent >= since and burst.read < until:
            result.doubt += burst.late_read + burst.late_sent
    # the last wait is still in progress when the trace ends
    following = [*bursts[1:], Burst(truth.NEVER, truth.NEVER)]
    for burst, after in zip(bursts, following):
        if burst.in_transaction:
            time = truth.overlap(burst.sent, after.read, since, until)
            result.in_transaction += time
        else:
            time = truth.shown_of_wait(burst.sent, after.read, since, until, idle_threshold)
            _add_idle(result, burst, after, time, idle_threshold)
        result.wait += time
    return result


def _add_idle(result, burst, after, time, idle_threshold):
    """Of a wait outside a transaction, of which "time" is booked in the interval."""
    length = after.read - burst.sent
    doubt = TIMESTAMP_NS + burst.late_sent + after.late_read
    if length > idle_threshold:
        result.idle += time
    if abs(length - idle_threshold) < doubt:
        result.idle_doubt += time
