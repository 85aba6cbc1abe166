"""Workloads of Django's ORM, over psycopg 3."""

import time

import django
from django.conf import settings

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", "NAME": "postgres", "CONN_MAX_AGE": None}},
    DEFAULT_AUTO_FIELD="django.db.models.AutoField", USE_TZ=True)
django.setup()

from django.db import connection, models, transaction

from workload import THINK, case, main


class Item(models.Model):
    id = models.IntegerField(primary_key=True)
    parent = models.ForeignKey("self", models.DO_NOTHING, db_column="parent", related_name="children")
    payload = models.TextField()

    class Meta:
        app_label, db_table, managed = "clients", "item", False


class Sink(models.Model):
    id = models.IntegerField(primary_key=True)
    payload = models.TextField()

    class Meta:
        app_label, db_table, managed = "clients", "sink", False


def as_role(body):
    """The case runs in a connection of its own."""
    def run(role):
        connection.settings_dict.update(USER=role, OPTIONS={"application_name": role})
        try:
            body()
        finally:
            connection.close()
    run.__name__ = body.__name__
    return case(run)


def some():
    return Item.objects.filter(id__gte=100, id__lt=120)


@as_role
def lazy_loading():
    """The N+1 of the textbooks: 20 objects, then the parent of each."""
    for item in some():
        str(item.parent.payload)


@as_role
def lazy_sets():
    for item in some():
        list(item.children.all())


@as_role
def select_related():
    for item in some().select_related("parent"):
        str(item.parent.payload)


@as_role
def prefetch_related():
    for item in some().prefetch_related("children"):
        list(item.children.all())


@as_role
def get_each():
    for i in range(20):
        Item.objects.get(id=i)


@as_role
def create_each():
    for i in range(10):
        Sink.objects.create(id=i, payload="x")


@as_role
def create_atomic():
    with transaction.atomic():
        for i in range(10):
            Sink.objects.create(id=i, payload="x")


@as_role
def transactions():
    for _ in range(3):
        with transaction.atomic():
            for i in range(5):
                Sink.objects.create(id=i, payload="x")


@as_role
def short_connections():
    """As CONN_MAX_AGE = 0 has it: one for each request of a browser's."""
    for i in range(10):
        Item.objects.get(id=i)
        connection.close()


@as_role
def nested_atomic():
    with transaction.atomic():
        for i in range(3):
            with transaction.atomic():
                Sink.objects.create(id=i, payload="x")


@as_role
def bulk_create():
    Sink.objects.bulk_create(Sink(id=i, payload="x") for i in range(50))


@as_role
def iterator():
    """A cursor that outlives its transaction: WITH HOLD."""
    for _ in Item.objects.iterator(chunk_size=100):
        pass


@as_role
def think_in_transaction():
    with transaction.atomic():
        for i in range(5):
            Item.objects.get(id=i)
            time.sleep(THINK)


main()
