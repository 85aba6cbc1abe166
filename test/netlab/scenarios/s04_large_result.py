"""A large result, to a fast reader over a slow line, and to a slow reader over a fast line.

Truth: packets. The time in which the client's advertised window left no room for another segment is the
client's part of sending; what remains of the exchange is the server's work and the network's.
"""

from harness import pgclient

from measure import NS_PER_MS, Measurement
from scenarios.common import DEEP_QUEUE, MBIT, attempt

REASONS = {
    "send_client_time: window closed": "The kernel counts the closed window in ticks (4 ms), and also where"
    " congestion control would have stopped it as well.",
}

TITLE = "Large results: slow network or slow reader"
ROW = 1000


def run(lab, results, short):
    size = 8_000_000 if short else 100_000_000
    rows = size // (ROW + 11)
    request = pgclient.query(f"SELECT repeat('x', {ROW}) FROM generate_series(1, {rows})")

    results.case = f"{size // 10**6} MB to a fast reader over 40 Mbit/s, round trip 10 ms"
    lab.path(0.01, rate=40 * MBIT, queue=DEEP_QUEUE)
    attempt(results, lambda own: large(lab, own, request, None, slow_reader=False))

    results.case = f"{size // 10**6} MB to a reader of 5 MB/s, round trip 0.5 ms"
    lab.path(0.0005)
    attempt(results, lambda own: large(lab, own, request, 5e6, slow_reader=True, receive_buffer=262144))


def large(lab, results, request, rate, slow_reader, **connection):
    with Measurement(lab, "tun", **connection) as m:
        m.begin()
        m.client.send(request)
        m.client.discard_until_ready(rate)
        m.client.query("SELECT 1")
        m.end()
    m.compare(results, held_back=True)
    exchange = m.within()[0]
    # The kernel goes on sending after the backend is done: that is in the wait.
    sent = exchange.response
    if m.trace:
        sent = min(sent, next(b for b in m.bursts if b.request == exchange.request).sent)
    closed = m.session.server.window_closed(exchange.start, sent) / NS_PER_MS
    late = m.session.server.window_closed(sent, exchange.response) / NS_PER_MS
    whole = (sent - exchange.start) / NS_PER_MS
    blocked = m.shown["send_time"]
    part = m.shown["send_client_time"]
    results.add("send_time (truth: all of the exchange)", whole, blocked)
    results.add("send_client_time: window closed", closed, part, allowed=max(0.1 * closed, 0.05 * whole),
                goal="10 %, or 5 % of the exchange", required=True, fails_at=0.1 * whole)
    client = m.packets.client / NS_PER_MS + late
    results.add("client_time: think time, and the drain while the window was closed", client,
                m.shown["client_time"], allowed=max(0.03 * client, 20), goal="3 %, or two ticks")
    if slow_reader:
        results.at_least("client's share of sending", 0.8, part / max(blocked, 1), unit="")
    else:
        results.at_least("network's share of sending", 0.8, 1 - part / max(blocked, 1), unit="")
    return m
