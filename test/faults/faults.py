"""Faults on a server under a load of its own, each seen to have happened."""

import collections
import contextlib
import os
import pathlib
import re
import signal
import subprocess
import threading
import time

from harness import poll, postgres, workspace

CLIENTS = 4
SETTINGS = {"shared_preload_libraries": "pgnetlat", "compute_query_id": "on", "max_connections": 40}

Fault = collections.namedtuple("Fault", "name make loses")

NOTHING = ""
SINCE_START = "all since the start, as of PostgreSQL's own statistics after a crash"
FAULTS = []


class NotSeen(Exception):
    """The fault has not happened, or cannot be seen."""


def fault(name, loses=NOTHING):
    """Register a function that makes a fault on a server under load, and returns how it was seen."""
    def register(make):
        FAULTS.append(Fault(name, make, loses))
        return make
    return register


def seen(condition, what):
    """Return "what" once the condition holds."""
    if not poll.wait_for(condition):
        raise NotSeen(f"not seen: {what}")
    return what


def state(pid):
    """The state of a process as /proc has it; "" if there is none."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def gone(pid):
    return state(pid) in ("", "Z")


class Load:
    """Runs pgbench again and again; knows how many executions it has been answered."""

    def __init__(self, server, clients=CLIENTS, transactions=3000):
        self.server = server
        self.command = ["-n", "-f", server.script, "-c", clients, "-t", transactions]
        self.clients = clients
        self.answered = 0
        self.broken = 0     # clients whose last execution may have been counted without an answer
        self.ending = threading.Event()
        self.thread = threading.Thread(target=self._repeat)

    def _repeat(self):
        while not self.ending.is_set():
            self.once()

    def once(self):
        try:
            output = self.server.program("pgbench", *self.command, user="load", name="load")
        except workspace.Failed as failed:
            output = str(failed)
            time.sleep(0.1)
        found = re.search(r"actually processed: (\d+)(/?)", output)
        if found:
            self.answered += int(found.group(1))
            self.broken += self.clients if found.group(2) or "aborted" in output else 0

    def __enter__(self):
        self.thread.start()
        seen(lambda: self.answered and self.server.loaders(), "a load")
        return self

    def __exit__(self, *exc_info):
        self.ending.set()
        self.thread.join()


class Server(postgres.Server):
    """A server whose superuser is not counted."""

    def sql(self, *statements, **environment):
        environment.setdefault("PGOPTIONS", "-c pgnetlat.enabled=off")
        return super().sql(*statements, **environment)

    def prepare(self):
        self.script = self.space.directory / "one.sql"
        self.script.write_text("SELECT count(*) FROM generate_series(1, 300);\n")
        self.sql("CREATE ROLE load LOGIN", "CREATE EXTENSION pgnetlat")
        return self

    def loaders(self):
        """The backends of the load."""
        with contextlib.suppress(workspace.Failed):
            return [int(pid) for pid, in self.rows(
                "SELECT pid FROM pg_stat_activity WHERE usename = 'load' ORDER BY backend_start")]
        return []

    def loader(self):
        return poll.until(self.loaders, "a backend of the load")[-1]

    def sampler(self):
        with contextlib.suppress(workspace.Failed):
            return int(self.value("SELECT coalesce(sampler_pid, 0) FROM pgnetlat_info"))
        return 0

    def answers(self):
        with contextlib.suppress(workspace.Failed):
            return self.value("SELECT 1") == "1"
        return False

    def counted(self):
        return int(self.value("SELECT coalesce(sum(calls), 0) FROM pgnetlat_statements "
                              "WHERE userid = 'load'::regrole OR userid IS NULL"))

    def settled(self):
        """What has been counted when all sessions of the load are gone."""
        poll.until(lambda: not self.loaders(), "the load ends")
        return self.counted()

    def problem(self):
        """What is wrong now: sampler, accounts, the server's log; "" if nothing."""
        if not poll.wait_for(self.sampler):
            return "there is no sampler"
        errors = self.value("SELECT sampler_errors FROM pgnetlat_info")
        if errors != "0":
            return f"the sampler has met {errors} errors"
        wrong = self.value(
            "SELECT count(*) FROM pgnetlat_clients WHERE abs(total_time - exec_time - send_time - recv_time"
            " - network_time - client_time - idle_time - pending_time) > 0.01"
            " OR least(exec_time, send_time, recv_time, network_time, client_time, idle_time) < 0")
        if wrong != "0":
            return f"{wrong} accounts do not add up"
        found = re.search(r".*(PANIC|TRAP).*", self.log)
        return found.group(0) if found else ""

    def logged(self, text, since):
        return len(re.findall(text, self.log[since:]))


# ---------------------------------------------------------------------------
# Stopped and ended
# ---------------------------------------------------------------------------

def stop(pid):
    """Stop a process; False if it has ended meanwhile."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
    poll.wait_for(lambda: state(pid) == "T" or gone(pid))
    return state(pid) == "T"


def stop_and_go(stopped_pid):
    pid = poll.until(stopped_pid, "a process in state T of /proc")
    time.sleep(1)
    still = state(pid)
    os.kill(pid, signal.SIGCONT)
    if still != "T":
        raise NotSeen(f"it is in state {still}")
    seen(lambda: state(pid) != "T", "it goes on")
    return "it is in state T of /proc for a second"


def stopped(pid):
    return stop(pid) and pid


def stopped_loader(server):
    """A backend of the load, stopped, so that it does not end by itself; 0 if it has just done so."""
    return stopped(server.loader())


@fault("SIGSTOP of the sampler")
def sampler_stops(server):
    return stop_and_go(lambda: stopped(server.sampler()))


@fault("SIGSTOP of a backend")
def backend_stops(server):
    return stop_and_go(lambda: stopped_loader(server))


@fault("SIGSTOP of the postmaster")
def postmaster_stops(server):
    return stop_and_go(lambda: stopped(server.pid))


@fault("SIGSTOP of a client in the middle of a result, then kill -9")
def client_killed(server):
    since = len(server.log)
    query = "SELECT repeat('x', 1000) FROM generate_series(1, 10000000)"
    client = server.space.start([server.bindir / "psql", "-Xqc", query], stdout=subprocess.DEVNULL,
                                environment=server.environment(name="reader"))
    busy = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'reader' AND {}"
    poll.until(lambda: server.value(busy.format("state = 'active'")) == "1", "the client's statement")
    client.send_signal(signal.SIGSTOP)
    seen(lambda: state(client.pid) == "T", "the client is stopped")
    seen(lambda: server.value(busy.format("wait_event = 'ClientWrite'")) == "1", "its backend waits for it")
    server.space.stop(client, signal.SIGKILL)
    seen(lambda: server.value(busy.format("true")) == "0", "its backend ends")
    return seen(lambda: server.logged("connection to client lost|could not send data to client", since),
                "ClientWrite, then \"connection to client lost\" in the log")


@fault("the sampler is terminated")
def sampler_ends(server):
    before = server.sampler()
    server.sql(f"SELECT pg_terminate_backend({before})")
    seen(lambda: gone(before), "its process is gone")
    return seen(lambda: server.sampler() not in (0, before), "its process is gone, and another one is there")


def storm(server, function, message):
    """Call this function for all backends of the load until the log has its message 100 times."""
    since = len(server.log)
    calls = 0
    while server.logged(message, since) < 100:
        calls += int(server.value("SELECT count(*) FILTER (WHERE ended) FROM (SELECT "
                                  f"{function}(pid) AS ended FROM pg_stat_activity WHERE usename = 'load') AS one"))
        if calls > 100_000:
            raise NotSeen(f"{calls} calls of {function}, and {server.logged(message, since)} such lines")
    return f"the log has \"{message}\" {server.logged(message, since)} times"


@fault("backends are terminated, a hundred times")
def terminations(server):
    return storm(server, "pg_terminate_backend", "terminating connection due to administrator command")


@fault("statements are cancelled, a hundred times")
def cancellations(server):
    return storm(server, "pg_cancel_backend", "canceling statement due to user request")


def crash(server, pid):
    """Kill a process of a server, which then restarts all others."""
    since = len(server.log)
    os.kill(pid, signal.SIGKILL)
    seen(lambda: gone(pid), "it is gone")
    seen(lambda: server.logged(rf"\(PID {pid}\) was terminated by signal 9", since), "the log says so")
    seen(server.answers, "the server is back")
    return "the process is gone, and \"was terminated by signal 9\" in the log"


@fault("kill -9 of the sampler", SINCE_START)
def sampler_killed(server):
    return crash(server, server.sampler())


@fault("kill -9 of a backend", SINCE_START)
def backend_killed(server):
    return crash(server, poll.until(lambda: stopped_loader(server), "a backend"))


@fault("kill -9 of the postmaster", SINCE_START)
def postmaster_killed(server):
    pid, children = server.pid, [server.sampler(), *server.loaders()]
    server.stop(signal.SIGKILL)
    seen(lambda: gone(pid) and all(map(gone, children)), "all processes are gone")
    server.start()
    seen(lambda: "automatic recovery in progress" in server.log, "recovery")
    return "it and its processes are gone, and \"automatic recovery in progress\" in the log"


@fault("immediate shutdown", SINCE_START)
def immediate(server):
    since = len(server.log)
    server.stop(signal.SIGQUIT)
    server.start()
    return seen(lambda: server.logged("received immediate shutdown request", since), "the log says so")


# ---------------------------------------------------------------------------
# Switched
# ---------------------------------------------------------------------------

@fault("restart")
def restarted(server):
    before = server.pid
    server.stop()
    size = (server.data / "pg_stat/pgnetlat.stat").stat().st_size
    server.start()
    if server.pid == before:
        raise NotSeen("the same postmaster")
    return f"another postmaster, which has read a file of {size} bytes"


@fault("switched off and on, 10 times", "what happens while it is off")
def flipped(server):
    values = set()
    for _ in range(10):
        for value in ("off", "on"):
            server.sql(f"ALTER SYSTEM SET pgnetlat.enabled = {value}", "SELECT pg_reload_conf()")
            poll.until(lambda value=value: server.value("SHOW pgnetlat.enabled", PGOPTIONS="") == value, "a reload")
            values.add(value)
            time.sleep(0.05)
    return f"new sessions have seen {' and '.join(sorted(values))}"


@fault("DROP and CREATE EXTENSION, 5 times")
def recreated(server):
    oids = set()
    for _ in range(5):
        server.sql("DROP EXTENSION pgnetlat CASCADE", "CREATE EXTENSION pgnetlat")
        oids.add(server.value("SELECT oid FROM pg_extension WHERE extname = 'pgnetlat'"))
    if len(oids) != 5:
        raise NotSeen("the same extension")
    return "5 OIDs of the extension"


@fault("100 resets, 10 ms apart, and 4 readers", "what was counted before the last reset")
def resets(server):
    views = ("pgnetlat_sessions", "pgnetlat_clients", "pgnetlat_statements", "pgnetlat_diagnose()")
    read = [word for view in views for word in ("-c", f"SELECT count(*) FROM {view}")] * 20
    readers = [server.space.start([server.bindir / "psql", "-Xqv", "ON_ERROR_STOP=1", *read],
                                  environment=server.environment(PGOPTIONS="-c pgnetlat.enabled=off"),
                                  stdout=subprocess.DEVNULL) for _ in range(4)]
    rows = server.sql(*["SELECT pgnetlat_reset(), pg_sleep(0.01)"] * 100)
    moments = {row[0] for row in rows if row and row[0][:2] == "20"}
    if any(reader.wait(poll.PATIENCE) for reader in readers):
        raise NotSeen("a reader met an error")
    if len(moments) != 100:
        raise NotSeen(f"{len(moments)} resets")
    return "100 moments returned by pgnetlat_reset(), all different; no reader met an error"
