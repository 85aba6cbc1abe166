"""Wait for what must become true, with a deadline.

A condition is asked at least once, and once more when the time is over: a
machine that stood still for longer than that has not shown that it is false.
"""

import time

INTERVAL = 0.05         # seconds between two looks
PATIENCE = 120          # seconds until something is said not to happen


class TimedOut(Exception):
    """It has not become true; the text says what."""


def wait_for(condition, seconds=PATIENCE, interval=INTERVAL, clock=time.monotonic, sleep=time.sleep):
    """What condition() returns once that is true; its last value if it never is."""
    deadline = clock() + seconds
    while True:
        last = clock() >= deadline
        value = condition()
        if value or last:
            return value
        sleep(interval)


def until(condition, what, seconds=PATIENCE, **options):
    """The same, where it must become true.  "what" is a text, or returns one (a log, say)."""
    value = wait_for(condition, seconds, **options)
    if not value:
        raise TimedOut(f"not within {seconds:g} s: {what() if callable(what) else what}")
    return value
