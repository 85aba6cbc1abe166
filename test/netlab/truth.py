"""The truth about a connection, from packets alone.

Everything here comes from captures on the server's and on the client's side of
the path; nothing is asked of the server or of pgnetlat.

    exchange   from the arrival of the last byte of a request's first message at
               the server to the departure of the last byte of its response; a
               Flush behind a response, or what is left of a failed COPY, is not
               its first message, for nobody answers that
    wait       from there to the arrival of the next request's first message
    network    of a wait: the time that the response's last byte and the
               request's first message were on the path
    client     of a wait: from the arrival of the response's last byte at the
               client to the departure of the next request's first message

Messages are delimited by PostgreSQL's protocol.  What is under one Sync, or in
one simple Query, is one exchange; after a Flush, the client's pause is a wait.
Inside TLS, requests and responses are told apart by the payload's direction.

How these moments relate to pgnetlat's.  pgnetlat's wait begins when the kernel
has taken the last byte, which is a few microseconds after a packet that leaves
at once, and before the packet when the kernel has to hold it back (window,
slow line).  It ends when the backend has read the request, that is after the
packet's arrival by the time that the kernel needs to wake the backend up; see
syscalls.py.
"""

import bisect
import dataclasses
import struct

import capture as capture_module

TLS_REQUEST, GSS_REQUEST = 80877103, 80877104
TLS_APPLICATION_DATA = 0x17

# Flush, CopyDone and CopyFail are requests of nothing: what they are about has been asked for before.  As
# CopyData, which messages() leaves out, they may be what is left of a COPY that has failed.
UNANSWERED = "Hcf"


@dataclasses.dataclass
class Exchange:
    request: int                # arrival of the first message at the server
    response: int               # departure of the response's last byte from the server
    request_end: int            # arrival of the request's last byte at the server
    client_sent: int = None     # departure of the first message from the client
    client_received: int = None     # arrival of the response's last byte at the client
    kinds: str = ""             # the request's message types
    status: str = "I"           # transaction status after it
    copy_in: bool = False
    # filled in by Session
    start: int = None           # request, or the end of the exchange before if it came earlier
    pipelined: bool = False

    @property
    def time(self):
        return self.response - self.start


@dataclasses.dataclass
class Wait:
    start: int
    end: int
    network: int
    client: int
    in_transaction: bool

    @property
    def time(self):
        return self.end - self.start


@dataclasses.dataclass
class Summary:
    """Sums over an interval, in nanoseconds."""
    since: int = 0
    until: int = 0
    requests: int = 0
    pipelined: int = 0
    exchange: int = 0
    wait: int = 0
    network: int = 0
    client: int = 0
    idle: int = 0
    in_transaction: int = 0

    @property
    def round_trips(self):
        return self.requests - self.pipelined


@dataclasses.dataclass
class Message:
    kind: str
    start: int
    end: int
    payload: bytes = b""


# -- protocol ----------------------------------------------------------------------

def startup_length(data):
    """Length of the messages without a type at the client's start, and whether TLS follows."""
    offset = 0
    while len(data) >= offset + 8:
        length, code = struct.unpack_from("!II", data, offset)
        offset += length
        if code == TLS_REQUEST:
            return offset, True
        if code != GSS_REQUEST:
            return offset, False
    return offset, False


def messages(data, offset, bulk=b"", make=Message):
    """Messages with a type byte; those of the "bulk" kinds are left out."""
    result = []
    unpack = struct.Struct("!I").unpack_from
    while offset + 5 <= len(data):
        kind = data[offset]
        end = offset + 1 + unpack(data, offset + 1)[0]
        if end > len(data):
            break
        if kind not in bulk:
            result.append(make(chr(kind), offset, end, bytes(data[offset + 5:min(end, offset + 69)])))
        offset = end
    return result


def split_exchanges(client_messages, server_messages, from_client, from_server):
    """Assign the client's messages to the responses: one Exchange per ReadyForQuery or Flush."""
    exchanges = []
    i = 0
    copies = 0
    for message in server_messages:
        if message.kind == "G":
            copies += 1
        if message.kind != "Z":
            continue
        first = i
        terminator = None
        while i < len(client_messages) and terminator is None:
            kind = client_messages[i].kind
            if kind in "QFS":
                terminator = kind
            i += 1
        if copies:
            i = end_of_copy(client_messages, i, copies, terminator == "S", from_client,
                            from_server.time_of(message.end))
        if terminator is None:
            break
        request = without_remains(client_messages[first:i])
        exchanges += split_at_flush(request, message, from_client, from_server)
        exchanges[-1].copy_in = copies > 0
        copies = 0
    return exchanges


def end_of_copy(client_messages, i, copies, in_extended, from_client, ready):
    """Where the messages of a request end that takes COPY data, from the one behind its first Sync or Query.

    While the server takes data it ignores Sync: the real end comes later.  Nothing belongs to it that came
    when the server was "ready", nor behind the next request: then the copy has failed, and what the client
    still sends of it nobody answers.
    """
    synced = not in_extended
    while i < len(client_messages) and (copies or not synced):
        kind = client_messages[i].kind
        if kind not in UNANSWERED + "S" or from_client.time_of(client_messages[i].end) > ready:
            break
        if kind == "S":
            synced = synced or not copies
        elif kind != "H":
            copies = max(copies - 1, 0)
        i += 1
    return i


def split_at_flush(request, ready, from_client, from_server):
    """A request's messages as exchanges: more than one if the client paused after a Flush."""
    result = []
    first = 0
    for i, message in enumerate(request[:-1]):
        if message.kind != "H":
            continue
        resumed = from_client.time_of(request[i + 1].end)
        answered = from_server.last_before(resumed)
        if answered is None or answered <= from_client.time_of(message.end):
            continue            # no pause: the next message was there before the answer
        end = from_server.ends[bisect.bisect_left(from_server.times, resumed) - 1]
        result.append(make_exchange(request[first:i + 1], end, from_client, from_server))
        result[-1].status = "T"         # no ReadyForQuery: the implicit transaction is open
        first = i + 1
    last = make_exchange(request[first:], ready.end, from_client, from_server)
    last.status = ready.payload[:1].decode() or "I"
    return result + [last]


def without_remains(request):
    """A request without the messages in front of it that nobody answers."""
    while len(request) > 1 and request[0].kind in UNANSWERED:
        request = request[1:]
    return request


def make_exchange(request, response_end, from_client, from_server):
    request = without_remains(request)
    exchange = Exchange(request=from_client.time_of(request[0].end),
                        response=from_server.time_of(response_end),
                        request_end=from_client.time_of(request[-1].end),
                        kinds="".join(m.kind for m in request))
    # positions, to look the same bytes up on the client's side
    exchange.positions = request[0].end, response_end
    return exchange


def split_by_direction(from_client, from_server):
    """Exchanges of an encrypted connection: runs of payload in one direction."""
    events = sorted([(t, 0, e) for t, e in zip(from_client.times, from_client.ends)]
                    + [(t, 1, e) for t, e in zip(from_server.times, from_server.ends)])
    exchanges = []
    previous = 1
    for time, from_server_side, end in events:
        if not from_server_side:
            if previous == 1:
                exchanges.append(Exchange(request=time, response=None, request_end=time))
                exchanges[-1].positions = end, None
            exchanges[-1].request_end = time
        elif exchanges:
            exchanges[-1].response = time
            exchanges[-1].positions = exchanges[-1].positions[0], end
        previous = from_server_side
    return [e for e in exchanges if e.response is not None]


def overlap(start, end, since, until):
    """How much of one interval lies in another."""
    return max(0, min(end, until) - max(start, since))


NEVER = 1 << 62


def shown_of_wait(start, end, since, until, idle_threshold=1_000_000_000):
    """How much of a wait outside a transaction pgnetlat books in an interval.

    When it ends, or when it has become idle, and then all that has passed of it.
    """
    def booked(now):
        if now >= end:
            return end - start
        return now - start if now - start > idle_threshold else 0
    return booked(until) - booked(since)


# -- a connection's account -----------------------------------------------------------

class Session:
    """The exchanges and waits of one connection."""

    def __init__(self, server, client=None):
        """From the connection as seen on the server's and on the client's side."""
        self.server = server
        self.client = client or server
        self.pid = None
        self.tls = False
        self.startup = None             # the exchange that ends with the first ReadyForQuery
        self.exchanges = self._exchanges()
        self._look_up_client_side()
        self._mark_pipelined()
        self.waits = self._waits()

    def _exchanges(self):
        from_client, from_server = self.server.from_client, self.server.from_server
        data, answer = from_client.data, from_server.data
        offset = server_offset = 0
        if self.server.whole:
            offset, self.tls = startup_length(data)
            if self.tls:
                self.tls = answer[:1] == b"S"
            server_offset = 1 if answer[:1] in (b"N",) else 0
        else:
            self.tls = bool(data) and data[0] == TLS_APPLICATION_DATA
        if self.tls:
            return split_by_direction(from_client, from_server)

        client_messages = messages(data, offset, bulk=b"d")
        server_messages = messages(answer, server_offset, bulk=b"Dd")
        for message in server_messages:
            if message.kind == "K" and self.pid is None:
                self.pid = struct.unpack_from("!I", message.payload)[0]
        if self.server.whole:
            for i, message in enumerate(server_messages):
                if message.kind == "Z":
                    self.startup = from_server.time_of(message.end)
                    server_messages = server_messages[i + 1:]
                    self._ready_end = message.end
                    break
        return split_exchanges(client_messages, server_messages, from_client, from_server)

    def _look_up_client_side(self):
        for exchange in self.exchanges:
            request, response = exchange.positions
            exchange.client_sent = self.client.from_client.time_of(request)
            exchange.client_received = self.client.from_server.time_of(response)

    def _mark_pipelined(self):
        previous = self.startup
        for exchange in self.exchanges:
            exchange.start = exchange.request
            if previous is not None and exchange.request <= previous:
                exchange.pipelined = True
                exchange.start = previous
            previous = exchange.response

    def _waits(self):
        """The wait before each exchange but the first; None for a pipelined one."""
        result = []
        for before, after in zip(self.exchanges, self.exchanges[1:]):
            if after.pipelined:
                result.append(None)
                continue
            whole = after.request - before.response
            client = 0
            if after.client_sent is not None and before.client_received is not None:
                # Negative if the client sent without having seen the response.
                client = min(max(0, after.client_sent - before.client_received), whole)
            result.append(Wait(before.response, after.request, whole - client, client,
                               before.status in "TE"))
        return result

    def _open_wait(self, round_trip):
        """The wait after the last exchange, in which the capture ends."""
        start = self.exchanges[-1].response if self.exchanges else self.startup
        if start is None:
            return None
        return Wait(start, NEVER, round_trip, NEVER - start - round_trip,
                    bool(self.exchanges) and self.exchanges[-1].status in "TE")

    def summary(self, since=None, until=None, idle_threshold=1_000_000_000):
        """Sums over the exchanges and waits of an interval.

        Exchanges count where they end.  Their time and that of waits in a
        transaction is cut at the interval's ends.  Other waits count when
        pgnetlat books them, see shown_of_wait().
        """
        since = self.exchanges[0].request if since is None and self.exchanges else since or 0
        until = self.exchanges[-1].response + 1 if until is None and self.exchanges else until or 0
        result = Summary(since=since, until=until)
        for exchange in self.exchanges:
            if since <= exchange.response < until:
                result.requests += 1
                result.pipelined += exchange.pipelined
            result.exchange += overlap(exchange.start, exchange.response, since, until)
        round_trip = min((wait.network for wait in self.waits if wait), default=0)
        for wait in [*self.waits, self._open_wait(round_trip)]:
            if wait is None:
                continue
            if wait.in_transaction:
                # Never idle, so that its parts are known while it lasts.
                border = wait.start + wait.network
                network = overlap(wait.start, border, since, until)
                client = overlap(border, wait.end, since, until)
                result.in_transaction += network + client
            elif wait.client + round_trip > idle_threshold:
                # The path's time beyond a round trip was the drain of the response.
                network, client = wait.network - round_trip, 0
                if not since <= wait.end < until:
                    network = 0
                idle = shown_of_wait(wait.start + wait.network - round_trip, wait.end, since, until,
                                     idle_threshold)
                result.idle += idle
                result.wait += idle
            elif not since <= wait.end < until:
                continue
            else:
                network, client = wait.network, wait.client
            result.wait += network + client
            result.network += network
            result.client += client
        return result


def read(capture, port):
    """The sessions of a capture, by the client's port."""
    server = capture_module.read_connections(capture.server, port)
    if capture.client == capture.server:
        client = server
    else:
        client = capture_module.read_connections(capture.client, port, keep_data=False, like=server)
    return {client_port: Session(connection, client.get(client_port))
            for client_port, connection in server.items() if connection.from_client.ends}
