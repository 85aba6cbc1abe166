"""Loss, jitter, and a path whose round trip changes in mid-session.

Truth: packets. `network_time` is round trips x the smallest recent round trip, so that what a lost or
late packet costs is counted as the client's; these rows say how much. The kernel forgets a minimum only
after net.ipv4.tcp_min_rtt_wlen seconds (300 by default; 5 in these measurements), so that long pgnetlat
needs to notice a longer path; a shorter one is noticed with the next packet.
"""

import time

import pgclient
from measure import Measurement
from scenarios.common import ask, attempt

TITLE = "Loss, jitter, changing round trips"
WINDOW = 5


def run(lab, results, short):
    request = pgclient.query("SELECT 1")
    for rtt in (0.005,) if short else (0.005, 0.05):
        results.case = f"loss of 1 %, round trip {rtt * 1000:g} ms"
        lab.path(rtt, loss=0.01)
        ask(lab, results, "tun", 300 if short else min(1000, int(20 / rtt)), request, constant_path=False)
        results.case = f"jitter of up to 2 ms each way, round trip {rtt * 1000:g} ms and more"
        lab.path(rtt, jitter=0.002)
        ask(lab, results, "tun", 200 if short else min(1000, int(10 / rtt)), request, constant_path=False)

    kept = lab.kernel_parameter("net/ipv4/tcp_min_rtt_wlen", WINDOW)
    try:
        results.case = "round trip from 1 to 20 ms in mid-session"
        attempt(results, lambda own: change(lab, own, 0.001, 0.02, 4 if short else 12))
        results.case = "round trip from 20 to 1 ms in mid-session"
        attempt(results, lambda own: change(lab, own, 0.02, 0.001, 4))
    finally:
        lab.kernel_parameter("net/ipv4/tcp_min_rtt_wlen", kept)


def change(lab, results, before, after, seconds):
    lab.path(before)
    with Measurement(lab, "tun") as m:
        m.begin()
        for _ in range(100):
            m.client.query("SELECT 1")
        lab.path(after)
        changed = time.monotonic()
        noticed = None
        while time.monotonic() < changed + seconds:
            m.client.query("SELECT 1")
            if noticed is None:
                rtt = m.snapshot()["rtt"] / 1000
                if abs(rtt - after) < 0.2 * after:
                    noticed = time.monotonic() - changed
        m.end()
    m.compare(results, constant_path=False)
    if noticed is None:
        results.add("seconds until noticed", WINDOW, float("nan"), unit="s", note=f"not within {seconds} s")
    else:
        expected = WINDOW if after > before else 0
        results.add("seconds until noticed", expected, noticed, unit="s", allowed=2,
                    goal="the kernel's window + pgnetlat.rtt_interval", required=True)
    return m
