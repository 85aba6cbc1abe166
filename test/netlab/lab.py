"""The laboratory: two network namespaces, a path between them, a server, captures.

    with Lab() as lab:
        lab.path(rtt=0.0005)
        with lab.capture("tun") as capture:
            client = lab.connect("tun")
            client.query("SELECT 1")
        ...capture.server and capture.client are pcap files

There are three ways ("paths") to the server: "tun" through the line,
"lo" over the loopback device, "unix" over the Unix-domain socket.

The addresses exist in the namespaces only.  The server runs as an unprivileged
user in a temporary directory; how all of this is ended: harness.workspace.
"""

import contextlib
import ctypes.util
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

from harness import network, pgclient, poll, postgres, workspace

import line

HERE = pathlib.Path(__file__).resolve().parent
SERVER_ADDRESS = "10.99.0.1"
CLIENT_ADDRESS = "10.99.0.2"
PORT = 54329
POOLER_PORT = 64329
PROXY_PORT = 64330

# Time for the end of a conversation, in addition to its round trips.
CAPTURE_SETTLE = 0.05

# How many seconds a client program may take to end.
PATIENCE = 20

SETTINGS = {
    "listen_addresses": f"{SERVER_ADDRESS},127.0.0.1",
    "max_connections": 150,
    "autovacuum": "off",
    "jit": "off",
    "max_wal_size": "4GB",
    "ssl": "on",
    "log_min_messages": "warning",
}


def requirements():
    """Raise Unavailable if something that the laboratory needs is missing."""
    network.require_namespaces()
    workspace.require_program("setpriv", "chrt", "taskset", "cc", "openssl")
    postgres.require_library("pgnetlat")
    if ctypes.util.find_library("pcap") is None:
        raise workspace.Unavailable("needs libpcap")


class Capture:
    """pcap files of one measurement: the server's and the client's side."""

    def __init__(self, server, client):
        self.server = server
        self.client = client


class Lab:
    def __init__(self, settings=None, preload="pgnetlat", keep=False, spin="200us", awake=True, wanted_line=line.AUTO,
                 hba="", tls_keys=False):
        """
        "hba" are lines of pg_hba.conf before the others; "tls_keys": the server writes its keys down (see tls.py).
        """
        self.space = workspace.Workspace("lab", keep)
        self.keep = keep
        self.settings = settings or {}
        self.preload = preload
        self.spin = spin
        self.awake = awake
        self.wanted_line = wanted_line
        self.hba = hba
        self.tls_keys = tls_keys
        self.captures = 0
        self.rtt = 0.0
        self.pooler_port = POOLER_PORT
        self.proxy_port = PROXY_PORT

    # -- setting up and tearing down ------------------------------------------

    def __enter__(self):
        requirements()
        line_class, about = line.choose(self.wanted_line)
        self.directory = self.space.__enter__().directory
        try:
            if self.awake:
                self._keep_processors_awake()
            self.server_ns = network.Namespace(self.space)
            self.client_ns = network.Namespace(self.space)
            self._start_line(line_class)
            self._start_server()
        except BaseException as error:
            self.__exit__(type(error))
            raise
        print(f"# {about}", flush=True)
        return self

    def __exit__(self, kind=None, *exc_info):
        self.space.__exit__(kind, *exc_info)

    def _keep_processors_awake(self):
        """Occupy each processor with a process that gives way to every other.

        A halted virtual processor takes up to 0.1 ms to wake up, unevenly.  This
        is what booting with idle=poll would do, for the time of the test only.

        Where the kernel shares processors among sessions (autogroups), each session
        would get its share, however little its processes ask for: these have one of
        their own, which is nice.
        """
        for processor in sorted(os.sched_getaffinity(0)):
            process = self.space.start(["chrt", "--idle", "0", "taskset", "-c", processor,
                                        "sh", "-c", "while :; do :; done"], privileged=True, start_new_session=True)
            with contextlib.suppress(OSError):
                pathlib.Path(f"/proc/{process.pid}/autogroup").write_text("19")

    def _start_line(self, line_class):
        # On a processor of its own: with its real-time priority it would displace the very
        # backend whose packet woke it up, in the middle of its system call.
        processors = sorted(os.sched_getaffinity(0))
        self.server_processors = ",".join(map(str, processors[:-1] or processors))
        self.line = line_class(self.space, self.server_ns, self.client_ns, processors[-1], self.spin, self.keep)
        self.line.connect(self.server_ns, self.client_ns, (SERVER_ADDRESS, CLIENT_ADDRESS))
        for namespace in (self.server_ns, self.client_ns):
            # Paced algorithms add delays of their own; containers may allow reno only.
            self.congestion_control = namespace.first_possible("net/ipv4/tcp_congestion_control", "cubic", "reno")
            # A connection must not start from what the previous one learned about the path.
            namespace.first_possible("net/ipv4/tcp_no_metrics_save", "1")

    def _start_server(self):
        settings = {**SETTINGS, **({"shared_preload_libraries": self.preload} if self.preload else {}),
                    **self.settings}
        self.server = postgres.Server(self.space, settings=settings, superuser="lab", port=PORT,
                                      prefix=[*self.server_ns.prefix, "taskset", "-c", self.server_processors],
                                      wrapper=self._keylog())
        self.server.initialise()
        self._make_certificate()
        with open(self.server.data / "pg_hba.conf", "w") as hba:
            hba.write(self.hba + "local all all trust\nhost all all 127.0.0.1/32 trust\n"
                      "host all,replication all 10.99.0.0/24 trust\n")
        self.server.start()
        self.bindir = self.server.bindir
        self.connect_admin()
        if self.preload:
            self._release_sampler()

    def _keylog(self):
        """The prefix of the server's command line that makes it write its TLS keys down."""
        if not self.tls_keys:
            return ()
        library = self.directory / "keylog.so"
        self.key_file = self.directory / "tls.keys"
        subprocess.run(["cc", "-O2", "-std=gnu11", "-shared", "-fPIC", "-o", library, HERE / "keylog.c"], check=True)
        return ("env", f"LD_PRELOAD={library}", f"SSLKEYLOGFILE={self.key_file}")

    def _release_sampler(self):
        """Let pgnetlat's worker run on every processor.

        Confined to the backends' processor it would run only while they do not,
        and so see them wait more often than they do.
        """
        rows = self.admin.query("SELECT pid FROM pg_stat_activity WHERE backend_type LIKE 'pgnetlat%'")
        for pid, in rows:
            os.sched_setaffinity(int(pid), os.sched_getaffinity(0))

    def _make_certificate(self):
        key, certificate = self.server.data / "server.key", self.server.data / "server.crt"
        self.space.run(["openssl", "req", "-new", "-x509", "-nodes", "-days", "2", "-subj", "/CN=netlab",
                        "-keyout", key, "-out", certificate])
        key.chmod(0o600)

    def kernel_parameter(self, name, value):
        """Set a network parameter on the server's side; returns its old value."""
        return self.server_ns.replace(name, value)

    # -- the path ------------------------------------------------------------------

    @contextlib.contextmanager
    def all_processors(self):
        """Give backends that begin now, and clients, the line's processor as well.

        Packets are late by the time that it takes to wake the line up.
        """
        everywhere = os.sched_getaffinity(0)
        own = os.sched_getaffinity(self.server.pid)
        self.line.poll_for("0us")
        os.sched_setaffinity(self.server.pid, everywhere)
        try:
            yield
        finally:
            os.sched_setaffinity(self.server.pid, own)
            self.line.poll_for(self.spin)

    def path(self, rtt, rate=0, jitter=0, loss=0, queue=1 << 20, to_server=0):
        """Give the path these properties (seconds, bit/s, probability, bytes), both ways alike.

        "to_server" is the additional delay of packets to the server.
        """
        self.rtt = rtt
        self.line.set(rtt / 2, rate, jitter, loss, queue, to_server)

    # -- clients -------------------------------------------------------------------

    def address(self, path):
        return {"tun": SERVER_ADDRESS, "lo": "127.0.0.1", "unix": str(self.directory)}[path]

    def client_namespace(self, path):
        return self.client_ns if path == "tun" else self.server_ns

    def connect(self, path, database="postgres", user="lab", tls=False, port=PORT, **parameters):
        """A connection of the raw client, whose socket lives in the right namespace."""
        with self.client_namespace(path).entered():
            target = f"{self.directory}/.s.PGSQL.{port}" if path == "unix" else (self.address(path), port)
            return pgclient.connect(target, user=user, database=database, tls=tls, **parameters)

    def connect_admin(self):
        """A new connection for queries about the others."""
        self.snapshots_prepared = False         # see measure.py
        self.admin = self.connect("unix", application_name="netlab admin")

    def client_environment(self, path, port=PORT, **extra):
        return self.space.environment(**{"PGHOST": self.address(path), "PGPORT": str(port), "PGUSER": "lab",
                                         "PGDATABASE": "postgres", "PGSSLMODE": "disable", **extra})

    @contextlib.contextmanager
    def apart(self, path):
        """Keep the calling thread, a client, off the backends' processors where no path lies between.

        A client that is woken up on the backend's own processor takes it away in
        the middle of the system call that woke it up, and 30 us of the client
        count as the server's (measured; 1 us on another processor).
        """
        everywhere = os.sched_getaffinity(0)
        if path != "tun":
            os.sched_setaffinity(0, {max(everywhere)})
        try:
            yield
        finally:
            os.sched_setaffinity(0, everywhere)

    def start(self, path, command, port=PORT, environment=None, **kwargs):
        """Start a client program on the right side of a path."""
        with self.apart(path):
            return self.space.start(command, prefix=self.client_namespace(path).prefix,
                                    environment=self.client_environment(path, port, **(environment or {})), **kwargs)

    def stop(self, process):
        """End a program that was started here, and wait for it."""
        self.space.stop(process, patience=PATIENCE)

    def run(self, path, command, port=PORT, environment=None, **kwargs):
        """Run a client program to its end; its output as text."""
        return self.space.run(command, prefix=self.client_namespace(path).prefix,
                              environment=self.client_environment(path, port, **(environment or {})), **kwargs)

    def program(self, name):
        """One of PostgreSQL's own programs, from the same installation as the server."""
        return self.bindir / name

    def start_pgbouncer(self, pool_mode, **settings):
        """A pooler on the server's side, connected to the server over the loopback device."""
        directory = self.space.own(pathlib.Path(tempfile.mkdtemp(prefix="pgbouncer.", dir=self.directory)))
        options = {"listen_addr": SERVER_ADDRESS, "listen_port": POOLER_PORT, "auth_type": "any",
                   "pool_mode": pool_mode, "unix_socket_dir": "", "max_client_conn": 200}
        options.update(settings)
        (directory / "ini").write_text(
            f"[databases]\n* = host=127.0.0.1 port={PORT} user=lab\n[pgbouncer]\n"
            + "".join(f"{name} = {value}\n" for name, value in options.items()))
        log = directory.relative_to(self.directory) / "pgbouncer"
        process = self.space.start(["pgbouncer", "-q", directory / "ini"], prefix=self.server_ns.prefix, log=log)
        self._await_listener("pgbouncer", POOLER_PORT, log)
        return process

    def start_haproxy(self):
        """A proxy of TCP connections on the server's side, likewise."""
        directory = self.space.own(pathlib.Path(tempfile.mkdtemp(prefix="haproxy.", dir=self.directory)))
        (directory / "cfg").write_text(
            "defaults\n  mode tcp\n  timeout connect 5s\n  timeout client 60s\n  timeout server 60s\n"
            f"listen postgresql\n  bind {SERVER_ADDRESS}:{PROXY_PORT}\n  server s 127.0.0.1:{PORT}\n")
        log = directory.relative_to(self.directory) / "haproxy"
        process = self.space.start(["haproxy", "-db", "-f", directory / "cfg"], prefix=self.server_ns.prefix, log=log)
        self._await_listener("haproxy", PROXY_PORT, log)
        return process

    def _await_listener(self, name, port, log):
        def listens():
            with contextlib.suppress(OSError), self.server_ns.entered():
                socket.create_connection((SERVER_ADDRESS, port), timeout=1).close()
                return True

        poll.until(listens, lambda: f"{name} listens\n{self.space.log(log)}", 10)

    # -- captures ------------------------------------------------------------------

    @contextlib.contextmanager
    def capture(self, path, port=PORT):
        """Record the packets of a path on both sides, with the kernels' timestamps."""
        self.captures += 1
        device = line.DEVICE if path == "tun" else "lo"
        sides = [("server", self.server_ns)]
        if path == "tun":
            sides.append(("client", self.client_ns))
        files = {side: self.directory / f"{self.captures}.{side}.pcap" for side, _ in sides}
        places = [word for side, namespace in sides for word in (namespace.path, device, files[side])]
        recorder = self.space.start([sys.executable, "-I", HERE / "recorder.py", port, *places], privileged=True,
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        capture = Capture(files["server"], files.get("client", files["server"]))
        try:
            if recorder.stdout.readline() != "ready\n":
                raise RuntimeError("packets cannot be recorded")
            yield capture
            time.sleep(CAPTURE_SETTLE + 2 * self.rtt)
        finally:
            recorder.stdin.close()
            report = recorder.stdout.read()
            self.space.stop(recorder)
        if report != "complete\n":
            raise RuntimeError(f"the capture is incomplete: {report}")
