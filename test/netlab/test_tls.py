"""Unit tests of tls.py on connections between two ends in this process.

    python3 -m unittest test_tls
"""

import os
import pathlib
import ssl
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "lib"))

import capture
import tls
import truth

REQUEST = struct.pack("!II", 8, truth.TLS_REQUEST)
MS = 1_000_000


class Talk:
    """A real TLS connection, whose bytes are written down with invented times: a millisecond for each flight."""

    def __init__(self, directory, direct=False, **options):
        self.now = 0
        self.server, self.client = capture.Connection(True), capture.Connection(False)
        for connection in (self.server, self.client):
            connection.from_client.base = connection.from_server.base = 0
        if not direct:
            self._pass(True, REQUEST)
            self._pass(False, b"S")
        server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server_context.load_cert_chain(os.path.join(directory, "crt"), os.path.join(directory, "key"))
        client_context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        client_context.check_hostname, client_context.verify_mode = False, ssl.CERT_NONE
        client_context.maximum_version = options.get("version", ssl.TLSVersion.TLSv1_3)
        if "curve" in options:
            server_context.set_ecdh_curve(options["curve"])
        client_context.keylog_filename = os.path.join(directory, "keys")
        # by whether it is the client's
        self.ins, self.outs = ({True: ssl.MemoryBIO(), False: ssl.MemoryBIO()} for _ in range(2))
        self.ends = {True: client_context.wrap_bio(self.ins[True], self.outs[True]),
                     False: server_context.wrap_bio(self.ins[False], self.outs[False], server_side=True)}
        self._shake_hands()

    def _pass(self, from_client, data):
        """Bytes leave at one side, and are at the other half a millisecond later."""
        self.now += MS
        for connection, is_sender in ((self.client, from_client), (self.server, not from_client)):
            stream = connection.from_client if from_client else connection.from_server
            stream.add(stream.end, data, len(data), self.now + (0 if is_sender else MS // 2))

    def _flush(self, from_client):
        """What one end has written is on its way."""
        data = self.outs[from_client].read()
        if data:
            self._pass(from_client, data)
            self.ins[not from_client].write(data)

    def _shake_hands(self):
        done = {True: False, False: False}
        while not all(done.values()):
            for side, end in self.ends.items():
                try:
                    end.do_handshake()
                    done[side] = True
                except ssl.SSLWantReadError:
                    pass
                self._flush(side)

    def say(self, from_client, data):
        self.ends[from_client].write(data)
        self._flush(from_client)
        result = b""
        while len(result) < len(data):
            try:
                result += self.ends[not from_client].read(1 << 20)
            except ssl.SSLWantReadError:
                break
        assert result == data
        return self


class Decrypted(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        subprocess.run(["openssl", "req", "-x509", "-nodes", "-days", "2", "-subj", "/CN=test", "-newkey", "ec",
                        "-pkeyopt", "ec_paramgen_curve:P-256", "-keyout", "key", "-out", "crt"],
                       cwd=self.directory, check=True, capture_output=True)

    def keys(self):
        return tls.read_keys(os.path.join(self.directory, "keys"))

    def check(self, talk, said, answered, prefix=REQUEST, granted=b"S"):
        server, client = tls.decrypted(talk.server, talk.client, self.keys())
        for side in (server, client):
            self.assertEqual(bytes(side.from_client.data), prefix + said)
            self.assertEqual(bytes(side.from_server.data), granted + answered)
        return server, client

    def test_content_and_times(self):
        talk = Talk(self.directory)
        self.assertTrue(tls.is_encrypted(talk.server))
        began = talk.now
        talk.say(True, b"one").say(False, b"answer").say(True, b"two")
        server, client = self.check(talk, b"onetwo", b"answer")
        for end, flight in ((9, 1), (11, 1), (12, 3), (14, 3)):
            self.assertEqual(client.from_client.time_of(end), began + flight * MS)
            self.assertEqual(server.from_client.time_of(end), began + flight * MS + MS // 2)
        self.assertEqual(server.from_server.time_of(7), began + 2 * MS)
        self.assertIsNone(server.from_client.time_of(15))
        self.assertEqual(server.from_client.time_of(8), MS + MS // 2)

    def test_large_content_takes_several_records(self):
        talk = Talk(self.directory)
        block = os.urandom(100_000)
        talk.say(False, block).say(True, block[:50_000])
        server, _ = self.check(talk, block[:50_000], block)
        self.assertGreater(len(server.from_server.outer_ends), 6)

    def test_direct(self):
        talk = Talk(self.directory, direct=True).say(True, b"one").say(False, b"answer")
        self.assertTrue(tls.is_encrypted(talk.server))
        self.check(talk, b"one", b"answer", b"", b"")

    def test_handshake_that_begins_again(self):
        talk = Talk(self.directory, curve="secp521r1").say(True, b"one").say(False, b"answer")
        self.check(talk, b"one", b"answer")

    def test_older_versions_and_other_keys(self):
        old = Talk(self.directory, version=ssl.TLSVersion.TLSv1_2).say(True, b"one")
        new = Talk(self.directory).say(True, b"one")
        with self.assertRaises(tls.Unreadable):
            tls.decrypted(old.server, old.client, self.keys())
        with self.assertRaises(tls.Unreadable):
            tls.decrypted(new.server, new.client, {})
        wrong = {name: {label: bytes(len(secret)) for label, secret in secrets.items()}
                 for name, secrets in self.keys().items()}
        with self.assertRaises(tls.Unreadable):
            tls.decrypted(new.server, new.client, wrong)

    def test_no_encryption(self):
        talk = Talk(self.directory)
        plain = capture.Connection(True)
        plain.from_client.add(0, REQUEST, len(REQUEST), MS)
        plain.from_server.add(0, b"N", 1, MS)
        self.assertFalse(tls.is_encrypted(plain))
        self.assertTrue(tls.is_encrypted(talk.server))


if __name__ == "__main__":
    unittest.main()
