"""Unit tests of truth.py and capture.py on captures made up here.

    python3 -m unittest test_truth
"""

import os
import pathlib
import struct
import sys
import tempfile
import types
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "lib"))

from harness import pgclient as pg

import capture
import syscalls
import truth

SERVER, CLIENT, PORT, CLIENT_PORT = bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2]), 5432, 40000
EPOCH = 1_700_000_000 * 10**9
READY, READY_IN_TRANSACTION = pg.message(b"Z", b"I"), pg.message(b"Z", b"T")
ROW = pg.message(b"D", b"\0\1\0\0\0\1" + b"1")
DONE = pg.message(b"C", b"SELECT 1\0")
ANSWER = ROW + DONE + READY
ERROR = pg.message(b"E", b"SERROR\0\0")
MS = 1_000_000


class Script:
    """Writes what two kernels would have captured, packet by packet; times in ms."""

    def __init__(self, client_isn=1000, server_isn=4294967000, one_way=5.0):
        # the server's numbers wrap around after 296 bytes, as they may
        self.sides = {"server": [], "client": []}
        self.seq = {True: client_isn, False: server_isn}
        self.one_way = one_way

    def packet(self, time, from_client, payload=b"", flags=capture.ACK, seq=None, sides=None,
               window=1000, options=b"", ack=None):
        """A packet sent at a time; it arrives one_way later, unless told otherwise."""
        if seq is None:
            seq = self.seq[from_client]
            self.seq[from_client] += len(payload) + (1 if flags & capture.SYN else 0)
        if ack is None:
            ack = self.seq[not from_client]
        options += b"\1" * (-len(options) % 4)
        source, target = (CLIENT_PORT, PORT) if from_client else (PORT, CLIENT_PORT)
        tcp = struct.pack("!HHIIBBHHH", source, target, seq & 0xFFFFFFFF, ack & 0xFFFFFFFF,
                          (20 + len(options)) // 4 << 4, flags, window, 0, 0) + options + payload
        addresses = CLIENT + SERVER if from_client else SERVER + CLIENT
        data = struct.pack("!BBHIBBH", 0x45, 0, 20 + len(tcp), 0, 64, 6, 0) + addresses + tcp
        sender, receiver = ("client", "server") if from_client else ("server", "client")
        sides = sides or (sender, receiver)
        if sender in sides:
            self.sides[sender].append((time, data))
        if receiver in sides:
            self.sides[receiver].append((time + self.one_way, data))

    def handshake(self, scale=b""):
        self.packet(-30, True, flags=capture.SYN, options=scale)
        self.packet(-25, False, flags=capture.SYN | capture.ACK)
        self.packet(-20, True)

    def client(self, time, payload, **kwargs):
        self.packet(time, True, payload, **kwargs)

    def server(self, time, payload, **kwargs):
        self.packet(time, False, payload, **kwargs)

    def connections(self):
        with tempfile.TemporaryDirectory() as directory:
            files = {}
            for side, packets in self.sides.items():
                files[side] = os.path.join(directory, side)
                with open(files[side], "wb") as file:
                    file.write(struct.pack("<IHHiIII", capture.NANOSECOND_MAGIC, 2, 4, 0, 0, 65535, 101))
                    for time, data in sorted(packets, key=lambda p: p[0]):
                        moment = EPOCH + int(time * MS)
                        file.write(struct.pack("<IIII", moment // 10**9, moment % 10**9,
                                               len(data), len(data)) + data)
            return truth.read(types.SimpleNamespace(**files), PORT)

    def session(self):
        return self.connections()[CLIENT_PORT]


def ms(nanoseconds):
    return round(nanoseconds / MS, 6)


def startup():
    body = b"user\0lab\0\0"
    return struct.pack("!II", len(body) + 8, pg.PROTOCOL_3_0) + body


class OrdinaryTraffic(unittest.TestCase):
    def test_wait_is_split_into_network_and_client(self):
        script = Script()
        script.client(0, pg.query("SELECT 1"))          # arrives at 5
        script.server(7, ANSWER)                        # arrives at 12
        script.client(32, pg.query("SELECT 2"))         # thought 20 ms, arrives at 37
        script.server(38, ANSWER)
        session = script.session()
        self.assertEqual([ms(e.time) for e in session.exchanges], [2, 1])
        wait, = session.waits
        self.assertEqual((ms(wait.time), ms(wait.network), ms(wait.client)), (30, 10, 20))
        self.assertFalse(wait.in_transaction)

    def test_startup_is_no_exchange_and_names_the_backend(self):
        script = Script()
        script.handshake()
        script.client(-19, startup())
        script.server(-10, pg.message(b"R", bytes(4)) + pg.message(b"K", struct.pack("!II", 4711, 1)) + READY)
        script.client(0, pg.query("SELECT 1"))
        script.server(7, ANSWER)
        session = script.session()
        self.assertEqual(session.pid, 4711)
        self.assertEqual(ms(session.startup - EPOCH), -10)
        self.assertEqual(len(session.exchanges), 1)

    def test_refused_gss_request_is_no_exchange(self):
        script = Script()
        script.handshake()
        script.client(-19, struct.pack("!II", 8, truth.GSS_REQUEST))
        script.server(-13, b"N")
        script.client(-7, startup())
        script.server(-1, READY)
        script.client(5, pg.query("SELECT 1"))
        script.server(11, ANSWER)
        self.assertEqual(len(script.session().exchanges), 1)

    def test_transaction_status(self):
        script = Script()
        script.client(0, pg.query("BEGIN"))
        script.server(6, pg.message(b"C", b"BEGIN\0") + READY_IN_TRANSACTION)
        script.client(20, pg.query("COMMIT"))
        script.server(26, pg.message(b"C", b"COMMIT\0") + READY)
        script.client(40, pg.query("SELECT 1"))
        script.server(46, ANSWER)
        session = script.session()
        self.assertEqual([w.in_transaction for w in session.waits], [True, False])
        self.assertEqual(ms(session.summary().in_transaction), 19)

    def test_request_in_two_halves_begins_when_its_first_message_is_complete(self):
        script = Script()
        whole = pg.query("SELECT 1")
        script.client(0, whole[:4])
        script.client(100, whole[4:])
        script.server(106, ANSWER)
        self.assertEqual(ms(script.session().exchanges[0].time), 1)

    def test_large_response_ends_with_its_last_byte(self):
        script = Script()
        script.client(0, pg.query("SELECT 1"))
        for i in range(50):
            script.server(6 + i, ROW * 100)
        script.server(56, DONE + READY)
        script.client(70, pg.query("SELECT 1"))
        script.server(76, ANSWER)
        session = script.session()
        self.assertEqual(ms(session.exchanges[0].time), 51)
        self.assertEqual(ms(session.waits[0].client), 9)

    def test_notification_during_a_wait_does_not_end_it(self):
        script = Script()
        script.client(0, pg.query("LISTEN a"))
        script.server(6, DONE + READY)
        script.server(50, pg.message(b"A", bytes(8)))
        script.client(100, pg.query("SELECT 1"))
        script.server(106, ANSWER)
        self.assertEqual(ms(script.session().waits[0].time), 99)


class ExtendedProtocol(unittest.TestCase):
    def test_many_statements_under_one_sync_are_one_exchange(self):
        script = Script()
        script.client(0, (pg.parse("SELECT 1") + pg.bind() + pg.execute()) * 10 + pg.sync())
        script.server(9, (ROW + DONE) * 10 + READY)
        exchange, = script.session().exchanges
        self.assertEqual(ms(exchange.time), 4)

    def test_pipelined_exchanges_have_no_wait(self):
        script = Script()
        script.client(0, pg.extended("SELECT 1"))       # 5
        script.client(1, pg.extended("SELECT 1"))       # 6, before the first response
        script.client(2, pg.extended("SELECT 1"))
        script.server(10, ANSWER)
        script.server(13, ANSWER)
        script.server(17, ANSWER)
        script.client(30, pg.extended("SELECT 1"))
        script.server(36, ANSWER)
        session = script.session()
        self.assertEqual([ms(e.time) for e in session.exchanges], [5, 3, 4, 1])
        self.assertEqual([e.pipelined for e in session.exchanges], [False, True, True, False])
        self.assertEqual([w and ms(w.time) for w in session.waits], [None, None, 18])
        self.assertEqual(session.summary().round_trips, 2)

    def test_pause_after_flush_is_a_wait(self):
        script = Script()
        script.client(0, pg.parse("SELECT 1", "s") + pg.describe_statement("s") + pg.flush())
        script.server(7, pg.message(b"1") + pg.message(b"n"))
        script.client(112, pg.bind("s") + pg.execute() + pg.sync())
        script.server(120, ANSWER)
        session = script.session()
        self.assertEqual([ms(e.time) for e in session.exchanges], [2, 3])
        self.assertEqual(ms(session.waits[0].client), 100)

    def test_flush_without_a_pause_is_no_wait(self):
        script = Script()
        script.client(0, pg.parse("SELECT 1", "s") + pg.flush())
        script.client(0.1, pg.bind("s") + pg.execute() + pg.sync())
        script.server(7, pg.message(b"1") + ANSWER)
        self.assertEqual(len(script.session().exchanges), 1)

    def test_flush_behind_a_response_is_no_request(self):
        script = Script()
        script.client(0, pg.query("SELECT 1"))
        script.server(6, ANSWER)
        script.client(20, pg.flush())                   # arrives in the wait
        script.client(50, pg.query("SELECT 1"))
        script.server(56, ANSWER)
        session = script.session()
        self.assertEqual([ms(e.time) for e in session.exchanges], [1, 1])
        self.assertEqual(ms(session.waits[0].time), 49)

    def test_flush_behind_sync_does_not_make_the_next_request_pipelined(self):
        script = Script()
        script.client(0, pg.extended("SELECT 1") + pg.flush())
        script.server(6, ANSWER)
        script.client(50, pg.query("SELECT 1"))
        script.server(56, ANSWER)
        self.assertEqual([e.pipelined for e in script.session().exchanges], [False, False])

    def test_two_flushes_and_a_pause_between_them(self):
        script = Script()
        script.client(0, pg.parse("SELECT 1", "s") + pg.flush())
        script.server(7, pg.message(b"1"))
        script.client(30, pg.flush())
        script.client(112, pg.bind("s") + pg.execute() + pg.sync())
        script.server(120, ANSWER)
        self.assertEqual([ms(e.time) for e in script.session().exchanges], [2, 3])

    def test_client_that_sends_before_it_has_the_response(self):
        script = Script()
        script.client(0, pg.query("SELECT 1"))
        script.server(6, ANSWER)                        # arrives at 11
        script.client(8, pg.query("SELECT 1"))          # arrives at 13
        script.server(14, ANSWER)
        wait, = script.session().waits
        self.assertEqual((ms(wait.time), ms(wait.client)), (7, 0))


class Copy(unittest.TestCase):
    def test_copy_in_with_the_simple_protocol(self):
        script = Script()
        script.client(0, pg.query("COPY t FROM STDIN"))
        script.server(6, pg.message(b"G", b"\0\0\0"))
        script.client(20, pg.copy_data(b"1\n") * 3)
        script.client(40, pg.copy_done())
        script.server(46, DONE + READY)
        script.client(60, pg.query("SELECT 1"))
        script.server(66, ANSWER)
        session = script.session()
        self.assertEqual([ms(e.time) for e in session.exchanges], [41, 1])
        self.assertTrue(session.exchanges[0].copy_in)

    def test_sync_while_the_server_takes_copy_data_is_ignored(self):
        script = Script()
        script.client(0, pg.extended("COPY t FROM STDIN"))
        script.server(6, pg.message(b"1") + pg.message(b"G", b"\0\0\0"))
        script.client(20, pg.copy_data(b"1\n"))
        script.client(40, pg.copy_done() + pg.sync())
        script.server(46, DONE + READY)
        script.client(60, pg.extended("SELECT 1"))
        script.server(66, ANSWER)
        self.assertEqual([ms(e.time) for e in script.session().exchanges], [41, 1])


    def test_what_is_left_of_a_failed_copy_is_no_request(self):
        script = Script()
        script.client(0, pg.query("COPY t FROM STDIN"))
        script.server(6, pg.message(b"G", b"\0\0\0"))
        script.client(20, pg.copy_data(b"bad\n"))
        script.server(26, ERROR + READY)
        script.client(30, pg.copy_data(b"1\n"))
        script.client(34, pg.copy_done())               # arrives in the wait
        script.client(60, pg.query("SELECT 1"))
        script.server(66, ANSWER)
        script.client(80, pg.query("SELECT 1"))
        script.server(86, ANSWER)
        session = script.session()
        self.assertEqual([ms(e.time) for e in session.exchanges], [21, 1, 1])
        self.assertEqual([ms(w.time) for w in session.waits], [39, 19])

    def test_failed_copy_that_the_client_does_not_end(self):
        script = Script()
        script.client(0, pg.query("COPY t FROM STDIN"))
        script.server(6, pg.message(b"G", b"\0\0\0"))
        script.client(20, pg.copy_data(b"bad\n"))
        script.server(26, ERROR + READY)
        script.client(60, pg.query("COPY t FROM STDIN"))
        script.server(66, pg.message(b"G", b"\0\0\0"))
        script.client(80, pg.copy_done())
        script.server(86, DONE + READY)
        self.assertEqual([ms(e.time) for e in script.session().exchanges], [21, 21])

    def test_failed_copy_in_the_extended_protocol_ends_with_sync(self):
        script = Script()
        script.client(0, pg.extended("COPY t FROM STDIN"))
        script.server(6, pg.message(b"1") + pg.message(b"G", b"\0\0\0"))
        script.client(20, pg.copy_data(b"bad\n"))
        script.server(26, ERROR)
        script.client(40, pg.copy_done() + pg.sync())
        script.server(46, READY)
        script.client(60, pg.extended("SELECT 1"))
        script.server(66, ANSWER)
        self.assertEqual([ms(e.time) for e in script.session().exchanges], [41, 1])


class BadNetwork(unittest.TestCase):
    def test_lost_response_arrives_with_its_retransmission(self):
        script = Script()
        script.client(0, pg.query("SELECT 1"))
        lost = script.seq[False]
        script.server(6, ANSWER, sides=("server",))     # never arrives
        script.server(206, ANSWER, seq=lost)            # arrives at 211
        script.client(231, pg.query("SELECT 1"))
        script.server(237, ANSWER)
        session = script.session()
        wait, = session.waits
        self.assertEqual(ms(session.exchanges[0].time), 1)
        self.assertEqual((ms(wait.time), ms(wait.client)), (230, 20))
        self.assertEqual(len(session.server.from_server.retransmissions), 1)

    def test_segments_out_of_order_count_when_the_gap_is_filled(self):
        script = Script()
        script.client(-50, pg.query("SELECT 1"))
        script.server(-40, ANSWER)
        request = pg.query("SELECT 1")
        seq = script.seq[True]
        script.client(0, request[:6], sides=("client",))
        script.client(1, request[6:])                   # arrives at 6, beyond the gap
        script.client(50, request[:6], seq=seq)         # arrives at 55
        script.server(57, ANSWER)
        self.assertEqual(ms(script.session().exchanges[1].time), 2)

    def test_duplicate_request_is_no_request(self):
        script = Script()
        seq = script.seq[True]
        script.client(0, pg.query("SELECT 1"))
        script.server(6, ANSWER)
        script.client(9, pg.query("SELECT 1"), seq=seq)
        script.client(30, pg.query("SELECT 1"))
        script.server(36, ANSWER)
        session = script.session()
        self.assertEqual(len(session.exchanges), 2)
        self.assertEqual(ms(session.waits[0].time), 29)

    def test_closed_window(self):
        script = Script(server_isn=5000)
        script.handshake(scale=bytes([3, 3, 2]))                # windows count in units of 4
        script.client(0, pg.query("SELECT 1"), window=750)      # 3000 bytes
        script.server(6, pg.message(b"d", bytes(995)))          # 1000 bytes: room for 2000
        script.server(7, pg.message(b"d", bytes(995)))
        script.server(8, pg.message(b"d", bytes(995)))          # full
        script.packet(23, True, window=750)                     # read all: open again at 28
        script.server(29, READY)
        session = script.session()
        self.assertEqual(ms(session.server.window_closed(0, EPOCH + 1000 * MS)), 20)


class Encrypted(unittest.TestCase):
    def test_exchanges_by_direction(self):
        script = Script()
        record = b"\x17\x03\x03\0\x20" + bytes(32)
        script.client(0, record)
        script.server(7, record)
        script.server(8, record)
        script.client(33, record)
        script.server(40, record)
        session = script.session()
        self.assertTrue(session.tls)
        self.assertEqual([ms(e.time) for e in session.exchanges], [3, 2])
        self.assertEqual(ms(session.waits[0].client), 20)


class Sums(unittest.TestCase):
    def session(self):
        script = Script()
        for i in range(4):
            script.client(100 * i, pg.query("SELECT 1"))
            script.server(100 * i + 15, ANSWER)
        return script.session()

    def test_exchanges_are_cut_and_waits_count_where_they_end(self):
        # exchanges from 5 to 15, from 105 to 115, ...
        summary = self.session().summary(EPOCH + 10 * MS, EPOCH + 210 * MS)
        self.assertEqual(summary.requests, 2)
        self.assertEqual(ms(summary.exchange), 20)      # 5 + 10 + 5
        self.assertEqual(ms(summary.wait), 180)

    def test_long_waits_are_idle(self):
        summary = self.session().summary(idle_threshold=50 * MS)
        self.assertEqual((ms(summary.idle), summary.client, summary.network), (270, 0, 0))

    def test_a_wait_in_progress_is_idle_once_it_has_become_so(self):
        # the last response left the server at 315
        session = self.session()
        summary = session.summary(EPOCH + 320 * MS, EPOCH + 360 * MS, idle_threshold=50 * MS)
        self.assertEqual(ms(summary.idle), 0)
        summary = session.summary(EPOCH + 320 * MS, EPOCH + 415 * MS, idle_threshold=50 * MS)
        self.assertEqual(ms(summary.idle), 100)
        summary = session.summary(EPOCH + 375 * MS, EPOCH + 415 * MS, idle_threshold=50 * MS)
        self.assertEqual(ms(summary.idle), 40)

    def test_a_draining_response_is_network_even_before_an_idle_client(self):
        script = Script()
        script.client(0, pg.query("SELECT 1"))
        script.server(6, ANSWER)                        # a round trip of 10 ms
        script.client(12, pg.query("SELECT 1"))
        late = script.seq[False]
        script.server(18, ANSWER, sides=("server",))
        script.server(318, ANSWER, seq=late)            # 300 ms more on the path
        script.client(1323, pg.query("SELECT 1"))       # 1000 ms later
        script.server(1329, ANSWER)
        summary = script.session().summary(idle_threshold=500 * MS)
        self.assertEqual((ms(summary.idle), ms(summary.network)), (1010, 310))


class Windows(unittest.TestCase):
    def test_narrow_window(self):
        script = Script(server_isn=5000)
        script.handshake(scale=bytes([3, 3, 7]))                # windows count in units of 128
        script.client(0, pg.query("SELECT 1"), window=600)      # room for 76800 bytes
        script.server(6, pg.message(b"d", bytes(19995)))        # for 56800: less than a burst
        script.packet(23, True, window=600)                     # read all, at 28
        script.server(29, READY)
        server = script.session().server
        self.assertEqual(server.window_closed(0, EPOCH + 1000 * MS), 0)
        self.assertEqual(capture.intervals(server.narrow_changes, 0, EPOCH + 1000 * MS),
                         [(EPOCH + 6 * MS, EPOCH + 28 * MS)])

    def test_intervals_are_cut(self):
        changes = [(10, True), (20, False), (30, True)]
        self.assertEqual(capture.intervals(changes, 15, 40), [(15, 20), (30, 40)])
        self.assertEqual(capture.intervals(changes, 21, 29), [])


class Displacement(unittest.TestCase):
    """A backend that has no processor just when the server reads its clock; times in ms."""

    def totals(self, displaced, steps, threshold=1000 * MS):
        bursts = [syscalls.Burst(5 * MS, 15 * MS), syscalls.Burst(105 * MS, 115 * MS)]
        syscalls.note_displacement(bursts, [int(step * MS) for step in steps],
                                   [(int(since * MS), int(until * MS)) for since, until in displaced])
        return syscalls.totals(bursts, 0, 200 * MS, threshold)

    def test_displacement_between_the_last_system_calls_is_a_doubt(self):
        self.assertEqual(ms(self.totals([(15.001, 18)], [15, 18.01, 105, 115]).doubt), 2.999)

    def test_displacement_right_after_reading_is_a_doubt(self):
        self.assertEqual(ms(self.totals([(5.01, 6), (6.01, 7), (8, 9)], [5, 15, 15.1, 105]).doubt), 1.98)

    def test_displacement_elsewhere_is_no_doubt(self):
        totals = self.totals([(8, 9), (20, 30), (104, 105)], [5, 15, 15.01, 105, 115])
        self.assertEqual(totals.doubt, 0)

    def test_displacement_anywhere_in_a_pipeline_is_a_late_reading(self):
        burst = syscalls.Burst(5 * MS, 15 * MS, exchanges=10)
        syscalls.note_displacement([burst], [5 * MS, 15 * MS, 15 * MS + 10_000], [(8 * MS, 11 * MS)])
        self.assertEqual(ms(burst.late_read), 3)

    def test_displacement_near_the_idle_threshold_makes_idle_time_doubtful(self):
        steps = [5, 15, 18, 105, 115, 115.01]
        self.assertEqual(ms(self.totals([], steps, 91 * MS).idle), 0)
        self.assertEqual(self.totals([], steps, 91 * MS).idle_doubt, 0)
        self.assertEqual(ms(self.totals([(105.01, 107)], steps, 91 * MS).idle_doubt), 90)
        self.assertEqual(ms(self.totals([], steps, 89 * MS).idle), 90)
        self.assertEqual(ms(self.totals([(15.01, 18)], steps, 89 * MS).idle_doubt), 90)


class TraceLines(unittest.TestCase):
    LINES = """\
# entries-in-buffer/entries-written: 7/7   #P:2
        postgres-77      [000] .....    10.000001: sys_recvfrom -> 0x26
        postgres-77      [000] d..2.    10.000005: sched_switch: prev_comm=postgres prev_pid=77 prev_prio=120 \
prev_state=R+ ==> next_comm=a b next_pid=88 next_prio=120
             a b-88      [000] d..2.    10.002005: sched_switch: prev_comm=a b prev_pid=88 prev_prio=120 \
prev_state=S ==> next_comm=postgres next_pid=77 next_prio=120
        postgres-77      [000] .....    10.002010: sys_sendto -> 0x40
        postgres-77      [000] .....    10.002020: sys_recvfrom -> 0xfffffffffffffff5
        postgres-77      [000] .....    10.002030: sys_epoll_wait(epfd: 4, events: 1, maxevents: 1, timeout: ffffffff)
        postgres-77      [000] .....    10.005030: sys_epoll_wait -> 0x1
"""

    def read(self, text):
        trace = syscalls.Trace(1)
        trace._read(text.splitlines(keepends=True))
        return trace

    def test_what_is_traced(self):
        trace = self.read(self.LINES)
        (read, _), (sent, _) = trace.calls[77]
        self.assertEqual(sent - read, 2_009_000)
        self.assertEqual([until - since for since, until in trace.displaced[77]], [2_000_000])
        self.assertEqual([until - since for since, until in trace.waits[77]], [3_000_000])
        self.assertEqual(len(trace.steps[77]), 5)

    def test_a_trace_that_has_lost_something_is_refused(self):
        with self.assertRaises(RuntimeError):
            self.read(self.LINES.replace("7/7", "7/9"))


class SystemCalls(unittest.TestCase):
    def test_calls_are_matched_to_the_packets_exchanges(self):
        script = Script()
        for i in range(2):
            script.client(100 * i, pg.query("SELECT 1"))
            script.server(100 * i + 15, ANSWER)
        exchanges = script.session().exchanges
        calls = [(EPOCH + int(t * MS), c) for t, c in ((5.1, "r"), (15.1, "s"), (105.2, "r"), (115.1, "s"))]
        bursts = syscalls.bursts(exchanges, calls)
        self.assertEqual([(ms(b.read - EPOCH), ms(b.sent - EPOCH)) for b in bursts],
                         [(5.1, 15.1), (105.2, 115.1)])
        totals = syscalls.totals(bursts, EPOCH, EPOCH + 1000 * MS)
        self.assertEqual((ms(totals.exchange), ms(totals.wait)), (19.9, 90.1))

    def test_pipelined_exchanges_are_one_burst(self):
        script = Script()
        script.client(0, pg.extended("SELECT 1") * 2)
        script.server(10, ANSWER)
        script.server(13, ANSWER)
        script.client(30, pg.extended("SELECT 1"))
        script.server(36, ANSWER)
        calls = [(EPOCH + int(t * MS), c) for t, c in
                 ((5.1, "r"), (10.1, "s"), (13.1, "s"), (35.2, "r"), (36.1, "s"))]
        bursts = syscalls.bursts(script.session().exchanges, calls)
        self.assertEqual([(b.exchanges, ms(b.sent - b.read)) for b in bursts], [(2, 8.0), (1, 0.9)])

    def test_without_packets_reads_and_sends_alternate(self):
        calls = [(EPOCH + t * MS, c) for t, c in ((1, "r"), (2, "s"), (3, "s"), (9, "r"), (11, "s"))]
        bursts = syscalls.bursts_alone(calls)
        self.assertEqual([(ms(b.read - EPOCH), ms(b.sent - EPOCH)) for b in bursts], [(1, 3), (9, 11)])


if __name__ == "__main__":
    unittest.main()
