import pytest
from django.db import connection


@pytest.fixture(autouse=True)
def named(request, db):
    """Each test has an application_name of its own, of at most 63 bytes."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('application_name', %s, false)", [f"pytest {request.node.name}"[:63]])


@pytest.fixture(autouse=True, scope="session")
def guard(django_db_setup, django_db_blocker):
    """Fails after the last test, with a list, if any of them makes too many round trips."""
    yield
    with django_db_blocker.unblock(), connection.cursor() as cursor:
        cursor.execute("SELECT pgnetlat_guard_check(repeats => 10, round_trips => 30, names => 'pytest %')")
