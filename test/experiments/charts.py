"""The pictures of doc/experiments.md."""

import math

from harness import picture
from harness.picture import FAINT, INK

WIDTH = 860
GREY = "#64748b"
COLOURS = {"measured": INK, "pgnetlat": "#0284c7", "hand": "#d97706"}
BOUNDS = "#93c5fd"

# What a bar consists of: the server's, the network's, the client's, and what cannot be told apart.
SERVER = "#1e3a8a"
PARTS = {"exchange": "#475f94", "execution": SERVER, "CPU": SERVER, "sending": "#0d9488", "slow reader": "#fde68a",
         "receiving": "#5eead4", "network": "#0284c7", "client": "#f59e0b", "ClientRead": "#94a3b8",
         "ClientWrite": "#cbd5e1", "Net/Delay*": "#64748b"}
OTHER = "#a78bfa"

RATIOS = "Predicted before, as a multiple of what was measured after"
CURVES = "Throughput by round trip: measured, predicted by hand, and predicted by pgnetlat"
STACKS = "What pg_gather, pgnetlat and the packets say of the same seconds"


def scale(low, high, start, end):
    """A logarithmic one."""
    def place(value):
        value = min(max(value, low), high)
        return start + (end - start) * math.log(value / low) / math.log(high / low)
    return place


def ratios(predictions):
    """Each prediction as a multiple of the truth, with its bounds."""
    left, right, row, top = 400, WIDTH - 70, 17, 44
    drawing = picture.Drawing(WIDTH, top + row * len(predictions) + 12, RATIOS)
    place = scale(0.5, 2, left, right)
    for value, name in ((0.5, "half"), (0.8, "−20 %"), (0.9, ""), (1, "as measured"), (1.1, ""), (1.25, "+25 %"),
                        (2, "twice")):
        drawing.line(place(value), top - 8, place(value), drawing.height - 8, INK if value == 1 else FAINT)
        drawing.text(place(value), top - 14, name, "middle", 10, GREY)
    for i, p in enumerate(predictions):
        y = top + row * i + row / 2
        drawing.text(8, y + 4, p.what)
        if p.bounded:
            drawing.line(place(p.low / p.measured), y, place(p.high / p.measured), y, BOUNDS, 5)
        drawing.dot(place(p.predicted / p.measured), y, 4, COLOURS["pgnetlat"])
        drawing.text(WIDTH - 8, y + 4, f"{100 * p.error:+.1f} %", "end", 10, GREY)
    return drawing


def curves(measured):
    """{clients: {"measured", "hand", "pgnetlat": [(round trip, throughput)]}}, a panel each."""
    height, panel = 300, WIDTH / len(measured)
    drawing = picture.Drawing(WIDTH, height, CURVES)
    for number, (clients, lines) in enumerate(measured.items()):
        every = [point for line in lines.values() for point in line]
        left, right = number * panel + 60, (number + 1) * panel - 20
        across = scale(min(x for x, _ in every) / 1.2, max(x for x, _ in every) * 1.2, left, right)
        up = scale(min(y for _, y in every) / 1.3, max(y for _, y in every) * 1.3, height - 50, 40)
        drawing.text(left, 22, f"{clients} client{'s' if clients > 1 else ''}: transactions per second", size=12)
        for value in ticks([y for _, y in every]):
            drawing.line(left, up(value), right, up(value), FAINT)
            drawing.text(left - 6, up(value) + 4, f"{value:,}", "end", 10, GREY)
        for x, _ in lines["measured"]:
            drawing.text(across(x), height - 34, f"{x:.2g}", "middle", 10, GREY)
        drawing.text((left + right) / 2, height - 18, "round trip, ms", "middle", 10, GREY)
        for name in ("hand", "pgnetlat"):
            points = sorted((across(x), up(y)) for x, y in lines[name])
            for one, other in zip(points, points[1:]):
                drawing.line(*one, *other, COLOURS[name], 1.5)
        for x, y in lines["measured"]:
            drawing.dot(across(x), up(y), 3.5, COLOURS["measured"])
    picture.legend(drawing, 60, height - 4, {"measured": COLOURS["measured"], "predicted by hand": COLOURS["hand"],
                                             "predicted by pgnetlat": COLOURS["pgnetlat"]}, 180, 3)
    return drawing


def ticks(values):
    """Powers of ten."""
    return [10 ** n for n in range(math.ceil(math.log10(min(values) / 1.3)), math.floor(math.log10(max(values) * 1.3)) + 1)]


def stacks(cases):
    """[(name, pg_gather's shares, pgnetlat's, the packets')]: three bars each."""
    left, right, row, top = 110, WIDTH - 20, 15, 12
    each = 3 * row + 26
    drawing = picture.Drawing(WIDTH, top + each * len(cases) + 24, STACKS)
    shown = {}
    for i, (name, *shares) in enumerate(cases):
        y = top + each * i
        drawing.text(8, y + 10, name, size=12)
        for j, (who, parts) in enumerate(zip(("pg_gather", "pgnetlat", "packets"), shares)):
            drawing.text(left - 6, y + 16 + row * j + 11, who, "end", 10, GREY)
            x = left
            for part, share in parts.items():
                colour = PARTS.get(part, OTHER)
                width = share * (right - left)
                drawing.box(x, y + 16 + row * j, width, row - 2, colour)
                shown["execution, CPU" if colour == SERVER else part if part in PARTS else "other wait events"] = colour
                x += width
    picture.legend(drawing, 8, drawing.height - 8, shown, (WIDTH - 16) / len(shown), len(shown))
    return drawing

