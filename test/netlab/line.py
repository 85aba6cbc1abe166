"""The line between the client's namespace and the server's: a round trip, a rate, jitter, loss.

There are two of them, alike from outside.  Each ends in a device lab0 in either
namespace, at which packets are captured before the line delays them.

    Netem       the kernel's own, between two veth pairs in a namespace that forwards
    DelayLine   delayline.c, a process between two TUN devices

choose() takes netem if the kernel has it, unless told which one to take.
"""

import math
import os
import pathlib
import subprocess

from harness import network
from harness.workspace import Unavailable, require_program

HERE = pathlib.Path(__file__).resolve().parent
DEVICE = "lab0"

AUTO = "auto"
CHOICES = (AUTO, "netem", "delayline")

MTU = 1500


def choose(wanted=AUTO, netem_missing=None, delayline_missing=None):
    """The class of the line to use, and a sentence that says so.

    The other two arguments are functions that return why the one or the other is not
    available, or nothing; tests pass their own.  Raises Unavailable if there is no line,
    or not the one that is wanted.
    """
    netem = (netem_missing or Netem.missing)() if wanted != "delayline" else ""
    if wanted == "netem" and netem:
        raise Unavailable(f"no tc netem: {netem}")
    if wanted != "delayline" and not netem:
        return Netem, "the path is the kernel's netem"
    delayline = (delayline_missing or DelayLine.missing)()
    if delayline:
        raise Unavailable(delayline if wanted == "delayline" else f"no tc netem ({netem}), and {delayline}")
    return DelayLine, "the path is a process that delays packets" + (f" (no tc netem: {netem})" if netem else "")


def add_option(parser):
    parser.add_argument("--line", choices=CHOICES, default=AUTO,
                        help="what the path is made of: the kernel's netem, or a process of ours between TUN"
                        " devices; by default netem where the kernel has it")


class DelayLine:
    """The process; see delayline.c."""

    NAME = "TUN devices"

    @staticmethod
    def missing():
        try:
            require_program("cc")
            os.close(os.open("/dev/net/tun", os.O_RDWR))
        except Unavailable as reason:
            return str(reason)
        except FileNotFoundError:
            return "needs /dev/net/tun"
        except OSError as error:
            return f"/dev/net/tun cannot be opened: {error.strerror}"
        return ""

    def __init__(self, space, server, client, processor, spin="200us", log=False):
        """Between two namespaces; "processor" is its own, "log" whether it records the packets itself."""
        program = space.directory / "delayline"
        subprocess.run(["cc", "-O2", "-std=gnu11", "-o", program, HERE / "delayline.c"], check=True)
        command = ["taskset", "-c", processor, program, "--device", DEVICE, "--seed", 1, "--spin", spin,
                   "--server-ns", server.path, "--client-ns", client.path]
        if log:
            command += ["--log", space.directory / "delayline.pcap"]
        self.process = space.start(command, privileged=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   text=True, bufsize=1)
        self.process.stdout.readline()

    def connect(self, server, client, addresses):
        for namespace, address in zip((server, client), addresses):
            namespace.run("ip", "address", "add", f"{address}/24", "dev", DEVICE)
            # The device's own queue must not be what limits the path.
            namespace.run("ip", "link", "set", DEVICE, "up", "txqueuelen", "20000")

    def command(self, line):
        self.process.stdin.write(line + "\n")
        answer = self.process.stdout.readline().split()
        if not answer or answer[0] != "ok":
            raise RuntimeError(f"the delay line refuses: {line}")
        return dict(word.split("=") for word in answer[1:])

    def set(self, delay, rate, jitter, loss, queue, to_server=0):
        self.command(f"set both delay={delay * 1e9:.0f} rate={rate:.0f} "
                     f"jitter={jitter * 1e9:.0f} loss={loss} queue={queue}")
        if to_server:
            self.command(f"set up delay={(delay + to_server) * 1e9:.0f}")

    def poll_for(self, spin):
        """Poll for this long (such as "200us") before a packet is due."""
        self.command(f"spin {spin}")

    def statistics(self):
        """Its counts since the last call."""
        return {name: float(value) for name, value in self.command("stats").items()}


class Netem:
    """server -- lab0 === toserver, toclient === lab0 -- client, with netem where packets leave the middle.

    Not at lab0: packets would be captured there only when netem lets them go.
    """

    NAME = "veth devices with netem"

    # There must be a rate, because otherwise a packet with less jitter overtakes the one
    # before it; this one is too fast to delay anything.
    UNLIMITED = 100e9

    # Bytes of the Ethernet header, which the line does not count.
    HEADER = 14

    # The most packets that it holds; as many as the delay line.
    MOST = 65536

    @staticmethod
    def missing():
        """Why it is not available: tries what it needs in a namespace of its own."""
        try:
            require_program("tc", "ip", "unshare")
        except Unavailable as reason:
            return str(reason)
        attempt = subprocess.run(
            ["unshare", "-n", "sh", "-ec", "ip link add lab0 type veth peer name lab1\n"
             "tc qdisc add dev lab0 root " + " ".join(Netem.arguments(0.001, 0, 0, 0, 1 << 20)) + "\n"
             "echo 1 >/proc/sys/net/ipv4/ip_forward"], text=True, capture_output=True)
        if attempt.returncode == 0:
            return ""
        return (attempt.stderr.strip().splitlines() or ["it does not say why"])[0]

    @staticmethod
    def arguments(delay, rate, jitter, loss, queue):
        """The path's properties (seconds, bit/s, seconds, probability, bytes) in netem's words."""
        # A packet waits for the line, and then is on it; both count.
        held = Netem.MOST if not rate else math.ceil((queue + rate * (delay + jitter) / 8) / MTU)
        words = ["netem", "limit", str(min(max(held, 16), Netem.MOST)),
                 # its jitter goes both ways, ours adds only
                 "delay", f"{(delay + jitter / 2) * 1e6:.0f}us"]
        if jitter:
            words.append(f"{jitter / 2 * 1e6:.0f}us")
        if loss:
            words += ["loss", f"{loss * 100:g}%"]
        return words + ["rate", f"{rate or Netem.UNLIMITED:.0f}bit", str(-Netem.HEADER)]

    def __init__(self, space, server, client, processor=None, spin=None, log=False):
        self.middle = network.Namespace(space)
        self.middle.first_possible("net/ipv4/ip_forward", "1")
        for number, (end, namespace) in enumerate((("toserver", server), ("toclient", client))):
            self.middle.run("ip", "link", "add", end, "address", self.address(number, 0), "type", "veth",
                            "peer", "name", DEVICE, "address", self.address(number, 1), "netns", namespace.pid)
            self.middle.run("tc", "qdisc", "add", "dev", end, "root", *self.arguments(0, 0, 0, 0, 1 << 20))
            self.middle.run("ip", "link", "set", end, "up")

    @staticmethod
    def address(number, end):
        """The address of an end of a veth pair, chosen here so that it need not be looked up."""
        return f"02:00:00:00:{number:02x}:{end:02x}"

    def connect(self, server, client, addresses):
        for number, (end, namespace) in enumerate((("toserver", server), ("toclient", client))):
            here, there = addresses[number], addresses[1 - number]
            namespace.run("ip", "address", "add", f"{here}/32", "dev", DEVICE)
            # As on a real line, one packet is one segment.
            namespace.run("ip", "link", "set", DEVICE, "up", "gso_max_segs", "1")
            namespace.run("ip", "neighbour", "add", there, "lladdr", self.address(number, 0), "dev", DEVICE)
            namespace.run("ip", "route", "add", there, "dev", DEVICE, "src", here)
            self.middle.run("ip", "neighbour", "add", here, "lladdr", self.address(number, 1), "dev", end)
            self.middle.run("ip", "route", "add", here, "dev", end)

    def poll_for(self, spin):
        """The kernel does not poll."""

    def set(self, delay, rate, jitter, loss, queue, to_server=0):
        for end, more in (("toserver", to_server), ("toclient", 0)):
            self.middle.run("tc", "qdisc", "change", "dev", end, "root",
                            *self.arguments(delay + more, rate, jitter, loss, queue))
