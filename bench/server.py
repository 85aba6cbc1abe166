"""PostgreSQL servers for the benches: an unprivileged user, a temporary directory.

    with Cluster() as cluster:
        with cluster.server(preload="pg_stat_statements") as server:
            server.pgbench("-S", "-t", "1000")

A cluster is initialised once, with pgbench's tables in it; each server gets
its own copy of the data directory, so that configurations are compared on
equal terms.  Servers listen on a Unix-domain socket only and are ended by pid.
PG_CONFIG chooses the PostgreSQL installation.
"""

import contextlib
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import tempfile
import time

# Nothing in the background may disturb a measurement.
SETTINGS = {
    "listen_addresses": "",
    "max_connections": 100,
    "shared_buffers": "128MB",
    "fsync": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "jit": "off",
    "max_parallel_workers_per_gather": 0,
    "checkpoint_timeout": "1d",
    "max_wal_size": "4GB",
    "log_connections": "on",
    "log_line_prefix": "%p ",
    "log_statement": "none",
}

START_TIMEOUT = 120             # seconds; a server under valgrind starts slowly
STOP_TIMEOUT = 120


class Unavailable(Exception):
    """The bench cannot run here; the text says why."""


def pg_config(option):
    program = os.environ.get("PG_CONFIG", "pg_config")
    if shutil.which(program) is None:
        raise Unavailable(f"needs {program}")
    return subprocess.run([program, option], check=True, text=True,
                          capture_output=True).stdout.strip()


def require_library(name):
    """Raise Unavailable if a library that can be preloaded is not installed."""
    directory = pg_config("--pkglibdir")
    if not os.path.exists(f"{directory}/{name}.so"):
        raise Unavailable(f"{name} is not installed for this PostgreSQL")


def require_program(name):
    if shutil.which(name) is None:
        raise Unavailable(f"needs the program {name}")


def server_user():
    """Who runs the server: the caller, or for root somebody else."""
    if os.geteuid() != 0:
        return pwd.getpwuid(os.geteuid())
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise Unavailable("there is no user postgres or nobody to run the server as")


class Cluster:
    def __init__(self, pgbench_tables=True):
        self.pgbench_tables = pgbench_tables
        self.copies = 0

    def __enter__(self):
        self.user = server_user()
        self.bindir = pathlib.Path(pg_config("--bindir"))
        if not (self.bindir / "postgres").exists():
            raise Unavailable(f"there is no server in {self.bindir}")
        if os.geteuid() == 0:
            require_program("setpriv")
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="pgnetlat-bench."))
        self.directory.chmod(0o755)
        os.chown(self.directory, self.user.pw_uid, self.user.pw_gid)
        try:
            self.template = self.directory / "template"
            self.run_as_user([self.bindir / "initdb", "-D", self.template, "-U", "bench",
                              "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"])
            if self.pgbench_tables:
                with Server(self, self.template, "", {}, None) as server:
                    server.pgbench("-i", "-q", "-s", "1")
                    server.sql("VACUUM FREEZE")
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, *exc_info):
        shutil.rmtree(self.directory, ignore_errors=True)

    def server(self, preload="", settings=None, wrapper=None):
        """A server on a fresh copy of the data; "wrapper" is put before its command line."""
        self.copies += 1
        data = self.directory / f"data{self.copies}"
        self.run_as_user(["cp", "-a", self.template, data])
        return Server(self, data, preload, settings or {}, wrapper)

    def scratch(self, name):
        """A directory that the server can write to."""
        path = self.directory / name
        path.mkdir()
        os.chown(path, self.user.pw_uid, self.user.pw_gid)
        return path

    def as_user(self, command):
        """The command line that runs a command as the server's user."""
        words = [str(word) for word in command]
        if os.geteuid() != 0:
            return words
        return ["setpriv", f"--reuid={self.user.pw_uid}", f"--regid={self.user.pw_gid}",
                "--clear-groups", "--inh-caps=-all"] + words

    def environment(self, **extra):
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith("PG")}
        environment.update(HOME=str(self.directory), LC_ALL="C.UTF-8", TZ="UTC",
                           PGHOST=str(self.directory), PGUSER="bench", PGDATABASE="postgres")
        environment.update(extra)
        return environment

    def run_as_user(self, command, environment=None):
        """Run a program to its end; what it printed."""
        result = subprocess.run(self.as_user(command), env=environment or self.environment(),
                                cwd=self.directory, text=True, capture_output=True)
        if result.returncode != 0:
            raise RuntimeError(f"{command[0]} failed:\n{result.stdout}{result.stderr}")
        return result.stdout


class Server:
    def __init__(self, cluster, data, preload, settings, wrapper):
        self.cluster = cluster
        self.data = data
        self.wrapper = wrapper or []
        self.settings = dict(SETTINGS, unix_socket_directories=cluster.directory,
                             shared_preload_libraries=preload, **settings)

    def __enter__(self):
        self.log = pathlib.Path(f"{self.data}.log")
        command = [*self.wrapper, self.cluster.bindir / "postgres", "-D", self.data]
        for name, value in self.settings.items():
            command += ["-c", f"{name}={value}"]
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(self.cluster.as_user(command),
                                            cwd=self.cluster.directory, stdout=log,
                                            stderr=subprocess.STDOUT,
                                            env=self.cluster.environment())
        try:
            self._wait_until_ready()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, *exc_info):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)         # "fast" shutdown
            try:
                self.process.wait(STOP_TIMEOUT)
            except subprocess.TimeoutExpired:
                self.process.send_signal(signal.SIGQUIT)    # "immediate"
                self.process.wait()
        if self.data != self.cluster.template:
            shutil.rmtree(self.data, ignore_errors=True)

    def _wait_until_ready(self):
        deadline = time.monotonic() + START_TIMEOUT
        while "database system is ready to accept connections" not in self.log.read_text():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the server does not start:\n{self.log.read_text()}")
            time.sleep(0.05)

    def program(self, name, *arguments, **environment):
        """Run one of PostgreSQL's client programs; what it printed."""
        return self.cluster.run_as_user([self.cluster.bindir / name, *arguments],
                                        self.cluster.environment(**environment))

    def pgbench(self, *arguments, **environment):
        return self.program("pgbench", *arguments, **environment)

    def sql(self, *statements):
        """Run statements in one session; the result's rows as lists of text."""
        arguments = [word for statement in statements for word in ("-c", statement)]
        output = self.program("psql", "-XAtq", "-F", "\x1f", "-v", "ON_ERROR_STOP=1", *arguments)
        return [line.split("\x1f") for line in output.splitlines()]

    def backends(self, application_name):
        """The process IDs of all connections that had this application_name."""
        marker = f" application_name={application_name}"
        return [int(line.split()[0]) for line in self.log.read_text().splitlines()
                if line.split(" (")[0].endswith(marker)]


def wait_for_exit(pid, timeout=60):
    """Wait until a process is gone."""
    deadline = time.monotonic() + timeout
    while os.path.exists(f"/proc/{pid}"):
        if time.monotonic() > deadline:
            raise RuntimeError(f"process {pid} does not end")
        time.sleep(0.01)
