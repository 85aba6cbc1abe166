"""Measurements: what pgnetlat shows for an interval of a session, beside the truth.

    with Measurement(lab, "tun") as m:
        m.begin()
        m.client.query("SELECT 1")
        m.end()
    m.compare(results)

Between begin() and end() the session does its work; both take a snapshot of
pgnetlat_sessions over another connection, with the server's clock beside it, so
that the truth can be cut at the same moments.
"""

import bisect
import contextlib
import dataclasses
import time

from harness import machine, pgclient, poll

import lab as lab_module
import syscalls
import truth

NS_PER_MS = 1_000_000

TIMES = ("exec_time", "send_time", "recv_time", "network_time", "client_time", "idle_time",
         "pending_time", "total_time", "in_xact_wait_time", "send_client_time", "run_queue_time",
         "run_queue_wait_time")
COUNTS = ("requests", "statements", "transactions", "pipelined", "round_trips", "retransmits",
          "bytes_sent", "bytes_received", "packets_sent", "packets_received")


# -- results -----------------------------------------------------------------------

@dataclasses.dataclass
class Result:
    """One figure: the truth, what pgnetlat shows, and how far off it may be."""
    scenario: int
    case: str
    quantity: str
    truth: float
    shown: float
    allowed: float = None           # None: for information, no goal
    unit: str = "ms"
    goal: str = ""
    per: int = 1                    # number of exchanges or waits behind it
    required: bool = False          # a failure fails the suite ...
    fails_at: float = 0             # ... if the error is larger than this as well
    note: str = ""

    @property
    def error(self):
        return self.shown - self.truth

    @property
    def met(self):
        return self.allowed is None or abs(self.error) <= self.allowed

    @property
    def failed(self):
        return self.required and self.allowed is not None \
            and not abs(self.error) <= max(self.allowed, self.fails_at)


class Results(list):
    """The results of a run, with the scenario and the case that are running."""

    def __init__(self, tally):
        super().__init__()
        self.tally = tally
        self.scenario = 0
        self.case = ""

    def add(self, quantity, truth, shown, **kwargs):
        self.append(Result(self.scenario, self.case, quantity, truth, shown, **kwargs))

    def between(self, quantity, truth, lowest, highest, shown, margin=0.0, **kwargs):
        """A truth that lies between two bounds; a figure outside of them by more than the margin fails."""
        known = truth - lowest if shown < truth else highest - truth
        self.add(quantity, truth, shown, required=True, fails_at=max(known, 0) + margin, **kwargs)

    def skip(self, reason):
        """The case cannot be measured here."""
        self.tally.skip(self.case, reason)

    def at_least(self, quantity, least, shown, **kwargs):
        """A relation instead of a value: shown >= least."""
        self.add(quantity, least, shown, allowed=None if shown >= least else 0.0,
                 goal=f"at least {least:g}", **kwargs)


# A good reading of pgnetlat_sessions takes no longer.
SNAPSHOT_NS = 1_000_000
SNAPSHOT_ATTEMPTS = 5

SNAPSHOT_SQL = """
    SELECT (extract(epoch FROM statement_timestamp()) * 1000000)::bigint AS earliest,
           (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now, *
      FROM pgnetlat_sessions WHERE pid <> pg_backend_pid() AND $1 IN (pid::text, application_name)
"""

# -- snapshots ---------------------------------------------------------------------

class Snapshot(dict):
    """A row of pgnetlat_sessions, numbers as numbers, and the moment it was read (ns).

    The server's clock is read by the same query, just behind the view; "doubt" is how long the query had been running
    by then, during which the reader may have been displaced.
    """

    def __init__(self, row, now, doubt):
        super().__init__(row)
        self.now = now
        self.doubt = doubt

    def __sub__(self, earlier):
        return {name: self[name] - earlier[name] for name in (*TIMES, *COUNTS)
                if self.get(name) is not None and earlier.get(name) is not None}


def snapshots(lab, whom):
    """The sessions with a pid or an application_name, by pid; the best of some readings."""
    best = None
    for _ in range(SNAPSHOT_ATTEMPTS):
        if not lab.snapshots_prepared:
            lab.admin.query(f"PREPARE snapshots(text) AS {SNAPSHOT_SQL}")
            lab.snapshots_prepared = True
        rows = lab.admin.dictionaries(f"EXECUTE snapshots('{whom}')")
        read = {int(row["pid"]): as_snapshot(row) for row in rows}
        doubt = max((row.doubt for row in read.values()), default=0)
        if best is None or doubt < best[0]:
            best = doubt, read
        if doubt < SNAPSHOT_NS:
            break
    return best[1]


def as_snapshot(row):
    now = int(row.pop("now")) * 1000
    doubt = now - int(row.pop("earliest")) * 1000
    for name in (*TIMES, "rtt", "srtt", "server_share", "network_share", "client_share"):
        if row.get(name) is not None:
            row[name] = float(row[name])
    for name in COUNTS:
        if row.get(name) is not None:
            row[name] = int(row[name])
    return Snapshot(row, now, doubt)


def snapshot(lab, pid):
    return snapshots(lab, pid)[pid]


def recent(lab, pid):
    """The flight recorder's rows of a session; start in ns."""
    rows = lab.admin.dictionaries(
        "SELECT (extract(epoch FROM start) * 1000000)::bigint AS start, wait_time"
        f" FROM pgnetlat_recent({pid}) ORDER BY 1")
    return [{"start": int(row["start"]) * 1000, "wait_time": float(row["wait_time"])}
            for row in rows if row["wait_time"] is not None]


def waits_of(shown):
    return shown["network_time"] + shown["client_time"] + shown["idle_time"]


def exchanges_of(shown):
    return shown["exec_time"] + shown["send_time"] + shown["recv_time"]


# How often settle() looks for a backend that is about to wait.
SETTLE_ATTEMPTS = 50

# The fewest exchanges of the flight recorder that make a statistic.
MIN_RECORDED = 10

# A backend that loses its processor at the wrong moment misses a goal.  The account fails
# only if it is off by this share of the wall clock, plus the disturbance that was
# measured (Totals.doubt, Snapshot.doubt).
FAILURE = 0.05

# The longest tick of the kernel (100 Hz).
TICK_NS = 10_000_000

# If all turns of a client are longer, its kernel acknowledges before the client answers.
LONGEST_TURN_NS = 60_000

# This close to a snapshot, an exchange may be done but not counted, or the other way round.
CUT_NS = 500_000

# -- goals -------------------------------------------------------------------------

def compare_with_goals(results, shown, wall, packets=None, calls=None, constant_path=True,
                       required=True, measured_path=True, cut_exchanges=0,
                       held_back=False, doubt=0, late_packets=0, stolen=0):
    """The goals that every session has to meet.

    "packets" is a truth.Summary, "calls" a syscalls.Totals; either may be None.
    "cut_exchanges" is how many exchanges may have been under way at the snapshots,
    "held_back" that the kernel sends later than it takes the data, so that packets
    do not show where an exchange ends.  "doubt" is that of the snapshots,
    "late_packets" what the kernel must take for the path beyond its round trip, and
    "stolen" what a hypervisor took, wherever that was; all in ns.
    """
    disturbed = doubt + stolen + (calls.doubt if calls else 0)
    if packets:
        count = max(packets.requests, 1)
        results.add("requests", packets.requests, shown["requests"],
                    allowed=cut_exchanges, unit="", goal="exact", required=required)
        results.add("pipelined", packets.pipelined, shown["pipelined"], unit="")
        results.add("exchange, packets", packets.exchange / NS_PER_MS, exchanges_of(shown), per=count,
                    allowed=None if held_back else max(0.01 * packets.exchange, 5000 * count) / NS_PER_MS,
                    goal="" if held_back else "1 % or 5 us each")
        results.add("wait, packets", packets.wait / NS_PER_MS, waits_of(shown), per=count,
                    allowed=None if held_back else max(0.01 * packets.wait, 5000 * count) / NS_PER_MS,
                    goal="" if held_back else "1 % or 5 us each")
    if calls:
        count = max(calls.exchanges, 1)
        results.add("exchange, calls", calls.exchange / NS_PER_MS, exchanges_of(shown), per=count,
                    allowed=max(0.01 * calls.exchange, 5000 * count) / NS_PER_MS,
                    goal="1 % or 5 us each", required=required,
                    fails_at=(FAILURE * wall + disturbed) / NS_PER_MS)
        results.add("wait, calls", calls.wait / NS_PER_MS, waits_of(shown), per=count,
                    allowed=max(0.01 * calls.wait, 5000 * count) / NS_PER_MS,
                    goal="1 % or 5 us each", required=required,
                    fails_at=(FAILURE * wall + disturbed) / NS_PER_MS)
    if packets and measured_path:
        count = max(packets.round_trips, 1)
        even = constant_path and not held_back
        results.add("network", packets.network / NS_PER_MS, shown["network_time"], per=count,
                    allowed=0.03 * packets.network / NS_PER_MS if even else None,
                    goal="3 % of round trips x round trip" if even else "",
                    required=required and even and not (packets.idle or calls and (calls.idle or calls.idle_doubt)),
                    fails_at=(FAILURE * wall + disturbed + late_packets) / NS_PER_MS)
        results.add("client", packets.client / NS_PER_MS, shown["client_time"], per=count,
                    allowed=max(0.03 * packets.client, 60000 * count) / NS_PER_MS if even else None,
                    goal="3 % or 60 us each" if even else "")
        if calls and even and not (packets.idle or calls.idle or calls.idle_doubt):
            # No packet shows that the backend wakes up at the end of each wait, which may make the wait an idle one.
            client = calls.wait - packets.network - packets.idle
            results.add("client, calls", client / NS_PER_MS, shown["client_time"], per=count,
                        allowed=max(0.03 * client, 60000 * count) / NS_PER_MS,
                        goal="3 % or 60 us each", required=required,
                        fails_at=(2 * FAILURE * wall + disturbed + late_packets) / NS_PER_MS)
    parts = sum(shown[name] for name in TIMES[:7])
    results.add("sum of parts", wall / NS_PER_MS, parts, allowed=0.001 * wall / NS_PER_MS + 0.3,
                goal="0.1 % of the wall clock", required=required,
                fails_at=(0.001 * wall + doubt) / NS_PER_MS + 0.3)


def late_packets(session, since, until):
    """How much longer than the path the packets of some waits took, in all.

    The server knows the path's smallest round trip only.  The shortest turn of a client that answers at once is
    in it, for the acknowledgement comes with the next request.
    """
    waits = [wait for wait in session.waits if wait]
    least = min((wait.network for wait in waits), default=0)
    turn = min((wait.client for wait in waits), default=0)
    return sum(wait.network - least + probed(session, wait, least) + min(turn, LONGEST_TURN_NS)
               for wait in waits if wait.end >= since and wait.start < until)


def probed(session, wait, round_trip):
    """How long a response seems to have been lost that the kernel sent again just before the request came.

    The server does not learn that the client had it, because that takes a round trip (and a tick of the kernel).
    """
    resent = session.server.from_server.retransmissions
    i = bisect.bisect_left(resent, wait.end) - 1
    return resent[i] - wait.start if i >= 0 and resent[i] > wait.start \
        and wait.end - resent[i] < round_trip + TICK_NS and wait.network < resent[i] - wait.start else 0


def stolen():
    """The time that a hypervisor has taken since boot, in ns; no trace of the scheduler shows it."""
    return int(machine.stolen_time() * 1e9)


def cut_by(session, snapshots):
    """How many exchanges ended just when a snapshot was taken."""
    return sum(row.now - row.doubt - CUT_NS <= exchange.response <= row.now + CUT_NS
               for row in snapshots for exchange in session.exchanges)


# -- one session of the raw client ------------------------------------------------------

class Measurement:
    """A session of the raw client on a path, captured and traced.

    The loopback device can be faster than packets are recorded; then "captured" is False.
    """

    WARM_UP = 3

    def __init__(self, lab, path, setup=(), captured=True, **connection):
        self.lab = lab
        self.captured = captured and path != "unix"
        self.path = path
        self.setup = setup
        self.connection = connection
        self.session = self.packets = self.calls = None

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.lab.apart(self.path))
            self.trace = stack.enter_context(syscalls.Trace(self.lab.server.pid)) \
                if syscalls.available() else None
            self.capture = stack.enter_context(self.lab.capture(self.path)) \
                if self.captured else None
            self.client = stack.enter_context(self.lab.connect(self.path, **self.connection))
            self.pid = self.client.pid
            self.port = self.client.port if self.path != "unix" else None
            for sql in self.setup:
                self.client.query(sql)
            for _ in range(self.WARM_UP):
                self.client.query("SELECT 1")
            self.stack = stack.pop_all()
        return self

    def snapshot(self):
        return snapshot(self.lab, self.pid)

    def settle(self):
        """Wait until the backend waits; it may still return from its last system call.

        Give up after a while, because some measurements do not end in a wait.
        """
        for _ in range(SETTLE_ATTEMPTS):
            time.sleep(0.002)
            row, = self.lab.admin.dictionaries(f"SELECT state FROM pgnetlat_sessions WHERE pid = {self.pid}")
            if row["state"].startswith(("waiting", "idle")):
                break

    def begin(self):
        self.settle()
        self.stolen = -stolen()
        self.before = self.snapshot()

    def end(self):
        self.settle()
        self.after = self.snapshot()
        self.stolen += stolen()
        self.recent = recent(self.lab, self.pid)

    def __exit__(self, *exc_info):
        self.stack.close()
        if exc_info[0] is None:
            self.evaluate()

    def evaluate(self):
        since, until = self.before.now, self.after.now
        self.shown = self.after - self.before
        self.wall = until - since
        self.doubt = self.before.doubt + self.after.doubt
        calls = self.trace.calls[self.pid] if self.trace else []
        if self.capture:
            self.session = truth.read(self.capture, lab_module.PORT)[self.port]
            self.bursts = syscalls.bursts(self.session.exchanges, calls, self.session.tls)
        else:
            self.bursts = syscalls.bursts_alone(calls)
        if self.trace:
            syscalls.note_displacement(self.bursts, self.trace.steps[self.pid],
                                       self.trace.displaced[self.pid])
        self.sum_up()

    def sum_up(self, idle_threshold=1_000_000_000):
        """Both truths' sums between the snapshots."""
        since, until = self.before.now, self.after.now
        if self.session:
            self.packets = self.session.summary(since, until, idle_threshold)
        if self.trace:
            self.calls = syscalls.totals(self.bursts, since, until, idle_threshold)

    def burst_of(self, exchange):
        """The system calls of an exchange; None if they are not known."""
        return next((b for b in self.bursts if b and b.request == exchange.request), None) \
            if self.trace else None

    def blocked(self, since, until):
        """For how long the backend was waiting for its client in an interval."""
        return syscalls.covered(self.trace.waits[self.pid], since, until)

    def compare_each(self, results):
        """The flight recorder's exchanges, one by one, against the calls."""
        errors = [shown - true for shown, true in zip(*self.recorded_waits())]
        if len(errors) >= MIN_RECORDED:
            magnitudes = sorted(map(abs, errors))
            waits = self.recorded_waits()[1]
            mean = sum(waits) / len(waits)
            results.add(f"median error of the last {len(errors)} waits", 0,
                        magnitudes[len(errors) // 2], allowed=max(0.005, 0.01 * mean), goal="1 % or 5 us")
            results.add(f"largest error of the last {len(errors)} waits", 0, magnitudes[-1])

    def recorded_waits(self):
        """Waits as the recorder has them and as the calls have them, in ms."""
        following = {burst.read: after for burst, after in zip(self.bursts, self.bursts[1:]) if burst}
        reads = sorted(following)
        by_read = {burst.read: burst for burst in self.bursts if burst}
        shown, true = [], []
        for row in self.recent:
            # The recorder's start is a little after the return of the call.
            i = bisect.bisect_right(reads, row["start"] + 2000) - 1
            if i < 0 or row["start"] - reads[i] > NS_PER_MS or following[reads[i]] is None:
                continue
            shown.append(row["wait_time"])
            true.append((following[reads[i]].read - by_read[reads[i]].sent) / NS_PER_MS)
        return shown, true

    def within(self):
        """The exchanges that began between begin() and end()."""
        return [e for e in self.session.exchanges if self.before.now <= e.start < self.after.now]

    def compare(self, results, **kwargs):
        late = late_packets(self.session, self.before.now, self.after.now) if self.session else 0
        compare_with_goals(results, self.shown, self.wall, self.packets, self.calls, doubt=self.doubt,
                           measured_path=self.path == "tun", late_packets=late, stolen=self.stolen, **kwargs)
        if self.path == "tun":
            times = [w.network for w in self.session.waits if w]
            if times and self.after["rtt"] is not None:
                results.add("rtt", min(times) / NS_PER_MS, self.after["rtt"])


# -- programs ---------------------------------------------------------------------------

class ProgramMeasurement:
    """The sessions of a program such as pgbench, while it runs.

    They are busy when the snapshots are taken, so the interval begins and ends
    in the middle of exchanges and waits.
    """

    WARM_UP = 10

    def __init__(self, lab, path, command, sessions=1, seconds=2.0, application="pgbench",
                 port=lab_module.PORT, settle=0.5, capture_path=None):
        self.lab, self.path, self.command = lab, path, command
        self.count, self.seconds, self.application = sessions, seconds, application
        self.port, self.settle, self.capture_path = port, settle, capture_path or path

    def run(self):
        """Start the program, measure for a time, end the program."""
        with contextlib.ExitStack() as stack:
            trace = stack.enter_context(syscalls.Trace(self.lab.server.pid)) \
                if syscalls.available() else None
            capture = stack.enter_context(self.lab.capture(self.capture_path)) \
                if self.path != "unix" else None
            # Sessions of the previous program may not have ended yet.
            poll.until(lambda: not snapshots(self.lab, self.application), "an end of the sessions before")
            program = self.lab.start(self.path, self.command, port=self.port, log="program")
            # in any case, so that it does not disturb the next measurement
            stack.callback(self.lab.stop, program)
            # pgbench begins with a session that only looks at the tables.
            appeared = poll.wait_for(lambda: program.poll() is not None
                                     or sum(row["requests"] >= self.WARM_UP for row in snapshots(
                                         self.lab, self.application).values()) >= self.count, 60, interval=0.02)
            if not appeared or program.poll() is not None:
                raise RuntimeError(f"{self.command[0]}: its sessions do not appear:\n"
                                   + self.lab.space.log("program"))
            time.sleep(self.settle)
            self.stolen = -stolen()
            self.before = snapshots(self.lab, self.application)
            time.sleep(self.seconds)
            self.after = snapshots(self.lab, self.application)
            self.stolen += stolen()
            # Let exchanges in progress end, so that the packets show them completely.
            time.sleep(0.05 + 2 * self.lab.rtt)
        self.sessions = truth.read(capture, lab_module.PORT) if capture else {}
        self.trace = trace
        return self

    def compare(self, results, **kwargs):
        """Sums over the program's sessions."""
        shown, wall, doubt, late, cut = {}, 0, 0, 0, 0
        packets, calls = truth.Summary(), syscalls.Totals()
        by_pid = {session.pid: session for session in self.sessions.values()}
        have_packets, have_calls = bool(self.sessions), bool(self.trace)
        for pid, after in self.after.items():
            before = self.before.get(pid)
            if before is None:
                continue
            for name, value in (after - before).items():
                shown[name] = shown.get(name, 0) + value
            wall += after.now - before.now
            doubt += after.doubt + before.doubt
            session = by_pid.get(pid)
            if session:
                add_fields(packets, session.summary(before.now, after.now))
                late += late_packets(session, before.now, after.now)
                cut += 1 + cut_by(session, (before, after))
            else:
                have_packets = False
            if have_calls:
                sums = syscalls.totals(self._bursts(pid, session), before.now, after.now)
                if sums is None:
                    have_calls = False
                else:
                    add_fields(calls, sums)
        self.shown, self.wall = shown, wall
        self.packets = packets if have_packets else None
        self.calls = calls if have_calls else None
        compare_with_goals(results, shown, wall, self.packets, self.calls, doubt=doubt, late_packets=late,
                           stolen=self.stolen * len(self.after), measured_path=self.capture_path == "tun",
                           cut_exchanges=cut, **kwargs)

    def _bursts(self, pid, session):
        traced = self.trace.calls[pid]
        bursts = syscalls.bursts(session.exchanges, traced) if session else syscalls.bursts_alone(traced)
        return syscalls.note_displacement(bursts, self.trace.steps[pid], self.trace.displaced[pid])


def add_fields(sums, terms):
    for field in dataclasses.fields(sums):
        setattr(sums, field.name, getattr(sums, field.name) + getattr(terms, field.name))


def think(seconds):
    pgclient.think(seconds)
