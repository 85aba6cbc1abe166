"""A large result, to a fast reader over a slow line, and to a slow reader over a fast line.

Truth: packets. The time in which the client's advertised window left no room for another segment is the
client's part of sending; what remains of the exchange is the server's work and the network's. The fast
reader has room for all of the result, so that it stays fast on a busy machine. The kernel, which
`send_client_time` comes from, also counts while the window has some room and it waits for more, to send
several segments at once: the truth lies between the time without room for a segment, as far as the
backend was blocked, and that without room for 64 kB.
"""

from harness import pgclient

import capture
from measure import NS_PER_MS, Measurement
from scenarios.common import DEEP_QUEUE, MBIT

REASONS = {
    "send_client_time: window closed": "The kernel counts the closed window in ticks (4 ms), and also while"
    " congestion control would have stopped the sender anyway.",
}

TITLE = "Large results: slow network or slow reader"
ROW = 1000

# The kernel counts in ticks of this length.
TICK_NS = 4_000_000
PHASES = 16


def run(lab, results, short):
    size = 8_000_000 if short else 100_000_000
    rows = size // (ROW + 11)
    request = pgclient.query(f"SELECT repeat('x', {ROW}) FROM generate_series(1, {rows})")

    results.case = f"{size // 10**6} MB to a fast reader over 40 Mbit/s, round trip 10 ms"
    lab.path(0.01, rate=40 * MBIT, queue=DEEP_QUEUE)
    large(lab, results, request, None, slow_reader=False, receive_buffer=4 * size)

    results.case = f"{size // 10**6} MB to a reader of 5 MB/s, round trip 0.5 ms"
    lab.path(0.0005)
    large(lab, results, request, 5e6, slow_reader=True, receive_buffer=212992)

    results.case = f"{size // 10**6} MB to a reader of 2 MB/s, 8 kB at a time, round trip 5 ms"
    lab.path(0.005)
    large(lab, results, request, 2e6, slow_reader=True, block=8192)

    # the kernel's ticks are longer than these sends
    results.case = f"{size // 10**6} MB to a reader of 8 MB/s with room for 4 kB, no round trip"
    lab.path(0)
    large(lab, results, request, 8e6, slow_reader=True, receive_buffer=4096)


def large(lab, results, request, rate, slow_reader, block=65536, **connection):
    with Measurement(lab, "tun", **connection) as m:
        m.begin()
        m.client.send(request)
        m.client.discard_until_ready(rate, block)
        m.client.query("SELECT 1")
        m.end()
    m.compare(results, held_back=True)
    exchange = m.within()[0]
    # The kernel goes on sending after the backend is done: that is in the wait.
    sent = exchange.response
    burst = m.burst_of(exchange)
    if burst:
        sent = min(sent, burst.sent)
    closed = m.session.server.window_closed(exchange.start, sent) / NS_PER_MS
    lowest, highest = limits(m, exchange.start, sent)
    late = m.session.server.window_closed(sent, exchange.response) / NS_PER_MS
    whole = (sent - exchange.start) / NS_PER_MS
    blocked = m.shown["send_time"]
    part = m.shown["send_client_time"]
    results.add("send_time (truth: all of the exchange)", whole, blocked)
    results.between("send_client_time: window closed", closed, lowest, highest, part, margin=0.05 * whole,
                    allowed=0.05 * whole, goal="5 % of the exchange")
    client = m.packets.client / NS_PER_MS + late
    results.add("client_time: think time, and the drain while the window was closed", client,
                m.shown["client_time"], allowed=max(0.03 * client, 20), goal="3 %, or two ticks")
    if slow_reader:
        results.at_least("client's share of sending", 0.8, part / max(blocked, 1), unit="")
    else:
        results.at_least("network's share of sending", 0.8, 1 - part / max(blocked, 1), unit="")


def limits(m, since, until):
    """Between which the kernel's count of a closed window must be, in ms."""
    server = m.session.server
    closed = capture.intervals(server.window_changes, since, until)
    if m.trace:
        waits = [wait for wait in m.trace.waits[m.pid] if wait[0] < until and wait[1] > since]
        closed = [(max(start, since), min(end, until)) for since, until in waits
                  for start, end in closed if start < until and end > since]
    narrow = capture.intervals(server.narrow_changes, since, until)
    return min(in_ticks(closed)), max(in_ticks(narrow))


def in_ticks(intervals):
    """What a clock that ticks would count, for several phases of its ticks."""
    for phase in range(0, TICK_NS, TICK_NS // PHASES):
        yield sum((end - phase) // TICK_NS - (start - phase) // TICK_NS
                  for start, end in intervals) * TICK_NS / NS_PER_MS
