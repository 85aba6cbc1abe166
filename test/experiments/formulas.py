"""What the experiments compute with: the articles' formulas, and how far off a prediction is.  Needs no server."""

import dataclasses
import math
import statistics

# pg_gather looks so often at the sessions, and says how many looks there were.
LOOK = 0.010
LOOKS = 2000


def database_time(throughput, clients, round_trip):
    """digoal's formula: what a transaction takes beside the path.  Milliseconds, transactions a second."""
    return 1000 * clients / throughput - round_trip


def throughput_by_hand(clients, database, round_trip):
    """The other way round: transactions a second over another path."""
    return 1000 * clients / (database + round_trip)


def net_delay(seen, looks):
    """pg_gather's Net/Delay*: looks that were expected to see the session active, less those that did.

    "seen" are the numbers of the looks that found it so, of "looks" in all.  What is before the first
    of them and after the last one is not expected.
    """
    if not seen or not looks:
        return 0
    return max((max(seen) - min(seen)) / looks * looks - len(seen), 0)


@dataclasses.dataclass
class Prediction:
    """What was predicted before, and what was measured after."""
    what: str
    predicted: float
    measured: float
    unit: str
    by: str = "pgnetlat_what_if"
    low: float = math.nan           # bounds
    high: float = math.nan

    @property
    def error(self):
        """As a share of what was measured."""
        return self.predicted / self.measured - 1

    @property
    def bounded(self):
        return not math.isnan(self.low + self.high)

    @property
    def within(self):
        return self.low <= self.measured <= self.high


@dataclasses.dataclass
class Quality:
    """How good many predictions are."""
    count: int
    median: float                   # of the errors without their signs
    ninth: float                    # their ninth decile
    within: float                   # share of those with bounds whose truth lies within them

    def said(self):
        """For a sentence."""
        return Quality(self.count, f"{100 * self.median:.1f} %", f"{100 * self.ninth:.0f} %", f"{100 * self.within:.0f} %")


def quality(predictions):
    errors = sorted(abs(p.error) for p in predictions)
    bounded = [p for p in predictions if p.bounded]
    return Quality(len(errors), statistics.median(errors), errors[math.ceil(0.9 * len(errors)) - 1],
                   sum(p.within for p in bounded) / max(len(bounded), 1))
