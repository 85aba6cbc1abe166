"""Compiles loadgen.c and runs it against a server."""

import collections
import contextlib
import pathlib
import subprocess

from harness import poll, postgres, workspace

SOURCE = pathlib.Path(__file__).resolve().parent / "loadgen.c"

# Times in seconds; "cpu" is the processor time of the backends, p50 to p99 are response times.
Slice = collections.namedtuple("Slice", "number side start end responses cpu p50 p95 p99")


def build(cluster):
    """The compiled program."""
    workspace.require_program("cc")
    program = cluster.directory / "loadgen"
    include, library = postgres.config("--includedir"), postgres.config("--libdir")
    result = subprocess.run(["cc", "-O2", "-Wall", "-Wextra", "-o", program, SOURCE, f"-I{include}",
                             f"-L{library}", f"-Wl,-rpath,{library}", "-lpq"],
                            text=True, capture_output=True)
    if result.returncode != 0:
        raise workspace.Unavailable(f"loadgen.c cannot be compiled: {result.stderr.strip()}")
    return program


def slices(server, program, clients, pairs, length, a, b, seed):
    """Run pairs of slices with sides A and B; "length" in seconds."""
    output = server.space.run([program, "-c", clients, "-n", 2 * pairs, "-t", length * 1000,
                               "-a", a, "-b", b, "-s", seed], environment=server.environment())
    found = []
    for line in output.splitlines():
        number, side, start, end, responses, *times = line.split()
        found.append(Slice(int(number), side, int(start) / 1e9, int(end) / 1e9, int(responses),
                           *(int(time) / 1e9 for time in times)))
    return found


def steady(server, program, clients, rate):
    """Connections that are idle, or run "rate" queries a second in all, while the block runs."""
    return running(server, [program, "-c", clients] + (["-r", rate] if rate else ["-i"]))


@contextlib.contextmanager
def executing(server, program, clients, query):
    """Connections that all execute a query that does not end, while the block runs."""
    with running(server, [program, "-c", clients, "-x", "-q", query]):
        yield
    server.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'loadgen'")
    poll.until(lambda: server.value("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'loadgen'") == "0",
               "an end of the load")


def waking_up(server, program, interval):
    """A process that wakes up at this interval (ms) and does nothing, while the block runs."""
    return running(server, [program, "-z", interval])


@contextlib.contextmanager
def running(server, command):
    """The load generator's process, while the block runs."""
    process = server.space.start(command, environment=server.environment(), text=True,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        if process.stdout.readline() != "ready\n":
            raise RuntimeError("the load generator does not start")
        yield process
    finally:
        server.space.close_input(process)
