"""Records the packets of some devices, each into a pcap file, until its standard input ends.

    recorder.py PORT NAMESPACE DEVICE FILE [NAMESPACE DEVICE FILE ...]

Like tcpdump, with the kernel's timestamps in nanoseconds, but complete: the kernel
hands packets over in blocks, and tcpdump does not wait for the last ones when it is
stopped.  Here a block is handed over after BLOCK_MS at the latest, and the end waits
for as many packets as the kernel has counted.  Prints "ready" when it records, and at
the end "complete", or else what is missing.
"""

import ctypes
import ctypes.util
import os
import select
import sys
import time

CLONE_NEWNET = 0x40000000

SNAPSHOT_LENGTH = 262144        # the loopback device's packets are larger than 64 kB with their headers
BUFFER_BYTES = 64 << 20
BLOCK_MS = 50
TIMESTAMP_PRECISION_NANO = 1
NETMASK_UNKNOWN = 0xFFFFFFFF

# Packets that have not come by then are lost.
PATIENCE = 20.0


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_uint), ("instructions", ctypes.c_void_p)]


class Statistics(ctypes.Structure):
    _fields_ = [("received", ctypes.c_uint), ("dropped", ctypes.c_uint), ("dropped_by_device", ctypes.c_uint)]


def library():
    """libpcap, with the types of the functions that return pointers."""
    pcap = ctypes.CDLL(ctypes.util.find_library("pcap"))
    for name in ("pcap_create", "pcap_dump_open", "pcap_geterr"):
        getattr(pcap, name).restype = ctypes.c_void_p
    return pcap


class Recording:
    """One device."""

    def __init__(self, pcap, namespace, device, file, port):
        self.pcap = pcap
        self.device = device
        self.dispatched = 0
        with open(namespace) as there:
            if ctypes.CDLL(None).setns(there.fileno(), CLONE_NEWNET) != 0:
                sys.exit(f"setns: {namespace}")
        error = ctypes.create_string_buffer(256)
        self.handle = ctypes.c_void_p(pcap.pcap_create(device.encode(), error))
        if not self.handle:
            sys.exit(f"{device}: {error.value.decode()}")
        for option, value in (("snaplen", SNAPSHOT_LENGTH), ("buffer_size", BUFFER_BYTES),
                              ("timeout", BLOCK_MS), ("tstamp_precision", TIMESTAMP_PRECISION_NANO)):
            self.check(getattr(pcap, f"pcap_set_{option}")(self.handle, value))
        self.check(pcap.pcap_activate(self.handle))
        program = Program()
        self.check(pcap.pcap_compile(self.handle, ctypes.byref(program), f"tcp port {port}".encode(), 1,
                                     ctypes.c_uint(NETMASK_UNKNOWN)))
        self.check(pcap.pcap_setfilter(self.handle, ctypes.byref(program)))
        self.check(pcap.pcap_setnonblock(self.handle, 1, error))
        self.dumper = ctypes.c_void_p(pcap.pcap_dump_open(self.handle, file.encode()))
        if not self.dumper:
            self.check(-1)
        self.callback = ctypes.cast(pcap.pcap_dump, ctypes.c_void_p)
        self.descriptor = pcap.pcap_get_selectable_fd(self.handle)
        # Packets that came before there was a filter are counted, but thrown away.
        self.before = self.statistics().received

    def check(self, result):
        if result < 0:
            text = ctypes.string_at(self.pcap.pcap_geterr(self.handle)).decode()
            sys.exit(f"{self.device}: {text or result}")
        return result

    def statistics(self):
        result = Statistics()
        self.check(self.pcap.pcap_stats(self.handle, ctypes.byref(result)))
        return result

    def dispatch(self):
        """Write the packets that the kernel has handed over."""
        self.dispatched += self.check(self.pcap.pcap_dispatch(self.handle, -1, self.callback, self.dumper))

    def taken(self):
        """How many packets the kernel has taken and will hand over."""
        statistics = self.statistics()
        taken = statistics.received - statistics.dropped - self.before
        # On the loopback device the kernel takes each packet twice, and the library leaves one of them out.
        return taken // 2 if self.device == "lo" else taken

    def close(self, taken):
        """The problem with the recording, of which the kernel has taken this many packets; or nothing."""
        missing, dropped = taken - self.dispatched, self.statistics().dropped
        self.pcap.pcap_dump_close(self.dumper)
        self.pcap.pcap_close(self.handle)
        return [f"{self.device}: {missing} packets missing, {dropped} dropped"] if missing > 0 or dropped else []


def main():
    port, places = sys.argv[1], sys.argv[2:]
    pcap = library()
    recordings = [Recording(pcap, *place, port) for place in zip(places[::3], places[1::3], places[2::3])]
    descriptors = [recording.descriptor for recording in recordings]
    print("ready", flush=True)
    while 0 not in select.select([0, *descriptors], [], [])[0] or os.read(0, 4096):
        for recording in recordings:
            recording.dispatch()
    # Later packets do not count.
    taken = [recording.taken() for recording in recordings]
    until = time.monotonic() + PATIENCE
    while any(recording.dispatched < due for recording, due in zip(recordings, taken)) \
            and time.monotonic() < until:
        select.select(descriptors, [], [], BLOCK_MS / 1000)
        for recording in recordings:
            recording.dispatch()
    faults = [fault for recording, due in zip(recordings, taken) for fault in recording.close(due)]
    print("; ".join(faults) or "complete")


if __name__ == "__main__":
    main()
