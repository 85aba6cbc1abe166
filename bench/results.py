"""The results of a bench: tables, verdicts on budgets, and what was skipped."""

import datetime
import json
import os
import pathlib
import platform
import subprocess
import sys

from harness import postgres
from harness.tally import FAIL, MISS, OK, OPEN, Tally


def number(value, digits=0):
    """A number as text, with spaces between thousands."""
    text = f"{value:,.{digits}f}".replace(",", " ")
    return "0" if text.strip("-0.") == "" else text


class Table:
    def __init__(self, title, head, detail):
        self.title = title
        self.head = head
        self.detail = detail
        self.rows = []
        self.notes = []

    def add(self, *cells):
        self.rows.append([str(cell) for cell in cells])

    def note(self, text):
        self.notes.append(text)

    def lines(self):
        """The table for a terminal."""
        rows = [self.head] + self.rows
        widths = [max(len(row[i]) for row in rows) for i in range(len(self.head))]
        lines = [self.title]
        for row in rows:
            cells = [row[0].ljust(widths[0])] + [c.rjust(w) for c, w in zip(row[1:], widths[1:])]
            lines.append("  " + "  ".join(cells).rstrip())
        return lines + [f"  {note}" for note in self.notes]


class Results:
    def __init__(self, bench):
        self.bench = bench
        self.tables = []
        self.verdicts = []
        self.skipped = []
        self.figures = {}       # for the page's first lines and its picture

    def figure(self, kind, name, key, value):
        """Keep a number, or a figure with its interval, beside the tables."""
        self.figures.setdefault(kind, {}).setdefault(name, {})[key] = value

    def table(self, title, head, detail=False):
        """A new table; one of details is printed on demand only."""
        table = Table(title, head, detail)
        self.tables.append(table)
        return table

    def judge(self, goal, value, limit, unit, of="", digits=0, required=True, note="", interval=None,
              ceiling=None):
        """Compare a figure with its budget; "of" says which figure it is, of several with the same goal.

        A miss fails the bench only if the figure is "required": one that does
        not depend on what else the machine does.  If the budget lies within
        the figure's interval, the verdict is open.  A budget that is known to
        be missed has a ceiling: it is reported as missed, and fails the bench
        if the figure exceeds the ceiling.
        """
        if ceiling is not None:
            required = required and value > ceiling
        met = value <= limit
        is_open = interval is not None and interval[0] <= limit < interval[1]
        self.verdicts.append({"goal": goal, "of": of, "value": value, "limit": limit, "unit": unit,
                              "digits": digits, "met": met and not is_open, "open": is_open,
                              "required": required, "note": note})

    def works(self, what):
        """A smoke test has finished; its figures mean nothing."""
        self.judge("smoke test", 0, 0, "", of=what, required=False)

    def skip(self, what, why):
        self.skipped.append({"what": what, "why": why})

    def finish(self, file=None, details=False):
        """Print everything and write it into a file for bench/report; return the exit status."""
        for table in self.tables:
            if details or not table.detail:
                print("\n" + "\n".join(table.lines()))
        print()
        if file:
            file.write_text(json.dumps(self.as_dict()))
        return tell(self.verdicts, self.skipped)

    def as_dict(self):
        options = sys.argv[1:]
        if "--json" in options:
            at = options.index("--json")
            del options[at:at + 2]
        return {"bench": self.bench, "command": " ".join([f"bench/{self.bench}", *options]),
                "load": os.getloadavg()[1], "about": environment(),
                "tables": [vars(table) for table in self.tables],
                "verdicts": self.verdicts, "skipped": self.skipped, "figures": self.figures}


def mark(verdict):
    return (OK if verdict["met"] else OPEN if verdict["open"] else
            FAIL if verdict["required"] else MISS)


def verdict_text(verdict):
    name = f"{verdict['goal']}, {verdict['of']}" if verdict["of"] else verdict["goal"]
    return f"{name}: {value_text(verdict)} (budget {limit_text(verdict)}, {margin_text(verdict)})"


def margin_text(verdict):
    """By how much of the budget it is met or missed."""
    if not verdict["limit"]:
        return "met" if verdict["met"] else "missed"
    margin = (1 - verdict["value"] / verdict["limit"]) * 100
    if abs(margin) < 0.5:
        return "just met" if verdict["met"] else "just missed"
    return f"{abs(margin):.0f} % {'below' if margin > 0 else 'above'}"


def value_text(verdict):
    unit = f" {verdict['unit']}" if verdict["unit"] else ""
    note = f" {verdict['note']}" if verdict["note"] else ""
    return number(verdict["value"], verdict["digits"]) + unit + note


def limit_text(verdict):
    unit = f" {verdict['unit']}" if verdict["unit"] else ""
    limit = verdict["limit"]
    return f"{number(limit, 0 if limit == int(limit) else 2)}{unit}"


def tell(verdicts, skipped, crashed=()):
    """Print the verdicts of a bench, or of all; return the exit status."""
    tally = Tally()
    for verdict in verdicts:
        tally.add(mark(verdict), verdict_text(verdict))
    for one in skipped:
        tally.skip(one["what"], one["why"])
    for bench in crashed:
        tally.add(FAIL, bench, "it did not finish")
    return tally.finish(missed="budgets missed that depend on the machine, or are known to be missed",
                        undecided="budgets undecided: use more pairs, or a calmer machine")


def environment():
    """When and where it was."""
    return {
        "date": datetime.date.today().isoformat(),
        "processors": len(os.sched_getaffinity(0)),
        "model": first_match("/proc/cpuinfo", "model name"),
        "virtual": "a virtual machine" if "hypervisor" in first_match("/proc/cpuinfo", "flags")
                   else "no hypervisor seen",
        "memory": round(int(first_match("/proc/meminfo", "MemTotal").split()[0]) / 2**20),
        # the numbers only: what a distributor or a cloud appends says nothing here
        "kernel": platform.release().split("-")[0],
        "valgrind": output("valgrind", "--version"),
        "version": output(postgres.config("--bindir") + "/postgres", "--version"),
    }


def first_match(path, key):
    """The value of the first line "key : value" of a file in /proc."""
    for line in pathlib.Path(path).read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == key:
            return value.strip()
    return "unknown"


def output(*command):
    try:
        return subprocess.run(command, check=True, text=True, capture_output=True).stdout.strip()
    except OSError:
        return f"no {command[0]}"
