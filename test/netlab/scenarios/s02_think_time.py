"""A client that thinks between statements.

Truth of the client's part: from the arrival of the response at the client to the departure of the next
request there. For comparison, the kernel's smoothed round trip (`srtt`) is shown: the client's
acknowledgement rides on its next request, so that it contains the think time.
"""

from harness import pgclient

from scenarios.common import ask, label

TITLE = "Think time between statements: network and client told apart"


def run(lab, results, short):
    for rtt in (0.0005, 0.01):
        lab.path(rtt)
        for think in (0, 0.001, 0.01, 0.06):
            if short and (rtt, think) not in ((0.0005, 0.001), (0.01, 0.01), (0.01, 0.06)):
                continue
            results.case = f"{label(rtt)}, think {think * 1000:g} ms"
            iterations = int(min(500, (2 if short else 6) / (rtt + think)))
            m = ask(lab, results, "tun", iterations, pgclient.query("SELECT 1"), think)
            if m.trace:
                m.compare_each(results)
            results.add("srtt (kernel, for comparison)", rtt * 1000, m.after["srtt"])
