"""The metrics, defined once.

Both exporters, the CloudNativePG example and the tables in README.md are
generated from here by ./generate, so that a metric has the same name, labels
and query wherever it is read.

Rules that every query keeps, because an exporter punishes the breach with
silence: one row per label tuple, no NULL label, no pid label, seconds as
float8, and counters only from sums that hold ended sessions.  Seconds are
added up as numeric: a sum of float8 depends on the order of the rows, and a
counter that falls in its last digit is a counter that was reset, to
Prometheus.
"""

import dataclasses

# Client groups and statements that have series of their own.  The rest is
# added up in one more, so that sums stay true.
TOP = 20


@dataclasses.dataclass
class Metric:
    column: str         # of the query; the metric's name is <key>_<column>
    type: str           # counter or gauge
    help: str


@dataclasses.dataclass
class Query:
    key: str            # first part of the metrics' names
    sql: str
    labels: list
    metrics: list
    rows: str           # how many rows it returns, for the number of series
    # Columns that become <key>_time_seconds_total{part="<column>"}
    parts: list = dataclasses.field(default_factory=list)
    parts_help: str = ''
    # Columns x_bucket, x_sum and x_count of rows by "le"
    histograms: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Collector:
    name: str
    title: str
    queries: list


def counter(column, help):
    return Metric(column, 'counter', help)


def gauge(column, help):
    return Metric(column, 'gauge', help)


def traffic(sent):
    """What the kernel counts of connections; "sent" says what is sent."""
    return [
        counter('retransmits_total', 'TCP segments sent again.'),
        counter('sent_bytes_total', sent),
        counter('received_bytes_total', 'Bytes received over TCP.'),
        counter('sent_packets_total', 'TCP segments sent.'),
        counter('received_packets_total', 'TCP segments received.'),
    ]


# The exporter's own sessions are left out where it says who it is: give it an
# application_name of its own.
NOT_MYSELF = """(application_name IS NULL OR application_name = ''
        OR application_name <> current_setting('application_name'))"""

# What the role may not see must not look like what is not there: its figures
# would join another series, and leave it when rights are granted.
UNSEEN = """CASE WHEN pg_catalog.pg_has_role('pg_read_all_stats', 'USAGE') THEN '{}' ELSE 'hidden' END"""

# A dropped database keeps its series: its sums must not move to another one.
DATNAME = """coalesce(datname, 'oid:' || datid, 'other')"""

# Since when a client group or a statement counts, as a label.  What was evicted
# and comes back counts from zero: with another text here it is another series,
# and not a counter that fell.
SINCE = """coalesce(to_char(stats_since AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), '')"""

PARTS = ['exec', 'send', 'recv', 'network', 'client', 'idle']
STATEMENT_PARTS = PARTS[:-1]
EXEC_PARTS = ['cpu', 'io', 'lock', 'replication', 'remote', 'other', 'unsampled']
BLOCKER_PARTS = ['exec', 'send', 'recv', 'network', 'client']
STATES = ['executing', 'sending', 'receiving', 'waiting', 'waiting in transaction', 'idle']


def seconds(column):
    """Milliseconds, in whatever order the rows come, added up as seconds."""
    return f'(sum({column}::numeric) * 0.001)::float8'


def seconds_as(column, parts):
    return ',\n       '.join(f'{seconds(column.format(part))} AS {part}' for part in parts)


def seconds_of(parts):
    return seconds_as('{}_time', parts)


# What pgnetlat_clients has since 1.1.  Where the extension has not been updated
# yet, each name is not found in the view, but beside it: a zero.
SINCE_1_1 = ['run_queue_time', 'run_queue_wait_time'] + [f'exec_{part}_time' for part in EXEC_PARTS]

CONNECT_COLUMNS = ['connections', 'failed_connections', 'connect_round_trips', 'connect_time', 'connect_tls_time',
                   'connect_auth_time']


def clients_with(columns):
    """pgnetlat_clients of either version; the columns of 1.1 as x_..."""
    return f"""(VALUES ({', '.join('0::float8' for _ in columns)}))
         absent({', '.join(columns)})
 CROSS JOIN LATERAL (SELECT c.*, {', '.join(f'{column} AS x_{column}' for column in columns)}
                       FROM pgnetlat_clients c) clients"""


EXPORTER = Query(
    key='pgnetlat_exporter',
    rows='1',
    labels=[],
    # works without the extension and without any privilege, so that what is
    # missing shows up as a value
    sql="""
SELECT (SELECT count(*) FROM pg_catalog.pg_extension WHERE extname = 'pgnetlat') AS extension_installed,
       (SELECT count(*) FROM pg_catalog.pg_settings WHERE name = 'pgnetlat.sample_interval') AS library_loaded,
       (SELECT count(*) FROM pg_catalog.pg_settings
         WHERE name = 'pgnetlat.enabled' AND setting = 'on') AS counting_enabled,
       pg_catalog.pg_has_role('pg_read_all_stats', 'USAGE')::int AS role_sees_all""",
    metrics=[
        gauge('extension_installed', '1 if the extension exists in the database that the exporter connects to.'),
        gauge('library_loaded', '1 if the server has loaded the library (shared_preload_libraries).'),
        gauge('counting_enabled', '1 if pgnetlat.enabled is on.'),
        gauge('role_sees_all', "1 if the exporter's role may see all sessions (pg_monitor or pg_read_all_stats)."),
    ])

HEALTH = Query(
    key='pgnetlat_health',
    rows='1',
    labels=[],
    sql="""
SELECT (sampler_pid IS NOT NULL)::int AS sampler_up,
       extract(epoch FROM clock_timestamp()
               - coalesce(sampler_last_tick, pg_catalog.pg_postmaster_start_time()))::float8
         AS sampler_last_tick_age_seconds,
       sampler_ticks AS sampler_ticks_total,
       sampler_cpu_time / 1000 AS sampler_cpu_seconds_total,
       sampler_errors AS sampler_errors_total,
       statements AS statement_entries,
       statements_max AS statement_entries_limit,
       statements_evicted AS statements_evicted_total,
       clients AS client_entries,
       clients_max AS client_entries_limit,
       clients_evicted AS clients_evicted_total,
       blockers AS blocker_entries,
       blockers_max AS blocker_entries_limit,
       blockers_evicted AS blockers_evicted_total,
       shared_memory_bytes,
       extract(epoch FROM coalesce(stats_reset, pg_catalog.pg_postmaster_start_time()))::float8
         AS stats_reset_timestamp_seconds
  FROM pgnetlat_info""",
    metrics=[
        gauge('sampler_up', '1 if the sampler (background worker) is running.'),
        gauge('sampler_last_tick_age_seconds', "Time since the sampler's latest tick."),
        counter('sampler_ticks_total', "The sampler's ticks since the server started."),
        counter('sampler_cpu_seconds_total', 'Processor time that the sampler has used.'),
        counter('sampler_errors_total', 'Errors that the sampler has survived.'),
        gauge('statement_entries', 'Statements in pgnetlat_statements.'),
        gauge('statement_entries_limit', 'pgnetlat.max_statements.'),
        counter('statements_evicted_total', 'Statements added to the row of evicted ones for lack of room.'),
        gauge('client_entries', 'Client groups in pgnetlat_clients.'),
        gauge('client_entries_limit', 'pgnetlat.max_clients.'),
        counter('clients_evicted_total', 'Client groups added to the row of evicted ones for lack of room.'),
        gauge('blocker_entries', 'Holders and statements in pgnetlat_blockers.'),
        gauge('blocker_entries_limit', 'pgnetlat.max_blockers.'),
        counter('blockers_evicted_total', 'Holders and statements added to the row of evicted ones for lack of room.'),
        gauge('shared_memory_bytes', 'Shared memory that the extension occupies.'),
        gauge('stats_reset_timestamp_seconds', 'When counting began: the latest reset, or the start of the server.'),
    ])

INFO = Query(
    key='pgnetlat_build',
    rows='1',
    labels=['version'],
    sql="""
SELECT coalesce(version, '') AS version, 1 AS info FROM pgnetlat_info""",
    metrics=[gauge('info', "Always 1; the library's version is the label.")])

SESSIONS = Query(
    key='pgnetlat_sessions',
    rows='6 x databases with sessions',
    labels=['datname', 'state'],
    # gauges about this moment: the only query that may look at live sessions
    sql=f"""
WITH live AS MATERIALIZED (
    SELECT {DATNAME} AS datname, state, state_change, pid
      FROM pgnetlat_sessions
     WHERE {NOT_MYSELF})
SELECT d.datname, s.state, count(l.pid) AS connected,
       coalesce(max(greatest(extract(epoch FROM clock_timestamp() - l.state_change), 0)), 0)::float8
         AS longest_seconds
  FROM (SELECT DISTINCT datname FROM live) d
 CROSS JOIN (VALUES {', '.join(f"('{state}')" for state in STATES)}) s(state)
  LEFT JOIN live l ON l.datname = d.datname AND l.state = s.state
 GROUP BY 1, 2""",
    metrics=[
        gauge('connected', 'Client sessions in this state.'),
        gauge('longest_seconds', 'How long the session longest in this state has been in it.'),
    ])

DATABASE = Query(
    key='pgnetlat_database',
    rows='databases',
    labels=['datname'],
    sql=f"""
SELECT {DATNAME} AS datname,
       sum(requests) AS requests_total,
       sum(statements) AS statements_total,
       sum(transactions) AS transactions_total,
       sum(pipelined) AS pipelined_requests_total,
       sum(x_pooler_requests) AS pooler_requests_total,
       sum(round_trips) AS round_trips_total,
       sum(ended_sessions) AS ended_sessions_total,
       {seconds('in_xact_wait_time')} AS in_xact_wait_seconds_total,
       {seconds('send_blocked_time')} AS blocked_send_seconds_total,
       {seconds('send_client_time')} AS client_limited_send_seconds_total,
       {seconds('x_run_queue_time')} AS run_queue_seconds_total,
       {seconds('x_run_queue_wait_time')} AS run_queue_wait_seconds_total,
       sum(retransmits) AS retransmits_total,
       sum(bytes_sent) AS sent_bytes_total,
       sum(bytes_received) AS received_bytes_total,
       sum(packets_sent) AS sent_packets_total,
       sum(packets_received) AS received_packets_total,
       {seconds_of(PARTS)}
  FROM {clients_with([*SINCE_1_1[:2], 'pooler_requests'])}
 WHERE {NOT_MYSELF}
 GROUP BY 1""",
    metrics=[
        counter('requests_total', 'Exchanges: requests read and answered.'),
        counter('statements_total', 'Statements executed in them.'),
        counter('transactions_total', 'Transactions ended.'),
        counter('pipelined_requests_total', 'Requests that had already arrived: they cost no round trip.'),
        counter('pooler_requests_total', "Requests of connection poolers' own, as far as they say for whom they work."),
        counter('round_trips_total', 'Requests that cost a round trip.'),
        counter('ended_sessions_total', 'Sessions that have ended.'),
        counter('in_xact_wait_seconds_total',
                'Of the waits (network and client): spent inside a transaction, with its locks held.'),
        counter('blocked_send_seconds_total', 'Part of send: sends that took longer than a mere system call.'),
        counter('client_limited_send_seconds_total', 'Part of these: the client would accept no more data.'),
        counter('run_queue_seconds_total', 'Ready to run, but without a processor: in all parts.'),
        counter('run_queue_wait_seconds_total', 'Part of that and of client, estimated: a request had arrived.'),
        *traffic('Bytes handed to the socket.'),
    ],
    parts=PARTS,
    parts_help="Sessions' wall-clock time by where it went.")

EXECUTION = Query(
    key='pgnetlat_database_exec',
    rows='databases',
    labels=['datname'],
    sql=f"""
SELECT {DATNAME} AS datname,
       {seconds_as('x_exec_{}_time', EXEC_PARTS)}
  FROM {clients_with(SINCE_1_1[2:])}
 WHERE {NOT_MYSELF}
 GROUP BY 1""",
    metrics=[],
    parts=EXEC_PARTS,
    parts_help='Of part exec: what the server did, sampled; lock, replication and remote are waits for others.')

CONNECT = Query(
    key='pgnetlat_connect',
    rows='databases',
    labels=['datname'],
    sql=f"""
SELECT {DATNAME} AS datname,
       sum(x_connections) AS connections_total,
       sum(x_failed_connections) AS failed_connections_total,
       sum(x_connect_round_trips) AS round_trips_total,
       {seconds('x_connect_time')} AS seconds_total,
       {seconds('x_connect_tls_time')} AS tls_seconds_total,
       {seconds('x_connect_auth_time')} AS auth_seconds_total
  FROM {clients_with(CONNECT_COLUMNS)}
 WHERE {NOT_MYSELF}
 GROUP BY 1""",
    metrics=[
        counter('connections_total', 'Connections that were set up.'),
        counter('failed_connections_total', 'Connections that ended before they were: wrong password, rejected, ...'),
        counter('round_trips_total', "Round trips that this took the clients, TCP's own included."),
        counter('seconds_total', 'The time that it took, beside that of sessions.'),
        counter('tls_seconds_total', 'Part of it: agreeing on encryption.'),
        counter('auth_seconds_total', 'Part of it: authentication.'),
    ])

HISTOGRAMS = Query(
    key='pgnetlat',
    rows='databases',
    labels=['datname'],
    sql='',             # one shape per exporter, see histogram_sql_*
    metrics=[],
    histograms=[
        ('request', 'request_seconds', 'Requests: execution, sending and receiving.'),
        ('wait', 'wait_seconds', 'Waits between requests that are not idle: network and client.'),
        ('network', 'wait_network_seconds', 'Of each such wait: the network.'),
        ('client', 'wait_client_seconds', 'Of each such wait: the client thinks.'),
        ('rtt', 'rtt_seconds', 'Round-trip times of the connections, each time they were measured.'),
    ])


def is_metric(metric):
    """What version 1.0 of the extension called "exchange" can be read as well."""
    return "metric IN ('request', 'exchange')" if metric == 'request' else f"metric = '{metric}'"


def histogram_sql_rows():
    """One row per bucket: for exporters that know counters only."""
    columns = []
    for metric, column, _ in HISTOGRAMS.histograms:
        last = f"FILTER (WHERE {is_metric(metric)} AND le = '+Inf')"
        columns += [f"sum(bucket) FILTER (WHERE {is_metric(metric)}) AS {column}_bucket",
                    f'(sum(sum::numeric) {last})::float8 AS {column}_sum',
                    f'sum(count) {last} AS {column}_count']
    return (f'\nSELECT {DATNAME} AS datname, le,\n       ' + ',\n       '.join(columns) +
            f'\n  FROM pgnetlat_histogram\n WHERE {NOT_MYSELF}\n GROUP BY 1, 2')


def histogram_sql_arrays():
    """One row per database: for exporters that know histograms."""
    columns = []
    for metric, column, _ in HISTOGRAMS.histograms:
        each = f"FILTER (WHERE {is_metric(metric)} AND le <> '+Inf')"
        last = f"FILTER (WHERE {is_metric(metric)} AND le = '+Inf')"
        columns += [f'array_agg(le::float8 ORDER BY le::float8) {each} AS {column}',
                    f'array_agg(bucket ORDER BY le::float8) {each} AS {column}_bucket',
                    f'coalesce(max(sum) {last}, 0) AS {column}_sum',
                    f'coalesce(max(count) {last}, 0) AS {column}_count']
    return ('\nSELECT datname,\n       ' + ',\n       '.join(columns) + f"""
  FROM (SELECT {DATNAME} AS datname, metric, le,
               sum(bucket)::bigint AS bucket, sum(sum::numeric)::float8 AS sum, sum(count)::bigint AS count
          FROM pgnetlat_histogram
         WHERE {NOT_MYSELF}
         GROUP BY 1, 2, 3) h
 GROUP BY 1""")


def top_sql(labels, inner, weight, columns):
    """The TOP rows of "inner" by weight, and the others added up.

    Who is among the first is decided by the power of two that the weight has
    reached, the older one first: a place changes hands only when something
    has doubled, not at every scrape.  When it does, the sum of the others
    falls, which Prometheus would take for a reset; so that row carries a label
    (members) made from who has a row of its own, and since when, and becomes a
    new series instead.  So it does when one of them is evicted, and what it has
    counted joins the others, even if it is back before the next scrape.
    """
    names = ', '.join(labels)
    shown = ',\n       '.join(
        [f"CASE WHEN own THEN {label} ELSE 'other' END AS {label}" for label in labels] +
        ["CASE WHEN own THEN since ELSE '' END AS since",
         "CASE WHEN own THEN '' ELSE members END AS members"])
    return f"""
WITH entry AS (
{inner}
), ranked AS (
    SELECT *, NOT evicted AND {TOP} >= row_number() OVER (
                  ORDER BY evicted,
                           floor(ln(greatest({weight}, 1)) / ln(2)) DESC,
                           since, {names}) AS own
      FROM entry
), named AS (
    SELECT *, to_hex(hashtext(string_agg(concat_ws(' ', {names}, since), ',') FILTER (WHERE own)
                              OVER (ORDER BY {names}, since
                                    ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING))) AS members
      FROM ranked
)
SELECT {shown},
       {columns}
  FROM named
 GROUP BY {', '.join(str(i + 1) for i in range(len(labels) + 2))}"""


CLIENT = Query(
    key='pgnetlat_client',
    rows=f'{TOP} + 1',
    labels=['datname', 'usename', 'application_name', 'client_addr', 'since', 'members'],
    sql=top_sql(
        ['datname', 'usename', 'application_name', 'client_addr'],
        f"""    SELECT {DATNAME} AS datname,
           coalesce(usename, 'oid:' || usesysid, 'other') AS usename,
           coalesce(application_name, 'other') AS application_name,
           coalesce(host(client_addr), {UNSEEN.format('local')})
             AS client_addr,
           datid IS NULL OR usesysid IS NULL AS evicted,
           {SINCE} AS since,
           sessions, requests, transactions, round_trips, rtt,
           in_xact_wait_time, send_blocked_time, send_client_time, x_run_queue_wait_time, retransmits,
           bytes_sent, packets_sent, x_connections, x_failed_connections, x_connect_time,
           {', '.join(part + '_time' for part in PARTS)}
      FROM {clients_with(['run_queue_wait_time', 'connections', 'failed_connections', 'connect_time'])}
     WHERE {NOT_MYSELF}""",
        'exec_time + send_time + recv_time + network_time + client_time',
        f"""sum(sessions) AS sessions,
       coalesce(max(rtt), 0) / 1000 AS rtt_seconds,
       sum(requests) AS requests_total,
       sum(transactions) AS transactions_total,
       sum(round_trips) AS round_trips_total,
       {seconds('in_xact_wait_time')} AS in_xact_wait_seconds_total,
       {seconds('send_blocked_time')} AS blocked_send_seconds_total,
       {seconds('send_client_time')} AS client_limited_send_seconds_total,
       {seconds('x_run_queue_wait_time')} AS run_queue_wait_seconds_total,
       sum(retransmits) AS retransmits_total,
       sum(bytes_sent) AS sent_bytes_total,
       sum(packets_sent) AS sent_packets_total,
       sum(x_connections) AS connections_total,
       sum(x_failed_connections) AS failed_connections_total,
       {seconds('x_connect_time')} AS connect_seconds_total,
       {seconds_of(PARTS)}"""),
    metrics=[
        gauge('sessions', "The group's sessions that are connected now."),
        gauge('rtt_seconds', "The latest round-trip time measured; the greatest among the others; 0 where unknown."),
        counter('requests_total', 'Exchanges: requests read and answered.'),
        counter('transactions_total', 'Transactions ended.'),
        counter('round_trips_total', 'Requests that cost a round trip.'),
        counter('in_xact_wait_seconds_total',
                'Of the waits (network and client): spent inside a transaction, with its locks held.'),
        counter('blocked_send_seconds_total', 'Part of send: sends that took longer than a mere system call.'),
        counter('client_limited_send_seconds_total', 'Part of these: the client would accept no more data.'),
        counter('run_queue_wait_seconds_total',
                'Part of client, estimated: a request had arrived, and no processor was free.'),
        counter('retransmits_total', 'TCP segments sent again.'),
        counter('sent_bytes_total', 'Bytes handed to the socket.'),
        counter('sent_packets_total', 'TCP segments sent.'),
        counter('connections_total', 'Connections that were set up.'),
        counter('failed_connections_total', 'Connections that ended before they were.'),
        counter('connect_seconds_total', 'Setting up connections, beside the time of sessions.'),
    ],
    parts=PARTS,
    parts_help="The group's wall-clock time by where it went.")

STATEMENT = Query(
    key='pgnetlat_statement',
    rows=f'{TOP} + 1',
    labels=['datname', 'usename', 'queryid', 'since', 'members'],
    sql=top_sql(
        ['datname', 'usename', 'queryid'],
        f"""    SELECT coalesce(d.datname, 'oid:' || s.dbid, 'other') AS datname,
           coalesce(r.rolname, 'oid:' || s.userid, 'other') AS usename,
           coalesce(s.queryid::text, {UNSEEN.format('none')})
             AS queryid,
           s.dbid IS NULL AS evicted,
           {SINCE} AS since,
           s.calls, s.rows, s.in_xact_wait_time, s.bytes_sent,
           s.repeats, s.repeat_network_time,
           {', '.join('s.' + part + '_time' for part in STATEMENT_PARTS)}
      FROM pgnetlat_statements s
      LEFT JOIN pg_catalog.pg_database d ON d.oid = s.dbid
      LEFT JOIN pg_catalog.pg_roles r ON r.oid = s.userid""",
        'exec_time + send_time + recv_time + network_time + client_time',
        f"""sum(calls) AS calls_total,
       sum(rows) AS rows_total,
       {seconds('in_xact_wait_time')} AS in_xact_wait_seconds_total,
       sum(bytes_sent) AS sent_bytes_total,
       sum(repeats) AS repeats_total,
       {seconds('repeat_network_time')} AS repeat_network_seconds_total,
       {seconds_of(STATEMENT_PARTS)}"""),
    metrics=[
        counter('calls_total', 'Executions.'),
        counter('rows_total', 'Rows returned or affected.'),
        counter('in_xact_wait_seconds_total', 'Of the waits after it: spent inside a transaction.'),
        counter('sent_bytes_total', 'Bytes of its responses.'),
        counter('repeats_total', 'Executions that repeat an earlier one of the same burst: one statement could do.'),
        counter('repeat_network_seconds_total', 'Network time that those repetitions cost.'),
    ],
    parts=STATEMENT_PARTS,
    parts_help='Wall-clock time by where it went; a wait is booked to the statement before it.')

BLOCKER = Query(
    key='pgnetlat_blocker',
    rows=f'{TOP} + 1',
    labels=['datname', 'usename', 'application_name', 'client_addr', 'backend_type', 'queryid', 'since', 'members'],
    sql=top_sql(
        ['datname', 'usename', 'application_name', 'client_addr', 'backend_type', 'queryid'],
        f"""    SELECT {DATNAME} AS datname,
           coalesce(usename, 'oid:' || usesysid, {UNSEEN.format('none')}) AS usename,
           coalesce(application_name, 'other') AS application_name,
           coalesce(host(client_addr), {UNSEEN.format('local')})
             AS client_addr,
           coalesce(backend_type, {UNSEEN.format('other')})
             AS backend_type,
           coalesce(queryid::text, {UNSEEN.format('none')})
             AS queryid,
           backend_type IS NULL AS evicted,
           {SINCE} AS since,
           coalesce(blocked_sessions, 0) AS blocked_sessions,
           coalesce(blocked_time, 0) AS blocked_time,
           {', '.join(f'coalesce(blocked_by_{part}_time, 0) AS {part}_time' for part in BLOCKER_PARTS)}
      FROM pgnetlat_blockers""",
        'blocked_time',
        f"""sum(blocked_sessions) AS blocked_sessions,
       {seconds('blocked_time')} AS blocked_seconds_total,
       {seconds_of(BLOCKER_PARTS)}"""),
    metrics=[
        gauge('blocked_sessions', 'Sessions that wait for their locks now.'),
        counter('blocked_seconds_total', 'Time that sessions waited for their locks.'),
    ],
    parts=BLOCKER_PARTS,
    parts_help='Part of that by what the holder of the lock did meanwhile.')

POOL = Query(
    key='pgnetlat_pool',
    rows=f'{TOP} + 1',
    labels=['datname', 'usename'],
    # Gauges over the last 15 minutes.  How many sessions of different pools are
    # busy at once cannot be added up: beside the first ones there is a row for
    # all sessions.  Rows that the role may not see, and what was evicted, have
    # no figures.
    sql=f"""
SELECT CASE WHEN datid IS NULL THEN '(all)' ELSE coalesce(datname, 'oid:' || datid) END AS datname,
       CASE WHEN usesysid IS NULL THEN '(all)' ELSE coalesce(usename, 'oid:' || usesysid) END AS usename,
       sessions, sessions_max, coalesce(busy, 0) AS busy, busy_avg,
       busy_p50, busy_p95, busy_p99, busy_p999, busy_max, pool_size AS size
  FROM pgnetlat_pools_last()
 WHERE pool_size IS NOT NULL
 ORDER BY datid IS NOT NULL, busy_avg DESC, sessions_max DESC, datname, usename
 LIMIT {TOP} + 1""",
    metrics=[
        gauge('sessions', 'Sessions that are connected now.'),
        gauge('sessions_max', 'The most that were connected at a time, in the last 15 minutes.'),
        gauge('busy', 'Sessions in a request or in a transaction now.'),
        gauge('busy_avg', 'How many were on average, in the last 15 minutes.'),
        gauge('busy_p50', 'The number that was not exceeded for 50 % of the last 15 minutes.'),
        gauge('busy_p95', 'The same for 95 % of the time.'),
        gauge('busy_p99', 'The same for 99 % of the time.'),
        gauge('busy_p999', 'The same for 99.9 % of the time.'),
        gauge('busy_max', 'The most that were busy at a time, in the last 15 minutes.'),
        gauge('size', 'Server connections with which transaction pooling would have served them without a wait '
                      'for 99.9 % of that time.'),
    ])

# Of what has no client of its own, the labels say so.
FINDING = Query(
    key='pgnetlat_finding',
    rows=f'{TOP} + 1',
    labels=['verdict', 'subject_kind', 'datname', 'usename', 'application_name', 'client_addr'],
    # Gauges over the last 15 minutes; "other" is the sum of those that cost less
    # than the first ones.
    sql=f"""
WITH finding AS (
    SELECT verdict, subject_kind,
           CASE WHEN datid IS NULL THEN '(all)' ELSE coalesce(datname, 'oid:' || datid) END AS datname,
           CASE WHEN usesysid IS NULL THEN '(all)' ELSE coalesce(usename, 'oid:' || usesysid) END
             AS usename,
           coalesce(application_name, '(all)') AS application_name,
           CASE WHEN application_name IS NULL THEN '(all)' ELSE coalesce(host(client_addr), 'local') END AS client_addr,
           count(*) AS findings,
           sum(lost_sessions) AS lost,
           coalesce(sum(saving_sessions), 0) AS saving
      FROM pgnetlat_diagnose()
     WHERE verdict <> 'no problem found' AND {NOT_MYSELF}
     GROUP BY 1, 2, 3, 4, 5, 6
), ranked AS (
    SELECT *, {TOP} >= row_number() OVER (
                  ORDER BY lost DESC, verdict, subject_kind, datname, usename, application_name, client_addr) AS own
      FROM finding
)
SELECT CASE WHEN own THEN verdict ELSE 'other' END AS verdict,
       CASE WHEN own THEN subject_kind ELSE 'other' END AS subject_kind,
       CASE WHEN own THEN datname ELSE 'other' END AS datname,
       CASE WHEN own THEN usename ELSE 'other' END AS usename,
       CASE WHEN own THEN application_name ELSE 'other' END AS application_name,
       CASE WHEN own THEN client_addr ELSE 'other' END AS client_addr,
       sum(findings) AS findings,
       sum(lost) AS lost_seconds_per_second,
       sum(saving) AS saving_seconds_per_second
  FROM ranked
 GROUP BY 1, 2, 3, 4, 5, 6""",
    metrics=[
        gauge('findings', 'Findings of pgnetlat_diagnose() over the last 15 minutes: sessions, statements, or one.'),
        gauge('lost_seconds_per_second', 'What is lost to it: 1 is a session that loses all of its time.'),
        gauge('saving_seconds_per_second', 'What the cure would save of that; 0 where the figures do not tell.'),
    ])

PREDICTION = Query(
    key='pgnetlat_prediction',
    rows=f'{TOP}',
    labels=['datname', 'usename', 'application_name', 'client_addr'],
    # Gauges over the last 15 minutes, of the busiest client groups of which
    # everything is known.  Ratios cannot be added up: there is no row for others.
    sql=f"""
SELECT coalesce(datname, 'oid:' || datid) AS datname,
       coalesce(usename, 'oid:' || usesysid) AS usename,
       application_name,
       coalesce(host(client_addr), 'local') AS client_addr,
       max(change) FILTER (WHERE what = 'rtt') AS near_throughput_ratio,
       max(change) FILTER (WHERE what = 'batch') AS batch_throughput_ratio,
       max(change) FILTER (WHERE what = 'speed') AS fast_throughput_ratio
  FROM (SELECT 'rtt' AS what, * FROM pgnetlat_what_if(rtt => 0.5)
        UNION ALL
        SELECT 'batch', * FROM pgnetlat_what_if(batch => 10)
        UNION ALL
        SELECT 'speed', * FROM pgnetlat_what_if(server_speed => 2)) predicted
 WHERE {NOT_MYSELF}
   AND datid IS NOT NULL AND usesysid IS NOT NULL
 GROUP BY 1, 2, 3, 4
HAVING count(change) = 3
 ORDER BY max(transactions * transaction_time) DESC, 1, 2, 3, 4
 LIMIT {TOP}""",
    metrics=[
        gauge('near_throughput_ratio',
              'What pgnetlat_what_if() predicts of transactions per second: how many times as many if the round trip '
              'were 0.5 ms.'),
        gauge('batch_throughput_ratio', 'The same if ten statements shared a round trip.'),
        gauge('fast_throughput_ratio', 'The same if the server were twice as fast.'),
    ])

# As many rows as there are receivers: max_wal_senders is 10 by default.
REPLICATION_GROUPS = 10
WALSENDER_PARTS = ['sender', 'network_limited', 'receiver_limited', 'buffer_limited']

REPLICATION = Query(
    key='pgnetlat_replication',
    rows='G',
    labels=['application_name', 'client_addr'],
    # Without privileges, and over Unix-domain sockets, there are no figures.
    sql=f"""
SELECT r.application_name,
       host(r.client_addr) AS client_addr,
       sum(r.walsenders) AS walsenders,
       coalesce(max(r.flush_lag), 0) / 1000 AS flush_lag_seconds,
       coalesce(min(r.rtt), 0) / 1000 AS rtt_seconds,
       coalesce(sum(r.bytes_queued), 0) AS queued_bytes,
       coalesce(sum(r.retransmits), 0) AS retransmits_total,
       coalesce(sum(r.bytes_acked), 0) AS acked_bytes_total,
       {seconds_of(WALSENDER_PARTS)}
  FROM pgnetlat_replication r
 WHERE r.sender_time IS NOT NULL
 GROUP BY 1, 2""",
    metrics=[
        gauge('walsenders', 'Walsenders that are connected.'),
        gauge('flush_lag_seconds', 'From when WAL was sent until its flush was confirmed; 0 where unknown.'),
        gauge('rtt_seconds', 'The round-trip time of the path; 0 where unknown.'),
        gauge('queued_bytes', "Bytes handed over that the receiver's kernel has not acknowledged."),
        counter('retransmits_total', 'TCP segments sent again.'),
        counter('acked_bytes_total', "Bytes that the receiver's kernel has acknowledged."),
    ],
    parts=WALSENDER_PARTS,
    parts_help="Time of walsenders' connections by what limited them: the sender had nothing under way, the path, the "
               'receiver, or the send buffer.')

COLLECTORS = [
    Collector('pgnetlat', 'Where the time goes, per database; the health of it all',
              [EXPORTER, HEALTH, INFO, SESSIONS, DATABASE, EXECUTION, CONNECT, HISTOGRAMS]),
    Collector('pgnetlat_clients', f'Opt-in: the {TOP} client groups that matter most, and the others',
              [CLIENT]),
    Collector('pgnetlat_statements', f'Opt-in: the {TOP} statements that matter most, and the others',
              [STATEMENT]),
    Collector('pgnetlat_blockers', f'Opt-in: the {TOP} clients and statements that held up others most, and the others',
              [BLOCKER]),
    Collector('pgnetlat_pools', f'Opt-in: how many sessions are busy at once, in the {TOP} busiest pools and in all',
              [POOL]),
    Collector('pgnetlat_findings', f'Opt-in: the {TOP} findings of pgnetlat_diagnose() that cost most, and the others',
              [FINDING]),
    Collector('pgnetlat_predictions', f'Opt-in: what pgnetlat_what_if() predicts of the {TOP} busiest client groups',
              [PREDICTION]),
    Collector('pgnetlat_replication', 'Opt-in: walsenders, by application and address',
              [REPLICATION]),
]
