"""The laboratory: two network namespaces, a path between them, a server, captures.

    with Lab() as lab:
        lab.path(rtt=0.0005)
        with lab.capture("tun") as capture:
            client = lab.connect("tun")
            client.query("SELECT 1")
        ...capture.server and capture.client are pcap files

There are three ways ("paths") to the server: "tun" through the delay line,
"lo" over the loopback device, "unix" over the Unix-domain socket.

Namespaces belong to processes, so that nothing is left behind when those end;
the addresses exist in the namespaces only.  The server runs as an unprivileged
user in a temporary directory.  Everything started here is ended by its pid.
"""

import contextlib
import ctypes
import ctypes.util
import os
import pathlib
import pwd
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

import pgclient

HERE = pathlib.Path(__file__).resolve().parent
SERVER_ADDRESS = "10.99.0.1"
CLIENT_ADDRESS = "10.99.0.2"
PORT = 54329
POOLER_PORT = 64329
DEVICE = "lab0"
CLONE_NEWNET = 0x40000000
PR_SET_PDEATHSIG = 1

# For so many seconds a client waits for an answer; the longest scenario takes some ten.
PATIENCE = 60
SO_RCVBUFFORCE = 33

# The end of a conversation, beside its round trips.
CAPTURE_SETTLE = 0.05

_libc = ctypes.CDLL(None, use_errno=True)


class Unavailable(Exception):
    """The laboratory cannot be set up here; the text says why."""


def requirements():
    """Raise Unavailable if something that the laboratory needs is missing."""
    if os.geteuid() != 0:
        raise Unavailable("needs root, to create network namespaces")
    if not os.path.exists("/dev/net/tun"):
        raise Unavailable("needs /dev/net/tun")
    for program in ("ip", "nsenter", "unshare", "setpriv", "chrt", "taskset", "cc", "openssl"):
        if shutil.which(program) is None:
            raise Unavailable(f"needs the program {program}")
    if ctypes.util.find_library("pcap") is None:
        raise Unavailable("needs libpcap")
    if subprocess.run(["unshare", "-n", "true"], capture_output=True).returncode != 0:
        raise Unavailable("network namespaces cannot be created")
    try:
        os.close(os.open("/dev/net/tun", os.O_RDWR))
    except OSError as error:
        raise Unavailable(f"/dev/net/tun cannot be opened: {error.strerror}")


def require_extension():
    """Raise Unavailable if pgnetlat is not installed for the chosen PostgreSQL."""
    pg_config = os.environ.get("PG_CONFIG", "pg_config")
    if shutil.which(pg_config) is None:
        raise Unavailable(f"needs {pg_config}")
    directory = subprocess.run([pg_config, "--pkglibdir"], check=True, text=True,
                               capture_output=True).stdout.strip()
    if not os.path.exists(f"{directory}/pgnetlat.so"):
        raise Unavailable(f"pgnetlat is not installed in {directory}")


def server_user():
    """An unprivileged user to run the server as."""
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise Unavailable("there is no user postgres or nobody")


@contextlib.contextmanager
def in_namespace(pid):
    """Put the calling thread into the network namespace of a process."""
    with open("/proc/thread-self/ns/net") as here, open(f"/proc/{pid}/ns/net") as there:
        if _libc.setns(there.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")
        try:
            yield
        finally:
            _libc.setns(here.fileno(), CLONE_NEWNET)


def end_with_parent():
    """In a child: end when the suite ends, however that happens."""
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


class Capture:
    """pcap files of one measurement: the server's and the client's side."""

    def __init__(self, server, client):
        self.server = server
        self.client = client


class Lab:
    def __init__(self, settings=None, preload="pgnetlat", keep=False, spin="200us", awake=True):
        self.settings = settings or {}
        self.preload = preload
        self.keep = keep
        self.spin = spin
        self.awake = awake
        self.pg_config = os.environ.get("PG_CONFIG", "pg_config")
        self.processes = []
        self.captures = 0
        self.snapshots_prepared = False         # see measure.py
        self.rtt = 0.0
        self.pooler_port = POOLER_PORT

    # -- setting up and tearing down ------------------------------------------

    def __enter__(self):
        requirements()
        self.user = server_user()
        self.bindir = pathlib.Path(self._pg_config("--bindir"))
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="netlab."))
        self.directory.chmod(0o755)
        try:
            self._build_delayline()
            if self.awake:
                self._keep_processors_awake()
            self.server_ns = self._new_namespace()
            self.client_ns = self._new_namespace()
            self._start_delayline()
            self._start_server()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, *exc_info):
        for process in list(reversed(self.processes)):
            self.stop(process)
        if self.keep:
            print(f"kept: {self.directory}")
        else:
            shutil.rmtree(self.directory, ignore_errors=True)

    def stop(self, process, sig=None):
        """End one process that this laboratory started, and wait for it."""
        if process.poll() is None:
            process.send_signal(sig or getattr(process, "stop_signal", signal.SIGTERM))
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream:
                stream.close()
        if process in self.processes:
            self.processes.remove(process)

    def _pg_config(self, option):
        return subprocess.run([self.pg_config, option], check=True, text=True,
                              capture_output=True).stdout.strip()

    def _build_delayline(self):
        self.delayline_program = self.directory / "delayline"
        subprocess.run(["cc", "-O2", "-std=gnu11", "-o", self.delayline_program,
                        HERE / "delayline.c"], check=True)

    def _keep_processors_awake(self):
        """Occupy each processor with a process that gives way to every other.

        A halted virtual processor takes up to 0.1 ms to wake up, unevenly.  This
        is what booting with idle=poll would do, for the time of the test only.
        """
        for processor in sorted(os.sched_getaffinity(0)):
            self._popen(["chrt", "--idle", "0", "taskset", "-c", processor,
                         "sh", "-c", "while :; do :; done"])

    def _new_namespace(self):
        """A process that does nothing but hold a network namespace."""
        process = self._popen(["unshare", "-n", "sh", "-c", "echo; exec sleep infinity"],
                              stdout=subprocess.PIPE)
        process.stdout.readline()       # the namespace exists from here on
        self._ip(process.pid, "link", "set", "lo", "up")
        return process.pid

    def _popen(self, command, **kwargs):
        process = subprocess.Popen([str(word) for word in command], preexec_fn=end_with_parent, **kwargs)
        self.processes.append(process)
        return process

    def _ip(self, namespace, *words):
        subprocess.run(["nsenter", f"--net=/proc/{namespace}/ns/net", "ip", *words], check=True)

    def _start_delayline(self):
        self.delayline_log = self.directory / "delayline.pcap"
        # On a processor of its own: with its real-time priority it would displace the very
        # backend whose packet woke it up, in the middle of its system call.
        processors = sorted(os.sched_getaffinity(0))
        self.server_processors = ",".join(map(str, processors[:-1] or processors))
        command = ["taskset", "-c", processors[-1],
                   self.delayline_program, "--device", DEVICE, "--seed", 1, "--spin", self.spin,
                   "--server-ns", f"/proc/{self.server_ns}/ns/net",
                   "--client-ns", f"/proc/{self.client_ns}/ns/net"]
        if self.keep:
            command += ["--log", self.delayline_log]
        self.delayline = self._popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     text=True, bufsize=1)
        self.delayline.stdout.readline()
        for namespace, address in ((self.server_ns, SERVER_ADDRESS),
                                   (self.client_ns, CLIENT_ADDRESS)):
            self._ip(namespace, "address", "add", f"{address}/24", "dev", DEVICE)
            # The device's own queue must not be what limits the path.
            self._ip(namespace, "link", "set", DEVICE, "up", "txqueuelen", "20000")
            with in_namespace(namespace):
                # Paced algorithms add delays of their own; containers may allow reno only.
                self.congestion_control = self._first_possible(
                    "net/ipv4/tcp_congestion_control", "cubic", "reno")
                # Each connection starts afresh, whatever the one before met.
                self._first_possible("net/ipv4/tcp_no_metrics_save", "1")

    @staticmethod
    def _first_possible(sysctl, *values):
        """Set a kernel parameter of the thread's namespace to the first value that is accepted."""
        file = pathlib.Path("/proc/sys") / sysctl
        for value in values:
            with contextlib.suppress(OSError):
                file.write_text(value)
                break
        return file.read_text().strip()

    def as_user(self, command, namespace=None):
        """The command line that runs a command as the server's user."""
        prefix = [] if namespace is None else ["nsenter", f"--net=/proc/{namespace}/ns/net"]
        return prefix + ["setpriv", f"--reuid={self.user.pw_uid}", f"--regid={self.user.pw_gid}",
                         "--clear-groups", "--inh-caps=-all", "--pdeathsig=INT"] + [str(word) for word in command]

    def environment(self):
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith("PG")}
        environment.update(HOME=str(self.directory), LC_ALL="C.UTF-8", TZ="UTC")
        return environment

    def _start_server(self):
        home = self.directory / "server"
        home.mkdir()
        os.chown(home, self.user.pw_uid, self.user.pw_gid)
        self.data = home / "data"
        self.socket_directory = home
        subprocess.run(self.as_user([self.bindir / "initdb", "-D", self.data, "-U", "lab", "-A", "trust",
                                     "-E", "UTF8", "--locale=C", "--no-sync"]),
                       check=True, stdout=subprocess.DEVNULL, cwd=home, env=self.environment())
        self._make_certificate()
        settings = {
            "listen_addresses": f"{SERVER_ADDRESS},127.0.0.1",
            "port": PORT,
            "unix_socket_directories": home,
            "fsync": "off",
            "max_connections": 150,
            "autovacuum": "off",
            "jit": "off",
            "max_wal_size": "4GB",
            "ssl": "on",
            "log_min_messages": "warning",
        }
        if self.preload:
            settings["shared_preload_libraries"] = self.preload
        settings.update(self.settings)
        with open(self.data / "postgresql.conf", "a") as conf:
            conf.writelines(f"{name} = '{value}'\n" for name, value in settings.items())
        with open(self.data / "pg_hba.conf", "w") as hba:
            hba.write("local all all trust\nhost all all 127.0.0.1/32 trust\n"
                      "host all all 10.99.0.0/24 trust\n")
        self.server_log = home / "log"
        self.server = self._popen(
            ["taskset", "-c", self.server_processors]
            + self.as_user([self.bindir / "postgres", "-D", self.data], self.server_ns),
            cwd=home, stdout=open(self.server_log, "w"), stderr=subprocess.STDOUT,
            env=self.environment())
        self.server.stop_signal = signal.SIGINT         # "fast" shutdown
        self._wait_for_server()
        if self.preload:
            self._release_sampler()

    def _release_sampler(self):
        """Let pgnetlat's worker run on every processor.

        Confined to the backends' processor it would run only while they do not,
        and so see them wait more often than they do.
        """
        rows = self.admin.query("SELECT pid FROM pg_stat_activity WHERE backend_type LIKE 'pgnetlat%'")
        for pid, in rows:
            os.sched_setaffinity(int(pid), os.sched_getaffinity(0))

    def _make_certificate(self):
        key, certificate = self.data / "server.key", self.data / "server.crt"
        subprocess.run(self.as_user(["openssl", "req", "-new", "-x509", "-nodes", "-days", "2",
                                     "-subj", "/CN=netlab", "-keyout", key, "-out", certificate]),
                       check=True, capture_output=True)
        key.chmod(0o600)

    def _wait_for_server(self):
        deadline = time.monotonic() + 60
        while True:
            try:
                self.admin = self.connect("unix", application_name="netlab admin")
                return
            except (OSError, pgclient.ServerError):
                if self.server.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"the server does not start:\n{self.server_log.read_text()}")
                time.sleep(0.05)

    def kernel_parameter(self, name, value):
        """Set a network parameter on the server's side; the value that it had."""
        with in_namespace(self.server_ns):
            file = pathlib.Path("/proc/sys") / name
            before = file.read_text().strip()
            file.write_text(str(value))
        return before

    # -- the path ------------------------------------------------------------------

    def command(self, line):
        self.delayline.stdin.write(line + "\n")
        answer = self.delayline.stdout.readline().split()
        if not answer or answer[0] != "ok":
            raise RuntimeError(f"the delay line refuses: {line}")
        return dict(word.split("=") for word in answer[1:])

    def path(self, rtt, rate=0, jitter=0, loss=0, queue=1 << 20):
        """Give the path these properties (seconds, bit/s, probability, bytes), both ways alike."""
        self.rtt = rtt
        self.command(f"set both delay={rtt / 2 * 1e9:.0f} rate={rate:.0f} "
                     f"jitter={jitter * 1e9:.0f} loss={loss} queue={queue}")

    def path_statistics(self):
        """What the delay line counted since it was asked last."""
        return {name: float(value) for name, value in self.command("stats").items()}

    # -- clients -------------------------------------------------------------------

    def address(self, path):
        return {"tun": SERVER_ADDRESS, "lo": "127.0.0.1", "unix": str(self.socket_directory)}[path]

    def client_namespace(self, path):
        return self.client_ns if path == "tun" else self.server_ns

    def connect(self, path, database="postgres", user="lab", tls=False, port=PORT, **parameters):
        """A connection of the raw client, whose socket lives in the right namespace."""
        with in_namespace(self.client_namespace(path)):
            if path == "unix":
                sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                target = f"{self.socket_directory}/.s.PGSQL.{port}"
            else:
                sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                target = (self.address(path), port)
        receive_buffer = parameters.pop("receive_buffer", None)
        if receive_buffer:
            sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, receive_buffer)
        # A server that hangs must not hang the suite.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", PATIENCE, 0))
        sock.connect(target)
        return pgclient.Client(sock, user=user, database=database, tls=tls, **parameters)

    def client_environment(self, path, port=PORT, **extra):
        environment = self.environment()
        environment.update(PGHOST=self.address(path), PGPORT=str(port), PGUSER="lab",
                           PGDATABASE="postgres", PGSSLMODE="disable")
        environment.update(extra)
        return environment

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
            return self._popen(self.as_user(command, self.client_namespace(path)),
                               env=self.client_environment(path, port, **(environment or {})),
                               cwd=self.directory, **kwargs)

    def run(self, path, command, port=PORT, environment=None, **kwargs):
        """Run a client program to its end; its output as text."""
        result = subprocess.run(self.as_user(command, self.client_namespace(path)),
                                env=self.client_environment(path, port, **(environment or {})),
                                cwd=self.directory, text=True, capture_output=True, **kwargs)
        if result.returncode != 0:
            raise RuntimeError(f"{command[0]} failed:\n{result.stdout}{result.stderr}")
        return result.stdout

    def program(self, name):
        """One of PostgreSQL's own programs, from the same installation as the server."""
        return self.bindir / name

    def start_pgbouncer(self, pool_mode, **settings):
        """A pooler on the server's side, connected to the server over the loopback device."""
        directory = pathlib.Path(tempfile.mkdtemp(prefix="pgbouncer.", dir=self.directory))
        os.chown(directory, self.user.pw_uid, self.user.pw_gid)
        options = {"listen_addr": SERVER_ADDRESS, "listen_port": POOLER_PORT, "auth_type": "any",
                   "pool_mode": pool_mode, "unix_socket_dir": "", "max_client_conn": 200}
        options.update(settings)
        (directory / "ini").write_text(
            f"[databases]\n* = host=127.0.0.1 port={PORT} user=lab\n[pgbouncer]\n"
            + "".join(f"{name} = {value}\n" for name, value in options.items()))
        process = self._popen(self.as_user(["pgbouncer", "-q", directory / "ini"], self.server_ns),
                              stdout=open(directory / "log", "w"), stderr=subprocess.STDOUT,
                              env=self.environment())
        deadline = time.monotonic() + 10
        while True:
            try:
                with in_namespace(self.server_ns):
                    socket.create_connection((SERVER_ADDRESS, POOLER_PORT), timeout=1).close()
                return process
            except OSError:
                if time.monotonic() > deadline:
                    raise RuntimeError((directory / "log").read_text())
                time.sleep(0.05)

    # -- captures ------------------------------------------------------------------

    @contextlib.contextmanager
    def capture(self, path, port=PORT):
        """Record the packets of a path on both sides, with the kernels' timestamps."""
        self.captures += 1
        device = DEVICE if path == "tun" else "lo"
        sides = [("server", self.server_ns)]
        if path == "tun":
            sides.append(("client", self.client_ns))
        files = {side: self.directory / f"{self.captures}.{side}.pcap" for side, _ in sides}
        places = [word for side, namespace in sides
                  for word in (f"/proc/{namespace}/ns/net", device, files[side])]
        recorder = self._popen([sys.executable, "-I", HERE / "recorder.py", port, *places],
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
            recorder.stdin = None
            self.stop(recorder)
        if report != "complete\n":
            raise RuntimeError(f"the capture is incomplete: {report}")
