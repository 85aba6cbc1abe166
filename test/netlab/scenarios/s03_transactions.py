"""Thinking inside and outside a transaction, and waits around `pgnetlat.idle_threshold` (set to 200 ms).

Truth: packets; a wait is in a transaction if ReadyForQuery said so. An open transaction is looked at
while it waits: the truth is the time since its last packet.
"""

import time

from harness import pgclient, poll

import measure
from measure import NS_PER_MS, Measurement
from scenarios.common import setting

TITLE = "Inside and outside a transaction, idle threshold, open transactions"
THRESHOLD = 0.2


def run(lab, results, short):
    lab.path(0.005)
    with setting(lab, "pgnetlat.idle_threshold", f"{THRESHOLD * 1000:.0f}ms"):
        results.case = "think 20 ms in transactions of 3 statements, 50 ms between them"
        transactions(lab, results, 5 if short else 40)
        for factor in (0.8, 0.95, 1.05, 1.5):
            for inside in (False, True):
                results.case = (f"waits of {factor:g} x idle_threshold"
                                f" {'inside' if inside else 'outside'} a transaction")
                long_waits(lab, results, factor, inside, 3 if short else 10)
        open_wait(lab, results, True, (0.1, 0.5) if short else (0.1, 0.5, 2, 5))
        open_wait(lab, results, False, (0.1, 0.5) if short else (0.1, 0.5, 2, 5))
    blocked(lab, results, 10 if short else 40)


def transactions(lab, results, count):
    with Measurement(lab, "tun") as m:
        m.begin()
        for _ in range(count):
            m.client.query("BEGIN")
            for _ in range(3):
                measure.think(0.02)
                m.client.query("SELECT 1")
            measure.think(0.02)
            m.client.query("COMMIT")
            measure.think(0.05)
        m.end()
    # On a busy machine the last one may have become idle.
    m.sum_up(THRESHOLD * 1e9)
    m.compare(results)
    truth = (m.calls or m.packets).in_transaction / NS_PER_MS
    results.add("in_xact_wait_time", truth, m.shown["in_xact_wait_time"], allowed=0.01 * truth,
                goal="1 %", required=True, fails_at=0.05 * truth + doubt_of(m))


def doubt_of(m):
    """How far off a wait can be because the machine displaced the backend or the reader, in ms."""
    return (m.doubt + m.stolen + (m.calls.doubt if m.calls else 0)) / NS_PER_MS


def long_waits(lab, results, factor, inside, count):
    # The round trip is part of the wait that the threshold is compared with.
    pause = THRESHOLD * factor - 0.005
    with Measurement(lab, "tun") as m:
        if inside:
            m.client.query("BEGIN")
        m.begin()
        for _ in range(count):
            m.client.query("SELECT 1")
            measure.think(pause)
        m.client.query("COMMIT" if inside else "SELECT 1")
        m.end()
    m.sum_up(THRESHOLD * 1e9)
    m.compare(results)
    # By system calls if there are any: a backend that is woken up late may find that the wait was idle.
    truth = (m.calls or m.packets).idle / NS_PER_MS
    unclear = m.calls.idle_doubt / NS_PER_MS if m.calls else 0
    results.add("idle_time", truth, m.shown["idle_time"], allowed=0.01 * truth + 0.1,
                goal="1 %", required=True, fails_at=0.05 * truth + unclear + doubt_of(m))


def open_wait(lab, results, inside, moments):
    """Look at a wait in progress, several times."""
    with Measurement(lab, "tun") as m:
        if inside:
            m.client.query("BEGIN")
        m.begin()
        m.client.query("SELECT 1")
        looks = []
        started = time.monotonic()
        for moment in moments:
            time.sleep(max(0, started + moment - time.monotonic()))
            looks.append(m.snapshot())
        m.end()
    # By system calls if there are any: waking up late belongs to the wait.
    burst = m.bursts[-1] if m.trace else None
    arrived = burst.read if burst else m.session.exchanges[-1].request
    left = burst.sent if burst else m.session.exchanges[-1].response
    # Before its last request it may have been idle as well, if the machine was busy.
    idle_before = looks[0]["idle_time"] if looks[0]["state"] != "idle" else m.before["idle_time"]
    for moment, look in zip(moments, looks):
        results.case = f"{'transaction' if inside else 'session'} seen {moment:g} s after its last response"
        shown = look - m.before
        truth = (look.now - left) / NS_PER_MS
        late = 5 + (look.doubt + (burst.late_read + burst.late_sent if burst else 0)) / NS_PER_MS
        parts = shown["network_time"] + shown["client_time"] + shown["idle_time"] + shown["pending_time"]
        if inside:
            expected = "waiting in transaction"
            figure = shown["in_xact_wait_time"] - (arrived - m.before.now) / NS_PER_MS
            results.add("in_xact_wait_time", truth, figure, allowed=max(0.01 * truth, 0.5),
                        goal="1 %", required=True, fails_at=late)
        else:
            expected = "idle" if truth > THRESHOLD * 1000 else "waiting"
            if look["state"] in ("idle", "waiting") and abs(truth - THRESHOLD * 1000) <= late:
                expected = look["state"]
            figure = look["idle_time"] - idle_before if expected == "idle" else look["pending_time"]
            results.add("idle_time" if expected == "idle" else "pending_time", truth, figure,
                        allowed=max(0.01 * truth, 0.5), goal="1 %", required=True, fails_at=late)
        results.add(f"state is {expected}", 1, int(look["state"] == expected), allowed=0, unit="",
                    goal="exact", required=True, note=look["state"])
        wall = (look.now - m.before.now) / NS_PER_MS
        doubt = (m.before.doubt + look.doubt) / NS_PER_MS
        total = parts + shown["exec_time"] + shown["send_time"] + shown["recv_time"]
        results.add("sum of parts", wall, total, allowed=0.001 * wall + 0.3,
                    goal="0.1 % of the wall clock", required=True, fails_at=0.001 * wall + 0.3 + doubt)


def blocked(lab, results, count):
    """Blame: the time that others wait for a transaction of many round trips is the network's."""
    rtt = 0.05
    lab.path(rtt)
    results.case = f"a lock held for {count} round trips of 50 ms"
    holder = lab.connect("tun", application_name="round trips")
    victim = lab.connect("lo")
    holder.query("BEGIN")
    holder.query("SELECT pg_advisory_xact_lock(1)")
    victim.send(pgclient.query("SELECT pg_advisory_lock(1)"))
    poll.until(lambda: lab.admin.query("SELECT 1 FROM pgnetlat_blockers WHERE application_name = 'round trips'"),
               "the holder is known", interval=0.01)
    for _ in range(count):
        holder.query("SELECT 1")
    holder.query("COMMIT")
    victim.until_ready()
    # the worker adds up four times a second, and when nobody waits any more
    time.sleep(0.5)
    row = lab.admin.query("SELECT sum(blocked_time), sum(blocked_by_network_time) FROM pgnetlat_blockers"
                         " WHERE application_name = 'round trips'")[0]
    holder.close()
    victim.close()
    blocked, network = (float(value) for value in row)
    # the first request came after a longer pause, the last one has not been followed by another
    # sampled: right to a tick at the beginning, and at the end
    results.at_least("blocked_by_network_time", 0.9 * (count - 1) * rtt * 1000, network, required=True)
    results.at_least("blocked_time", network, blocked, required=True)
