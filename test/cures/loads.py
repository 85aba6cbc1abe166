"""Loads that lose their time to something, and the same loads cured of it.

    loads.py LOAD VARIANT SIZE          run it; prints the seconds that it took

Each variant does the same work.  What is timed begins when the connection is
there, and is what the finding says to be shortened: the work or, of thinking
transactions, the time in transactions.
"""

import asyncio
import os
import sys
import time

import asyncpg
import psycopg
import sqlalchemy as sa
from psycopg import sql
from sqlalchemy import orm

ROLE = os.environ["PGUSER"]
VARIANTS = {}


def variant(load, name):
    def register(function):
        VARIANTS[load, name] = function
        return function
    return register


def connect(**options):
    return psycopg.connect(application_name=ROLE, **options)


class Base(orm.DeclarativeBase):
    pass


class Parent(Base):
    __tablename__ = "parent"
    id = sa.Column(sa.Integer, primary_key=True)
    name = sa.Column(sa.Text)
    children = orm.relationship("Child")


class Child(Base):
    __tablename__ = "child"
    id = sa.Column(sa.Integer, primary_key=True)
    parent_id = sa.Column(sa.Integer, sa.ForeignKey("parent.id"))


def load_parents(size, *options):
    engine = sa.create_engine(f"postgresql+psycopg://{ROLE}@/postgres", pool_size=1,
                              connect_args={"application_name": ROLE})
    engine.connect().close()
    with orm.Session(engine) as session:
        started = time.monotonic()
        parents = session.scalars(sa.select(Parent).where(Parent.id < size).options(*options)).unique().all()
        assert sum(len(parent.children) for parent in parents) == 2 * size
        return time.monotonic() - started


@variant("lazy loading", "one by one")
def lazy_loading(size):
    return load_parents(size)


@variant("lazy loading", "JOIN")
def eager_loading(size):
    return load_parents(size, orm.joinedload(Parent.children))


def load_with_django(size, *related):
    """Pages of 20 rows, in autocommit, through whatever PGHOST and PGPORT lead to."""
    import django
    from django import conf

    conf.settings.configure(DATABASES={"default": {
        "ENGINE": "django.db.backends.postgresql", "NAME": "postgres", "USER": ROLE,
        "OPTIONS": {"application_name": ROLE}, "DISABLE_SERVER_SIDE_CURSORS": True}})
    django.setup()
    from django.db import models

    class Parents(models.Model):
        name = models.TextField()

        class Meta:
            app_label, db_table, managed = "loads", "parent", False

    class Children(models.Model):
        parent = models.ForeignKey(Parents, models.DO_NOTHING)

        class Meta:
            app_label, db_table, managed = "loads", "child", False

    started = time.monotonic()
    for first in range(0, size, 20):
        page = Children.objects.filter(id__gte=first, id__lt=first + 20).select_related(*related or [None])
        assert sum(len(child.parent.name) > 0 for child in page) == 20
    return time.monotonic() - started


@variant("behind a pooler", "one by one")
def lazy_loading_with_django(size):
    return load_with_django(size)


@variant("behind a pooler", "select_related")
def eager_loading_with_django(size):
    return load_with_django(size, "parent")


def insert(size, body):
    with connect() as c:
        c.execute("SELECT 1")
        c.commit()
        started = time.monotonic()
        body(c, [(i, "x") for i in range(size)])
        c.commit()
        return time.monotonic() - started


@variant("inserts", "one by one")
def insert_one_by_one(size):
    def body(c, rows):
        for row in rows:
            c.execute("INSERT INTO sink VALUES (%s, %s)", row)
    return insert(size, body)


@variant("inserts", "pipeline")
def insert_in_pipeline(size):
    def body(c, rows):
        with c.pipeline():
            for row in rows:
                c.execute("INSERT INTO sink VALUES (%s, %s)", row)
    return insert(size, body)


@variant("inserts", "COPY")
def insert_by_copy(size):
    def body(c, rows):
        with c.cursor().copy("COPY sink FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
    return insert(size, body)


def fetch(size, rows):
    async def run():
        c = await asyncpg.connect(user=ROLE, database="postgres", ssl=False,
                                  server_settings={"application_name": ROLE})
        async with c.transaction():
            started = time.monotonic()
            found = 0
            async for _ in c.cursor("SELECT i FROM generate_series(1, $1::int) i", size, prefetch=rows):
                found += 1
            assert found == size
            elapsed = time.monotonic() - started
        await c.close()
        return elapsed
    return asyncio.run(run())


@variant("fetching", "one row")
def fetch_single_rows(size):
    return fetch(size, 1)


@variant("fetching", "1,000 rows")
def fetch_many_rows(size):
    return fetch(size, 1000)


def different_statements():
    for i in range(20):
        columns = sql.SQL(", ").join([sql.Identifier("id")] * (i + 1))
        yield sql.SQL("SELECT {} FROM parent WHERE id = {}").format(columns, i)


def transactions(size, body):
    with connect(autocommit=True) as c:
        c.execute("SELECT 1")
        started = time.monotonic()
        for _ in range(size):
            body(c)
        return time.monotonic() - started


def ask_differently(c):
    for statement in different_statements():
        c.execute(statement)


def one_transaction(c):
    with c.transaction():
        ask_differently(c)


@variant("long conversation", "one by one")
def converse(size):
    return transactions(max(size // 20, 2), one_transaction)


@variant("long conversation", "pipeline")
def converse_in_pipeline(size):
    # three round trips: the other way round, psycopg's pipeline takes four
    def body(c):
        with c.transaction(), c.pipeline():
            ask_differently(c)
    return transactions(max(size // 20, 2), body)


def think(size, before):
    """Seconds in transactions."""
    elapsed = 0
    with connect(autocommit=True) as c:
        for i in range(max(size // 10, 5)):
            if before:
                time.sleep(0.5)
            started = time.monotonic()
            with c.transaction():
                c.execute("UPDATE parent SET name = 'y' WHERE id = %s", (i,))
                if not before:
                    time.sleep(0.5)
            elapsed += time.monotonic() - started
    return elapsed


@variant("thinking", "in the transaction")
def think_inside(size):
    return think(size, False)


@variant("thinking", "before it")
def think_before(size):
    return think(size, True)


@variant("connecting", "each time")
def connect_each_time(size):
    started = time.monotonic()
    for _ in range(size):
        with connect(autocommit=True) as c:
            c.execute("SELECT 1")
    return time.monotonic() - started


@variant("connecting", "once")
def connect_once(size):
    with connect(autocommit=True) as c:
        c.execute("SELECT 1")
        started = time.monotonic()
        for _ in range(size):
            c.execute("SELECT 1")
        return time.monotonic() - started


def connected(body):
    with connect(autocommit=True) as c:
        started = time.monotonic()
        body(c)
        return time.monotonic() - started


# What follows is cured by another path.

@variant("far away", "as it is")
@variant("far away", "moved")
def far_away(size):
    """A transaction of a statement now and then: nothing but the path takes time."""
    def body(c):
        for i in range(size):
            c.execute("SELECT name FROM parent WHERE id = %s", (i,))
            time.sleep(0.015)
    return connected(body)


@variant("large result", "as it is")
@variant("large result", "a wider path")
def large_result(size):
    return connected(lambda c: c.execute("SELECT repeat('x', 1000) FROM generate_series(1, 4000)").fetchall())


@variant("bad path", "as it is")
@variant("bad path", "no losses")
def bad_path(size):
    def body(c):
        for _ in range(size):
            c.execute("SELECT repeat('x', 1000) FROM generate_series(1, 30)").fetchall()
    return connected(body)


def main():
    load, name, size = sys.argv[1:]
    print(VARIANTS[load, name](int(size)))


if __name__ == "__main__":
    main()
