"""doc/experiments.md: the published experiments and these, side by side."""

import dataclasses
import datetime
import os
import platform
import re

import charts
import formulas

# a figure, with its unit and its bounds
NUMBER = r"((\*\*)?[−+]?[\d.,]+( (%|ms|s))?(\*\*)?( \(.*\))?)?"

HEAD = """\
# The published experiments, redone

`test/experiments/run` wrote this page on {date}; do not edit it. {version}, Linux {kernel}, {processors} CPUs, a
path of {line}; load average {load:.1f} at the end, much of which is the run itself.

{note}Five articles calculate by hand what the network costs a database. This page repeats each of them with pgnetlat in
place of the arithmetic: pgnetlat predicts first, and then the other network, the pipeline, or the JOIN is tried.

{answers}

![Predicted before and measured after, all experiments]({picture}.svg)

*Dots: predicted, as a multiple of what was then measured; bars: the bounds. {quality.count} predictions, half of them within
{quality.median}, nine of ten within {quality.ninth}.*

"""


NOTE = """\
> The machine was busy with other work, more in some minutes than in others, so predictions from one minute for the next
> are worse than on a quiet machine. These figures have to be measured again.

"""

# a load average per CPU that the experiments alone do not cause
BUSY = 4


@dataclasses.dataclass
class Section:
    """What an experiment has found: its text, one sentence, its predictions, its pictures by name."""
    title: str
    text: str
    answer: str
    predictions: list
    pictures: dict = dataclasses.field(default_factory=dict)


def write(path, sections, environment):
    """The page, and beside it its pictures; "sections" by number."""
    predictions = [p for section in sections.values() for p in section.predictions]
    quality = formulas.quality(predictions)
    charts.ratios(predictions).save(path.with_suffix(".svg"))
    load = os.getloadavg()[1]
    text = HEAD.format(date=datetime.date.today().isoformat(), kernel=platform.release().split("-")[0], load=load,
                       note=NOTE if load > BUSY * environment["processors"] else "",
                       answers="\n".join(f"- {section.answer}" for section in sections.values()),
                       quality=quality.said(), picture=path.stem, **environment)
    for number, section in sections.items():
        text += f"## {number}. {section.title}\n\n{section.text}\n"
        for name, drawing in section.pictures.items():
            file = f"{path.stem}_{name}.svg"
            drawing.save(path.with_name(file))
            text += f"![{drawing.title}]({file})\n\n"
    path.write_text(text.rstrip() + "\n")


def table(head, rows):
    """A Markdown table: columns of numbers are aligned right, others left."""
    lines = ["| " + " | ".join(map(str, line)) + " |\n" for line in (head, *rows)]
    lines.insert(1, "|" + "|".join("---:" if numeric(row[i] for row in rows) else "---" for i in range(len(head))) + "|\n")
    return "".join(lines)


def numeric(column):
    cells_of = [str(cell) for cell in column]
    return any(cells_of) and all(re.fullmatch(NUMBER, cell) for cell in cells_of)


def figure(value):
    """A number for people: three digits."""
    if abs(value) >= 1000:
        digits = len(str(int(abs(value)))) - 3
        return f"{round(value, -digits):,.0f}"
    if value == int(value):
        return str(int(value))
    return f"{value:.3g}"


def share(part, digits=0):
    """A part of a whole, or an error whose sign does not matter."""
    return f"{100 * part:.{digits}f} %"


def percent(share):
    """An error."""
    digits = 0 if abs(share) >= 0.0995 else 1
    return f"{100 * share:+.{digits}f} %".replace("-", "−")


def cells(prediction):
    """A prediction with its bounds."""
    return f"{figure(prediction.predicted)} ({figure(prediction.low)} to {figure(prediction.high)})"
