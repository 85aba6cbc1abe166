"""The accuracy suite's results: lines on the screen, and a table of all figures in a file."""

import csv
import dataclasses
import math

from harness.tally import FAIL, MISS, NOTE, OK

COLUMNS = ("scenario", "case", "figure", "truth", "shown", "unit", "goal", "allowed", "each", "note", "result")
LEAST = "at least"              # begins the goal of a bound
SHOWN = "shown"                 # the result of a figure without a goal


@dataclasses.dataclass
class Row:
    """One figure of a table that was saved; "truth" is the bound where the goal is one."""
    scenario: int
    case: str
    figure: str
    truth: float
    shown: float
    unit: str
    goal: str
    allowed: float
    each: int                   # number of exchanges or waits behind it
    note: str
    result: str

    @property
    def error(self):
        return abs(self.shown - self.truth)

    @property
    def met(self):
        return self.result == OK

    @property
    def is_bound(self):
        return self.goal.startswith(LEAST)


def save(path, results, environment):
    """Write all figures, one a line; what they were measured on comes first, as figures of no scenario."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        writer.writerow(COLUMNS)
        for name, value in environment.items():
            writer.writerow(["", "", name, "", "", "", "", "", "", value, SHOWN])
        for r in results:
            writer.writerow([r.scenario, r.case, r.quantity, exact(r.truth), exact(r.shown), r.unit, r.goal,
                             "" if not r.goal or r.goal.startswith(LEAST) or r.allowed is None else exact(r.allowed),
                             r.per, r.note, verdict(r) or SHOWN])


def load(path):
    """The rows of a file, and what they were measured on."""
    rows, environment = [], {}
    with path.open(newline="") as file:
        for line_ in csv.DictReader(file, delimiter="\t"):
            if not line_["scenario"]:
                environment[line_["figure"]] = line_["note"]
                continue
            for name in ("truth", "shown", "allowed"):
                line_[name] = float(line_[name] or "nan")
            for name in ("scenario", "each"):
                line_[name] = int(line_[name])
            rows.append(Row(**line_))
    return rows, environment


def exact(value):
    return "" if value is None or math.isnan(value) else f"{value:.9g}"


def verdict(result):
    """What counts; a figure without a goal is shown only."""
    return NOTE if not result.goal else OK if result.met else FAIL if result.failed else MISS


def line(result):
    """One result for the screen."""
    name = f"{result.scenario:2} {result.case}: {result.quantity}"
    if result.goal.startswith(LEAST):
        return f"{name}: {result.shown:.4g} {result.unit}, {result.goal}"
    if result.goal.endswith("bounds"):
        bounds = f" ({result.note})" if result.note else ""
        return f"{name}: {result.shown:.4g} {result.unit} predicted{bounds}, {result.truth:.4g} measured"
    return (f"{name}: truth {result.truth:.4g} shown {result.shown:.4g} {result.unit} ({percent(result)})"
            + (f" [{result.error * 1000 / result.per:+.1f} us each]" if result.per > 1 else ""))


def percent(result):
    if not result.truth or math.isnan(result.error):
        return f"{result.error:+.3g}" if result.error else "0"
    return f"{result.error / abs(result.truth) * 100:+.1f} %"
