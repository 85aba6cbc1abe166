"""doc/accuracy.md and its picture, from a file of figures (report.save())."""

import collections
import re
import statistics

from harness import picture
from harness.tally import FAIL

# Why a figure can miss its goal although the account is right; scenarios add reasons of their own.
REASONS = {
    "exchange, packets": "An exchange by packets includes the time that the kernel takes to wake the backend, which the"
    " server cannot see, and lacks the end of the system call that sends the response. The figures by system calls"
    " allow for both.",
    "wait, packets": "The counterpart of the exchange: the wait ends when the backend has read the request, not when"
    " the packet arrives.",
    "network": "`network_time` is the number of round trips times the smallest recent one. The path here is a process and"
    " never quite constant, so its mean, which is the truth, lies above its minimum. The difference is in"
    " `client_time`.",
    "exchange, calls": "The server notes a request some microseconds after `recvfrom()` has returned. It takes longer"
    " if a long wait has left the caches cold, or if a TLS record is decrypted first. A backend that loses its CPU at"
    " the end of a system call learns late that the call has ended.",
    "wait, calls": "The counterpart of the exchange.",
    "client": "`client_time` is what remains of the wait: it includes the time to wake the backend, and what the path took"
    " beyond its smallest round trip.",
    "client, calls": "`client_time` is what remains of the wait after the smallest round trip: it includes what the path"
    " took beyond that, and late acknowledgements.",
    "sum of parts": "Another session reads the wall clock beside the view. If it loses its CPU in between, the"
    " difference shows here.",
    "requests": "Exchanges in progress when the view was read are counted on one side only.",
    "recv_time": "`recv_time` is sampled: what falls between two samples is not seen.",
}

# The rows of the table: title, bound, the figures that belong to it, and how their errors are given: "each" in
# microseconds for each exchange or wait, "share" of the truth.
Goal = collections.namedtuple("Goal", "title bound figures told")
EACH, SHARE = "each", "share"
GOALS = [
    Goal("Exchanges, by system calls", "1 % or 5 us each", "exchange, calls", EACH),
    Goal("Waits, by system calls", "1 % or 5 us each", "wait, calls|median error of the last .* waits", EACH),
    Goal("Exchanges, by packets", "1 % or 5 us each", "exchange, packets", EACH),
    Goal("Waits, by packets", "1 % or 5 us each", "wait, packets", EACH),
    Goal("`network_time`", "3 %, where the path is constant", "network|network_time: .*|network, packets .*", SHARE),
    Goal("`client_time`, by system calls", "3 % or 60 us each", "client, calls", EACH),
    Goal("`client_time`, by packets", "3 % or 60 us each", "client|client, by .*|client_time: .*", EACH),
    Goal("Sum of all parts", "0.1 % of the wall clock", "sum of parts", SHARE),
    Goal("`in_xact_wait_time`, `idle_time`, `pending_time`", "1 %", "(in_xact_wait|idle|pending)_time(, .*)?", SHARE),
    Goal("`send_client_time`; server and network during the drain", "5 % of the exchange; 3 %",
         "send_client_time: .*|server and network", SHARE),
    Goal("`recv_time` (sampled)", "3 %, or two samples and two standard deviations", "recv_time", SHARE),
    Goal("`recv_time`, against what the sampler could see", "as the samples were", "recv_time, as sampled", SHARE),
    Goal("Connections set up: network", "3 % or 60 us each", "connect_.*_time", EACH),
    Goal("Predictions: a longer path, batches", "3 % (1 client), 5 %", "transaction time|throughput", SHARE),
    Goal("Predictions: a shorter path", "10 %, or within the predicted bounds", "transaction time|throughput", SHARE),
    Goal("Another path is noticed", "the kernel's window + `pgnetlat.rtt_interval`", "seconds until noticed", EACH),
    Goal("Replication: `flush_lag`, `rtt`", "3 %, 2 %", "flush_lag.*|rtt", SHARE),
]
COUNTS = Goal("Counts and states", "exact", None, None)
BOUNDS = Goal("Lower bounds", "at least what the packets show", None, None)
OTHERS = Goal("Other figures", "as in the table of all figures", ".*", SHARE)
CLIPPED = "Dots beyond 200 % are drawn at the edge."

PARTS = (0.5, 0.95)

HEAD = """\
# Accuracy

{note}This page shows how far pgnetlat's figures are from the truth. `test/netlab/accuracy` wrote it on {date}; do not
edit it.

{answer}
![Errors of all figures as a share of their bounds]({name}.svg)

Each dot is one figure, placed by its error as a share of what its goal allows. {clipped}
[{name}.tsv]({name}.tsv) has all {count} figures: what pgnetlat showed, and the truth and the goal, if there is one.

## Goals

Errors are absolute; those in parentheses are a share of the truth.

| goal | bound | median error | 95 % within | met |
|---|---|---:|---:|---:|
"""

METHOD = """\
## How it is measured

A path of {line} between network namespaces gives the kernel a known round trip. The truth never comes from pgnetlat:

- **By packets**: packets are captured on both sides of the path with the kernel's timestamps, all from one clock. Round
  trips and the client's part of each wait are known to the microsecond.
- **By system calls**: the kernel traces the backend's system calls. A wait ends when `recvfrom()` has returned, which no
  packet shows. Before it returns, the kernel wakes the backend, which took {waking} here.

Two readings of `pgnetlat_sessions` delimit each measurement, and the truth is cut at the same moments. "1 % or 5 us
each" means the larger of 1 % of the truth and 5 us for each exchange or wait. The effect of a busy machine is measured
as well, and a check fails only beyond its bound plus that effect. [test/netlab](../test/netlab/README.md) has the
details.

| machine | |
|---|---|
| system | Linux {kernel}, {processors} CPUs, TCP {congestion}, load average at the end {load} |
| server | {version} |
| command | `{command}` |

| | scenario | figures with a goal | met |
|---|---|---:|---:|
"""

NOT_COVERED = """\
## What is not covered

- Networks other than this path: hardware that merges or reorders packets, wireless links, firewalls that answer for the
  client. Loss, jitter, and a round trip that changes are covered (scenario 8).
- IPv6, and encryption by GSSAPI.
- Sessions that last for hours. The longest measurement takes about half a minute.
- Versions of PostgreSQL other than the one above, and other architectures. The regression tests run there.
- Sampled figures (the parts of `exec_time`, wait events, blockers, `recv_time`) are accurate to one
  `pgnetlat.sample_interval`. Events between two samples are not seen. [limits.md](limits.md) says what else pgnetlat
  cannot see.
"""

SHORT = """\
> From a short run (`--short`): only some cases of each kind.

"""


def write(path, rows, environment, scenarios):
    """The page, and its picture beside it; "scenarios" maps numbers to (file, title, reasons)."""
    groups = grouped(rows)
    with_goal = [row for row in rows if row.goal]
    parts = [HEAD.format(note=SHORT if environment.get("short") else "", answer=answer(groups, rows),
                         clipped=CLIPPED, name=path.stem, count=len(rows), date=environment["date"])]
    for goal, own in groups.items():
        parts.append(f"| {goal.title} | {goal.bound} | {' | '.join(measured(goal, own))} | {met(own)} |\n")
    parts.append("\n" + missed(with_goal, scenarios))
    parts.append(METHOD.format(waking=waking(rows), **environment))
    for number, (file, title, _) in scenarios.items():
        own = [row for row in with_goal if row.scenario == number]
        if own:
            parts.append(f"| {number} | [{title}](../test/netlab/scenarios/{file}.py) | {len(own)} |"
                         f" {sum(row.met for row in own)} |\n")
    parts.append("\n" + NOT_COVERED)
    path.write_text("".join(parts))
    draw(path.with_suffix(".svg"), groups)


def grouped(rows):
    """The rows that have a goal, by goal."""
    groups = {goal: [] for goal in (*GOALS, COUNTS, BOUNDS, OTHERS)}
    for row in rows:
        if row.goal:
            groups[goal_of(row)].append(row)
    return {goal: own for goal, own in groups.items() if own}


def goal_of(row):
    if row.is_bound:
        return BOUNDS
    if row.goal in ("exact", "none"):
        return COUNTS
    for goal in (*GOALS, OTHERS):
        # predictions are told apart by what they promise
        if re.fullmatch(goal.figures, row.figure) and goal.bound.endswith("bounds") == row.goal.endswith("bounds"):
            return goal
    return OTHERS


def met_of(rows):
    return f"{sum(row.met for row in rows)} of {len(rows)}"


def met(rows):
    count = sum(row.met for row in rows)
    text = met_of(rows)
    return text if count == len(rows) else f"**{text}**"


def measured(goal, rows):
    """The median error, and the one that 95 % do not exceed."""
    if goal == COUNTS:
        return f"{sum(not row.error for row in rows)} are equal", ""
    if goal == BOUNDS:
        return "", f"all at least {min(row.shown / row.truth for row in rows if row.truth):.2f} times the bound"
    if rows[0].unit == "s":
        return tuple(f"{quantile([row.error for row in rows], part)} s" for part in PARTS)
    shares = [share(row) for row in rows if row.truth]
    if goal.told == SHARE or not shares:
        return tuple(f"{quantile(shares, part)} %" if shares else "" for part in PARTS)
    times = [each(row) for row in rows]
    return tuple(f"{quantile(times, part)} us ({quantile(shares, part)} %)" for part in PARTS)


def each(row):
    """The error in microseconds for each exchange or wait."""
    return row.error * 1000 / row.each


def share(row):
    """The error in percent of the truth."""
    return row.error / abs(row.truth) * 100


def quantile(values, part):
    """As text, with two significant digits."""
    ordered = sorted(values)
    value = ordered[min(int(part * len(ordered)), len(ordered) - 1)]
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def answer(groups, rows):
    """The page's first lines."""
    by_title = {goal.title: own for goal, own in groups.items()}
    lines = []
    seen = [row for title, own in by_title.items() if title.endswith(", by system calls") for row in own]
    if seen:
        lines.append(f"**Against the backend's system calls, {met_of(seen)} figures meet their goals**: 1 % or 5 us for each"
                     " exchange and wait, 3 % or 60 us for `client_time`.")
    calls = by_title.get("Exchanges, by system calls", []) + by_title.get("Waits, by system calls", [])
    if calls:
        times = [each(row) for row in calls]
        lines.append(f"**Exchanges and waits** are accurate to {quantile(times, 0.5)} us each in the median, and to"
                     f" {quantile(times, 0.95)} us in 95 % of {len(calls)} measurements, by the backend's system calls.")
    far = [row for row in by_title.get("`network_time`", []) if row.truth * 1000 / row.each >= 5000]
    if far:
        lines.append(f"**`network_time`** is accurate to {quantile(map(share, far), 0.5)} % in the median, and to"
                     f" {quantile(map(share, far), 0.95)} % in 95 % of measurements, from round trips of 5 ms up.")
    client = by_title.get("`client_time`, by system calls", [])
    if client:
        lines.append(f"**`client_time`** is accurate to {quantile(map(each, client), 0.5)} us for each wait in the median,"
                     f" and to {quantile(map(each, client), 0.95)} us in 95 % of measurements.")
    sums = by_title.get("Sum of all parts", [])
    if sums:
        lines.append(f"**The account adds up**: in 95 % of {len(sums)} measurements, the sum of all parts is within"
                     f" {quantile(map(share, sums), 0.95)} % of the wall clock.")
    goals = [row for row in rows if row.goal]
    failed = sum(row.result == FAIL for row in goals)
    outside = [row for title, own in by_title.items() if title.endswith(", by packets") for row in own]
    if outside:
        lines.append(f"Against packets, which are captured outside the backend, {met_of(outside)} figures meet their goals:"
                     f" packets include what the server cannot see, such as the time to wake the backend, {waking(rows)}.")
    lines.append(f"Of all goals, {met_of(goals)} are met"
                 + ("." if all(row.met for row in goals) else "; [Missed goals](#missed-goals) explains the others."
                    + (f" {failed} figure{' is' if failed == 1 else 's are'} further off than the machine explains."
                       if failed else " None is further off than the machine explains.")))
    return "".join(f"- {line}\n" for line in lines)


def missed(rows, scenarios):
    """The reasons why figures miss their goals."""
    kinds, reasons = collections.defaultdict(list), collections.defaultdict(list)
    for row in rows:
        kinds[row.figure].append(row)
    for figure, own in kinds.items():
        misses = [row for row in own if not row.met]
        if misses:
            known = {**REASONS, **scenarios[misses[0].scenario][2]}
            reasons[known.get(figure, "Not explained yet.")].append(f"*{figure}* ({len(misses)} of {len(own)})")
    lines = [f"- {', '.join(figures)}: {reason}\n" for reason, figures in reasons.items()]
    return "## Missed goals\n\n" + "".join(lines) + "\n" if lines else ""


def waking(rows):
    """How long backends took to wake up, from the two truths of each case's wait."""
    cases = collections.defaultdict(dict)
    for row in rows:
        cases[row.scenario, row.case].setdefault(row.figure, row)
    times = [(own["wait, calls"].truth - own["wait, packets"].truth) * 1000 / own["wait, packets"].each
             for own in cases.values() if "wait, calls" in own and "wait, packets" in own and own["wait, packets"].goal]
    return f"{statistics.median(times):.0f} us (median; at most {max(times):.0f} us)" if times else "an unknown time"


def draw(path, groups):
    """A line of dots for each goal that allows some error."""
    rows = {goal.title.replace("`", ""): [row.error / row.allowed for row in own if row.allowed > 0]
            for goal, own in groups.items() if goal not in (COUNTS, BOUNDS)}
    rows = {title: shares for title, shares in rows.items() if shares}
    drawing = picture.Drawing(900, 22 * len(rows) + 60, "Errors of all figures, as a share of what their goals allow")
    bottom = picture.dots(drawing, 360, 14, 520, rows, "#0284c7", "#dc2626")
    drawing.text(360, bottom + 20, "error, as a share of the bound; dots right of 100 % miss their goal", size=10)
    drawing.save(path)
