"""What several scenarios share."""

import contextlib

import measure

MBIT = 1_000_000

# A generous queue: a slow line that delays, instead of one that drops.
DEEP_QUEUE = 16 << 20

ATTEMPTS = 3


def label(rtt):
    return f"round trip {rtt * 1000:g} ms"


def attempt(results, body):
    """Run a case again if it failed while the machine was visibly disturbed.

    body(results) returns a Measurement or a ProgramMeasurement.  Whether there was a disturbance is
    judged from packets and system calls, never from what pgnetlat shows.
    """
    for number in range(ATTEMPTS):
        own = measure.Results(results.tally)
        own.scenario, own.case = results.scenario, results.case
        measurement = body(own)
        if not any(r.failed for r in own) or not measurement.disturbed():
            break
    results.extend(own)
    return measurement


def ask(lab, results, path, iterations, request, think=0.0, setup=(), responses=1, required=True,
        constant_path=True, **connection):
    """One session that sends the same request again and again."""
    def body(own):
        with measure.Measurement(lab, path, setup=setup, **connection) as m:
            m.begin()
            for _ in range(iterations):
                m.client.send(request)
                m.client.until_ready(responses)
                if think:
                    measure.think(think)
            m.end()
        m.compare(own, required=required, constant_path=constant_path)
        return m
    return attempt(results, body)


def program(lab, results, path, command, required=True, **options):
    """The sessions of a program; returns the ProgramMeasurement."""
    def body(own):
        measurement = measure.ProgramMeasurement(lab, path, command, **options).run()
        measurement.compare(own, required=required)
        return measurement
    return attempt(results, body)


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
