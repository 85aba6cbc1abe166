"""Wait for a condition, with a deadline.

The condition is checked at least once, and once more when the time is over, because
the machine may have stood still for longer than that.
"""

import time

INTERVAL = 0.05         # seconds between two checks
PATIENCE = 120          # seconds until a condition counts as false


class TimedOut(Exception):
    """A condition has not become true; the text names it."""


def wait_for(condition, seconds=PATIENCE, interval=INTERVAL, clock=time.monotonic, sleep=time.sleep):
    """Return the first true value of condition(), or its last value if there is none in time."""
    deadline = clock() + seconds
    while True:
        last = clock() >= deadline
        value = condition()
        if value or last:
            return value
        sleep(interval)


def until(condition, what, seconds=PATIENCE, **options):
    """The same, but raise an error if it does not become true; "what" is a text, or returns one (such as a log)."""
    value = wait_for(condition, seconds, **options)
    if not value:
        raise TimedOut(f"not within {seconds:g} s: {what() if callable(what) else what}")
    return value
