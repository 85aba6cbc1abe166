"""Time that the hypervisor takes from the machine.

A virtual machine shares its processors.  The hypervisor takes them away at any
moment, and the kernel counts that time as the running process's.  The kernel reports
the sum over all processes.
"""

import os
import pathlib
import time

STAT = pathlib.Path("/proc/stat")
STEAL = 8                       # its column in the line of all processors: proc(5)


def stolen_time(text=None):
    """Seconds that the hypervisor has taken since boot, of all processors together."""
    line = (text or STAT.read_text(encoding="ascii")).partition("\n")[0].split()
    return int(line[STEAL]) / os.sysconf("SC_CLK_TCK") if len(line) > STEAL else 0.0


class Theft:
    """The part of the processors' time that is taken while something is measured."""

    def __init__(self):
        self.taken, self.began = stolen_time(), time.monotonic()

    def share(self):
        elapsed = time.monotonic() - self.began
        return (stolen_time() - self.taken) / elapsed / os.cpu_count() if elapsed > 0 else 0.0
