"""The picture of doc/performance.md: what pgnetlat costs beside others."""

from harness import picture

import results

# The same colour in both halves, by what a name contains; what is not ours is grey.
COLOURS = {"sessions alone": "#7dd3fc", "identifiers are computed anyway": "#0d9488", "everything": "#0284c7",
           "pg_stat_statements": "#64748b", "pg_wait_sampling": "#94a3b8"}
NEUTRAL = "#cbd5e1"

# Left out: what the others are compared with, what nobody runs, and what hardly differs from another.
NOT_SHOWN = ("nothing", "off", "everything, sampler awake", "pgnetlat, identifiers anyway, sampler asleep")


def draw(added, loss, file):
    """Two panels.

    added: {workload: {configuration: percent of the backend's instructions}}
    loss: {subject: {clients: (percent, low, high)}}
    """
    added = {workload: {name: value for name, value in own.items() if name not in NOT_SHOWN}
             for workload, own in added.items()}
    clients = list(dict.fromkeys(count for own in loss.values() for count in own))
    by_clients = {f"{count} client{'s' if int(count) > 1 else ''}":
                  {name: own[count] for name, own in loss.items() if name not in NOT_SHOWN and count in own}
                  for count in clients}
    height = max(picture.bars_height(added), picture.bars_height(by_clients))
    drawing = picture.Drawing(1000, height + 110, "Instructions and throughput: pgnetlat beside others")
    panel(drawing, 150, 270, added, "Instructions added, percent of the backend's", height)
    panel(drawing, 610, 300, by_clients, "Throughput of SELECT 1 lost, percent, with 95 % intervals", height)
    drawing.save(file)


def panel(drawing, x, width, groups, title, height):
    names = list(dict.fromkeys(name for own in groups.values() for name in own))
    drawing.text(x - 100, 18, title, size=12)
    colours = {name: colour(name) for name in names}
    picture.bars(drawing, x, 36, width, groups, colours, lambda value: results.number(value, 1))
    picture.legend(drawing, x - 100, height + 52, {label(name): shade for name, shade in colours.items()}, 230)


def label(name):
    return name if name.startswith(("pg", "A/A", "query")) else f"pgnetlat, {name}"


def colour(name):
    return next((colour for part, colour in COLOURS.items() if part in name), NEUTRAL)
