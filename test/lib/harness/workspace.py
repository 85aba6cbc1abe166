"""A temporary directory, and the processes in it.

    with Workspace("bench") as space:
        space.run(["cp", "-a", one, other])             # waits, and returns the output
        program = space.start(["pgbench", ...])         # in the background
        space.stop(program)

Processes run as an unprivileged user: the caller, or, for root, "postgres" or
"nobody" (PostgreSQL refuses to run as root).  What was started is ended by its
process ID when the block is left, in the reverse order and however it is left.
Should this process be killed outright, the kernel ends its children: each asks
for that signal (PR_SET_PDEATHSIG).

The directory is removed; its logs, the files *.log, stay behind if the block is
left with an exception, or "failed" has been set.
"""

import contextlib
import ctypes
import os
import pathlib
import pwd
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import threading

from harness import poll

PR_SET_PDEATHSIG = 1
QUIT_PATIENCE = 10          # ... after it had to be told twice
PORT_ATTEMPTS = 5

_libc = ctypes.CDLL(None, use_errno=True)


class Unavailable(Exception):
    """Something that is needed is missing; the text names it."""


class Failed(RuntimeError):
    """A program has failed; the text is its output."""


def require_program(*names):
    """Raise Unavailable if one of these programs is not in the path."""
    for name in names:
        if shutil.which(name) is None:
            raise Unavailable(f"needs the program {name}")


def unprivileged_user(*names):
    """The user who runs servers: the caller, or for root the first of these, "postgres" and "nobody" that exists."""
    if os.geteuid() != 0:
        return pwd.getpwuid(os.geteuid())
    for name in filter(None, (*names, "postgres", "nobody")):
        with contextlib.suppress(KeyError):
            user = pwd.getpwnam(name)
            if user.pw_uid != 0:
                return user
    raise Unavailable("there is no user postgres or nobody to run servers as")


def free_port():
    """A free port, below those that the kernel gives to connections."""
    while True:
        port = random.randrange(10000, 20000)
        with socket.socket() as s, contextlib.suppress(OSError):
            s.bind(("127.0.0.1", port))
            return port


def alive(pid):
    """Whether a process exists, of any user."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


@contextlib.contextmanager
def undisturbed():
    """Block signals, so that the clean-up in the block is complete."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_IGN)
              for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Workspace:
    def __init__(self, name, keep=False, user=None):
        self.name = name
        self.keep = keep
        self.failed = False
        self.user = user or unprivileged_user()
        self.processes = []

    # -- setting up and tearing down ------------------------------------------------

    def __enter__(self):
        if os.geteuid() == 0:
            require_program("setpriv")
        # a short name, for the sake of sockets
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix=f"pgnetlat-{self.name}."))
        self.directory.chmod(0o755)
        self.own(self.directory)
        return self

    def __exit__(self, kind, *exc_info):
        # a program that cannot run here, or is told to end, has not failed
        if kind is not None and issubclass(kind, Exception) and not issubclass(kind, Unavailable):
            self.failed = True
        self.close()

    def close(self):
        with undisturbed():
            for process in list(reversed(self.processes)):
                self.stop(process)
            if self.keep:
                print(f"kept: {self.directory}", flush=True)
            elif self.failed and self._leave_logs():
                print(f"logs: {self.directory}", flush=True)
            else:
                shutil.rmtree(self.directory, ignore_errors=True)

    def _leave_logs(self):
        """Remove everything but logs that are not empty; returns whether there is one."""
        for directory, _, files in os.walk(self.directory, topdown=False):
            for name in files:
                path = os.path.join(directory, name)
                if not name.endswith(".log") or os.path.islink(path) or os.path.getsize(path) == 0:
                    os.unlink(path)
            with contextlib.suppress(OSError):      # it is not empty, or a socket is in it
                os.rmdir(directory)
        return self.directory.exists()

    # -- files ----------------------------------------------------------------------

    def own(self, path):
        """Give a file to the user."""
        if os.geteuid() == 0:
            os.chown(path, self.user.pw_uid, self.user.pw_gid)
        return path

    def write(self, name, text):
        """A file of the user's."""
        path = self.directory / name
        path.write_text(text)
        return self.own(path)

    def scratch(self, name):
        """A directory of the user's."""
        path = self.directory / name
        path.mkdir()
        return self.own(path)

    def log(self, name):
        """The output of the processes with this name."""
        return (self.directory / f"{name}.log").read_text(errors="replace")

    # -- processes ------------------------------------------------------------------

    def environment(self, **extra):
        """The caller's environment, without variables that lead PostgreSQL's programs to another server."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        environment.update(HOME=str(self.directory), LC_ALL="C.UTF-8", TZ="UTC")
        environment.update(extra)
        return environment

    def as_user(self, command, stop=signal.SIGTERM):
        """The command line that runs a command as the user; "stop" is its signal if its parent dies."""
        words = [str(word) for word in command]
        if os.geteuid() != 0:
            return words
        return ["setpriv", f"--reuid={self.user.pw_uid}", f"--regid={self.user.pw_gid}", "--clear-groups",
                "--inh-caps=-all", f"--pdeathsig={signal.Signals(stop).name[3:]}", *words]

    def run(self, command, prefix=(), environment=None, **options):
        """Run a program; returns its output.  "prefix" is put before the command that changes the user."""
        result = subprocess.run([*map(str, prefix), *self.as_user(command)], cwd=self.directory, text=True,
                                env=self.environment() if environment is None else environment,
                                capture_output=True, **options)
        if result.returncode != 0:
            raise Failed(f"{command[0]} failed ({result.returncode}):\n{result.stdout}{result.stderr}")
        return result.stdout

    def start(self, command, prefix=(), environment=None, log=None, privileged=False, stop=signal.SIGTERM,
              **options):
        """Start a program in the background.

        "log" names the file NAME.log that it writes to; "stop" is the signal that
        ends it.  A "privileged" one runs as the caller.
        """
        words = [str(word) for word in command] if privileged else self.as_user(command, stop)

        def end_with_parent():
            _libc.prctl(PR_SET_PDEATHSIG, stop)

        options.setdefault("cwd", self.directory)
        with contextlib.ExitStack() as stack:
            if log:
                file = stack.enter_context(open(self.directory / f"{log}.log", "ab"))
                options.update(stdout=file, stderr=subprocess.STDOUT)
            process = subprocess.Popen([*map(str, prefix), *words], preexec_fn=end_with_parent,
                                       env=self.environment() if environment is None else environment, **options)
        process.stop_signal = stop
        self.processes.append(process)
        return process

    def serve(self, name, command, ready, **options):
        """Start command(port) at a free port; the process and the port, once ready(process, port).

        If another process has taken the port in the meantime, it is started again at
        another port.
        """
        for _ in range(PORT_ATTEMPTS):
            port = free_port()
            process = self.start(command(port), log=name, **options)
            started = poll.wait_for(lambda: process.poll() is not None or ready(process, port))
            if started and process.poll() is None:
                return process, port
            self.stop(process)
        raise Failed(f"{name} does not start:\n{self.log(name)}")

    def close_input(self, process):
        """End a process that reads its standard input to the end, and wait for it."""
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(poll.PATIENCE)
        self.stop(process)

    def stop(self, process, sig=None, patience=poll.PATIENCE):
        """End a process that was started here, with increasing force, and wait for it."""
        for number, seconds in ((sig or process.stop_signal, patience), (signal.SIGQUIT, QUIT_PATIENCE),
                                (signal.SIGKILL, None)):
            if process.poll() is None:
                process.send_signal(number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(seconds)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        if process in self.processes:
            self.processes.remove(process)
