"""PostgreSQL servers for the benches.

    with Cluster() as cluster:
        with cluster.server(preload="pg_stat_statements") as server:
            server.pgbench("-S", "-t", "1000")

A cluster is initialised once, with pgbench's tables in it; each server gets
its own copy of the data directory, so that configurations are compared on
equal terms.  test/lib/harness runs and ends them.
"""

import shutil

from harness import poll, postgres, workspace

# Nothing in the background may disturb a measurement.
SETTINGS = {
    "max_connections": 100,
    "shared_buffers": "128MB",
    "full_page_writes": "off",
    "autovacuum": "off",
    "jit": "off",
    "max_parallel_workers_per_gather": 0,
    "checkpoint_timeout": "1d",
    "max_wal_size": "4GB",
    "log_connections": "on",
    "log_line_prefix": "%p ",
    "log_statement": "none",
}


class Cluster(workspace.Workspace):
    def __init__(self, pgbench_tables=True):
        super().__init__("bench")
        self.pgbench_tables = pgbench_tables
        self.copies = 0

    def __enter__(self):
        postgres.bindir()
        super().__enter__()
        try:
            self.template = Server(self, "template", {}).initialise()
            if self.pgbench_tables:
                with self.template as server:
                    server.pgbench("-i", "-q", "-s", "1")
                    server.sql("VACUUM FREEZE")
        except BaseException as error:
            self.__exit__(type(error))
            raise
        return self

    def server(self, preload="", settings=None, wrapper=()):
        """A server on a fresh copy of the data; "wrapper" is put before its command line."""
        self.copies += 1
        server = Server(self, f"data{self.copies}", {"shared_preload_libraries": preload, **(settings or {})},
                        wrapper)
        return server.initialise(self.template)


class Server(postgres.Server):
    def __init__(self, cluster, name, settings, wrapper=()):
        super().__init__(cluster, name, {**SETTINGS, **settings}, superuser="bench", wrapper=wrapper)

    def __exit__(self, *exc_info):
        super().__exit__(*exc_info)
        if self is not self.space.template:
            shutil.rmtree(self.data, ignore_errors=True)

    def pgbench(self, *arguments, **environment):
        return self.program("pgbench", *arguments, **environment)

    def backends(self, application_name):
        """The process IDs of all connections that had this application_name."""
        marker = f" application_name={application_name}"
        return [int(line.split()[0]) for line in self.log.splitlines()
                if line.split(" (")[0].endswith(marker)]


def wait_for_exit(pid, timeout=60):
    """Wait until a process is gone."""
    poll.until(lambda: not workspace.alive(pid), f"process {pid} ends", timeout, interval=0.01)
