"""digoal: the database's time is what a transaction takes less the path, and so is known over any other path."""

import charts
import formulas
import page
import pgbench
from formulas import Prediction
from page import Section, cells, figure, percent, table

TITLE = "Throughput over another path (digoal)"

BASE = 0.5
OTHERS = (0.2, 2, 10, 50)
SHORT_OTHERS = (5,)
CLIENTS = (1, 64)

PUBLISHED = """\
**Published.** `SELECT 1`; tcpdump gives the size of a request, qperf the latency for that size, and then *database
time* = 1/TPS − 2 x latency. With one client, 36,938 TPS over loopback (5.16 us one way) gave a database time of 16.75
us. From that, 22,753 TPS were predicted for a LAN (13.6 us), and 24,725 were measured: 8 % off. With 64 clients,
455,192 TPS were predicted and 466,738 measured: 2.5 % off. But for that, the latency under this very load had first
been measured on the LAN (61.8 us), so it was not a prediction.
"""

HERE = """\
**Here.** pgbench runs `SELECT 1` over a path of {base:g} ms. Both predictions are made from that run, for the round
trip that a single connection sees on each of the other paths. pgbench runs over these paths afterwards. By hand, a
transaction has a database time of {hand}. pgnetlat says what that consists of (ms): {parts}.
"""

LATER = """\
The formula treats everything that is not the path as a constant. With one client, it nearly is one: it grows a little
after longer waits. With 64 clients, most of the *database time* is waiting: for a CPU, or for a client that waits
for one. Sessions wait less when their requests are under way for longer, and more when the path becomes shorter. pgnetlat
knows the server's queue. It cannot know how long clients wait for one another on their own machine.
"""


COLUMNS = ("clients", "round trip", "measured after, TPS", "predicted by hand", "off by", "predicted by pgnetlat (bounds)",
           "off by")


def run(lab, short):
    rows, predictions, points, parts, hands = [], [], {}, [], []
    script = lab.space.write("select1.sql", "SELECT 1;\n")
    others = SHORT_OTHERS if short else OTHERS
    pings = {rtt: pgbench.ping(lab, rtt) for rtt in (BASE, *others)}
    with lab.all_processors():
        for clients in CLIENTS:
            def go(rtt, questions=None):
                lab.path(rtt / 1000)
                return pgbench.Run(lab, "tun", clients, ("-f", script), 1.5 if short else 4, questions)

            base = go(BASE, {rtt: f"rtt => {pings[rtt]}" for rtt in others})
            database = formulas.database_time(base.throughput, clients, pings[BASE])
            hands.append(f"{figure(database)} ms with {plural(clients)}")
            parts.append(f"{plural(clients)}: execution {figure(base.account['cpu_time'])}, queue for CPUs "
                         f"{figure(base.account['queue_time'])}, client {figure(base.account['client_time'])}")
            curve = points[clients] = {"measured": [(pings[BASE], base.throughput)], "hand": [], "pgnetlat": []}
            rows.append((clients, f"{pings[BASE]:.2f} ms", figure(base.throughput), "starts here", "", "", ""))
            for rtt in others:
                after = go(rtt)
                ours = pgbench.prediction(f"{plural(clients)}, {BASE:g} to {rtt:g} ms", base.predictions[rtt], after)
                hand = Prediction(ours.what, formulas.throughput_by_hand(clients, database, pings[rtt]), after.throughput,
                                  "/s", "the formula")
                predictions += [hand, ours]
                curve["measured"].append((pings[rtt], after.throughput))
                curve["hand"].append((pings[rtt], hand.predicted))
                curve["pgnetlat"].append((pings[rtt], ours.predicted))
                rows.append((clients, f"{pings[rtt]:.2f} ms", figure(after.throughput), figure(hand.predicted),
                             percent(hand.error), cells(ours), percent(ours.error)))
    text = "\n".join((PUBLISHED, HERE.format(base=BASE, hand=" and ".join(hands), parts="; ".join(parts)),
                      table(COLUMNS, rows), LATER))
    return Section(TITLE, text, answer(predictions), [p for p in predictions if p.bounded],
                   pictures={"latency": charts.curves(points)})


def plural(clients):
    return f"{clients} client{'s' if clients > 1 else ''}"


def answer(predictions):
    def worst(of, bounded):
        return page.share(max(abs(p.error) for p in predictions if p.what.startswith(of) and p.bounded == bounded))

    return ("**Throughput over another path** (digoal): one query is at worst"
            f" {worst('1 ', True)} off with one client and {worst('64', True)} with 64; the formula by hand, with tcpdump"
            f" and qperf, {worst('1 ', False)} and {worst('64', False)}.")
