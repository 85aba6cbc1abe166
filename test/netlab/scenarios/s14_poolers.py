"""The client behind a pooler that says where it is, and behind a proxy.

pgbouncer is beside the server, with `application_name_add_host`, and the client 10 ms away. Truth: packets, of
two paths. Those between the client and the pooler tell how long each wait in a transaction was on the
network, which is what `network_time` must be: the kernel is asked for the pooler's own connection to its client
(`client_rtt`). Those between the pooler and the server tell when the connection was in no transaction. In
transaction and statement pooling that is `idle_time`, all of it, for the connection is in the pool; in session
pooling it is the client's, network included. Whoever connects from beside the pooler as another system user, and
claims to be for the same client, learns nothing about it.

HAProxy forwards bytes and says nothing: the round trip is the one to the proxy, and the way behind it is client
time, as documented.
"""

import contextlib
import pathlib
import shutil

from harness import poll

import lab as lab_module
import measure
import truth
from measure import FAILURE, NS_PER_MS
from scenarios.common import label

TITLE = "Behind a pooler and behind a proxy"
RTT = 0.01
THINK = 0.02


def run(lab, results, short):
    lab.path(RTT)
    for mode in ("transaction", "session", "statement"):
        results.case = f"pgbouncer, {mode} pooling, {label(RTT)} to the client"
        if shutil.which("pgbouncer") is None:
            results.skip("pgbouncer is not installed")
            continue
        pooler = lab.start_pgbouncer(mode, default_pool_size=1, application_name_add_host=1)
        try:
            pooled(lab, results, mode, 5 if short else 40)
        finally:
            lab.stop(pooler)
    results.case = f"HAProxy, {label(RTT)} to the client"
    if shutil.which("haproxy") is None:
        results.skip("haproxy is not installed")
        return
    proxy = lab.start_haproxy()
    try:
        proxied(lab, results, 20 if short else 100)
    finally:
        lab.stop(proxy)


class Conversation:
    """A client behind something, and the session that it has with the server through that."""

    def __init__(self, lab, port):
        self.lab, self.port = lab, port

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.near = stack.enter_context(self.lab.capture("lo"))
            self.far = stack.enter_context(self.lab.capture("tun", port=self.port))
            self.client_ports = []
            self.client = stack.enter_context(self.connect("one"))
            self.pid = int(self.client.query("SELECT pg_backend_pid()")[0][0])
            self.stack = stack.pop_all()
        return self

    def connect(self, name):
        client = self.lab.connect("tun", port=self.port, application_name=name)
        self.client_ports.append(client.port)
        return client

    def look(self):
        return measure.snapshot(self.lab, self.pid)

    def begin(self):
        self.before = self.look()
        self.put_off = -run_queue_time(self.pid) - measure.stolen()

    def end(self):
        measure.think(0.002)
        self.put_off += run_queue_time(self.pid) + measure.stolen()
        self.after = self.look()

    def __exit__(self, *exc_info):
        self.stack.close()
        if exc_info[0] is not None:
            return
        self.shown = self.after - self.before
        self.wall = self.after.now - self.before.now
        self.doubt = self.before.doubt + self.after.doubt
        sessions = truth.read(self.far, self.port)
        self.with_clients = [sessions[port] for port in self.client_ports]
        self.with_client = self.with_clients[0]
        self.with_server = next(session for session in truth.read(self.near, lab_module.PORT).values()
                                if session.pid == self.pid)

    def waits(self, session, in_transaction):
        """Those that ended between the snapshots."""
        return [wait for wait in session.waits if wait and wait.in_transaction == in_transaction
                and self.before.now <= wait.end < self.after.now]


def run_queue_time(pid):
    """For how long a process has had to wait for a processor, by the kernel: ns."""
    return int(pathlib.Path(f"/proc/{pid}/schedstat").read_text().split()[1])


def pooled(lab, results, mode, count):
    with Conversation(lab, lab.pooler_port) as m, contextlib.ExitStack() as stack:
        other = None
        if mode != "session":
            # the one server connection is handed from one to the other
            other = stack.enter_context(m.connect("two"))
            other.query("SELECT 1")
            m.client.query("SELECT 1")
        found = poll.wait_for(lambda: m.client.query("SELECT 1") and m.look()["client_rtt"] is not None, 10)
        # and until the session has heard of it
        for _ in range(5):
            measure.think(THINK)
            m.client.query("SELECT 1")
        m.begin()
        for _ in range(count):
            converse(m.client, mode)
            measure.think(THINK)
            if other:
                other.query("SELECT 1")
        m.end()
        learnt = spoof(lab, f"one - {lab_module.CLIENT_ADDRESS}:{m.client.port}")
    compare(results, m, mode, found)
    results.add("another system user, who claims that client, learns its round trip", 0, learnt, allowed=0, unit="",
                goal="exact", required=True)


def spoof(lab, name):
    """Of a connection with such a name, as the same role, from where the pooler is: is client_rtt known?"""
    with lab.connect("lo", application_name=name) as client:
        pid = int(client.query("SELECT pg_backend_pid()")[0][0])
        for _ in range(5):
            measure.think(THINK)
            client.query("SELECT 1")
        return int(measure.snapshot(lab, pid)["client_rtt"] is not None)


def converse(client, mode):
    if mode == "statement":
        client.query("SELECT 1")
        return
    client.query("BEGIN")
    for _ in range(3):
        measure.think(THINK)
        client.query("SELECT 1")
    client.query("COMMIT")


def compare(results, m, mode, found):
    # a request that has arrived is waited for until the backend gets a processor to read it
    fails_at = (FAILURE * m.wall + m.doubt + m.put_off) / NS_PER_MS
    # and the server knows the path's smallest round trip only
    late = sum(measure.late_packets(s, m.before.now, m.after.now) for s in m.with_clients) / NS_PER_MS
    inside = m.waits(m.with_client, True)
    outside = m.waits(m.with_client, False)
    network = sum(wait.network for wait in inside + (outside if mode == "session" else [])) / NS_PER_MS
    waits = max(len(inside), 1)
    results.add("client_rtt is known", 1, int(bool(found)), allowed=0, unit="", goal="exact", required=True)
    results.add("client_rtt", RTT * 1000, float(m.after["client_rtt"] or "nan"))
    results.add("network, packets between client and pooler", network, m.shown["network_time"], per=waits,
                allowed=max(0.03 * network, 0.02 * waits), goal="3 % of round trips x round trip", required=True,
                fails_at=fails_at + late)
    held = sum(wait.time for wait in m.waits(m.with_server, True)) / NS_PER_MS
    results.add("in_xact_wait_time", held, m.shown["in_xact_wait_time"], allowed=0.01 * held + 0.1, goal="1 %",
                required=True, fails_at=fails_at)
    if mode == "session":
        results.add("idle_time", 0, m.shown["idle_time"], allowed=0, goal="exact", required=True)
    else:
        # the first wait began before the account did, and the last one goes on
        last = m.with_server.exchanges[-1].response
        pool = sum(min(wait.time, wait.end - m.before.now) for wait in m.waits(m.with_server, False)) / NS_PER_MS
        pool += max(0, m.after.now - last) / NS_PER_MS
        results.add("idle_time, packets between pooler and server", pool, m.shown["idle_time"],
                    allowed=0.01 * pool + 0.1, goal="1 %", required=True, fails_at=fails_at)
    parts = sum(m.shown[name] for name in measure.TIMES[:7])
    wall = m.wall / NS_PER_MS
    results.add("sum of parts", wall, parts, allowed=0.001 * wall + 0.3, goal="0.1 % of the wall clock",
                required=True, fails_at=0.001 * wall + 0.3 + m.doubt / NS_PER_MS)
    switches = int(m.after["pooler_requests"]) - int(m.before["pooler_requests"])
    asked = sum(m.before.now <= exchange.response < m.after.now
                for session in m.with_clients for exchange in session.exchanges)
    results.add("requests - pooler_requests, packets between clients and pooler", asked,
                m.shown["requests"] - switches, allowed=0, unit="", goal="exact", required=True)


def proxied(lab, results, count):
    with Conversation(lab, lab.proxy_port) as m:
        m.begin()
        for _ in range(count):
            m.client.query("SELECT 1")
        m.end()
    shown = m.shown
    results.at_least("client_time holds the path behind the proxy: client_time / wait", 0.8,
                     shown["client_time"] / (shown["client_time"] + shown["network_time"]), unit="")
    results.add("rtt (to the proxy)", float("nan"), m.after["rtt"] if m.after["rtt"] is not None else float("nan"))
    results.add("client_addr is the proxy's", 1, int(m.after["client_addr"] == "127.0.0.1"), allowed=0, unit="",
                goal="exact", required=True)
