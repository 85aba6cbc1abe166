"""Packet captures as byte streams with times.

Reads pcap files and puts the TCP payload of each connection together.  A
Stream tells for every byte when it was there:

- on the sender's side, when it was sent for the first time;
- on the receiver's side, when it and everything before it had arrived, which
  is when the application could read it.

Retransmissions, segments out of order, and captures that start in the middle
of a connection are handled.  Times are integers, nanoseconds since the epoch.
"""

import bisect
import collections
import struct

Packet = collections.namedtuple(
    "Packet", "time source source_port target target_port seq ack flags window options payload length")

FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10

# pcap link types -> length of the header in front of the IP header
LINK_HEADERS = {101: 0, 12: 0, 228: 0, 1: 14, 113: 16, 276: 20}

# The kernel hands over as much at once, and may wait until the window has room for it.
LARGEST_BURST = 65536

NANOSECOND_MAGIC, MICROSECOND_MAGIC = 0xA1B23C4D, 0xA1B2C3D4


def read_packets(path):
    """Yield the TCP/IPv4 packets of a pcap file."""
    with open(path, "rb") as file:
        header = file.read(24)
        if len(header) < 24:
            return
        for order in "<>":
            magic = struct.unpack(order + "I", header[:4])[0]
            if magic in (NANOSECOND_MAGIC, MICROSECOND_MAGIC):
                break
        else:
            raise ValueError(f"{path}: not a pcap file")
        factor = 1 if magic == NANOSECOND_MAGIC else 1000
        skip = LINK_HEADERS[struct.unpack(order + "I", header[20:24])[0] & 0xFFFF]
        record = struct.Struct(order + "IIII")
        while True:
            header = file.read(16)
            if len(header) < 16:
                return
            seconds, fraction, captured, _ = record.unpack(header)
            data = file.read(captured)
            packet = decode(seconds * 10**9 + fraction * factor, data[skip:])
            if packet:
                yield packet


def decode(time, data):
    """An IPv4 packet with TCP inside, or None."""
    if len(data) < 40 or data[0] >> 4 != 4 or data[9] != 6:
        return None
    ip_length = (data[0] & 0x0F) * 4
    total = struct.unpack_from("!H", data, 2)[0] or len(data)
    source_port, target_port, seq, ack, offset, flags, window = struct.unpack_from(
        "!HHIIBBH", data, ip_length)
    start = ip_length + (offset >> 4) * 4
    # A capture may cut the payload off; its true length is in the IP header.
    return Packet(time, data[12:16], source_port, data[16:20], target_port, seq, ack, flags, window,
                  data[ip_length + 20:start], data[start:total], total - start)


def window_scale(options):
    """The shift count announced in a SYN's options (0 if none)."""
    i = 0
    while i < len(options):
        kind = options[i]
        if kind == 0:
            break
        if kind == 1:
            i += 1
            continue
        if i + 1 >= len(options) or options[i + 1] < 2:
            break
        if kind == 3:
            return options[i + 2]
        i += options[i + 1]
    return 0


class Stream:
    """The bytes of one direction, as one side of the path sees them."""

    def __init__(self, keep_data=True):
        self.base = None            # sequence number of byte 0
        self.data = bytearray() if keep_data else None
        self.ends = []              # after which byte ...
        self.times = []             # ... at which moment
        self.end = 0
        self.waiting = {}           # segments beyond a gap: offset -> (time, length, payload)
        self.retransmissions = []   # moments

    def offset(self, seq):
        """Sequence number -> position, for positions within 2 GB of the end."""
        distance = (seq - self.base - self.end) & 0xFFFFFFFF
        if distance >= 1 << 31:
            distance -= 1 << 32
        return self.end + distance

    def add(self, seq, payload, length, time):
        if self.base is None:
            self.base = seq
        offset = self.offset(seq)
        if offset > self.end:
            self.waiting.setdefault(offset, (time, length, payload))
            return
        self._append(offset, payload, length, time)
        while self.waiting:
            first = min(self.waiting)
            if first > self.end:
                break
            later, length, payload = self.waiting.pop(first)
            self._append(first, payload, length, max(time, later), fresh=True)

    def _append(self, offset, payload, length, time, fresh=False):
        old = self.end - offset
        if old > 0 and not fresh:
            self.retransmissions.append(time)
        if old >= length:
            return
        if self.data is not None:
            self.data += payload[old:] if len(payload) == length else bytes(length - old)
        self.end = offset + length
        self.ends.append(self.end)
        self.times.append(max(time, self.times[-1]) if self.times else time)

    def time_of(self, end):
        """When the bytes before this position were all there, or None if they never were."""
        i = bisect.bisect_left(self.ends, end)
        return self.times[i] if i < len(self.ends) else None

    def last_before(self, time):
        """The moment of the last payload before a moment, or None."""
        i = bisect.bisect_left(self.times, time)
        return self.times[i - 1] if i else None


class Connection:
    """One TCP connection as one side of the path sees it."""

    def __init__(self, keep_data):
        self.from_client = Stream(keep_data)
        self.from_server = Stream(keep_data)
        self.whole = False              # the capture contains the SYN
        self.packets = 0
        self.first = self.last = None
        self.handshake_rtt = None
        self.client_fin = None          # when the client's end of the connection came by
        # Moments at which the client's window closed or opened for the server's data, and at which it
        # became too narrow for what the kernel would like to send at once, or wide enough.
        self.window_changes = []
        self.narrow_changes = []
        self._acknowledged = []         # (up to which byte of the server's, when)
        self._scale = None
        self._edge = None
        self._syn_ack = None
        self._segment = 0

    def follow_window(self, packet, sent_by_server):
        """Note when the client's receive window leaves no room for another full segment."""
        stream = self.from_server
        if packet.flags & SYN:
            if not sent_by_server:
                self._scale = window_scale(packet.options)
            return
        if sent_by_server:
            self._segment = max(self._segment, packet.length)
        elif packet.flags & ACK and stream.base is not None:
            acknowledged = stream.offset(packet.ack)
            self._edge = acknowledged + (packet.window << (self._scale or 0))
            if not self._acknowledged or acknowledged > self._acknowledged[-1][0]:
                self._acknowledged.append((acknowledged, packet.time))
        if self._scale is None or self._edge is None:
            return
        room = self._edge - stream.end
        for changes, needed in ((self.window_changes, self._segment), (self.narrow_changes, LARGEST_BURST)):
            if (room < needed) != bool(changes and changes[-1][1]):
                changes.append((packet.time, room < needed))

    def acknowledged(self, end):
        """When the server's bytes before a position were all acknowledged, or None."""
        i = bisect.bisect_left(self._acknowledged, (end,))
        return self._acknowledged[i][1] if i < len(self._acknowledged) else None

    def window_closed(self, since, until):
        """For how long the client's window was closed in an interval."""
        return sum(end - start for start, end in intervals(self.window_changes, since, until))


def intervals(changes, since, until):
    """From [(moment, whether it is so from then on), ...]: when it was so in an interval, [(since, until), ...]."""
    result, began = [], None
    for moment, is_so in [*changes, (until, False)]:
        if is_so and began is None:
            began = moment
        elif not is_so and began is not None:
            if max(began, since) < min(moment, until):
                result.append((max(began, since), min(moment, until)))
            began = None
    return result


def read_connections(path, server_port, keep_data=True, like=None):
    """The connections to a port, by the client's port.

    "like" are the same connections as seen elsewhere: their numbering of bytes
    is taken over, so that positions mean the same on both sides.
    """
    connections = {}
    for packet in read_packets(path):
        if packet.target_port == server_port:
            port, from_client = packet.source_port, True
        elif packet.source_port == server_port:
            port, from_client = packet.target_port, False
        else:
            continue
        connection = connections.get(port)
        if connection is None:
            connection = connections[port] = Connection(keep_data)
            connection.first = packet.time
            if like and port in like:
                connection.from_client.base = like[port].from_client.base
                connection.from_server.base = like[port].from_server.base
        connection.packets += 1
        connection.last = packet.time
        stream = connection.from_client if from_client else connection.from_server
        if packet.flags & SYN:
            stream.base = (packet.seq + 1) & 0xFFFFFFFF
            connection.whole = True
            if not from_client:
                connection._syn_ack = packet.time
        elif stream.base is None:
            stream.base = packet.seq
        if from_client and not packet.flags & SYN and connection._syn_ack:
            if connection.handshake_rtt is None:
                connection.handshake_rtt = packet.time - connection._syn_ack
        if from_client and packet.flags & FIN and connection.client_fin is None:
            connection.client_fin = packet.time
        if packet.length:
            stream.add(packet.seq, packet.payload, packet.length, packet.time)
        connection.follow_window(packet, not from_client)
    return connections
