"""What callgrind counted in one process: instructions and calls by function.

A Profile can be subtracted and divided, so that the profile of one exchange
is that of a long run minus that of a short one, divided by the difference of
their lengths: what happens once (start-up, caches, plans) cancels out.
"""

import collections
import pathlib
import re

# The C library's functions that read a clock.  Valgrind hides the vDSO, so that
# each of them is a system call and costs a few instructions only.
CLOCK_READS = re.compile(r"^(__)?(clock_gettime|gettimeofday|time)(_syscall)?(@.*)?$")

# Not counted, some 170 instructions: whether the next request has arrived when
# the server asks for it is a matter of chance.
READ_FUNCTION = "secure_read"

# Symbols that PostgreSQL does not export have only an address where its
# debugging symbols are not installed.
ADDRESS = re.compile(r"^0x[0-9a-f]+$")


class Profile:
    """Counts by (object, function) and by (caller, callee), each of those a pair."""

    def __init__(self):
        self.instructions = 0
        self.self_cost = collections.Counter()
        self.calls = collections.Counter()
        self.inclusive = collections.Counter()      # of the calls

    @classmethod
    def read(cls, path):
        profile = cls()
        _Reader(profile).read(path)
        profile.instructions = sum(profile.self_cost.values()) - profile._spent_in(READ_FUNCTION)
        return profile

    def _spent_in(self, name):
        """Instructions in a function and all that it calls."""
        return sum(cost for (_, (_, called)), cost in self.inclusive.items() if called == name)

    def per(self, other, units):
        """(self - other) / units"""
        result = Profile()
        result.instructions = (self.instructions - other.instructions) / units
        for name in ("self_cost", "calls", "inclusive"):
            mine, theirs, target = (getattr(p, name) for p in (self, other, result))
            for key in mine.keys() | theirs.keys():
                if mine[key] != theirs[key]:
                    target[key] = (mine[key] - theirs[key]) / units
        return result

    def clock_reads(self):
        """Calls of the C library's clock functions, from outside the C library."""
        return sum(count for ((caller, _), (_, name)), count in self.calls.items()
                   if CLOCK_READS.match(name) and not _is_libc(caller))

    def clock_readers(self, library):
        """The functions of a library that read the clock, and how often each does."""
        readers = collections.Counter()
        for ((caller, function), (_, name)), count in self.calls.items():
            if caller == library and (CLOCK_READS.match(name) or name == "GetCurrentTimestamp"):
                readers[function] += count
        return readers

    def functions(self, library):
        """Instructions in a library's own functions."""
        return collections.Counter({function: cost for (obj, function), cost
                                    in self.self_cost.items() if obj == library})

    def helpers(self, library):
        """Calls of a library to functions elsewhere that exist only because of the library.

        Functions that it wraps are left out: the server's standard_* functions,
        and the socket's, which have no symbol.
        """
        helpers = {}
        for ((caller, function), (obj, name)), count in self.calls.items():
            if caller != library or obj == library:
                continue
            if name.startswith("standard_") or ADDRESS.match(name):
                continue
            cost = self.inclusive[((caller, function), (obj, name))]
            helpers[(function, name)] = (count, cost)
        return helpers


def _is_libc(obj):
    return obj.startswith(("libc.so", "libc-", "ld-linux"))


class _Reader:
    """The file format is described in valgrind's manual, "Callgrind Format Specification"."""

    NAME = re.compile(r"^(\w+)=\((\d+)\)(?: (.*))?$")

    def __init__(self, profile):
        self.profile = profile
        self.names = {"ob": {}, "fn": {}}
        self.obj = self.function = self.called_obj = self.called = ""

    def read(self, path):
        calls = None
        with open(path, errors="replace") as file:
            for line in file:
                first = line[0]
                if first.isdigit() or first in "+-*":
                    cost = int(line.split()[1])
                    if calls is None:
                        self.profile.self_cost[(self.obj, self.function)] += cost
                    else:
                        edge = ((self.obj, self.function), (self.called_obj, self.called))
                        self.profile.calls[edge] += calls
                        self.profile.inclusive[edge] += cost
                        calls, self.called_obj = None, self.obj
                elif line.startswith("calls="):
                    calls = int(line[6:].split()[0])
                elif "=(" in line:
                    self._position(line.rstrip("\n"))

    def _position(self, line):
        match = self.NAME.match(line)
        if not match:
            return
        kind, number, name = match.groups()
        if kind == "ob":
            self.obj = self.called_obj = self._object(number, name)
        elif kind == "cob":
            self.called_obj = self._object(number, name)
        elif kind == "fn":
            self.function = self._name("fn", number, name)
        elif kind == "cfn":
            self.called = self._name("fn", number, name)

    def _object(self, number, name):
        return self._name("ob", number, name and pathlib.PurePath(name).name)

    def _name(self, kind, number, name):
        if name is not None:
            # 'function'2 is a level of recursion
            self.names[kind][number] = name.split("'")[0]
        return self.names[kind][number]
