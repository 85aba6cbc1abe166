#!/usr/bin/python3
"""Tests of the library itself; needs neither PostgreSQL nor privileges."""

import contextlib
import io
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
import unittest
from unittest import mock
from xml.etree import ElementTree

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True

from harness import machine, pgclient, picture, poll, postgres, program, tally, workspace


def setUpModule():
    """A background process ignores SIGINT, and so would the stand-ins, which are shell scripts."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def printed(function, *arguments, **options):
    """The result and the output of a function."""
    with contextlib.redirect_stdout(io.StringIO()) as output:
        result = function(*arguments, **options)
    return result, output.getvalue()


class Clock:
    """A clock that moves only when sleep() is called, or when it is set."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


class Poll(unittest.TestCase):
    def setUp(self):
        self.clock = Clock()
        self.options = {"clock": self.clock, "sleep": self.clock.sleep}

    def test_returns_what_is_true(self):
        values = iter([None, [], "there"])
        self.assertEqual(poll.wait_for(lambda: next(values), 10, interval=1, **self.options), "there")
        self.assertEqual(self.clock.now, 2)

    def test_asks_at_least_once(self):
        self.assertEqual(poll.wait_for(lambda: "at once", 0, **self.options), "at once")

    def test_asks_once_more_when_the_time_is_over(self):
        # the machine stands still while the first question is asked
        def condition():
            self.clock.now += 100
            return self.clock.now > 150
        self.assertTrue(poll.wait_for(condition, 10, **self.options))

    def test_gives_up_in_time(self):
        self.assertEqual(poll.wait_for(lambda: [], 10, interval=1, **self.options), [])
        self.assertEqual(self.clock.now, 10)

    def test_says_what_did_not_happen(self):
        with self.assertRaisesRegex(poll.TimedOut, "not within 3 s: the moon falls"):
            poll.until(lambda: None, "the moon falls", 3, **self.options)
        with self.assertRaisesRegex(poll.TimedOut, "asked late"):
            poll.until(lambda: None, lambda: "asked late", 3, **self.options)


class Tally(unittest.TestCase):
    def setUp(self):
        self.tally = tally.Tally()

    def test_lines_and_status(self):
        for verdict in (tally.OK, tally.FAIL, tally.MISS, tally.OPEN, tally.NOTE):
            self.assertEqual(printed(self.tally.add, verdict, "it")[1], f"{verdict:4} it\n")
        self.assertEqual(printed(self.tally.skip, "that", "why")[1], "skipped: that: why\n")
        self.assertEqual(printed(self.tally.finish, missed="missed", undecided="undecided"),
                         (1, "1 undecided\n1 missed\n1 passed, 1 failed, 1 skipped\n"))

    def test_only_failures_fail(self):
        for verdict in (tally.OK, tally.MISS, tally.OPEN, tally.SKIPPED):
            self.tally.count(verdict, 3)
        self.assertEqual(printed(self.tally.finish, missed="missed")[0], 0)

    def test_lines_are_what_the_stages_look_for(self):
        # scripts/test, run_stage()
        self.assertRegex(printed(self.tally.add, tally.OK, "it")[1], "^ok")
        self.assertRegex(printed(self.tally.skip, "why")[1], "^skipped: ")
        self.assertRegex(printed(self.tally.finish)[1], "(^|[^0-9])[1-9][0-9]* passed")

    def test_checks(self):
        for problem in (None, "", [], ()):
            self.assertEqual(printed(self.tally.check, "it", problem)[1], "ok   it\n")
        self.assertEqual(printed(self.tally.check, "it", "broken")[1], "FAIL it: broken\n")
        self.assertEqual(printed(self.tally.check, "it", ["this", 1])[1], "FAIL it: this; 1\n")
        self.assertEqual((self.tally.counts[tally.OK], self.tally.failed), (4, 2))

    def test_long_reasons_are_cut(self):
        self.assertLess(len(printed(self.tally.check, "it", "x" * 100000)[1]), 2100)

    def test_eventually(self):
        problems = iter(["not yet", "not yet", ""])
        self.assertEqual(printed(self.tally.eventually, "it", lambda: next(problems), 60, 0)[1], "ok   it\n")
        self.assertEqual(printed(self.tally.eventually, "it", lambda: "never", 0, 0)[1], "FAIL it: never\n")

    def test_exception(self):
        def broken():
            try:
                raise ValueError("the reason")
            except ValueError:
                self.tally.broken("it")
        output = printed(broken)[1]
        self.assertTrue(output.startswith("FAIL it: could not be measured\nTraceback"))
        self.assertIn("ValueError: the reason", output)
        self.assertEqual(self.tally.failed, 1)


class Machine(unittest.TestCase):
    def test_stolen_time(self):
        ticks = os.sysconf("SC_CLK_TCK")
        line = f"cpu  1 2 3 4 5 6 7 {3 * ticks} 9 10"
        self.assertEqual(machine.stolen_time(f"{line}\ncpu0 1 2 3 4 5 6 7 0 9 10\n"), 3)
        self.assertEqual(machine.stolen_time("cpu  1 2 3 4\n"), 0)     # no hypervisor, long ago

    def test_share(self):
        clock = Clock()
        with mock.patch.object(machine, "stolen_time", side_effect=[5.0, 6.0]), \
                mock.patch.object(machine.time, "monotonic", clock), \
                mock.patch.object(machine.os, "cpu_count", return_value=4):
            theft = machine.Theft()
            clock.sleep(10)
            self.assertEqual(theft.share(), 1 / 40)


class Options(unittest.TestCase):
    def test_only_those_that_are_named(self):
        options = program.parser("What it is.", "short", "json").parse_args(["--short", "--json", "file"])
        self.assertEqual((options.short, options.json), (True, pathlib.Path("file")))
        with contextlib.redirect_stderr(io.StringIO()), self.assertRaises(SystemExit) as ended:
            program.parser("What it is.", "short").parse_args(["--keep"])
        self.assertEqual(ended.exception.code, 2)

    def test_help_is_the_docstring(self):
        self.assertIn("50 % as\n  written", program.parser("It.\n\n50 % as\n  written\n").format_help())


class Files(unittest.TestCase):
    def test_directory_is_removed(self):
        with workspace.Workspace("test") as space:
            directory = space.directory
            space.write("a.log", "something")
            space.scratch("b")
        self.assertFalse(directory.exists())

    def test_logs_stay_behind_an_exception(self):
        def fail():
            with workspace.Workspace("test") as space:
                space.scratch("data")
                space.write("data/base", "much")
                space.write("data/a.log", "why")
                space.write("empty.log", "")
                directories.append(space.directory)
                raise ValueError
        directories = []
        with contextlib.redirect_stdout(io.StringIO()) as output, self.assertRaises(ValueError):
            fail()
        directory, = directories
        self.addCleanup(subprocess.run, ["rm", "-rf", directory], check=True)
        self.assertEqual(output.getvalue(), f"logs: {directory}\n")
        self.assertEqual([path for path in directory.rglob("*") if path.is_file()], [directory / "data/a.log"])

    def test_nothing_stays_where_nothing_was_logged(self):
        with contextlib.redirect_stdout(io.StringIO()), workspace.Workspace("test") as space:
            space.write("data", "much")
            with contextlib.closing(socket.socket(socket.AF_UNIX)) as sock:
                sock.bind(f"{space.directory}/socket")
            space.failed = True
        self.assertFalse(space.directory.exists())

    def test_what_cannot_run_has_not_failed(self):
        with self.assertRaises(workspace.Unavailable), workspace.Workspace("test") as space:
            space.write("a.log", "something")
            raise workspace.Unavailable("why")
        self.assertFalse(space.directory.exists())

    def test_keep(self):
        def run():
            with workspace.Workspace("test", keep=True) as space:
                space.write("data", "much")
            return space.directory
        directory, output = printed(run)
        self.addCleanup(subprocess.run, ["rm", "-rf", directory], check=True)
        self.assertEqual(output, f"kept: {directory}\n")
        self.assertTrue((directory / "data").exists())


# A program that starts one process, says which, and does as it is told.
PARENT = """
import os, signal, sys, time
sys.path.insert(0, {path!r})
from harness import program, workspace

def main():
    with workspace.Workspace("test") as space:
        child = space.start(["sh", "-c", "trap 'exit 0' TERM; echo; while :; do sleep 0.1; done"],
                            stdout=-1)
        child.stdout.readline()         # from here on it is able to end by itself
        print(child.pid, space.directory, flush=True)
        {body}
        while True:
            time.sleep(1)

program.run(main)
"""


class Processes(unittest.TestCase):
    def setUp(self):
        self.space = workspace.Workspace("test").__enter__()
        self.addCleanup(self.space.close)

    def test_output_and_failure(self):
        self.assertEqual(self.space.run(["echo", 1]), "1\n")
        with self.assertRaisesRegex(workspace.Failed, "(?s)sh failed .3.*out.*err"):
            self.space.run(["sh", "-c", "echo out; echo err >&2; exit 3"])

    def test_environment_leads_to_no_other_server(self):
        with mock.patch.dict(os.environ, PGHOST="elsewhere", OTHER="kept"):
            output = self.space.run(["env"])
        self.assertNotIn("PGHOST", output)
        self.assertIn("OTHER=kept\n", output)
        self.assertIn(f"HOME={self.space.directory}\n", output)

    def test_log(self):
        process = self.space.start(["sh", "-c", "echo out; echo err >&2"], log="both")
        process.wait()
        self.assertEqual(self.space.log("both"), "out\nerr\n")

    def test_prefix_comes_first(self):
        self.assertEqual(self.space.run(["sh", "-c", "echo $A"], prefix=["env", "A=1"]), "1\n")

    def test_stop_uses_more_and_more_force(self):
        process = self.space.start(["sh", "-c", "trap '' TERM QUIT; echo; while :; do sleep 0.1; done"],
                                   stdout=subprocess.PIPE)
        process.stdout.readline()
        with mock.patch.object(workspace, "QUIT_PATIENCE", 0.1):
            self.space.stop(process, patience=0.1)
        self.assertEqual(process.returncode, -signal.SIGKILL)
        self.assertEqual(self.space.processes, [])

    def test_stop_sends_the_signal_of_the_process(self):
        process = self.space.start(["sh", "-c", "trap 'exit 7' USR1; echo; while :; do sleep 0.1; done"],
                                   stdout=subprocess.PIPE, stop=signal.SIGUSR1)
        process.stdout.readline()
        self.space.stop(process)
        self.assertEqual(process.returncode, 7)

    def test_end_of_input(self):
        process = self.space.start(["cat"], stdin=subprocess.PIPE)
        self.space.close_input(process)
        self.assertEqual(process.returncode, 0)

    def test_port_that_somebody_takes_first(self):
        # the first attempts end at once, as servers do that cannot listen
        attempts = []

        def command(port):
            attempts.append(port)
            return ["false"] if len(attempts) < 3 else ["sleep", "1000"]
        process, port = self.space.serve("it", command, lambda process, port: process.args[-1] == "1000")
        self.assertIsNone(process.poll())
        self.assertEqual((len(attempts), port), (3, attempts[2]))
        self.assertEqual(self.space.processes, [process])

    def test_nobody_is_asked_twice(self):
        answers = iter([False, True])
        process, _ = self.space.serve("it", lambda port: ["sleep", "1000"], lambda process, port: next(answers))
        self.assertIsNone(process.poll())

    def test_what_never_starts(self):
        with self.assertRaisesRegex(workspace.Failed, "(?s)it does not start.*the reason"):
            self.space.serve("it", lambda port: ["sh", "-c", "echo the reason"], lambda process, port: False)

    def test_free_port(self):
        port = workspace.free_port()
        with socket.socket() as sock:
            sock.bind(("127.0.0.1", port))

    def test_user(self):
        with mock.patch("os.geteuid", return_value=0):
            self.assertNotEqual(workspace.unprivileged_user("no such user", "root").pw_uid, 0)
            command = workspace.Workspace("test").as_user(["it", 1], signal.SIGINT)
        self.assertEqual((command[0], command[-3:]), ("setpriv", ["--pdeathsig=INT", "it", "1"]))


class End(unittest.TestCase):
    """Whatever happens to a program, what it has started ends."""

    def start(self, body=""):
        code = PARENT.format(path=str(HERE), body=body)
        parent = subprocess.Popen([sys.executable, "-B", "-c", textwrap.dedent(code)], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, parent)
        child, directory = parent.stdout.readline().split()
        return parent, int(child), pathlib.Path(directory)

    @staticmethod
    def end(parent):
        parent.kill()
        parent.communicate()

    def gone(self, child):
        # the shell's "sleep" may have to end first
        self.assertTrue(poll.wait_for(lambda: not running(child), 60), f"process {child} is left")

    def test_sigterm(self):
        parent, child, directory = self.start()
        parent.terminate()
        self.assertEqual(parent.wait(60), 128 + signal.SIGTERM)
        self.gone(child)
        self.assertFalse(directory.exists())

    def test_interrupt_from_the_keyboard(self):
        parent, child, directory = self.start()
        parent.send_signal(signal.SIGINT)
        parent.wait(60)
        self.gone(child)
        self.assertFalse(directory.exists())

    def test_exception(self):
        parent, child, directory = self.start("raise ValueError('the reason')")
        self.assertIn("the reason", parent.communicate(timeout=60)[1])
        self.assertEqual(parent.returncode, 1)
        self.gone(child)
        self.assertFalse(directory.exists())

    def test_exit(self):
        parent, child, directory = self.start("sys.exit(3)")
        self.assertEqual(parent.wait(60), 3)
        self.gone(child)
        self.assertFalse(directory.exists())

    def test_killed(self):
        parent, child, directory = self.start()
        self.addCleanup(subprocess.run, ["rm", "-rf", directory], check=True)
        parent.kill()
        parent.wait(60)
        self.gone(child)


def running(pid):
    """Whether a process runs; one that waits for a parent to ask for its status does not."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


class Settings(unittest.TestCase):
    def test_quotes(self):
        self.assertEqual(postgres.setting_lines({"a": 1, "b": "it's", "c": ""}),
                         "a = '1'\nb = 'it''s'\nc = ''\n")

    def test_pg_config(self):
        with mock.patch.dict(os.environ, PG_CONFIG="/nowhere/pg_config"), \
                self.assertRaisesRegex(workspace.Unavailable, "needs /nowhere/pg_config"):
            postgres.config("--bindir")


# The server's own command line, as far as the library depends on it.
POSTGRES = """#!/bin/sh
data=$2
trap 'echo stopped by INT; rm -f "$data/postmaster.pid"; exit 0' INT
echo "$@"
[ -e "$data/refuse" ] && { echo 'cannot listen'; exit 1; }
printf '%s\\n' $$ "$data" 0 "$4" '' '' '' 'starting' >"$data/postmaster.pid"
sleep 0.2
printf '%s\\n' $$ "$data" 0 "$4" '' '' '' 'ready   ' >"$data/postmaster.pid"
while :; do sleep 0.1; done
"""
INITDB = """#!/bin/sh
mkdir "$2"
echo '# made by initdb' >"$2/postgresql.conf"
"""
PSQL = """#!/bin/sh
env | grep '^PG' | sort >"$HOME/asked"
printf '%s\\n' "$@" >>"$HOME/asked"
printf 'one,two\\n1,"a\\nb"\\n,\\n'
"""


class Server(unittest.TestCase):
    """With stand-ins for PostgreSQL's programs."""

    def setUp(self):
        directory = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(subprocess.run, ["rm", "-rf", directory], check=True)
        directory.chmod(0o755)
        for name, text in (("postgres", POSTGRES), ("initdb", INITDB), ("psql", PSQL),
                           ("pg_config", f"#!/bin/sh\necho {directory}\n")):
            (directory / name).write_text(text)
            (directory / name).chmod(0o755)
        patch = mock.patch.dict(os.environ, PG_CONFIG=str(directory / "pg_config"))
        patch.start()
        self.addCleanup(patch.stop)
        self.space = workspace.Workspace("test").__enter__()
        self.addCleanup(self.space.close)
        self.server = postgres.Server(self.space, settings={"shared_preload_libraries": "it"})

    def test_settings(self):
        self.server.initialise()
        lines = (self.server.data / "postgresql.conf").read_text().splitlines()
        self.assertEqual(lines[0], "# made by initdb")
        self.assertIn("listen_addresses = ''", lines)
        self.assertIn("shared_preload_libraries = 'it'", lines)
        self.assertIn(f"unix_socket_directories = '{self.space.directory}'", lines)

    def test_life(self):
        self.server.initialise()
        with self.server as server:
            self.assertIn("ready", (server.data / "postmaster.pid").read_text())
            self.assertEqual(server.pid, int((server.data / "postmaster.pid").read_text().split()[0]))
            process = server.process
        self.assertEqual(process.returncode, 0)
        self.assertIn("stopped by INT", self.server.log)

    def test_file_of_a_server_that_was_killed(self):
        self.server.initialise()
        (self.server.data / "postmaster.pid").write_text("1\n\n\n\n\n\n\nready\n")
        (self.server.data / "refuse").touch()
        with self.assertRaisesRegex(workspace.Failed, "(?s)does not start.*cannot listen"):
            self.server.start()
        self.assertEqual(self.space.processes, [])

    def test_free_port(self):
        self.server.initialise()
        self.server.start("-c", "a=b", free_port=True)
        self.assertIn(f"-p {self.server.port} -c a=b", self.server.log)
        self.assertNotEqual(self.server.port, postgres.PORT)

    def test_restart_with_another_command_line(self):
        self.server.initialise()
        with self.server:
            pass
        self.server.start("-c", "a=b")
        self.assertIn("-c a=b", self.server.log.splitlines()[-1])

    def test_copy(self):
        self.server.initialise()
        other = postgres.Server(self.space, "other", {"max_connections": 7}).initialise(self.server)
        text = (other.data / "postgresql.conf").read_text()
        self.assertEqual(text.count("# made by initdb"), 1)
        self.assertTrue(text.endswith("max_connections = '7'\n"))

    def test_wrapper_is_part_of_the_server(self):
        server = postgres.Server(self.space, wrapper=["env", "A=1"]).initialise()
        with server:
            environment = pathlib.Path(f"/proc/{server.pid}/environ")
            with contextlib.suppress(PermissionError):
                self.assertIn(b"A=1", environment.read_bytes().split(b"\0"))

    def test_psql(self):
        self.assertEqual(self.server.sql("SELECT 1", "SELECT 2"), [["one", "two"], ["1", "a\nb"], ["", ""]])
        self.assertEqual(self.server.rows("SELECT 1", database="d", user="u", name="n"), [["1", "a\nb"], ["", ""]])
        asked = (self.space.directory / "asked").read_text().splitlines()
        for word in ("PGAPPNAME=n", "PGDATABASE=d", "PGUSER=u", f"PGHOST={self.space.directory}",
                     "ON_ERROR_STOP=1", "SELECT 1"):
            self.assertIn(word, asked)

    def test_no_server(self):
        with mock.patch.dict(os.environ, PG_CONFIG="/bin/echo"), \
                self.assertRaisesRegex(workspace.Unavailable, "there is no server in"):
            postgres.bindir()

    def test_no_library(self):
        with self.assertRaisesRegex(workspace.Unavailable, "nothing is not installed"):
            postgres.require_library("nothing")


class Talk:
    """The other end of a raw client: sends what it is told, and keeps what it gets."""

    def __init__(self, *responses):
        self.here, self.client = socket.socketpair()
        self.received = b""
        self.responses = responses

    def __enter__(self):
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()
        return self.client

    def serve(self):
        for response in self.responses:
            self.received += self.here.recv(65536)
            self.here.sendall(response)

    def __exit__(self, *exc_info):
        self.client.close()
        self.thread.join()
        self.here.close()


READY = pgclient.message(b"Z", b"I")
WELCOME = pgclient.message(b"R", bytes(4)) + pgclient.message(b"K", bytes(4 - 1) + b"\x2a" + bytes(4)) + READY
COLUMN = bytes(18)
DESCRIPTION = pgclient.message(b"T", b"\0\2one\0" + COLUMN + b"two\0" + COLUMN)
ROW = pgclient.message(b"D", b"\0\2" + b"\0\0\0\1" + b"1" + b"\xff\xff\xff\xff")
ERROR = pgclient.message(b"E", b"SERROR\0Mthe reason\0\0")


class Protocol(unittest.TestCase):
    def test_messages(self):
        self.assertEqual(pgclient.query("SELECT 1"), b"Q\0\0\0\rSELECT 1\0")
        self.assertEqual(pgclient.prepared("s", 12),
                         b"B\0\0\0\x13\0s\0\0\0\0\1\0\0\0\00212\0\0" + b"E\0\0\0\x09\0\0\0\0\0" + b"S\0\0\0\4")
        self.assertEqual(pgclient.execute(2), b"E\0\0\0\x09\0\0\0\0\2")

    def test_session(self):
        talk = Talk(WELCOME, DESCRIPTION + ROW + READY)
        with talk as sock:
            client = pgclient.Client(sock, user="u", database="d", application_name="a")
            self.assertEqual(client.pid, 42)
            self.assertEqual(client.dictionaries("SELECT"), [{"one": "1", "two": None}])
            self.assertEqual(client.transaction_status, "I")
        self.assertIn(b"user\0u\0database\0d\0application_name\0a\0\0", talk.received)

    def test_error(self):
        with Talk(WELCOME, ERROR + READY, ROW + READY) as sock:
            client = pgclient.Client(sock, user="u", database="d")
            with self.assertRaisesRegex(pgclient.ServerError, "the reason"):
                client.query("SELECT")
            self.assertEqual(client.query("SELECT"), [["1", None]])

    def test_refused(self):
        with Talk(ERROR) as sock, self.assertRaisesRegex(pgclient.ServerError, "the reason"):
            pgclient.Client(sock, user="u", database="d")

    def test_messages_in_pieces(self):
        with Talk(WELCOME, ROW[:3]) as sock:
            client = pgclient.Client(sock, user="u", database="d")
            client.send(b"x")
            client._read()
            self.assertEqual(bytes(client.buffer), ROW[:3])
            client.buffer += ROW[3:] + READY
            self.assertEqual(client.until_ready(), [["1", None]])

    def test_end_of_a_large_response_is_not_mistaken(self):
        # what looks like ReadyForQuery stands within a row first
        fake = pgclient.message(b"d", b"x" * 10 + READY)
        with Talk(WELCOME, fake + READY) as sock:
            client = pgclient.Client(sock, user="u", database="d")
            client.send(pgclient.query("SELECT"))
            self.assertEqual(client.discard_until_ready(block=len(fake)), len(fake) + len(READY))


class Picture(unittest.TestCase):
    def setUp(self):
        self.drawing = picture.Drawing(400, 100, "bars & dots")

    def saved(self):
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory) / "picture.svg"
            self.drawing.save(path)
            return ElementTree.parse(path).getroot()

    def attributes(self, element, name):
        return [float(found.get(name)) for found in self.saved().iter(f"{{http://www.w3.org/2000/svg}}{element}")]

    def test_bars_share_a_scale(self):
        picture.bars(self.drawing, 100, 10, 200, {"g": {"a": 1, "b": (2, 1, 4)}}, {"a": "red", "b": "blue"}, str)
        self.assertEqual(self.attributes("rect", "width"), [400, 50, 100])

    def test_dots_beyond_twice_the_bound_stand_at_the_edge(self):
        picture.dots(self.drawing, 100, 10, 200, {"row": [0, 1, 9]}, "blue", "red")
        self.assertEqual(self.attributes("circle", "cx"), [100, 200, 300])


if __name__ == "__main__":
    unittest.main()
