#!/usr/bin/env python3
"""Write the Grafana dashboard, pgnetlat.json.

  dashboard.py            write it
  dashboard.py --check    write nothing; fail if it is not what would be written

Needs what requirements.txt says.  The rows follow the order in which somebody
asks: what is wrong, and who blocks others; is it the network, the client or
the server; since when; can the figures be trusted.  Rows that need an opt-in
collector come after that and are folded, so that nothing empty is in sight.
Panels read the exporters' metrics, not the recording rules, so that the
dashboard works without them.
"""

import pathlib
import re
import sys

from grafana_foundation_sdk.builders import common as common_builders
from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.builders import prometheus, stat, table, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common
from grafana_foundation_sdk.models import dashboard as models

PATH = pathlib.Path(__file__).resolve().parent / 'pgnetlat.json'

SERVER = 'job=~"$job", instance=~"$instance"'
DATABASE = SERVER + ', datname=~"$datname"'
# what is about the whole server has a name of its own for it
ANY = SERVER + r', datname=~"$datname|\\(all\\)"'
# holders of locks need not be in a database
ANY_HOLDER = SERVER + r', datname=~"$datname|\\(none\\)"'
# the row of those outside the top has no names
ROLE = SERVER + ', datname=~"$datname|other", usename=~"$usename|other"'
CLIENT = ROLE + ', application_name=~"$application|other"'

SOURCE = models.DataSourceRef(type_val='prometheus', uid='${datasource}')

COLOURS = {'server': 'blue', 'network': 'orange', 'client': 'green'}


# --- queries ------------------------------------------------------------

def rate(metric, labels, offset=''):
    return f'rate({metric}{{{labels}}}[$__rate_interval]{offset})'


def total(metric, labels=DATABASE, by='', offset=''):
    return f'sum{by} ({rate(metric, labels, offset)})'


def seconds(names, family='database', labels=DATABASE, by='', offset=''):
    """Seconds per second of these parts, that is sessions kept busy."""
    return ' + '.join(total(f'pgnetlat_{family}_{name}_seconds_total', labels, by, offset) for name in names.split())


def side(name, family='database', labels=DATABASE, by='', offset=''):
    """Sessions kept busy by one of the three.

    As the view's shares have it: a send is the server's work, but where it was
    blocked the network's, but where the client would take no more the client's.
    Where a request had come and no CPU was free to read it, the server's.
    """
    blocked, limited, queued = (seconds(part, family, labels, by, offset)
                                for part in ('send_blocked', 'send_client', 'run_queue_wait'))
    if name == 'server':
        return f'clamp_min({seconds("exec send", family, labels, by, offset)} - {blocked} + {queued}, 0)'
    if name == 'network':
        return f'clamp_min({seconds("network", family, labels, by, offset)} + {blocked} - {limited}, 0)'
    return f'clamp_min({seconds("client recv", family, labels, by, offset)} + {limited} - {queued}, 0)'


def share(name, by='', offset=''):
    """Of the sum of the three, so that no share is above 1."""
    whole = ' + '.join(side(other, by=by, offset=offset) for other in ('server', 'network', 'client'))
    return f'{side(name, by=by, offset=offset)} / (({whole}) > 0)'


def per(numerator, denominator):
    return f'({numerator}) / (({denominator}) > 0)'


def quantile(q, metric):
    """Nothing, rather than NaN, where nothing was measured."""
    return f'histogram_quantile({q}, {total(metric + "_bucket", by=" by (le)")}) >= 0'


# --- panels -------------------------------------------------------------

def queries(panel, targets, instant=False):
    """targets: (expression, legend) each."""
    panel.datasource(SOURCE)
    for number, (expression, legend) in enumerate(targets):
        query = (prometheus.Dataquery().expr(expression).legend_format(legend)
                 .ref_id(chr(ord('A') + number)).datasource(SOURCE))
        if instant:
            query.instant().format('table')
        else:
            query.range()
        panel.with_target(query)
    return panel


def graph(title, description, unit, targets, width=12, stacked=False, colours=None, axis=None, height=8, nothing=None):
    """nothing: what the panel says where its queries find nothing to divide by."""
    panel = (timeseries.Panel().title(title).description(description).unit(unit).min(0)
             .height(height).span(width).fill_opacity(60 if stacked else 10).line_width(1)
             .show_points(common.VisibilityMode.NEVER)
             .tooltip(common_builders.VizTooltipOptions().mode(common.TooltipDisplayMode.MULTI)
                      .sort(common.SortOrder.DESCENDING))
             .legend(common_builders.VizLegendOptions().display_mode(common.LegendDisplayMode.LIST)
                     .placement(common.LegendPlacement.BOTTOM).show_legend(True)))
    if nothing:
        panel.no_value(nothing)
    if stacked:
        panel.stacking(common_builders.StackingConfig().mode(common.StackingMode.NORMAL))
    if axis:
        panel.axis_label(axis)
    for name, colour in (colours or {}).items():
        panel.override_by_name(name, [models.DynamicConfigValue(
            'color', {'mode': 'fixed', 'fixedColor': colour})])
    return queries(panel, targets)


def number(title, description, unit, targets, width=6, thresholds=((None, 'text'),), height=5,
           text_mode=common.BigValueTextMode.AUTO, nothing=None):
    steps = [models.Threshold(value=value, color=colour) for value, colour in thresholds]
    panel = (stat.Panel().title(title).description(description).unit(unit).height(height).span(width)
             .color_mode(common.BigValueColorMode.VALUE).graph_mode(common.BigValueGraphMode.AREA)
             .text_mode(text_mode)
             .reduce_options(common_builders.ReduceDataOptions().calcs(['lastNotNull']))
             .thresholds(builders.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(steps)))
    if nothing:
        panel.no_value(nothing)
    return queries(panel, targets)


def listing(title, description, unit, targets, units, hidden=(), width=24, height=9):
    """One row per label tuple, one column per query; "units" by query."""
    panel = (table.Panel().title(title).description(description).unit(unit).height(height).span(width))
    queries(panel, targets, instant=True)
    for index, (name, column_unit) in enumerate(units):
        panel.override_by_name(f'Value #{chr(ord("A") + index)}', [
            models.DynamicConfigValue('displayName', name),
            models.DynamicConfigValue('unit', column_unit)])
    panel.with_transformation(models.DataTransformerConfig('merge', options={}))
    panel.with_transformation(models.DataTransformerConfig('organize', options={
        'excludeByName': {'Time': True, **{name: True for name in hidden}}}))
    panel.with_transformation(models.DataTransformerConfig('sortBy', options={
        'sort': [{'field': 'Value #A', 'desc': True}]}))
    return panel


def folded(title):
    return builders.Row(title).collapsed(True)


def fold(panels):
    """Into folded rows what follows them, which come below all that is in sight."""
    result, row = [], None
    for panel in panels:
        if panel.type_val == 'row':
            if row:
                panel.grid_pos.y = row.grid_pos.y + 1
            row = panel if panel.collapsed else None
            result.append(panel)
        elif row:
            panel.field_config.defaults.no_value = f'nothing happened, or no {re.search("collector [a-z_]+", row.title)[0]}'
            row.panels.append(panel)
        else:
            result.append(panel)
    return result


def link(panel, label, links):
    """From a row's label; "links" are (title, URL) each."""
    panel.override_by_name(label, [models.DynamicConfigValue(
        'links', [{'title': title, 'url': url} for title, url in links])])
    return panel


def narrowed(*labels, panel=None):
    """This dashboard for the row's labels alone, or one panel of it, the folded rows' included."""
    variables = {'application_name': 'application'}
    kept = ''.join(f'&${{{name}:queryparam}}' for name in ('datasource', 'job', 'instance') if name not in labels)
    chosen = ''.join(f'&var-{variables.get(label, label)}=${{__data.fields.{label}:percentencode}}' for label in labels)
    return f'/d/pgnetlat?${{__url_time_range}}{kept}{chosen}' + (f'&viewPanel=<{panel}>' if panel else '')


TO_DATABASE = [('Only this database', narrowed('datname')),
               ('Its clients (collector pgnetlat_clients)', narrowed('datname', panel='Clients'))]


def or_none(expression, label, text):
    """A panel of what is wrong is not empty where nothing is."""
    return f'{expression} or on () label_replace(vector(0), "{label}", "{text}", "", "")'


def what_now(board):
    finding = f'pgnetlat_finding_lost_sessions{{{ANY}}}'

    # findings always have a row, so nothing stands in for a missing one
    def worst(at=''):
        return 'topk(1, ' + ' or '.join(
            f'max by (verdict) (0 * pgnetlat_finding_lost_sessions{{{ANY}, severity="{severity}"}}{at} + {rank})'
            for rank, severity in ((3, 'outage'), (2, 'loss'), (1, 'note'), (0, 'none'))) + ')'

    whole = SERVER + ', datname="(all)"'
    board.with_row(builders.Row('What is wrong?'))
    board.with_panel(number(
        'Worst finding',
        'The worst verdict of pgnetlat_diagnose() now. Red: an outage, sessions are stopped. Orange: a loss. Blue: worth '
        'knowing. Green: nothing was found. Without a value, the query of findings fails.',
        'none',
        # not what was worst earlier: a panel has a value for each series
        [(f'{worst()} and on (verdict) {worst(" @ end()")}', '{{verdict}}')],
        width=6, height=6, thresholds=((None, 'green'), (1, 'blue'), (2, 'orange'), (3, 'red')),
        text_mode=common.BigValueTextMode.NAME))
    findings = listing(
        'The three costliest findings',
        'What pgnetlat_diagnose() finds in the last minute, whom it is about, and how many sessions it keeps from their '
        'work. Evidence and advice: SELECT * FROM pgnetlat_diagnose().',
        'suffix: sessions',
        [(f'topk(3, sum by (severity, verdict, subject, datname) ({finding}))', '')],
        [('lost', 'suffix: sessions')], width=18, height=6)
    board.with_panel(link(findings, 'datname', TO_DATABASE))
    holders = listing(
        'Who blocks others now',
        'Holders of locks that others wait for at this moment, and how long the holder itself has been waiting for its '
        'client inside the transaction.',
        'short',
        [(or_none(f'sum by (datname, usename, application_name, client_addr) (pgnetlat_holder_{metric}{{{ANY_HOLDER}}})',
                  'application_name', 'nobody'), '') for metric in ('blocked_sessions', 'client_wait_seconds')],
        [('sessions that wait', 'short'), ('waits for its client', 's')], width=15, height=7)
    board.with_panel(link(holders, 'datname', TO_DATABASE))
    board.with_panel(graph(
        'Sessions blocked',
        'Sessions that wait for locks, by who holds them.',
        'suffix: sessions',
        [(or_none('sum by (holder) (label_join(pgnetlat_holder_blocked_sessions'
                  f'{{{ANY_HOLDER}}}, "holder", "@", "application_name", "client_addr"))', 'holder', 'nobody'),
          '{{holder}}')], width=9, height=7))
    board.with_panel(graph(
        'Time lost, by verdict',
        'What pgnetlat_diagnose() found, over time.',
        'suffix: sessions', [(f'sum by (verdict) ({finding})', '{{verdict}}')],
        width=12))
    board.with_panel(graph(
        'Connections, and how many are needed',
        'Connected sessions, the most that were busy at once, the server connections with which a pooler would have served '
        'them without a wait for 99.9 % of the last minute, and the connections that the server allows.',
        'suffix: sessions',
        [(f'max by (instance) (pgnetlat_pool_{metric}{{{whole}}})', f'{name} {{{{instance}}}}')
         for metric, name in (('sessions', 'connected'), ('busy_max', 'busy'), ('needed', 'needed'))] +
        [(f'max by (instance) (pgnetlat_connections_maximum{{{SERVER}}})', 'allowed {{instance}}')], width=12))


def is_it(board):
    board.with_row(builders.Row('Is it the network, the client or the server?'))
    names = {'server': 'Server', 'network': 'Network', 'client': 'Client'}
    meaning = {
        'server': 'sessions execute: CPU, locks, disk. A faster server or a better plan would shorten it.',
        'network': 'requests and responses are under way: round trips and blocked sending. Fewer statements, a nearer '
                   'client or a better path would shorten it.',
        'client': 'the server waits for the application between two statements of one piece of work. Nothing in the '
                  'database shortens it.'}
    for name, title in names.items():
        board.with_panel(number(
            f'{title}\'s share',
            f'Part of the busy time in which {meaning[name]} The three add up to 100 %; idle sessions do not count, and '
            'while nobody works there are no shares.',
            'percentunit', [(share(name), title)], width=6,
            thresholds=((None, COLOURS[name]),), nothing='nobody worked'))
    board.with_panel(number(
        'Open transactions that wait',
        'How many transactions, on average, were open and waiting for their client, with their locks held. Above a few: '
        'look for applications that do something else between BEGIN and COMMIT.',
        'suffix: waiting', [(seconds('transaction_wait'), 'waiting')], width=6,
        thresholds=((None, 'green'), (5, 'orange'), (50, 'red'))))
    by = ' by (instance, datname)'
    databases = listing(
        'Databases',
        'For each database: sessions kept busy by the server, by the network and by their clients, and transactions that '
        'were open and waited for a client. A click leads to its clients.',
        'suffix: sessions',
        [(' + '.join(f'({side(name, by=by)})' for name in names), ''),
         *((side(name, by=by), '') for name in names),
         (seconds('transaction_wait', by=by), ''),
         (f'sum{by} (pgnetlat_database_sessions{{{DATABASE}}})', '')],
        [('busy', 'suffix: sessions'), *((name, 'suffix: sessions') for name in names),
         ('waiting in transaction', 'suffix: sessions'), ('connected', 'short')], height=7)
    board.with_panel(link(databases, 'datname', [
        ('Only this database', narrowed('instance', 'datname')),
        ('Its clients (collector pgnetlat_clients)', narrowed('instance', 'datname', panel='Clients'))]))
    board.with_panel(graph(
        'Where sessions spend their time',
        'Sessions kept busy on average, by what they did: 2 means that two sessions did nothing else. A wait between '
        'statements is network for one round trip and client for the rest.',
        'suffix: sessions', [(seconds(part), part) for part in ('exec', 'send', 'recv', 'network', 'client')],
        stacked=True, axis='busy sessions',
        colours={'exec': 'blue', 'send': 'light-blue', 'network': 'orange', 'client': 'green', 'recv': 'dark-green'}))
    board.with_panel(graph(
        'What the server does meanwhile',
        'What "exec" consists of, sampled: on a CPU or waiting for one (cpu), for files (io), for locks, for a '
        'standby (replication), as a client of another server (remote), for anything else (other). Beside it: the '
        'time for which sessions were waiting for a CPU.',
        'suffix: sessions',
        [(seconds('exec_' + part), part) for part in ('cpu', 'io', 'lock', 'replication', 'remote', 'other')] +
        [(seconds('run_queue'), 'waiting for a CPU')],
        axis='executing sessions'))
    board.with_panel(graph(
        'What one request costs',
        'Mean time per request and response, by where it went. Where the network takes several times as long as the '
        'server, batching pays more than tuning.',
        's', [(per(side(name), total('pgnetlat_database_requests_total')), title) for name, title in names.items()],
        colours={title: COLOURS[name] for name, title in names.items()}, nothing='no requests'))
    board.with_panel(graph(
        'Sessions',
        'Client sessions that are connected, by database.',
        'suffix: sessions',
        [(f'sum by (instance, datname) (pgnetlat_database_sessions{{{DATABASE}}})', '{{instance}} {{datname}}')],
        stacked=True))
    board.with_panel(graph(
        'Longest wait inside a transaction',
        'How long the transaction that has been waiting longest for its client has waited, up to now. It keeps locks '
        'and holds back vacuum.',
        's', [(f'max by (instance, datname) (pgnetlat_database_longest_transaction_wait_seconds{{{DATABASE}}})',
               '{{instance}} {{datname}}')]))
    board.with_panel(graph(
        'Connecting',
        'Connections that are set up, and that fail (wrong password, rejected, too many), per second.',
        'ops', [(total('pgnetlat_connections_opened_total', SERVER), 'opened'),
                (total('pgnetlat_connections_failed_total', SERVER), 'failed')]))


def since(board):
    past = ' offset $past'
    trip = ('pgnetlat_database_network_seconds_total', 'pgnetlat_database_round_trips_total')
    trips = ('pgnetlat_database_round_trips_total', 'pgnetlat_database_transactions_total')

    def now_and_before(a, b):
        return [(per(total(a), total(b)), 'now'), (per(total(a, offset=past), total(b, offset=past)), '$past before')]

    board.with_row(builders.Row('Since when?'))
    board.with_panel(graph(
        'Network share, now and before',
        'The network\'s part of the busy time, now and as long before as "Compare with" says.',
        'percentunit', [(share('network'), 'now'), (share('network', offset=past), '$past before')], width=8,
        colours={'now': 'orange', '$past before': 'light-orange'}, nothing='nobody worked'))
    board.with_panel(graph(
        'Network time per round trip, now and before',
        'A step up: the path has changed, or clients connect from elsewhere. Behind a pooler, this is the path to the '
        'pooler.',
        's', now_and_before(*trip), width=8, nothing='no round trips'))
    board.with_panel(graph(
        'Round trips per transaction, now and before',
        'How often a transaction goes back and forth. A step up after a release: the application asks more often.',
        'short', now_and_before(*trips), width=8, nothing='no transactions'))
    board.with_panel(graph(
        'Network share by database',
        'Part of each database\'s busy time that is round trips and blocked sending.',
        'percentunit', [(share('network', by=' by (instance, datname)'), '{{instance}} {{datname}}')],
        nothing='nobody worked'))
    board.with_panel(graph(
        'Segments sent again',
        'Share of the TCP segments that were sent again. Above 1 %, the path loses packets.',
        'percentunit',
        [(f'clamp_max({per(*(total(metric, by=" by (instance, datname)") for metric in packets))}, 1)',
          '{{instance}} {{datname}}')
         for packets in (('pgnetlat_database_retransmits_total', 'pgnetlat_database_sent_packets_total'),)],
        nothing='no TCP segments'))


def who(board):
    by = ' by (datname, usename, application_name, client_addr)'
    legend = '{{application_name}} {{usename}}@{{client_addr}} {{datname}}'
    board.with_row(folded('Who? (collector pgnetlat_clients)'))
    board.with_panel(graph(
        'Network time by client',
        'Sessions that the network kept waiting, for the ten client groups with the most. Needs the collector '
        'pgnetlat_clients, whose smaller groups are "other".',
        'suffix: sessions', [(f'topk(10, {side("network", "client", CLIENT, by)})', legend)]))
    board.with_panel(graph(
        'Think time by client',
        'Sessions that waited while their client thought, for the ten client groups with the most. Needs the collector '
        'pgnetlat_clients.',
        'suffix: sessions', [(f'topk(10, {side("client", "client", CLIENT, by)})', legend)]))
    clients = listing(
        'Clients',
        'Each group of clients: sessions kept busy by the network, by the client, by the server; transactions open and '
        'waiting; latest round trip; round trips per transaction. Needs the collector pgnetlat_clients.',
        'short',
        [(side('network', 'client', CLIENT, by), ''),
         (side('client', 'client', CLIENT, by), ''),
         (side('server', 'client', CLIENT, by), ''),
         (seconds('transaction_wait', 'client', CLIENT, by), ''),
         (f'max{by} (pgnetlat_client_rtt_seconds{{{CLIENT}}})', ''),
         (per(total('pgnetlat_client_round_trips_total', CLIENT, by),
              total('pgnetlat_client_transactions_total', CLIENT, by)), '')],
        [('network', 'suffix: sessions'), ('client', 'suffix: sessions'), ('server', 'suffix: sessions'),
         ('waiting in transaction', 'suffix: sessions'), ('round trip', 's'), ('trips per transaction', 'short')])
    link(clients, 'datname', TO_DATABASE)
    link(clients, 'usename', [('Its statements in this database (collector pgnetlat_statements)',
                               narrowed('datname', 'usename', panel='Statements'))])
    board.with_panel(link(clients, 'application_name', [
        ('Only this client', narrowed('datname', 'usename', 'application_name')),
        ('Statements of its role (collector pgnetlat_statements)',
         narrowed('datname', 'usename', panel='Statements'))]))


def blocked(board):
    by = ' by (datname, usename, application_name, client_addr, backend_type, queryid)'
    board.with_row(folded('Who blocked others? (collector pgnetlat_blockers)'))
    board.with_panel(listing(
        'Who blocked others',
        'Sessions that waited for the locks of each client group, on average, by what the holder was doing: it waited for '
        'its client, waited for round trips, or executed; and its latest statement. Needs the collector '
        'pgnetlat_blockers.',
        'short',
        [(seconds('blocked', 'blocker', CLIENT, by), ''),
         (seconds('blocked_by_client blocked_by_recv', 'blocker', CLIENT, by), ''),
         (seconds('blocked_by_network blocked_by_send', 'blocker', CLIENT, by), ''),
         (seconds('blocked_by_exec', 'blocker', CLIENT, by), '')],
        [('blocked', 'suffix: sessions'), ('its client', 'suffix: sessions'), ('network', 'suffix: sessions'),
         ('executes', 'suffix: sessions')]))


def which(board):
    by = ' by (datname, usename, queryid)'
    legend = '{{queryid}} {{usename}} {{datname}}'
    board.with_row(folded('Which statement? (collector pgnetlat_statements)'))
    board.with_panel(graph(
        'Network time by statement',
        'Sessions that the network kept waiting, for the ten statements with the most: sending the result, and the round '
        'trip after it. The texts are in the table below. Needs the collector pgnetlat_statements.',
        'suffix: sessions',
        [(f'topk(10, {seconds("network send", "statement", ROLE, by)})', legend)]))
    board.with_panel(graph(
        'Network time of repetitions',
        'Round trips of statements that are repeated within one piece of work: a join, an array parameter or a batch would '
        'save them. Needs the collector pgnetlat_statements.',
        'suffix: sessions',
        [(f'topk(10, {seconds("repeat_network", "statement", ROLE, by)})', legend)]))
    keys = 'datname, usename, queryid'
    text = (f'max by ({keys}, query) (pgnetlat_query_info{{{ROLE}}}) '
            f'or on ({keys}) (0 * max by ({keys}) (pgnetlat_statement_calls_total{{{ROLE}}}) + 1)')
    columns = [
        (seconds('network send', 'statement', ROLE, by), 'network', 'suffix: sessions'),
        (seconds('client recv', 'statement', ROLE, by), 'client', 'suffix: sessions'),
        (seconds('exec', 'statement', ROLE, by), 'server', 'suffix: sessions'),
        (total('pgnetlat_statement_calls_total', ROLE, by), 'calls', 'ops'),
        (per(total('pgnetlat_statement_rows_total', ROLE, by), total('pgnetlat_statement_calls_total', ROLE, by)),
         'rows per call', 'short'),
        (total('pgnetlat_statement_repeats_total', ROLE, by), 'repetitions', 'ops')]
    board.with_panel(listing(
        'Statements',
        'Each statement: sessions kept busy by network and sending, by the client\'s thinking after it, by execution; '
        'calls and rows; and the beginning of its text, where pg_stat_statements has it. Needs the collector '
        'pgnetlat_statements.',
        'short',
        [(f'({expression}) * on ({keys}) group_left (query) ({text})', '') for expression, _, _ in columns],
        [(name, unit) for _, name, unit in columns]))


def distributions(board):
    board.with_row(folded('How are they distributed? (collector pgnetlat_histograms)'))
    board.with_panel(graph(
        'Round trip, distribution',
        'Quantiles of the measured round-trip times. They come from buckets, so they move in steps. Needs the collector '
        'pgnetlat_histograms.',
        's', [(quantile(q, 'pgnetlat_distribution_rtt_seconds'), name) for q, name in
              ((0.5, 'median'), (0.95, '95 %'), (0.99, '99 %'))]))
    board.with_panel(graph(
        'Requests and think time, distribution',
        'The time within which 95 % of the requests, of the waits, and of each part of the waits were over. Needs the '
        'collector pgnetlat_histograms.',
        's', [(quantile(0.95, f'pgnetlat_distribution_{metric}_seconds'), name) for metric, name in
              (('request', 'request, in the server'), ('wait_client', 'client thinks'), ('wait_network', 'network'),
               ('wait', 'wait as a whole'))]))


def replication(board):
    by = ' by (application_name, client_addr)'
    legend = '{{application_name}} {{client_addr}}'

    def now(name, what=''):
        return f'max{by} (pgnetlat_replication_{name}{{{SERVER}}})', f'{legend} {what}'.strip()

    def limited(part):
        return seconds(part + '_limited', 'replication', SERVER, by), f'{legend} {part}'

    board.with_row(folded('Replication: the network, or the standby? (collector pgnetlat_replication)'))
    board.with_panel(graph(
        'What limits walsenders',
        'Walsenders that had something under way, on average, by what limited them: the path, a receiver that took no '
        'more, or a send buffer that is too small for the path. For the rest of the time, nothing was under way. Needs '
        'the collector pgnetlat_replication.',
        'suffix: walsenders',
        [limited('network'), limited('receiver'), limited('buffer')], width=8))
    board.with_panel(graph(
        'What is under way',
        "Bytes that walsenders have handed over and the receivers' kernels have not acknowledged. Needs the collector "
        'pgnetlat_replication.',
        'bytes',
        [now('queued_bytes')], width=8))
    board.with_panel(graph(
        'What a flush takes',
        'Time from sending WAL until its flush was confirmed, which is what a synchronous commit waits for: one round '
        'trip, and the standby\'s own work. Needs the collector pgnetlat_replication.',
        's',
        [now('flush_lag_seconds', 'flush'), now('rtt_seconds', 'round trip')], width=8))


def trust(board):
    good = ((None, 'red'), (1, 'green'))
    board.with_row(builders.Row('Can the figures be trusted?'))
    board.with_panel(number(
        'All in place', 'Library loaded, counting enabled, role sees all sessions, worker runs: 1 each. The lowest of the '
        'chosen instances.',
        'none',
        [(f'min(pgnetlat_exporter_library_loaded{{{SERVER}}})', 'library'),
         (f'min(pgnetlat_exporter_counting_enabled{{{SERVER}}})', 'counting'),
         (f'min(pgnetlat_exporter_role_sees_all{{{SERVER}}})', 'role'),
         (f'min(pgnetlat_health_worker_up{{{SERVER}}})', 'worker')], width=12, thresholds=good))
    board.with_panel(number(
        'Counting since', 'The latest reset, or the start of the server: the most recent of the chosen instances.',
        'dateTimeFromNow', [(f'1000 * max(pgnetlat_health_stats_reset_timestamp_seconds{{{SERVER}}})', 'since')],
        width=6))
    board.with_panel(number(
        'Shared memory', 'What the extension occupies on all chosen instances together.',
        'bytes', [(f'sum(pgnetlat_health_shared_memory_bytes{{{SERVER}}})', 'shared memory')], width=6))
    board.with_panel(graph(
        'Evicted',
        'Entries that were added to the row of evicted ones, for lack of room.',
        'ops',
        [(total('pgnetlat_health_statements_evicted_total', SERVER), 'statements'),
         (total('pgnetlat_health_clients_evicted_total', SERVER), 'client groups'),
         (total('pgnetlat_health_blockers_evicted_total', SERVER), 'holders of locks')]))
    board.with_panel(graph(
        'Worker', 'CPU time that the worker takes, and the age of its latest sample at each scrape.',
        's',
        [(total('pgnetlat_health_worker_cpu_seconds_total', SERVER, ' by (instance)'), 'CPU s/s {{instance}}'),
         (f'max by (instance) (pgnetlat_health_worker_tick_age_seconds{{{SERVER}}})',
          'latest sample {{instance}}')]))


# --- the whole ----------------------------------------------------------

def query_variable(name, label, metric_labels, target):
    return (builders.QueryVariable(name).label(label).datasource(SOURCE)
            .query(f'label_values({metric_labels}, {target})')
            .multi(True).include_all(True).all_value('.*')
            .current(models.VariableOption(text='All', value='$__all'))
            .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
            .sort(models.VariableSort.ALPHABETICAL_ASC))


def build():
    board = (builders.Dashboard('pgnetlat: network, client or server?')
             .uid('pgnetlat').tags(['postgresql', 'pgnetlat']).readonly()
             .description('Where the sessions of PostgreSQL servers spend their time, as pgnetlat accounts for it.')
             .timezone('browser').time('now-3h', 'now').refresh('1m')
             .tooltip(models.DashboardCursorSync.CROSSHAIR)
             .with_variable(builders.DatasourceVariable('datasource').label('Data source').type('prometheus'))
             .with_variable(query_variable('job', 'Job', 'pgnetlat_exporter_library_loaded', 'job'))
             .with_variable(query_variable(
                 'instance', 'Instance', 'pgnetlat_exporter_library_loaded{job=~"$job"}', 'instance'))
             .with_variable(query_variable(
                 'datname', 'Database', f'pgnetlat_database_requests_total{{{SERVER}}}', 'datname'))
             .with_variable(query_variable(
                 'usename', 'Role', f'pgnetlat_client_requests_total{{{DATABASE}}}', 'usename'))
             .with_variable(query_variable(
                 'application', 'Client', f'pgnetlat_client_requests_total{{{DATABASE}}}', 'application_name'))
             .with_variable(builders.CustomVariable('past').label('Compare with')
                            .values('1h,1d,1w,4w')
                            .current(models.VariableOption(text='1d', value='1d')))
             .annotation(builders.AnnotationQuery().name('Alerts').datasource(SOURCE).enable(True).hide(False)
                         .icon_color('red')
                         .expr(f'ALERTS{{alertstate="firing", alertname=~"Pgnetlat.*", {SERVER}}}')))
    for row in (what_now, is_it, since, trust, who, blocked, which, distributions, replication):
        row(board)
    dashboard = board.build()
    for place, panel in enumerate(dashboard.panels, start=1):
        panel.id_val = place
    places = {panel.title: panel.id_val for panel in dashboard.panels}
    dashboard.panels = fold(dashboard.panels)
    text = JSONEncoder(sort_keys=True, indent=2).encode(dashboard) + '\n'
    return re.sub('viewPanel=<(.*?)>', lambda match: f'viewPanel={places[match[1]]}', text)


def main():
    check = sys.argv[1:] == ['--check']
    if sys.argv[1:] and not check:
        sys.exit(__doc__)
    text = build()
    if not check:
        PATH.write_text(text)
    elif not PATH.exists() or PATH.read_text() != text:
        sys.exit('pgnetlat.json is not what dashboard.py would write')


if __name__ == '__main__':
    main()
