"""The files in monitoring/: what they define, and what can be checked of them without a server.

    exporter_files.check(report)
"""

import importlib.machinery
import importlib.util
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent.parent.parent / 'monitoring'


def load_generate():
    loader = importlib.machinery.SourceFileLoader('generate', str(HERE / 'generate'))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader('generate', loader))
    sys.modules['generate'] = module
    loader.exec_module(module)
    return module


generate = load_generate()
VIEWS = {view.name: view for view in generate.default_views()}
# the same metrics as "distribution"
BUCKET = VIEWS.pop('bucket')


def run(*command, **options):
    return subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)


def failed(*command, **options):
    """None, or what a command that failed has printed."""
    result = run(*command, **options)
    return None if result.returncode == 0 else result.stdout.strip() or f'exit code {result.returncode}'


def all_metrics():
    """(name, type, labels) of every series name that an exporter gives."""
    for view in VIEWS.values():
        for metric in view.metrics:
            name = f'{view.key}_{metric.name}'
            if metric.type == 'histogram':
                yield f'{name}_bucket', 'counter', view.labels + ['le']
                yield f'{name}_sum', 'counter', view.labels
                yield f'{name}_count', 'counter', view.labels
            else:
                yield name, metric.type, view.labels


NAMES = {name for name, _, _ in all_metrics()}
COUNTERS = [name for name, kind, _ in all_metrics() if kind == 'counter']


def panels():
    """The dashboard, and its panels, those of folded rows included."""
    dashboard = json.loads((HERE / 'grafana/pgnetlat.json').read_text())
    shown = [inner for panel in dashboard['panels'] for inner in [panel, *(panel.get('panels') or [])]]
    return dashboard, [panel for panel in shown if panel['type'] != 'row']


def rules():
    """(kind, name, expression) from the rule files, without a YAML parser."""
    for path in sorted((HERE / 'prometheus').glob('*.yml')):
        if path.name.endswith(('.rules.yml', '.alerts.yml')):
            text = re.sub(r'(?m)^\s*#.*\n', '', path.read_text())
            for kind, name, rest in re.findall(
                    r'- (record|alert): (\S+)\n(.*?)(?=\n +- (?:record|alert|name):|\Z)', text, re.S):
                expression = re.search(r'expr: \|\n(.*?)(?=\n {8}\w+:|\Z)', rest, re.S).group(1)
                yield kind, name, expression


QUERY = re.compile(r'SELECT (\w+(?: AS tag_\w+)?(?:, \w+(?: AS tag_\w+)?)*) FROM public\.pgnetlat_metrics_(\w+)')


def queries():
    """(file, query) of all exporters."""
    for path in sorted(HERE.glob('*/*')):
        if path.suffix in ('.yml', '.yaml', '.sql') and path.parent.name not in ('prometheus', 'grafana'):
            for query in re.findall(r'(?i)select\b[^;\'"\n]*', path.read_text()):
                yield path.relative_to(HERE), query


def check_files(report):
    report.check('the files are what generate writes', failed(sys.executable, '-B', str(HERE / 'generate'), '--check'))
    if importlib.util.find_spec('grafana_foundation_sdk'):
        report.check('the dashboard is what dashboard.py writes',
                     failed(sys.executable, '-B', str(HERE / 'grafana/dashboard.py'), '--check'))
    else:
        report.skip('the dashboard is what dashboard.py writes', 'grafana-foundation-sdk is not installed')

    found = list(queries())
    report.check(f'all {len(found)} queries list columns of a view, without operators or functions',
                 [f'{path}: {query}' for path, query in found if not QUERY.fullmatch(query)] or
                 (None if len(found) > 50 else 'too few'))
    used = set()
    for _, _, expression in rules():
        used |= set(re.findall(r'\bpgnetlat_\w+', expression))
    dashboard, shown = panels()
    for panel in shown:
        for target in panel['targets']:
            used |= set(re.findall(r'\bpgnetlat_\w+', target['expr']))
    report.check('all metrics in rules and panels exist', sorted(used - NAMES))
    report.check('no metric has a process ID as a label', [name for name, _, labels in all_metrics() if 'pid' in labels])
    report.check('the dashboard keeps to its conventions', list(dashboard_problems(dashboard, shown)))
    constant, per_database = generate.series([view for view in VIEWS.values() if view.collector == 'pgnetlat'])
    report.check('at most 60 series of a server, and 30 of a database, by default',
                 None if constant <= 60 and per_database <= 30 else f'{constant} and {per_database}')
    opt_in = {f'{view.key}_' for view in VIEWS.values() if view.collector != 'pgnetlat'}
    report.check('no panel that is in sight needs an opt-in collector',
                 [panel['title'] for panel in dashboard['panels'] for target in panel.get('targets') or []
                  if any(prefix in target['expr'] for prefix in opt_in)])
    book = HERE.parent / 'doc' / 'runbook.md'
    if book.exists():
        chapters = set(re.findall(r'(?m)^## (\w+)', book.read_text()))
        alerts = {name for kind, name, _ in rules() if kind == 'alert'}
        report.check('the runbook has a chapter for each alert', sorted(alerts ^ chapters))


def dashboard_problems(dashboard, shown):
    if dashboard['editable']:
        yield 'editable'
    variables = {v['name']: v for v in dashboard['templating']['list']}
    for name, label in (('datasource', 'Data source'), ('job', 'Job'), ('instance', 'Instance')):
        if variables.get(name, {}).get('label') != label:
            yield f'no variable {name} labelled {label}'
    for target in re.findall(r'viewPanel=(\w+)', json.dumps(dashboard)):
        if int(target) not in {panel['id'] for panel in shown}:
            yield f'a link leads to panel {target}'
    for panel in shown:
        title = panel.get('title') or 'a panel'
        for what in ('title', 'description'):
            if not panel.get(what):
                yield f'{title} has no {what}'
        if not panel['fieldConfig']['defaults'].get('unit'):
            yield f'{title} has no unit'
        if panel['datasource'].get('uid') != '${datasource}':
            yield f'{title} has a fixed data source'
        for target in panel['targets']:
            expression = target['expr']
            selectors = re.findall(r'\bpgnetlat_\w+\s*(\{[^}]*\})?', expression)
            if not all('job=~"$job"' in s and 'instance=~"$instance"' in s for s in selectors):
                yield f'{title} does not match job and instance'
            if set(re.findall(r'\[(.*?)\]', expression)) - {'$__rate_interval'}:
                yield f'{title} has a fixed range'


def check_yaml(report):
    if not importlib.util.find_spec('yaml'):
        report.skip('all files are valid YAML', 'python3-yaml is not installed')
        return
    import yaml
    content, problems = {}, []
    for path in [*HERE.glob('*/*.yml'), *HERE.glob('*/*.yaml')]:
        try:
            content[str(path.relative_to(HERE))] = list(yaml.safe_load_all(path.read_text()))
        except yaml.YAMLError as error:
            problems.append(f'{path.name}: {error}')
    report.check('all files are valid YAML', problems)
    report.check('the files declare what their queries select',
                 [f'{name}: {problem}' for name, documents in content.items()
                  for problem in declaration_problems(name, documents[0])])
    inner = yaml.safe_load(content['postgres_exporter/cloudnative-pg.yaml'][0]['data']['queries'])
    outer = content['postgres_exporter/queries.yaml'][0]
    for queries in (inner, outer):
        for query in queries.values():
            query.pop('target_databases', None)
            query.pop('master', None)
    report.check("CloudNativePG's queries are those of postgres_exporter", None if inner == outer else 'they differ')


def declaration_problems(name, document):
    """Queries beside the columns that the file says they have, in the form of each exporter."""
    declared = []
    if name.startswith('postgres_exporter/queries') or name.startswith('pmm/'):
        for query in document.values():
            columns = [column for metric in query['metrics'] for column, how in metric.items()
                       if how['usage'] != 'HISTOGRAM']
            columns += [metric_column + suffix for metric in query['metrics'] for metric_column, how in metric.items()
                        if how['usage'] == 'HISTOGRAM' for suffix in ('', '_bucket', '_sum', '_count')]
            declared.append((query['query'], columns))
    elif name.startswith('pgwatch/'):
        for query in document['metrics'].values():
            selected = QUERY.fullmatch(query['sqls'][15]).group(1)
            names = set(re.findall(r'\w+', re.sub(r'\w+ AS ', '', selected)))
            if not set(query.get('gauges', [])) <= names or any(c.startswith('tag_') for c in query.get('gauges', [])):
                yield f'gauges of {query["sqls"][15]}'
        yield from (f'preset of {metric}' for preset in document['presets'].values()
                    for metric in preset['metrics'] if metric not in document['metrics'])
    elif name.startswith('opentelemetry/'):
        for query in document['receivers'].popitem()[1]['queries']:
            columns = [metric['value_column'] for metric in query['metrics']]
            declared.append((query['sql'], columns + query['metrics'][0].get('attribute_columns', [])))
    elif name.startswith('datadog/'):
        for query in document['instances'][0]['custom_queries']:
            columns = [column['name'] for column in query['columns']]
            if QUERY.fullmatch(query['query']).group(1) != ', '.join(columns):
                yield f'columns of {query["query"]}'
    elif name.endswith('.collector.yml'):
        for query in document['queries']:
            columns = {column for metric in document['metrics'] if metric['query_ref'] == query['query_name']
                       for column in metric['values'] + metric.get('key_labels', [])}
            declared.append((query['query'], columns))
    elif name.startswith('zabbix/'):
        template = document['zabbix_export']['templates'][0]
        masters = {item['key'] for item in template['items']}
        found = [*template['items'], *template['discovery_rules'],
                 *(item for rule in template['discovery_rules'] for item in rule['item_prototypes'])]
        yield from (item['key'] for item in found if item.get('master_item', {'key': item['key']})['key'] not in masters)
        for what in ('uuid', 'key'):
            values = [item[what] for item in found]
            yield from sorted({value for value in values if values.count(value) > 1})
    for query, columns in declared:
        if set(QUERY.fullmatch(query).group(1).split(', ')) != set(columns):
            yield query


def check_rules(report):
    if not shutil.which('promtool'):
        report.skip('rules', 'promtool is not installed')
        return
    folder = HERE / 'prometheus'
    report.check('example configuration is valid', failed('promtool', 'check', 'config', str(folder / 'prometheus.yml')))
    report.check('rules do what they should', failed('promtool', 'test', 'rules', 'pgnetlat.test.yml', cwd=folder))
    report.check('a test of each alert fails if it fires before its "for" has elapsed', sorted(untimed_alerts(folder)))


def untimed_alerts(folder):
    """Alerts that could lose their "for" without any test failing."""
    with tempfile.TemporaryDirectory() as copy:
        shutil.copytree(folder, copy, dirs_exist_ok=True)
        path = pathlib.Path(copy) / 'pgnetlat.alerts.yml'
        path.write_text(re.sub(r'for: \w+', 'for: 0s', path.read_text()))
        result = run('promtool', 'test', 'rules', 'pgnetlat.test.yml', cwd=copy)
        alerts = (folder / 'pgnetlat.alerts.yml').read_text()
    timed = set(re.findall(r'- alert: (\w+)\n(?:(?!- alert:).)*?\n +for: ', alerts, re.S))
    return timed - set(re.findall(r'alertname: (\w+)', result.stdout))


def check(report):
    check_files(report)
    check_yaml(report)
    check_rules(report)
