"""doc/performance.md, its picture and its tables, from the results of the benches."""

import re

import plot
import results

HEAD = """\
# Performance

{note}This page shows what pgnetlat costs. `bench/report` wrote it on {date}; do not edit it.

{answer}
![Instructions and throughput: pgnetlat beside pg_stat_statements and pg_wait_sampling]({name}.svg)

[{name}_raw.md]({name}_raw.md) has all figures, by workload, configuration and function.

## Goals

Where several figures have the same goal, the worst is shown. *Open*: the bound lies within the figure's 95 % interval.

| goal | at most | measured | met |
|---|---:|---|---:|
"""

# Why a budget is missed, or just met: by the beginning of its name.
REASONS = {
    "instructions per exchange": """\
- *Instructions per exchange.* An exchange of `pgbench -S -M prepared` consists of five messages, a request that was
  read, and a response that was sent. The request (`first_message`) and the response (`wire_flush`) are one write section
  each; the latter reads the clock twice. About 30 instructions check whether the next request has arrived, with a system
  call that only exchanges of more than 50 us make; under valgrind, all of them do. Statements add the hook around the
  executor, the record of the exchange, and its sums and histograms.
""",
    "instructions, as a share": """\
- *Share of what pg_stat_statements adds.* pg_stat_statements counts statements, while pgnetlat counts exchanges, which
  always cost the same. In TPC-B, two of the seven exchanges are BEGIN and COMMIT, which are cheap for pg_stat_statements.
  With 200 statements in rotation, a session's tally fills up again and again, and is added to the shared table each time.
""",
    "loss of throughput": """\
- *Throughput.* No exchange is shorter than `SELECT 1` over a Unix-domain socket. With 8 clients, the CPUs do
  nothing else, and their caches are cold.
""",
    "CPU time of a scrape": """\
- *CPU time of a scrape.* Half of it is `pgnetlat_metrics_finding`. Its query is planned once in each connection, by the
  first scrape, which takes some 100 ms more. What remains is reading: each collector reads all statements or client groups
  for itself, and `pgnetlat_metrics_query` all texts of pg_stat_statements, too.
""",
    "sampler": """\
- *Sampler.* Part of its share is the machine's cost of waking up: see *waking up alone* in the tables.
""",
}

METHOD = """\
## How it is measured

Shared machines vary by a factor of two within a minute, so instructions are counted, not timed, and throughput is compared
within pairs of short slices of one run. This machine's transactions per second mean nothing elsewhere.

- **Instructions** (`bench/instructions`): the server runs under `valgrind --tool=callgrind`, and one client works at a time.
  Each workload runs twice, shorter and longer; the difference of the backend's counts divided by the difference of the
  lengths is the cost of one exchange, so that start-up, caches and plans cancel out. valgrind sees neither the kernel's
  instructions nor the vDSO's, so clock reads are counted separately. The sampler sleeps, except in *sampler awake*,
  where it samples at least as many exchanges as without valgrind. The cost of computing query identifiers in core
  is not part of a share, because it is paid once for all extensions.
- **Throughput** (`bench/throughput`): the same connections run `SELECT 1` over a Unix-domain socket as fast as they can,
  and a `SET` in each turns the subject off or on before each slice. A pair consists of one slice of each side, in random
  order. Both sides compute query identifiers where *identifiers are computed anyway*. The A/A row shows which
  differences the method can detect. A loss below zero is no loss.
- **Scale** (`bench/scale`): sessions that are idle, run queries in turn, execute forever, wait for one lock, or are blocked
  while sending. The sampler's CPU time comes from the kernel's scheduler, the latency of a view from psql's
  `\\timing`. *Waking up alone* is a process that wakes up as often as a sampler and does nothing.
- **Reading much** (`bench/scale --crowd`): 25 roles connect over TCP, each under 40 names, and run 200 different statements
  each; pg_stat_statements has their texts. Then one session reads each view three times, after a first time that does
  not count, as connections of exporters persist. What counts is the CPU time of its backend, by the kernel's scheduler, with
  settings that affect plans as they are installed (`jit`). A scrape is all `pgnetlat_metrics_` views together, less one of
  the two with histograms.

| machine | |
|---|---|
| CPUs | {processors} ({model}), {memory} GB, {virtual} |
| system | Linux {kernel}, {valgrind} |
| server | {version}, `pgnetlat.so` as `make` builds it |
| commands | {commands} |

"""

NOT_COVERED = """\
## What is not covered

- The kernel's instructions: a system call that pgnetlat makes counts as the few instructions in front of it. Throughput
  contains them.
- A preloaded library that is switched off is part of both sides of the throughput; its instructions are in the tables
  (*off*).
- Machines with many CPUs or several sockets, and architectures other than x86-64.
- Parallel queries and replication: their processes are not part of the hot path.
"""

SHORT = """\
> From a short run (`--short`): only some workloads, and throughput means nothing.

"""

RAW_HEAD = """\
# Performance: all figures

`bench/report` wrote this page on {date}; do not edit it. [{name}.md]({name}.md) says what the figures mean.

"""

TITLES = {"select": "pgbench -S", "select1": "SELECT 1", "tpcb": "TPC-B", "rotation20": "20 statements in turn",
          "rotation200": "200 statements in turn", "pipeline": "pipeline of 100"}


def write(path, found):
    """The page; the tables and the picture beside it."""
    figures = {kind: named for bench in found for kind, named in bench.get("figures", {}).items()}
    verdicts = [verdict for bench in found for verdict in bench["verdicts"] if verdict["goal"] != "smoke test"]
    short = any("--short" in bench["command"] for bench in found)
    about = {**found[0]["about"],
             "commands": ", ".join(f"`{bench['command']}` (load average {bench['load']:.0f})" for bench in found)}
    parts = [HEAD.format(note=SHORT if short else "", answer=answer(figures), name=path.stem, **about)]
    parts += goals(verdicts)
    parts += ["\n", missed(verdicts), METHOD.format(**about), NOT_COVERED, skipped(found)]
    path.write_text("".join(parts))
    raw = [RAW_HEAD.format(name=path.stem, **about)]
    raw += [markdown(table) for bench in found for table in bench["tables"]]
    path.with_name(f"{path.stem}_raw.md").write_text("".join(raw).rstrip("\n") + "\n")
    draw(path.with_suffix(".svg"), figures)


def update(path, bench):
    """Put the results of one run into the page and its tables: lines and tables of the same name are replaced."""
    text = path.read_text()
    for line in answer(bench["figures"]).splitlines(keepends=True):
        text = put_line(text, line, line.partition("**:")[0].partition(" (")[0], "- **Memory**")
    for line in goals(bench["verdicts"]):
        text = put_line(text, line, line.partition(" |")[0] + " |", "| Memory")
    start = text.index("## How it is measured")
    reasons = missed(bench["verdicts"]).partition("\n\n")[2].rstrip("\n")
    if reasons not in text:
        text = f"{text[:start].rstrip()}\n{reasons}\n\n{text[start:]}"
    method = METHOD.partition("| machine")[0]
    text = f"{text[:text.index(method.partition(chr(10))[0])]}{method}{text[text.index('| machine'):]}"
    about = bench["about"]
    command = (f"`{bench['command']}` ({about['date']}, {about['processors']} processors,"
               f" load average {bench['load']:.0f})")
    # what another run has said of the same command goes
    text = re.sub(rf"(\n\| commands \| .*?)(?:, )?`{re.escape(bench['command'])}` \([^)]*\)", r"\1", text)
    text = re.sub(r"\n\| commands \| (?:, )?(.*?) \|\n", lambda found: f"\n| commands | {found[1]}, {command} |\n", text)
    path.write_text(text)

    raw = path.with_name(f"{path.stem}_raw.md")
    text = raw.read_text()
    for table in bench["tables"]:
        text = re.sub(rf"## {re.escape(table['title'])}\n.*?(?=## |\Z)", "", text, flags=re.S)
        text = text.rstrip("\n") + "\n\n" + markdown(table)
    raw.write_text(text.rstrip("\n") + "\n")


def put_line(text, line, beginning, before):
    """Replace the line with that beginning, or put it before another one."""
    lines = text.splitlines(keepends=True)
    found = [number for number, other in enumerate(lines) if other.startswith(beginning)]
    if found:
        lines[found[0]] = line
    else:
        lines.insert(next(number for number, other in enumerate(lines) if other.startswith(before)), line)
    return "".join(lines)


def answer(figures):
    """The result in some lines; a line for each figure that is there."""
    lines = []
    for line in (instructions_line, throughput_line, sampler_line, views_line, reading_line, memory_line):
        try:
            lines.append(line(figures))
        except KeyError:
            pass
    return "".join(f"- {line}\n" for line in lines)


def instructions_line(figures):
    own = figures["instructions"]["select"]
    plain, everything = own["nothing"], own["everything"]
    return (f"**Instructions**: an exchange of `pgbench -S -M prepared` takes {results.number(everything - plain)}"
            f" more ({(everything - plain) / plain * 100:.1f} % of {results.number(plain)}) with everything on, and"
            f" {results.number(own['sessions alone'] - plain)} more with sessions alone; pg_stat_statements adds"
            f" {results.number(own['pg_stat_statements'] - plain)}.")


def throughput_line(figures):
    loss = figures["loss"]
    beside, theirs = loss["pgnetlat, where identifiers are computed anyway"], loss["pg_stat_statements"]
    intervals = ", ".join(f"{middle:.1f} % ({low:.1f} to {high:.1f})" for middle, low, high in beside.values())
    return (f"**Throughput**: `SELECT 1` as fast as possible, with {enumeration(beside)} clients, loses {intervals}"
            f" where query identifiers are computed anyway; pg_stat_statements costs"
            f" {', '.join(f'{middle:.1f} %' for middle, _, _ in theirs.values())}.")


def enumeration(items):
    *first, last = items
    return f"{', '.join(first)} and {last}" if first else last


def sampler_line(figures):
    """Of the most sessions only."""
    own, others = figures["sampler"]["pgnetlat"], figures["sampler"].get("pg_wait_sampling", {})
    most = list(own)[-1].partition(",")[0]
    shares = {load: share for load, share in own.items() if load.startswith(f"{most},")}
    worst = max(shares, key=shares.get)
    text = (f"**The sampler** takes at most {shares[worst]:.2f} % of a core with {most}"
            f" (*{worst.partition(', ')[2]}*)")
    theirs = [others[load] for load in shares if load in others]
    if theirs:
        text += f"; pg_wait_sampling takes {min(theirs):.2f} to {max(theirs):.2f} %"
    return text + f". Merely waking up as often takes {figures['sampler']['waking up']['alone']:.2f} %."


def views_line(figures):
    slowest = {view: max(own.values()) for view, own in figures["latency"].items()}
    times = ", ".join(f"`{view}` {time:.1f} ms" for view, time in slowest.items())
    return f"**Views** of as many sessions, at their slowest: {times}."


def reading_line(figures):
    (of, (most, view)), = figures["crowd"]["views"].items()
    (scrape,) = figures["crowd"]["scrape"].values()
    return (f"**Reading much** ({of}): a view or function takes {most:.0f} ms of CPU time at most (`{view}`), a scrape of"
            f" all metrics {scrape:.0f} ms.")


def memory_line(figures):
    return (f"**Memory**: {results.number(figures['memory']['connection']['bytes'])} bytes of shared memory for each"
            " possible connection.")


def goals(verdicts):
    """A line for each goal, with the worst of its figures."""
    for goal, own in by_goal(verdicts).items():
        worst = max(own, key=lambda verdict: verdict["value"])
        of = f" ({worst['of']})" if worst["of"] and len(own) > 1 else ""
        met, undecided = (sum(verdict[key] for verdict in own) for key in ("met", "open"))
        count = f"{met} of {len(own)}" + (f", {undecided} open" if undecided else "")
        yield (f"| {goal[0].upper()}{goal[1:]} | {results.limit_text(worst)} | {results.value_text(worst)}{of} |"
               f" {count if met == len(own) else f'**{count}**'} |\n")


def by_goal(verdicts):
    groups = {}
    for verdict in verdicts:
        groups.setdefault(verdict["goal"], []).append(verdict)
    return groups


def missed(verdicts):
    """The reasons for what is missed, or met by less than a tenth of the bound."""
    close = [verdict["goal"] for verdict in verdicts
             if not verdict["met"] or verdict["limit"] > 2 and verdict["value"] > 0.9 * verdict["limit"]]
    texts = [text for goal, text in REASONS.items() if any(name.startswith(goal) for name in close)]
    return "### Bounds that are missed or just met\n\n" + "".join(texts) + "\n" if texts else ""


def skipped(found):
    return "".join(f"- Skipped in this run: {one['what']}: {one['why']}.\n"
                   for bench in found for one in bench["skipped"])


def draw(path, figures):
    if "instructions" not in figures or "loss" not in figures:
        return
    added = {TITLES.get(name, name): {configuration: (count - counts["nothing"]) / counts["nothing"] * 100
                                      for configuration, count in counts.items()}
             for name, counts in figures["instructions"].items() if name != "rows"}
    plot.draw(added, figures["loss"], path)


def markdown(table):
    lines = [f"## {table['title']}", "",
             "| " + " | ".join(table["head"]) + " |",
             "|---|" + "---:|" * (len(table["head"]) - 1)]
    lines += ["| " + " | ".join(row) + " |" for row in table["rows"]]
    lines += [""] if table["notes"] else []
    lines += [f"{'- ' if len(table['notes']) > 1 else ''}{note}" for note in table["notes"]]
    return "\n".join(lines) + "\n\n"
