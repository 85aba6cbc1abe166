"""The loads of test/cures that the experiments need, and some more, with the same drivers.

    loads.py LOAD VARIANT SIZE          run it; prints the seconds that it took
"""

import importlib.util
import pathlib
import sys
import time

import sqlalchemy as sa
from sqlalchemy import orm

spec = importlib.util.spec_from_file_location("cures", pathlib.Path(__file__).resolve().parent.parent / "cures" / "loads.py")
cures = importlib.util.module_from_spec(spec)
spec.loader.exec_module(cures)

INSERT = "INSERT INTO sink VALUES (%s, %s)"


def rows(size, body):
    """Rows into a table, each in a transaction of its own as far as "body" leaves them that."""
    with cures.connect(autocommit=True) as c:
        c.execute("SELECT 1")
        started = time.monotonic()
        body(c, [(i, "x") for i in range(size)])
        return time.monotonic() - started


def one_by_one(c, values):
    for row in values:
        c.execute(INSERT, row)


def pipeline(c, values):
    with c.pipeline():
        one_by_one(c, values)


def copy(c, values):
    with c.cursor().copy("COPY sink FROM STDIN") as copying:
        for row in values:
            copying.write_row(row)


def pages(statements, count, *options):
    """Transactions of an ORM, one after the other."""
    engine = sa.create_engine(f"postgresql+psycopg://{cures.ROLE}@/postgres", pool_size=1,
                              connect_args={"application_name": cures.ROLE})
    engine.connect().close()
    started = time.monotonic()
    for _ in range(count):
        with orm.Session(engine) as session:
            query = sa.select(cures.Parent).where(cures.Parent.id < statements - 1).options(*options)
            parents = session.scalars(query).unique().all()
            assert sum(len(parent.children) for parent in parents) == 2 * (statements - 1)
    return time.monotonic() - started


VARIANTS = {
    ("rows", "one by one"): lambda size: rows(int(size), one_by_one),
    ("rows", "pipeline"): lambda size: rows(int(size), pipeline),
    ("rows", "COPY"): lambda size: rows(int(size), copy),
    ("pages", "lazily"): lambda size: pages(*map(int, size.split("x"))),
    ("pages", "JOIN"): lambda size: pages(*map(int, size.split("x")), orm.joinedload(cures.Parent.children)),
    # so many statements: one for the parents, and one for each parent's children
    ("lazy loading", "one by one"): lambda size: cures.lazy_loading(int(size) - 1),
    ("lazy loading", "JOIN"): lambda size: cures.eager_loading(int(size) - 1),
}


def main():
    load, variant, size = sys.argv[1:]
    print(VARIANTS[load, variant](size))


main()
