"""Code that several scenarios share."""

import contextlib
import time

import measure

MBIT = 1_000_000

# A queue so long that a slow line delays packets instead of dropping them.
DEEP_QUEUE = 16 << 20

# The most that a request takes in addition to the path and to thinking.
WORK = 0.0005

# With fewer requests there are no sums to speak of.
LEAST = 20


def label(rtt):
    return f"round trip {rtt * 1000:g} ms"


def ask(lab, results, path, iterations, request, think=0.0, setup=(), responses=1, required=True,
        constant_path=True, **connection):
    """One session that sends the same request again and again: less often if the machine is busy."""
    patience = 1 + 2 * iterations * (lab.rtt + think + WORK)
    with measure.Measurement(lab, path, setup=setup, **connection) as m:
        m.begin()
        until = time.monotonic() + patience
        for i in range(iterations):
            if i >= LEAST and time.monotonic() > until:
                break
            m.client.send(request)
            m.client.until_ready(responses)
            if think:
                measure.think(think)
        m.end()
    m.compare(results, required=required, constant_path=constant_path)
    return m


def program(lab, results, path, command, required=True, **options):
    """The sessions of a program; returns the ProgramMeasurement."""
    measurement = measure.ProgramMeasurement(lab, path, command, **options).run()
    measurement.compare(results, required=required)
    return measurement


@contextlib.contextmanager
def setting(lab, name, value):
    """Change a setting of the server for all sessions that begin from now on."""
    lab.admin.query(f"ALTER SYSTEM SET {name} = '{value}'")
    reload(lab)
    try:
        yield
    finally:
        lab.admin.query(f"ALTER SYSTEM RESET {name}")
        reload(lab)


def reload(lab):
    lab.admin.query("SELECT pg_reload_conf()")
    measure.think(0.3)
