#!/usr/bin/env python3
"""Write the Grafana dashboard, pgnetlat.json.

  dashboard.py            write it
  dashboard.py --check    write nothing; fail if it is not what would be written

Needs what requirements.txt says.  The rows follow the order in which somebody
asks: is it the network, the client or the server; what to do about it; who;
which statement; since when; what of replication; and can the figures be
trusted.  Panels read the exporters' metrics, not the recording rules, so that
the dashboard works without them.
"""

import pathlib
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
# the row of those outside the top has no database
TOP = SERVER + ', datname=~"$datname|other"'
# what is about the whole server has a name of its own for it
ANY = SERVER + r', datname=~"$datname|other|\\(all\\)"'

SOURCE = models.DataSourceRef(type_val='prometheus', uid='${datasource}')

COLOURS = {'server': 'blue', 'network': 'orange', 'client': 'green'}


# --- queries ------------------------------------------------------------

def rate(metric, labels, offset=''):
    return f'rate({metric}{{{labels}}}[$__rate_interval]{offset})'


def total(metric, labels=DATABASE, by='', offset=''):
    return f'sum{by} ({rate(metric, labels, offset)})'


def parts(pattern, family='database', labels=DATABASE, by='', offset=''):
    return total(f'pgnetlat_{family}_time_seconds_total', f'{labels}, part=~"{pattern}"', by, offset)


def side(name, family='database', labels=DATABASE, by='', offset=''):
    """Seconds per second, that is sessions kept busy, by one of the three.

    As the view's shares have it: a send is the server's work, but where it was
    blocked the network's, but where the client would take no more the client's.
    Where a request had come and there was no processor to read it, the server's.
    """
    blocked = total(f'pgnetlat_{family}_blocked_send_seconds_total', labels, by, offset)
    limited = total(f'pgnetlat_{family}_client_limited_send_seconds_total', labels, by, offset)
    queued = total(f'pgnetlat_{family}_run_queue_wait_seconds_total', labels, by, offset)
    if name == 'server':
        return f'clamp_min({parts("exec|send", family, labels, by, offset)} - {blocked} + {queued}, 0)'
    if name == 'network':
        return f'clamp_min({parts("network", family, labels, by, offset)} + {blocked} - {limited}, 0)'
    return f'clamp_min({parts("client|recv", family, labels, by, offset)} + {limited} - {queued}, 0)'


def busy(family='database', labels=DATABASE, by='', offset=''):
    return parts('exec|send|recv|network|client', family, labels, by, offset)


def share(name, by='', offset=''):
    return f'{side(name, by=by, offset=offset)} / ({busy(by=by, offset=offset)} > 0)'


def per(numerator, denominator):
    return f'{numerator} / ({denominator} > 0)'


def quantile(q, metric):
    return f'histogram_quantile({q}, {total(metric + "_bucket", by=" by (le)")})'


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


def graph(title, description, unit, targets, width=12, stacked=False, colours=None, axis=None):
    panel = (timeseries.Panel().title(title).description(description).unit(unit).min(0)
             .height(8).span(width).fill_opacity(60 if stacked else 10).line_width(1)
             .show_points(common.VisibilityMode.NEVER)
             .tooltip(common_builders.VizTooltipOptions().mode(common.TooltipDisplayMode.MULTI)
                      .sort(common.SortOrder.DESCENDING))
             .legend(common_builders.VizLegendOptions().display_mode(common.LegendDisplayMode.LIST)
                     .placement(common.LegendPlacement.BOTTOM).show_legend(True)))
    if stacked:
        panel.stacking(common_builders.StackingConfig().mode(common.StackingMode.NORMAL))
    if axis:
        panel.axis_label(axis)
    for name, colour in (colours or {}).items():
        panel.override_by_name(name, [models.DynamicConfigValue(
            'color', {'mode': 'fixed', 'fixedColor': colour})])
    return queries(panel, targets)


def number(title, description, unit, targets, width=6, thresholds=((None, 'text'),), height=5):
    steps = [models.Threshold(value=value, color=colour) for value, colour in thresholds]
    panel = (stat.Panel().title(title).description(description).unit(unit).height(height).span(width)
             .color_mode(common.BigValueColorMode.VALUE).graph_mode(common.BigValueGraphMode.AREA)
             .reduce_options(common_builders.ReduceDataOptions().calcs(['lastNotNull']))
             .thresholds(builders.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(steps)))
    return queries(panel, targets)


def listing(title, description, unit, targets, units, hidden=(), width=24):
    """One row per label tuple, one column per query; "units" by query."""
    panel = (table.Panel().title(title).description(description).unit(unit).height(9).span(width))
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


def is_it(board):
    board.with_row(builders.Row('Is it the network, the client or the server?'))
    names = {'server': 'Server', 'network': 'Network', 'client': 'Client'}
    meaning = {
        'server': 'sessions execute: processor, locks, disk. What a faster server or a better plan would shorten.',
        'network': 'answers and requests are under way: round trips and blocked sending. What fewer statements, a '
                   'nearer client or a better path would shorten.',
        'client': 'the server waits for the application between two statements of one piece of work. Nothing in the '
                  'database shortens it.'}
    for name, title in names.items():
        board.with_panel(number(
            f'{title}\'s share',
            f'Part of the busy time in which {meaning[name]} The three add up to 100 %; idle sessions do not count.',
            'percentunit', [(share(name), title)], width=6,
            thresholds=((None, COLOURS[name]),)))
    board.with_panel(number(
        'Open transactions that wait',
        'How many transactions, on average, were open and waiting for their client, with their locks held. Above a few: '
        'look for applications that do something else between BEGIN and COMMIT.',
        'suffix: waiting', [(total('pgnetlat_database_in_xact_wait_seconds_total'), 'waiting')], width=6,
        thresholds=((None, 'green'), (5, 'orange'), (50, 'red'))))
    board.with_panel(graph(
        'Where sessions spend their time',
        'Sessions kept busy on average, by what they did: 2 means that two sessions did nothing else. A wait between '
        'statements is network for one round trip and client for the rest.',
        'suffix: sessions', [(parts('exec|send|recv|network|client', by=' by (part)'), '{{part}}')],
        stacked=True, axis='busy sessions',
        colours={'exec': 'blue', 'send': 'light-blue', 'network': 'orange', 'client': 'green', 'recv': 'dark-green'}))
    board.with_panel(graph(
        'What the server does meanwhile',
        'The part "exec" of it, sampled: on a processor or waiting for one (cpu), for files (io), for locks, for a standby '
        '(replication), as a client of another server (remote), for anything else (other), or not sampled. And beside it '
        'how long sessions were ready to run and got no processor.',
        'suffix: sessions',
        [(total('pgnetlat_database_exec_time_seconds_total', by=' by (part)'), '{{part}}'),
         (total('pgnetlat_database_run_queue_seconds_total'), 'no processor')],
        stacked=False, axis='executing sessions'))
    board.with_panel(graph(
        'What one request costs',
        'Mean time per request and answer, by where it went. Compare the network with the server: where it is several '
        'times as long, batching pays more than tuning.',
        's', [(per(side(name), total('pgnetlat_database_requests_total')), title) for name, title in names.items()],
        colours={title: COLOURS[name] for name, title in names.items()}))
    board.with_panel(graph(
        'Sessions by state',
        'Client sessions that are connected, by what they are doing at the moment of the scrape.',
        'suffix: sessions',
        [(f'sum by (state) (pgnetlat_sessions_connected{{{DATABASE}}})', '{{state}}')], stacked=True))
    board.with_panel(graph(
        'Longest wait inside a transaction',
        'How long the transaction that has been waiting longest for its client has waited, up to now. It keeps locks '
        'and holds back vacuum.',
        's', [(f'max by (instance, datname) (pgnetlat_sessions_longest_seconds{{{DATABASE}, '
               'state="waiting in transaction"})', '{{instance}} {{datname}}')]))


def what_to_do(board):
    subject = ' by (verdict, subject_kind, datname, usename, application_name, client_addr)'
    client = ' by (datname, usename, application_name, client_addr)'
    whole = SERVER + ', datname="(all)"'
    board.with_row(builders.Row('What to do about it?'))
    board.with_panel(listing(
        'Findings',
        'What pgnetlat_diagnose() finds of the last 15 minutes, and whom it is about: sessions that this keeps from their '
        'work, on average, and how many of these the cure would give back; 0 where the figures do not tell. One cause may '
        'appear under two verdicts. Evidence and advice: SELECT * FROM pgnetlat_diagnose(). Needs the collector '
        'pgnetlat_findings.',
        'short',
        [(f'sum{subject} (pgnetlat_finding_{name}{{{ANY}}})', '')
         for name in ('lost_seconds_per_second', 'saving_seconds_per_second', 'findings')],
        [('lost', 'suffix: sessions'), ('saving', 'suffix: sessions'), ('findings', 'short')]))
    board.with_panel(graph(
        'Time lost, by verdict',
        'The same over time. Needs the collector pgnetlat_findings.',
        'suffix: sessions',
        [(f'sum by (verdict) (pgnetlat_finding_lost_seconds_per_second{{{ANY}}})', '{{verdict}}')], width=8))
    board.with_panel(listing(
        'What a change would bring',
        'How many times as many transactions the busiest client groups would make, as pgnetlat_what_if() predicts from the '
        'last 15 minutes: with a round trip of 0.5 ms, with ten statements in each round trip, on a server twice as fast. '
        'Needs the collector pgnetlat_predictions.',
        'short',
        [(f'max{client} (pgnetlat_prediction_{name}_throughput_ratio{{{DATABASE}}})', '')
         for name in ('near', 'batch', 'fast')],
        [('at 0.5 ms', 'suffix: x'), ('ten at a time', 'suffix: x'), ('faster server', 'suffix: x')], width=8))
    board.with_panel(graph(
        'Connections, and how many are needed',
        'Sessions that are connected, sessions that are busy on average, and with how many server connections a pooler '
        'would have served all of them without a wait for 99.9 % of the last 15 minutes. Needs the collector '
        'pgnetlat_pools.',
        'suffix: sessions',
        [(f'max by (instance) (pgnetlat_pool_{metric}{{{whole}}})', f'{name} {{{{instance}}}}')
         for metric, name in (('sessions', 'connected'), ('busy_avg', 'busy'), ('size', 'needed'))], width=8))


def who(board):
    by = ' by (datname, usename, application_name, client_addr)'
    legend = '{{application_name}} {{usename}}@{{client_addr}} {{datname}}'
    board.with_row(builders.Row('Who?'))
    board.with_panel(graph(
        'Network share by database',
        'Part of each database\'s busy time that is round trips and blocked sending.',
        'percentunit', [(share('network', by=' by (instance, datname)'), '{{instance}} {{datname}}')], width=8))
    board.with_panel(graph(
        'Network time by client',
        'Sessions that each group of clients kept waiting for the network, the ten greatest. Needs the collector '
        'pgnetlat_clients; groups outside its top are "other".',
        'suffix: sessions', [(f'topk(10, {side("network", "client", TOP, by)})', legend)], width=8))
    board.with_panel(graph(
        'Think time by client',
        'Sessions that each group of clients kept waiting while it thought, the ten greatest. Needs the collector '
        'pgnetlat_clients.',
        'suffix: sessions', [(f'topk(10, {side("client", "client", TOP, by)})', legend)], width=8))
    board.with_panel(listing(
        'Clients',
        'Each group of clients: sessions kept busy by the network, by the client, by the server; transactions open and '
        'waiting; latest round trip; round trips per transaction. Needs the collector pgnetlat_clients.',
        'short',
        [(side('network', 'client', TOP, by), ''),
         (side('client', 'client', TOP, by), ''),
         (side('server', 'client', TOP, by), ''),
         (total('pgnetlat_client_in_xact_wait_seconds_total', TOP, by), ''),
         (f'max{by} (pgnetlat_client_rtt_seconds{{{TOP}}})', ''),
         (per(total('pgnetlat_client_round_trips_total', TOP, by),
              total('pgnetlat_client_transactions_total', TOP, by)), '')],
        [('network', 'suffix: sessions'), ('client', 'suffix: sessions'), ('server', 'suffix: sessions'),
         ('waiting in transaction', 'suffix: sessions'), ('round trip', 's'), ('round trips per transaction', 'short')]))
    holder = ' by (datname, usename, application_name, client_addr, backend_type, queryid)'
    board.with_panel(listing(
        'Who holds up others',
        'Sessions that wait for the locks of each group of clients, on average, and what the holder did meanwhile: waited '
        'for its client to go on, for round trips, or executed; and after which statement. Needs the collector '
        'pgnetlat_blockers.',
        'short',
        [(total('pgnetlat_blocker_blocked_seconds_total', TOP, holder), ''),
         (parts('client|recv', 'blocker', TOP, holder), ''),
         (parts('network|send', 'blocker', TOP, holder), ''),
         (parts('exec', 'blocker', TOP, holder), '')],
        [('held up', 'suffix: sessions'), ('its client', 'suffix: sessions'), ('network', 'suffix: sessions'),
         ('executes', 'suffix: sessions')]))


def which(board):
    by = ' by (datname, usename, queryid)'
    legend = '{{queryid}} {{usename}} {{datname}}'
    board.with_row(builders.Row('Which statement?'))
    board.with_panel(graph(
        'Network time by statement',
        'Sessions kept waiting for the network by each statement, the ten greatest: sending its result, and the round '
        'trip after it. Its text: SELECT query FROM pg_stat_statements WHERE queryid = ... Needs the collector '
        'pgnetlat_statements.',
        'suffix: sessions',
        [(f'topk(10, {parts("network|send", "statement", TOP, by)})', legend)]))
    board.with_panel(graph(
        'Network time of repetitions',
        'What repeating the same statement within one piece of work costs in round trips: what a join, an array '
        'parameter or a batch would save. Needs the collector pgnetlat_statements.',
        'suffix: sessions',
        [(f'topk(10, {total("pgnetlat_statement_repeat_network_seconds_total", TOP, by)})', legend)]))
    board.with_panel(listing(
        'Statements',
        'Each statement: sessions kept busy by network and sending, by the client\'s thinking after it, by execution; '
        'calls and rows. Needs the collector pgnetlat_statements.',
        'short',
        [(parts('network|send', 'statement', TOP, by), ''),
         (parts('client|recv', 'statement', TOP, by), ''),
         (parts('exec', 'statement', TOP, by), ''),
         (total('pgnetlat_statement_calls_total', TOP, by), ''),
         (per(total('pgnetlat_statement_rows_total', TOP, by), total('pgnetlat_statement_calls_total', TOP, by)), ''),
         (total('pgnetlat_statement_repeats_total', TOP, by), '')],
        [('network', 'suffix: sessions'), ('client', 'suffix: sessions'), ('server', 'suffix: sessions'),
         ('calls', 'ops'), ('rows per call', 'short'), ('repetitions', 'ops')]))


def since(board):
    past = ' offset $past'
    mean = per(total('pgnetlat_rtt_seconds_sum'), total('pgnetlat_rtt_seconds_count'))
    mean_past = per(total('pgnetlat_rtt_seconds_sum', offset=past), total('pgnetlat_rtt_seconds_count', offset=past))
    trips = ('pgnetlat_database_round_trips_total', 'pgnetlat_database_transactions_total')
    board.with_row(builders.Row('Since when?'))
    board.with_panel(graph(
        'Network share, now and then',
        'The network\'s part of the busy time, and what it was so long before as the variable "Compare with" says.',
        'percentunit', [(share('network'), 'now'), (share('network', offset=past), '$past before')], width=8,
        colours={'now': 'orange', '$past before': 'light-orange'}))
    board.with_panel(graph(
        'Round trip, now and then',
        'Mean round-trip time of the connections as the kernel measures it, and what it was before. A step up: the path '
        'has changed, or clients connect from elsewhere. Behind a pooler this is the way to the pooler.',
        's', [(mean, 'now'), (mean_past, '$past before')], width=8))
    board.with_panel(graph(
        'Round trips per transaction, now and then',
        'How often a transaction goes back and forth. A step up after a release: the application asks more often.',
        'short',
        [(per(*(total(metric) for metric in trips)), 'now'),
         (per(*(total(metric, offset=past) for metric in trips)), '$past before')], width=8))
    board.with_panel(graph(
        'Round trip, distribution',
        'Quantiles of the measured round-trip times, from buckets: steps in them are the buckets\'.',
        's', [(quantile(q, 'pgnetlat_rtt_seconds'), name) for q, name in
              ((0.5, 'median'), (0.95, '95 %'), (0.99, '99 %'))], width=8))
    board.with_panel(graph(
        'Requests and think time, distribution',
        '95 % of the requests were answered, 95 % of the waits\' thinking was over, within this time.',
        's', [(quantile(0.95, 'pgnetlat_request_seconds'), 'request, in the server'),
              (quantile(0.95, 'pgnetlat_wait_client_seconds'), 'client thinks'),
              (quantile(0.95, 'pgnetlat_wait_network_seconds'), 'network'),
              (quantile(0.95, 'pgnetlat_wait_seconds'), 'wait as a whole')], width=8))
    board.with_panel(graph(
        'Segments sent again',
        'Retransmitted part of the TCP segments sent. Above a per cent: the path loses packets.',
        'percentunit',
        [(per(total('pgnetlat_database_retransmits_total', by=' by (instance, datname)'),
              total('pgnetlat_database_sent_packets_total', by=' by (instance, datname)')),
          '{{instance}} {{datname}}')], width=8))


def replication(board):
    by = ' by (application_name, client_addr)'
    legend = '{{application_name}} {{client_addr}}'

    def now(name, what=''):
        return f'max{by} (pgnetlat_replication_{name}{{{SERVER}}})', f'{legend} {what}'.strip()

    def limited(part):
        return parts(part + '_limited', 'replication', SERVER, by), f'{legend} {part}'

    board.with_row(builders.Row('Replication: the network, or the standby?'))
    board.with_panel(graph(
        'What limits walsenders',
        'Connections that had something under way, on average, by what limited them: the path, a receiver that took no '
        'more, or a send buffer that is too small for the path. The rest of their time they had nothing to send. Needs '
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
        'All in place', 'Extension installed, library loaded, counting enabled, role sees all sessions, sampler runs: 1 '
        'each. The least over the chosen instances.',
        'none',
        [(f'min(pgnetlat_exporter_extension_installed{{{SERVER}}})', 'extension'),
         (f'min(pgnetlat_exporter_library_loaded{{{SERVER}}})', 'library'),
         (f'min(pgnetlat_exporter_counting_enabled{{{SERVER}}})', 'counting'),
         (f'min(pgnetlat_exporter_role_sees_all{{{SERVER}}})', 'role'),
         (f'min(pgnetlat_health_sampler_up{{{SERVER}}})', 'sampler')], width=12, thresholds=good))
    board.with_panel(number(
        'Counting since', 'The latest reset, or the start of the server: the most recent of the chosen instances.',
        'dateTimeFromNow', [(f'1000 * max(pgnetlat_health_stats_reset_timestamp_seconds{{{SERVER}}})', 'since')],
        width=6))
    board.with_panel(number(
        'Shared memory', 'What the extension occupies, all chosen instances together.',
        'bytes', [(f'sum(pgnetlat_health_shared_memory_bytes{{{SERVER}}})', 'shared memory')], width=6))
    board.with_panel(graph(
        'Tables in use',
        'Part of the room for statements and client groups that is taken. At 100 % the least used are added to one.',
        'percentunit',
        [(f'max by (instance) (pgnetlat_health_statement_entries{{{SERVER}}} / '
          f'pgnetlat_health_statement_entries_limit{{{SERVER}}})', 'statements {{instance}}'),
         (f'max by (instance) (pgnetlat_health_client_entries{{{SERVER}}} / '
          f'pgnetlat_health_client_entries_limit{{{SERVER}}})', 'clients {{instance}}')], width=8))
    board.with_panel(graph(
        'Evicted',
        'Entries added to one for want of room.',
        'ops',
        [(total('pgnetlat_health_statements_evicted_total', SERVER), 'statements evicted'),
         (total('pgnetlat_health_clients_evicted_total', SERVER), 'client groups evicted')], width=8))
    board.with_panel(graph(
        'Sampler', 'Processor time that the sampler takes, and the age of its latest tick at the scrape.',
        's',
        [(total('pgnetlat_health_sampler_cpu_seconds_total', SERVER, ' by (instance)'), 'processor s/s {{instance}}'),
         (f'max by (instance) (pgnetlat_health_sampler_last_tick_age_seconds{{{SERVER}}})',
          'latest tick {{instance}}')], width=8))


# --- the whole ----------------------------------------------------------

def query_variable(name, label, metric_labels, target):
    return (builders.QueryVariable(name).label(label).datasource(SOURCE)
            .query(f'label_values({metric_labels}, {target})')
            .multi(True).include_all(True).all_value('.+')
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
             .with_variable(query_variable('job', 'Job', 'pgnetlat_exporter_extension_installed', 'job'))
             .with_variable(query_variable(
                 'instance', 'Instance', 'pgnetlat_exporter_extension_installed{job=~"$job"}', 'instance'))
             .with_variable(query_variable(
                 'datname', 'Database', f'pgnetlat_database_requests_total{{{SERVER}}}', 'datname'))
             .with_variable(builders.CustomVariable('past').label('Compare with')
                            .values('1h,1d,1w,4w')
                            .current(models.VariableOption(text='1d', value='1d')))
             .annotation(builders.AnnotationQuery().name('Alerts').datasource(SOURCE).enable(True).hide(False)
                         .icon_color('red')
                         .expr(f'ALERTS{{alertstate="firing", alertname=~"Pgnetlat.*", {SERVER}}}')))
    for row in (is_it, what_to_do, who, which, since, replication, trust):
        row(board)
    dashboard = board.build()
    for place, panel in enumerate(dashboard.panels, start=1):
        panel.id_val = place       # links to panels survive regeneration
    return JSONEncoder(sort_keys=True, indent=2).encode(dashboard) + '\n'


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
