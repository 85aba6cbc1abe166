"""What pgnetlat shows of a case, beside the packets."""

import collections
import dataclasses
import math
import re

from harness import poll

import conversation

NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000

PARTS = ("exec_time", "send_time", "recv_time", "network_time", "client_time", "idle_time", "pending_time")

CONNECT_PARTS = ("connect_tls_time", "connect_auth_time")

CLIENTS = f"""
SELECT r.rolname AS role, sum(sessions) AS sessions, sum(ended_sessions) AS ended,
       sum(requests) AS requests, sum(statements) AS statements, sum(transactions) AS transactions,
       sum(pipelined) AS pipelined, sum(round_trips) AS round_trips, sum(total_time) AS total_time,
       sum(connections) AS connections, sum(failed_connections) AS failed_connections,
       sum(connect_round_trips) AS connect_round_trips, sum(connect_time) AS connect_time,
       {", ".join(f"sum({part}) AS {part}" for part in CONNECT_PARTS)},
       {", ".join(f"sum({part}) AS {part}" for part in PARTS)}
  FROM pgnetlat_clients c JOIN pg_roles r ON r.oid = c.usesysid GROUP BY 1"""

STATEMENTS = """
SELECT r.rolname AS role, s.queryid, q.query, s.calls, s.rows, s.network_time, s.client_time, s.exec_time,
       s.repeats, s.repeat_network_time
  FROM pgnetlat_statements s JOIN pg_roles r ON r.oid = s.userid
  LEFT JOIN (SELECT userid, dbid, queryid, min(query) AS query FROM pg_stat_statements
              GROUP BY 1, 2, 3) q USING (userid, dbid, queryid)"""

# A backend may lose its processor, in ms, after it has read a request, or sent a response, and before it looks at the
# clock.
PREEMPTED = 12

# What a figure may wrongly contain.
LAST = "the last wait"

# Limits that the documentation states.
LARGE_REQUEST = "the upload of a large request counts as its client's"
LOSS = "what the kernel has sent again counts as network until then"
EXTENDED_COPY = "COPY FROM STDIN in the extended protocol is sampled before PostgreSQL 17"
UNASKED_COPY = "COPY data that was sent without being asked for, and comes after the server has asked, costs a round trip"

# Repeats of these do not matter.
TRANSACTION_CONTROL = ("BEGIN", "START", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE")

# A client's acknowledgement may be this late.
DELAYED_ACK = 40 * NS_PER_MS


# Time of no statement, or of one to which pg_stat_statements gives no identifier.
NOBODY = "(no statement)"
UNIDENTIFIED = re.compile(r"(?i)(deallocate|prepare(?! transaction)|execute)\b")


def owner_of(text):
    return NOBODY if text is None or UNIDENTIFIED.match(text) else text


@dataclasses.dataclass
class Check:
    """One figure of a case."""
    name: str
    truth: object
    shown: object
    passed: bool
    note: str = ""
    limit: str = ""             # passed only within this limit, which the documentation states

    @property
    def is_time(self):
        """Also repeats: a client that was kept waiting seems to have been thinking."""
        return "_time" in self.name or self.name in ("exec + send + recv", "sum of parts") \
            or self.name.startswith("repeats")


class Shown:
    """The figures of pgnetlat for one role."""

    def __init__(self, client, statements):
        self.client = client
        self.statements = statements        # text -> sums


def number(value):
    return 0 if value is None else float(value) if "." in value or "e" in value else int(value)


def read_shown(lab, normalise):
    """What pgnetlat shows, by role."""
    clients = {}
    for row in lab.admin.dictionaries(CLIENTS):
        role = row.pop("role")
        clients[role] = {name: number(value) for name, value in row.items()}
    statements = collections.defaultdict(dict)
    for row in lab.admin.dictionaries(STATEMENTS):
        role, queryid, query = row.pop("role"), row.pop("queryid"), row.pop("query")
        text = NOBODY if queryid in (None, "0") else normalise(query) if query else f"queryid {queryid}"
        sums = statements[role].setdefault(text, collections.Counter())
        for name, value in row.items():
            sums[name] += number(value)
    return {role: Shown(client, statements[role]) for role, client in clients.items()}


def wait_for_end(lab, roles, seconds=20):
    """Wait until the sessions of these roles have ended."""
    names = ", ".join(f"'{role}'" for role in roles)
    left = (f"SELECT 1 FROM pg_stat_activity WHERE usename IN ({names})"
            " UNION ALL SELECT 1 FROM pgnetlat_clients c JOIN pg_roles r"
            f" ON r.oid = c.usesysid WHERE c.sessions > 0 AND rolname IN ({names})")
    poll.until(lambda: not lab.admin.query(left), "sessions end", seconds)


def draining(wait):
    """How much longer than a round trip a response may have taken the network, or the client to take it."""
    return wait.drain + wait.late + min(wait.client, DELAYED_ACK) if wait.size > conversation.TAKEN_AT_ONCE else 0


class Case:
    """One case: its conversations, and what pgnetlat shows for its role."""

    def __init__(self, driver, name, conversations, shown, rtt, version):
        self.driver, self.name = driver, name
        self.conversations = conversations
        self.shown = shown
        self.rtt = rtt
        self.version = version          # major, of the server
        self.checks = []

    @property
    def only_late(self):
        """Whether a busy machine may have spoilt it: nothing but times fail, or it was not done in time."""
        return not self.passed and (all(check.is_time for check in self.failures)
                                    or any(check.name in ("sessions", "is there") or check.shown == "no answer"
                                           for check in self.failures))

    @property
    def passed(self):
        return all(check.passed for check in self.checks)

    @property
    def limits(self):
        return sorted({check.limit for check in self.checks if check.limit})

    @property
    def failures(self):
        return [check for check in self.checks if not check.passed]

    def judge(self):
        if not self.conversations or self.shown is None:
            self._check("is there", len(self.conversations), 0 if self.shown is None else 1, False)
            return self
        self._counts()
        self._connecting()
        self._statements()
        self._times()
        return self

    # -- checks ----------------------------------------------------------------------

    def _check(self, name, truth, shown, passed):
        self.checks.append(Check(name, truth, shown, bool(passed)))

    def _exactly(self, name, truth, shown):
        self._check(name, truth, shown, truth == shown)

    def _between(self, name, low, high, shown):
        self._check(name, low if low == high else f"{low}..{high}", shown, low <= shown <= high)

    def _about(self, name, truth, shown, share, slack, low=None, last=0, limits=()):
        """Within a share of the truth and a slack.

        "low" if the truth is not known more exactly; "last" the round trips of sessions' last
        waits, which explain a difference; "limits" how much further off the figure
        may be for a stated reason, as (reason, below, above).
        """
        low = truth if low is None else low
        allowed = share * truth + slack
        passed = low - allowed <= shown <= truth + allowed
        self._check(name, f"{truth:.1f}" if truth - low < 0.1 else f"{low:.1f}..{truth:.1f}", f"{shown:.1f}", passed)
        check = self.checks[-1]
        below = above = 0
        for reason, less, more in limits:
            below, above = below + less, above + more
            if not check.passed and low - allowed - below <= shown <= truth + allowed + above:
                check.passed, check.limit = True, reason
        if not check.passed and last and truth + last / 2 < shown <= truth + last + allowed + 1:
            check.note = LAST

    # -- what is counted -----------------------------------------------------------------

    def sum(self, function):
        return sum(map(function, self.conversations))

    @property
    def turns(self):
        return self.sum(lambda c: c.turns)

    def _counts(self):
        client = self.shown.client
        self._exactly("sessions", len(self.conversations), client["ended"])
        # The server may have had to wait for what the client had sent without waiting.
        self._between("round_trips", self.turns, self.sum(lambda c: c.server_waits), client["round_trips"])
        requests = self.sum(lambda c: c.requests)
        self._between("requests", requests, requests + self.sum(lambda c: c.flushes), client["requests"])
        self._exactly("statements", self.sum(lambda c: len(c.executions)), client["statements"])
        self._exactly("transactions", self.sum(lambda c: c.transactions), client["transactions"])

    def _connecting(self):
        """TCP's own round trip, and whatever the client had to wait for before its first ReadyForQuery."""
        client = self.shown.client
        count = len(self.conversations)
        turns = self.sum(lambda c: c.startup_turns)
        self._exactly("connections", count, client["connections"])
        self._exactly("failed_connections", 0, client["failed_connections"])
        self._exactly("connect_round_trips", count + turns, client["connect_round_trips"])
        # the last turn ends with the client's side of the first ReadyForQuery, which the server does not wait for
        self._between("connect_time", 0.98 * (turns - count) * self.rtt * 1000, math.inf, client["connect_time"])
        self._between("parts of connect_time", 0, client["connect_time"], sum(client[part] for part in CONNECT_PARTS))

    def _statements(self):
        truth = collections.defaultdict(collections.Counter)
        for c in self.conversations:
            for execution in c.executions:
                sums = truth[owner_of(execution.text)]
                sums["calls"] += 1
                sums["rows"] += execution.rows
                sums["repeats"] += execution.repeat
                sums["perhaps"] += execution.perhaps
        self._name_the_unknown()
        for text in sorted({*truth, *self.shown.statements}):
            shown = self.shown.statements.get(text, collections.Counter())
            for what in ("calls", "rows", "repeats"):
                if what == "repeats" and text.split(" ")[0].upper() in TRANSACTION_CONTROL:
                    continue
                high = truth[text]["perhaps" if what == "repeats" else what]
                if high or shown[what]:
                    self._between(f"{what}: {text}", truth[text][what], high, shown[what])

    def _name_the_unknown(self):
        """A statement that never came to its end is not in pg_stat_statements: found by elimination."""
        unknown = [text for text in self.shown.statements if text.startswith("queryid ")]
        missing = {wait.owner for c in self.conversations for wait in c.waits if wait.owner} \
            - {*self.shown.statements}
        if len(unknown) == 1 and len(missing) == 1:
            self.shown.statements[missing.pop()] = self.shown.statements.pop(unknown[0])

    # -- times ------------------------------------------------------------------------------

    def _times(self):
        client = self.shown.client
        waits = [wait for c in self.conversations for wait in c.waits]
        last = [c.final_wait for c in self.conversations]
        count = len(waits) + len(last)

        def total(of, which=(*waits, *last)):
            return sum(of(wait) for wait in which) / NS_PER_MS

        def length(wait):
            return wait.length

        upload = total(lambda w: w.upload)
        drained = total(draining)
        raced = total(length, [w for w in waits if not w.turn])
        # The first CopyData shows in no message of the server's: what its client thinks may be receiving.
        copying = total(lambda w: w.length - w.network, [w for w in waits if w.copy])
        unseen = self._unseen(waits)
        copied = total(length, unseen)
        lost = self._lost()

        low, high = self._network(waits)
        # The response before the client leaves may drain; nobody waits for its round trip.
        high += total(lambda w: w.network + draining(w), [w for w in last if w.size > conversation.TAKEN_AT_ONCE])
        self._about("network_time", high, client["network_time"], 0.01, 0.3 + 0.02 * count, low=low,
                    last=total(lambda w: w.network + draining(w), last),
                    limits=[(EXTENDED_COPY, total(lambda w: w.network, unseen), 0), (LOSS, 0, lost),
                            (UNASKED_COPY, 0, self._unasked(waits))])
        thought = total(lambda w: w.client)
        late = total(lambda w: w.late) + PREEMPTED
        self._about("client_time", thought + late + drained + total(length, last) + raced,
                    client["client_time"] + client["idle_time"], 0.03, 0.2 * count,
                    low=thought - drained - raced - copying, limits=[(LARGE_REQUEST, 0, upload), (LOSS, lost, 0)])
        wall = self.sum(lambda c: c.wall) / NS_PER_MS
        inside = wall - total(length)
        self._about("exec + send + recv", inside + raced + copying + PREEMPTED, sum(client[part] for part in PARTS[:3]),
                    0.03, 0.2 * count + 0.1 * upload, low=max(0, inside - PREEMPTED),
                    limits=[(EXTENDED_COPY, 0, copied)])
        # sampled
        rest = self.sum(lambda c: c.uploads) / NS_PER_MS
        self._about("recv_time", max(0, inside) + raced + copying + upload, client["recv_time"], 0.1, 10 + 0.3 * count,
                    low=0.8 * (upload + rest), limits=[(EXTENDED_COPY, 0, copied), (LARGE_REQUEST, 0.8 * upload, 0)])
        parts = sum(client[part] for part in PARTS)
        self._about("sum of parts", client["total_time"], parts, 0.0001, 0.01)
        self._about("total_time", wall, client["total_time"], 0.005, 5.0 * len(last))
        self._network_of_statements(waits, last)

    def _lost(self):
        """How long the waits may have been in which the server's kernel sent something again, in ms."""
        return sum(sum(sorted((w.client for w in c.waits), reverse=True)[:c.sent_again])
                   for c in self.conversations) / NS_PER_MS

    def _unseen(self, waits):
        """Waits for the first CopyData that show in nothing but samples."""
        return [w for w in waits if w.copy == "E" and self.version < 17]

    def _unasked(self, waits):
        """One round trip for each COPY whose client sent data without waiting for the invitation, in ms."""
        return 1000 * self.rtt * sum(w.copy != "" and not w.turn for w in waits)

    def _network(self, waits):
        """The least and the most that these waits' round trips may come to, in ms.

        A packet may have been late, on its way or to leave, which nobody but the captures
        knows.  A response that takes its time to leave counts until it is acknowledged.
        """
        # a backend that lost its processor while it sent waits for less than a round trip
        low = sum(min(w.network, self.rtt * NS_PER_S, w.length) for w in waits if w.turn)
        # where the client had not waited, the server may have: for the rest of a long message, say
        high = sum(max(w.network + draining(w), min(w.length, w.handshake)) if w.turn else w.length for w in waits)
        return low / NS_PER_MS, high / NS_PER_MS

    def _network_of_statements(self, waits, last):
        """Of each statement: the round trips after it.

        Nobody's may be those behind what is no statement: the start of the session, or
        a request that closes a statement and does nothing else.  One that
        prepares several statements may be of any.
        """
        after, unseen = collections.defaultdict(list), self._unseen(waits)
        closing, leaving, drains, shared = (collections.Counter() for _ in range(4))
        for wait in waits:
            after[owner_of(wait.owner)].append(wait)
            for text in wait.others:
                shared[text] += wait.network / NS_PER_MS
            if wait.closing or wait.others:
                closing[owner_of(wait.owner)] += wait.network / NS_PER_MS
        for wait in last:
            amount = (wait.network + draining(wait)) / NS_PER_MS
            leaving[owner_of(wait.owner)] += amount
            drains[owner_of(wait.owner)] += amount * (wait.size > conversation.TAKEN_AT_ONCE)
        for text in sorted({*after, *shared, *self.shown.statements}):
            shown = self.shown.statements.get(text, collections.Counter())["network_time"]
            low, high = self._network(after[text])
            high += drains[text] + shared[text]
            if text == NOBODY:
                low, high = 0, high + sum(closing.values()) + 1
            copied = sum(w.network for w in unseen if owner_of(w.owner) == text) / NS_PER_MS
            self._about(f"network_time: {text}", high, shown, 0.02, 0.05 * len(after[text]) + 0.3 * len(last),
                        low=max(0, low - closing[text]), last=leaving[text],
                        limits=[(EXTENDED_COPY, copied, 0), (LOSS, 0, self._lost()),
                                (UNASKED_COPY, 0, self._unasked(after[text]))])
