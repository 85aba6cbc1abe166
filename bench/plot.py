"""doc/performance.svg from the results of the benches: what it costs, at a glance.

Needs matplotlib (Debian: python3-matplotlib), which nothing else here does.
"""

try:
    import matplotlib
    matplotlib.use("svg")
    from matplotlib import pyplot
except ImportError:
    pyplot = None

# The same colour in both halves, by what a name has in it; what is not ours is grey.
COLOURS = {"sessions alone": "#7dd3fc", "identifiers are computed anyway": "#0d9488", "everything,": "#1e3a8a",
           "everything": "#0284c7", "pg_stat_statements": "#64748b", "pg_wait_sampling": "#94a3b8"}
NEUTRAL = "#e2e8f0"

# Left out: what the others are compared with, and what nobody runs.
NOT_SHOWN = ("nothing", "off")


def available():
    return pyplot is not None


def draw(added, loss, file):
    """Two panels.

    added: {workload: {configuration: percent of the backend's instructions}}
    loss: {subject: {clients: (percent, low, high)}}
    """
    matplotlib.rcParams.update({"svg.hashsalt": "pgnetlat", "svg.fonttype": "none", "font.size": 9,
                                "font.family": "sans-serif", "axes.spines.top": False,
                                "axes.spines.right": False})
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 5), layout="constrained")
    draw_added(left, added)
    draw_loss(right, loss)
    figure.savefig(file, metadata={"Date": None, "Creator": "bench/report"})
    pyplot.close(figure)


def draw_added(axes, added):
    names = [name for name in next(iter(added.values())) if name not in NOT_SHOWN]
    height = 0.8 / len(names)
    for i, name in enumerate(names):
        places = [row + i * height for row in range(len(added))]
        values = [workload.get(name, 0) for workload in added.values()]
        bars = axes.barh(places, values, height * 0.9, label=label(name), color=colour(name))
        axes.bar_label(bars, [f"{value:.1f} %" for value in values], padding=3, fontsize=7)
    axes.set_yticks([row + 0.4 - height / 2 for row in range(len(added))], added)
    axes.invert_yaxis()
    axes.set_xlabel("instructions added, percent of the backend's")
    axes.margins(x=0.12)
    axes.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2)


def draw_loss(axes, loss):
    names = list(loss)
    counts = list(next(iter(loss.values())))
    width = 0.8 / len(names)
    for i, name in enumerate(names):
        places = [column + i * width for column in range(len(counts))]
        found = [loss[name][count] for count in counts]
        middles = [middle for middle, _, _ in found]
        errors = [[middle - low for middle, low, _ in found], [high - middle for middle, _, high in found]]
        axes.bar(places, middles, width * 0.9, yerr=errors, capsize=2, label=label(name),
                 color=colour(name), error_kw={"lw": 0.8})
    axes.axhline(0, color="#334155", lw=0.8)
    axes.set_xticks([column + 0.4 - width / 2 for column in range(len(counts))],
                    [f"{count} client{'s' if int(count) > 1 else ''}" for count in counts])
    axes.set_ylabel("throughput lost, percent (95 % interval)")
    axes.set_xlabel("SELECT 1, as fast as it goes")
    axes.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2)


def label(name):
    return name if name.startswith(("pg", "A/A", "query")) else f"pgnetlat, {name}"


def colour(name):
    return next((colour for part, colour in COLOURS.items() if part in name), NEUTRAL)
