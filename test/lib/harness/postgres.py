"""Private PostgreSQL servers, of the installation that PG_CONFIG chooses.

    with Workspace("test") as space:
        server = postgres.Server(space, settings={"shared_preload_libraries": "pgnetlat"})
        server.initialise()
        with server:                            # starts it, and ends it by its process ID
            server.sql("CREATE EXTENSION pgnetlat")
            (count,), = server.rows("SELECT count(*) FROM pg_class")

A server listens on a socket in the workspace's directory, and nowhere else
unless its settings say so.  Its log is NAME.log there.
"""

import contextlib
import csv
import io
import os
import pathlib
import shutil
import signal
import subprocess

from harness import poll
from harness.workspace import Failed, Unavailable

PORT = 5432                 # names the socket; the directory is private

# Nothing here has to survive a crash of the machine.
SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
}


def config(option):
    """The output of pg_config."""
    program = os.environ.get("PG_CONFIG", "pg_config")
    if shutil.which(program) is None:
        raise Unavailable(f"needs {program}")
    return subprocess.run([program, option], check=True, text=True, capture_output=True).stdout.strip()


def bindir():
    """The directory of the server and its programs."""
    found = pathlib.Path(config("--bindir"))
    if not (found / "postgres").exists():
        raise Unavailable(f"there is no server in {found}")
    return found


def require_library(*names):
    """Raise Unavailable if a library that can be preloaded is not installed."""
    directory = config("--pkglibdir")
    for name in names:
        if not os.path.exists(f"{directory}/{name}.so"):
            raise Unavailable(f"{name} is not installed for the PostgreSQL in {directory}")


def setting_lines(settings):
    """Settings as lines of postgresql.conf."""
    def quoted(value):
        return "'" + str(value).replace("'", "''") + "'"

    return "".join(f"{name} = {quoted(value)}\n" for name, value in settings.items())


class Server:
    """A data directory, and while it is started the process that serves it.

    "host" and "port" are where clients find it; the socket's directory, unless a
    host is named.  "prefix" is put before what changes the user (to enter a
    namespace), "wrapper" before the server's own command line (a debugger); both
    must end by becoming what follows.
    """

    def __init__(self, space, name="server", settings=None, superuser="postgres", host=None, port=PORT,
                 prefix=(), wrapper=()):
        self.space = space
        self.name = name
        self.data = space.directory / name
        self.bindir = bindir()
        self.settings = {"unix_socket_directories": space.directory, **SETTINGS, **(settings or {})}
        self.superuser = superuser
        self.host = host or space.directory
        self.port = port
        self.prefix = prefix
        self.wrapper = wrapper
        self.process = None

    # -- its life -------------------------------------------------------------------

    def initialise(self, template=None):
        """Make the data directory, or copy that of a server that is not running."""
        if template:
            self.space.run(["cp", "-a", template.data, self.data])
        else:
            self.space.run([self.bindir / "initdb", "-D", self.data, "-U", self.superuser, "-A", "trust",
                            "-E", "UTF8", "--locale=C", "--no-sync"])
        self.configure(self.settings)
        return self

    def configure(self, settings):
        """Change settings, from the next start on."""
        with open(self.data / "postgresql.conf", "a") as file:
            file.write(setting_lines(settings))

    def start(self, *options, free_port=False):
        """Start it with further command-line options, and wait until it is ready.

        If it listens on an address that others use as well, it gets a free port.
        """
        if free_port:
            self.process, self.port = self.space.serve(
                self.name, lambda port: self._command(port, options),
                lambda process, port: self._ready(process), prefix=self.prefix, stop=signal.SIGINT)
            return self
        self.process = self.space.start(self._command(self.port, options), log=self.name, prefix=self.prefix,
                                        stop=signal.SIGINT)     # "fast" shutdown
        started = poll.wait_for(lambda: self.process.poll() is not None or self._ready(self.process))
        if not started or self.process.poll() is not None:
            self.stop()
            raise Failed(f"the server does not start:\n{self.log}")
        return self

    def _command(self, port, options):
        return [*self.wrapper, self.bindir / "postgres", "-D", self.data, "-p", port, *options]

    def _ready(self, process):
        """Whether it is ready, without connecting, which leaves traces and may reach another server."""
        with contextlib.suppress(OSError, IndexError, ValueError):
            lines = (self.data / "postmaster.pid").read_text().splitlines()
            # until this server overwrites it, the first line may be of one that was killed
            return int(lines[0]) == process.pid and lines[7].strip() == "ready"
        return False

    def stop(self, sig=None):
        """End it, by default with a "fast" shutdown."""
        if self.process:
            self.space.stop(self.process, sig)
            self.process = None

    def __enter__(self):
        return self.start()

    def __exit__(self, *exc_info):
        self.stop()

    @property
    def pid(self):
        return self.process.pid

    @property
    def log(self):
        return self.space.log(self.name)

    # -- its clients ----------------------------------------------------------------

    def environment(self, database="postgres", user=None, name=None, **extra):
        """The environment by which libpq finds it; "name" is the application's."""
        if name is not None:
            extra["PGAPPNAME"] = name
        return self.space.environment(PGHOST=str(self.host), PGPORT=str(self.port), PGUSER=user or self.superuser,
                                      PGDATABASE=database, PGCONNECT_TIMEOUT=str(poll.PATIENCE), **extra)

    def program(self, name, /, *arguments, **environment):
        """Run one of PostgreSQL's client programs; returns its output."""
        return self.space.run([self.bindir / name, *arguments], environment=self.environment(**environment))

    def sql(self, *statements, **environment):
        """Run statements in one session; rows as lists of text, the columns' names first.

        NULL is an empty text.
        """
        arguments = [word for statement in statements for word in ("-c", statement)]
        output = self.program("psql", "-Xq", "--csv", "-v", "ON_ERROR_STOP=1", *arguments, **environment)
        return list(csv.reader(io.StringIO(output)))

    def rows(self, query, **environment):
        """The rows of one query, without the names."""
        return self.sql(query, **environment)[1:]

    def value(self, query, **environment):
        """The single value that a query returns, as text."""
        (found,), = self.rows(query, **environment)
        return found
