"""Workloads of SQLAlchemy's ORM, over psycopg 3."""

import time

import sqlalchemy as sa
from sqlalchemy import orm

from workload import THINK, case, main


class Base(orm.DeclarativeBase):
    pass


class Item(Base):
    __tablename__ = "item"
    id = sa.Column(sa.Integer, primary_key=True)
    parent = sa.Column(sa.Integer)
    payload = sa.Column(sa.Text)
    children = orm.relationship("Item", primaryjoin="foreign(Item.parent) == remote(Item.id)",
                                viewonly=True, uselist=True)


class Sink(Base):
    __tablename__ = "sink"
    id = sa.Column(sa.Integer, primary_key=True)
    payload = sa.Column(sa.Text)


class session:
    def __init__(self, role, **options):
        if "poolclass" not in options:
            options["pool_size"] = 1
        self.engine = sa.create_engine(f"postgresql+psycopg://{role}@/postgres",
                                       connect_args={"application_name": role}, **options)

    def __enter__(self):
        self.session = orm.Session(self.engine)
        return self.session

    def __exit__(self, *exc_info):
        self.session.close()
        self.engine.dispose()


@case
def lazy_loading(role):
    """The N+1 of the textbooks: 20 objects, then the children of each."""
    with session(role) as s:
        for item in s.scalars(sa.select(Item).where(Item.id.between(100, 119))).all():
            list(item.children)


@case
def eager_loading(role):
    with session(role) as s:
        query = sa.select(Item).where(Item.id.between(100, 119)).options(orm.selectinload(Item.children))
        for item in s.scalars(query).all():
            list(item.children)


@case
def get_each(role):
    with session(role) as s:
        for i in range(20):
            s.get(Item, i)


@case
def insert_all(role):
    with session(role) as s:
        for i in range(20):
            s.add(Sink(id=i, payload="x"))
        s.commit()


@case
def insert_each(role):
    with session(role) as s:
        for i in range(5):
            s.add(Sink(id=i, payload="x"))
            s.commit()


@case
def transactions(role):
    with session(role) as s:
        for _ in range(3):
            for i in range(5):
                s.execute(sa.insert(Sink).values(id=i, payload="x"))
            s.commit()


@case
def short_connections(role):
    with session(role, poolclass=sa.NullPool) as s:
        for _ in range(10):
            s.execute(sa.select(1))
            s.rollback()


@case
def update_each(role):
    with session(role) as s:
        for item in s.scalars(sa.select(Item).where(Item.id < 5)).all():
            item.payload = item.payload + "y"
        s.commit()


@case
def pre_ping(role):
    with session(role, pool_pre_ping=True) as s:
        for _ in range(5):
            s.execute(sa.text("SELECT 1"))
            s.rollback()


@case
def autocommit(role):
    with session(role, isolation_level="AUTOCOMMIT") as s:
        for i in range(20):
            s.execute(sa.text("SELECT payload FROM item WHERE id = :id"), {"id": i}).all()


@case
def think_in_transaction(role):
    with session(role) as s:
        for i in range(10):
            s.execute(sa.text("SELECT 1"))
            time.sleep(THINK)


@case
def yield_per(role):
    with session(role) as s:
        for _ in s.scalars(sa.select(Item).execution_options(yield_per=100)):
            pass


main()
