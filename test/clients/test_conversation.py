"""Unit tests of conversation.py on captures made up here.

    python3 -m unittest test_conversation
"""

import os
import pathlib
import struct
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "netlab"), str(HERE.parent / "lib")]

from harness import pgclient as pg

import capture
import test_truth

import conversation

ONE_WAY = 5.0
ROW = pg.message(b"D", b"\0\1\0\0\0\1" + b"1")


def done(tag):
    return pg.message(b"C", tag.encode() + b"\0")


def ready(status="I"):
    return pg.message(b"Z", status.encode())


PARSED, BOUND, CLOSED, SUSPENDED = (pg.message(kind) for kind in (b"1", b"2", b"3", b"s"))
PARAMETERS, NO_DATA = pg.message(b"t", b"\0\0"), pg.message(b"n")
COPY_IN = pg.message(b"G", b"\0\0\0")
ERROR = pg.message(b"E", b"SERROR\0C22012\0Mdivision by zero\0\0")
CLOSE_PORTAL = pg.message(b"C", b"P\0")
END = pg.message(b"X")


class Talk:
    """A session: each side answers when it has everything, unless told a time."""

    def __init__(self):
        self.script = test_truth.Script(one_way=ONE_WAY)
        self.script.handshake()
        self.script.client(-19, test_truth.startup())
        self.script.server(-10, pg.message(b"R", bytes(4)) + pg.message(b"K", struct.pack("!II", 4711, 1)) + ready())
        self.now = 0.0

    def client(self, *messages, think=1.0, late=0.0):
        """The client sends, having thought since it got the last answer; it may arrive late."""
        self.now += think
        self.script.one_way = ONE_WAY + late
        self.script.client(self.now, b"".join(messages))
        self.script.one_way = ONE_WAY
        self.now += late
        return self

    def server(self, *messages, work=1.0):
        """The server answers when what was sent has arrived."""
        self.script.server(self.now + ONE_WAY + work, b"".join(messages))
        self.now += 2 * ONE_WAY + work
        return self

    def end(self):
        self.client(END)
        with tempfile.TemporaryDirectory() as directory:
            sides = {}
            for side, packets in self.script.sides.items():
                file = os.path.join(directory, side)
                with open(file, "wb") as output:
                    output.write(struct.pack("<IHHiIII", capture.NANOSECOND_MAGIC, 2, 4, 0, 0, 65535, 101))
                    for time, data in sorted(packets, key=lambda packet: packet[0]):
                        moment = test_truth.EPOCH + int(time * test_truth.MS)
                        output.write(struct.pack("<IIII", moment // 10**9, moment % 10**9, len(data), len(data)) + data)
                sides[side] = file
            server = capture.read_connections(sides["server"], test_truth.PORT)
            client = capture.read_connections(sides["client"], test_truth.PORT, like=server)
        (result,), = conversation.by_user(server, client).values()
        return result


class Turns(unittest.TestCase):
    def check(self, talk, turns, requests, statements, transactions):
        self.assertEqual((talk.turns, talk.requests, len(talk.executions), talk.transactions),
                         (turns, requests, statements, transactions))

    def test_simple_query(self):
        talk = Talk().client(pg.query("SELECT 1")).server(ROW, done("SELECT 1"), ready()).end()
        self.check(talk, 1, 1, 1, 1)
        self.assertEqual([(e.text, e.rows) for e in talk.executions], [("SELECT ?", 1)])

    def test_several_in_one_query_are_one_transaction(self):
        talk = Talk().client(pg.query("SELECT 1; SELECT 2")) \
            .server(ROW, done("SELECT 1"), ROW, done("SELECT 1"), ready()).end()
        self.check(talk, 1, 1, 2, 1)

    def test_flush_behind_sync_belongs_to_nothing(self):
        talk = Talk()
        for _ in range(3):
            talk.client(pg.parse("SELECT 1"), pg.bind(), pg.execute(), pg.sync(), pg.flush()) \
                .server(PARSED, BOUND, ROW, done("SELECT 1"), ready())
        self.check(talk.end(), 3, 3, 3, 3)

    def test_flush_and_wait_is_a_turn(self):
        talk = Talk().client(pg.parse("SELECT 1"), pg.describe_statement(), pg.flush()) \
            .server(PARSED, PARAMETERS, NO_DATA) \
            .client(pg.bind(), pg.execute(), pg.sync()).server(BOUND, ROW, done("SELECT 1"), ready()).end()
        self.check(talk, 2, 2, 1, 1)
        self.assertEqual([wait.owner for wait in talk.waits], [None, "SELECT ?"])

    def test_pipeline_is_one_turn(self):
        one = pg.parse("SELECT 1") + pg.bind() + pg.execute() + pg.sync()
        answer = PARSED + BOUND + ROW + done("SELECT 1") + ready()
        talk = Talk().client(one, one, one).server(answer, answer, answer).end()
        self.check(talk, 1, 3, 3, 3)
        self.assertEqual(talk.server_waits, 1)

    def test_second_request_that_comes_just_in_time_may_have_been_waited_for(self):
        one = pg.query("SELECT 1")
        talk = Talk().client(one)
        talk.script.client(talk.now + 0.5, one)     # arrives half a millisecond before the first answer leaves
        talk.server(ROW, done("SELECT 1"), ready()).server(ROW, done("SELECT 1"), ready())
        talk = talk.end()
        self.check(talk, 1, 2, 2, 2)
        self.assertEqual(talk.server_waits, 2)      # the server may not have seen it

    def test_what_comes_just_in_time_behind_a_flush_may_have_been_waited_for(self):
        talk = Talk().client(pg.parse("SELECT 1"), pg.bind(), pg.describe_statement(), pg.flush())
        talk.script.client(talk.now + 0.5, pg.execute() + pg.sync())
        talk = talk.server(PARSED, BOUND, NO_DATA).server(ROW, done("SELECT 1"), ready()).end()
        self.check(talk, 1, 1, 1, 1)
        self.assertEqual((talk.flushes, talk.server_waits), (1, 2))

    def test_request_that_is_under_way_is_no_turn(self):
        one = pg.query("SELECT 1")
        answer = ROW + done("SELECT 1") + ready()
        talk = Talk().client(one)
        talk.script.client(talk.now + 4, one)       # arrives after the first answer has left
        talk.script.server(talk.now + ONE_WAY + 1, answer)
        talk.script.server(talk.now + ONE_WAY + 5, answer)
        talk.now += 20
        talk = talk.end()
        self.check(talk, 1, 2, 2, 2)
        self.assertEqual(talk.server_waits, 2)

    def test_copy_in_is_a_turn_of_its_own(self):
        talk = Talk().client(pg.query("COPY t FROM STDIN")).server(COPY_IN) \
            .client(pg.copy_data(b"1\n"), pg.copy_done()).server(done("COPY 1"), ready()).end()
        self.check(talk, 2, 1, 1, 1)
        self.assertEqual([wait.owner for wait in talk.waits], [None, "COPY t FROM STDIN"])

    def test_copy_in_without_waiting_is_no_turn(self):
        talk = Talk().client(pg.query("COPY t FROM STDIN"), pg.copy_data(b"1\n"), pg.copy_done()) \
            .server(COPY_IN, done("COPY 1"), ready()).end()
        self.check(talk, 1, 1, 1, 1)

    def test_rest_of_a_failed_copy_is_no_request(self):
        talk = Talk().client(pg.query("COPY t FROM STDIN")).server(COPY_IN) \
            .client(pg.copy_data(b"x\n"), pg.copy_data(b"1\n"), pg.copy_done()).server(ERROR, ready()) \
            .client(pg.query("SELECT 1")).server(ROW, done("SELECT 1"), ready()).end()
        self.check(talk, 3, 2, 1, 2)

    def test_sync_during_copy_in_is_swallowed(self):
        talk = Talk().client(pg.parse("COPY t FROM STDIN"), pg.bind(), pg.execute(), pg.sync()) \
            .server(PARSED, BOUND, COPY_IN) \
            .client(pg.copy_data(b"1\n"), pg.copy_done(), pg.sync()).server(done("COPY 1"), ready()).end()
        self.check(talk, 2, 1, 1, 1)

    def test_error_skips_to_sync(self):
        talk = Talk().client(pg.parse("SELECT 1/0"), pg.bind(), pg.execute(), pg.parse("SELECT 2"), pg.bind(),
                             pg.execute(), pg.sync()).server(PARSED, ERROR, ready()).end()
        self.check(talk, 1, 1, 0, 1)


class Statements(unittest.TestCase):
    def test_suspended_portal_is_one_statement(self):
        talk = Talk().client(pg.query("BEGIN")).server(done("BEGIN"), ready("T")) \
            .client(pg.parse("SELECT i FROM t"), pg.bind(), pg.execute(2), pg.sync()) \
            .server(PARSED, BOUND, ROW, ROW, SUSPENDED, ready("T")) \
            .client(pg.execute(2), pg.sync()).server(ROW, done("SELECT 1"), ready("T")) \
            .client(pg.query("COMMIT")).server(done("COMMIT"), ready()).end()
        self.assertEqual([(e.text, e.rows) for e in talk.executions],
                         [("BEGIN", 0), ("SELECT i FROM t", 3), ("COMMIT", 0)])
        self.assertEqual((talk.turns, talk.transactions), (4, 1))

    def test_closing_the_portal_belongs_to_the_statement(self):
        talk = Talk()
        for _ in range(2):
            talk.client(pg.parse("SELECT 1"), pg.bind(), pg.execute(), CLOSE_PORTAL, pg.sync()) \
                .server(PARSED, BOUND, ROW, done("SELECT 1"), CLOSED, ready())
        talk = talk.end()
        self.assertEqual([wait.owner for wait in talk.waits], [None, "SELECT ?"])

    def test_transaction_ends_with_its_session(self):
        talk = Talk().client(pg.query("BEGIN")).server(done("BEGIN"), ready("T")).end()
        self.assertEqual(talk.transactions, 1)

    def test_savepoint_is_no_transaction(self):
        talk = Talk()
        for text, tag in (("BEGIN", "BEGIN"), ("SAVEPOINT s", "SAVEPOINT"), ("ROLLBACK TO s", "ROLLBACK")):
            talk.client(pg.query(text)).server(done(tag), ready("T"))
        talk.client(pg.query("COMMIT")).server(done("COMMIT"), ready())
        self.assertEqual(talk.end().transactions, 1)

    def loop(self, rows, executions, think=1):
        talk = Talk()
        talk.client(pg.query("SELECT i FROM t")).server(*[ROW] * rows, done(f"SELECT {rows}"), ready())
        for _ in range(executions):
            talk.client(pg.query("SELECT 1"), think=think).server(ROW, done("SELECT 1"), ready())
        return [e.repeat for e in talk.end().executions]

    def test_repeats_outside_a_block_count_up_to_the_rows_before_them(self):
        self.assertEqual(self.loop(6, 6), [False] * 2 + [True] * 5)
        self.assertEqual(self.loop(6, 8), [False] * 2 + [True] * 5 + [False] * 2)
        self.assertEqual(self.loop(6, 6, think=50), [False] * 2 + [True] * 5)
        self.assertEqual(self.loop(6, 6, think=500), [False] * 7)

    def test_repeats_for_few_of_many_rows_do_not_count(self):
        self.assertEqual(self.loop(40, 10), [False] * 2 + [True] * 9)
        self.assertEqual(self.loop(40, 9), [False] * 10)
        self.assertEqual(self.loop(4, 4), [False] * 5)

    def test_repeats_outside_a_block_without_rows_count_from_the_31st_on(self):
        talk = Talk()
        for think in [1] * 32 + [5]:
            talk.client(pg.query("SELECT 1"), think=think).server(ROW, done("SELECT 1"), ready())
        self.assertEqual([e.repeat for e in talk.end().executions], [False] * 30 + [True] * 2 + [False])

    def test_repeat_is_uncertain_where_the_path_is_late(self):
        talk = Talk()
        for late in [0] * 29 + [5, 0]:
            talk.client(pg.query("SELECT 1"), think=1, late=late).server(ROW, done("SELECT 1"), ready())
        executions = talk.end().executions
        self.assertEqual([e.repeat for e in executions], [False] * 31)
        self.assertEqual([e.perhaps for e in executions], [False] * 30 + [True])

    def test_pipelined_requests_are_not_one_burst(self):
        one = pg.parse("SELECT 1") + pg.bind() + pg.execute()
        answer = PARSED + BOUND + ROW + done("SELECT 1")
        apart = Talk().client((one + pg.sync()) * 3).server((answer + ready()) * 3).end()
        together = Talk().client(one * 3 + pg.sync()).server(answer * 3 + ready()).end()
        self.assertEqual([e.repeat for e in apart.executions], [False] * 3)
        self.assertEqual([e.repeat for e in together.executions], [False, True, True])

    def test_repeats_inside_a_block_count_whatever_the_think_time(self):
        talk = Talk().client(pg.query("BEGIN")).server(done("BEGIN"), ready("T"))
        for think in (1, 50):
            talk.client(pg.query("SELECT 1"), think=think).server(ROW, done("SELECT 1"), ready("T"))
        talk.client(pg.query("COMMIT")).server(done("COMMIT"), ready())
        self.assertEqual([e.repeat for e in talk.end().executions], [False, False, True, False])

    def test_wait_is_split_into_network_and_client(self):
        talk = Talk().client(pg.query("SELECT 1")).server(ROW, done("SELECT 1"), ready()) \
            .client(pg.query("SELECT 2"), think=7).server(ROW, done("SELECT 1"), ready()).end()
        wait = talk.waits[1]
        self.assertEqual((test_truth.ms(wait.network), test_truth.ms(wait.client), wait.turn), (10, 7, True))


class Texts(unittest.TestCase):
    def test_normalise(self):
        for text, expected in (
                ("SELECT 1", "SELECT ?"), ("SELECT $1;", "SELECT ?"), ("SELECT 'it''s', t1.c2 FROM t1",
                                                                        "SELECT ?, t1.c2 FROM t1"),
                ("SELECT  1\n", "SELECT ?"), ("SELECT a = -1", "SELECT a = ?"), ("SELECT NULL, a IS NULL",
                                                                                "SELECT ?, a IS NULL"),
                ("INSERT INTO t VALUES ($1, 'x')", "INSERT INTO t VALUES (?, ?)")):
            self.assertEqual(conversation.normalise(text), expected)

    def test_split(self):
        self.assertEqual(conversation.split_statements("SELECT ';'; SELECT \";\";"), ["SELECT ';'", 'SELECT ";"'])

    def test_compress(self):
        self.assertEqual(conversation.compress("P S B E B E B E S".split()), "P S [B E]*3 S")


if __name__ == "__main__":
    unittest.main()
