"""The drivers: how to install them, and how to run their programs.

What is installed goes into a directory outside of the source tree, once for each
content of the language's folder.  The programs run in a namespace without any
network but the laboratory's.
"""

import hashlib
import os
import pathlib
import shutil
import subprocess

from harness.workspace import Unavailable, require_program

HERE = pathlib.Path(__file__).resolve().parent
CACHE = pathlib.Path(os.environ.get("CLIENTS_CACHE", "/var/cache/pgnetlat-clients"))


class Language:
    """A folder with programs and pinned dependencies."""

    needs = ()          # programs
    pins = ()           # the files that say what to install

    def __init__(self, name):
        self.name = name
        self.source = HERE / name
        self.ready = None

    @property
    def directory(self):
        return CACHE / self.name

    def prepare(self):
        """Install the dependencies, unless that was done before."""
        if isinstance(self.ready, Unavailable):
            raise self.ready
        if self.ready:
            return
        try:
            require_program(*self.needs)
            self._install_once()
        except Unavailable as reason:
            self.ready = reason
            raise
        self.ready = True

    def _install_once(self):
        digest = hashlib.sha256()
        for pin in sorted(p for pattern in self.pins for p in self.source.glob(pattern)):
            digest.update(pin.read_bytes())
        mark = CACHE / f"{self.name}.installed"
        if mark.exists() and mark.read_text() == digest.hexdigest():
            return
        self.directory.mkdir(parents=True, exist_ok=True)
        print(f"# installing what {self.name} needs", flush=True)
        self.install()
        mark.write_text(digest.hexdigest())

    def do(self, *command, **kwargs):
        environment = dict(os.environ, **kwargs.pop("environment", {}))
        result = subprocess.run(["nice", *map(str, command)], capture_output=True, text=True,
                                env=environment, **kwargs)
        if result.returncode != 0:
            lines = (result.stderr.strip() or result.stdout.strip()).splitlines()
            raise Unavailable(f"{command[0]} failed: {lines[-1] if lines else result.returncode}")

    def install(self):
        raise NotImplementedError


class Python(Language):
    needs = ("/usr/bin/python3",)
    pins = ("requirements.txt",)

    def install(self):
        self.do("/usr/bin/python3", "-m", "venv", self.directory / "venv")
        self.do(self.directory / "venv/bin/pip", "install", "-q", "-r", self.source / "requirements.txt")

    def command(self, program):
        return [self.directory / "venv/bin/python", "-B", self.source / program]


class Go(Language):
    """One program for all its drivers, which tells by its name which cases to list and run."""

    needs = ("go",)
    pins = ("go.mod", "go.sum", "*.go")

    def install(self):
        self.do("go", "build", "-o", self.directory / "clients", ".", cwd=self.source,
                environment={"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly"})

    def command(self, program):
        return [self.directory / "clients", program]


class Node(Language):
    needs = ("node", "npm")
    pins = ("package-lock.json",)

    def install(self):
        for name in ("package.json", "package-lock.json"):
            shutil.copy(self.source / name, self.directory)
        self.do("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", cwd=self.directory)

    def command(self, program):
        return ["node", self.source / program]


class Rust(Language):
    needs = ("cargo",)
    pins = ("Cargo.toml", "Cargo.lock", "src/*.rs")

    def install(self):
        self.do("cargo", "build", "-j1", "--locked", "--quiet", cwd=self.source,
                environment={"CARGO_TARGET_DIR": str(self.directory)})

    def command(self, program):
        return [self.directory / "debug/pgnetlat-clients", program]


class Java(Language):
    needs = ("java", "javac", "mvn")
    pins = ("pom.xml", "*.java")

    def install(self):
        self.do("mvn", "-q", "-B", "-f", self.source / "pom.xml", "dependency:copy-dependencies",
                f"-DoutputDirectory={self.directory}/lib")
        self.do("javac", "-d", self.directory / "classes", "-cp", f"{self.directory}/lib/*",
                *sorted(self.source.glob("*.java")))

    def command(self, program):
        return ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{self.directory}/classes:{self.directory}/lib/*", program]


class Programs(Language):
    """PostgreSQL's own programs."""

    needs = ("bash",)

    def _install_once(self):
        pass

    def command(self, program):
        return ["bash", self.source / program]


# By which libpq and drivers like it find out how to connect.
PASSWORD = "battery staple"
ENCRYPTED = {"PGSSLMODE": "require", "PGPASSWORD": PASSWORD}


class Driver:
    """One program; its cases are those it lists itself.

    "settings" are environment variables for it, "only" the cases that are of interest with them.
    """

    def __init__(self, name, language, program, about, settings=None, only=None):
        self.name, self.language, self.program, self.about = name, language, program, about
        self.settings, self.only = settings or {}, only

    def prepare(self):
        self.language.prepare()

    @property
    def environment(self):
        return {"DRIVER": self.name, "LAB_CLIENTS": str(self.language.directory), **self.settings}

    @property
    def command(self):
        return self.language.command(self.program)

    def cases(self, bindir):
        result = subprocess.run([*map(str, self.command), "--list"], capture_output=True, text=True,
                                env=dict(os.environ, **self.environment, LAB_BIN=str(bindir)))
        if result.returncode != 0:
            raise Unavailable(f"does not start: {(result.stderr.strip() or '?').splitlines()[-1]}")
        return [name for name in result.stdout.split() if not self.only or name in self.only]


PYTHON = Python("python")
GO = Go("go")
NODE = Node("node")
RUST = Rust("rust")
JAVA = Java("java")
PROGRAMS = Programs("programs")

DRIVERS = [
    Driver("psycopg3", PYTHON, "with_psycopg3.py", "psycopg 3"),
    Driver("asyncpg", PYTHON, "with_asyncpg.py", "asyncpg"),
    Driver("sqlalchemy", PYTHON, "with_sqlalchemy.py", "SQLAlchemy"),
    Driver("django", PYTHON, "with_django.py", "Django"),
    Driver("pgx", GO, "pgx", "pgx"),
    Driver("database_sql_pgx", GO, "database_sql_pgx", "database/sql with pgx"),
    Driver("lib_pq", GO, "lib_pq", "database/sql with lib/pq"),
    Driver("node_pg", NODE, "with_pg.js", "node-postgres"),
    Driver("postgres_js", NODE, "with_postgres_js.js", "postgres.js"),
    Driver("tokio_postgres", RUST, "tokio_postgres", "tokio-postgres"),
    Driver("sqlx", RUST, "sqlx", "sqlx"),
    Driver("pgjdbc", JAVA, "WithPgjdbc", "pgjdbc"),
    Driver("programs", PROGRAMS, "programs", "psql, pg_dump and pg_restore"),
    # the same, with TLS and a password
    Driver("psycopg3_tls", PYTHON, "with_psycopg3.py", "psycopg 3 over TLS", ENCRYPTED),
    Driver("pgx_tls", GO, "pgx", "pgx over TLS", ENCRYPTED),
    Driver("pgjdbc_tls", JAVA, "WithPgjdbc", "pgjdbc over TLS", ENCRYPTED),
    # ... and a client that offers at once a key for the curve that the server wants, which before 18 is not usual
    Driver("psycopg3_p256", PYTHON, "with_psycopg3.py", "psycopg 3 over TLS with P-256",
           {**ENCRYPTED, "OPENSSL_CONF": str(HERE / "python" / "p256.cnf")}, ("short_connections",)),
]

# What the short form runs: drivers, and the cases of each (None: all).
SHORT = {"psycopg3": None, "asyncpg": None,
         "psycopg3_tls": {"execute", "pipeline", "copy_in", "n_plus_one_in_transaction", "short_connections"}}
