"""A response that the kernel is still sending when the backend is done.

The kernel takes up to some megabytes at once; on a slow line they leave during the wait. Truth, by
packets on the client's side: the client's part is the time between the arrival of the last byte and the
next request. Everything else is the server and the network. The server knows that the last byte has
arrived when it is acknowledged, and the client's kernel may delay that for 40 ms or so.
"""

from harness import pgclient

import measure
from measure import NS_PER_MS, Measurement
from scenarios.common import DEEP_QUEUE, MBIT

REASONS = {
    "client, by the client's packets": "The last acknowledgement of a response may be delayed by the"
    " client's kernel, and until then the server must assume that the response is under way. The row on"
    " acknowledgements shows how long that was; `client_time` lacks that much.",
}

TITLE = "The drain: a response that leaves after the backend is done"


def run(lab, results, short):
    for size, rate, think in ((4_000_000, 10, 0.1), (4_000_000, 40, 0.1), (1_000_000, 10, 0.5),
                              (300_000, 10, 0.02)):
        if short and (size, rate) != (1_000_000, 10):
            continue
        results.case = f"{size / 1e6:g} MB over {rate} Mbit/s, think {think * 1000:g} ms"
        lab.path(0.01, rate=rate * MBIT, queue=DEEP_QUEUE)
        request = pgclient.query(f"SELECT repeat('x', {size})")
        drain(lab, results, request, 1, think, 2 if short else 5)
        if size == 1_000_000:
            results.case += ", a short response behind it"
            drain(lab, results, request + pgclient.query("SELECT 1"), 2, think, 2 if short else 5)


def drain(lab, results, request, responses, think, count):
    with Measurement(lab, "tun", setup=["SET work_mem = '64MB'"]) as m:
        m.client.send(request)
        m.client.until_ready(responses)
        measure.think(think)
        m.client.query("SELECT 1")
        m.begin()
        for _ in range(count):
            m.client.send(request)
            m.client.until_ready(responses)
            measure.think(think)
        m.client.query("SELECT 1")
        m.end()
    m.compare(results, held_back=True, required=False)
    client = m.packets.client / NS_PER_MS
    rest = (m.packets.exchange + m.packets.wait) / NS_PER_MS - client
    results.add("client, by the client's packets", client, m.shown["client_time"],
                allowed=max(0.03 * client, 0.06 * count), goal="3 % or 60 us each", required=False)
    results.add("acknowledgements later than a round trip", 0, late_acknowledgements(m))
    shown = sum(m.shown[name] for name in ("exec_time", "send_time", "recv_time", "network_time"))
    results.add("server and network", rest, shown, allowed=0.03 * rest, goal="3 %")
    results.at_least("the drain is not missing: server and network, share of the truth", 0.8, shown / rest, unit="",
                     required=True)
    # A server cannot tell a backend that is woken up late from a client that thinks.
    woken = sum(burst.wakeup for burst in m.bursts if burst and m.before.now <= burst.read < m.after.now)
    results.at_least("client_time is not the drain: think time and waking up / client_time", 0.8,
                     (client + woken / NS_PER_MS) / max(m.shown["client_time"], 1e-9), unit="", required=True)


def late_acknowledgements(m):
    """The delay of the acknowledgements of the last bytes, in ms, summed over the waits."""
    server, total = m.session.server, 0
    for exchange in m.within():
        acknowledged = server.acknowledged(exchange.positions[1])
        arrived = exchange.client_received
        way_back = min(w.network for w in m.session.waits if w) / 2
        total += max(0, acknowledged - arrived - way_back)
    return total / NS_PER_MS
