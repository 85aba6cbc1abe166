"""Connections that are set up: with trust, SCRAM, TLS, and with encryption that is refused.

psql connects, runs one query and leaves. Truth: the packets of both sides. A round trip is a message of the client that
was answered, TCP's own included. The server waits between a message that it sent and the next that arrived; the packets
at the client's side show the client's part of that. `pgbench -C` connects for each transaction.
"""

import collections
import contextlib

from harness import poll

import capture
from lab import PORT
from measure import NS_PER_MS
from scenarios.common import label, reload, setting

TITLE = "Setting up connections"

# libpq derives a key for SCRAM; a busy machine takes its time for it, and the server's clocks cannot see what
# lies between a packet's arrival and the process that it wakes up.
SLACK = 0.3

COLUMNS = ("connections", "connect_round_trips", "connect_time", "connect_tls_time", "connect_auth_time")

PASSWORD = "staple"

TLS_DATA = 23


class Burst:
    """What the client sent without anything from the server in between: its packets, and the one that it answers."""

    def __init__(self, answers):
        self.answers = answers
        self.packets = []


def connections_of(path):
    """The packets with data of each connection of a capture, by the client's port."""
    result = collections.defaultdict(list)
    for packet in capture.read_packets(path):
        if packet.length:
            port = packet.source_port if packet.target_port == PORT else packet.target_port
            result[port].append(packet)
    return result


def data_records(packet):
    """How many TLS records in a packet are data from outside, as all encrypted ones of TLS 1.3 are."""
    count, at = 0, 0
    while at + 5 <= len(packet.payload):
        count += packet.payload[at] == TLS_DATA
        at += 5 + int.from_bytes(packet.payload[at + 3:at + 5], "big")
    return count


def bursts_of(packets, tls13):
    """What the client of a connection sent, from the packets at its side.

    With TLS 1.3 the client sends its start-up packet behind the end of the handshake without waiting for the
    session tickets that the server sends, which may come in between.
    """
    bursts, latest, records = [], None, 0
    for packet in packets:
        if packet.source_port == PORT:
            latest = packet
            continue
        behind_handshake = tls13 and records == 1
        records += data_records(packet) if tls13 else 0
        if not bursts or (bursts[-1].answers is not latest and not behind_handshake):
            bursts.append(Burst(latest))
        bursts[-1].packets.append(packet)
    return bursts


def is_set_up(burst):
    """Is this behind the end of a connection's setting up: a question, or goodbye?  If it is not encrypted."""
    return bytes(burst.packets[0].payload[:1]) in (b"Q", b"X")


class Truth:
    """What setting up a connection cost, from packets; ms.

    An encrypted connection asks one question when it has been set up, and says goodbye: the last two bursts.
    """

    def __init__(self, server, client, tls13):
        at_server = {}
        for packet in server:
            at_server.setdefault((packet.source_port, packet.seq), packet.time)

        def travel(packet):
            return abs(at_server[packet.source_port, packet.seq] - packet.time)

        bursts = bursts_of(client, tls13)
        end = next((i for i, burst in enumerate(bursts) if is_set_up(burst)), len(bursts) - 2)
        bursts = bursts[:end]
        self.round_trips = 1 + len(bursts)
        self.travels = [(travel(b.answers) + travel(b.packets[-1])) / NS_PER_MS for b in bursts[1:]]
        self.network = sum(self.travels)
        self.client = sum(b.packets[-1].time - b.answers.time for b in bursts[1:]) / NS_PER_MS


def truths_of(captured, tls13=False):
    server, client = connections_of(captured.server), connections_of(captured.client)
    return [Truth(server[port], client[port], tls13) for port in server]


def shown(lab, name, count):
    """What pgnetlat shows of a name's connections, when they are there."""
    query = (f"SELECT {', '.join(f'coalesce(sum({c}), 0) AS {c}' for c in COLUMNS)}"
             f" FROM pgnetlat_clients WHERE application_name = '{name}'")

    def complete():
        row, = lab.admin.dictionaries(query)
        row = {column: float(value) for column, value in row.items()}
        return row if row["connections"] >= count else None

    return poll.until(complete, f"{count} connections of {name}", 20)


def compare(results, truths, figures):
    """All connections of a case, added up."""
    count = len(truths)
    waited = sum(t.network + t.client for t in truths)
    results.add("connections", count, figures["connections"], allowed=0, goal="exact", required=True, unit="")
    results.add("connect_round_trips", sum(t.round_trips for t in truths), figures["connect_round_trips"],
                allowed=0, goal="exact", required=True, unit="")
    # until its last answer the server has waited for the network and the client
    results.at_least("connect_time", max(0.97 * waited - SLACK * count, 0), figures["connect_time"], required=True)
    for column in ("connect_time", "connect_tls_time", "connect_auth_time"):
        results.add(f"{column} per connection", float("nan"), figures[column] / count, per=count)


def psql(lab, results, name, user="lab", times=5, **environment):
    """Connections, one after the other."""
    results.case = f"{name}, {label(lab.rtt)}"
    application = f"connecting {name} {lab.rtt}"
    with lab.capture("tun") as captured:
        for _ in range(times):
            lab.run("tun", [lab.program("psql"), "-X", "-q", "-c", "SELECT 1"],
                    environment={"PGUSER": user, "PGPASSWORD": PASSWORD, "PGAPPNAME": application,
                                 "PGGSSENCMODE": "disable", **environment})
    compare(results, truths_of(captured, tls13="TLS 1.3" in name), shown(lab, application, times))


@contextlib.contextmanager
def role_with_password(lab):
    """A role that authenticates itself with SCRAM."""
    hba = lab.server.data / "pg_hba.conf"
    before = hba.read_text()
    lab.admin.query("SET password_encryption = 'scram-sha-256'")
    lab.admin.query(f"CREATE ROLE scrammed LOGIN PASSWORD '{PASSWORD}'")
    hba.write_text("host all scrammed all scram-sha-256\n" + before)
    reload(lab)
    try:
        yield "scrammed"
    finally:
        hba.write_text(before)
        reload(lab)
        lab.admin.query("DROP ROLE scrammed")


def run(lab, results, short):
    with role_with_password(lab) as scrammed:
        for rtt in (0.01,) if short else (0.001, 0.01, 0.05):
            lab.path(rtt)
            psql(lab, results, "trust")
            psql(lab, results, "SCRAM", scrammed)
            psql(lab, results, "TLS 1.3", PGSSLMODE="require")
            psql(lab, results, "TLS 1.3 and SCRAM", scrammed, PGSSLMODE="require")
            psql(lab, results, "TLS 1.2 and SCRAM", scrammed, PGSSLMODE="require", PGSSLMAXPROTOCOLVERSION="TLSv1.2")
        with setting(lab, "ssl", "off"):
            psql(lab, results, "TLS refused, SCRAM", scrammed, PGSSLMODE="prefer")
        pgbench(lab, results, scrammed, 10 if short else 50)


def pgbench(lab, results, user, transactions):
    """A connection for each transaction: where does the time go?"""
    results.case = f"pgbench -C with SCRAM, {label(lab.rtt)}"
    script = lab.directory / "select.sql"
    script.write_text("SELECT 1;\n")
    with lab.capture("tun") as captured:
        lab.run("tun", [lab.program("pgbench"), "-n", "-C", "-t", transactions, "-f", script],
                environment={"PGUSER": user, "PGPASSWORD": PASSWORD, "PGAPPNAME": "connecting pgbench",
                             "PGGSSENCMODE": "disable"})
    truths = truths_of(captured)
    figures = shown(lab, "connecting pgbench", len(truths))
    compare(results, truths, figures)
    busy, = lab.admin.query("SELECT sum(total_time - idle_time) FROM pgnetlat_clients"
                            " WHERE application_name = 'connecting pgbench'")
    results.at_least("connect_time beside the rest", float(busy[0]), figures["connect_time"])
