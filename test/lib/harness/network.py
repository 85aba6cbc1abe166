"""Network namespaces.

    server = network.Namespace(space)
    server.run("ip", "link", "set", "lo", "up")
    with server.entered():
        sock = socket.socket()              # belongs to it for good

A namespace belongs to a process that does nothing but hold it, so that nothing
is left behind when that ends.  Needs root.
"""

import contextlib
import ctypes
import os
import pathlib
import subprocess

from harness.workspace import Failed, Unavailable, require_program

CLONE_NEWNET = 0x40000000

_libc = ctypes.CDLL(None, use_errno=True)


def require_namespaces():
    """Raise Unavailable if namespaces cannot be made here."""
    if os.geteuid() != 0:
        raise Unavailable("needs root, to create network namespaces")
    require_program("ip", "nsenter", "unshare")
    if subprocess.run(["unshare", "-n", "true"], capture_output=True).returncode != 0:
        raise Unavailable("network namespaces cannot be created")


class Namespace:
    def __init__(self, space):
        holder = space.start(["unshare", "-n", "sh", "-c", "echo; exec sleep infinity"], privileged=True,
                             stdout=subprocess.PIPE)
        holder.stdout.readline()            # it exists from here on
        self.pid = holder.pid
        self.path = f"/proc/{self.pid}/ns/net"
        self.prefix = ["nsenter", f"--net={self.path}"]     # of a command that is to run in it
        self.run("ip", "link", "set", "lo", "up")

    def run(self, *words):
        """Run a command in it as root; returns its output."""
        result = subprocess.run([*self.prefix, *map(str, words)], text=True, capture_output=True)
        if result.returncode != 0:
            raise Failed(f"{' '.join(map(str, words))}: {result.stderr.strip()}")
        return result.stdout

    @contextlib.contextmanager
    def entered(self):
        """Put the calling thread into it."""
        with open("/proc/thread-self/ns/net") as here, open(self.path) as there:
            if _libc.setns(there.fileno(), CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "setns")
            try:
                yield
            finally:
                _libc.setns(here.fileno(), CLONE_NEWNET)

    def first_possible(self, parameter, *values):
        """Set a kernel parameter to the first of these values that is accepted; returns that."""
        with self.entered():
            file = pathlib.Path("/proc/sys") / parameter
            for value in values:
                with contextlib.suppress(OSError):
                    file.write_text(value)
                    break
            return file.read_text().strip()

    def replace(self, parameter, value):
        """Set a kernel parameter; returns its old value."""
        with self.entered():
            file = pathlib.Path("/proc/sys") / parameter
            before = file.read_text().strip()
            file.write_text(str(value))
        return before
