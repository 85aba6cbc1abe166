"""The conversation of a driver and a server, and its cost, from packets alone.

A Conversation replays the protocol: it assigns to each message of the client
what the server answered, and knows from the captures of both sides when each
byte left and arrived.

    turn         a message that the client sent when it had everything that the server
                 was going to say: it had waited for it, so a round trip was paid.
                 Also inside a request: CopyData sent after CopyInResponse was there
    request      what is under one Sync, in one simple Query, or before a Flush
                 after which the server had to wait
    statement    an execution that came to its end: CommandComplete, or the first
                 PortalSuspended of a portal
    transaction  what ends with COMMIT or ROLLBACK, with the session, or, outside of a
                 block, with Sync or the end of a simple Query
    repeat       an execution of a statement that was executed before in the same
                 transaction block; outside of a block, one of a loop: of the same
                 statement in a row, as many as the one before had rows, if there are
                 at least 5 and a quarter of these, with no more than 100 ms of
                 thinking in between, or after 30 within 2 ms each

A wait belongs to the statement before it: the last one executed in the request,
or, in a request that executes nothing, the one that it prepares or describes.
"""

import bisect
import collections
import dataclasses
import re
import struct

import tls
import truth

ASYNCHRONOUS = "NASv"
# A longer response may not have left when the kernel has taken it.
TAKEN_AT_ONCE = 16384

# How long before its response leaves the server may look for the next request, in ns.
LOOKS_BEFORE = 1_000_000

PIPELINED = "a request for which the server did not have to wait"

THINK_BREAKS_BURST = 100_000_000
THINK_IN_LOOP = 2_000_000
LOOP = 30
FEWEST = 5
OPTIMIZABLE = re.compile(r"(?i)\(*(select|insert|update|delete|merge|with|values|table)\b")


@dataclasses.dataclass
class Message(truth.Message):
    text: str = ""              # what a reader wants to see of it
    answer: str = ""            # kinds of the messages that answer it
    answered: int = None        # position in the server's stream behind its answer
    before: int = None          # the same of everything before it
    dropped: bool = False       # the server reads it and says nothing
    turn: bool = False
    waited: bool = False        # the server waited for it


@dataclasses.dataclass
class Execution:
    text: str                   # normalised
    exact: str                  # as it was sent: constants tell utility statements apart
    rows: int
    in_block: bool
    turns: int                  # of the session, up to its end
    repeat: bool = False        # certainly
    perhaps: bool = False       # unless what delayed the exchange counts as thinking


@dataclasses.dataclass
class Run:
    """Executions of one statement in a row, outside of a transaction block."""
    statement: str = None
    rows: int = 0               # of the latest execution
    executions: int = 0
    accounted: int = 0          # rows of the statement before
    close: int = 0              # the latest executions that followed each other closely
    for_rows: list = dataclasses.field(default_factory=list)    # repeats, if there are enough of them

    def repeats(self, event, statement, think):
        """The executions that this one shows to be repeats."""
        if statement != self.statement:
            self.statement, self.executions, self.accounted, self.close = statement, 1, self.rows, 0
            self.rows, self.for_rows = event.rows, []
            return []
        self.executions += 1
        self.close = self.close + 1 if think is None or think <= THINK_IN_LOOP else 0
        self.rows = event.rows
        if think is None or self.close >= LOOP:
            return [event]
        if self.executions <= self.accounted:
            self.for_rows.append(event)
        if self.executions < max(FEWEST, self.accounted // 4):
            return []
        found, self.for_rows = self.for_rows, []
        return found


@dataclasses.dataclass
class Wait:
    """The time between an answer and what the client sent next (ns, at the server)."""
    start: int
    end: int
    client: int
    turn: bool                  # the client had waited as well
    owner: str                  # text of the statement that it belongs to, or None
    in_transaction: bool
    upload: int = 0             # how long the message that ended it took to arrive
    size: int = 0               # of the response before it
    copy: str = ""              # for the first CopyData: how COPY was asked for, Q or E
    closing: bool = False       # behind a request that did nothing but close a statement
    others: tuple = ()          # further statements that the request prepared, if it executed none
    handshake: int = 0          # the connection's first round trip, which the kernel has measured
    taken: int = None           # when the kernel had taken the response, if its calls were traced
    read: int = None            # when the server had read the message that ends the wait

    @property
    def network(self):
        return self.end - self.start - self.client

    @property
    def drain(self):
        """How long the response went on leaving after the kernel had taken it."""
        return max(0, self.start - self.taken)

    @property
    def length(self):
        return self.read - self.taken

    @property
    def late(self):
        """How long the server took to wake up."""
        return max(0, self.read - self.end - self.upload)


def normalise(text):
    """A statement without the constants, as pg_stat_statements sees them."""
    text = re.sub(r"\s+", " ", text).strip().rstrip("; ")
    text = re.sub(r"(?i)(?<!\w)[ebx]?'(?:[^']|'')*'|\$\d+|(?<![\w.])\d+(?:\.\d+)?(?![\w])", "?", text)
    text = re.sub(r"([=(,<>*+/]\s*)-\s*\?", r"\1?", text)
    text = re.sub(r"(?i)(?<!is )(?<!not )\b(null|true|false)\b", "?", text)
    return re.sub(r"(\?, ?){3,}\?", "?...", text)


def split_statements(text):
    """The statements of a simple Query, split at semicolons outside of quotes."""
    parts = [m.group(0) for m in re.finditer(
        r"(?:'(?:[^']|'')*'|\"[^\"]*\"|--[^\n]*|[^;'\"])+", text, re.S)]
    return [part.strip() for part in parts if part.strip()]


def strings(data, start, count):
    """This many zero-terminated strings."""
    result = []
    for _ in range(count):
        end = data.index(b"\0", start)
        result.append(bytes(data[start:end]).decode("utf-8", "replace"))
        start = end + 1
    return result


def startup_parameters(data):
    offset = 0
    while True:
        length, code = struct.unpack_from("!II", data, offset)
        if code not in (truth.TLS_REQUEST, truth.GSS_REQUEST):
            break
        offset += length
    words = bytes(data[offset + 8:offset + length]).decode().split("\0")
    return dict(zip(words[0::2], words[1::2]))


class Conversation:
    """One connection, from the captures of both sides."""

    def __init__(self, server, client, calls=None):
        """From the captures of both sides, and a trace of system calls (see syscalls.py) if there is one."""
        self.server, self.client = server, client
        self.data = server.from_client.data
        self.answers = server.from_server.data
        self.parameters = startup_parameters(self.data)
        self.user = self.parameters.get("user")
        self._read_startup()
        self.executions = []
        self.errors = []
        self.transactions = 0
        self.requests = 0
        self.unclear = 0                # requests that arrived when the response before them was about to leave
        self.flushes = 0                # answered Flushes after which the server did not have to wait
        self.waits = []
        self.uploads = 0                # waiting for the rest of messages inside of requests
        self._statements, self._portals = {}, {}
        self._replay()
        self._look_up_calls(calls.get(self.pid, ()) if calls else ())
        self._find_repeats()

    # -- moments -------------------------------------------------------------------

    def arrival(self, end):
        """At the server, of the client's bytes before a position."""
        return self.server.from_client.time_of(end)

    def departure(self, end):
        """From the server, of its bytes before a position."""
        return self.server.from_server.time_of(end)

    def sent(self, end):
        return self.client.from_client.time_of(end)

    def received(self, end):
        return self.client.from_server.time_of(end)

    # -- the messages -----------------------------------------------------------------

    def _read_startup(self):
        offset, asked = truth.startup_length(self.data)
        if asked:                   # for encryption; the startup packet comes behind that
            offset += truth.startup_length(self.data[offset:])[0]
        self.requested = truth.messages(self.data, offset, make=Message)
        # a request for encryption is granted or refused by a single byte
        spoken = truth.messages(self.answers, 1 if self.answers[:1] in (b"N", b"S") else 0, make=Message)
        ready = next((i for i, m in enumerate(spoken) if m.kind == "Z"), None)
        if ready is None:
            raise ValueError("no session")
        self.ready = spoken[ready].end
        self.pid = next(struct.unpack_from("!I", self.answers, m.start + 5)[0] for m in spoken if m.kind == "K")
        self.spoken = spoken[ready + 1:]
        # passwords belong to the startup
        self.startup_turns = self._count_startup_turns()
        self.requested = [m for m in self.requested if m.kind != "p"]

    def _count_startup_turns(self):
        """How often the client spoke after it had heard something, up to the first ReadyForQuery.

        Whatever was said, encryption included: nothing is pipelined yet.
        """
        said, heard = self.client.from_client, self.client.from_server
        events = sorted([(moment, True) for moment in outer(said).times]
                        + [(moment, False) for moment in outer(heard).times])
        ready = self.received(self.ready)
        turns, is_heard = 0, True
        for moment, is_said in events:
            if moment >= ready:
                break
            turns += is_said and is_heard
            is_heard = not is_said
        return turns

    def _next_answer(self):
        """The server's next message that answers something; None at the end."""
        while self._said < len(self.spoken):
            message = self.spoken[self._said]
            self._said += 1
            self._position = message.end
            if message.kind not in ASYNCHRONOUS:
                self._kinds.append(message.kind)
                return message
        return None

    def _body(self, message):
        return bytes(self.answers[message.start + 5:message.end])

    def _replay(self):
        self._said, self._position = 0, self.ready
        self._turns = 0
        self._began = self.ready        # where the response begins, with those before it that nobody waited for
        self._read = 0
        self._skipping = False          # after an error, until Sync
        self._status = "I"
        self._implicit = False          # a transaction that no BEGIN has begun is open
        self._touched = None            # the statement that the request has last touched
        self._executed = False          # ... and whether it has executed it
        self._closing = False           # ... or only closes it
        self._prepared = set()          # what it prepares, if it executes nothing
        self._fresh = True              # the next message begins a request
        self._flushed = False
        self._events = []               # executions, waits outside of a block (or PIPELINED), and ends of a block (None)
        while self._read < len(self.requested):
            message = self.requested[self._read]
            self._read += 1
            message.before = self._position
            self._kinds, self._copied = [], None
            if message.kind == "X":
                self._end_of_session(message)
                return
            self._answer(message)
            message.answered = self._position
            (self._copied or message).answer += "".join(self._kinds)
        self._end_of_session(None)

    def _answer(self, message):
        kind = message.kind
        message.dropped = kind in "Hdcf" or self._skipping and kind != "S"
        if kind == "H" and not self._fresh:
            self._flushed = True
        if message.dropped:
            return
        self._begins(message)
        getattr(self, {"Q": "_query", "P": "_parse", "B": "_bind", "D": "_describe", "E": "_execute",
                       "C": "_close", "S": "_sync", "F": "_function"}[kind])(message)

    def _begins(self, message):
        """A message that will be answered: did anybody wait for it?"""
        waited = self.arrival(message.end) > self.departure(message.before)
        if self._fresh or self._flushed:
            self.unclear += not waited and self._is_unclear(message)
        if self._fresh or self._flushed and waited:
            self.requests += 1
            self._note_wait(message, waited)
            self._touched, self._executed, self._closing = None, False, False
            self._prepared = set()
            if waited:          # or earlier responses may not have left yet
                self._began = message.before
        elif self._flushed:
            self.flushes += 1
        else:
            # of a message inside of a request, from the arrival of its first byte
            self.uploads += self.arrival(message.end) - self.arrival(message.start + 1)
        self._fresh = self._flushed = False

    def _is_unclear(self, message):
        """Whether the server may not have seen a request that was there when its response left.

        Of a long response it may have been rid before that had left, and it looks for
        the next request before it sends a short one.
        """
        if message.before - self._began > TAKEN_AT_ONCE:
            return True
        arrival = self.arrival(message.end)
        return arrival > self.arrival(message.start) and self.departure(message.before) - arrival < LOOKS_BEFORE

    def _note_wait(self, message, waited):
        message.waited = waited
        # by its first byte: a long message is on its way when the client has long decided
        left, here = self.sent(message.start + 1), self.received(message.before)
        message.turn = here is not None and left is not None and left >= here
        self._turns += message.turn
        if not waited:
            if self._status == "I":
                self._events.append(PIPELINED)
            return
        start, end = self.departure(message.before), self.arrival(message.end)
        # COPY takes in what has come; of any other message the server wants all
        begins = max(start, self.arrival(message.start + 1))
        upload = end - begins if message.kind != "d" else 0
        end = begins
        client = max(0, left - here) if message.turn else 0
        self.waits.append(Wait(start, end, client, message.turn, self._touched,
                               self._status in "TE" or not self._fresh, upload, message.before - self._began,
                               self._asked if message.kind in "dcf" else "", self._closing,
                               tuple(self._prepared - {self._touched})))
        if self._status == "I":
            self._events.append(self.waits[-1])

    def _end_of_session(self, message):
        if self._status in "TE" or self._implicit:
            self.transactions += 1
        self.end = self.arrival(message.end) if message else self.server.client_fin or self.server.last
        start = self.departure(self._position)
        left = self.sent(message.end) if message else None
        client = max(0, left - self.received(self._position)) if left else 0
        self.final_wait = Wait(start, self.end, client, False, self._touched, self._status in "TE",
                               size=self._position - self._began, closing=self._closing)

    def _look_up_calls(self, calls):
        """When the kernel took the answers and the server read the requests; else when packets passed."""
        reads = [moment for moment, call in calls if call == "r"]
        sends = [moment for moment, call in calls if call == "s"]
        for wait in [*self.waits, self.final_wait]:
            wait.taken, wait.read = wait.start, wait.end
            wait.handshake = self.server.handshake_rtt or 0
            wait.read += wait.upload
            i = bisect.bisect_left(reads, wait.read)
            if i < len(reads):
                wait.read = reads[i]
            # what the read was woken up for came after this
            i = bisect.bisect_left(sends, wait.end)
            if i > 0:
                wait.taken = sends[i - 1]
        self.begin = ([*self.waits, self.final_wait])[0].taken

    def _find_repeats(self):
        """Twice: what delays an exchange, on the way or at the server, may count as thinking, or not."""
        shortest = min((wait.network for wait in self.waits if wait.turn), default=0)
        for certainly in (True, False):
            burst, run, in_block, think = set(), Run(), False, 0    # None: in the same request
            for event in self._events:
                if event is None:
                    burst, run = set(), Run()
                elif event is PIPELINED:
                    think = think or 0
                elif isinstance(event, Wait):
                    delayed = event.late + event.drain + event.upload
                    late = 2 * delayed + max(0, event.network - shortest)
                    client = event.client + late if certainly else event.client
                    think = max(think or 0, client)
                    if client > THINK_BREAKS_BURST:
                        burst, run = set(), Run()
                else:
                    if event.in_block != in_block:
                        burst, run = set(), Run()
                    in_block = event.in_block
                    if re.match(r"(?i)fetch\b", event.text):       # a portion of the same answer
                        think = None
                        continue
                    key = event.exact if certainly else event.text
                    found = run.repeats(event, key, think) if not in_block else [event] if key in burst else []
                    for repeat in found:
                        repeat.perhaps = True
                        repeat.repeat |= certainly
                    burst.add(key)
                    think = None

    # -- what the messages do ------------------------------------------------------------

    def _query(self, message):
        text, = strings(self.data, message.start + 5, 1)
        message.text = text
        self._implicit = self._status == "I"
        todo = split_statements(text)
        rows = 0
        while True:
            answer = self._next_answer()
            if answer is None:
                return
            if answer.kind == "D":
                rows += 1
            elif answer.kind == "G":
                self._touch(normalise(todo[0]), True)
                self._copy_in()
            elif answer.kind in "CI":
                if answer.kind == "C":
                    self._complete(todo.pop(0), rows, answer)
                rows = 0
            elif answer.kind == "E":
                self._error(answer)
                if todo:
                    self._touch(normalise(todo[0]), True)
            elif answer.kind == "Z":
                return self._ready(answer)

    def _parse(self, message):
        name, text = strings(self.data, message.start + 5, 2)
        message.text = text
        self._implicit |= self._status == "I"
        if self._one(message, text):
            self._statements[name] = text
        self._touch(normalise(text))

    def _bind(self, message):
        portal, name = strings(self.data, message.start + 5, 2)
        message.text = name
        text = self._statements.get(name, "?")
        self._implicit |= self._status == "I"
        if self._one(message, text):
            self._portals[portal] = [text, False]
        self._touch(normalise(text))

    def _describe(self, message):
        name, = strings(self.data, message.start + 6, 1)
        self._implicit |= self._status == "I"
        what = chr(self.data[message.start + 5])
        message.text = what
        answer = self._one(message)
        if answer and answer.kind == "t":
            self._one(message)
        self._touch(normalise(self._statements.get(name, "?") if what == "S"
                              else self._portals.get(name, ["?"])[0]))

    def _execute(self, message):
        name, = strings(self.data, message.start + 5, 1)
        limit = struct.unpack_from("!I", self.data, message.end - 4)[0]
        message.text = str(limit) if limit else ""
        self._implicit |= self._status == "I"
        portal = self._portals.setdefault(name, ["?", False])
        self._touch(normalise(portal[0]), True)
        rows = 0
        while True:
            answer = self._next_answer()
            if answer is None:
                return
            if answer.kind == "D":
                rows += 1
            elif answer.kind == "G":
                if not self._copy_in():
                    return self._fail()
            elif answer.kind in "Cs":
                if not portal[1]:
                    self._complete(portal[0], rows, answer, message)
                else:
                    self.executions[portal[1] - 1].rows += rows
                portal[1] = portal[1] or len(self.executions)
                return
            elif answer.kind == "I":
                return
            elif answer.kind == "E":
                self._error(answer)
                return self._fail()

    def _close(self, message):
        message.text = chr(self.data[message.start + 5])
        name, = strings(self.data, message.start + 6, 1)
        if self._touched is None and message.text == "S" and name in self._statements:
            self._touched, self._closing = normalise(self._statements[name]), True
        self._one(message)

    def _sync(self, message):
        self._skipping = False
        answer = self._next_answer()
        if answer is not None and answer.kind == "E":       # cannot commit
            self._error(answer)
            answer = self._next_answer()
        if answer is not None:
            self._ready(answer)

    def _function(self, message):
        self._implicit = self._status == "I"
        while True:
            answer = self._next_answer()
            if answer is None or answer.kind == "Z":
                return answer and self._ready(answer)

    def _one(self, message, text=None):
        """The single message that answers this one; None after an error."""
        answer = self._next_answer()
        if answer is not None and answer.kind == "E":
            self._error(answer)
            self._fail(text)
            return None
        return answer

    def _fail(self, text=None):
        """What has failed is what the request ends with."""
        self._skipping = True
        if text:
            self._touch(normalise(text), True)

    def _error(self, answer):
        fields = dict((f[:1], f[1:].decode("utf-8", "replace")) for f in self._body(answer).split(b"\0") if f)
        self.errors.append(f"{fields.get(b'C', '')} {fields.get(b'M', '')}")

    def _touch(self, text, executed=False):
        """The request has to do with a statement; executing one counts for more than preparing."""
        if text == "?":
            return
        if executed or not self._executed:
            self._touched, self._executed, self._closing = text, executed, False
            self._prepared = set() if executed else self._prepared | {text}

    def _copy_in(self):
        """The client's part of COPY FROM STDIN; whether it came to its end."""
        position = self._position
        first = True
        self._asked = self.requested[self._read - 1].kind
        (self._copied or self.requested[self._read - 1]).answer += "".join(self._kinds)
        self._kinds = []
        while self._read < len(self.requested):
            following = self.requested[self._read]
            if following.kind in "SH" and first:
                following.dropped = True
                following.before = following.answered = position
            elif following.kind in "dcf":
                following.dropped = True
                following.before = following.answered = position
                self._copied = following
                if first:
                    waited = self.arrival(following.start + 1) > self.departure(position)
                    self._note_copy_turn(following, waited)
                first = False
            elif self.spoken[self._said:] and self.spoken[self._said].kind == "E":
                break               # the server gave up in the middle
            self._read += 1
            if following.kind in "cf":
                break
        return True

    def _note_copy_turn(self, message, waited):
        fresh, self._fresh = self._fresh, False
        self._note_wait(message, waited)
        self._fresh = fresh

    def _complete(self, text, rows, answer, message=None):
        """A statement has come to its end."""
        tag = self._body(answer).rstrip(b"\0").decode() if answer.kind == "C" else ""
        words = tag.split()
        if words and words[-1].isdigit():
            rows = max(rows, int(words[-1]))
        elif words:
            rows = 0                # SHOW and the like return rows that nobody counts
        exact, text = text, normalise(text)
        if OPTIMIZABLE.match(text):
            exact = text
        block = self._status in "TE" and not self._implicit
        command = words[0] if words else ""
        begins = command in ("BEGIN", "START")
        execution = Execution(text, exact, rows, block, self._turns)
        self._events.append(execution)
        self.executions.append(execution)
        self._touch(text, True)
        if begins and not block:
            self._status, self._implicit = "T", False
        elif command in ("COMMIT", "ROLLBACK") and block and not re.match(
                r"(?i)rollback\s+(work\s+|transaction\s+)?to\b", text):
            self.transactions += 1
            self._status = "I"
            # more may follow in the same message
            self._implicit = False
            self._events.append(None)

    def _ready(self, answer):
        status = chr(self.answers[answer.start + 5])
        if status == "I":
            block = self._status in "TE"
            if self._implicit or block:
                self.transactions += 1
            self._implicit = False
            self._portals.clear()
            if block:
                self._events.append(None)
        elif self._implicit:
            self._implicit = False
        self._status = status
        self._fresh, self._flushed = True, False

    # -- sums -----------------------------------------------------------------------------

    @property
    def turns(self):
        return sum(m.turn for m in self.requested)

    @property
    def server_waits(self):
        return sum(m.waited for m in self.requested) + self.unclear

    @property
    def wall(self):
        return self.final_wait.read - self.begin

    @property
    def sent_again(self):
        """Packets that the server sent more than once."""
        return len(self.server.from_server.retransmissions)

    # -- as a text ------------------------------------------------------------------------

    def lines(self):
        """The messages, one line per turn, equal ones together."""
        groups = [([], [])]
        for message in self.requested:
            if message.turn or message.kind == "X":
                groups.append(([], []))
            groups[-1][0].append(self._shown(message))
            groups[-1][1].append(message.answer)
        lines = [f"> {compress(sent)}   < {compress(list(''.join(answers)))}" for sent, answers in groups if sent]
        result = []
        for count, block in repetitions(lines):
            result.append(f"{count:4} x {block[0]}")
            result += [f"     + {line}" for line in block[1:]]
        return result

    @staticmethod
    def _shown(message):
        text = normalise(message.text) if message.kind in "QP" else message.text
        text = text if len(text) <= 40 else text[:37] + "..."
        return f"{message.kind}({text})" if text else message.kind


def repetitions(items, longest=12):
    """The items as (count, block): what follows itself is written once."""
    i = 0
    while i < len(items):
        best = (1, 1)
        for length in range(1, longest + 1):
            count = 1
            while items[i + count * length:i + (count + 1) * length] == items[i:i + length]:
                count += 1
            if count > 1 and count * length > best[0] * best[1]:
                best = (length, count)
        length, count = best
        yield count, items[i:i + length]
        i += length * count


def compress(words):
    """Words with repetitions written once."""
    result = []
    for count, block in repetitions(words):
        phrase = " ".join(block)
        result.append(phrase if count == 1 else f"{phrase}*{count}" if len(block) == 1 else f"[{phrase}]*{count}")
    return " ".join(result)


def outer(stream):
    """The stream that passed by the path, encrypted or not."""
    return getattr(stream, "outer", stream)


def by_user(server_connections, client_connections, calls=None, keys=None):
    """The conversations of a capture, by role; connections that never became a session are left out.

    "keys" are those of encrypted connections (see tls.py), of which one that cannot be read is an error.
    """
    result = collections.defaultdict(list)
    for port, connection in server_connections.items():
        if not connection.from_client.ends or port not in client_connections:
            continue
        client = client_connections[port]
        if tls.is_encrypted(connection):
            connection, client = tls.decrypted(connection, client, keys or {})
        try:
            conversation = Conversation(connection, client, calls)
        except ValueError:
            continue
        result[conversation.user].append(conversation)
    return result
