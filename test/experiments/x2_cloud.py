"""Cybertec: Unix-domain socket, localhost, another machine; what part of it the database is."""

import pgbench
from page import Section, cells, figure, percent, share, table

TITLE = "Unix-domain socket, localhost, another machine (Cybertec)"

RTT = 0.3
CLIENTS = (1, 4)
PATHS = {"unix": "Unix-domain socket", "lo": "localhost", "tun": "another machine"}

PUBLISHED = {("unix", 1): ("51,751", "0.019"), ("lo", 1): ("29,173", "0.034"), ("tun", 1): ("2,378", "0.420"),
             ("lo", 4): ("82,007", "0.049")}

INTRODUCTION = """\
**Published.** `pgbench -S`. The request takes leg a, its execution b, the result c. One client on a Unix-domain socket
is compared with localhost (−44 %) and with another machine (−95 %), where the index scan takes 0.016 of 0.420 ms. So a
and c take 97 %, and a faster CPU improves only the other 3 %. The article derives that from the difference of three runs
and from EXPLAIN. Four connections get more done together: concurrency hides latency, but does not remove it.

**Here.** The other machine is {rtt:.2f} ms away. pgnetlat shows the legs in one run (`pgnetlat_clients`, per request):
half of the round trip each for a and c, execution, and the client, for which the article has no leg. Times in ms.
"""

LATER = """\
The legs and the client add up to the latency that pgbench measures (compare *sum* with *latency*). {share} A server
alone cannot tell a from c, but it knows their sum.

The effect of another machine was predicted from the run on the Unix-domain socket before it was tried:

"""


COLUMNS = ("clients", "path", "published TPS", "ms", "here TPS", "latency", "a", "b", "c", "client", "sum",
           "not the database")


def run(lab, short):
    lab.run("unix", [lab.program("pgbench"), "-i", "-q", "-s", "1"])
    ping = pgbench.ping(lab, RTT)
    lab.path(RTT / 1000)
    rows, predictions, remote = [], [], None
    for clients in CLIENTS:
        runs = {}
        for path, name in PATHS.items():
            # on one machine the client is on the server's processors, as in the article
            with lab.all_processors():
                runs[path] = run_ = pgbench.Run(lab, path, clients, ("-S",), 1.5 if short else 4,
                                                {"remote": f"rtt => {ping}"} if path == "unix" else None)
            account = run_.account
            legs = account["network"] / 2, account["execution"], account["network"] / 2, account["client"]
            tps, latency = PUBLISHED.get((path, clients), ("", ""))
            rows.append((clients, name, tps, latency, figure(run_.throughput), f"{run_.transaction_time:.3f}",
                         *(f"{leg:.3f}" for leg in legs), f"{sum(legs):.3f}", share(1 - legs[1] / sum(legs))))
            remote = remote or (1 - legs[1] / sum(legs) if path == "tun" else None)
        predictions.append(pgbench.prediction(f"{clients} client{'s' if clients > 1 else ''}, socket to another machine",
                                              runs["unix"].predictions["remote"], runs["tun"]))
    left = f"With one client, another machine leaves {share(1 - remote)} for the database."
    predicted = [(p.what, cells(p), figure(p.measured), percent(p.error)) for p in predictions]
    text = "\n".join((INTRODUCTION.format(rtt=ping), table(COLUMNS, rows), LATER.format(share=left)
                      + table(("", "predicted before (bounds)", "measured after", "off by"), predicted)))
    return Section(TITLE, text,
                   f"**Which leg takes the time** (Cybertec): {share(remote)} of a query from another machine is not the"
                   " database (published: 97 %), read from one row instead of derived from three runs.", predictions)
