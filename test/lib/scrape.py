"""Exporters of PostgreSQL, and a Prometheus that scrapes them, in a workspace."""

import json
import re
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

from harness import poll

# as in prometheus.yml, for the one exporter that puts its own name before all others
PREFIX = {'source_labels': ['__name__'], 'regex': 'pgwatch_(pgnetlat_.+)', 'target_label': '__name__'}


def fetch(url):
    # 127.0.0.1 is never behind a proxy
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=poll.PATIENCE) as answer:
        return answer.read().decode()


def answers(url):
    """Does anybody, and not with an error of its own (503: not ready yet)?"""
    try:
        return bool(fetch(url))
    except urllib.error.HTTPError as error:
        return error.code < 500
    except OSError:
        return False


def postgres_exporter(space, name, queries, dsn):
    """Debian's, with these files of queries and nothing else; its address."""
    path = space.write(f'{name}.yaml', ''.join(file.read_text() for file in queries))
    program = 'prometheus-postgres-exporter'
    # its own collectors have other names in other releases
    said = subprocess.run([program, '--help'], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False).stdout
    collectors = set(re.findall(r'--(?:\[no-\])?collector\.(\w+)(?![\w.=])', said))
    return serve(space, name, [
        program, '--disable-default-metrics', '--disable-settings-metrics', f'--extend.query-path={path}',
        *(f'--no-collector.{collector}' for collector in sorted(collectors))], DATA_SOURCE_NAME=dsn)


def serve(space, name, command, **environment):
    """A program that takes --web.listen-address; its address."""
    _, port = space.serve(name, lambda port: [*command, f'--web.listen-address=127.0.0.1:{port}'],
                          lambda process, port: answers(f'http://127.0.0.1:{port}/'),
                          environment=space.environment(**environment))
    return f'127.0.0.1:{port}'


class Prometheus:
    def __init__(self, space, targets, interval, rule_files=(), name='prometheus'):
        """"targets": {job: address}"""
        config = {'global': {'scrape_interval': f'{interval}s', 'scrape_timeout': f'{interval}s',
                             'evaluation_interval': '1s'},
                  'rule_files': [str(path) for path in rule_files],
                  'scrape_configs': [{'job_name': job, 'static_configs': [{'targets': [address]}],
                                      'metric_relabel_configs': [PREFIX]} for job, address in targets.items()]}
        path = space.write(f'{name}.yml', json.dumps(config))      # JSON is YAML
        self.url = 'http://' + serve(space, name,
                                     ['prometheus', f'--config.file={path}', f'--storage.tsdb.path={name}.tsdb',
                                      '--web.enable-remote-write-receiver'])
        self.jobs = list(targets)

    def api(self, path, **arguments):
        url = f'{self.url}/api/v1/{path}'
        if arguments:
            url += '?' + urllib.parse.urlencode(arguments)
        try:
            answer = json.loads(fetch(url))
        except urllib.error.HTTPError as error:
            answer = json.loads(error.read().decode())
        if answer['status'] != 'success':
            raise RuntimeError(answer.get('error'))
        return answer['data']

    def query(self, expression, moment=None):
        """[(labels, value)]"""
        arguments = {'query': expression} | ({'time': moment} if moment else {})
        return [(sample['metric'], float(sample['value'][1])) for sample in self.api('query', **arguments)['result']]

    def number(self, expression, moment=None):
        result = self.query(expression, moment)
        return result[0][1] if len(result) == 1 else None

    def catch_up(self):
        """Wait until all exporters have been scraped after this moment: {job: when}."""
        now = time.time()
        scraped = {}

        def caught_up():
            for job in self.jobs:
                # a metric that needs neither the extension nor a privilege; its timestamp is the scrape's beginning
                scraped[job] = self.number(f'timestamp(pgnetlat_exporter_library_loaded{{job="{job}"}})') or 0
            return min(scraped.values()) > now

        if not poll.wait_for(caught_up):
            raise RuntimeError('no scrape succeeds')
        return scraped

    def steady(self, window):
        """Has every scrape of late succeeded?  On a busy machine one may take too long, and that is reported."""
        return not any(self.query(f'min_over_time({name}{{job="{job}"}}[{window}]) < 1')
                       for name in ('up', 'pg_up') for job in self.jobs)

    def firing(self, alert, job):
        return self.query(f'ALERTS{{alertname="{alert}", alertstate="firing", job="{job}"}}')

    def fired(self, alert, job):
        """Whether it is, or has been, firing."""
        return self.query(f'count_over_time(ALERTS{{alertname="{alert}", alertstate="firing", job="{job}"}}[10m])')
