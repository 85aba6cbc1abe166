"""Exporters with the shipped files, which ask at every "interval" seconds.

Each function starts one and returns its address.
"""

import json
import re

import scrape
from exporter_files import HERE


def postgres_exporter(space, dsn, interval):
    return scrape.postgres_exporter(space, 'postgres', sorted((HERE / 'postgres_exporter').glob('queries*.yaml')), dsn)


def default(space, dsn, interval):
    return scrape.postgres_exporter(space, 'default', [HERE / 'postgres_exporter/queries.yaml'], dsn)


def sql_exporter(space, dsn, interval):
    """With its opt-in collectors."""
    for path in (HERE / 'sql_exporter').glob('*.collector.yml'):
        space.write(path.name, path.read_text())
    config = (HERE / 'sql_exporter/sql_exporter.yml').read_text().replace('# - pgnetlat_', '- pgnetlat_')
    path = space.write('sql_exporter.yml', config)
    return scrape.serve(space, 'sql_exporter', ['sql_exporter', f'-config.file={path}'], SQLEXPORTER_TARGET_DSN=dsn)


def serve(space, name, command, **environment):
    """A program that is told in its own way where to listen."""
    _, port = space.serve(name, command, lambda process, port: scrape.answers(f'http://127.0.0.1:{port}/metrics'),
                          environment=space.environment(**environment))
    return f'127.0.0.1:{port}'


def otelcol(space, dsn, interval):
    files = sorted((HERE / 'opentelemetry').glob('*.yaml'))
    receivers = [f'sqlquery/{path.stem}' for path in files]

    def command(port):
        config = {'receivers': {name: {'collection_interval': f'{interval}s'} for name in receivers},
                  'exporters': {'prometheus': {'endpoint': f'127.0.0.1:{port}', 'metric_expiration': '10s'}},
                  'service': {'telemetry': {'metrics': {'level': 'none'}},
                              'pipelines': {'metrics': {'receivers': receivers, 'exporters': ['prometheus']}}}}
        path = space.write('otelcol.yaml', json.dumps(config))
        return ['otelcol', *(f'--config={file}' for file in [*files, path])]

    return serve(space, 'otelcol', command, PGNETLAT_DSN=dsn)


def pgwatch(space, dsn, interval):
    """With all metrics.  It connects as "pgwatch", whatever the connection string says."""
    metrics = HERE / 'pgwatch/pgnetlat.yaml'
    names = re.findall(r'(?m)^  (pgnetlat_\w+):\n    description: .*\n    sqls:', metrics.read_text())
    sources = space.write('pgwatch.yaml', json.dumps([{
        'name': 'test', 'conn_str': dsn, 'kind': 'postgres', 'is_enabled': True,
        'custom_metrics': dict.fromkeys(names, interval)}]))
    return serve(space, 'pgwatch', lambda port: [
        'pgwatch', f'--sources={sources}', f'--metrics={metrics}', '--web-disable=all',
        '--instance-level-cache-max-seconds=0', f'--sink=prometheus://127.0.0.1:{port}/pgwatch'])


def alloy(space, dsn, interval, receiver):
    """With all queries, in one file as it wants them; it sends what it has to a Prometheus."""
    files = sorted((HERE / 'postgres_exporter').glob('queries*.yaml'))
    queries = space.write('alloy.yaml', ''.join(path.read_text() for path in files))
    config = re.sub('"/usr/share/.*"', f'"{queries}"', (HERE / 'alloy/pgnetlat.alloy').read_text())
    config = config.replace('http://127.0.0.1:9090', receiver).replace(
        '"15s"', f'"{interval}s"\n  scrape_timeout = "{interval}s"')
    path = space.write('pgnetlat.alloy', config)
    return serve(space, 'alloy', lambda port: [
        'alloy', 'run', f'--server.http.listen-addr=127.0.0.1:{port}', '--storage.path=alloy', '--disable-reporting', path],
        PGNETLAT_DSN=dsn)


# job, program, how
ALL = (('postgres', 'prometheus-postgres-exporter', postgres_exporter),
       ('default', 'prometheus-postgres-exporter', default),
       ('pgnetlat', 'sql_exporter', sql_exporter),
       ('otelcol', 'otelcol', otelcol))
