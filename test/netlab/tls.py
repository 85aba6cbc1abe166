"""What is inside of TLS 1.3, with the keys that the server has written down (keylog.c).

    keys = read_keys(file)
    server, client = decrypted(server, client, keys)

From the same connection as both sides of the path have seen it, the same with streams
of what PostgreSQL and its client have said, beginning with the request for encryption
if there is one.  A byte is there when the whole record that it belongs to is: nobody
can read a part of one.

The records, their keys and what they are made of: RFC 8446.  The arithmetic is
done by libcrypto, which checks that nothing has been changed, so what comes out
is what was sent, or an error.
"""

import bisect
import copy
import ctypes
import ctypes.util
import hashlib
import hmac
import struct

import truth

ALERT, HANDSHAKE, APPLICATION_DATA = 21, 22, 23
CLIENT_HELLO, SERVER_HELLO = 1, 2
HEADER, TAG, NONCE = 5, 16, 12

SUITES = {0x1301: (b"aes-128-gcm", hashlib.sha256, 16),
          0x1302: (b"aes-256-gcm", hashlib.sha384, 32),
          0x1303: (b"ChaCha20-Poly1305", hashlib.sha256, 32)}

SET_TAG = 0x11              # EVP_CTRL_AEAD_SET_TAG


class Unreadable(ValueError):
    """This is not TLS 1.3, or the keys are not known."""


def read_keys(path):
    """The secrets of connections, by the client's random and what they are for."""
    keys = {}
    try:
        with open(path, encoding="ascii") as file:
            for line in file:
                if line.startswith("#"):
                    continue
                label, client_random, secret = line.split()
                keys.setdefault(bytes.fromhex(client_random), {})[label] = bytes.fromhex(secret)
    except FileNotFoundError:
        pass                        # nobody has asked for encryption
    return keys


# -- libcrypto ---------------------------------------------------------------------------

def _library():
    crypto = ctypes.CDLL(ctypes.util.find_library("crypto"))
    for name in ("EVP_CIPHER_CTX_new", "EVP_get_cipherbyname"):
        getattr(crypto, name).restype = ctypes.c_void_p
    return crypto


class Cipher:
    """Decrypts the records of one direction that were encrypted under one secret."""

    crypto = None

    def __init__(self, suite, secret):
        if Cipher.crypto is None:
            Cipher.crypto = _library()
        name, self.digest, key_length = SUITES[suite]
        self.cipher = ctypes.c_void_p(self.crypto.EVP_get_cipherbyname(name))
        self.key = self._expand(secret, b"key", key_length)
        self.nonce = self._expand(secret, b"iv", NONCE)
        self.number = 0

    def _expand(self, secret, label, length):
        label = b"tls13 " + label
        info = struct.pack("!HB", length, len(label)) + label + b"\0"
        return hmac.new(secret, info + b"\1", self.digest).digest()[:length]

    def decrypt(self, header, body):
        """A record's content, or None if it is encrypted under something else."""
        size = ctypes.c_int()
        content = ctypes.create_string_buffer(len(body))
        nonce = (int.from_bytes(self.nonce, "big") ^ self.number).to_bytes(NONCE, "big")
        context = ctypes.c_void_p(self.crypto.EVP_CIPHER_CTX_new())
        try:
            right = (self.crypto.EVP_DecryptInit_ex(context, self.cipher, None, self.key, nonce) > 0
                     and self.crypto.EVP_DecryptUpdate(context, None, ctypes.byref(size), header, len(header)) > 0
                     and self.crypto.EVP_DecryptUpdate(context, content, ctypes.byref(size), body[:-TAG],
                                                       len(body) - TAG) > 0
                     and self.crypto.EVP_CIPHER_CTX_ctrl(context, SET_TAG, TAG, body[-TAG:]) > 0
                     and self.crypto.EVP_DecryptFinal_ex(context, ctypes.create_string_buffer(TAG),
                                                         ctypes.byref(size)) > 0)
        finally:
            self.crypto.EVP_CIPHER_CTX_free(context)
        if not right:
            return None
        self.number += 1
        return content.raw[:len(body) - TAG]


# -- records -----------------------------------------------------------------------------

def records(data, offset):
    """Of a stream: (type, header, body, position behind it) of each complete record."""
    while offset + HEADER <= len(data):
        kind, _, length = struct.unpack_from("!BHH", data, offset)
        end = offset + HEADER + length
        if end > len(data):
            return
        yield kind, bytes(data[offset:offset + HEADER]), bytes(data[offset + HEADER:end]), end
        offset = end


def hello(data, offset, kind):
    """The body of the first message, which must be this one."""
    for record, _, body, _ in records(data, offset):
        if record == HANDSHAKE and body[:1] == bytes([kind]):
            return body[4:]
        break
    raise Unreadable("no handshake")


def client_random(data, offset):
    return hello(data, offset, CLIENT_HELLO)[2:34]


def cipher_suite(data, offset):
    body = hello(data, offset, SERVER_HELLO)
    suite, = struct.unpack_from("!H", body, 35 + body[34])
    if suite not in SUITES:
        raise Unreadable(f"cipher suite {suite:#x}")
    return suite


class Plain:
    """A stream's content, and where in the encrypted stream it is."""

    def __init__(self, outer, prefix, ciphers):
        self.outer = outer
        self.data = bytearray(outer.data[:prefix])
        self.inner_ends, self.outer_ends = [prefix], [prefix]
        for kind, header, body, end in records(outer.data, prefix):
            if kind == APPLICATION_DATA:
                self._take(self._content(ciphers, header, body), end)

    @staticmethod
    def _content(ciphers, header, body):
        """Under the keys of the handshake, or from its end on under others."""
        while True:
            content = ciphers[0].decrypt(header, body)
            if content is not None:
                return content
            if len(ciphers) == 1:
                raise Unreadable("the keys are those of something else")
            del ciphers[0]

    def _take(self, content, end):
        content = content.rstrip(b"\0")         # padding
        if content[-1] == APPLICATION_DATA:
            self.data += content[:-1]
            self.inner_ends.append(len(self.data))
            self.outer_ends.append(end)

    def like(self, outer):
        """The same stream as the other side saw it."""
        other = copy.copy(self)
        other.outer = outer
        return other

    # -- as capture.Stream ---------------------------------------------------------------

    def time_of(self, end):
        i = bisect.bisect_left(self.inner_ends, end)
        return self.outer.time_of(self.outer_ends[i]) if i < len(self.inner_ends) else None

    @property
    def retransmissions(self):
        return self.outer.retransmissions


def is_encrypted(connection):
    """Whether the client has begun with TLS, or the server has granted it."""
    data = connection.from_client.data
    if data[:1] == bytes([HANDSHAKE]):
        return True
    return truth.startup_length(data)[1] and connection.from_server.data[:1] == b"S"


def decrypted(server, client, keys):
    """A connection as the server's and the client's side have seen it; numbers of the server's hold for both."""
    data, answers = server.from_client.data, server.from_server.data
    direct = data[:1] == bytes([HANDSHAKE])
    asked, granted = (0, 0) if direct else (truth.startup_length(data)[0], 1)
    secrets = keys.get(client_random(data, asked), {})
    suite = cipher_suite(answers, granted)

    def ciphers(side):
        try:
            return [Cipher(suite, secrets[f"{side}_{label}"]) for label in ("HANDSHAKE_TRAFFIC_SECRET", "TRAFFIC_SECRET_0")]
        except KeyError:
            raise Unreadable("the keys are not known") from None

    sides = copy.copy(server), copy.copy(client)
    said = Plain(server.from_client, asked, ciphers("CLIENT"))
    answered = Plain(server.from_server, granted, ciphers("SERVER"))
    for side, outer in zip(sides, (server, client)):
        side.from_client = said.like(outer.from_client)
        side.from_server = answered.like(outer.from_server)
    return sides
