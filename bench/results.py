"""What a bench found: tables, verdicts on budgets, what was skipped."""

import json
import os
import sys

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
        self.figures = {}       # what the page's first lines and its picture are made of

    def figure(self, kind, name, key, value):
        """Keep a number (or a figure with its interval) as such, beside the tables."""
        self.figures.setdefault(kind, {}).setdefault(name, {})[key] = value

    def table(self, title, head, detail=False):
        """A new table; details are printed only when asked for."""
        table = Table(title, head, detail)
        self.tables.append(table)
        return table

    def judge(self, what, value, limit, unit, digits=0, required=True, note="", interval=None,
              ceiling=None):
        """Hold a figure against its budget.

        A miss fails the bench only if the figure is "required": one that does
        not depend on what else the machine does.  Where the budget lies within
        the figure's interval, the verdict is open.  A budget that is known to
        be missed has a ceiling: it is reported as missed, and fails the bench
        once the figure gets worse than that.
        """
        if ceiling is not None:
            required = required and value > ceiling
        met = value <= limit
        is_open = interval is not None and interval[0] <= limit < interval[1]
        self.verdicts.append({"what": what, "value": value, "limit": limit, "unit": unit,
                              "digits": digits, "met": met and not is_open, "open": is_open,
                              "required": required, "note": note})

    def works(self, what):
        """A smoke test has come to its end; its figures mean nothing."""
        self.judge(what, 0, 0, "", required=False)

    def skip(self, what, why):
        self.skipped.append({"what": what, "why": why})

    def finish(self, file=None, details=False):
        """Print everything, and write it into a file for bench/report; the exit status."""
        for table in self.tables:
            if details or not table.detail:
                print("\n" + "\n".join(table.lines()))
        print()
        if file:
            file.write_text(json.dumps(self.as_dict()))
        return tell(self.verdicts, self.skipped)

    def as_dict(self):
        options = sys.argv[1:]
        if "--json" in options:             # where the results went is of no interest
            at = options.index("--json")
            del options[at:at + 2]
        return {"bench": self.bench, "command": " ".join([f"bench/{self.bench}", *options]),
                "load": os.getloadavg()[1],
                "tables": [vars(table) for table in self.tables],
                "verdicts": self.verdicts, "skipped": self.skipped, "figures": self.figures}


def mark(verdict):
    return (OK if verdict["met"] else OPEN if verdict["open"] else
            FAIL if verdict["required"] else MISS)


def verdict_text(verdict):
    return f"{verdict['what']}: {value_text(verdict)} (budget {limit_text(verdict)}, {margin_text(verdict)})"


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
    return f"{verdict['limit']:g}{unit}"


def tell(verdicts, skipped, crashed=()):
    """Print how a bench, or all of them, came out; the exit status."""
    tally = Tally()
    for verdict in verdicts:
        tally.add(mark(verdict), verdict_text(verdict))
    for one in skipped:
        tally.skip(one["what"], one["why"])
    for bench in crashed:
        tally.add(FAIL, bench, "it did not finish")
    return tally.finish(missed="budgets missed: they depend on the machine, or are known and have got no worse",
                        undecided="budgets neither met nor missed for sure: more pairs, or a calmer machine")
