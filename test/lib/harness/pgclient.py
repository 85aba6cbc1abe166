"""A client of PostgreSQL's protocol that sends exactly what it is told.

Drivers decide by themselves when to send, read and wait.  This client sends one
buffer per send() and reads when asked to, so that a scenario's think times,
pipelines and slow readers are known.  Only "trust" authentication.
"""

import select
import socket
import ssl
import struct
import time

TLS_REQUEST = 80877103
PROTOCOL_3_0 = 196608

# How many seconds a client waits for a message.
PATIENCE = 60

# Beyond what the system allows; for root.
SO_RCVBUFFORCE = 33


class ServerError(Exception):
    """An ErrorResponse; the text is the server's message."""


# -- messages ----------------------------------------------------------------------

def message(kind, payload=b""):
    return kind + struct.pack("!I", len(payload) + 4) + payload


def query(sql):
    return message(b"Q", sql.encode() + b"\0")


def parse(sql, name=""):
    return message(b"P", name.encode() + b"\0" + sql.encode() + b"\0" + b"\0\0")


def bind(name="", parameters=()):
    body = b"\0" + name.encode() + b"\0" + b"\0\0" + struct.pack("!H", len(parameters))
    for value in parameters:
        encoded = str(value).encode()
        body += struct.pack("!I", len(encoded)) + encoded
    return message(b"B", body + b"\0\0")


def describe_portal():
    return message(b"D", b"P\0")


def describe_statement(name=""):
    return message(b"D", b"S" + name.encode() + b"\0")


def execute(limit=0):
    """Execute the unnamed portal for at most this many rows (0: all)."""
    return message(b"E", b"\0" + struct.pack("!I", limit))


def sync():
    return message(b"S")


def flush():
    return message(b"H")


def extended(sql):
    """One statement as drivers send it: Parse, Bind, Describe, Execute, Sync."""
    return parse(sql) + bind() + describe_portal() + execute() + sync()


def prepared(name, *parameters):
    return bind(name, parameters) + execute() + sync()


def copy_data(data):
    return message(b"d", data)


def copy_done():
    return message(b"c")


# -- waiting -----------------------------------------------------------------------

def think(seconds):
    """Do nothing for a time.  The last stretch is polled, as timers wake up late."""
    end = time.monotonic() + seconds
    if seconds > 0.002:
        time.sleep(seconds - 0.001)
    while time.monotonic() < end:
        pass


# -- the connection ----------------------------------------------------------------

def connect(target, receive_buffer=None, **parameters):
    """A client that is connected to (address, port), or to a socket's path."""
    sock = socket.socket(socket.AF_INET if isinstance(target, tuple) else socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if isinstance(target, tuple):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if receive_buffer:
            sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, receive_buffer)
        # A server that hangs must not hang the tests.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", PATIENCE, 0))
        sock.connect(target)
        return Client(sock, **parameters)
    except BaseException:
        sock.close()
        raise


class Client:
    def __init__(self, sock, user, database, tls=False, **parameters):
        self.sock = sock
        self.buffer = bytearray()
        self.pid = None
        self.transaction_status = None
        if tls:
            self._start_tls()
        startup = {"user": user, "database": database, **parameters}
        body = b"".join(f"{name}\0{value}\0".encode() for name, value in startup.items()) + b"\0"
        self.send(struct.pack("!II", len(body) + 8, PROTOCOL_3_0) + body)
        self.until_ready()

    def _start_tls(self):
        self.sock.sendall(struct.pack("!II", 8, TLS_REQUEST))
        if self.sock.recv(1) != b"S":
            raise ServerError("the server refuses TLS")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        self.sock = context.wrap_socket(self.sock)

    @property
    def port(self):
        """The client's TCP port, by which captures name the connection."""
        return self.sock.getsockname()[1]

    def close(self):
        try:
            self.sock.sendall(message(b"X"))
        except OSError:
            pass
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.close()

    def send(self, data):
        self.sock.sendall(data)

    def receive(self):
        """The next message: (kind, payload)."""
        while True:
            if len(self.buffer) >= 5:
                length = struct.unpack_from("!I", self.buffer, 1)[0]
                if len(self.buffer) > length:
                    kind = bytes(self.buffer[:1])
                    payload = bytes(self.buffer[5:length + 1])
                    del self.buffer[:length + 1]
                    return kind, payload
            self._read()

    def _read(self):
        try:
            data = self.sock.recv(262144)
        except BlockingIOError:
            # A late message must not be taken for the answer to the next request.
            self.sock.close()
            raise ServerError(f"no answer within {PATIENCE} s") from None
        if not data:
            raise ServerError("the server closed the connection")
        self.buffer += data

    def until(self, *kinds):
        """Read up to a message of one of these kinds; the rows seen, as text."""
        rows, error = [], None
        while True:
            kind, payload = self.receive()
            if kind == b"D":
                rows.append(self._row(payload))
            elif kind == b"E":
                fields = dict((f[:1], f[1:].decode()) for f in payload.split(b"\0") if f)
                error = ServerError(fields.get(b"M", "error"))
                if self.pid is None:
                    raise error
            elif kind == b"K":
                self.pid = struct.unpack_from("!I", payload)[0]
            elif kind == b"T":
                self.columns = self._column_names(payload)
            if kind == b"Z":
                self.transaction_status = payload.decode()
            if kind in kinds:
                if error:
                    raise error
                return rows

    def until_ready(self, count=1):
        rows = []
        for _ in range(count):
            rows = self.until(b"Z")
        return rows

    @staticmethod
    def _row(payload):
        values, offset = [], 2
        for _ in range(struct.unpack_from("!H", payload)[0]):
            length = struct.unpack_from("!i", payload, offset)[0]
            offset += 4
            if length < 0:
                values.append(None)
            else:
                values.append(payload[offset:offset + length].decode())
                offset += length
        return values

    @staticmethod
    def _column_names(payload):
        names, offset = [], 2
        for _ in range(struct.unpack_from("!H", payload)[0]):
            end = payload.index(b"\0", offset)
            names.append(payload[offset:end].decode())
            offset = end + 19
        return names

    def query(self, sql):
        self.send(query(sql))
        return self.until_ready()

    def dictionaries(self, sql):
        rows = self.query(sql)
        return [dict(zip(self.columns, row)) for row in rows]

    def discard_until_ready(self, rate=None, block=65536):
        """Read a response without keeping it, at most "rate" bytes per second; the number of bytes.

        The end is recognised by the bytes of ReadyForQuery outside a transaction,
        with nothing behind them.
        """
        total, tail, start = 0, b"", time.monotonic()
        while not tail.endswith(b"Z\0\0\0\5I"):
            if rate:
                delay = start + total / rate - time.monotonic()
                if delay > 0:
                    time.sleep(delay)
            data = self.sock.recv(block)
            if not data:
                raise ServerError("the server closed the connection")
            total += len(data)
            tail = (tail + data)[-6:]
            if tail.endswith(b"Z\0\0\0\5I") and select.select([self.sock], [], [], 0)[0]:
                tail = b""
        return total
