"""The result of a test or a bench: one line for each check, and one at the end.

    ok   WHAT                   right
    FAIL WHAT: WHY              wrong
    miss WHAT                   wrong, but noise can cause that: no failure
    open WHAT                   undecided
    skipped: WHAT: WHY          cannot be checked here

The last line is "N passed, N failed, N skipped", which scripts/test looks for.
Only failures make the exit status 1.
"""

import collections
import traceback

from harness import poll

OK, FAIL, MISS, OPEN, SKIPPED = "ok", "FAIL", "miss", "open", "skipped"
NOTE = ""               # a figure that is not checked

LONGEST = 2000          # text of a reason


def line(verdict, what):
    """The line of a check, or of a figure that is shown beside the checks."""
    return f"{verdict:4} {what}"


class Tally:
    def __init__(self):
        self.counts = collections.Counter()

    @property
    def failed(self):
        return self.counts[FAIL]

    def add(self, verdict, what, why=""):
        """Count one check, and print its line."""
        self.count(verdict)
        print(line(verdict, f"{what}: {why[:LONGEST]}" if why else what), flush=True)

    def count(self, verdict, number=1):
        """Count without printing a line, for callers that print their own."""
        self.counts[verdict] += number

    def check(self, what, problem):
        """Count a check, which is right if there is no problem: None, "" or []."""
        if not problem:
            self.add(OK, what)
        elif isinstance(problem, str):
            self.add(FAIL, what, problem)
        else:
            self.add(FAIL, what, "; ".join(map(str, problem)))

    def eventually(self, what, problem, seconds=poll.PATIENCE, interval=0.5):
        """The same for the value of problem(), polled until there is none."""
        found = []

        def solved():
            found[:] = [problem()]
            return not found[0]

        poll.wait_for(solved, seconds, interval)
        self.check(what, found[0])

    def broken(self, what, why="could not be measured"):
        """A check has ended with the exception that is being handled."""
        self.add(FAIL, what, why)
        print(traceback.format_exc(), end="", flush=True)

    def skip(self, *what):
        """Something cannot be checked here; the last argument is the reason."""
        self.count(SKIPPED)
        print(f"skipped: {': '.join(map(str, what))}", flush=True)

    def finish(self, missed="", undecided=""):
        """Print the last line and return the exit status; the texts explain misses and undecided checks."""
        for verdict, text in ((OPEN, undecided), (MISS, missed)):
            if text and self.counts[verdict]:
                print(f"{self.counts[verdict]} {text}")
        print(f"{self.counts[OK]} passed, {self.failed} failed, {self.counts[SKIPPED]} skipped", flush=True)
        return 1 if self.failed else 0
